"""Optimal motions of mechanisms: the public function, and the sequence of programs, meshes and charts."""
# mypy: ignore-errors

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import positive, require_robot, whole
from liedyn.machine.errors import ConditionWarning, InputError, LiedynError, shown, suggestion
from liedyn.machine.memory import TooLargeError
from liedyn.machine.progress import Progress
from liedyn.tasks.optimal_motion import interior_point
from liedyn.tasks.optimal_motion.between_nodes import LOOSE, intervals_beyond, leaps
from liedyn.tasks.optimal_motion.charts import LeftChartError
from liedyn.tasks.optimal_motion.cost import MotionCost
from liedyn.tasks.optimal_motion.demands import (
    at_rest, conditions_of, demands_of, require_optimizable, require_possible,
)
from liedyn.tasks.optimal_motion.nlp_solver import SOLVERS, nlp_solver
from liedyn.tasks.optimal_motion.optimal_motion_result import ROWS, MotionWarning, OptimizationError, optimal_motion
from liedyn.tasks.optimal_motion.programs import (
    Setting, again, first_duration, first_within_charts, halved, mesh_of, recentred, resampled,
)
from liedyn.tasks.optimal_motion.refinement import finer, interval_errors
from liedyn.tasks.optimal_motion.solving import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from liedyn.model.robot import Robot
    from liedyn.tasks.optimal_motion.path_functions import PathFunction
    from liedyn.tasks.optimal_motion.nlp_solver import NLPSolver
    from liedyn.tasks.optimal_motion.optimal_motion_result import OptimalMotion
    from liedyn.tasks.reaching.targets import Target
    from liedyn.motion.simulation.trajectory import Trajectory
    from liedyn.typing import ArrayLike

METHODS = "collocation", "shooting"
NEW_CHARTS, NEW_MESHES = 20, 8
"""Largest number of changes of the charts, and of refinements of the mesh."""
MOST_INTERVALS = 2000
RESCALED = 0.1
"""A cost below this part of the first one is scaled anew, so that tolerances keep their meaning; and a first cost that
is such a part, if the solver stopped with it."""


