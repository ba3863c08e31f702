"""First guesses: from condition to condition on the manifold, or from a trajectory or an earlier result."""
import numpy as np

from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.tree.configuration import difference
from liedyn.mechanics.tree.places import places_of
from liedyn.model.calls.boundary import states
from liedyn.tasks.optimal_motion.charts import LeftChartError, charts_about
from liedyn.tasks.optimal_motion.dynamics import motion_at

TURN = 24
"""Configurations of a guess for coordinates that increase from period to period, each computed from the one before: 15
degrees apart in a full turn."""
NEARLY = 0.5
"""Distance [rad] from whole turns below which an angle of a guess makes whole turns."""
PEAK = 5.0
"""Largest inputs of a guess as a multiple of their median."""


def way_points(robot, conditions, given, part):
    """Configurations at fractions of the duration (count,), through those of conditions or, if `given`, of the user.

    Raises InputError if `given` is no trajectory and no configurations, or belongs to another robot.
    """
    if given is not None and hasattr(given, "t") and hasattr(given, "q"):
        if given.q.shape[1] != robot.nq:
            raise InputError(f"the guess is a motion of {given.robot!r} with {given.q.shape[1]} coordinates, "
                             f"{robot.name!r} has {robot.nq}")
        t = (np.asarray(given.t) - given.t[0]) / (given.t[-1] - given.t[0])
        return between(robot, t, given.q, part)
    if given is not None:
        _, q = states(robot, q=given)
        if len(q) < 2:
            raise InputError(f"a guess is a Trajectory or at least two configurations, got {shown(given)}")
        return between(robot, np.linspace(0.0, 1.0, len(q)), q, part)
    known, q = {}, robot.home if conditions[0][1].q is None else conditions[0][1].q
    for at, condition in sorted(conditions, key=lambda each: each[0]):
        q = condition.near(robot, q)
        known[at] = q
    known.setdefault(0.0, next(iter(known.values())))
    known.setdefault(1.0, q)
    t = np.array(sorted(known))
    return smooth(robot, t, [known[each] for each in t], part)


def turn(robot, q, shift):
    """Closed configurations (TURN + 1, nq) from q (nq,) on, whose coordinates change steadily by shift (nv,) in all.

    Raises ClosureError if the mechanism cannot turn that far.
    """
    moving = np.flatnonzero(shift)
    places, found = places_of(robot)[moving], [q]
    for part in np.arange(1, TURN + 1) / TURN:
        there = q[places] + part * shift[moving]
        if robot.row_names:
            names = [robot.velocity_names[j] for j in moving]
            found.append(close(robot, found[-1], **dict(zip(names, there))))
        else:
            found.append(q.copy())
            found[-1][places] = there
    return np.array(found)


def whole_turns(robot, q, shift):
    """`shift` (nv,) of a periodic motion, completed by the whole turns of other angles along the configurations
    q (count, nq) of its guess: a coupler turns back relative to its crank. None stays None."""
    if shift is None:
        return None
    d, angle = difference(robot, q[0], q[-1]), places_of(robot) >= 0
    turns = 2.0 * np.pi * np.round(d / (2.0 * np.pi))
    return np.where(angle & (shift == 0.0) & (np.abs(d - turns) < NEARLY), turns, shift)


def smooth(robot, t, q, part):
    """Smooth motion from rest to rest between the configurations at times t."""
    k = np.clip(np.searchsorted(t, part, side="right") - 1, 0, len(t) - 2)
    s = (part - t[k]) / (t[k + 1] - t[k])
    return between(robot, t, q, t[k] + s * s * (3.0 - 2.0 * s) * (t[k + 1] - t[k]))


def between(robot, t, q, at):
    """Configurations at increasing times, on the manifold between those given: each step leads towards the next given
    one, in the tangent space of its start."""
    found, (here, t_here), last = [], (np.asarray(q[0]), t[0]), len(t) - 1
    for each in at:
        k = min(int(np.searchsorted(t, each, side="right")), last)
        while t_here < t[k - 1]:  # an intermediate configuration
            here, t_here = np.asarray(q[k - 1]), t[k - 1]
        share = (each - t_here) / (t[k] - t_here) if t[k] > t_here else 1.0
        if share >= 1.0:
            here, t_here = np.asarray(q[k]), each
        elif share > 0.0:
            here, t_here = step_towards(robot, here, np.asarray(q[k]), share), each
        found.append(here)
    return np.array(found)


def step_towards(robot, here, there, share):
    """A configuration on the manifold at a fraction of the way, or as far as the way leads."""
    charts, zero = charts_about(robot, here[None]), np.zeros(1, np.int64)
    y = share * charts.R_y[0] @ difference(robot, here, there)
    for _ in range(4):
        try:
            return charts.configurations(zero, y[None])[0]
        except LeftChartError:
            y = 0.5 * y
    return here


def coordinates(charts, chart, part, q, duration, ends=()):
    """Coordinates x of the nodes of a guess: y of its configurations, w of the chords from node to node; for `ends`,
    pairs (node, velocity (nv,)), w is that velocity."""
    d = difference(charts.robot, q[:-1], q[1:]) / (np.diff(part)[:, None] * duration)
    v = np.zeros((len(q), d.shape[1]))
    v[1:-1] = 0.5 * (d[1:] + d[:-1])
    for node, given in ends:
        v[node] = given
    return charts.read(chart, q, v)


def first_inputs(charts, chart, part, x, duration):
    """Least-norm inputs (nodes, nu) that come nearest to the accelerations of the nodes of a guess; and sizes (nu,) of
    inputs that move the robot by a tenth [rad, m] in this time."""
    nu = len(charts.robot.actuator_names)
    q, v = charts.states(chart, x)
    motion = motion_at(charts, chart, q, v, np.zeros((len(q), nu)))
    R = charts.R_w[chart]
    B = R @ motion.da_du
    wanted = np.gradient(v, part * duration, axis=0) - motion.a
    u = np.einsum("bij,bj->bi", np.linalg.pinv(B, rcond=1e-6), np.einsum("bij,bj->bi", R, wanted))
    # next to states where the inputs lose a direction they would be arbitrarily large
    most = PEAK * np.median(np.abs(u), axis=0)
    push = np.abs(B).max(axis=(0, 1))
    return np.clip(u, -most, most), 0.1 / (np.where(push > 0.0, push, np.inf) * duration ** 2)
