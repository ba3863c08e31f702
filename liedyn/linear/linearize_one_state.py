"""The local state space of one state, called from Python with little overhead.

Choosing coordinates, allocating and checking the types of thirty arrays takes four times as long as the linearization
of a five-bar itself. Here it is done once for each choice of coordinates and outputs (`Single`), and the kernel of
`linearize_states` is called at its address by a direct kernel (`liedyn.model.calls.direct`).
"""
from dataclasses import dataclass

import numpy as np

from liedyn.linear.linearize_states import Found, Request, Tolerances, linearize_states
from liedyn.linear.outputs import needed_actuators, needed_outputs, output_plan, with_outputs
from liedyn.linear.space import Coordinates
from liedyn.linear.state_space import RESULTS, LocalStateSpace, restricted
from liedyn.machine import arguments
from liedyn.machine.compiled.jit import address_of, inline
from liedyn.machine.compiled.objects import (
    integer, integers_or_zeros, is_none, item, new_arrays, no_numbers, numbers, shaped,
)
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import LiedynError
from liedyn.machine.simd.lanes import integers_in, vector_in
from liedyn.mechanics.constraints.free_velocities import LEFT, TANGENT, is_left
from liedyn.mechanics.constraints.independent import Independent, all_holonomic, by_name, choose, tangent_conditions
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.dynamics.singular import LINEARIZATION, SUSPECT, is_suspect, require_regular_one
from liedyn.mechanics.dynamics.state import State
from liedyn.model.calls.batches import call_rows
from liedyn.model.calls.boundary import is_usable
from liedyn.model.calls.direct import configuration, direct, general_path, packed, usual, velocity
from liedyn.model.packed import NQ, NV, N_ROWS
from liedyn.model.remembered import remembered


PARTS = "about", "K", "S", "drift", "q", "v", "tau", "a", "lam", "R", "C", "D"
"""Parts of the array that the direct kernel returns besides A, B and f0; `about` holds the rank, the larger one of the
condition numbers of velocities and coordinates, that of the velocities, and the closure error. R has the rows of
coordinates that the elimination chooses; C and D are present unless the outputs are the coordinates."""
SIZES = 6 + len(PARTS)
"""Number of integers of a `Single` before those of the coordinates: numbers of y, w, u, outputs and their parts, size
of the array, begin of each part."""


def room(robot, count, p_y, p_w, nu, outputs, results=RESULTS):
    """Arrays for the results of `linearize_states`, of K, S and drift only those asked for; ranks are unknown (-1)."""
    n, m, x, empty = robot.nv, len(robot.row_names), p_y + p_w, np.empty
    of_K, of_S, of_drift = (count if name in results else 0 for name in ("K", "S", "drift"))
    return Found(
        empty((count, x, x)), empty((count, x, nu)), empty((count, outputs, x)), empty((count, outputs, nu)),
        empty((count, x)), empty((of_K, n, p_y)), empty((of_S, n, p_w)), empty((of_drift, n)), empty((count, n)),
        empty((count, m)), np.full(count, -1), empty(count), empty(count), empty(count))


@dataclass(frozen=True)
class Single:
    """A choice of coordinates, outputs and tolerances, as the direct kernel takes it.

    Attributes
    ----------
    names : tuple
        Names of the states, inputs and outputs, without those of coordinates that the elimination chooses.
    left : int
        LEFT, TANGENT, or 0 for coordinates that do not depend on the state.
    known : dict
        Names of the coordinates, by the elimination's choice (the bytes of R).
    results : tuple of str
        Those asked for.
    places : list
        For each of the PARTS that exists: name, begin, end, and shape (None for vectors).
    accelerations : tuple of int
        Begin and end of the accelerations a.
    address : int
        Address of the kernel of `linearize_states`.
    integers : ndarray of int64
        In the layout that `linearize_direct` reads.
    numbers : ndarray
        In the same layout: tolerances, rows of the coordinates, matrix of the actuators.
    """

    names: tuple
    left: int
    known: dict
    results: tuple
    places: list
    accelerations: tuple
    address: int
    integers: np.ndarray
    numbers: np.ndarray


