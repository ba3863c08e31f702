"""Constrained accelerations of one state called from Python, for a choice of coordinates that is made once.

As for linearizations (`liedyn.linear.linearize_one_state`), a direct kernel (`liedyn.model.calls.direct`) calls the
kernel of `nullspace_states` at its address.
"""
from dataclasses import dataclass

import numpy as np

from liedyn.machine.arguments import non_negative
from liedyn.machine.compiled.jit import address_of
from liedyn.machine.compiled.objects import (
    integer, integers_or_zeros, is_none, item, new_arrays, no_numbers, numbers, shaped,
)
from liedyn.machine.errors import LiedynError
from liedyn.machine.linalg.dense import largest_size
from liedyn.machine.simd.lanes import integers_in, vector_in
from liedyn.mechanics.constraints.independent import by_name
from liedyn.mechanics.dynamics.forward_states import EITHER, GIVEN, PIVOTED, Choice, Found, nullspace_states
from liedyn.mechanics.dynamics.state import State
from liedyn.model.calls.batches import call_rows
from liedyn.model.calls.direct import configuration, direct, general_path, packed, usual, velocity
from liedyn.model.packed import NQ, NV, N_ROWS


@dataclass(frozen=True)
class Single:
    """A choice of coordinates as arguments of the direct kernel.

    Attributes
    ----------
    names : tuple of str or None
        Names of the coordinates, unless pivoting chooses others; None for the tangent space.
    address : int
        Address of the kernel of `nullspace_states`.
    integers : ndarray of int64
        Number of coordinates; GIVEN, PIVOTED or EITHER; then `virtual`.
    numbers : ndarray
        Tolerance of the rank; then R.
    """

    names: tuple
    address: int
    integers: np.ndarray
    numbers: np.ndarray


def way_of(robot, independent):
    """How the coordinates are chosen, their names if given, and whether they are a tangent space."""
    names = robot.independent if independent is None else independent
    if not names and independent is None or isinstance(names, str) and names in ("auto", "tangent"):
        return PIVOTED, (), names == "tangent"
    return EITHER if independent is None else GIVEN, names, False


def single(robot, independent, tolerance):
    """The `Single` for these arguments of `forward_dynamics`."""
    tolerance, (way, names, tangent) = non_negative("rank_tolerance", tolerance), way_of(robot, independent)
    chosen = by_name(robot, names)
    row, last = np.empty((1, robot.nv)), np.empty(1 + len(robot.row_names) + robot.nv)
    address = address_of(
        nullspace_states.kernel, 0, 1, robot.packed, State(robot.neutral[None].copy(), row, row, np.empty((1, 0))),
        Choice(chosen.rows, chosen.virtual, way, tolerance), Found(row, row, row, np.zeros(1, np.int64), np.empty(1)),
        last)
    integers = np.array([len(chosen.names), way, *chosen.virtual], dtype=np.int64)
    return Single(None if tangent else chosen.names, address, integers, np.array([tolerance, *chosen.rows.ravel()]))


@direct
def nullspace_direct(address, model, q, v, tau, integers, given):
    """New arrays a, lam, G^T lam, (rank, condition, `last` of `nullspace_states`), and q."""
    model = packed(model)
    q, v, tau = configuration(model, q), velocity(model, v), velocity(model, tau)
    if not usual((model.floats, q, v, tau)):
        return general_path()
    n, m, nq, places = model.ints[NV], model.ints[N_ROWS], model.ints[NQ], integers_or_zeros(integers, True, 2)
    p, found = places[0], new_arrays(((n,), (m,), (n,), (3 + m + n,), (1, nq)))
    if is_none(found):
        return found
    chosen, told, q_kept = numbers(given, 1 + p * n), numbers(item(found, 3), 3 + m + n), numbers(item(found, 4), nq)
    rank, last = np.full(1, -1), vector_in(told, 2, 1 + m + n)
    told[:] = 0.0
    call_rows(integer(address), 0, 1, (
        model, State(shaped(q, (1, nq)), shaped(v, (1, n)), shaped(tau, (1, n)), shaped(no_numbers(0), (1, 0))),
        Choice(shaped(vector_in(chosen, 1, p * n), (p, n)), integers_in(places, 2, p), places[1],
               chosen[0]), Found(
            shaped(numbers(item(found, 0), n), (1, n)), shaped(numbers(item(found, 1), m), (1, m)),
            shaped(numbers(item(found, 2), n), (1, n)), rank, vector_in(told, 1, 1)), last))
    complete = largest_size(numbers(item(found, 0), n)) < np.inf and largest_size(numbers(item(found, 2), n)) < np.inf
    told[0] = rank[0] if complete else -1.0  # NaN times zero is NaN: G^T lam detects every row that is not defined
    for k in range(nq):
        q_kept[k] = q[k]
    return found


def nullspace_one_state(robot, q, v, tau, independent, tolerance):
    """The result of `nullspace_direct` for one usual state, and the names of the given coordinates; else None."""
    choice = ("one acceleration", tuple(independent) if type(independent) is list else independent, tolerance)
    try:
        one = robot._memo.get(choice, choice)
    except TypeError:  # `independent` is no sequence of names
        return None
    if one is choice:
        plain = independent is None or isinstance(choice[1], (str, tuple))
        try:
            one = robot._memo[choice] = single(robot, choice[1], tolerance) if plain else None
        except LiedynError:  # the general way raises it, or needs no address
            return None
    if one is None:
        return None
    found = nullspace_direct(one.address, robot.packed, q, v, tau, one.integers, one.numbers)
    return None if found is None else (found, one.names)
