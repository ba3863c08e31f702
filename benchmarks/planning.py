"""Plans by differential dynamic programming: a panda beside crocoddyl, and model-predictive control of the loader.

`python -m benchmarks --sections planning`; the peer comes with the extra `bench`.
"""
import subprocess
import sys
import time
import warnings

import numpy as np

import liedyn as ld
from benchmarks.errors import MissingPeer
from benchmarks.tables import markdown, microseconds

TITLE = "Optimal motion by differential dynamic programming"
STEPS, QUICK_STEPS, H = 100, 20, 0.01
ROUNDS, QUICK_ROUNDS = 20, 9
FEW, MORE = 1, 4
"""Iterations of two searches whose times differ by what iterations take, without what each search takes once."""
HAND = "panda_hand_tcp"
RUNNING, FINAL, STATE, INPUT = 1.0, 1e3, 1e-2, 1e-5
"""Weights as crocoddyl has them: of (1/2 |residual|^2), times the step but at the end."""
TORQUE = 25.0
"""Limit of the second problem [N m]."""

PROBE = """
import crocoddyl, numpy, pinocchio
state = crocoddyl.StateMultibody(pinocchio.buildSampleModelManipulator())
cost, last, M = crocoddyl.CostModelSum(state), state.pinocchio.nframes - 1, pinocchio.SE3(numpy.eye(4))
for name, residual in (("place", crocoddyl.ResidualModelFrameTranslation(state, last, M.translation)),
                       ("turn", crocoddyl.ResidualModelFrameRotation(state, last, M.rotation))):
    cost.addCost(name, crocoddyl.CostModelResidual(state, residual), 1.0)
model = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, crocoddyl.ActuationModelFull(state), cost)
steps = [crocoddyl.IntegratedActionModelEuler(model, h) for h in (0.01, 0.0)]
problem = crocoddyl.ShootingProblem(state.zero(), [steps[0]] * 5, steps[1])
u = [numpy.zeros(state.nv)] * 5
x = problem.rollout(u)
assert numpy.isfinite([problem.calc(x, u), problem.calcDiff(x, u)]).all()
"""
"""Wheels of crocoddyl do not say which Pinocchio they were built with; with another one they end the process."""

TEXT = """A panda reaches for a pose: {steps} semi-implicit Euler steps of {h:g} s, running and terminal costs of the
hand's place and orientation, of the state and of the torques, the same for both; from rest, with the torques that hold
the start. Time on the wall of a whole search, and of one more iteration, which is the difference of searches that are
ended after {few} and after {more}, by their number: median (lower and upper quartile) of {rounds}, each in one thread.
crocoddyl is its wheel's C++: FDDP without limits, BoxFDDP with those of torques, to its default tolerance (1e-9 on the
gradient); liedyn to 1e-9 of the cost. The lower cost is the better plan.
"""


def problem():
    """Robot, start, goal of the hand, and the torques that hold the start."""
    panda = ld.load("panda")
    q = panda.home.copy()
    goal = ld.pose(panda, q + np.array([0.6, 0.3, -0.2, 0.4, 0.3, -0.2, 0.5]), HAND)
    return panda, q, goal, ld.rnea(panda, q, np.zeros(7), np.zeros(7))


def measure(effort, progress):
    """Plan with each solver.

    Returns
    -------
    dict
        "rows": solver, limits, iterations, cost, largest torque, timings; "control": of the loader; "trot": of solo12;
        "missing".
    """
    steps, rounds = (QUICK_STEPS, QUICK_ROUNDS) if effort.quick else (STEPS, ROUNDS)
    rows, missing = [], {}
    for limit in (None, TORQUE):
        for name, make in (("liedyn", _own), ("crocoddyl", _crocoddyl)):
            progress(f"{name}, {'no limits' if limit is None else f'{limit:g} N m'}")
            try:
                rows.append({"solver": name, "limit": limit} | _timed(make(steps, limit), rounds))
            except MissingPeer as error:
                missing[name] = str(error)
                rows.append({"solver": name, "limit": limit, "iterations": None, "cost": None, "torque": None,
                             "timings": {"search": None, "iteration": None}})
    progress("loader")
    return {"steps": steps, "rounds": rounds, "rows": rows, "missing": missing,
            "control": _control(1.0 if effort.quick else 3.0), "trot": _trot(rounds, 0.2 if effort.quick else 0.8)}


