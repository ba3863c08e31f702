"""Second derivatives of linear models, from Python: whole tensors, or Hessians of weighted sums."""
# mypy: ignore-errors

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from liedyn.linear.linearize_states import Tolerances
from liedyn.linear.second.second_result import PARTS, SecondDerivatives
from liedyn.linear.second.second_states import second_states
from liedyn.linear.second.weighted_sums import Hessians, SecondRequest, SumWeights
from liedyn.machine.by_name import by_name
from liedyn.machine.compiled.cpu_targets import WIDTH
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError, SingularConfigurationError, listed, of_the_batch
from liedyn.mechanics.dynamics.forward_states import FEW
from liedyn.mechanics.dynamics.state import State
from liedyn.model.calls.boundary import as_floats, require_usable
from liedyn.model.packed import N_LINKS

_REGISTERS = "liedyn.linear.second.second_in_lanes:second_registers"
SHARED = 200
"""Links times states times weighted sums above which threads are used."""


class Linearized(NamedTuple):
    """What `linearize` knows of rows of states, for their second derivatives.

    lead: leading axes; sizes: x, nv and m; state, coordinates, actuators and tolerances: arguments of `second_states`;
    loads: the `ElementLoads` of a robot with force elements, whose inputs come before all generalised forces.
    """

    robot: object
    lead: tuple
    sizes: dict
    state: State
    coordinates: object
    actuators: np.ndarray
    tolerances: Tolerances
    loads: object = None


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
        require_usable(f"second weights of {name}", weights)
        try:
            found[name] = np.broadcast_to(weights, (*lead, sizes[name])).reshape(math.prod(lead), 1, sizes[name]).copy()
        except ValueError as error:
            raise InputError(f"second has weights of shape {weights.shape} for states of shape {lead}") from error
    return found


def second_derivatives(linearized, second):
    """The `SecondDerivatives` of linearized states; those that `second` gives weights for are computed at once."""
    weights = weights_for(second, linearized.lead, linearized.sizes)
    require_known(linearized.robot, linearized.loads is not None)
    found = SecondDerivatives.of({"_later": (read_part, linearized, weights)})
    for name in ("f",) if second is True else weights:
        getattr(found, name)
    return found


def require_known(robot, elements=False):
    """Raises InputError for users' functions as constraints and, with `elements`, as laws of force elements."""
    for each in robot.model.elements if elements else ():
        if each.law == "function":
            raise InputError(f"force element {each.name!r} has a law that is a user's function with first slopes only: "
                             "its second derivatives are not known")
    for each in robot.model.constraints:
        if each.kind == "custom" and each.name in robot.active:
            raise InputError(f"constraint {each.name!r} is a user's function with first derivatives only: its second "
                             "derivatives are not known")


def _require_fixed(robot):
    """Raises InputError for multipliers of a robot some of whose frames are moved by functions of time."""
    moved = [each.name for each in (*robot.model.loops, *robot.model.constraints)
             if each.target is not None and each.name in robot.active]
    if moved:
        raise InputError(f"second derivatives of multipliers are not known while functions of time move {listed(moved)}"
                         ": those of the rates and accelerations are")


def is_still(linearized):
    """True if ydot = w at all states, whose second derivatives are zero."""
    R_y, virtual_y, R_w, virtual_w = linearized.coordinates
    robot = linearized.robot
    same = np.array_equal(virtual_y, virtual_w) and np.array_equal(R_y, R_w)
    holonomic = bool(robot.holonomic[robot.active_rows].all())
    return same and holonomic and robot.nq == robot.nv and not (virtual_y >= 0).any()


def read_part(name, found, linearized, weights):
    """One part, computed."""
    size, first, robot = linearized.sizes[name], 0, linearized.robot
    given = weights.get(name)
    if given is None:
        first = len(linearized.coordinates.virtual_y) if name == "f" and is_still(linearized) else 0
        given = np.eye(size)[None, first:]
    if name == "lam":
        _require_fixed(robot)
    H = hessians(linearized, name, given, first)
    return {name: H.reshape(*linearized.lead, *H.shape[1 + (name in weights):])}


def hessians(linearized, name, given, first=0):
    """Hessians (states, first + sums, x + nu, x + nu) of sums of rates "f", "a", "lam" or displacements "q", with
    weights (states, sums, size) or (1, sums, size), after `first` ones that are zero."""
    robot, states, (p_y, sums) = linearized.robot, len(linearized.state.q), (
        len(linearized.coordinates.virtual_y), given.shape[1])
    if linearized.loads is not None:
        mu = given @ linearized.loads.by_tau(name)
        given = np.broadcast_to(given, (states, *given.shape[1:]))
    of = {part: np.zeros((len(given), sums, 0)) for part in ("a", "lam", "q", "v")}
    of["f"] = np.zeros((len(given), sums, linearized.sizes["f"]))
    of[name] = given
    if linearized.loads is not None:
        own, of["v"] = linearized.loads.weights(mu)
        of["q"] = own + of["q"] if name == "q" else own
    c = linearized.sizes["f"] + linearized.actuators.shape[1]
    H = np.empty((states, sums + (first if linearized.loads is None else 0), c, c))
    weights = SumWeights(*(x.copy() for x in (
        of["f"][..., :p_y], of["f"][..., p_y:], of["a"], of["lam"], of["q"], of["v"])))
    done = np.zeros(states, np.int64)
    many = states > WIDTH and states * sums * robot.packed.ints.item(N_LINKS) >= SHARED
    request = SecondRequest(linearized.coordinates, linearized.actuators, linearized.tolerances)
    given = robot.packed, linearized.state, request, weights, Hessians(H, done)
    if states >= FEW and robot.row_names:
        by_name(_REGISTERS).on(states, many, *given)
    if not done.all():
        second_states.on(states, many, *given)
    raise_errors(robot.functions)
    if not done.all():
        with of_the_batch(linearized.lead, int(done.argmin())):
            raise SingularConfigurationError(
                "second derivatives are not defined here: too close to a singular state", np.empty(0))
    if linearized.loads is None:
        return H
    H = linearized.loads.closed(H, mu)
    return np.concatenate([np.zeros((states, first, *H.shape[2:])), H], axis=1) if first else H
