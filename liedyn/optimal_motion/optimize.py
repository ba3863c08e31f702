"""Optimal motions of mechanisms: the public function, and how program, meshes and charts follow one another."""
import time
import warnings
from typing import NamedTuple

import numpy as np

from liedyn.arguments import flag, floats, non_negative, positive, require_robot, whole
from liedyn.contact.watching import watches
from liedyn.errors import ConditionWarning, InputError, LiedynError, shown, suggestion
from liedyn.optimal_motion import guess as guessing
from liedyn.optimal_motion import interior_point, ipopt_solver, scipy_solver
from liedyn.optimal_motion.charts import LeftChartError, charts_about
from liedyn.optimal_motion.collocation import Collocation
from liedyn.optimal_motion.conditions import condition
from liedyn.optimal_motion.cost import Cost
from liedyn.optimal_motion.functions import PathFunction
from liedyn.optimal_motion.limits import Own, limits, places_of
from liedyn.optimal_motion.program import Demands, Program
from liedyn.optimal_motion.refinement import finer, interval_errors
from liedyn.optimal_motion.result import OptimizationError, inside, optimal_motion
from liedyn.optimal_motion.shooting import Shooting
from liedyn.optimal_motion.solving import Options, Problem
from liedyn.simulation.progress import Progress

SOLVERS = {"liedyn": interior_point.solve, "scipy": scipy_solver.solve, "ipopt": ipopt_solver.solve}
METHODS = "collocation", "shooting"
NEW_CHARTS, NEW_MESHES = 20, 8
"""How often charts may move to where the iterates are, and meshes get finer."""
MOST_INTERVALS = 2000
RESCALED = 0.1
"""A cost below this part of the first one is scaled anew, so that tolerances mean the same; one of which the first
was such a part, too, where the solver did not get further with it."""


class Setting(NamedTuple):
    """How a program is made and solved."""

    method: str
    points: int
    solver: str
    options: Options
    progress: Progress


