"""Targets of a robot, packed for kernels."""
import math
from dataclasses import dataclass

import numpy as np

from liedyn.machine.arguments import floats
from liedyn.machine.compiled.user_functions import Function, raise_errors
from liedyn.machine.errors import InputError, said, shown
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.tree.kinematics import world_positions
from liedyn.model.calls.batches import batch
from liedyn.model.calls.boundary import states
from liedyn.model.kinds import JOINTS, are_lengths
from liedyn.model.packed import LINK_IQ, LINK_IV, LINK_PRIMITIVE, PackedModel, links_of
from liedyn.model.remembered import remembered
from liedyn.tasks.reaching.goals import weight_of
from liedyn.tasks.reaching.reaching_problem import FINE, Problem, room_for
from liedyn.tasks.reaching.target_rows import (
    CENTER_OF_MASS, CUSTOM, DIRECTION, GOAL, LEVEL, ORIENTATION, POINT, RECORD, ROW, ROWS, PackedTargets, target_errors,
    target_rows,
)
from liedyn.tasks.reaching.targets import GROUND, Target

NAMES = {ORIENTATION: "orientation", POINT: "point", DIRECTION: "direction", CENTER_OF_MASS: "center_of_mass"}


@dataclass(frozen=True)
class Packed:
    """Targets of a robot.

    Attributes
    ----------
    problem : Problem
    goals : ndarray, shape (..., GOAL t)
    rows : dict
        Slice of the rows, by name of a target.
    functions : dict
        Functions of users' own targets.
    """

    problem: Problem
    goals: np.ndarray
    rows: dict
    functions: dict


def pack(robot, targets, tolerance=1e-6, angle_tolerance=1e-6, limits=True, fixed=None):
    """`Packed` targets, in the order of their levels of priority."""
    targets = sorted(targets, key=lambda each: each.priority)
    records, vectors, goals, weights, tolerances, ends, rows, functions = [], [], [], [], [], {}, {}, {}
    levels = sorted({each.priority for each in targets})
    row = 0
    for target in targets:
        parts, first, level = target.parts, row, levels.index(target.priority)
        name = _name(target, parts, rows)
        for part in parts:
            if part.kind == CENTER_OF_MASS and robot.massless:
                raise InputError(f"{robot.name!r} has no centre of mass: nothing that moves has a mass")
            body = GROUND if part.body is None else robot.body_index(part.body)
            reference = GROUND if part.reference in (None, "ground") else robot.body_index(part.reference)
            records.append([part.kind, body, reference, row, 3, level, 0, 0])
            vectors.append(part.vector)
            goals.append(part.goal)
            weights.append(part.weight)
            tolerances.append(target.tolerance or (angle_tolerance if part.is_angle else tolerance))
            row += 3
        if not parts:
            size, error, jacobian = _own_functions(robot, target, name)
            functions |= {error.what: error, jacobian.what: jacobian}
            records.append([CUSTOM, GROUND, GROUND, row, size, level, error.address, jacobian.address])
            vectors.append(np.zeros(3))
            goals.append(np.zeros(3))
            weights.append(weight_of(target, "weight", size))
            tolerances.append(target.tolerance or tolerance)
            row += size
        rows[name], ends[level] = slice(first, row), row
    records, weights = np.array(records, np.int64).reshape(-1, RECORD), np.concatenate(weights)
    problem = Problem(records, np.concatenate(vectors), weights, np.array(tolerances), np.array(list(ends.values())),
                      _floors(records, weights, tolerances, len(levels)), *limits_of(robot, limits, fixed))
    return Packed(problem, _goals(goals), rows, functions)


def _name(target, parts, known):
    """A name that no other target has."""
    name = target.name
    if name is None:
        name = type(target).__name__ if not parts else "pose" if len(parts) > 1 else NAMES[parts[0].kind]
        name += f":{parts[0].body}" if parts and parts[0].body else ""
    elif name in known:
        raise InputError(f"two targets are called {shown(name)}")
    count, found = 1, name
    while found in known:
        count += 1
        found = f"{name}#{count}"
    return found


