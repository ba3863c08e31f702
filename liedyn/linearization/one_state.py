"""The local state space of one state called from Python.

What Python would do at each call besides, choose, make room and look at the types of thirty arrays, takes four times as
long as the linearization of a five-bar: it is done once for each choice of coordinates and outputs (`Single`), and the
kernel of `linearize_states` is called at its address by a direct kernel (`liedyn.compiled.direct`).
"""
from dataclasses import dataclass

import numpy as np

from liedyn import arguments
from liedyn.compiled.batches import call_rows
from liedyn.compiled.boundary import is_usable
from liedyn.compiled.direct import configuration, direct, packed, unusual, usual, velocity
from liedyn.compiled.functions import raise_errors
from liedyn.compiled.jit import address_of, inline
from liedyn.compiled.objects import integer, integers_or_zeros, is_none, item, new_arrays, no_numbers, numbers, shaped
from liedyn.constraints.independent import Independent, all_holonomic, by_name, choose
from liedyn.constraints.left_open import LEFT, TANGENT, is_left
from liedyn.dynamics.singular import is_suspect, require_regular_one
from liedyn.dynamics.state import State
from liedyn.errors import LiedynError
from liedyn.linearization.outputs import output_plan
from liedyn.linearization.space import Coordinates
from liedyn.linearization.state_space import LocalStateSpace
from liedyn.linearization.states import Found, Tolerances, linearize_states
from liedyn.model.packed import NQ, NV, N_ROWS
from liedyn.simd.lanes import integers_in, vector_in


SIZES = 5  # integers of a `Single` before those of the coordinates


def room(robot, count, p_y, p_w, nu, outputs):
    """Arrays for the results of `linearize_states`, no rank known."""
    n, m, x, empty = robot.nv, len(robot.row_names), p_y + p_w, np.empty
    return Found(
        empty((count, x, x)), empty((count, x, nu)), empty((count, outputs, x)), empty((count, outputs, nu)),
        empty((count, x)), empty((count, n, p_y)), empty((count, n, p_w)), empty((count, n)), empty((count, n)),
        empty((count, m)), np.full(count, -1), empty(count), empty(count), empty(count))


@dataclass(frozen=True)
class Single:
    """A choice of coordinates, outputs and tolerances, as the direct kernel takes it.

    Attributes
    ----------
    names : tuple
        Names of the states, the inputs and the outputs; none of those that the elimination chooses.
    left : int
        LEFT, TANGENT, or 0 for coordinates that do not depend on the state.
    known : dict
        By what the elimination chose (the bytes of its numbers) the names.
    address : int
        Of the kernel of `linearize_states`.
    integers : ndarray of int64
        Sizes p_y, p_w, nu, of C and of the output plan; then virtual_y, virtual_w and the parts of
        the plan.
    numbers : ndarray
        Tolerances of closure and rank; then R_y, R_w and the actuators.
    """

    names: tuple
    left: int
    known: dict
    address: int
    integers: np.ndarray
    numbers: np.ndarray


def single(robot, q, independent, outputs, speeds, tolerances):
    """The `Single` for what `linearize` is given; None where it has to be looked at each time."""
    if independent is None:
        independent = robot.independent or "auto"
    if independent == "auto" and not robot.row_names:
        independent = robot.velocity_names
    if not independent or not all_holonomic(robot):
        return None
    left = {"auto": LEFT, "tangent": TANGENT}.get(independent, 0)
    if left:
        if speeds is not None:
            return None
        chosen = choose(robot, q, independent, tolerances[1])  # how many there are
        y = Independent(chosen.names if left == TANGENT else (), chosen.rows, np.full(len(chosen.rows), left))
    else:
        y = by_name(robot, (independent,) if isinstance(independent, str) else independent)
    w = y if speeds is None else by_name(robot, (speeds,) if isinstance(speeds, str) else speeds)
    asked = robot.outputs if outputs is None else arguments.names("outputs", outputs)
    plan, actuators = output_plan(robot, asked, y), robot.actuator_matrix.copy()
    if plan.contacts:
        return None
    tolerances = [float(x) for x in tolerances]  # the kernel at the address is compiled for these very types
    sizes = len(y.rows), len(w.rows), actuators.shape[1]
    rows = len(plan.labels) if len(plan.parts) else sizes[0]
    row, none = np.empty((1, robot.nv)), np.empty((1, 0))
    address = address_of(
        linearize_states.kernel, 0, 1, robot.packed, State(robot.neutral[None].copy(), row, row, none),
        Coordinates(y.rows[None].copy(), y.virtual, w.rows[None].copy(), w.virtual), actuators, plan.parts,
        Tolerances(*tolerances), room(robot, 1, *sizes, rows))
    names = y.names + w.rates, robot.actuator_names, plan.labels
    integers = np.concatenate([[*sizes, rows, len(plan.parts)], y.virtual, w.virtual, plan.parts.ravel()])
    return Single(names, left, {}, address, integers.astype(np.int64),
                  np.concatenate([tolerances, y.rows.ravel(), w.rows.ravel(), actuators.ravel()]))


@inline
def keep(x, copy):
    for k in range(x.size):
        copy[k] = x[k]


