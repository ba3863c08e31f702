"""What runs say by name, beyond coordinates: poses and twists of bodies, wrenches of constraints, inputs, energies,
and lengths, rates and forces of force elements.

Functions take a run, one or many: t, q, v, a, tau with rows along any leading axes. Rows that are NaN, after the end
of a run that failed, stay NaN.
"""
# mypy: ignore-errors
import numpy as np

from liedyn.machine.errors import InputError, LiedynError, shown, suggestion
from liedyn.mechanics.constraints.constraint_wrenches import wrenches_at
from liedyn.mechanics.dynamics.joint_wrenches import names_of_joints, transmitted
from liedyn.mechanics.elements.generalized import actuator_matrix, element_forces, element_states, moves_elements
from liedyn.mechanics.tree.energy import kinetic_energy, potential_energy
from liedyn.mechanics.tree.forward_kinematics import pose
from liedyn.mechanics.tree.jacobians import body_jacobian, body_jacobian_dot
from liedyn.model.packed import LOOP_TARGET, constraints_of

AXES = "mx", "my", "mz", "fx", "fy", "fz"
OF_ELEMENTS = "length", "rate", "force"
ENERGIES = "kinetic", "potential", "energy"
NOT_OF_ACTUATORS = 1e-9
"""Part of the largest force of a run that may be left of its generalised forces beyond those of the actuators."""


def column(run, name):
    """The column of a run with the name `name`.

    Raises InputError if there is none, and LiedynError if it needs the robot and the run has none.
    """
    kind, _, what = name.partition(":")
    columns = {"velocity": run.v, "acceleration": run.a, "force": run.tau}
    if what and kind in columns:
        return columns[kind][..., _place(what, run.velocity_names)]
    if name in run.row_names:
        return run.lam[..., run.row_names.index(name)]
    if name in run.coordinate_names:
        return run.q[..., run.coordinate_names.index(name)]
    if name in ENERGIES:
        return getattr(run, name)
    if what and kind == "wrench":
        return _wrench(run, what)
    if what and kind in KINDS:
        return KINDS[kind](run, robot_of(run, name), what)
    element, _, what = name.rpartition(".")
    if what in OF_ELEMENTS and run._robot is not None and element in run._robot.element_names:
        return _element(run, element)[OF_ELEMENTS.index(what)]
    of_elements = () if run._robot is None else tuple(f"{each}.force" for each in run._robot.element_names)
    return _place(name, run.coordinate_names + run.row_names + ENERGIES + of_elements)


def _element(run, name):
    """Length, rate and force of a force element at all rows."""
    robot, t = run._robot, np.broadcast_to(run.t, run.q.shape[:-1])[..., None]

    def rows(q, v, t):
        if not moves_elements(robot):
            return np.stack(element_states(robot, q, v)[name], axis=1)
        return np.array([element_states(robot.at(float(now)), *each)[name] for (now,), *each in zip(t, q, v)])

    return np.moveaxis(by_rows(rows, run.q, run.v, t), run.q.ndim - 1, 0)


def _place(name, names):
    try:
        return names.index(name)
    except ValueError:
        raise InputError(f"nothing called {shown(name)} in the trajectory, {suggestion(name, names)}") from None


def _pose(run, robot, body):
    robot.body_index(body)  # names what is unknown
    return by_rows(lambda q: pose(robot, q, body), run.q)


def _twist(run, robot, body):
    robot.body_index(body)
    return by_rows(lambda q, v: _times(body_jacobian(robot, q, body), v), run.q, run.v)


def _twist_rate(run, robot, body):
    robot.body_index(body)
    return by_rows(lambda q, v, a: _times(body_jacobian(robot, q, body), a)
                   + _times(body_jacobian_dot(robot, q, v, body), v), run.q, run.v, run.a)


def _input(run, robot, actuator):
    return run.u[..., _place(actuator, robot.actuator_names)]


def robot_of(run, what):
    """The robot of a run; LiedynError if it came from a file without one."""
    if run._robot is None:
        raise LiedynError(f"{what} needs the robot of the run, which files and copies do not contain: "
                          "Trajectory.load(path, robot)")
    return run._robot