def _own_functions(robot, target, name):
    """Number of rows of a user's target, and its two methods as C functions."""
    if type(target).error is Target.error or type(target).jacobian is Target.jacobian:
        raise InputError(f"target {shown(name)} needs the methods error(robot, q) and jacobian(robot, q)")
    try:
        size = floats("error", target.error(robot, robot.home.copy())).size
    except Exception as error:
        raise InputError(f"error of target {shown(name)} fails with {said(error)}") from error
    sample = {"t": robot.t, "q": robot.home}
    return (size, Function(f"error of target {name!r}", lambda t, q: target.error(robot, q), sample, ((size,),)),
            Function(f"jacobian of target {name!r}", lambda t, q: target.jacobian(robot, q), sample,
                     ((size, robot.nv),)))


def _floors(records, weights, tolerances, levels):
    """Squared weighted errors that count as zero, by level: a fraction of those at the tolerances."""
    floors = np.zeros(levels)
    for record, tolerance in zip(records.tolist(), tolerances):
        used = [w for w in weights[record[ROW]:record[ROW] + record[ROWS]].tolist() if w > 0.0]
        size = min(used, default=0.0) * tolerance
        floors[record[LEVEL]] += FINE * size * size  # not a power, which would raise an error on overflow
    return floors


def _goals(goals):
    """Goals of all targets side by side, with broadcast leading axes."""
    try:
        lead = np.broadcast_shapes(*(goal.shape[:-1] for goal in goals))
    except ValueError:
        shapes = ", ".join(str(goal.shape[:-1]) for goal in goals)
        raise InputError(f"leading axes of the targets do not broadcast: {shapes}") from None
    found = np.zeros((*lead, GOAL * len(goals)))
    for t, goal in enumerate(goals):
        found[..., GOAL * t:GOAL * t + goal.shape[-1]] = goal
    return found


def limits_of(robot, limits=True, fixed=None):
    """`places`, `fixed`, `lower`, `upper` and `are_lengths` of a `Problem`, by velocity coordinate."""
    places, lower, upper, lengths = _limits(robot)
    fixed = np.zeros(robot.nv, np.int64) if fixed is None else fixed
    return places if limits else np.full(robot.nv, -1), fixed, lower, upper, lengths


@remembered
def _limits(robot):
    places, lower, upper = np.full(robot.nv, -1), np.full(robot.nv, -np.inf), np.full(robot.nv, np.inf)
    for link in links_of(robot.packed)[0]:
        kind = JOINTS[link[LINK_PRIMITIVE]]
        for k in range(0 if kind.has_quaternion else kind.nv):
            j, place = link[LINK_IV] + k, link[LINK_IQ] + k
            if robot.lower[place] > -np.inf or robot.upper[place] < np.inf:
                places[j], lower[j], upper[j] = place, robot.lower[place], robot.upper[place]
    return places, lower, upper, are_lengths(robot).astype(np.int64)


@batch
def target_states(begin, end, model, q, goals, problem, found):
    """found = errors (count, r) and rows (count, r, nv) of targets at each q."""
    errors, J = found
    model = PackedModel(model.ints, model.floats.copy())
    room = room_for(model, problem.weights.size, problem.ends.size)
    for b in range(begin, end):
        world_positions(SCALAR, model, q[b], room.world)
        targets = PackedTargets(problem.records, problem.constants, goals[b])
        target_errors(model, q[b], room.world, room.masses, targets, errors[b])
        target_rows(model, q[b], room.world, room.masses, targets, errors[b], J[b])


def evaluate_packed(robot, packed, lead, q):
    """Errors and rows at rows of q, with the common leading shape of q and targets."""
    shape = np.broadcast_shapes(lead, packed.goals.shape[:-1])
    count, r = math.prod(shape), packed.problem.weights.size
    q = np.broadcast_to(q.reshape((*lead, robot.nq)), (*shape, robot.nq)).reshape(count, robot.nq)
    goals = np.broadcast_to(packed.goals, (*shape, packed.goals.shape[-1])).reshape(count, packed.goals.shape[-1])
    errors, J = np.empty((count, r)), np.empty((count, r, robot.nv))
    target_states(robot.packed, q.copy(), goals.copy(), packed.problem, (errors, J))
    raise_errors(packed.functions)
    return errors.reshape((*shape, r)), J.reshape((*shape, r, robot.nv))


def evaluate(robot, target, q):
    """Error and Jacobian of one target."""
    lead, q = states(robot, q=q)
    return evaluate_packed(robot, pack(robot, (target,)), lead, q)
