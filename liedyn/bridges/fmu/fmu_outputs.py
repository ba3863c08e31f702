"""Outputs of an FMU: the names that `linearize` takes, as values.

A linear model has the displacement of a body (`liedyn.linear.outputs`), an FMU has its place: "pose:body" is the
position of the body's frame in world axes and its rotation matrix, whose columns are the body's axes. The other outputs
are the same quantities.
"""
from typing import NamedTuple

import numpy as np

from liedyn.bridges.fmu.fmu_states import ANGLE, LENGTH
from liedyn.lie.algebra import Ad_inverse, add, compose, sub6
from liedyn.lie.exponential import inverse
from liedyn.linear.output_rows import ACCELERATION, BODY, CUT, POSITION, TREE, VELOCITY, WRENCH
from liedyn.linear.outputs import output_plan
from liedyn.machine.errors import InputError
from liedyn.machine.program.trace import room
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import reader_rows
from liedyn.mechanics.constraints.constraint_wrenches import loop_wrench_matrix
from liedyn.mechanics.constraints.cut_joints import joint_motion
from liedyn.mechanics.constraints.families.cut import cut_bias_kernel, cut_velocity_kernel
from liedyn.mechanics.tree.kinematics import (
    acceleration_of, body_pose, origin, twist_of, world_accelerations, world_positions, world_size, world_velocities,
)
from liedyn.mechanics.constraints.cut_joints import loop_frames
from liedyn.model.constraint_records import loop_kind, loop_pitch, loop_virtuals
from liedyn.model.kinds import LOOP_KINDS, are_lengths
from liedyn.model.packed_records import body_link, minus_gravity

_PLACE = (".x", ".y", ".z", *(f".R{i}{j}" for i in (1, 2, 3) for j in (1, 2, 3)))


class Output(NamedTuple):
    """One output by name.

    Attributes
    ----------
    what, rate, number : int
        As in the parts of an `OutputPlan`.
    first, rows : int
        Its rows of C and D, before a place is made of a displacement.
    labels : list of str
        Names of its values.
    units : list of str
    """

    what: int
    rate: int
    number: int
    first: int
    rows: int
    labels: list
    units: list


def outputs_of(robot, names, y):
    """The outputs as a list; for None those of the robot, or the coordinates y that are numbers.

    Raises InputError for unknown names, and for what has no value.
    """
    plan = output_plan(robot, robot.outputs if names is None else names, y)
    plan.without_joints("an FMU")
    if plan.contacts:
        name = robot.constraint_names[plan.contacts[0][0]]
        raise InputError(f"'wrench:{name}' is no output of an FMU: only those of cut joints are")
    if len(plan.labels) and not len(plan.parts):
        numbers = map(robot.velocity_index, plan.labels)
        valued = [(name, j) for name, j in zip(plan.labels, numbers) if _has_value(robot, TREE, j)]
        return [_output(robot, (TREE, POSITION, j, k), [name]) for k, (name, j) in enumerate(valued)]
    parts = plan.parts.tolist()
    ends = [row for *_, row in parts[1:]] + [len(plan.labels)]
    found = [_output(robot, part, plan.labels[part[3]:end]) for part, end in zip(parts, ends)]
    labels = [label for each in found for label in each.labels]
    twice = {label for label in labels if labels.count(label) > 1}
    if twice:
        raise InputError(f"output named twice: {min(twice)!r}")
    return found


def _output(robot, part, labels):
    what, rate, number, first = part
    if what == BODY:
        units = [*["m"] * 3, *["1"] * 9] if rate == POSITION else [
            *[ANGLE[rate]] * 3, *[LENGTH[rate]] * 3]
        if rate == POSITION:
            return Output(*part, 6, [labels[0].removesuffix(".wx") + each for each in _PLACE], units)
    elif what == WRENCH:
        units = [*["N.m"] * 3, *["N"] * 3]
    else:
        is_length = are_lengths(robot)[number] if what == TREE else _is_slide(robot, number)
        units = [(LENGTH if is_length else ANGLE)[rate]]
        if rate == POSITION and not _has_value(robot, what, number):
            raise InputError(f"output {labels[0]!r} is a displacement about a rotation, without a value: ask for a "
                             "body's 'pose:', or for the coordinate's velocity")
    return Output(*part, len(labels), list(labels), units)


def _has_value(robot, what, number):
    if what == CUT:
        return not robot.virtual_names[number].endswith((".rx", ".ry", ".rz"))
    return robot.velocity_names[number] in robot.coordinate_names and not any(
        each.startswith(robot.velocity_names[number].rsplit(".", 1)[0] + ".q") for each in robot.coordinate_names)


