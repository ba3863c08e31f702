"""Projected inverse dynamics control: constrained motions with the smallest forces (Aghili 2005, VII-A and D).

Also positions of independent coordinates, and their errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.control.constrained.actuator_forces import DrivenState
from liedyn.control.constrained.controllability import actuation, is_constant
from liedyn.control.constrained.decomposition import metric_root
from liedyn.control.constrained.gains import Signal, gain, require_stable
from liedyn.control.constrained.integral import Integral
from liedyn.control.constrained.inverse_dynamics import driven
from liedyn.linear.feedback import Feedback
from liedyn.machine import arguments
from liedyn.machine.arguments import non_negative, require_robot
from liedyn.machine.errors import InputError
from liedyn.mechanics.constraints.independent import by_name
from liedyn.mechanics.constraints.loops import virtual_coordinates, virtual_jacobian
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree.configuration import difference
from liedyn.model.calls.boundary import wrenches
from liedyn.model.kinds import JOINT_KINDS, LOOP_KINDS
from liedyn.motion.local_coordinates import at_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Wrenches


class Coordinates:
    """Positions and errors of independent coordinates, on the configuration group for joints with quaternions.

    Attributes
    ----------
    chosen : Independent
    size : int
        Number of numbers in a position: those of q for ball and free joints, which are chosen as a whole, and one for
        each other coordinate.
    """

    def __init__(self, robot, independent):
        require_robot(robot)
        names = robot.independent if independent is None else arguments.names("independent", independent)
        if independent is None and not names and not robot.constraint_names:
            names = robot.joint_names
        if not names:
            raise InputError(f"{robot.name!r} declares no independent coordinates: name those that are controlled")
        self.chosen = by_name(robot, names)
        kinds = {joint.name: joint.kind for joint in robot.model.joints}
        loops = {loop.name: loop.kind for loop in robot.model.loops}
        self._q, self._virtual = [], []  # (index in the position, index in q or z)
        self._rows = [k for k, name in enumerate(self.chosen.names) if self.chosen.virtual[k] < 0]
        self._columns = [robot.velocity_index(self.chosen.names[k]) for k in self._rows]
        self.on_group, self.size, k = False, 0, 0
        while k < len(self.chosen.names):
            name = self.chosen.names[k]
            owner = name if name in kinds or name in loops else name.rsplit(".", 1)[0]
            if self.chosen.virtual[k] >= 0:
                if LOOP_KINDS[loops[owner]].has_quaternion:
                    raise InputError(f"{name!r} of a {loops[owner]} cut has no position that could be controlled")
                self._virtual.append((self.size, int(self.chosen.virtual[k]), k))
                self.size, k = self.size + 1, k + 1
            elif JOINT_KINDS[kinds[owner]].has_quaternion:
                k += self._add_joint(robot, owner, k)
            else:
                self._q.append((self.size, robot.coordinate_index(name)))
                self.size, k = self.size + 1, k + 1
        # indices in order, if all are revolute or prismatic joints of the tree
        self._plain = None if self._virtual or self.on_group else np.array([j for _, j in self._q], dtype=np.int64)

    def _add_joint(self, robot, owner, k):
        """Add a ball or free joint, whose coordinates begin at place k; returns how many velocities it has."""
        members = [each for each in robot.velocity_names if each.startswith(f"{owner}.")]
        if list(self.chosen.names[k:k + len(members)]) != members:
            raise InputError(f"{self.chosen.names[k]!r} can be controlled with all of joint {owner!r} only: name the "
                             "joint")
        places = [j for j, each in enumerate(robot.coordinate_names) if each.startswith(f"{owner}.")]
        self._q += [(self.size + i, j) for i, j in enumerate(places)]
        self.on_group, self.size = True, self.size + len(places)
        return len(members)

    def error(self, robot, q, wanted):
        """Wanted minus actual position, as a tangent vector."""
        if self._plain is not None:
            return wanted - q[self._plain]
        e = np.empty(len(self.chosen.names))
        target = q.copy()
        for place, j in self._q:
            target[j] = wanted[place]
        e[self._rows] = (difference(robot, q, target) if robot.nq != robot.nv else target - q)[self._columns]
        if self._virtual:
            z = virtual_coordinates(robot, q)
            for place, j, k in self._virtual:
                e[k] = wanted[place] - z[j]
        return e


class PIDC(Feedback):
    """Projected inverse dynamics control of a constrained mechanism.

    The object is a function tau(t, q, v), which can be the input of `simulate`. The error e of the independent
    coordinates then obeys ``e'' + G_D e' + G_P e = 0``, with ``+ G_I`` times its integral.

    Parameters
    ----------
    robot : Robot
        The model. Moving constraints are evaluated at each time.
    trajectory : callable or array_like
        Function of t that returns position, velocity and acceleration of the independent coordinates; or a constant
        position. A position has one number for each coordinate [rad, m], and the quaternion (and place) of a ball (or
        free) joint that is named as a whole.
    G_P, G_D : float or array_like, shape (p,) or (p, p)
        Gains [1/s^2, 1/s].
    G_I : float or array_like, optional
        Gain of the integral [1/s^3]; none by default.
    independent : sequence of str, optional
        The controlled coordinates, as many as there are degrees of freedom; default: those that the robot declares,
        or all joints if there are no constraints.
    active : sequence of str, optional
        Joints or velocity coordinates that are driven, all others being passive; default: by the robot's actuators, or
        all of them if it declares none.
    metric : array_like, shape (nv,) or (nv, nv), optional
        W, or its diagonal: tau^T W^-1 tau is minimised. Default: ones.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies that the model takes into account, as for `rnea`.
    rank_tolerance : float
        Singular values of G below this fraction of the largest one count as zero.

    Attributes
    ----------
    robot : Robot
        May be exchanged during control, by ``robot.switched(...)`` for instance: the law does not change when
        constraints are switched, as long as the controlled coordinates are as many as the degrees of freedom.
    independent : tuple of str

    Raises
    ------
    InputError
        Gains have the wrong shape or are unstable, a name is unknown, or the trajectory has the wrong size. In a call:
        the mechanism has more or fewer degrees of freedom than controlled coordinates.
    SingularConfigurationError
        In a call: the independent coordinates do not determine the motion there.
    ControllabilityError
        In a call: the actuators cannot give the motion, at a singular configuration for instance.

    Notes
    -----
    Aghili 2005, eq. 43, 44 and 60. For ball and free joints e is the logarithm of the rotation (and displacement) from
    the actual to the wanted pose, in the actual body frame, and the error equation holds to first order.

    Examples
    --------
    >>> import liedyn as ld, numpy as np
    >>> robot = ld.load("slider_crank")
    >>> controller = ld.PIDC(robot, [np.pi / 3], G_P=25.0, G_D=10.0, active=["crank"])
    >>> q0 = [np.pi / 6, 2 * np.pi - np.pi / 3]
    >>> controller(0.0, q0, [0.0, 0.0]).round(6).tolist()
    [34.675648, 0.0]
    >>> tr = ld.simulate(robot, q0, [0.0, 0.0], 0.2, tau=controller)
    >>> bool(abs(tr["crank"] - np.pi / 3 * (1 - (1 + 5 * tr.t) * np.exp(-5 * tr.t) / 2)).max() < 1e-9)
    True
    """

    robot: Robot
    independent: tuple[str, ...]

    def __init__(self, robot: Robot, trajectory: Callable[..., Any] | ArrayLike, G_P: float | ArrayLike,
                 G_D: float | ArrayLike, G_I: float | ArrayLike | None = None, independent: Sequence[str] | None = None,
                 active: Sequence[str] | None = None, metric: ArrayLike | None = None, f_ext: Wrenches | None = None,
                 rank_tolerance: float = RANK_TOLERANCE) -> None:
        self.robot = robot
        self._coordinates = Coordinates(robot, independent)
        self.independent = self._coordinates.chosen.names
        size = len(self.independent)
        gains = {} if G_I is None else {"G_I": gain("G_I", G_I, size)}
        gains |= {"G_P": gain("G_P", G_P, size), "G_D": gain("G_D", G_D, size)}
        require_stable(gains, "e'' + G_D e' + G_P e" + (" = 0" if G_I is None else " + G_I integral of e = 0"))
        self._gains, self._integral = gains, Integral(size)
        self._wanted = Signal("trajectory", trajectory, (self._coordinates.size, size, size))
        self._active, (self._actuators, self._B) = active, actuation(robot, active, robot.home)
        self._root = metric_root(metric, robot.nv)
        self._reads_cuts = bool((self._coordinates.chosen.virtual >= 0).any())
        self._forces = wrenches(robot, f_ext, ())[0]
        self._driven = driven(robot, self.independent, active, self._root)
        self._tolerance = non_negative("rank_tolerance", rank_tolerance)

    @property
    def _robot(self) -> Robot:
        return self.robot

    def _inputs(self, t, q, v):
        robot, w_dot = self._demanded(t, q, v)
        if self._driven is not None:
            found = self._driven.motion(robot, q, v, w_dot, self._forces, self._tolerance)
            if found is not None:
                return found[0]
        return self._motion_of(robot, q, v, w_dot).tau

    def errors(self, t: float, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
        """Errors of position and velocity.

        Parameters
        ----------
        t : float
            Time [s].
        q : array_like, shape (nq,)
            Configuration [rad, m; quaternions (x, y, z, w)].
        v : array_like, shape (nv,)
            Velocity [rad/s, m/s].

        Returns
        -------
        e, e_dot : ndarray, shape (p,)
            Wanted minus actual [rad, m; rad/s, m/s].

        Raises
        ------
        InputError
            A shape does not fit, or an entry is not finite.

        Examples
        --------
        >>> import liedyn as ld
        >>> controller = ld.PIDC(ld.load("slider_crank"), [1.0], G_P=25.0, G_D=10.0)
        >>> e, e_dot = controller.errors(0.0, [0.75, 4.5], [0.5, -1.0])
        >>> e.tolist(), e_dot.tolist()
        ([0.25], [-0.5])
        """
        t, q, v = self._checked(t, q, v)
        return self._errors(at_time(self.robot, t), q, v, self._wanted(t))

    def reset(self) -> None:
        """Reset the integral of the error.

        Examples
        --------
        >>> import liedyn as ld
        >>> controller = ld.PIDC(ld.load("slider_crank"), [1.0], G_P=25.0, G_D=10.0, G_I=5.0)
        >>> controller.reset()
        """
        self._integral.reset()

    def _motion(self, t, q, v):
        """The `DrivenState` that the law demands, with its forces, to which the hybrid controller adds."""
        robot, w_dot = self._demanded(t, q, v)
        return self._motion_of(robot, q, v, w_dot)

    def _demanded(self, t, q, v):
        """The robot at time t, and the accelerations that the law demands."""
        robot, wanted = at_time(self.robot, t), self._wanted(t)
        e, e_dot = self._errors(robot, q, v, wanted)
        u = wanted[2] + self._gains["G_D"] @ e_dot + self._gains["G_P"] @ e
        if "G_I" in self._gains:
            u = u + self._gains["G_I"] @ self._integral.add(t, e)
        return robot, u

    def _motion_of(self, robot, q, v, u):
        """The `DrivenState` with these accelerations."""
        B = self._B if is_constant(robot, self._active) else actuation(robot, self._active, q)[1]
        return DrivenState(robot, (q, v, self._forces), u, self._coordinates.chosen, (self._actuators, B), self._root,
                           self._tolerance)

    def _errors(self, robot, q, v, wanted):
        chosen = self._coordinates.chosen
        R = chosen.matrix(virtual_jacobian(robot, q)) if self._reads_cuts else chosen.rows
        return self._coordinates.error(robot, q, wanted[0]), wanted[1] - R @ v