def _timed(solve, rounds):
    """What a solver finds, and how long it takes."""
    found, times = solve(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of searches that are ended
        for _ in range(rounds):
            times.append([_seconds(solve, iterations) for iterations in (500, FEW, MORE)])
    times = np.array(times)
    return found | {"timings": {"search": list(np.percentile(times[:, 0], (50, 25, 75))), "iteration": list(
        np.percentile((times[:, 2] - times[:, 1]) / (MORE - FEW), (50, 25, 75)))}}


def _seconds(solve, iterations):
    start = time.perf_counter()
    solve(iterations)
    return time.perf_counter() - start


def _own(steps, limit):
    panda, q, goal, hold = problem()
    # half of the step and of the weights, as there is neither a factor 1/2 nor a step in ours
    run, end = np.sqrt(0.5 * H * RUNNING), np.sqrt(0.5 * FINAL)
    cost = ld.Cost(Q=0.5 * H * STATE, R=0.5 * H * INPUT, q=q, u=hold, terminal_Q=0.5 * STATE,
                   targets=ld.PoseTarget(HAND, goal, weight=run, orientation_weight=run),
                   terminal_targets=ld.PoseTarget(HAND, goal, weight=end, orientation_weight=end))
    limits = None if limit is None else ld.Limits(inputs=(-limit, limit))
    start = np.tile(hold, (steps, 1))

    def solve(iterations=500):
        plan = ld.ddp(panda, q, np.zeros(7), cost, steps, H, limits=limits, method="euler", start=start,
                      iterations=iterations)
        return {"iterations": plan.iterations, "cost": plan.cost, "torque": float(np.abs(plan.u).max())}

    return solve


def _crocoddyl(steps, limit):
    try:
        import crocoddyl
        import pinocchio
    except ImportError as error:
        raise MissingPeer(f"not installed ({error.name})") from None
    if subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=False).returncode:
        raise MissingPeer(f"crashes with Pinocchio {pinocchio.__version__}, for which its wheel was not built")
    panda, q, goal, hold = problem()
    model = ld.to_pinocchio(panda)[0]
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFull(state)
    frame, M = model.getFrameId(HAND), pinocchio.SE3(goal)
    x = np.concatenate([q, np.zeros(7)])

    def costs(reach):
        total = crocoddyl.CostModelSum(state)
        for name, residual, weight in (
                ("place", crocoddyl.ResidualModelFrameTranslation(state, frame, M.translation), reach),
                ("turn", crocoddyl.ResidualModelFrameRotation(state, frame, M.rotation), reach),
                ("state", crocoddyl.ResidualModelState(state, x), STATE),
                ("input", crocoddyl.ResidualModelControl(state, hold), INPUT)):
            total.addCost(name, crocoddyl.CostModelResidual(state, residual), weight)
        return total

    run, end = (crocoddyl.IntegratedActionModelEuler(crocoddyl.DifferentialActionModelFreeFwdDynamics(
        state, actuation, costs(reach)), h) for reach, h in ((RUNNING, H), (FINAL, 0.0)))
    if limit is not None:
        run.u_lb, run.u_ub = np.full(7, -limit), np.full(7, limit)
    shooting = crocoddyl.ShootingProblem(x, [run] * steps, end)
    shooting.nthreads = 1
    solver = (crocoddyl.SolverFDDP if limit is None else crocoddyl.SolverBoxFDDP)(shooting)
    inputs = [hold if limit is None else np.clip(hold, -limit, limit)] * steps

    kept = model, state, actuation, run, end  # the wheel's solvers do not keep what they are made of

    def solve(iterations=500):
        assert kept
        solver.solve(shooting.rollout(inputs), inputs, iterations, True)
        return {"iterations": solver.iter + 1, "cost": solver.cost, "torque": float(np.abs(solver.us).max())}

    return solve


def _control(duration):
    """Model-predictive control of the loader at 100 Hz: times of the calls, and where it comes to."""
    loader = ld.load("loader")
    goal, rest = ld.close(loader, loader.home, boom=0.35, bucket=-0.3), np.zeros(8)
    weights = {"boom": 100.0, "bucket": 100.0, "velocity:boom": 1.0, "velocity:bucket": 1.0}
    cost = ld.Cost(Q=weights, R=1e-11, q=goal, u=ld.inverse_dynamics(loader, goal, rest, [0.0, 0.0]).u,
                   terminal_Q={name: 10.0 * x for name, x in weights.items()})
    limits = ld.Limits(inputs=(-2e5, 2e5), speeds={"lift_rod": (-0.25, 0.25)})
    mpc, times, given = ld.MPC(loader, loader.home, rest, cost, 50, 0.02, limits=limits), [], []

    def controller(t, q, v):
        start = time.perf_counter()
        given.append(mpc(t, q, v))
        times.append(time.perf_counter() - start)
        return given[-1]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tr = ld.simulate(loader, loader.home, rest, duration, dt=2e-3, u=ld.Sampled(controller, 0.01), progress=False)
    return {"calls": len(times), "force": float(np.abs(given).max()),
            "speed": float(np.abs(tr["velocity:lift_rod"]).max()),
            "error": float(max(abs(tr["boom"][-1] - 0.35), abs(tr["bucket"][-1] + 0.3))),
            "timings": {"first": [times[0]] * 3, "later": list(np.percentile(times[1:], (50, 25, 75))),
                        "worst": [max(times[1:])] * 3}}