def single(robot, q, independent, outputs, speeds, results, tolerances):
    """The `Single` for the arguments of `linearize`; None if the choice has to be made anew at each call."""
    if independent is None:
        independent = robot.independent or "auto"
    if independent == "auto" and not robot.row_names:
        independent = robot.velocity_names
    if not independent or not all_holonomic(robot) or watches(robot):
        return None
    # the kernel at the address is compiled for exactly these types
    tolerances = arguments.positive("", tolerances[0]), arguments.non_negative("", tolerances[1])
    left = {"auto": LEFT, "tangent": TANGENT}.get(independent, 0)
    if left:
        if speeds is not None:
            return None
        chosen = choose(robot, q, independent, tolerances[1])  # gives the number of coordinates
        y = Independent(chosen.names if left == TANGENT else (), chosen.rows, np.full(len(chosen.rows), left))
    else:
        y = by_name(robot, independent)
    w = y if speeds is None else by_name(robot, speeds)
    asked = robot.outputs if outputs is None else arguments.names("outputs", outputs)
    plan = needed_outputs(results, output_plan(robot, asked, y))
    actuators = needed_actuators(results, robot.actuator_matrix).copy()
    if plan.more:
        return None
    (p_y, p_w, nu), n = (len(y.rows), len(w.rows), actuators.shape[1]), robot.nv
    rows, row = len(plan.labels) if len(plan.parts) else 0, np.empty((1, n))
    address = address_of(
        linearize_states.kernel, 0, 1, robot.packed, State(robot.neutral[None].copy(), row, row, np.empty((1, 0))),
        Request(Coordinates(y.rows[None].copy(), y.virtual, w.rows[None].copy(), w.virtual), actuators, plan.parts,
                Tolerances(*tolerances)), room(robot, 1, p_y, p_w, nu, rows))
    shapes = ((4,), (n, p_y), (n, p_w), (n,), (robot.nq,), (n,), (n,), (n,), (len(robot.row_names),),
              (p_y if left else 0, n), (rows, p_y + p_w), (rows, nu))
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes]).tolist()
    begins = [0, *ends[:-1]]
    integers = np.concatenate([[p_y, p_w, nu, rows, len(plan.parts), ends[-1], *begins], y.virtual, w.virtual,
                               plan.parts.ravel()])
    places = [(part, begin, end, shape if len(shape) > 1 else None)
              for part, begin, end, shape in zip(PARTS, begins, ends, shapes)
              if part not in ("R", "C", "D") or (left == LEFT if part == "R" else rows)]
    return Single((y.names + w.rates, robot.actuator_names, plan.labels), left, {}, results, places,
                  (begins[PARTS.index("a")], ends[PARTS.index("a")]), address,
                  integers.astype(np.int64),
                  np.concatenate([tolerances, y.rows.ravel(), w.rows.ravel(), actuators.ravel()]))


@inline
def keep(x, copy):
    for k in range(x.size):
        copy[k] = x[k]


@direct
def linearize_direct(address, model, q, v, tau, integers, given):
    """New arrays A, B, f0, and one array with all PARTS."""
    model = packed(model)
    q, v, tau = configuration(model, q), velocity(model, v), velocity(model, tau)
    if not usual((model.floats, q, v, tau)):
        return general_path()
    places = integers_or_zeros(integers, True, SIZES)
    p_y, p_w, nu, rows, parts = places[0], places[1], places[2], places[3], places[4]
    n, m, nq, x = model.ints[NV], model.ints[N_ROWS], model.ints[NQ], p_y + p_w
    found = new_arrays(((x, x), (x, nu), (x,), (places[5],)))
    if is_none(found):
        return found
    rest, of_rows = numbers(item(found, 3), places[5]), 2 + n * x
    chosen, virtual = numbers(given, of_rows + n * nu), integers_in(places, SIZES, p_y)
    R_y, R_w = vector_in(chosen, 2, n * p_y), vector_in(chosen, 2 + n * p_y, n * p_w)
    if is_left(virtual, LEFT) or is_left(virtual, TANGENT):
        R_y = R_w = vector_in(rest, places[15], n * p_y)
    about, rank, condition_y = vector_in(rest, places[6], 4), np.full(1, -1), np.empty(1)
    call_rows(integer(address), 0, 1, (
        model, State(shaped(q, (1, nq)), shaped(v, (1, n)), shaped(tau, (1, n)), shaped(no_numbers(0), (1, 0))),
        Request(Coordinates(shaped(R_y, (1, p_y, n)), virtual, shaped(R_w, (1, p_w, n)),
                            integers_in(places, SIZES + p_y, p_w)),
                shaped(vector_in(chosen, of_rows, n * nu), (n, nu)),
                shaped(integers_in(places, SIZES + x, 4 * parts), (parts, 4)), Tolerances(chosen[0], chosen[1])), Found(
            shaped(numbers(item(found, 0), x * x), (1, x, x)), shaped(numbers(item(found, 1), x * nu), (1, x, nu)),
            shaped(vector_in(rest, places[16], rows * x), (1, rows, x)),
            shaped(vector_in(rest, places[17], rows * nu), (1, rows, nu)), shaped(numbers(item(found, 2), x), (1, x)),
            shaped(vector_in(rest, places[7], n * p_y), (1, n, p_y)),
            shaped(vector_in(rest, places[8], n * p_w), (1, n, p_w)), shaped(vector_in(rest, places[9], n), (1, n)),
            shaped(vector_in(rest, places[13], n), (1, n)), shaped(vector_in(rest, places[14], m), (1, m)), rank,
            vector_in(about, 2, 1), condition_y, vector_in(about, 3, 1))))
    about[0], about[1] = rank[0], max(about[2], condition_y[0])
    keep(q, vector_in(rest, places[10], nq))
    keep(v, vector_in(rest, places[11], n))
    keep(tau, vector_in(rest, places[12], n))
    return found


