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
RESTARTS, STEPS = 20, 60
"""Random starts after the first one, and steps after which the peers begin another."""
CLOSURE = 1e-6
"""Closed is what is as near [m, rad]."""
CLOSED = {"cassie_like": "foot", "stewart": "platform", "loader": "bucket", "delta": "eff"}

TEXT = """{count} reachable poses of the panda's hand (`ld.random_configuration(panda, rng=0)`), each from the home
configuration: reached within {distance:g} m and {angle:g} rad, limits respected; time on the wall, reached or not:
median (lower and upper quartile), mean. mink and pink take steps of their quadratic programs (daqp) with joint limits
until they are there, the best of three dampings each. One start: at most {limit:.0f} ms of steps for each pose; liedyn
makes reflections of its own of where that start has led. With restarts: up to {restarts} more starts at random within
the limits, liedyn by its default, the peers in the same way, each given up after {steps} steps.
"""
CLOSED_TEXT = """Closed chains, poses that closed configurations have, from home, with restarts as above.
mink closes the loops as an `EqualityConstraintTask` beside the frame's, to {closure:g} m; pink has no task for loops.
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
    for more in (0, RESTARTS):
        what = "with restarts" if more else "one start"
        progress(f"liedyn, {what}")
        rows.append({"solver": f"liedyn, {what}"} | _timed(there, _own(panda, HAND, more)))
        for name, make in (("mink", _mink), ("pink", _pink)):
            progress(f"{name}, {what}")
            try:
                tries = [_timed(there, make(panda, HAND, damping, more)) for damping in DAMPINGS]
                rows.append({"solver": f"{name}, {what}"} | max(tries, key=_better))
            except MissingPeer as error:
                missing[name] = str(error)
                rows.append({"solver": f"{name}, {what}", "reached": None, "mean": None, "timings": {"each": None}})
    progress("batch")
    many = np.resize(there, (count if effort.quick else BATCH, 4, 4))
    return {"count": count, "rows": rows, "missing": missing, "batch": _batch(panda, HAND, many),
            "closed": [_closed(name, body, max(count // 10, 5), progress) for name, body in CLOSED.items()]}


def _better(tried):
    return tried["reached"], -tried["mean"]


def _timed(there, reach):
    """How many are reached, and times."""
    reach(there[0])
    times, reached = [], 0
    for goal in there:
        start = time.perf_counter()
        reached += bool(reach(goal))
        times.append(time.perf_counter() - start)
    return {"reached": reached, "mean": np.mean(times), "timings": {"each": list(np.percentile(times, (50, 25, 75)))}}


def _own(robot, body, restarts):
    def reach(goal):
        return ld.inverse_kinematics(robot, ld.PoseTarget(body, goal), restarts=restarts, tolerance=DISTANCE,
                                     angle_tolerance=ANGLE, unreached="ignore").reached

    return reach


def _stepped(robot, restarts, start, step, is_there):
    """Steps from home, and from random configurations if there are `restarts`, until there or given up."""
    def reach(goal):
        rng, end = np.random.default_rng(0), time.perf_counter() + (np.inf if restarts else LIMIT)
        for k in range(restarts + 1):
            start(goal, ld.random_configuration(robot, rng) if k else robot.home.copy())
            steps = 0
            while (steps < STEPS or not restarts) and time.perf_counter() < end:
                if is_there():
                    return True
                if not step():
                    break
                steps += 1
        return False

    return reach


def _is_near(error):
    return np.linalg.norm(error[:3]) <= DISTANCE and np.linalg.norm(error[3:]) <= ANGLE


def _mink(robot, body, damping, restarts):
    try:
        import daqp  # noqa: F401
        import mink
        import mujoco
    except ImportError as error:
        raise MissingPeer(f"not installed ({error.name})") from None
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ModelWarning)  # limits of velocities, which mink does not need here
        path = Path(folder) / "robot.xml"
        ld.save(robot, path)
        model = mujoco.MjModel.from_xml_path(str(path))
    configuration = mink.Configuration(model)
    task = mink.FrameTask(body, "body", position_cost=1.0, orientation_cost=1.0, lm_damping=damping)
    loops = mink.EqualityConstraintTask(model, cost=10.0) if model.neq else None
    tasks, limits = [each for each in (task, loops) if each is not None], [mink.ConfigurationLimit(model)]

    def start(goal, q):
        configuration.update(q)
        task.set_target(mink.SE3.from_matrix(goal))

    def step():
        try:
            v = mink.solve_ik(configuration, tasks, 1.0, "daqp", damping=1e-12, limits=limits)
        except mink.MinkError:
            return False
        configuration.integrate_inplace(v, 1.0)
        return True

    def is_there():
        return _is_near(task.compute_error(configuration)) and (
            loops is None or np.abs(loops.compute_error(configuration)).max(initial=0.0) <= CLOSURE)

    return _stepped(robot, restarts, start, step, is_there)


def _pink(panda, body, damping, restarts):
    try:
        import daqp  # noqa: F401
        import pink
        import pinocchio as pin
        from pink.tasks import FrameTask
    except ImportError as error:
        raise MissingPeer(f"not installed ({error.name})") from None
    model = ld.to_pinocchio(panda)[0]
    data, now = model.createData(), []
    task = FrameTask(body, position_cost=1.0, orientation_cost=1.0, lm_damping=damping)

    def start(goal, q):
        now[:] = [pink.Configuration(model, data, q)]
        task.set_target(pin.SE3(goal))

    def step():
        try:
            v = pink.solve_ik(now[0], [task], 1.0, solver="daqp", damping=1e-12, safety_break=False,
                              limits=[model.configuration_limit])
        except pink.exceptions.PinkError:
            return False
        now[0].integrate_inplace(v, 1.0)
        return True

    return _stepped(panda, restarts, start, step, lambda: _is_near(task.compute_error(now[0])))


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
    """`_batch` of poses of closed configurations; the same one by one, and by mink."""
    progress(name)
    robot, rng = ld.load(name), np.random.default_rng(0)
    goals = ld.pose(robot, np.array([closed_walk(robot, rng) for _ in range(count)]), body)
    found = {"robot": name} | _batch(robot, body, goals) | {"single": _timed(goals, _own(robot, body, RESTARTS))}
    try:
        tries = [_timed(goals, _mink(robot, body, damping, RESTARTS)) for damping in DAMPINGS[:2]]
        found["mink"] = max(tries, key=_better)
    except (MissingPeer, ld.LiedynError) as error:
        found["mink"], found["why"] = None, str(error)
    return found


def report(results):
    """The section in Markdown."""
    lines = [(row["solver"], MISSING if row["reached"] is None else f"{row['reached']} of {results['count']}",
              microseconds(row["timings"]["each"]), MISSING if row["mean"] is None else f"{1e6 * row['mean']:.0f}")
             for row in results["rows"]]
    closed = []
    for row in results["closed"]:
        mink, single = row["mink"], row["single"]["timings"]["each"]
        peer = (MISSING,) * 3 if mink is None else (
            f"{mink['reached']} of {row['poses']}", microseconds(mink["timings"]["each"]),
            f"{mink['timings']['each'][0] / single[0]:.1f}")
        closed.append((row["robot"], f"{row['reached']} of {row['poses']}", f"{row['error']:.1e}",
                       microseconds(row["timings"]["each"]), microseconds(single), *peer))
    notes = "".join(f"\nMissing: {peer} ({why}).\n" for peer, why in results["missing"].items())
    more = "".join(f"\nMissing for {row['robot']}: mink ({row['why']}).\n" for row in results["closed"] if "why" in row)
    text = TEXT.format(count=f"{results['count']:,}", distance=DISTANCE, angle=ANGLE, limit=1e3 * LIMIT,
                       restarts=RESTARTS, steps=STEPS)
    batch, heading = results["batch"], ("robot", "reached", "largest closure error", "us each, batch", "one by one",
                                        "mink reaches", "mink", "mink / one by one")
    return (f"{text}\n{markdown(('solver', 'reached', 'us each', 'mean'), lines)}\n{notes}"
            f"\nA batch of {batch['poses']:,} poses in one thread: {batch['reached']:,} reached, "
            f"{microseconds(batch['timings']['each'])} us each.\n\n"
            f"{CLOSED_TEXT.format(closure=CLOSURE)}\n{markdown(heading, closed)}\n{more}")