def _standing():
    """solo12 on four feet that touch the ground with friction: robot, configuration, feet, torques that hold it."""
    b, bodies = ld.Builder.of(ld.load("solo12")), ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
    feet = [name.lower() for name in bodies]
    for foot, body in zip(feet, bodies):
        b.constraint(foot, "on_plane", "ground", body, unilateral=True, friction=0.8)
    solo = b.build()
    q = solo.neutral.copy()
    for body in bodies:
        bend = 0.8 if body[0] == "F" else -0.8
        q[solo.coordinate_index(f"{body[:2]}_HFE")], q[solo.coordinate_index(f"{body[:2]}_KFE")] = bend, -2.0 * bend
    q[6] -= ld.pose(solo, q, bodies[0])[2, 3]
    G = ld.constraint_jacobian(solo.switched(dict.fromkeys(feet, "sticking")), q)
    forces = np.hstack([np.eye(solo.nv)[:, 6:], -G.T])
    return solo, q, feet, np.linalg.lstsq(forces, ld.rnea(solo, q, *np.zeros((2, solo.nv))), rcond=None)[0][:12]


def _trot(rounds, duration):
    """A quadruped trots: one more iteration of a plan, with friction cones and without; and control at 100 Hz."""
    solo, q, feet, hold = _standing()
    names, rest = solo.velocity_names, np.zeros(solo.nv)
    weights = {name: 1.0 if k < 6 else 2e-2 for k, name in enumerate(names)}
    weights |= {f"velocity:{name}": 0.05 if k < 6 else 1e-3 for k, name in enumerate(names)}
    gait = [ld.Phase(feet, 6), ld.Phase(feet[::3], 14), ld.Phase(feet, 6), ld.Phase(feet[1:3], 14)]

    def cost(t):
        goal, v = q.copy(), rest.copy()
        goal[4], v[4] = 0.2 * t, 0.2
        return ld.Cost(Q=weights, R=1e-3, q=goal, v=v, u=hold, terminal_Q={k: 10.0 * w for k, w in weights.items()})

    timings, knots = {}, sum(phase.steps + 1 for phase in gait)
    start = np.tile(q, (knots, 1)), np.zeros((knots, solo.nv))
    for name, contacts in ("free", False), ("cones", True):
        def solve(iterations, contacts=contacts):
            ld.ddp(solo, q, rest, cost(0.0), gait, 0.01, limits=ld.Limits(contacts=contacts), start=start, penalty=1e-2,
                   iterations=iterations)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of searches that are ended
            solve(1)
            parts = [[_seconds(solve, iterations) for iterations in (FEW, MORE)] for _ in range(rounds)]
        timings[name] = list(np.percentile(np.diff(parts, axis=1) / (MORE - FEW), (50, 25, 75)))
    mpc, times = ld.MPC(solo, q, rest, cost, 40, 0.01, method="midpoint", schedule=gait, iterations=3), []

    def controller(t, q, v):
        begun = time.perf_counter()
        u = mpc(t, q, v)
        times.append(time.perf_counter() - begun)
        return u

    tr = ld.simulate(solo, q, rest, duration, dt=2e-3, u=ld.Sampled(controller, 0.01), progress=False)
    return {"calls": len(times), "way": float(tr.q[-1, 4]), "lowest": float(tr.q[:, 6].min() / q[6]),
            "timings": timings | {"later": list(np.percentile(times[1:], (50, 25, 75)))}}


def report(results):
    """The section in Markdown."""
    lines = [TEXT.format(steps=results["steps"], h=H, rounds=results["rounds"], few=FEW, more=MORE)]
    rows = []
    for row in results["rows"]:
        times = row["timings"]
        if row["cost"] is None:
            rows.append([row["solver"], "", results["missing"][row["solver"]], "", "", "", ""])
            continue
        rows.append([row["solver"], "none" if row["limit"] is None else f"{row['limit']:g} N m", f"{row['cost']:.8g}",
                     f"{row['torque']:.2f}", str(row["iterations"]), microseconds(times["search"]),
                     microseconds(times["iteration"])])
    lines.append(markdown(["solver", "limits", "cost", "largest torque [N m]", "iterations", "search [us]",
                           "one more iteration [us]"], rows))
    control = results["control"]
    later, worst = control["timings"]["later"], control["timings"]["worst"]
    lines.append(
        f"Model-predictive control of the loader, 50 steps of 20 ms ahead, {control['calls']} calls at 100 Hz, "
        f"eight iterations each at most: a call takes {1e3 * later[0]:.2f} ms, the slowest {1e3 * worst[0]:.2f} ms on "
        f"the wall. Forces of the cylinders stay within {control['force']:.6g} N; the lift cylinder, limited to "
        f"0.25 m/s, moves at {control['speed']:.4f} m/s at most; at the end boom and bucket are "
        f"{control['error']:.1e} rad from where they should be.")
    trot = results["trot"]
    lines.append(
        "A quadruped trots (`solo12`, 18 degrees of freedom, four feet with friction; 40 midpoint steps of 10 ms in "
        "four phases): one more iteration takes "
        f"{microseconds(trot['timings']['free'])} us without limits of contact forces and "
        f"{microseconds(trot['timings']['cones'])} us within friction cones. Control along that schedule, three "
        f"iterations a call, {trot['calls']} calls in a simulation with contacts: a call takes "
        f"{1e3 * trot['timings']['later'][0]:.1f} ms; it comes {trot['way']:.3f} m far, and no lower than "
        f"{trot['lowest']:.0%} of its height.")
    return "\n\n".join(lines) + "\n"
