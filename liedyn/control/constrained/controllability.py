"""Which motions of a mechanism its actuators can drive (Aghili 2005, VII-D)."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.control.constrained.decomposition import Decomposition, decompose, metric_root
from liedyn.machine.arguments import names, non_negative
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.machine.linalg.separated import separated
from liedyn.machine.texts import printable
from liedyn.mechanics.constraints.cluster_weights import ranking
from liedyn.mechanics.constraints.loops import constraint_jacobian
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.elements.generalized import actuator_matrix
from liedyn.model.calls.boundary import states

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike

SHOWN = 1e-6
"""Components of a motion below this are rounding, and are not listed."""


@dataclass(frozen=True)
class Controllability:
    """The motions that the actuators of a mechanism drive at one configuration; true if these are all motions.

    Attributes
    ----------
    freedom : int
        Degrees of freedom: number of independent motions that the constraints allow.
    driven : int
        Number of these that the actuators drive.
    cosines : ndarray, shape (freedom,)
        Cosines of the principal angles between motions and actuator forces, largest first, in the metric: one if an
        actuator acts along the motion, zero if none does work on it. A small one needs forces 1 / cosine times larger.
    undriven : tuple of dict
        Motions that no actuator drives: velocities by coordinate name, the largest one 1.
    internal : int
        Number of independent actuator forces that load the constraints without moving anything: these are available
        for hybrid control of constraint forces.
    actuators : tuple of str
        Names of the actuators, or of the coordinates that are driven.

    Examples
    --------
    >>> import liedyn as ld
    >>> machine = ld.load("parallel_five_bar")
    >>> print(ld.controllability(machine, machine.home))
    not controllable: mot1, mot2 drive 2 of 3 degrees of freedom; no actuator drives
      closedloop1_A 1, closedloop1_B 1
    """

    freedom: int
    driven: int
    cosines: Array
    undriven: tuple[dict[str, Any], ...]
    internal: int
    actuators: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.driven == self.freedom

    def __str__(self) -> str:
        by = f"{printable(', '.join(self.actuators)) or 'nothing'} drive{'s' * (len(self.actuators) < 2)}"
        if self:
            return f"controllable: {by} {self.freedom} of {self.freedom} degrees of freedom"
        motions = (", ".join(f"{printable(name)} {value:.6g}" for name, value in motion.items())
                   for motion in self.undriven)
        return "\n  ".join([f"not controllable: {by} {self.driven} of {self.freedom} degrees of freedom; "
                            "no actuator drives", *motions])


def controllability(robot: Robot, q: ArrayLike, active: Sequence[str] | None = None, metric: ArrayLike | None = None,
                    rank_tolerance: float = RANK_TOLERANCE) -> Controllability:
    """Whether the actuators of a mechanism drive every motion that its constraints allow.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)].
    active : sequence of str, optional
        Joints or velocity coordinates that are driven, all others being passive; default: by the robot's actuators, or
        all of them if it declares none.
    metric : array_like, shape (nv,) or (nv, nv), optional
        Metric tensor W of velocities, or its diagonal: scales `cosines` if units are mixed. Default: ones.
    rank_tolerance : float
        Singular values of G below this fraction of the largest one count as zero.

    Returns
    -------
    Controllability
        True or false, with the motions that no actuator drives.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a name is unknown, or the metric is not positive definite.

    Notes
    -----
    Aghili 2005, eq. 62. With N the space of motions that the constraints allow and B the actuator forces, the
    intersection of N and the complement of B must be zero: a motion in both is one on which no actuator does work.

    Examples
    --------
    >>> import liedyn as ld
    >>> slider_crank = ld.load("slider_crank")
    >>> bool(ld.controllability(slider_crank, slider_crank.home, active=("crank",)))
    True
    >>> singular = [1.5707963267948966, 3.141592653589793]
    >>> print(ld.controllability(slider_crank, singular, active=("crank",)))
    not controllable: crank drives 1 of 2 degrees of freedom; no actuator drives
      rod 1
    """
    rank_tolerance, (_, q) = non_negative("rank_tolerance", rank_tolerance), states(robot, q=q)
    if len(q) != 1:
        raise InputError(f"controllability takes one configuration, got {len(q)}")
    actuators, B = actuation(robot, active, q[0])
    G = constraint_jacobian(robot, q[0])
    found = decompose(G, B, *metric_root(metric, robot.nv), ranking(robot, rank_tolerance))
    return judged(robot, Decomposition(*found), actuators)


def actuation(robot, active, q):
    """Names of the actuators, and columns (nv, nu) that span their forces at a configuration.

    Raises InputError if a joint or coordinate is unknown, or the robot has none.
    """
    if not robot.nv:
        raise InputError(f"{robot.name!r} has no coordinates: there is nothing to be driven")
    if active is None:
        return robot.actuator_names, actuator_matrix(robot, q)
    driven = []
    for name in names("active", active):
        family = [k for k, each in enumerate(robot.velocity_names) if each == name or each.startswith(f"{name}.")]
        if not family:
            known = dict.fromkeys((*robot.velocity_names, *robot.joint_names))
            raise InputError(f"unknown active joint {shown(name)}, {suggestion(name, known)}")
        driven += family
    driven = list(dict.fromkeys(driven))
    return tuple(robot.velocity_names[k] for k in driven), np.ascontiguousarray(np.eye(robot.nv)[:, driven])


def is_constant(robot, active):
    """True if the columns of `actuation` are the same at all configurations."""
    return active is not None or robot.elements is None or not robot.elements.driven


def judged(robot, parts, actuators):
    """The `Controllability` from a `Decomposition`."""
    undriven = tuple({name: float(x) for name, x in zip(robot.velocity_names, motion) if abs(x) > SHOWN}
                     for motion in separated(parts.undriven.T))
    return Controllability(parts.K.shape[1], parts.driven, parts.cosines, undriven, parts.internal.shape[1], actuators)
