"""Inverse kinematics: poses that are reached, from one start, beside mink and pink; closed chains; batches.

`python -m benchmarks --sections reaching`; the peers come with the extra `bench`.
"""
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.linalg import null_space

import liedyn as ld
from benchmarks.errors import MissingPeer
from benchmarks.tables import MISSING, markdown

TITLE = "Inverse kinematics"
COUNT, QUICK_COUNT, BATCH = 1000, 20, 10_000
LIMIT = 0.05
"""Seconds that each solver has for a pose."""
DISTANCE, ANGLE = 1e-4, 1e-3
"""Reached is what is as near [m, rad]."""
HAND = "panda_hand_tcp"
DAMPINGS = (1e-2, 1e-1, 1.0)
"""Levenberg-Marquardt damping of the peers' tasks: the best one counts."""
CLOSED = {"cassie_like": "foot", "stewart": "platform", "loader": "bucket", "delta": "eff"}

TEXT = """{count} reachable poses of the panda's hand (`ld.random_configuration(panda, rng=0)`), each from the home
configuration alone: reached within {distance:g} m and {angle:g} rad, limits respected, at most {limit:.0f} ms for each;
time on the wall of all of them, reached or not. mink and pink take steps of their quadratic programs (daqp) with joint
limits until they are there, or their time is over; the best of three dampings each. liedyn: calls one by one, without
random restarts (its own reflections begin where the one start has led) and with the 20 of the default.
"""


def poses(count):
    panda = ld.load("panda")
    return panda, ld.pose(panda, ld.random_configuration(panda, rng=0, size=count), HAND)