def optimize_motion(robot, start, goal=None, duration=1.0, cost=None, bounds=None, limits=True, path=(), via=(),
                    periodic=False, guess=None, method="collocation", intervals=10, points=4, solver="liedyn",
                    tolerance=1e-6, feasibility=1e-8, optimality=1e-6, iterations=500, settings=None, progress=None):
    """The motion of least cost from start to goal, for trees and closed mechanisms, by direct methods on the manifold.

    Parameters
    ----------
    robot : Robot
        Its actuators drive it. Constraints are in force as it has them switched; none may move with time or be
        one-sided.
    start, goal : array_like, dict, Target, tuple
        Where the motion begins and ends: a configuration (nq,) [rad, m; quaternions (x, y, z, w)], at rest; coordinates
        by name, of the tree or of cut joints, ``{"boom": 0.3}``, and rates, ``{"velocity:boom": 0.1}``, at rest if no
        rate is named; or one or several targets of `inverse_kinematics`, at rest. A pair (one of these, velocity)
        gives the velocity (nv,) [rad/s, m/s], 0 for rest, or None for any. No goal: the end is free.
    duration : float or tuple
        Length of the motion [s], or limits (low, high) where it is free.
    cost : str or dict, optional
        What is integrated, by name: ``"effort"``: u^T R u with a number, a diagonal (nu,) or a matrix R;
        ``"time"``: a number; ``"velocity"``: v^T W v; ``"posture"``: (W, q) with d^T W d of the difference d from a
        configuration q; ``"function"``: a `PathFunction` with one value. ``"terminal"``: a `PathFunction` with one
        value, at the end. A name alone stands for the weight one. Default: ``"effort"``.
    bounds : dict, optional
        Limits (low, high), or a number for both signs, of coordinates ``"boom"`` and rates ``"velocity:boom"`` of the
        tree or of cut joints, forces ``"force:lift"`` and powers ``"power:lift"`` of actuators. They count at nodes.
    limits : bool
        Keep the limits of coordinates, speeds and efforts that the robot declares, too.
    path : PathFunction or sequence of PathFunction
        Limits along the motion, such as `clearance` from an obstacle; they count at nodes.
    via : sequence of tuple
        Conditions (part, what) on the way, ``part`` of the duration between 0 and 1; ``what`` as for the start, but
        with any velocity where none is given.
    periodic : bool or dict
        The end is the start once more: state and inputs. A dict says by how much coordinates go on, such as
        ``{"crank": 2 * numpy.pi}``.
    guess : Trajectory, OptimalMotion or array_like, shape (k, nq), optional
        A motion to begin with (a warm start), or configurations that it passes. Default: from condition to condition
        along the manifold.
    method : {"collocation", "shooting"}
        Lobatto collocation, with inputs that are polynomials of each interval and continuous; or multiple shooting with
        inputs that are held in each interval.
    intervals : int
        How many intervals the first mesh has, of equal lengths but for the times of `via`.
    points : int
        Points of collocation in each interval, its ends included: 3 is Hermite-Simpson, 4 and 5 are of order 6 and 8.
        For shooting the steps of Runge-Kutta's method in each interval.
    solver : {"liedyn", "scipy", "ipopt"}
        SciPy's trust-region interior-point method, or Ipopt as CasADi's wheel brings it (``liedyn[optimize]``).
    tolerance : float or None
        Largest error of an interval, see ``errors`` of `OptimalMotion`: those that are worse are divided, and the
        program is solved again from there. None: the mesh stays as it is.
    feasibility : float
        Largest violation of a row of the program.
    optimality : float
        Largest component of the gradient of the scaled Lagrangian.
    iterations : int
        Most iterations of the solver on each mesh.
    settings : dict, optional
        Further options of the solver, by its own names.
    progress : bool, optional
        A bar with the iterations, as for `simulate`.

    Returns
    -------
    OptimalMotion
        A `Trajectory` with inputs ``u``, ``cost``, ``duration``, multipliers and errors.

    Raises
    ------
    InputError
        An argument that does not fit, an unknown name, or a robot that moves with time or has one-sided constraints.
    ClosureError
        A loop is open at start or goal.
    OptimizationError
        The solver stopped elsewhere: at its limit of iterations, or where constraints contradict each other. It names
        the rows that are violated most, where and by how much, and has the best motion so far.

    Notes
    -----
    The unknowns are coordinates in tangent-space charts of the constraint manifold, one about each knot (Bordalba,
    Schoels, Ros, Porta and Diehl 2023): no constraint is an equation of the program, none drifts, and nothing is
    singular where the actuators' coordinates are. First derivatives are exact, sparse, and those of `linearize`; the
    Hessian is that of Gauss and Newton for the cost, and is learnt node by node for the dynamics.
    If the solver's iterates leave their charts, these move with them.

    Minima are local: other guesses may lead to others.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> goal = ld.close(arm, arm.home, q1=arm.home[0] + 0.2, q2=arm.home[1])
    >>> motion = ld.optimize_motion(arm, arm.home, goal, duration=0.5, intervals=4)
    >>> motion.outcome, bool(motion.position_residual.max() < 1e-10)
    ('converged', True)
    """
    began = time.monotonic()
    require_robot(robot)
    setting = _setting(method, points, solver, feasibility, optimality, iterations, settings, progress)
    tolerance = None if tolerance is None else positive("tolerance", tolerance)
    intervals = whole("intervals", intervals, 1)
    demands = _demands(robot, start, goal, duration, bounds, limits, path, via, periodic)
    cost = Cost(robot, cost)
    mesh = _mesh(intervals, [part for part, _ in demands.conditions])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)  # of iterates; the result is looked at again
        seconds = _first_duration(demands.duration, guess)
        try:
            program, z = _first(robot, setting, mesh, demands, cost, seconds, guess)
            return _improve(program, z, setting, tolerance, began)
        except LeftChartError as error:
            raise OptimizationError(
                f"the guess for {robot.name!r} moves so far within an interval that its states are in no chart about "
                "the knots (a dead centre between them, or a ball that turns by more than a quarter): begin with more "
                "intervals, or with a guess") from error
        finally:
            setting.progress.close()


