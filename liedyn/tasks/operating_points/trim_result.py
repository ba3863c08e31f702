"""The result of `trim`, and its error."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.errors import LiedynError
from liedyn.mechanics.elements.generalized import actuator_matrix
from liedyn.tasks.operating_points.equilibrium_problem import FAMILY
from liedyn.tasks.operating_points.newton import freedom

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, Objects


class TrimError(LiedynError):
    """No equilibrium was found near the guess; the message names the remaining balance, and the error has the last
    point.

    Attributes
    ----------
    nearest : Trim
        The last point of the search, with ``reached`` False; for a batch all states, including those that were reached.
        States whose loops do not close are NaN.

    Examples
    --------
    >>> import liedyn as ld
    >>> try:
    ...     ld.trim(ld.load("loader"), ld.load("loader").home, free=["lift_cylinder"])
    ... except ld.TrimError as error:
    ...     error.nearest.reached
    False
    """

    nearest: Trim

    def __init__(self, text: str, nearest: Trim) -> None:
        super().__init__(text)
        self.nearest = nearest


@dataclass(frozen=True, repr=False)
class Trim:
    """An equilibrium or steady motion.

    Attributes
    ----------
    q, v, u : ndarray, shapes (..., nq), (..., nv), (..., nu)
        The state and the inputs of the actuators.
    tau : ndarray, shape (..., nv)
        The generalised forces of these inputs.
    residual : dict
        Remaining acceleration, by name of an independent coordinate [rad/s^2, m/s^2], shape (...).
    drift : dict
        Rate of that acceleration along the motion [rad/s^3, m/s^3], shape (...): the motion is steady if this is zero
        too; else the accelerations vanish at this instant only.
    freedom : int or ndarray of int
        Number of directions of the unknowns in which nothing changes: equilibria form a set of that dimension, and the
        nearest one is returned.
    iterations : int or ndarray of int
    reached : bool or ndarray of bool
    parameters : dict
        Values of gravity and of spring parameters that were free or held, by name, shape (...); "parameter" if
        robots are a function of one.
    contacts : dict
        Mode of each one-sided constraint, by name, as in `ForwardDynamics`.
    contact_wrenches : dict
        For each one-sided constraint, by name, the wrench (moment, force) [N m, N], shape (..., 6), that it exerts on
        the body at its child side.
    robot : Robot or ndarray of Robot
        The robot with these parameters.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> ld.trim(loader, loader.home, free=loader.actuator_names).freedom
    0
    """

    q: Array
    v: Array
    u: Array
    tau: Array
    residual: dict[str, Any]
    drift: dict[str, Any]
    freedom: int
    iterations: int
    reached: bool
    parameters: dict[str, Any] = field(default_factory=dict)
    contacts: dict[str, Any] = field(default_factory=dict)
    contact_wrenches: dict[str, Any] = field(default_factory=dict)
    robot: Robot | Objects | None = None

    def __repr__(self) -> str:
        left = max((np.abs(x).max(initial=0.0) for x in self.residual.values()), default=0.0)
        how = "reached" if np.all(self.reached) else "not reached"
        return f"Trim({how}, residual {left:.3g}, freedom {self.freedom})"


def outcome(problem, here, count, reached, found=None):
    """The `Trim` of a point; `found` is the forward dynamics of the robot with its contacts."""
    robot, p, A, f0 = here.robot, len(here.y), here.A, here.ss.f0
    numbers = [name for name in (*here.free, *problem.held) if problem.is_parameter(name)]
    family = {} if problem.family is None else {FAMILY: here.free[FAMILY]}
    contacts = {} if found is None else found.contacts
    wrenches = {} if found is None else {
        name: F for name, F in found.constraint_wrenches.items() if name in contacts}
    watched = dict.fromkeys((name for name, how in contacts.items() if how != "off"), True)
    return Trim(here.q, here.v, here.u, actuator_matrix(robot, here.q) @ here.u,
                residual=dict(zip(here.speeds, f0[p:].tolist())), drift=dict(zip(here.speeds, (A[p:] @ f0).tolist())),
                freedom=freedom(here), iterations=count, reached=reached,
                parameters={name: problem.numbers.value(robot, name) for name in numbers} | family, contacts=contacts,
                contact_wrenches=wrenches, robot=robot.switched(watched) if watched else robot)


def stacked(results, lead):
    """One `Trim` of a batch; a result None gives NaN."""
    known = next(each for each in results if each is not None)

    def together(parts, like):
        if isinstance(like, dict):
            keys = dict.fromkeys(name for part in parts if part is not None for name in part)
            return {name: together([None if part is None else part.get(name) for part in parts],
                                   next(part[name] for part in parts if part is not None and name in part))
                    for name in keys}
        if isinstance(like, bool | int):
            return np.reshape([type(like)(0) if part is None else part for part in parts], lead)
        if isinstance(like, str):
            return np.reshape(["" if part is None else part for part in parts], lead)
        if isinstance(like, float | np.ndarray):
            return np.reshape([np.full(np.shape(like), np.nan) if part is None else part for part in parts],
                              lead + np.shape(like))
        every = np.empty(len(parts), dtype=object)
        every[:] = parts
        return every.reshape(lead)

    return Trim(*(together([None if each is None else getattr(each, key.name) for each in results],
                           getattr(known, key.name)) for key in fields(Trim)))
