"""Construction of programs: the first one from a guess, and others about a known motion, on its mesh or another."""
from typing import NamedTuple

import numpy as np

from liedyn.machine.errors import InputError
from liedyn.machine.memory import require_memory
from liedyn.machine.progress import Progress
from liedyn.tasks.optimal_motion import guess as guessing
from liedyn.tasks.optimal_motion.between_nodes import leaps
from liedyn.tasks.optimal_motion.charts import LeftChartError, charts_about
from liedyn.tasks.optimal_motion.collocation import Collocation
from liedyn.tasks.optimal_motion.optimal_motion_result import inside
from liedyn.tasks.optimal_motion.program import Program
from liedyn.tasks.optimal_motion.shooting import Shooting
from liedyn.tasks.optimal_motion.solving import Options

PRODUCTS, BLOCKS = 20.0, 20.0
"""Number of arrays of second derivatives and of blocks of the Jacobian that exist at once, measured with a panda and
rounded up."""
FINER_STARTS = 3
"""Number of times that the first mesh is halved if the guess is outside the charts about its knots."""


class Setting(NamedTuple):
    """Options for the construction and solution of programs."""

    method: str
    points: int
    solver: str
    options: Options
    progress: Progress


def _transcription(robot, method, points, mesh, q):
    charts = charts_about(robot, q)
    nodes = (len(mesh) - 1) * (points - 1 if method == "collocation" else 1) + 1
    x, nu, equations = charts.sizes[1], len(robot.actuator_names), robot.nv + len(robot.row_names)
    require_memory(f"the program of {robot.name!r} in {len(mesh) - 1} intervals with {points} points each",
                   8.0 * nodes * (x + nu) * (PRODUCTS * equations * x + BLOCKS * points * (x + nu)))
    return Collocation(charts, mesh, points) if method == "collocation" else Shooting(charts, mesh, points)


def first_within_charts(robot, setting, mesh, demands, cost, seconds, guess):
    """`first`, on finer meshes if the guess leaves a chart within an interval."""
    for left in range(FINER_STARTS, -1, -1):
        try:
            program, z = first(robot, setting, mesh, demands, cost, seconds, guess)
            leaping = leaps(program, z)
            if not leaping.any():
                return program, z
        except LeftChartError:
            if not left:
                raise
        mesh = halved(mesh)
    raise LeftChartError(np.flatnonzero(leaping))


def halved(mesh):
    """The knots of a mesh and the midpoints of its intervals."""
    return np.sort(np.append(mesh, 0.5 * (mesh[1:] + mesh[:-1])))


def first(robot, setting, mesh, demands, cost, seconds, guess):
    """The program, and the unknowns of a first guess."""
    if hasattr(guess, "_plan") and guess._plan is not None:
        if guess.robot != robot.name or guess.q.shape[1] != robot.nq:
            raise InputError(f"the guess is a motion of {guess.robot!r}, not of {robot.name!r}")
        demands = demands._replace(shift=guessing.whole_turns(robot, guess.q, demands.shift))
        return resampled(robot, setting, mesh, demands, cost, guess._plan, seconds)
    if guess is None and demands.shift is not None and demands.shift.any():
        guess = guessing.turn(robot, guessing.way_points(robot, demands.conditions, None, mesh[:1])[0], demands.shift)
    q = guessing.way_points(robot, demands.conditions, guess, mesh)
    demands = demands._replace(shift=guessing.whole_turns(robot, q, demands.shift))
    if q.shape[1] != robot.nq:
        raise InputError(f"the guess has {q.shape[1]} coordinates, {robot.name!r} has {robot.nq}")
    for part, each in demands.conditions:  # there the reference is the configuration itself
        if each.q is not None:
            q[np.argmin(np.abs(mesh - part))] = each.q
    transcription = _transcription(robot, setting.method, setting.points, mesh, q)
    charts, layout, part = transcription.charts, transcription.layout, transcription.part
    q = guessing.way_points(robot, demands.conditions, guess, part)
    ends = [(int(np.argmin(np.abs(part - at))), each.v) for at, each in demands.conditions if each.v is not None]
    x = guessing.coordinates(charts, transcription.chart, part, q, seconds, ends)
    u, least = guessing.first_inputs(charts, transcription.chart, part, x, seconds)
    u = u[:layout.inputs]
    program = Program(transcription, demands, cost, _scale_of(u, demands, least), seconds)
    return program, np.clip(layout.joined(x, u, seconds), program.low, program.high)


def again(program, z, mesh):
    """The program with charts about the motion of z, on the same mesh or another; and the unknowns of that motion."""
    t = program.transcription
    plan = t, z, program.evaluate(z).motion
    points = t.points if t.name == "collocation" else t.steps
    return resampled(t.charts.robot, Setting(t.name, points, "", None, None), mesh, program.demands, program.cost, plan,
                     z[-1])


def recentred(program, z):
    """The program with charts about the knots of z, on the same mesh, and the unknowns of the same nodes."""
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


def resampled(robot, setting, mesh, demands, cost, plan, seconds):
    """The program about a known motion, on another mesh, and the unknowns of that motion."""
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


def _scale_of(u, demands, least=0.0):
    """Sizes of the inputs; at least `least` for inputs without limits."""
    size = np.maximum(np.abs(u).max(axis=0, initial=0.0), least)
    most = np.abs(demands.of_inputs).max(axis=1)
    size = np.where(np.isfinite(most), np.minimum(np.maximum(size, 0.1 * most), most), size)
    return np.where(size > 1e-3 * size.max(initial=0.0), size, max(size.max(initial=0.0), 1e-3))


def mesh_of(intervals, parts):
    """Knots at the times of conditions, and evenly spaced ones in between, `intervals` in all."""
    fixed = np.unique(np.concatenate([[0.0, 1.0], parts]))
    shares = np.maximum(1, np.round(np.diff(fixed) * intervals).astype(int))
    return np.concatenate([*(np.linspace(a, b, n, endpoint=False) for a, b, n in zip(fixed, fixed[1:], shares)), [1.0]])


def first_duration(limits, guess):
    """The duration of the guess if it has one, else a value between the limits."""
    if getattr(guess, "duration", None) is not None and not limits[0] == limits[1]:
        return float(np.clip(guess.duration, *limits))
    return float(np.sqrt(limits[0] * limits[1]))