def optimize_motion(robot: Robot, start: ArrayLike | dict[str, Any] | Target | tuple[Any, ...],
                    goal: ArrayLike | dict[str, Any] | Target | tuple[Any, ...] | None = None,
                    duration: float | tuple[Any, ...] = 1.0, cost: str | dict[str, Any] | None = None,
                    bounds: dict[str, Any] | None = None, limits: bool = True,
                    path: PathFunction | Sequence[PathFunction] = (), via: Sequence[tuple[Any, ...]] = (),
                    periodic: bool | dict[str, Any] = False,
                    guess: Trajectory | OptimalMotion | ArrayLike | None = None,
                    method: Literal["collocation", "shooting"] = "collocation", intervals: int = 10, points: int = 4,
                    tolerance: float | None = 1e-6, solver: str | NLPSolver = "liedyn",
                    progress: bool | None = None) -> OptimalMotion:
    """The motion of least cost from start to goal, for trees and closed mechanisms, by direct methods on the manifold.

    Parameters
    ----------
    robot : Robot
        It is driven by its actuators. Constraints are active as they are switched; none may depend on time or be
        one-sided.
    start, goal : array_like, dict, Target, tuple
        First and last state: a configuration (nq,) [rad, m; quaternions (x, y, z, w)], at rest; coordinates
        by name, of the tree or of cut joints, ``{"boom": 0.3}``, and rates, ``{"velocity:boom": 0.1}``, at rest if no
        rate is named; or one or several targets of `inverse_kinematics`, at rest. A pair (one of these, velocity)
        gives the velocity (nv,) [rad/s, m/s], 0 for rest, or None for any. Without a goal the end is free.
    duration : float or tuple
        Duration of the motion [s], or limits (low, high) if it is free.
    cost : str or dict, optional
        Terms of the integrand, by name: ``"effort"``: u^T R u with a number, a diagonal (nu,) or a matrix R;
        ``"time"``: a number; ``"velocity"``: v^T W v; ``"posture"``: (W, q) with d^T W d of the difference d from a
        configuration q; ``"function"``: a `PathFunction` with one value. ``"terminal"``: a `PathFunction` with one
        value, at the end. A name alone means weight one. Default: ``"effort"``.
    bounds : dict, optional
        Limits (low, high), or a number for both signs, of coordinates ``"boom"`` and rates ``"velocity:boom"`` of the
        tree or of cut joints, forces ``"force:lift"`` and powers ``"power:lift"`` of actuators. They are imposed at
        nodes.
    limits : bool
        True to impose also the limits of coordinates, speeds and efforts that the robot declares.
    path : PathFunction or sequence of PathFunction
        Limits along the motion, such as `clearance` from an obstacle; they are imposed at nodes.
    via : sequence of tuple
        Intermediate conditions (part, what), with ``part`` of the duration between 0 and 1; ``what`` as for the start,
        but with any velocity if none is given.
    periodic : bool or dict
        True if state and inputs at the end equal those at the start. A dict gives the amounts by which coordinates
        increase, such as ``{"crank": 2 * numpy.pi}``.
    guess : Trajectory, OptimalMotion or array_like, shape (k, nq), optional
        A motion as initial guess (a warm start, with the multipliers of its limits, if it nearly solves this
        problem), or configurations on the way. Default: from condition to condition along the manifold.
    method : {"collocation", "shooting"}
        Lobatto collocation, with continuous inputs that are polynomials in each interval; or multiple shooting with
        constant inputs in each interval.
    intervals : int
        Number of intervals of the first mesh, of equal length except for the times of `via`.
    points : int
        Collocation points in each interval, including its ends: 3 is Hermite-Simpson, 4 and 5 are of order 6 and 8.
        For shooting the number of Runge-Kutta steps in each interval.
    tolerance : float or None
        Largest error of an interval, see ``errors`` of `OptimalMotion`: intervals with a larger error are divided, and
        the program is solved again from there. So are intervals in which a coordinate, a speed or a path function
        exceeds its limits between nodes by more than 0.1 %, as long as that helps. Forces that jump, as those of
        motions in least time, want many intervals: take 1e-3 there. None: the mesh is not refined.
    solver : str or NLPSolver
        ``"liedyn"``, the library's own interior-point method, ``"scipy"``, or ``"ipopt"`` (``liedyn[optimize]``); with
        options an `NLPSolver`, such as ``ld.NLPSolver("ipopt", iterations=50)``.
    progress : bool, optional
        A progress bar with the iterations, as for `simulate`.

    Returns
    -------
    OptimalMotion
        A `Trajectory` with inputs ``u``, ``cost``, ``duration``, multipliers and errors.

    Raises
    ------
    InputError
        An argument does not fit, a name is unknown, or the robot depends on time or has one-sided constraints; or
        the program needs more memory than there is; the message gives the amount.
    ClosureError
        A loop is open at start or goal.
    MotionWarning
        Limits are exceeded between the nodes by more than 0.1 %, see ``excess`` of `OptimalMotion`.
    OptimizationError
        The solver stopped without a solution: at its limit of iterations, or where constraints contradict each other.
        The message names the rows with the largest violations, and the error has the best motion so far.

    Notes
    -----
    The unknowns are coordinates in tangent-space charts of the constraint manifold, one about each knot (Bordalba,
    Schoels, Ros, Porta and Diehl 2023): constraints are no equations of the program and do not drift, and singularities
    of the actuators' coordinates are no singularities of the charts. First derivatives are exact, sparse, and those of
    `linearize`. The
    Hessian of the Lagrangian is exact for collocation, by second variations of the equations of motion. It is
    approximated from gradients (symmetric rank-one updates) for shooting, for users' functions and targets, and for
    robots with custom constraints or users' laws of force elements.
    If the solver's iterates leave their charts, these move with them.

    Memory is proportional to the number of nodes of the mesh, whether the duration is free or not, and to the third
    power of the number of coordinates: about half a megabyte per node for a panda. A finer mesh that would not fit ends
    the search with an `OptimizationError`, which has the motion so far.

    If no solution is found for a free duration, the motion of least effort in the longest time is computed first, and
    the wanted one from there; ``iterations`` of the solver apply to each of the three searches.

    Minima are local: other guesses may lead to other minima.

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
    setting = _setting(method, points, nlp_solver(solver), progress)
    tolerance = None if tolerance is None else positive("tolerance", tolerance)
    intervals = whole("intervals", intervals, 1)
    require_optimizable(robot)
    conditions = conditions_of(robot, start, goal, via)
    demands = demands_of(robot, conditions, duration, bounds, limits, path, periodic)
    require_possible(robot, demands)
    cost = MotionCost(robot, cost)
    mesh = mesh_of(intervals, [part for part, _ in demands.conditions])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)  # about iterates; the result is checked again
        seconds = first_duration(demands.duration, guess)
        try:
            program, z = first_within_charts(robot, setting, mesh, demands, cost, seconds, guess)
            warm = getattr(guess, "_densities", None) if setting.solver == "liedyn" else None
            if warm and not interior_point.is_near(*_begin(program, z, setting), warm):
                warm = None
            return _improve(program, z, setting, guess, warm, tolerance, began)
        except LeftChartError as error:
            raise OptimizationError(
                f"the guess for {robot.name!r} moves so far within an interval that its states are in no chart about "
                "the knots: a dead centre or a stop between them, a goal in another assembly mode, or a ball that "
                "turns by more than a quarter; or its numbers run away in steps that are too long for stiff springs. "
                "Begin with more intervals, or with guess= configurations on the way"
            ) from error
        finally:
            setting.progress.close()


def _search(program, z, setting):
    """As `_solve`; if no solution is found and the duration is free, from the motion of least effort in the longest
    time, which is easier to find than shorter ones."""
    failed = _solve(program, z, setting)
    demands, t = program.demands, program.transcription
    if failed[-1]["ok"] or demands.duration[0] == demands.duration[1]:
        return failed
    longest, setting = demands.duration[1], setting._replace(options=setting.options._replace(warm=None))
    easier, robot = demands._replace(duration=(longest, longest)), t.charts.robot
    try:
        first = first_within_charts(robot, setting, t.mesh, easier, MotionCost(robot, None), longest, None)
        program, z, found = _solve(*first, setting)
        if not found["ok"]:
            return failed
        t = program.transcription
        plan = t, z, program.evaluate(z).motion
        wanted = _solve(*resampled(robot, setting, t.mesh, demands, failed[0].cost, plan, longest), setting)
    except LeftChartError:
        return failed
    wanted[-1]["iterations"] += failed[-1]["iterations"] + found["iterations"]
    return wanted if wanted[-1]["ok"] else failed


def _improve(program, z, setting, guess, warm, tolerance, began):
    """Solves the program, and again on finer meshes, until all intervals are accurate."""
    iterations, before, motion = 0, np.inf, None
    for _ in range(NEW_MESHES):
        try:
            program, z, found = _search(program, z, setting._replace(options=setting.options._replace(warm=warm)))
        except TooLargeError as error:
            raise _too_large(error, motion) from None
        iterations += found["iterations"]
        ok = found.pop("ok")
        errors = interval_errors(program, z) if ok else np.full(len(program.transcription.mesh) - 1, np.nan)
        found |= {"errors": errors, "iterations": iterations, "time": time.monotonic() - began}
        if not ok:
            raise _failure(program, z, found, f"{setting.solver!r} stopped ({found['outcome']})")
        try:
            leaping = leaps(program, z)
            errors[leaping] = np.inf
            motion, beyond = optimal_motion(program, z, z[-1], found)
            coarse, part = intervals_beyond(beyond, ROWS)
            if tolerance is None and leaping.any():
                break
            if tolerance is None or errors.max() <= tolerance and (not coarse.any() or part > 0.5 * before):
                return _told(motion, beyond)
            before = part  # a mesh that is refined because of limits has to help
            worst = np.where(coarse, np.maximum(errors, 2.0 * tolerance), errors)
            mesh = finer(program.transcription, worst, tolerance)
            if len(mesh) > MOST_INTERVALS:
                break
            program, z = again(program, z, mesh)
            warm = found["_densities"]
        except TooLargeError as error:
            raise _too_large(error, motion) from None
        except LeftChartError as error:
            if tolerance is None:
                raise OptimizationError(
                    f"the motion of {program.transcription.charts.robot.name!r} is optimal at the nodes of "
                    f"{len(errors)} intervals, but leaves the mechanism between them: begin with more intervals"
                ) from error
            # between its knots the motion has left the mechanism, and is no use as a guess
            program, z = first_within_charts(program.transcription.charts.robot, setting, halved(
                program.transcription.mesh), program.demands, program.cost, z[-1], guess)
            warm = None
    what, remedy = f"its error {errors.max():.4g} there is above tolerance={tolerance:g}", ""
    if leaping.any():
        at = motion.knots[leaping.argmax() + 1]
        what = f"leaps at {at:.4g} s to another branch of the mechanism's configurations"
    else:
        remedy = "; or take a larger tolerance where forces jump, as in motions of least time"
        if errors.max() <= tolerance:
            what = f"between its nodes it exceeds limits by {part:.2g} of their size"
    raise OptimizationError(f"the motion of {motion.robot!r} is optimal on {len(errors)} intervals, but {what}: begin "
                            f"with more intervals or points, or with another guess{remedy}", motion)


def _too_large(error, motion):
    """The error if memory is exhausted: the argument on the first mesh, with the motion so far on finer ones."""
    if motion is None:
        return error
    return OptimizationError(f"{error}: the motion of {motion.robot!r} is optimal on {len(motion.errors)} intervals, "
                             f"with errors of {motion.errors.max():.2g}; finer meshes do not fit", motion)


def _told(motion, beyond):
    """The motion, after a warning if it exceeds limits between the nodes."""
    far = beyond.largest(LOOSE)
    if far:
        text = ", ".join(f"{name} by {x:.3g}" for name, x in list(far.items())[:3])
        warnings.warn(f"limits hold at the nodes of the mesh, but between them this motion of {motion.robot!r} exceeds "
                      f"{text}: begin with more intervals, or take inputs that are held, method='shooting'",
                      MotionWarning, stacklevel=4)
    return motion


def _begin(program, z, setting):
    """The program in the form of solvers, and its initial unknowns."""
    problem = Problem(program, z, setting.options.feasibility, setting.progress.show)
    return problem, problem.start(z)


def _solve(program, z, setting):
    """Solves on one mesh; charts move to the best iterate if iterates leave them."""
    iterations, options = 0, setting.options
    for _ in range(NEW_CHARTS):
        problem, start = _begin(program, z, setting)
        left = options._replace(iterations=max(options.iterations - iterations, 1))
        x, of_c, of_x, count, status, ok = SOLVERS[setting.solver](problem, start, left)
        iterations += count
        x = problem.polished(x)
        if problem.violation(problem.values(x)[1]) > max(options.feasibility, problem.violation(
                problem.values(problem.best)[1])):
            x = problem.best
        z = problem.whole(x)
        size = program.evaluate(z).cost / problem.cost_scale
        rescaled = size < RESCALED and problem.scaled_by_start or not ok and size > 1.0 / RESCALED
        if (ok or not problem.failures) and not rescaled or iterations >= options.iterations:
            break
        try:
            program, z = recentred(program, z)
        except LeftChartError:  # the iterates are too far apart for charts about the knots
            break
    violation = problem.violation(problem.values(x)[1])
    of_c, slope, slack = problem.refined(x, of_c, of_x)
    optimal = max(slope, slack) <= options.optimality and violation <= options.feasibility
    found = {"outcome": "converged" if optimal else status, "iterations": iterations,
             "ok": optimal or ok and violation <= options.feasibility, "violation": violation,
             "optimality": max(slope, slack), "solver": setting.solver,
             "cost": float(program.evaluate(z).cost), "multipliers": of_c * problem.cost_scale,
             "_densities": problem.densities(of_c, of_x),
             "row_labels": tuple(f"{name} at {part * z[-1]:.6g} s" for name, part in program.labels)}
    return program, z, found


def _failure(program, z, found, what):
    """The error with the largest violations, and the motion with them."""
    beyond, _ = program.violations(z)
    worst = np.argsort(-beyond)[:5]
    rows = {found["row_labels"][k]: float(beyond[k]) for k in worst if beyond[k] > 0.0}
    text = ", ".join(f"{name} by {x:.3g}" for name, x in list(rows.items())[:3])
    try:
        motion, _ = optimal_motion(program, z, z[-1], found)
    except LiedynError:  # the accelerations of the motion do not exist
        motion = None
    told = f"; violated: {text}{_at_ends(program, z)}" if found["violation"] > 1e-8 else (
        f"; all constraints hold, but the gradient of the Lagrangian is {found['optimality']:.2g}")
    return OptimizationError(f"no optimal motion of {program.transcription.charts.robot.name!r}: {what} after "
                             f"{found['iterations']} iterations{told}. The best motion so far is in the error's "
                             "`motion`; guess= goes on from there", motion, rows)


def _at_ends(program, z):
    """Message about what the actuators cannot do where the motion should be at rest."""
    nodes, found = program.evaluate(z).nodes, ""
    for part, each in program.demands.conditions:
        if each.v is not None and not each.v.any():
            told = at_rest(program.transcription.charts.robot, nodes.q[program.node(part)], program.demands.of_inputs)
            found += f". At {part * z[-1]:.4g} s, {told}" if told else ""
    return found


def _setting(method, points, solver, progress):
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"unknown method {shown(method)}, {suggestion(method, METHODS)}")
    points = whole("points", points, 1)
    if method == "collocation" and not 3 <= points <= 10:
        raise InputError(f"collocation takes 3 to 10 points in an interval, got {points}")
    return Setting(method, points, solver.name, solver.options,
                   Progress(progress, 0, solver.iterations, "optimize motion", "it"))
