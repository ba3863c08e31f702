"""Virtual couplers: a spring and a damper between an input device, or a cursor, and a body."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import types

from liedyn.machine.arguments import flag, floats, non_negative, positive, require_robot
from liedyn.machine.arguments import ORTHOGONALITY
from liedyn.machine.compiled.jit import VECTOR, c_kernel
from liedyn.machine.compiled.struct_values import Kept, functions_of, kept
from liedyn.machine.errors import InputError, SingularConfigurationError, shown
from liedyn.machine.typed_decorators import once
from liedyn.mechanics.constraints.cluster_weights import null_space
from liedyn.mechanics.constraints.loops import constraint_jacobian
from liedyn.mechanics.tree.crba import crba
from liedyn.mechanics.tree.forward_kinematics import pose
from liedyn.mechanics.tree.jacobians import body_jacobian
from liedyn.model.calls.boundary import require_usable, states
from liedyn.model.packed import PackedModel
from liedyn.model.packed_records import MODEL
from liedyn.motion.simulation.coupler_force import (
    BODY, DAMPING, DEVICE, HOLDS, LARGEST, NUMBERS, PLACEMENT, STIFFNESS, TWIST, WRENCH, add_coupling, coupling_size,
)
from liedyn.motion.simulation.fast_arguments import state_and_forces

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike

TURNING, MOVING = "turning_stiffness", "stiffness"
RANK_TOLERANCE = 1e-8
"""Singular values of G below this fraction of the largest one count as zero."""


class Coupling(NamedTuple):
    """The data from which the force of one coupler is computed."""

    model: PackedModel
    q: VECTOR
    v: VECTOR
    numbers: VECTOR
    work: VECTOR
    tau: VECTOR


COUPLING = types.NamedTuple([MODEL, *[VECTOR] * 5], Coupling)
coupling_at = kept(COUPLING)


@c_kernel(_nrt=False)
def force_at(address):
    """The generalised forces of the coupler whose `Coupling` is stored at an address."""
    c = coupling_at(address)
    for j in range(c.tau.size):
        c.tau[j] = 0.0
    add_coupling(c.model, c.q, c.v, c.numbers, c.work, c.tau)
    return 0


@once
def _force_function():
    return functions_of(force_at, 1)[0]


class VirtualCoupler:
    """A spring and a damper between a device, or a cursor, and a point of a body (Colgate, Stanley and Brown 1995).

    `move` sets the pose of the device; `force`, or a `Stepper`, computes the force on the body. The device feels the
    opposite force. The force is meant to be computed at the beginning of each step and held constant during it.

    Parameters
    ----------
    robot : Robot
    body : str
        Name of the body or frame that is held by the coupler.
    placement : array_like, shape (3,) or (4, 4), or None
        Point [m], or pose in the body's frame, that is held; None for the body's origin.
    stiffness : float
        Stiffness of the spring [N/m], the same in all directions.
    damping : float
        Damping of the damper [N s/m].
    turning_stiffness, turning_damping : float
        Stiffness and damping of rotations [N m/rad, N m s/rad]; zero for a coupler that holds a point only.
    largest_force, largest_moment : float, optional
        Largest force and moment of the springs [N, N m]. The dampers are not limited, so that a body which is far away
        is slowed down as before.
    device_damping : float, optional
        Damping of a device that displays the force [N s/m], for the condition of passivity below.

    Attributes
    ----------
    robot : Robot
    body : str
    wrench : ndarray, shape (6,)
        Last moment and force on the body, at the point held and in world axes [N m, N].
    device : ndarray, shape (4, 4), or None
        Pose of the device; None while it does not hold the body.
    numbers : ndarray
        The coupler's data for compiled code (`liedyn.motion.simulation.coupler_force`).

    Raises
    ------
    InputError
        An unknown body, a placement that is no point or pose, or a negative number.

    Notes
    -----
    A spring k and a damper d whose force is constant over a step T are stable on a mass m just if k T / 2 < d < 2 m /
    T. The mass is the smallest effective mass of the body in the directions that the constraints allow: 1 / m is the
    largest eigenvalue of J M_c^-1 J^T. A device of damping b that displays the force is passive, whoever holds it, if
    ``b > k T / 2 + d`` (Colgate and Schenkel 1997). `check` checks both.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> coupler = ld.VirtualCoupler(robot, "link2", [1.5, 0.0, 0.0], stiffness=500.0, damping=60.0)
    >>> coupler.check(robot.home, 1e-3)
    >>> coupler.move([0.5, 1.5, 0.0])
    >>> coupler.force(robot.home, [0.0] * 4).shape
    (4,)
    """

    robot: Robot
    body: str
    numbers: Array

    def __init__(self, robot: Robot, body: str, placement: ArrayLike | None, stiffness: float, damping: float,
                 turning_stiffness: float = 0.0, turning_damping: float = 0.0, largest_force: float | None = None,
                 largest_moment: float | None = None, device_damping: float | None = None) -> None:
        require_robot(robot)
        self.robot, self.body = robot, body
        self.numbers = c = np.zeros(NUMBERS)
        c[BODY] = robot.body_index(body)
        place = np.eye(4) if placement is None else _placed("placement", placement, np.eye(4))
        c[PLACEMENT:PLACEMENT + 12] = _numbers(place)
        c[STIFFNESS:STIFFNESS + 2] = [non_negative(TURNING, turning_stiffness), non_negative(MOVING, stiffness)]
        c[DAMPING:DAMPING + 2] = [non_negative("turning_damping", turning_damping), non_negative("damping", damping)]
        c[LARGEST:LARGEST + 2] = [np.inf if x is None else non_negative(name, x) for name, x in (
            ("largest_moment", largest_moment), ("largest_force", largest_force))]
        self._passive = None if device_damping is None else non_negative("device_damping", device_damping)
        n = robot.nv
        self._room = Kept(Coupling(
            robot.packed, np.zeros(robot.nq), np.zeros(n), c, np.zeros(coupling_size(n)), np.zeros(n)))

    def __repr__(self) -> str:
        return f"VirtualCoupler({self.robot.name!r}, {self.body!r}, stiffness={self.numbers[STIFFNESS + 1]:g})"

    @classmethod
    def tuned(cls, robot: Robot, body: str, placement: ArrayLike, q: ArrayLike, frequency: float,
              damping_ratio: float = 1.0, turning: bool = False, **more: Any) -> VirtualCoupler:
        """A coupler with a given natural frequency, on the smallest effective mass of the body at a configuration.

        Parameters
        ----------
        robot, body, placement
            As for the class.
        q : array_like, shape (nq,)
            Configuration.
        frequency : float
            Natural frequency of the body on the spring [Hz].
        damping_ratio : float
            1 for the fastest return without overshoot, in the direction of the smallest effective mass.
        turning : bool
            True if the body is to be rotated as the device is.
        **more
            `largest_force`, `largest_moment`, `device_damping`.

        Returns
        -------
        VirtualCoupler

        Raises
        ------
        InputError
            An argument does not fit, or the body cannot move there.

        Examples
        --------
        >>> import liedyn as ld
        >>> robot = ld.load("five_bar")
        >>> ld.VirtualCoupler.tuned(robot, "link2", [1.5, 0.0, 0.0], robot.home, frequency=2.0)
        VirtualCoupler('five_bar', 'link2', stiffness=952.46)
        """
        turning = flag("turning", turning)
        frequency, damping_ratio = positive("frequency", frequency), positive("damping_ratio", damping_ratio)
        probe = cls(robot, body, placement, 0.0, 0.0)
        W = probe._mobility(states(robot, q=q)[1][0], robot)
        fastest = [float(np.linalg.eigvalsh(W[k:k + 3, k:k + 3])[-1]) for k in (0, 3)]
        if fastest[1] <= 0.0 and not (turning and fastest[0] > 0.0):
            raise InputError(f"a coupler on {body!r} of {robot.name!r} has nothing to move there")
        m = [1.0 / each if each > 0.0 else 0.0 for each in fastest]
        omega = 2.0 * np.pi * frequency
        turns = dict(turning_stiffness=m[0] * omega * omega, turning_damping=2.0 * damping_ratio * m[0] * omega)
        return cls(robot, body, placement, m[1] * omega * omega, 2.0 * damping_ratio * m[1] * omega,
                   **(turns if turning else {}), **more)

    @property
    def wrench(self) -> Array:
        return self.numbers[WRENCH:].copy()

    @property
    def device(self) -> Array | None:
        if self.numbers[HOLDS] == 0.0:
            return None
        return _matrix(self.numbers[DEVICE:DEVICE + 12])

    def move(self, pose: ArrayLike, twist: ArrayLike | None = None) -> None:
        """Set the pose of the device, to which the body is pulled.

        Parameters
        ----------
        pose : array_like, shape (3,) or (4, 4)
            Position [m] or pose in the world; a coupler that turns the body needs a pose.
        twist : array_like, shape (3,) or (6,), optional
            Velocity of the device in world axes: linear [m/s], or angular [rad/s] and linear. By default it is zero,
            and the damper slows the body down.

        Raises
        ------
        InputError
            The pose is no point or pose.

        Examples
        --------
        >>> import liedyn as ld
        >>> coupler = ld.VirtualCoupler(ld.load("panda"), "panda_hand", None, stiffness=100.0, damping=10.0)
        >>> coupler.move([0.4, 0.0, 0.5], twist=[0.1, 0.0, 0.0])
        >>> coupler.device[0, 3].item()
        0.4
        """
        c, new = self.numbers, np.zeros(18)
        turns = c[STIFFNESS] > 0.0 or c[DAMPING] > 0.0
        new[:12] = _numbers(_placed("pose", pose, None if turns else np.eye(4)))
        if twist is not None:
            twist = floats("twist", twist)
            if twist.shape not in ((3,), (6,)):
                raise InputError(f"twist must have shape (3,) or (6,), got {twist.shape}")
            require_usable("twist", twist)
            new[18 - len(twist):] = twist
        c[DEVICE:TWIST + 6] = new  # in one assignment, as a stepper may read it from another thread
        c[HOLDS] = 1.0

    def release(self) -> None:
        """Let the body go; the force becomes zero.

        Examples
        --------
        >>> import liedyn as ld
        >>> coupler = ld.VirtualCoupler(ld.load("panda"), "panda_hand", None, stiffness=100.0, damping=10.0)
        >>> coupler.release()
        >>> coupler.device is None
        True
        """
        self.numbers[HOLDS] = 0.0

    def force(self, q: ArrayLike, v: ArrayLike) -> Array:
        """The generalised forces of the coupler at a state.

        Parameters
        ----------
        q : array_like, shape (nq,)
            Configuration [rad, m; quaternions (x, y, z, w)].
        v : array_like, shape (nv,)
            Velocity [rad/s, m/s], body-fixed for spherical and free joints.

        Returns
        -------
        tau : ndarray, shape (nv,)
            [N m, N], zero while the device does not hold the body.

        Raises
        ------
        InputError
            A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

        Examples
        --------
        >>> import liedyn as ld
        >>> panda = ld.load("panda")
        >>> coupler = ld.VirtualCoupler(panda, "panda_hand", None, stiffness=100.0, damping=10.0)
        >>> coupler.move([0.4, 0.0, 0.5])
        >>> coupler.force(panda.home, [0.0] * 7).shape
        (7,)
        """
        q, v, _ = state_and_forces("a coupler", self.robot, q, v, self._room.values.tau)
        room = self._room.values
        room.q[:], room.v[:] = q, v
        _force_function()(self._room.address)
        return room.tau.copy()

    def check(self, q: ArrayLike, dt: float, robot: Robot | None = None) -> None:
        """Raise an error if the coupler would be unstable at a configuration, with the force constant over steps dt.

        Parameters
        ----------
        q : array_like, shape (nq,)
            Configuration.
        dt : float
            Step [s].
        robot : Robot, optional
            The robot with other switches or at another time.

        Raises
        ------
        InputError
            The stiffness is too large for the damping, the damping for the moving mass, or both for the device. The
            message gives the largest admissible value.
        SingularConfigurationError
            No inertia resists a motion that the constraints allow.

        Notes
        -----
        With rotations the conditions are sufficient; with translations alone they are exact for small motions, without
        the robot's own springs.

        Examples
        --------
        >>> import liedyn as ld
        >>> robot = ld.load("five_bar")
        >>> coupler = ld.VirtualCoupler(robot, "link2", None, stiffness=1e6, damping=60.0)
        >>> coupler.check(robot.home, 1e-3)
        Traceback (most recent call last):
            ...
        liedyn.machine.errors.InputError: coupler on 'link2': stiffness 1e+06 is above 2 damping / dt = 120000, dt =
        0.001 s
        """
        dt = positive("dt", dt)
        _, q = states(self.robot, q=q)
        if len(q) != 1:
            raise InputError(f"a coupler takes one configuration, got {len(q)}")
        c, what = self.numbers, f"coupler on {self.body!r}"
        for k, name in enumerate((TURNING, MOVING)):
            stiffness, damping = c[STIFFNESS + k], c[DAMPING + k]
            if stiffness > 0.0 and not damping > 0.5 * stiffness * dt:
                raise InputError(f"{what}: {name} {stiffness:g} is above 2 damping / dt = {2.0 * damping / dt:g}, dt = "
                                 f"{dt:g} s")
        B = np.repeat(np.sqrt(c[DAMPING:DAMPING + 2]), 3)
        W = self._mobility(q[0], self.robot if robot is None else robot)
        fastest = float(np.linalg.eigvalsh(B[:, None] * W * B)[-1])  # rate of the damper [1/s]
        if not fastest * dt < 2.0:
            factor = 2.0 / (fastest * dt)
            raise InputError(
                f"{what}: damping {c[DAMPING + 1]:g} is too large for the mass that it moves and dt = {dt:g} s: the "
                f"largest is {factor * c[DAMPING + 1]:g}, and of stiffness then {2.0 * factor * c[DAMPING + 1] / dt:g}"
                + (f" (turning: {factor * c[DAMPING]:g})" if c[DAMPING] > 0.0 else ""))
        if self._passive is not None and not self._passive > 0.5 * c[STIFFNESS + 1] * dt + c[DAMPING + 1]:
            largest = 2.0 * max(self._passive - c[DAMPING + 1], 0.0) / dt
            raise InputError(
                f"{what}: with stiffness {c[STIFFNESS + 1]:g} and damping {c[DAMPING + 1]:g} a device of damping "
                f"{self._passive:g} is not passive at dt = {dt:g} s: the largest stiffness is {largest:g} = "
                "2 (device_damping - damping) / dt")

    def _mobility(self, q, robot):
        """J M_c^-1 J^T (6, 6): accelerations of the point held by wrenches there, in world axes."""
        M, G = crba(robot, q), constraint_jacobian(robot, q)
        K = null_space(robot, G, RANK_TOLERANCE)
        R, r = pose(robot, q, self.body)[:3, :3], self.numbers[PLACEMENT + 9:PLACEMENT + 12]
        J = body_jacobian(robot, q, self.body) @ K
        J = np.vstack([R @ J[:3], R @ (J[3:] - np.cross(r, J[:3], axis=0))])
        try:
            return J @ np.linalg.solve(K.T @ M @ K, J.T)
        except np.linalg.LinAlgError:
            raise SingularConfigurationError(
                f"coupler on {self.body!r}: no inertia resists some motion that the constraints allow",
                np.linalg.svd(M, compute_uv=False)) from None


def _placed(name, x, turned):
    """The pose for a pose or a point; a point gets the rotation `turned`, and is no valid input if that is None."""
    x = floats(name, x)
    shapes = ((3,), (4, 4)) if turned is not None else ((4, 4),)
    if x.shape not in shapes:
        raise InputError(f"{name} must have shape {' or '.join(map(str, shapes))}, got {shown(x)}")
    require_usable(name, x, axes=x.ndim)
    if x.shape == (4, 4):
        R = x[:3, :3]
        if not (np.abs(R @ R.T - np.eye(3)).max() <= ORTHOGONALITY and np.linalg.det(R) > 0.0
                and (x[3] == (0.0, 0.0, 0.0, 1.0)).all()):
            raise InputError(f"{name} is no pose: its rotation is not orthogonal, or its last row not 0, 0, 0, 1")
        return x
    made = turned.copy()
    made[:3, 3] = x
    return made


def _numbers(T):
    """Twelve numbers for a pose: R row by row, then p."""
    return np.concatenate([T[:3, :3].ravel(), T[:3, 3]])


def _matrix(numbers):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = numbers[:9].reshape(3, 3), numbers[9:]
    return T
