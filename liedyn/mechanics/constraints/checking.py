"""Check of a constraint's derivatives by finite differences, on request; no result of the library uses differences."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import floats, positive, require_robot
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError
from liedyn.mechanics.constraints.loops import (
    all_derivatives, closure_error, constraint_bias, constraint_jacobian, velocity_error,
)
from liedyn.mechanics.tree.configuration import integrate
from liedyn.model.calls.boundary import require_usable, states

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike

STEP = 1e-3
"""Step of the sixth-order differences: their truncation error is step^6 = 1e-18, that of rounding 1e-13."""
STENCIL = ((1, 45 / 60), (2, -9 / 60), (3, 1 / 60))


@dataclass(frozen=True)
class ConstraintCheck:
    """Largest deviations of a constraint's functions from finite differences, relative to the largest value (at least
    1).

    Attributes
    ----------
    name : str
        The constraint.
    deviations : dict
        By the quantity compared: ``residual rate`` (against G v + drift, where there is a residual), ``bias``,
        ``velocity by q``, ``acceleration by q``, ``acceleration by v``, ``force by q``.
    tolerance : float
    """

    name: str
    deviations: dict[str, Any]
    tolerance: float

    @property
    def ok(self) -> bool:
        """True if all deviations are below the tolerance."""
        return max(self.deviations.values()) <= self.tolerance

    def __str__(self) -> str:
        lines = [f"constraint {self.name!r}: {'all derivatives agree' if self.ok else 'derivatives do NOT agree'}"]
        lines += [f"  {'ok   ' if x <= self.tolerance else 'WRONG'}  {what:20} {x:.1e}"
                  for what, x in self.deviations.items()]
        return "\n".join(lines)


def central_difference(function):
    """The derivative at 0 of a function of one number, by sixth-order differences."""
    return sum(c * (function(k * STEP) - function(-k * STEP)) for k, c in STENCIL) / STEP


def relative_deviation(found, expected):
    """Largest difference, divided by the largest value or 1."""
    return float(np.abs(found - expected).max(initial=0.0) / max(1.0, np.abs(expected).max(initial=0.0)))


def check_constraint(robot: Robot, name: str, q: ArrayLike, v: ArrayLike, a: ArrayLike | None = None,
                     lam: ArrayLike | None = None, tolerance: float = 1e-7) -> ConstraintCheck:
    """Compare the rows, bias and derivatives of a constraint with differences of high order, at one state.

    Meant for custom rows, whose wrong derivatives are not detected elsewhere; works for every kind. A cut joint must be
    closed at the state: its residual is a logarithm, and the rate of that is the row's velocity only there.

    Parameters
    ----------
    robot : Robot
        At the time of ``robot.at(t)``, if constraints move.
    name : str
        The constraint; it must be switched on.
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)], preferably a general one without symmetries.
    v : array_like, shape (nv,)
        Velocity [rad/s, m/s].
    a : array_like, shape (nv,), optional
        Acceleration; by default random numbers.
    lam : array_like, shape (m,), optional
        Multipliers of all rows; by default random numbers.
    tolerance : float
        Largest relative deviation accepted: rounding in sixth-order differences leaves 1e-10 or so.

    Returns
    -------
    ConstraintCheck
        ``ok``, and the ``deviations`` one by one; ``print`` shows them.

    Raises
    ------
    InputError
        An unknown constraint, one that is switched off, a shape that does not fit, or an entry that is not finite.

    Examples
    --------
    >>> import liedyn as ld
    >>> five_bar = ld.load("five_bar")
    >>> v = ld.complete_velocity(five_bar, five_bar.home, {"q1": 0.3, "q2": -0.4})
    >>> ld.constraints.check_constraint(five_bar, "pin", five_bar.home, v).ok
    True
    """
    require_robot(robot)
    robot.constraint_index(name)
    tolerance = positive("tolerance", tolerance)
    if name not in robot.active:
        raise InputError(f"constraint {name!r} is switched off: there is nothing to check")
    rng = np.random.default_rng(0)
    a = rng.normal(size=robot.nv) if a is None else a
    lead, q, v, a = states(robot, q=q, v=v, a=a)
    if lead:
        raise InputError(f"check_constraint takes one state, got leading axes {lead}")
    q, v, a = q[0], v[0], a[0]
    rows = np.array(robot.row_owners) == name
    lam = rng.normal(size=len(rows)) if lam is None else floats("lam", lam)
    if lam.shape != rows.shape:
        raise InputError(f"lam must have shape {rows.shape}, got {lam.shape}")
    require_usable("lam", lam)
    lam = np.where(rows, lam, 0.0)
    psi_q, phi_q, phi_v, force_q = all_derivatives(robot.packed, q, v, a, lam)
    raise_errors(robot.functions)

    def moved(s):
        return robot.at(robot.t + s), integrate(robot, q, s * v)

    def acceleration(q, v):
        return (constraint_jacobian(robot, q) @ a - constraint_bias(robot, q, v))[rows]

    def by_q(function):
        along = [central_difference(lambda s, e=e: function(integrate(robot, q, s * e))) for e in np.eye(robot.nv)]
        return np.stack(along, axis=-1)

    deviations = {}
    residual = rows & robot.holonomic
    if residual.any():
        rate = central_difference(lambda s: closure_error(*moved(s))[residual])
        deviations["residual rate"] = relative_deviation(rate, velocity_error(robot, q, v)[residual])
    deviations["bias"] = relative_deviation(
        central_difference(lambda s: velocity_error(*moved(s), v)[rows]), -constraint_bias(robot, q, v)[rows])
    deviations["velocity by q"] = relative_deviation(by_q(lambda q: velocity_error(robot, q, v)[rows]), psi_q[rows])
    deviations["acceleration by q"] = relative_deviation(by_q(lambda q: acceleration(q, v)), phi_q[rows])
    by_v = np.stack([central_difference(lambda s, e=e: acceleration(q, v + s * e)) for e in np.eye(robot.nv)], -1)
    deviations["acceleration by v"] = relative_deviation(by_v, phi_v[rows])
    deviations["force by q"] = relative_deviation(by_q(lambda q: constraint_jacobian(robot, q).T @ lam), force_q)
    return ConstraintCheck(name, deviations, tolerance)