def measure(effort, progress):
    """Reach all poses.

    Returns
    -------
    dict
        "rows": solver, number reached, median and mean time; "closed": robot, numbers; "batches"; "missing".
    """
    count, missing, rows = QUICK_COUNT if effort.quick else COUNT, {}, []
    panda, there = poses(count)
    for name, restarts in (("liedyn, one start", 0), ("liedyn", 20)):
        progress(name)
        rows.append((name, *_timed(there, _own(panda, restarts))))
    for name, make in (("mink", _mink), ("pink", _pink)):
        progress(name)
        try:
            tries = [_timed(there, make(panda, damping)) for damping in DAMPINGS]
            rows.append((name, *max(tries, key=lambda each: (each[0], -each[2]))))
        except MissingPeer as error:
            missing[name] = str(error)
            rows.append((name, None, None, None))
    progress("batches")
    many = np.resize(there, (QUICK_COUNT if effort.quick else BATCH, 4, 4))
    return {"count": count, "rows": rows, "missing": missing, "batches": [len(many), *_batch(panda, many)],
            "closed": [(name, *_closed(name, body, count // 10, progress)) for name, body in CLOSED.items()]}


def _timed(there, reach):
    """How many are reached, median and mean time."""
    reach(there[0])
    times, reached = [], 0
    for goal in there:
        start = time.perf_counter()
        reached += bool(reach(goal))
        times.append(time.perf_counter() - start)
    return reached, float(np.median(times)), float(np.mean(times))


def _own(panda, restarts):
    def reach(goal):
        return ld.inverse_kinematics(panda, ld.PoseTarget(HAND, goal), restarts=restarts, tolerance=DISTANCE,
                                     angle_tolerance=ANGLE, unreached="ignore").reached

    return reach


def _stepped(configuration, task, error, step, start):
    """Steps until there or out of time; error is (position, orientation)."""
    def reach(goal):
        end = time.perf_counter() + LIMIT
        start(goal)
        while True:
            e = error(task, configuration())
            if np.linalg.norm(e[:3]) <= DISTANCE and np.linalg.norm(e[3:]) <= ANGLE:
                return True
            if time.perf_counter() > end or not step():
                return False

    return reach


def _mink(panda, damping):
    try:
        import daqp  # noqa: F401
        import mink
        import mujoco
    except ImportError as error:
        raise MissingPeer(f"not installed ({error.name})") from None
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ModelWarning)  # limits of velocities, which mink does not need here
        path = Path(folder) / "panda.xml"
        ld.save(panda, path)
        model = mujoco.MjModel.from_xml_path(str(path))
    configuration = mink.Configuration(model)
    task = mink.FrameTask(HAND, "body", position_cost=1.0, orientation_cost=1.0, lm_damping=damping)
    limits = [mink.ConfigurationLimit(model)]

    def start(goal):
        configuration.update(panda.home.copy())
        task.set_target(mink.SE3.from_matrix(goal))

    def step():
        try:
            v = mink.solve_ik(configuration, [task], 1.0, "daqp", damping=1e-12, limits=limits)
        except mink.MinkError:
            return False
        configuration.integrate_inplace(v, 1.0)
        return True

    return _stepped(lambda: configuration, task, lambda task, q: task.compute_error(q), step, start)


def _pink(panda, damping):
    try:
        import daqp  # noqa: F401
        import pink
        import pinocchio as pin
        from pink.tasks import FrameTask
    except ImportError as error:
        raise MissingPeer(f"not installed ({error.name})") from None
    model = ld.to_pinocchio(panda)[0]
    data, now = model.createData(), []
    task = FrameTask(HAND, position_cost=1.0, orientation_cost=1.0, lm_damping=damping)

    def start(goal):
        now[:] = [pink.Configuration(model, data, panda.home.copy())]
        task.set_target(pin.SE3(goal))

    def step():
        try:
            v = pink.solve_ik(now[0], [task], 1.0, solver="daqp", damping=1e-12, safety_break=False,
                              limits=[model.configuration_limit])
        except pink.exceptions.PinkError:
            return False
        now[0].integrate_inplace(v, 1.0)
        return True

    return _stepped(lambda: now[0], task, lambda task, q: task.compute_error(q), step, start)


def _batch(panda, there):
    """How many are reached, and time for each."""
    def reach():
        return ld.inverse_kinematics(panda, ld.PoseTarget(HAND, there), tolerance=DISTANCE, angle_tolerance=ANGLE,
                                     unreached="ignore")

    reach()
    start = time.perf_counter()
    found = reach()
    return int(np.count_nonzero(found.reached)), (time.perf_counter() - start) / len(there)


def closed_walk(robot, rng, steps=20, size=0.25):
    """A closed configuration within limits, on the branch of home."""
    q = ld.close(robot, robot.home)
    for _ in range(steps):
        N = null_space(ld.constraint_jacobian(robot, q)[robot.holonomic], rcond=1e-8)
        d = N @ rng.normal(size=N.shape[1])
        try:
            further = ld.close(robot, ld.integrate(robot, q, size * d / np.abs(d).max()))
        except ld.ClosureError:
            continue  # out of the workspace
        if (further >= robot.lower).all() and (further <= robot.upper).all():
            q = further
    return q


def _closed(name, body, count, progress):
    """Poses, how many are reached, largest closure error, time for each."""
    progress(name)
    robot, rng = ld.load(name), np.random.default_rng(0)
    goals = ld.pose(robot, np.array([closed_walk(robot, rng) for _ in range(max(count, 5))]), body)

    def reach():
        return ld.inverse_kinematics(robot, ld.PoseTarget(body, goals), tolerance=DISTANCE, angle_tolerance=ANGLE,
                                     unreached="ignore")

    reach()
    start = time.perf_counter()
    found = reach()
    seconds = (time.perf_counter() - start) / len(goals)
    return (len(goals), int(np.count_nonzero(found.reached)),
            float(np.abs(ld.closure_error(robot, found.q)).max()), seconds)


def report(results):
    """The section in Markdown."""
    lines = [(name, MISSING if reached is None else f"{reached} of {results['count']}", _milliseconds(median),
              _milliseconds(mean)) for name, reached, median, mean in results["rows"]]
    count, reached, seconds = results["batches"]
    closed = [(name, f"{found} of {poses}", f"{error:.1e}", _milliseconds(seconds))
              for name, poses, found, error, seconds in results["closed"]]
    notes = "".join(f"\nMissing: {peer} ({why}).\n" for peer, why in results["missing"].items())
    text = TEXT.format(count=f"{results['count']:,}", distance=DISTANCE, angle=ANGLE, limit=1e3 * LIMIT)
    return (f"{text}\n{markdown(('solver', 'reached', 'median ms', 'mean ms'), lines)}\n"
            f"\nA batch of {count:,} in one thread: {reached:,} reached, {1e6 * seconds:.0f} us each.\n{notes}\n"
            "Closed chains, poses of closed configurations; no other library takes them.\n\n"
            f"{markdown(('robot', 'reached', 'largest closure error', 'ms each'), closed)}\n")


def _milliseconds(seconds):
    return MISSING if seconds is None else f"{1e3 * seconds:.3g}"
