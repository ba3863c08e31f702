"""Second derivatives of one state, called from Python with little overhead.

As for the linearization itself (`liedyn.linear.linearize_one_state`), types and choices are found once, and the kernel
of `liedyn.linear.second.second_states` is called at its address by a direct kernel.
"""
# mypy: ignore-errors
import numpy as np

from liedyn.linear.linearize_one_state import SIZES as SINGLE_SIZES
from liedyn.linear.linearize_states import Tolerances
from liedyn.linear.second.second_derivatives import Linearized, is_still, read_part, require_known
from liedyn.linear.second.second_result import SecondDerivatives
from liedyn.linear.second.second_states import second_states
from liedyn.linear.second.weighted_sums import Hessians, SecondRequest, SumWeights
from liedyn.linear.space import Coordinates
from liedyn.machine.compiled.jit import address_of
from liedyn.machine.compiled.objects import (
    integer, integers_or_zeros, is_none, item, new_arrays, no_numbers, numbers, shaped,
)
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import LiedynError
from liedyn.machine.simd.lanes import integers_in, vector_in
from liedyn.mechanics.dynamics.state import State
from liedyn.model.calls.batches import call_rows
from liedyn.model.calls.boundary import is_usable
from liedyn.model.calls.direct import configuration, direct, general_path, packed, usual, velocity
from liedyn.model.packed import NQ, NV

SIZES = 5
"""Number of integers before those of the coordinates: numbers of y, w, u, rows of the result, first row computed."""


@direct
def second_direct(address, model, q, v, tau, integers, given, weights):
    """New arrays: H (rows, x + nu, x + nu), zero before the first row that is computed, and one that begins with 1 if
    it was.

    `given` has the numbers of a `liedyn.linear.linearize_one_state.Single`, `weights` those of y, then those of w.
    """
    model = packed(model)
    q, v, tau = configuration(model, q), velocity(model, v), velocity(model, tau)
    if not usual((model.floats, q, v, tau)):
        return general_path()
    places = integers_or_zeros(integers, True, SIZES)
    p_y, p_w, nu, rows, first = places[0], places[1], places[2], places[3], places[4]
    n, nq, x, sums = model.ints[NV], model.ints[NQ], p_y + p_w, rows - first
    c = x + nu
    found = new_arrays(((rows, c, c), (1 + n * x,)))
    if is_none(found):
        return found
    H, own, chosen = numbers(item(found, 0), rows * c * c), numbers(item(found, 1), 1 + n * x), numbers(
        given, 2 + n * (x + nu))
    weights = numbers(weights, sums * x)
    for k in range(first * c * c):
        H[k] = 0.0
    for k in range(n * x):  # rows that the kernel may choose
        own[1 + k] = chosen[2 + k]
    done, none = integers_in(own, 0, 1), shaped(no_numbers(0), (1, sums, 0))
    done[0] = 0
    call_rows(integer(address), 0, 1, (
        model, State(shaped(q, (1, nq)), shaped(v, (1, n)), shaped(tau, (1, n)), shaped(no_numbers(0), (1, 0))),
        SecondRequest(
            Coordinates(shaped(vector_in(own, 1, n * p_y), (1, p_y, n)), integers_in(places, SIZES, p_y),
                        shaped(vector_in(own, 1 + n * p_y, n * p_w), (1, p_w, n)),
                        integers_in(places, SIZES + p_y, p_w)),
            shaped(vector_in(chosen, 2 + n * x, n * nu), (n, nu)), Tolerances(chosen[0], chosen[1])),
        SumWeights(shaped(vector_in(weights, 0, sums * p_y), (1, sums, p_y)),
                   shaped(vector_in(weights, sums * p_y, sums * p_w), (1, sums, p_w)), none, none, none, none),
        Hessians(shaped(vector_in(H, first * c * c, sums * c * c), (1, sums, c, c)), done)))
    own[0] = float(done[0])
    return found


def linearized(one, robot, rest):
    """The `Linearized` of a state that `one`, a `Single`, has linearized with the results `rest`."""
    (p_y, p_w, nu), n, places = one.integers[:3].tolist(), robot.nv, {each[0]: slice(*each[1:3]) for each in one.places}
    numbers, virtual = one.numbers, one.integers[SINGLE_SIZES:SINGLE_SIZES + p_y + p_w]
    ends = 2 + np.cumsum([n * p_y, n * p_w])
    q, v, tau = (rest[None, places[part]] for part in ("q", "v", "tau"))
    coordinates = Coordinates(numbers[2:ends[0]].reshape(1, p_y, n).copy(), virtual[:p_y].copy(),
                              numbers[ends[0]:ends[1]].reshape(1, p_w, n).copy(), virtual[p_y:].copy())
    sizes = {"f": p_y + p_w, "a": n, "lam": len(robot.row_names), "q": n}
    return Linearized(robot, (), sizes, State(q.copy(), v.copy(), tau.copy(), np.empty((1, 0))), coordinates,
                      numbers[ends[1]:].reshape(n, nu).copy(), Tolerances(*numbers[:2].tolist()))


def prepared(one, robot, rest):
    """Address of the kernel, size x, and integers and weights for all rates, by way of an example."""
    require_known(robot)
    example = linearized(one, robot, rest)
    coordinates, x, nu = example.coordinates, example.sizes["f"], example.actuators.shape[1]
    p_y = len(coordinates.virtual_y)
    first, empty = p_y if is_still(example) else 0, np.empty((1, 1, 0))
    address = address_of(
        second_states.kernel, 0, 1, robot.packed, example.state,
        SecondRequest(coordinates, example.actuators, example.tolerances),
        SumWeights(np.empty((1, 1, p_y)), np.empty((1, 1, x - p_y)), empty, empty, empty, empty),
        Hessians(np.empty((1, 1, x + nu, x + nu)), np.zeros(1, np.int64)))
    virtual, sizes = np.concatenate([coordinates.virtual_y, coordinates.virtual_w]), (p_y, x - p_y, nu)
    every = np.eye(x)[first:]
    return (address, x, np.array([*sizes, 1, 0, *virtual], np.int64), np.array([*sizes, x, first, *virtual], np.int64),
            np.concatenate([every[:, :p_y].ravel(), every[:, p_y:].ravel()]))


def second_of_one_state(space, robot, q, v, tau, second):
    """The `SecondDerivatives` of a state that `linearize_one_state` has linearized; None if the general way has to
    find them."""
    _, one, rest, _ = vars(space)["_later"]
    if "second" not in one.known:
        try:
            one.known["second"] = prepared(one, robot, rest)
        except LiedynError:  # the general way raises it, or does without a kernel that is not compiled yet
            return None
    address, x, of_one, of_all, weights = one.known["second"]
    if second is not True:
        if type(second) is not np.ndarray or second.dtype != np.float64 or second.shape != (x,) or not is_usable(
                second).all():
            return None
        of_all, weights = of_one, np.ascontiguousarray(second)
    found = second_direct(address, robot.packed, q, v, tau, of_all, one.numbers, weights)
    if robot.functions:
        raise_errors(robot.functions)
    if found is None or found[1].item(0) != 1.0:
        return None
    known = {} if second is True else {"f": weights[None, None].copy()}
    return SecondDerivatives.of({"_later": (_read_later, one, rest, robot, known),
                                 "f": found[0] if second is True else found[0][0]})


def _read_later(name, found, one, rest, robot, known):
    return read_part(name, found, linearized(one, robot, rest), known)
