"""Optimal motions: in charts of the manifold, and by collocation that ignores it."""
import time

import numpy as np

import liedyn as ld
from benchmarks.tables import markdown
from liedyn.tasks.optimal_motion.charts import Charts
from liedyn.tasks.optimal_motion.collocation import Collocation
from liedyn.tasks.optimal_motion.demands import condition
from liedyn.tasks.optimal_motion.cost import MotionCost
from liedyn.tasks.optimal_motion.dynamics import Motion
from liedyn.tasks.optimal_motion.guess import coordinates, way_points
from liedyn.tasks.optimal_motion.program import Demands, Program
from liedyn.tasks.optimal_motion.scipy_solver import solve
from liedyn.tasks.optimal_motion.solving import Options, Problem

TITLE = "Optimal motions on the manifold and beside it"
MESHES, POINTS = (5, 10, 20), 3
STEP = 1e-5
"""Of central differences: the derivatives of what ignores the manifold need be right to the solver's tolerance only."""

TEXT = """Least effort of the five-bar with its four joints driven, q1 by 0.5 and q2 by -0.3 rad in one second, from
rest to rest, Hermite-Simpson. "charts": `ld.optimize_motion`. "all coordinates": the same collocation of all joint
angles and speeds, with accelerations that keep the constraints' second derivative zero, and nothing projected, by SciPy
with a Hessian that is learnt, as there is no other without the manifold; start closed, goal by q1, q2 and their speeds,
which is all that it can be asked without contradictions. Drift: the largest closure error [m] at the nodes. Error of
the cost: relative to that of order eight on forty intervals.
"""


class Open(Charts):
    """All coordinates of the tree as if there were no constraints."""

    def configurations(self, k, y, start=None):
        """q itself."""
        return self.q[k] + y

    def velocities(self, k, q, w):
        """v itself."""
        return w


class OpenCollocation(Collocation):
    """Collocation of accelerations that know of the constraints."""

    @staticmethod
    def motion_at(charts, k, q, v, u):
        """The motion with derivatives by differences, as the library has those on the manifold only."""
        robot, n, count = charts.robot, charts.robot.nv, len(q)

        def a(q, v, u):
            return ld.forward_dynamics(robot, q, v, u @ robot.tree_actuators.T).a

        one = STEP * np.eye(n)
        by = [np.stack([(a(*plus) - a(*minus)) / (2.0 * STEP) for plus, minus in pairs], axis=2) for pairs in (
            [((q + e, v, u), (q - e, v, u)) for e in one], [((q, v + e, u), (q, v - e, u)) for e in one],
            [((q, v, u + e), (q, v, u - e)) for e in STEP * np.eye(u.shape[1])])]
        N, X = np.tile(np.eye(n), (count, 1, 1)), np.tile(np.eye(n, 2 * n, n), (count, 1, 1))
        return Motion(q, v, u, a(q, v, u), np.zeros((count, 0)), N, X, np.concatenate(by[:2], axis=2), by[2])


def problem():
    """Robot, start, goal and duration."""
    robot = ld.load("five_bar")
    return robot, robot.home, ld.close(robot, robot.home, q1=robot.home[0] + 0.5, q2=robot.home[1] - 0.3), 1.0


def ignoring(intervals):
    """Cost, drift, iterations and seconds of collocation that ignores the manifold."""
    robot, start, goal, duration = problem()
    began = time.perf_counter()
    held = {"q1": goal[0], "q2": goal[1], "velocity:q1": 0.0, "velocity:q2": 0.0}
    conditions = [(0.0, condition(robot, "start", start, True)), (1.0, condition(robot, "goal", held, True))]
    mesh = np.linspace(0.0, 1.0, intervals + 1)
    one = np.tile(np.eye(robot.nv), (intervals + 1, 1, 1))
    nodes = [(0.0, conditions[0][1]), (1.0, condition(robot, "goal", goal, True))]
    charts = Open(robot, np.tile(start, (intervals + 1, 1)), one, one, ())
    t = OpenCollocation(charts, mesh, POINTS)
    q = way_points(robot, nodes, None, t.part)
    x, free = coordinates(charts, t.chart, t.part, q, duration), np.tile([-np.inf, np.inf], (robot.nv, 1))
    demands = Demands([], free, (duration,) * 2, conditions, None)
    program = Program(t, demands, MotionCost(robot, None), np.full(4, 10.0), 1.0)
    program.is_exact, program.known[:] = False, False  # second derivatives are known on the manifold only
    z = np.clip(t.layout.joined(x, np.zeros((t.layout.inputs, 4)), duration), program.low, program.high)
    options = Options(300, 1e-6, 1e-8, {}, False)
    made = Problem(program, z, options.feasibility)
    made.cost_scale = 400.0
    found = solve(made, made.start(z), options)
    z = made.whole(found[0])
    drift = np.abs(ld.closure_error(robot, program.evaluate(z).motion.q)).max()
    return program.evaluate(z).cost, float(drift), found[3], time.perf_counter() - began


def measure(effort, progress):
    """Both ways on every mesh.

    Returns
    -------
    list of dict
    """
    robot, start, goal, duration = problem()
    fine = ld.optimize_motion(robot, start, goal, duration=duration, intervals=40, points=5, tolerance=None,
                              progress=False)
    rows = []
    for intervals in MESHES[:1] if effort.quick else MESHES:
        progress(f"{intervals} intervals")
        motion = ld.optimize_motion(robot, start, goal, duration=duration, intervals=intervals, points=POINTS,
                                    tolerance=None, progress=False)
        for name, cost, drift, iterations, seconds in (
                ("charts", motion.cost, motion.position_residual.max(), motion.iterations, motion.time),
                ("all coordinates", *ignoring(intervals))):
            rows.append({"intervals": intervals, "method": name, "cost": float(cost), "drift": float(drift),
                         "error": abs(float(cost) / fine.cost - 1.0), "iterations": int(iterations),
                         "timings": {"liedyn": [float(seconds)]}})
    return rows


def report(rows):
    """The section in Markdown."""
    lines = [(str(row["intervals"]), row["method"], f"{row['cost']:.5f}", f"{row['error']:.1e}", f"{row['drift']:.1e}",
              str(row["iterations"]), f"{row['timings']['liedyn'][0]:.2f}") for row in rows]
    heads = ("intervals", "method", "cost", "error of the cost", "drift", "iterations", "seconds")
    return f"{TEXT}\n" + markdown(heads, lines)