def _improve(program, z, setting, tolerance, began):
    """Solve, and solve again on finer meshes, until all intervals are accurate."""
    iterations, warm = 0, False
    for _ in range(NEW_MESHES):
        program, z, found = _solve(program, z, setting._replace(options=setting.options._replace(warm=warm)))
        iterations += found["iterations"]
        ok = found.pop("ok")
        errors = interval_errors(program, z) if ok else np.full(len(program.transcription.mesh) - 1, np.nan)
        found |= {"errors": errors, "iterations": iterations, "time": time.monotonic() - began}
        if not ok:
            raise _failure(program, z, found, f"{setting.solver!r} stopped ({found['outcome']})")
        motion = optimal_motion(program, z, z[-1], found)
        if tolerance is None or errors.max() <= tolerance:
            return motion
        mesh = finer(program.transcription, errors, tolerance)
        if len(mesh) > MOST_INTERVALS:
            break
        program, z = _again(program, z, mesh)
        warm = True
    raise OptimizationError(
        f"the motion of {motion.robot!r} is optimal on {len(errors)} intervals, but its error {errors.max():.2g} "
        f"there is above tolerance={tolerance:g} after {NEW_MESHES} meshes: begin with more intervals or points",
        motion)


def _solve(program, z, setting):
    """Solve on one mesh; charts move to the best iterate where iterates leave them."""
    iterations, options = 0, setting.options
    for _ in range(NEW_CHARTS):
        problem = Problem(program, z, options.feasibility, setting.progress.show)
        left = options._replace(iterations=max(options.iterations - iterations, 1))
        x, of_c, of_x, count, status, ok = SOLVERS[setting.solver](problem, problem.start(z), left)
        iterations += count
        x = problem.polished(x)
        if problem.violation(problem.values(x)[1]) > max(options.feasibility, problem.violation(
                problem.values(problem.best)[1])):
            x = problem.best
        z = problem.whole(x)
        size = program.evaluate(z).cost / problem.cost_scale
        rescaled = size < RESCALED or not ok and size > 1.0 / RESCALED
        if (ok or not problem.failures) and not rescaled or iterations >= options.iterations:
            break
        program, z = _recentred(program, z)
    violation = problem.violation(problem.values(x)[1])
    of_c, slope, slack = problem.refined(x, of_c, of_x)
    optimal = max(slope, slack) <= options.optimality
    found = {"outcome": "converged" if optimal else status, "iterations": iterations,
             "ok": (ok or optimal) and violation <= options.feasibility, "violation": violation,
             "optimality": max(slope, slack), "solver": setting.solver,
             "cost": float(program.evaluate(z).cost), "multipliers": of_c * problem.cost_scale,
             "row_labels": tuple(f"{name} at {part * z[-1]:.6g} s" for name, part in program.labels)}
    return program, z, found


def _failure(program, z, found, what):
    """The error with what is violated most, and the motion there."""
    beyond, _ = program.violations(z)
    worst = np.argsort(-beyond)[:5]
    rows = {found["row_labels"][k]: float(beyond[k]) for k in worst if beyond[k] > 0.0}
    text = ", ".join(f"{name} by {x:.3g}" for name, x in list(rows.items())[:3])
    try:
        motion = optimal_motion(program, z, z[-1], found)
    except LiedynError:  # its accelerations do not exist
        motion = None
    told = f"; violated: {text}" if found["violation"] > 1e-8 else (
        f"; all constraints hold, but the gradient of the Lagrangian is {found['optimality']:.2g}")
    return OptimizationError(f"no optimal motion of {program.transcription.charts.robot.name!r}: {what} after "
                             f"{found['iterations']} iterations{told}. The best motion so far is in the error's "
                             "`motion`; guess= goes on from there", motion, rows)


def _transcription(robot, method, points, mesh, q):
    charts = charts_about(robot, q)
    return Collocation(charts, mesh, points) if method == "collocation" else Shooting(charts, mesh, points)


