"""Wrenches that the joints of the tree transmit.

A lock is put before each joint: a free joint, in the joint's frame, that does not move. The forces that keep it locked
are what the joint transmits, by inverse dynamics of the tree with locks:

    F = [ID(q, v, a) - forces of elements and of inputs between bodies + G^T lam] in the rows of the locks

so that loops, contacts, springs between points and wrenches on bodies act where they are attached, and all others,
forces of coordinates, inside the joints.
"""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import require_robot
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.mechanics.constraints.loops import all_derivatives, constraint_jacobian
from liedyn.mechanics.dynamics.forward import forward_dynamics
from liedyn.mechanics.elements.generalized import actuator_matrix, element_forces
from liedyn.mechanics.tree.forward_kinematics import pose
from liedyn.mechanics.tree.rnea import rnea
from liedyn.model.builder import Builder
from liedyn.model.calls.boundary import as_floats, rows_of, states, wrenches
from liedyn.model.description import GROUND
from liedyn.model.kinds import JOINT_KINDS
from liedyn.model.remembered import remembered

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike, Wrenches


@dataclass(frozen=True)
class Locked:
    """A robot with locks before some of its joints.

    Attributes
    ----------
    robot : Robot
        With the locks, and without constraints that act on coordinates only.
    of_q, of_v : ndarray of int
        Places of the coordinates and velocities of the original robot.
    rows : ndarray of int
        Numbers, among the rows of the original robot, of the rows of constraints that are left.
    locks : ndarray of int, shape (joints, 6)
        Places of the velocities of each lock.
    """

    robot: Any
    of_q: np.ndarray
    of_v: np.ndarray
    rows: np.ndarray
    locks: np.ndarray

    def configuration(self, q):
        """Rows of configurations with all locks at rest."""
        found = np.tile(self.robot.neutral, (len(q), 1))
        found[:, self.of_q] = q
        return found

    def velocity(self, v):
        """Rows of velocities or accelerations with all locks at rest."""
        found = np.zeros((len(v), self.robot.nv))
        found[:, self.of_v] = v
        return found

    def closed(self, lam):
        """The robot with all constraints on that have multipliers in some row."""
        acting = set(np.array(self.robot.row_owners)[(lam != 0.0).any(axis=0)])
        sided = self.robot.contacts
        return self.robot.switched({name: ("sticking" if name in sided else True) if name in acting else False
                                    for name in self.robot.constraint_names if name in acting or name in sided})

    def jacobian(self, q, lam):
        """G of the constraints that are left; zero in rows of multipliers that are zero, whose contacts are open."""
        robot = self.closed(lam)
        return np.where(lam[..., None] != 0.0, constraint_jacobian(robot, q), 0.0)

    def turned(self, q, v, a, lam):
        """d(G^T lam)/dq (nv, nv) at one state, given as rows, of the multipliers of the constraints that are left."""
        robot = self.closed(lam)
        return all_derivatives(robot.packed, q[0], v[0], a[0], lam[0])[3]

    def forces(self, t, q, v, a, lam, f_ext, u):
        """Forces of this motion: in the rows of locks the wrenches, in the others those of drives on coordinates."""
        robot = self.robot if self.robot.t == t else self.robot.at(t)
        locked = replace(self, robot=robot)
        lam, q, v, a = lam[:, self.rows], self.configuration(q), self.velocity(v), self.velocity(a)
        found = rnea(robot, q, v, a, f_ext)
        if robot.elements is not None:
            found = found - element_forces(robot, q, v)
            if u is not None and robot.elements.driven:
                found = found - np.einsum("bij,bj->bi", actuator_matrix(robot, q) - robot.tree_actuators, u)
        if lam.size:
            found = found + np.einsum("bij,bi->bj", locked.jacobian(q, lam), lam)
        return found


def names_of_joints(robot):
    """Names of all joints of the tree, fixed ones included."""
    return tuple(joint.name for joint in robot.model.joints)


@remembered
def locked(robot, joints):
    """The robot with locks before these joints, by name; and if they are empty, before all of them."""
    b, locks, taken = Builder.of(robot), [], {*names_of_joints(robot), *robot.body_numbers, *robot.constraint_names}
    b._constraints[:] = [each for each in b._constraints if each.bodies != {None}]
    b.change("robot", independent=(), outputs=())
    for joint in robot.model.joints:
        if joint.name not in (joints or (joint.name,)):
            continue
        name = f"lock of {joint.name}"
        while name in taken:
            name += "'"
        taken.add(name)
        locks.append(name)
        b.body(name)
        # its inertia makes no force, as it does not move, and keeps the mass matrix of the tree regular
        b.joint(name, "free", joint.parent, name, joint.placement, armature=1.0, driven=False)
        b.change("joint", joint.name, parent=name, placement=None)
    made = b.build()
    rows = [robot.row_names.index(name) for name in made.row_names]
    suffixes = JOINT_KINDS["free"].velocities
    return Locked(made, np.array([made.coordinate_index(name) for name in robot.coordinate_names], dtype=int),
                  np.array([made.velocity_index(name) for name in robot.velocity_names], dtype=int),
                  np.array(rows, dtype=int),
                  np.array([[made.velocity_index(name + suffix) for suffix in suffixes] for name in locks], dtype=int))


def transmitted(robot, joints, state, lam, f_ext=None, u=None):
    """Wrenches (count, joints, 6) for rows of states (q, v, a) and multipliers, and inputs of the actuators if given.

    `f_ext` is in the form that users pass, its rows those of the states.
    """
    ways = locked(robot, tuple(joints))
    return ways.forces(robot.t, *state, lam, by_body(robot, f_ext), u)[:, ways.locks]