@direct
def linearize_direct(address, model, q, v, tau, integers, given):
    """New arrays A, B, C, D, f0, K, S, drift, q, v, tau, a, lam; then rank, both condition numbers, closure error; the
    coordinates that the elimination left, and their rows."""
    model = packed(model)
    q, v, tau = configuration(model, q), velocity(model, v), velocity(model, tau)
    if not usual((model.floats, q, v, tau)):
        return unusual()
    places = integers_or_zeros(integers, True, SIZES)
    p_y, p_w, nu, rows, parts = places[0], places[1], places[2], places[3], places[4]
    n, m, nq, x = model.ints[NV], model.ints[N_ROWS], model.ints[NQ], p_y + p_w
    found = new_arrays(((x, x), (x, nu), (rows, x), (rows, nu), (x,), (n, p_y), (n, p_w), (n,), (nq,), (n,), (n,),
                        (n,), (m,), (4,), (p_y,), (p_y, n)))
    if is_none(found):
        return found
    of_rows = 2 + n * x
    chosen, virtual = numbers(given, of_rows + n * nu), integers_in(places, SIZES, p_y)
    left, R_y, R_w = numbers(item(found, 14), p_y), vector_in(chosen, 2, n * p_y), vector_in(
        chosen, 2 + n * p_y, n * p_w)
    if is_left(virtual, LEFT) or is_left(virtual, TANGENT):
        R_y = R_w = numbers(item(found, 15), n * p_y)
    C, D, about = numbers(item(found, 2), rows * x), numbers(item(found, 3), rows * nu), numbers(item(found, 13), 4)
    rank = np.full(1, -1)
    call_rows(integer(address), 0, 1, (
        model, State(shaped(q, (1, nq)), shaped(v, (1, n)), shaped(tau, (1, n)), shaped(no_numbers(0), (1, 0))),
        Coordinates(shaped(R_y, (1, p_y, n)), virtual, shaped(R_w, (1, p_w, n)), integers_in(places, SIZES + p_y, p_w)),
        shaped(vector_in(chosen, of_rows, n * nu), (n, nu)),
        shaped(integers_in(places, SIZES + x, 4 * parts), (parts, 4)), Tolerances(chosen[0], chosen[1]), Found(
            shaped(numbers(item(found, 0), x * x), (1, x, x)), shaped(numbers(item(found, 1), x * nu), (1, x, nu)),
            shaped(C, (1, rows, x)), shaped(D, (1, rows, nu)), shaped(numbers(item(found, 4), x), (1, x)),
            shaped(numbers(item(found, 5), n * p_y), (1, n, p_y)),
            shaped(numbers(item(found, 6), n * p_w), (1, n, p_w)), shaped(numbers(item(found, 7), n), (1, n)),
            shaped(numbers(item(found, 11), n), (1, n)), shaped(numbers(item(found, 12), m), (1, m)), rank,
            vector_in(about, 1, 1), vector_in(about, 2, 1), vector_in(about, 3, 1))))
    about[0] = rank[0]
    if parts == 0:  # the coordinates themselves
        C[:], D[:] = 0.0, 0.0
        for k in range(rows):
            C[k * x + k] = 1.0
    for s in range(p_y if is_left(virtual, LEFT) else 0):
        for j in range(n):
            if R_y[n * s + j] == 1.0:
                left[s] = j
    keep(q, numbers(item(found, 8), nq))
    keep(v, numbers(item(found, 9), n))
    keep(tau, numbers(item(found, 10), n))
    return found


def linearize_one_state(robot, q, v, tau, independent, outputs, speeds, closure_tolerance, rank_tolerance):
    """The `LocalStateSpace` of one usual state, else None."""
    choice = "one state", independent, outputs, speeds, closure_tolerance, rank_tolerance
    try:
        one = robot.memo.get(choice, choice)
    except TypeError:  # lists, or no names
        choice = tuple(tuple(x) if type(x) is list else x for x in choice)
        try:
            one = robot.memo.get(choice, choice)
        except TypeError:
            return None
    if one is choice:
        if not all(x is None or isinstance(x, (str, tuple)) for x in choice[1:4]) or not is_configuration(robot, q):
            return None
        try:
            one = robot.memo[choice] = single(robot, q, *choice[1:4], choice[4:])
        except LiedynError:  # the general way says it, after all that is wrong with the state
            return None
    if one is None:
        return None
    found = linearize_direct(one.address, robot.packed, q, v, tau, one.integers, one.numbers)
    if robot.functions:
        raise_errors(robot.functions)
    if found is None:
        return None
    rank, condition, condition_y, closure = found[13].tolist()
    if rank < 0.0 or is_suspect(robot, condition if condition > condition_y else condition_y):
        return None  # the general way says what is wrong
    rank = int(rank)
    require_regular_one(robot, found[8], rank, rank_tolerance)
    names = one.names
    if one.left == LEFT:
        left = found[14].tobytes()
        names = one.known.get(left) or one.known.setdefault(left, names_left(robot, names, found[14]))
    values = *found[:8], *names, *found[8:13], rank, condition, closure
    if one.left == TANGENT:
        return LocalStateSpace.in_tangent_spaces(values, robot, rank_tolerance)
    return LocalStateSpace.of(values)


def is_configuration(robot, q):
    """Is q as a direct kernel takes it?"""
    return (type(q) is np.ndarray and q.shape == (robot.nq,) and q.dtype == np.float64
            and is_usable(q).all())


def names_left(robot, names, left):
    """Names of the states, the inputs and the outputs, where the elimination left these coordinates."""
    y = by_name(robot, [robot.velocity_names[int(k)] for k in left])
    return y.names + y.rates, names[1], names[2] or y.names