def _first(robot, setting, mesh, demands, cost, seconds, guess):
    """The program, and the unknowns of a first guess."""
    if hasattr(guess, "_plan") and guess._plan is not None:
        if guess.robot != robot.name or guess.q.shape[1] != robot.nq:
            raise InputError(f"the guess is a motion of {guess.robot!r}, not of {robot.name!r}")
        return _resampled(robot, setting, mesh, demands, cost, guess._plan, seconds)
    q = guessing.way_points(robot, demands.conditions, guess, mesh)
    if q.shape[1] != robot.nq:
        raise InputError(f"the guess has {q.shape[1]} coordinates, {robot.name!r} has {robot.nq}")
    for part, each in demands.conditions:  # the reference there is the configuration itself
        if each.q is not None:
            q[np.argmin(np.abs(mesh - part))] = each.q
    transcription = _transcription(robot, setting.method, setting.points, mesh, q)
    charts, layout, part = transcription.charts, transcription.layout, transcription.part
    q = guessing.way_points(robot, demands.conditions, guess, part)
    x = guessing.coordinates(charts, transcription.chart, part, q, seconds)
    u = guessing.first_inputs(charts, transcription.chart, part, x, seconds)[:layout.inputs]
    program = Program(transcription, demands, cost, _scale_of(u, demands), seconds)
    return program, np.clip(layout.joined(x, u, seconds), program.low, program.high)


def _again(program, z, mesh):
    """The program with charts about the motion of z, on the same mesh or another one, and the same motion there."""
    t, setting = program.transcription, program
    plan = t, z, program.evaluate(z).motion
    points = t.points if t.name == "collocation" else t.steps
    return _resampled(t.charts.robot, Setting(t.name, points, "", None, None), mesh, setting.demands, setting.cost,
                      plan, z[-1])


def _recentred(program, z):
    """The program with charts about the knots of z, on the same mesh, and the same nodes there."""
    t = program.transcription
    x, u, seconds = t.layout.split(z)
    q, v = t.charts.states(t.chart, x)
    knots = q[t.knots]
    for part, each in program.demands.conditions:
        if each.q is not None:
            knots[np.argmin(np.abs(t.mesh - part))] = each.q
    points = t.points if t.name == "collocation" else t.steps
    transcription = _transcription(t.charts.robot, t.name, points, t.mesh, knots)
    again = Program(transcription, program.demands, program.cost, _scale_of(u, program.demands), seconds)
    z = t.layout.joined(transcription.charts.read(t.chart, q, v), u, seconds)
    return again, np.clip(z, again.low, again.high)


def _resampled(robot, setting, mesh, demands, cost, plan, seconds):
    q = inside(plan, mesh)[0]
    for part, each in demands.conditions:
        if each.q is not None:
            q[np.argmin(np.abs(mesh - part))] = each.q
    transcription = _transcription(robot, setting.method, setting.points, mesh, q)
    layout = transcription.layout
    q, v, u = inside(plan, transcription.part)
    x = transcription.charts.read(transcription.chart, q, v * plan[1][-1] / seconds)
    program = Program(transcription, demands, cost, _scale_of(u, demands), seconds)
    return program, np.clip(layout.joined(x, u[:layout.inputs], seconds), program.low, program.high)


def _scale_of(u, demands):
    """Sizes of the inputs."""
    size = np.abs(u).max(axis=0, initial=0.0)
    most = np.abs(demands.of_inputs).max(axis=1)
    size = np.where(np.isfinite(most), np.minimum(np.maximum(size, 0.1 * most), most), size)
    return np.where(size > 1e-3 * size.max(initial=0.0), size, max(size.max(initial=0.0), 1e-3))


def _mesh(intervals, parts):
    """Knots at the times of conditions, and between them as many as asked for altogether, evenly."""
    fixed = np.unique(np.concatenate([[0.0, 1.0], parts]))
    shares = np.maximum(1, np.round(np.diff(fixed) * intervals).astype(int))
    return np.concatenate([*(np.linspace(a, b, n, endpoint=False) for a, b, n in zip(fixed, fixed[1:], shares)), [1.0]])