def by_body(robot, f_ext):
    """Wrenches on bodies as a dict, as the robot with locks has more bodies."""
    if f_ext is None or isinstance(f_ext, dict):
        return f_ext
    F = np.asarray(f_ext, dtype=np.float64)
    return {name: F[..., k, :] for k, name in enumerate(robot.body_names)}


def _given(robot, q, v, tau, u):
    """Leading shape, rows of q, v and tau, and rows of u or None."""
    require_robot(robot)
    if (tau is None) == (u is None):
        raise InputError("give tau, the forces of all coordinates, or u, those of the actuators")
    if u is None:
        return *states(robot, q=q, v=v, tau=tau), None
    lead, q, v = states(robot, q=q, v=v)
    nu = len(robot.actuator_names)
    u = rows_of("u", as_floats("u", u, nu), lead, nu)
    return lead, q, v, np.einsum("bij,bj->bi", actuator_matrix(robot, q), u), u


def joint_wrenches(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None,
                   f_ext: Wrenches | None = None, *, u: ArrayLike | None = None) -> dict[str, Any]:
    """All six forces that each joint of the tree transmits, fixed joints included.

    Bearings, welds and force-torque sensors are designed for these. Those of cut joints are
    ``forward_dynamics(...).constraint_wrenches``.

    Parameters
    ----------
    robot : Robot
        With its switched constraints, at its time (``robot.at(t)``).
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] that satisfies the constraints.
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s] that keeps them satisfied.
    tau : array_like, shape (..., nv)
        Generalised forces [N m, N]. They act inside the joints; so do couplings and custom rows.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] applied to bodies, each in its body's own frame, as for `rnea`.
    u : array_like, shape (..., nu), optional
        Instead of tau: inputs of the actuators. Those between two points, on cut joints, and thrusters act there.

    Returns
    -------
    wrenches : dict
        By name of the joint the wrench (moment, force) [N m, N], shape (..., 6), that it exerts on the body at its
        child side, in the joint's frame, which is fixed in the parent: moment about its origin, in its axes, as of a
        revolute cut joint. Along the motion of the joint it is the force of its drive, springs and dampers, less what
        accelerates its armature; what stands across is what its bearing has to carry.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, both or none of tau and u are given; or what `forward_dynamics`
        raises.
    SingularConfigurationError
        As `forward_dynamics`.

    Notes
    -----
    Newton's and Euler's equations of all that the joint carries, with the accelerations and multipliers of
    `forward_dynamics`; where constraints are redundant, the multipliers are those of least norm, and so the wrenches
    are one of many possible distributions. As outputs of a linear model they are ``"wrench:<joint>"``.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> hold = ld.rnea(panda, panda.home, [0.0] * 7, [0.0] * 7)
    >>> moment, force = ld.joint_wrenches(panda, panda.home, [0.0] * 7, hold)["panda_joint1"].reshape(2, 3)
    >>> round(float(force[2]), 2), round(9.81 * ld.total_mass(panda), 2)
    (165.03, 165.03)
    """
    lead, q, v, tau, u = _given(robot, q, v, tau, u)
    wrenches(robot, f_ext, lead)  # refuses what is no wrench
    given = _rows(f_ext, lead)
    found = forward_dynamics(robot, q, v, tau, f_ext=given)
    F = transmitted(robot, (), (q, v, found.a), found.lam, given, u)
    return {name: F[:, k].reshape(lead + (6,)) for k, name in enumerate(names_of_joints(robot))}


def _rows(f_ext, lead):
    """Wrenches with the leading axes of the states as rows."""
    def rows(F, axes):
        F = np.asarray(F, dtype=np.float64)
        return np.broadcast_to(F, lead + F.shape[F.ndim - axes:]).reshape(-1, *F.shape[F.ndim - axes:])

    if f_ext is None:
        return None
    return {name: rows(F, 1) for name, F in f_ext.items()} if isinstance(f_ext, dict) else rows(f_ext, 2)


def world_joint_wrenches(robot: Robot, q: ArrayLike, wrenches: dict[str, Any]) -> dict[str, Any]:
    """Wrenches of joints in world axes.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    wrenches : dict
        By name of the joint (moment, force) [N m, N], shape (..., 6), in the joint's frame: what `joint_wrenches`
        returns, or a part of it.

    Returns
    -------
    wrenches : dict
        The same wrenches in world axes; moments still about the origin of the joint's frame.

    Raises
    ------
    InputError
        An unknown joint, a shape that does not fit, an entry is not finite, or a quaternion is not of unit length.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> hold = ld.rnea(panda, panda.home, [0.0] * 7, [0.0] * 7)
    >>> own = ld.joint_wrenches(panda, panda.home, [0.0] * 7, hold)
    >>> (ld.world_joint_wrenches(panda, panda.home, own)["panda_joint4"][3:].round(2) + 0.0).tolist()
    [0.0, 0.0, 78.24]
    """
    require_robot(robot)
    lead, rows = states(robot, q=q)
    joints, turned = {joint.name: joint for joint in robot.model.joints}, {}
    if not isinstance(wrenches, dict):
        raise InputError(f"wrenches must be a dict by name of a joint, as of joint_wrenches, got {shown(wrenches)}")
    for name, F in wrenches.items():
        if name not in joints:
            raise InputError(f"unknown joint {shown(name)}, {suggestion(name, list(joints))}")
        joint, F = joints[name], rows_of(f"wrench of {shown(name)}", as_floats("wrench", F, 6), lead, 6)
        R = np.eye(3) if joint.parent == GROUND else pose(robot, rows, joint.parent)[:, :3, :3]
        R = np.reshape(R @ joint.placement[:3, :3], (-1, 1, 3, 3))
        turned[name] = (R @ F.reshape(-1, 2, 3, 1)).reshape(lead + (6,))
    return turned