def _is_slide(robot, number):
    name = robot.virtual_names[number]
    for loop in robot.model.loops:
        kind = LOOP_KINDS[loop.kind]
        for suffix, motion in zip(kind.velocities, kind.motions):
            if f"{loop.name}{suffix}" == name:
                return motion[0] == "v"
    return False


def output_values(programs, plain, at, rows):
    """Values of the outputs, and their variations if `rows` has those of `linearize`: [C D].

    Parameters
    ----------
    programs : FmuPrograms
    plain : callable
    at : tuple
        q, v, accelerations and multipliers.
    rows : ndarray or None
    """
    (q, v, a, lam), model = at, programs.model
    world = room(plain(world_size)(model))
    plain(world_positions)(SCALAR, model, q, world)
    plain(world_velocities)(SCALAR, model, v, world)
    cuts = _cut_accelerations(programs, plain, v, a, world)
    plain(world_accelerations)(SCALAR, model, v, a, world)
    values, variations = [], []
    for each in programs.plan:
        own = None if rows is None else rows[each.first:each.first + each.rows]
        if each.what == BODY:
            found = _of_body(plain, model, world, each)
            own = own if own is None or each.rate != POSITION else _of_place(found, own)
        elif each.what == WRENCH:
            W, of_loop = loop_wrench_matrix(programs.robot, each.number)
            found = W.astype(object) @ lam[of_loop]
        elif each.what == TREE:
            found = [{POSITION: _number(programs.robot, q, each.number), VELOCITY: v[each.number],
                      ACCELERATION: a[each.number]}[each.rate]]
        else:
            found = [_cut_coordinate(programs, plain, each.number, world) if each.rate == POSITION
                     else cuts[each.rate][each.number]]
        values += list(found)
        variations += [] if own is None else list(own)
    made = np.empty(len(values), object)
    made[:] = values
    if rows is None:
        return made, None
    return made, np.array(variations, object).reshape(len(values), rows.shape[1])


def _cut_accelerations(programs, plain, v, a, world):
    """Virtual velocities and accelerations, by their order; {} if there are no such outputs."""
    if not any(each.what == CUT and each.rate != POSITION for each in programs.plan):
        return {}
    nz, n, model = len(programs.robot.virtual_names), programs.n, programs.model
    z_dot, z_ddot, E = room(nz), room(nz), room(nz, n)
    plain(cut_velocity_kernel)(SCALAR, model, world, True, z_dot)
    plain(world_accelerations)(SCALAR, model, v, room(n), world)
    plain(cut_bias_kernel)(model, world, True, z_ddot)
    plain(reader_rows)(SCALAR, model, world, E)
    return {VELOCITY: z_dot, ACCELERATION: z_ddot + E @ a}


def _cut_coordinate(programs, plain, number, world):
    """One virtual coordinate."""
    model = programs.model
    for l in range(len(programs.robot.loop_names)):
        first, count = plain(loop_virtuals)(model, l)
        if first <= number < first + count:
            A, B = plain(loop_frames)(SCALAR, model, world, l)
            T = plain(compose)(plain(inverse)(A), B)
            return plain(joint_motion)(plain(loop_kind)(model, l), plain(loop_pitch)(model, l), T)[0][number - first]


def _number(robot, q, j):
    name = robot.velocity_names[j]
    return q[robot.coordinate_index(name)] if name in robot.coordinate_names else None


def _of_body(plain, model, world, output):
    """Position and rotation, twist, or its rate, of a body."""
    pose, link = plain(body_pose)(SCALAR, model, world, output.number), plain(body_link)(model, output.number)
    if output.rate == POSITION:
        origin_of_all = plain(origin)(SCALAR, model, world)
        return [*plain(add)(origin_of_all, pose[1]), *pose[0]]
    if output.rate == VELOCITY:
        x = plain(twist_of)(SCALAR, world, link)
    else:
        x = plain(sub6)(plain(acceleration_of)(SCALAR, model, world, link), plain(minus_gravity)(SCALAR, model))
    angular, linear = plain(Ad_inverse)(pose, x)
    return [*angular, *linear]


def _of_place(place, rows):
    """Variations of position and rotation matrix, from those of the displacement (rotation, translation)."""
    R, (a, b, c) = np.array(place[3:], object).reshape(3, 3), rows[:3]
    turned = [[c * R[i, 1] - b * R[i, 2], a * R[i, 2] - c * R[i, 0], b * R[i, 0] - a * R[i, 1]] for i in range(3)]
    return [*(R @ rows[3:]), *(turned[i][j] for i in range(3) for j in range(3))]
