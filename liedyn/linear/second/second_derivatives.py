"""Second derivatives of linear models, from Python: whole tensors, or Hessians of weighted sums."""
# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from liedyn.linear.second.second_states import SumWeights, second_states
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError, listed
from liedyn.mechanics.dynamics.state import State
from liedyn.model.calls.boundary import as_floats
from liedyn.model.packed import N_LINKS
from liedyn.model.remembered import LazyResult

if TYPE_CHECKING:
    from liedyn.typing import Array

PARTS = "f", "a"
SHARED = 200
"""Links times states times weighted sums above which threads are used."""


@dataclass(frozen=True)
class SecondDerivatives(LazyResult):
    """Second derivatives of a mechanism's motion by the states x = (y, w) and the inputs u of a `LocalStateSpace`.

    The columns j and k are those of A, then those of B. Whole tensors are ``[i, j, k]``, those with weights are the
    Hessians ``[j, k]`` of the weighted sums. All are symmetric in j and k, and zero where both are inputs. What was not
    asked for with weights is computed when it is first read.

    Attributes
    ----------
    f : ndarray, shape (..., x, x + nu, x + nu), with weights (..., x + nu, x + nu)
        Of the rates of the state, ydot and wdot.
    a : ndarray, shape (..., nv, x + nu, x + nu), with weights (..., x + nu, x + nu)
        Of all accelerations.
    """

    f: Array
    a: Array

    def at(self, lead, chosen):
        """Those of the models with the numbers `chosen` of a batch with leading axes `lead`."""
        return SecondDerivatives.of({"_later": (_at, self, lead, chosen)})


def _at(name, found, whole, lead, chosen):
    value = getattr(whole, name)
    return {name: value.reshape(-1, *value.shape[len(lead):])[chosen]}


class Linearized(NamedTuple):
    """What `linearize` knows of rows of states, for their second derivatives.

    lead: leading axes; sizes: x, nv and m; state, coordinates, actuators and tolerance: arguments of `second_states`.
    """

    robot: object
    lead: tuple
    sizes: dict
    state: State
    coordinates: object
    actuators: np.ndarray
    tolerance: float


def weights_for(second, lead, sizes):
    """The weights of each part (states, size) that the argument `second` of `linearize` gives; {} if it is True.

    Raises InputError if they do not fit.
    """
    if second is True:
        return {}
    given = second if isinstance(second, Mapping) else {"f": second}
    unknown = [name for name in given if name not in PARTS]
    if unknown:
        raise InputError(f"second has weights of {listed(unknown)}: there are weights of {listed(PARTS)}")
    found = {}
    for name, weights in given.items():
        weights = as_floats(f"second weights of {name}", weights, sizes[name])
        try:
            found[name] = np.broadcast_to(weights, (*lead, sizes[name])).reshape(-1, 1, sizes[name])
        except ValueError as error:
            raise InputError(f"second has weights of shape {weights.shape} for states of shape {lead}") from error
    return found


def second_derivatives(linearized, second):
    """The `SecondDerivatives` of linearized states; those that `second` gives weights for are computed at once."""
    weights = weights_for(second, linearized.lead, linearized.sizes)
    _require_known(linearized.robot)
    found = SecondDerivatives.of({"_later": (_read, linearized, weights)})
    for name in weights or ("f",):
        getattr(found, name)
    return found


def _require_known(robot):
    """Raises InputError for constraints whose second derivatives are not known."""
    for each in robot.model.constraints:
        if each.kind == "custom" and each.name in robot.active:
            raise InputError(f"constraint {each.name!r} is a user's function with first derivatives only: its second "
                             "derivatives are not known")


def _is_still(linearized):
    """True if ydot = w at all states, whose second derivatives are zero."""
    R_y, virtual_y, R_w, virtual_w = linearized.coordinates
    robot = linearized.robot
    same = np.array_equal(virtual_y, virtual_w) and np.array_equal(R_y, R_w)
    holonomic = bool(robot.holonomic[robot.active_rows].all())
    return same and holonomic and robot.nq == robot.nv and not (virtual_y >= 0).any()


def _read(name, found, linearized, weights):
    """One part, computed."""
    size, states = linearized.sizes[name], len(linearized.state.q)
    p_y, first = len(linearized.coordinates.virtual_y), 0
    given = weights.get(name)
    if given is None:
        first = p_y if name == "f" and _is_still(linearized) else 0
        given = np.eye(size)[None, first:]
    sums = given.shape[1]
    of = {part: np.zeros((len(given), sums, width)) for part, width in linearized.sizes.items()}
    of[name] = given
    c = linearized.sizes["f"] + linearized.actuators.shape[1]
    H = np.zeros((states, sums, c, c))
    all_weights = SumWeights(*(np.ascontiguousarray(x) for x in (
        of["f"][..., :p_y], of["f"][..., p_y:], of["a"], np.zeros((len(given), sums, 0)))))
    robot = linearized.robot
    second_states.on(states, states * sums * robot.packed.ints.item(N_LINKS) >= SHARED, robot.packed, linearized.state,
                     linearized.coordinates, linearized.actuators, all_weights, linearized.tolerance, H)
    raise_errors(robot.functions)
    if first:
        H = np.concatenate([np.zeros((states, first, c, c)), H], axis=1)
    shape = (*linearized.lead, c, c) if name in weights else (*linearized.lead, size, c, c)
    return {name: H.reshape(shape)}