def _setting(method, points, solver, feasibility, optimality, iterations, settings, progress):
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"unknown method {shown(method)}, {suggestion(method, METHODS)}")
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise InputError(f"unknown solver {shown(solver)}, {suggestion(solver, SOLVERS)}")
    points = whole("points", points, 1)
    if method == "collocation" and not 3 <= points <= 10:
        raise InputError(f"collocation takes 3 to 10 points in an interval, got {points}")
    if settings is not None and not (isinstance(settings, dict) and all(isinstance(key, str) for key in settings)):
        raise InputError(f"settings must be a dict of the solver's options by name, got {shown(settings)}")
    if solver == "scipy":
        scipy_solver.check_settings(settings or {})
    elif solver == "liedyn":
        interior_point.check_settings(settings or {})
    else:
        ipopt_solver.require_casadi()
    options = Options(whole("iterations", iterations, 1), positive("optimality", optimality),
                      positive("feasibility", feasibility), dict(settings or {}), False)
    return Setting(method, points, solver, options, Progress(progress, 0, options.iterations, "optimize motion", "it"))


def _demands(robot, start, goal, duration, bounds, declared, path, via, periodic):
    if robot.functions or robot.t != 0.0:
        raise InputError(f"{robot.name!r} has constraints that are functions or move with time: motions are optimized "
                         "for fixed constraints of the library's own kinds")
    if watches(robot):
        raise InputError(f"{robot.name!r} has one-sided constraints: switch them to 'sliding' or 'sticking' or off")
    if not robot.actuator_names:
        raise InputError(f"{robot.name!r} has no actuators: nothing can be optimized")
    conditions = [(0.0, condition(robot, "start", start, True))]
    for each in _sequence("via", via):
        if not isinstance(each, (tuple, list)) or len(each) != 2:
            raise InputError(f"via has pairs (part of the duration, what), got {shown(each)}")
        part = non_negative("the part of a via", each[0])
        if not 0.0 < part < 1.0:
            raise InputError(f"the part of a via is between 0 and 1, got {part:g}")
        conditions.append((part, condition(robot, "via", each[1], False)))
    if goal is not None:
        conditions.append((1.0, condition(robot, "goal", goal, True)))
    if bounds is not None and not isinstance(bounds, dict):
        raise InputError(f"bounds must be a dict by name, got {shown(bounds)}")
    rows, of_inputs = limits(robot, bounds or {}, flag("limits", declared))
    nu = len(robot.actuator_names)
    for each in (path,) if isinstance(path, PathFunction) else _sequence("path", path):
        if not isinstance(each, PathFunction):
            raise InputError(f"path has PathFunctions, got {shown(each)}")
        rows.append(Own(each, (0.0, robot.home, np.zeros(robot.nv), np.zeros(nu))))
    return Demands(rows, of_inputs, _duration(duration), conditions, _shift(robot, periodic))


def _sequence(name, x):
    if not isinstance(x, (list, tuple)):
        raise InputError(f"{name} must be a list, got {shown(x)}")
    return x


def _duration(given):
    x = floats("duration", given)
    if x.shape == ():
        x = np.array([x, x])
    if x.shape != (2,) or not np.isfinite(x).all() or not 0.0 < x[0] <= x[1]:
        raise InputError(f"duration must be positive, or (low, high), got {shown(given)}")
    return float(x[0]), float(x[1])


def _first_duration(limits, guess):
    if getattr(guess, "duration", None) is not None and not limits[0] == limits[1]:
        return float(np.clip(guess.duration, *limits))
    return float(np.sqrt(limits[0] * limits[1]))


def _shift(robot, periodic):
    if isinstance(periodic, dict):
        shift = np.zeros(robot.nv)
        for name, x in periodic.items():
            if name not in robot.velocity_names or places_of(robot)[robot.velocity_index(name)] < 0:
                raise InputError(f"unknown coordinate {shown(name)} of periodic, "
                                 f"{suggestion(name, robot.coordinate_names)}")
            shift[robot.velocity_index(name)] = floats(f"periodic {name!r}", x)
        return shift
    return np.zeros(robot.nv) if flag("periodic", periodic) else None