def linearize_one_state(robot, q, v, tau, choice):
    """The `LocalStateSpace` of one state in the usual case, else None.

    choice = (independent, outputs, speeds, results, closure_tolerance, rank_tolerance), as for `linearize`, but with
    `asked_results`.
    """
    choice = "one state", *choice
    try:
        one = robot._memo.get(choice, choice)
    except TypeError:  # lists, or objects that are no names
        choice = tuple(tuple(x) if type(x) is list else x for x in choice)
        try:
            one = robot._memo.get(choice, choice)
        except TypeError:
            return None
    if one is choice:
        usual = all(x is None or isinstance(x, (str, tuple)) for x in choice[1:4]) and type(q) is np.ndarray
        if not usual or q.shape != (robot.nq,) or q.dtype != np.float64 or not is_usable(q).all():
            return None
        try:
            one = robot._memo[choice] = single(robot, q, *choice[1:5], choice[5:])
        except LiedynError:  # the general way raises it, after all errors of the state itself
            return None
    if one is None:
        return None
    found = linearize_direct(one.address, robot.packed, q, v, tau, one.integers, one.numbers)
    if robot.functions:
        raise_errors(robot.functions)
    if found is None:
        return None
    A, B, f0, rest = found
    rank = int(rest.item(0))
    begin, end = one.accelerations
    if rank < 0 or (condition := rest.item(1)) > SUSPECT and is_suspect(
            robot, q, v, rest[begin:end], rank, condition, LINEARIZATION):
        return None  # the general way raises the error
    require_regular_one(robot, q, rank, choice[-1])
    found = LocalStateSpace.of({"A": A, "B": B, "f0": f0, "rank": rank, "_robot": robot,
                                "_later": (read_later, one, rest, robot)})
    return restricted(found, one.results)


def read_later(name, found, one, rest, robot):
    """Attributes of a `LocalStateSpace`, computed when first read: all but A, B, f0 and the rank; returned by name."""
    if name == "condition" and one.left == TANGENT:
        return tangent_condition(name, found, robot, one.numbers[1])
    known = {part: rest[begin:end] if shape is None else rest[begin:end].reshape(shape)
             for part, begin, end, shape in one.places}
    names = names_left(robot, one, known.pop("R")) if one.left == LEFT else one.names
    known["states"], known["inputs"], known["outputs"] = names
    _, _, condition, known["closure_residual"] = known.pop("about").tolist()
    if one.left != TANGENT:
        known["condition"] = condition
    if "C" not in known and with_outputs(one.results):
        x, nu = known["K"].shape[1] + known["S"].shape[1], len(robot.actuator_names)
        known["C"], known["D"] = (x.copy() for x in own_coordinates(robot, known["K"].shape[1], x, nu))
    return known


def tangent_condition(_, found, robot, tolerance):
    """The condition numbers of tangent spaces, at one state or many."""
    condition = tangent_conditions(robot, found.q.reshape(-1, robot.nq), tolerance).reshape(found.q.shape[:-1])
    return {"condition": condition if condition.ndim else float(condition)}


@remembered
def own_coordinates(robot, p, x, nu):
    """C and D if the outputs are the p coordinates themselves."""
    return np.eye(p, x), np.zeros((p, nu))


def names_left(robot, one, R):
    """Names of the states, inputs and outputs, if the elimination chose the coordinates of R."""
    key = R.tobytes()
    if key not in one.known:
        y = by_name(robot, [robot.velocity_names[k] for k in R.argmax(axis=1)])
        one.known[key] = y.names + y.rates, one.names[1], one.names[2] or y.names
    return one.known[key]
