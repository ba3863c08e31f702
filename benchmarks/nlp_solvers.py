"""The library's own interior-point method beside Ipopt, on ten problems of the documentation and of the tests."""
import time
import warnings

import numpy as np

import liedyn as ld
from benchmarks.errors import MissingPeer
from benchmarks.tables import markdown

TITLE = "Nonlinear programs of optimal motions: the library's solver and Ipopt"

TEXT = """The same programs of `ld.optimize_motion` on fixed meshes, exact derivatives for both: `solver="liedyn"` and
`solver="ipopt"` (CasADi's wheel: Ipopt with MUMPS), from the same guess to the same tolerances. Seconds are those
of one call in one process. Problems with several minima may end in different ones; the lower cost is in bold where
costs differ by more than 1e-3.
"""


def mass():
    """1 kg on a line, driven by at most 1 N."""
    b = ld.Builder("slider", gravity=(0.0, 0.0, 0.0))
    b.body("mass", mass=1.0)
    b.joint("x", "prismatic", "ground", "mass", axis=(1.0, 0.0, 0.0), effort_limit=1.0)
    b.actuator("force", "x")
    return b.build()


def cart_pole():
    """Kelly 2017, appendix E.1; angle zero where it hangs."""
    b = ld.Builder("cart_pole", gravity=(0.0, 0.0, -9.81))
    b.body("cart", mass=1.0)
    b.body("bob", mass=0.3, com=(0.0, 0.0, -0.5))
    b.joint("x", "prismatic", "ground", "cart", axis=(1.0, 0.0, 0.0), limits=(-2.0, 2.0))
    b.joint("theta", "revolute", "cart", "bob", axis=(0.0, -1.0, 0.0))
    b.actuator("motor", "x")
    return b.build()


def rods(driven, load=0.0, gravity=9.81):
    """Two rods of 1 m and 1 kg, hanging where there is gravity."""
    b, below = ld.Builder("two rods", gravity=(gravity, 0.0, 0.0)), "ground"
    for k in (1, 2):
        b.body(f"rod{k}", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.0, 1 / 12, 1 / 12))
        b.joint(f"q{k}", "revolute", below, f"rod{k}", placement=(float(k > 1), 0.0, 0.0), axis=(0.0, 0.0, 1.0))
        below = f"rod{k}"
    if load:
        b.body("load", mass=load)
        b.joint("grip", "fixed", "rod2", "load", placement=(1.0, 0.0, 0.0))
    for k in driven:
        b.actuator(f"motor{k}", f"q{k}")
    return b.build()


def problems():
    """(name, robot, start, goal, options) of each."""
    up, panda, bar, stewart = [np.pi, 0.0], ld.load("panda"), ld.load("five_bar"), ld.load("stewart")
    turned = panda.home + [0.8, 0.4, -0.3, 0.5, 0.2, -0.4, 0.3]
    lifted = ld.pose(stewart, stewart.home, "platform").copy()
    lifted[:3, 3] += (0.05, -0.03, 0.06)
    yield "mass, least time", mass(), [0.0], [1.0], dict(duration=(0.5, 5.0), cost="time", intervals=20)
    yield "cart-pole, swing-up", cart_pole(), [0.0, 0.0], [1.0, np.pi], dict(
        duration=2.0, bounds={"force:motor": 20.0}, intervals=25)
    yield "two-link arm, least time", rods((1, 2), 1.0, 0.0), [0.0, 0.5], [0.522, 0.5], dict(
        duration=(1.0, 10.0), cost="time", method="shooting", intervals=39,
        bounds={"force:motor1": 1.0, "force:motor2": 1.0})
    yield "acrobot, swing-up", rods((2,)), [0.0, 0.0], up, dict(duration=3.0, intervals=20)
    yield "acrobot, 16 N m", rods((2,)), [0.0, 0.0], up, dict(
        duration=3.0, intervals=20, bounds={"force:motor2": 16.0})
    yield "pendubot, swing-up", rods((1,)), [0.0, 0.0], up, dict(duration=2.0, intervals=20)
    yield "five_bar, least effort", bar, bar.home, ld.close(
        bar, bar.home, q1=bar.home[0] + 0.5, q2=bar.home[1] - 0.3), dict(duration=1.0, intervals=15)
    yield "panda, least effort", panda, panda.home, turned, dict(duration=1.0, intervals=8)
    yield "panda, obstacle", panda, panda.home, ld.PointTarget("panda_hand", (0.45, 0.35, 0.45)), dict(
        duration=1.5, intervals=6, points=3, cost={"velocity": 1.0, "effort": 1e-4},
        path=ld.clearance(panda, "panda_hand", (0.5, 0.17, 0.5), 0.16))
    yield "stewart, shooting", stewart, stewart.home, ld.PoseTarget("platform", lifted), dict(
        duration=0.8, method="shooting", intervals=6, points=3)


def solved(robot, start, goal, options, solver):
    """Cost, iterations, seconds and outcome of one call."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.MotionWarning)  # of meshes that stay as they are
        try:
            motion = ld.optimize_motion(robot, start, goal, tolerance=None, solver=solver, progress=False, **options)
            outcome = motion.outcome
        except ld.OptimizationError as error:
            motion, outcome = error.motion, "failed"
    return {"cost": float(motion.cost), "iterations": int(motion.iterations), "outcome": outcome,
            "seconds": time.perf_counter() - began}


def measure(effort, progress):
    """Both solvers on every problem.

    Returns
    -------
    list of dict
    """
    try:
        import casadi  # noqa: F401
    except ImportError:
        raise MissingPeer("no casadi") from None
    rows = []
    for name, robot, start, goal, options in list(problems())[:1 if effort.quick else None]:
        progress(name)
        for solver in ("liedyn", "ipopt"):
            solved(robot, start, goal, options, ld.NLPSolver(solver, iterations=1))  # compiles
            found = solved(robot, start, goal, options, solver)
            rows.append({"problem": name, "solver": solver, **found, "timings": {solver: [found["seconds"]]}})
    return rows


def report(rows):
    """The section in Markdown."""
    lines = []
    for own, other in zip(rows[::2], rows[1::2]):
        cells = [own["problem"]]
        for each, beside in ((own, other), (other, own)):
            lower = beside["outcome"] == "failed" or each["cost"] < beside["cost"] * (1.0 - 1e-3)
            cost = "failed" if each["outcome"] == "failed" else f"{each['cost']:.6g}"
            cells += [f"**{cost}**" if lower and cost != "failed" else cost, str(each["iterations"]),
                      f"{each['seconds']:.2f}"]
        lines.append(tuple(cells))
    heads = ("problem", "liedyn: cost", "iterations", "seconds", "Ipopt: cost", "iterations", "seconds")
    return f"{TEXT}\n" + markdown(heads, lines)