def by_rows(function, *columns):
    """A function of rows at all that are finite, NaN elsewhere, with the leading axes of the columns."""
    lead = columns[0].shape[:-1]
    rows = [x.reshape(-1, x.shape[-1]) for x in columns]
    good = np.all([np.isfinite(x).all(axis=1) for x in rows], axis=0)
    some = function(*(x[good] for x in rows))
    if good.all():
        return some.reshape(lead + some.shape[1:])
    found = np.full((len(good), *some.shape[1:]), np.nan)
    found[good] = some
    return found.reshape(lead + some.shape[1:])


def energies(run):
    """Kinetic and potential energy of all rows [J]."""
    robot = robot_of(run, "energy")
    return (by_rows(lambda q, v: kinetic_energy(robot, q, v), run.q, run.v),
            by_rows(lambda q: potential_energy(robot, q), run.q))


def inputs(run):
    """Forces of the actuators (..., nu), from the generalised forces of a run.

    Raises InputError if other forces act on the coordinates, or different forces of actuators do the same.
    """
    robot = robot_of(run, "u")
    t = np.broadcast_to(run.t, run.q.shape[:-1])[..., None]
    return by_rows(lambda *rows: _inputs(robot, *rows), run.q, run.v, run.tau, t)


def _inputs(robot, q, v, tau, t):
    S, largest = actuator_matrix(robot, q), np.abs(tau).max(initial=0.0)
    if robot.elements is not None:
        if moves_elements(robot):
            tau = tau - np.array([element_forces(robot.at(float(now)), *each) for (now,), *each in zip(t, q, v)])
        else:
            tau = tau - element_forces(robot, q, v)
    if len(q) and not (np.linalg.matrix_rank(S) == S.shape[-1]).all():
        raise InputError(f"different forces of the actuators {', '.join(robot.actuator_names)} do the same: those of "
                         "the run cannot be told from its generalised forces tau")
    u = _times(np.linalg.pinv(S), tau)
    left = np.abs(tau - _times(S, u)).max(axis=0, initial=0.0)
    if left.max(initial=0.0) > NOT_OF_ACTUATORS * max(largest, np.abs(tau).max(initial=0.0)):
        raise InputError(f"the force of {robot.velocity_names[int(left.argmax())]} in this run is no force of an "
                         "actuator: it has generalised forces tau, but no inputs u")
    return u


def _times(A, x):
    return (A @ x[..., None])[..., 0]


def _wrench(run, name):
    """Wrenches (moment, force) of a joint, loop or contact, or one number of them."""
    if run.q.ndim == 2:
        return _wrench_column(run, name)
    robot = robot_of(run, f"wrench:{name}")
    t = np.broadcast_to(run.t, run.q.shape[:-1])[..., None]
    none = np.zeros(0), np.zeros((0, robot.nq)), np.zeros((0, len(robot.row_names)))
    if name in wrenches_at(robot, *none):
        return by_rows(lambda t, q, lam: wrenches_at(robot, t[:, 0], q, lam)[name], t, run.q, run.lam)
    found = [_wrench_column(run[index], name) for index in np.ndindex(run.shape)]
    return np.reshape(found, (*run.shape, *np.shape(found)[1:]))


def _wrench_column(trajectory, name):
    """Rows (nt, 6) of the wrench of a loop, contact or joint, or one of them, as in "pin.fx"."""
    known = trajectory.constraint_wrenches
    what, _, axis = name.rpartition(".")
    if axis in AXES and name not in known and name not in _joints(trajectory):
        return _wrench_column(trajectory, what)[:, AXES.index(axis)]
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
    driven = robot.elements is not None and robot.elements.driven
    u = trajectory.u if driven else None  # of actuators between bodies: where they act counts

    def rows(at, now):
        return transmitted(now, (name,), tuple(x[at] for x in state), lam[at], trajectory._f_ext,
                           None if u is None else u[at])[:, 0]

    if not len(t) or not _moves(robot):
        return rows(slice(None), robot)
    return np.concatenate([rows(slice(k, k + 1), robot.at(t[k])) for k in range(len(t))])


def _moves(robot):
    """True if forces or constraints are functions of time."""
    return bool(constraints_of(robot.packed)[0][:, LOOP_TARGET].any() or (robot.elements and robot.elements.functions))


KINDS = {"pose": _pose, "twist": _twist, "twist_rate": _twist_rate, "u": _input}
"""What is computed from the states, by the word before the colon."""
