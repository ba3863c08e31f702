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
from benchmarks.tables import MISSING, markdown, microseconds

TITLE = "Inverse kinematics"
COUNT, QUICK_COUNT, BATCH = 1000, 20, 10_000
ROUNDS = 5
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
time on the wall, reached or not: median (lower and upper quartile), mean. mink and pink take steps of their quadratic
programs (daqp) with joint limits until they are there, or their time is over; the best of three dampings each. liedyn:
calls one by one, without random restarts (its own reflections begin where the one start has led) and with the 20 of
the default.
"""


def poses(count):
    panda = ld.load("panda")
    return panda, ld.pose(panda, ld.random_configuration(panda, rng=0, size=count), HAND)


def measure(effort, progress):
    """Reach all poses.

    Returns
    -------
    dict
        "rows": solver, number reached, mean time, timings; "closed": robot, poses, number reached, closure error,
        timings; "batch" the same; "missing".
    """
    count, missing, rows = QUICK_COUNT if effort.quick else COUNT, {}, []
    panda, there = poses(count)
    for name, restarts in (("liedyn, one start", 0), ("liedyn", 20)):
        progress(name)
        rows.append({"solver": name} | _timed(there, _own(panda, restarts)))
    for name, make in (("mink", _mink), ("pink", _pink)):
        progress(name)
        try:
            tries = [_timed(there, make(panda, damping)) for damping in DAMPINGS]
            rows.append({"solver": name} | max(tries, key=lambda each: (each["reached"], -each["mean"])))
        except MissingPeer as error:
            missing[name] = str(error)
            rows.append({"solver": name, "reached": None, "mean": None, "timings": {"each": None}})
    progress("batch")
    many = np.resize(there, (count if effort.quick else BATCH, 4, 4))
    return {"count": count, "rows": rows, "missing": missing, "batch": _batch(panda, HAND, many),
            "closed": [_closed(name, body, max(count // 10, 5), progress) for name, body in CLOSED.items()]}


def _timed(there, reach):
    """How many are reached, and times."""
    reach(there[0])
    times, reached = [], 0
    for goal in there:
        start = time.perf_counter()
        reached += bool(reach(goal))
        times.append(time.perf_counter() - start)
    return {"reached": reached, "mean": np.mean(times), "timings": {"each": list(np.percentile(times, (50, 25, 75)))}}


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


def _batch(robot, body, goals):
    """How many of all at once are reached, the largest closure error, and time for each."""
    def reach():
        return ld.inverse_kinematics(robot, ld.PoseTarget(body, goals), tolerance=DISTANCE, angle_tolerance=ANGLE,
                                     unreached="ignore")

    found, times = reach(), []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        reach()
        times.append((time.perf_counter() - start) / len(goals))
    error = np.abs(ld.closure_error(robot, found.q)).max() if robot.row_names else 0.0
    return {"poses": len(goals), "reached": int(np.count_nonzero(found.reached)), "error": float(error),
            "timings": {"each": list(np.percentile(times, (50, 25, 75)))}}


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
    """`_batch` of poses of closed configurations."""
    progress(name)
    robot, rng = ld.load(name), np.random.default_rng(0)
    goals = ld.pose(robot, np.array([closed_walk(robot, rng) for _ in range(count)]), body)
    return {"robot": name} | _batch(robot, body, goals)


def report(results):
    """The section in Markdown."""
    lines = [(row["solver"], MISSING if row["reached"] is None else f"{row['reached']} of {results['count']}",
              microseconds(row["timings"]["each"]), MISSING if row["mean"] is None else f"{1e6 * row['mean']:.0f}")
             for row in results["rows"]]
    closed = [(row["robot"], f"{row['reached']} of {row['poses']}", f"{row['error']:.1e}",
               microseconds(row["timings"]["each"])) for row in results["closed"]]
    notes = "".join(f"\nMissing: {peer} ({why}).\n" for peer, why in results["missing"].items())
    text = TEXT.format(count=f"{results['count']:,}", distance=DISTANCE, angle=ANGLE, limit=1e3 * LIMIT)
    batch = results["batch"]
    return (f"{text}\n{markdown(('solver', 'reached', 'us each', 'mean'), lines)}\n{notes}"
            f"\nA batch of {batch['poses']:,} poses in one thread: {batch['reached']:,} reached, "
            f"{microseconds(batch['timings']['each'])} us each.\n\n"
            "Closed chains, batches of poses that closed configurations have; mink and pink do not close loops.\n\n"
            f"{markdown(('robot', 'reached', 'largest closure error', 'us each'), closed)}\n")
