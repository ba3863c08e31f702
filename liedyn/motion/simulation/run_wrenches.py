"""Wrenches along a run: of loops and contacts as recorded, of joints of the tree by `joint_wrenches`, from its rows."""
import numpy as np

from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.mechanics.dynamics.joint_wrenches import names_of_joints, transmitted
from liedyn.mechanics.elements.generalized import actuator_matrix, element_forces
from liedyn.model.packed import LOOP_TARGET, constraints_of

AXES = "mx", "my", "mz", "fx", "fy", "fz"


def wrench_column(trajectory, name):
    """Rows (nt, 6) of the wrench of a loop, contact or joint, or one of them, as in "pin.fx"."""
    known = trajectory.constraint_wrenches
    what, _, axis = name.rpartition(".")
    if axis in AXES and name not in known and name not in _joints(trajectory):
        return wrench_column(trajectory, what)[:, AXES.index(axis)]
    if name in known:
        return known[name]
    robot = trajectory._robot
    if robot is None:
        raise InputError(f"{shown(f'wrench:{name}')} has to be computed by the robot of the run, which files do not "
                         "contain: take joint_wrenches(robot, tr.q, tr.v, tr.tau)")
    if name not in _joints(trajectory):
        raise InputError(f"unknown joint, loop or constraint {shown(name)}, "
                         f"{suggestion(name, (*known, *_joints(trajectory)))}")
    return _of_joint(trajectory, robot, name)


def _joints(trajectory):
    return () if trajectory._robot is None else names_of_joints(trajectory._robot)


def _of_joint(trajectory, robot, name):
    t, state, lam = trajectory.t, (trajectory.q, trajectory.v, trajectory.a), trajectory.lam
    u = _inputs(trajectory, robot)

    def rows(at, now):
        return transmitted(now, (name,), tuple(x[at] for x in state), lam[at], trajectory._f_ext,
                           None if u is None else u[at])[:, 0]

    if not len(t) or not _moves(robot):
        return rows(slice(None), robot)
    return np.concatenate([rows(slice(k, k + 1), robot.at(t[k])) for k in range(len(t))])


def _moves(robot):
    """True if forces or constraints are functions of time."""
    return bool(constraints_of(robot.packed)[0][:, LOOP_TARGET].any() or (robot.elements and robot.elements.functions))


def _inputs(trajectory, robot):
    """Inputs of the actuators, if some act between bodies: those that give the forces of the run."""
    if robot.elements is None or not robot.elements.driven:
        return None
    q, v, tau = trajectory.q, trajectory.v, trajectory.tau
    if _moves(robot):
        passive = np.array([element_forces(robot.at(t), *each) for t, *each in zip(trajectory.t, q, v)])
    else:
        passive = element_forces(robot, q, v)
    given, S = tau - passive.reshape(tau.shape), actuator_matrix(robot, q)
    u = np.einsum("bij,bj->bi", np.linalg.pinv(S), given)
    left = given - np.einsum("bij,bj->bi", S, u)
    if np.abs(left).max(initial=0.0) > 1e-9 * max(1.0, np.abs(tau).max(initial=0.0)):
        raise InputError("the run's forces are not those of its actuators: say where they act, "
                         "joint_wrenches(robot, q, v, tau) has them inside the joints")
    return u
