"""Hybrid control: the motion of a constrained mechanism and the forces in its constraints (Aghili 2005, VII-C)."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.control.constrained.decomposition import Decomposition, decompose
from liedyn.control.constrained.gains import gain, Signal
from liedyn.control.constrained.integral import Integral
from liedyn.control.constrained.inverse_dynamics import rows_named
from liedyn.control.constrained.pidc import PIDC
from liedyn.linear.feedback import Feedback
from liedyn.machine.arguments import require_robot
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.constraints.cluster_weights import ranking
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.mechanics.elements.generalized import element_forces
from liedyn.motion.local_coordinates import at_time

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike


class HybridController(Feedback):
    """Controller of a motion and of constraint forces.

    The object is a function tau(t, q, v), which can be the input of `simulate`. The motion is that of the motion
    controller; forces that move nothing are added, so that the multipliers become

        lam = lam_d + G_F e + G_I (integral of e)        e = lam_d - measured lam

    Parameters
    ----------
    motion : PIDC
        Controller of the motion.
    forces : dict
        Wanted multipliers of ``M a + c = tau + tau_joint - G^T lam`` by name of a row, or of a constraint for all its
        rows: numbers, or functions of t that return numbers.
    G_F : float or array_like, shape (s,)
        Gain of the force error, one number or one for each row.
    G_I : float or array_like, shape (s,)
        Gain of its integral [1/s].
    plant : Robot, optional
        The mechanism whose constraint forces are measured, if it differs from the controller's model (for example in
        its masses): its multipliers depend on the forces that are being computed, and this loop is solved exactly.
        Default: the model itself; then e stays zero, and the gains have no effect.

    Attributes
    ----------
    rows : tuple of str
        The rows whose multipliers are controlled.

    Raises
    ------
    InputError
        A name is unknown, a wanted force has the wrong size, a row is named twice, gains are negative, or the plant has
        other coordinates or rows.

    Notes
    -----
    Aghili 2005, eq. 49, 50 and 52, which give ``(1 + G_F) e' + G_I e = 0``. Without redundancy this determines
    the multipliers; if rows are redundant, it determines the force they make together (Remark 5).

    The integral is taken over the times at which the controller was called; a call at an earlier time undoes later
    ones. Rows of constraints that are switched off (in ``motion.robot``) are ignored, and their integrals are constant.

    Examples
    --------
    >>> import liedyn as ld, numpy as np
    >>> robot = ld.load("slider_crank")
    >>> motion = ld.PIDC(robot, [np.pi / 3], G_P=25.0, G_D=10.0)
    >>> controller = ld.HybridController(motion, {"slider": 0.0}, G_F=1.0, G_I=20.0)
    >>> q0 = [np.pi / 6, 2 * np.pi - np.pi / 3]
    >>> controller(0.0, q0, [0.0, 0.0]).round(6).tolist()
    [38.577097, 1.950725]
    >>> tr = ld.simulate(robot, q0, [0.0, 0.0], 0.1, tau=controller)
    >>> bool(abs(tr["slider.gap"]).max() < 1e-9)
    True
    """

    rows: tuple[str, ...]
    motion: PIDC
    plant: Robot | None

    def __init__(self, motion: PIDC, forces: dict[str, Any], G_F: float | ArrayLike = 0.0, G_I: float | ArrayLike = 0.0,
                 plant: Robot | None = None) -> None:
        if not isinstance(motion, PIDC):
            raise InputError(f"motion must be a PIDC controller, got {shown(motion)}")
        if not isinstance(forces, dict):
            raise InputError(f"forces must be a dict by name of a constraint or row, got {shown(forces)}")
        robot = motion.robot
        found = {name: rows_named(robot, name) for name in forces}
        self._places = sum(found.values(), [])
        if not self._places:
            raise InputError("forces: no row is named whose multiplier is to be controlled")
        if len(set(self._places)) < len(self._places):
            raise InputError(f"forces name a row twice: {', '.join(forces)}")
        if plant is not None:
            require_robot(plant)
            if (plant.velocity_names, plant.row_names) != (robot.velocity_names, robot.row_names):
                raise InputError(f"plant {plant.name!r} must have the coordinates and the rows of {robot.name!r}")
        self.motion, self.plant = motion, plant
        self.rows = tuple(robot.row_names[k] for k in self._places)
        self._wanted = [Signal(f"forces[{name!r}]", forces[name], (len(rows),)) for name, rows in found.items()]
        self._G_F, self._G_I = (_force_gain(name, G, len(self.rows)) for name, G in (("G_F", G_F), ("G_I", G_I)))
        self._integral = Integral(len(self.rows))

    @property
    def _robot(self) -> Robot:
        return self.motion.robot

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike, lam: ArrayLike | None = None) -> Array:
        """Generalised forces of the actuators, as `PIDC`, from measured multipliers.

        Parameters
        ----------
        t, q, v
            As for `PIDC`.
        lam : array_like, shape (s,), optional
            Measured multipliers of `rows`, from a sensor. Default: those of the plant.

        Returns
        -------
        tau : ndarray, shape (nv,)
            Forces [N m, N].

        Raises
        ------
        InputError, SingularConfigurationError
            As for `PIDC`; or `lam` does not fit.
        ControllabilityError
            The actuators cannot give this motion, or not together with these constraint forces.
        """
        t, q, v = self._checked(t, q, v)
        motion = self.motion._motion(t, q, v)
        wanted = np.concatenate([at(t) for at in self._wanted])
        e = (self._error_of_plant(t, q, v, motion, wanted) if lam is None else
             wanted - Signal("lam", lam, (len(self.rows),))(t))
        e = np.where(np.isin(self._robot.row_owners, self._robot.active)[self._places], e, 0.0)
        return motion.with_multipliers(self._places, wanted + self._G_F @ e + self._G_I @ self._integral.add(t, e))

    def reset(self) -> None:
        """Reset the integrals of force and motion errors.

        Examples
        --------
        >>> import liedyn as ld
        >>> motion = ld.PIDC(ld.load("slider_crank"), [1.0], G_P=25.0, G_D=10.0)
        >>> ld.HybridController(motion, {"slider": 0.0}, G_F=1.0, G_I=20.0).reset()
        """
        self._integral.reset()
        self.motion.reset()

    def _error_of_plant(self, t, q, v, motion, wanted):
        """e = wanted - (offset + gain command), command = wanted + G_F e + G_I (known + weight e), solved for e."""
        T, Pi = motion.internal_forces(self._places)
        start = motion.multipliers(motion.tau)[self._places]
        if self.plant is None:
            offset, gain_ = start - Pi @ start, Pi
        else:
            resting, response = felt(at_time(self.plant, t), q, v, motion.f_ext)
            resting, response = resting[self._places], response[self._places]
            offset, gain_ = resting + response @ (motion.tau - T @ start), response @ T
        known, weight = self._integral.known(t)
        return np.linalg.solve(np.eye(len(wanted)) + gain_ @ (self._G_F + weight * self._G_I),
                               wanted - offset - gain_ @ (wanted + self._G_I @ known))


def felt(robot, q, v, f_ext):
    """lam = resting + response tau: the multipliers of a mechanism as a function of the forces on it."""
    M, h, G, _, _, gamma = terms_kernel(robot.packed, q, v, f_ext)
    raise_errors(robot.functions)
    h, one = h - element_forces(robot, q, v), np.eye(robot.nv)
    parts = Decomposition(*decompose(G, one, one, one, ranking(robot, RANK_TOLERANCE)))
    K = parts.K
    response = parts.multipliers @ (one - M @ K @ np.linalg.solve(K.T @ M @ K, K.T))
    return -response @ (h + M @ (gamma @ parts.multipliers)), response


def _force_gain(name, value, size):
    G = gain(name, value, size)
    if np.ndim(value) == 2 or (G < 0.0).any():
        raise InputError(f"{name} must be a number or one for each row, and not negative, got {shown(value)}")
    return G
