"""From a declaration to a robot: check it as a whole, pack it, and name its coordinates and rows.

Packing of force elements, and of actuators that depend on the configuration, for kernels.
"""
from dataclasses import replace

import numpy as np

from liedyn.machine.errors import ModelError, shown
from liedyn.model import validation
from liedyn.model.attachments import attach_functions, attach_target, element_functions, fill_coefficients, is_coupling
from liedyn.model.description import Actuator, Loop
from liedyn.model.force_elements import DRIVEN, HOLDING, LAW_KINDS, NUMBERS, Elements, Laws, is_conservative
from liedyn.model.frames import joint_basis
from liedyn.model.kinds import JOINT_KINDS, LOOP_KINDS, neutral
from liedyn.model.links import link_tree
from liedyn.model.numbers import numbers
from liedyn.model.packed import LINK_MASS, LOOPS_AT, LOOP_I, WEIGHED, links_of, pack, rows_of
from liedyn.model.regularity import singular_bodies
from liedyn.model.robot import Robot
from liedyn.model.size import weights


def pack_elements(model, velocities, build):
    """The force elements as a packed model with the measured displacements as its constraints; None if there are none.

    `velocities` are the coordinates of the tree. Coordinates of cut joints cannot be measured by constraints on the
    tree: their cut joints are included, switched off, so that the coordinates can be computed. `build` makes the robot.
    """
    driven = {k: each.element for k, each in enumerate(model.actuators)
              if not isinstance(each, Actuator) or each.gears.keys() - set(velocities)}
    elements = [*model.elements, *driven.values()]
    if not elements:
        return None
    cuts, where = _cut_joints(model, set(velocities), elements)
    measures = [_measure(each, where) for each in elements]
    bushings = tuple(each for each in measures if isinstance(each, Loop))
    others = tuple(each for each in measures if not isinstance(each, Loop))
    robot = build(replace(model, loops=cuts + bushings, constraints=others, actuators=(), independent=(), outputs=(),
                          elements=(), shapes=()))
    owned = {name: [k for k, owner in enumerate(robot.row_owners) if owner == name] for name in robot.row_owners}
    records, numbers, functions, rows = [], [], {}, []
    for element, measure in zip(elements, measures):
        own, (first, *_, last) = element_functions(element), owned[measure.name] * 2
        addresses = {key: each.address for key, each in own.items()}
        records.append((LAW_KINDS.index(element.law), first, element.law in HOLDING, len(numbers),
                        addresses.get("law", addresses.get("force", 0)), addresses.get("torque", 0)))
        numbers += element.numbers
        rows.append(first if first == last else slice(first, last + 1))
        functions |= {f"{key} of {element.name}": each for key, each in own.items()}
    coefficients, turns = _read_at_cuts(robot, zip(elements, (record[1] for record in records)), where)
    inputs = [(k, e, records[e][NUMBERS] + len(driven[k].numbers) - 1)
              for e, k in enumerate(driven, start=len(model.elements))]
    laws = Laws(np.array(records, dtype=np.int64), np.array([*numbers, 0.0]), coefficients, turns,
                np.array(inputs, dtype=np.int64).reshape(-1, 3))
    return Elements(robot.packed, laws, functions, tuple(rows), all(map(is_conservative, elements)),
                    tuple(each.name for each in cuts), tuple(each.name for each in driven.values()))


def _read_at_cuts(robot, rows, where):
    """Weights (rows, nz) of coordinates of cut joints in rows of elements; whole turns (rows) where they are angles."""
    coefficients, turns = np.zeros((len(robot.row_names), len(robot.virtual_names))), np.zeros(len(robot.row_names))
    for element, row in rows:
        for name, value in element.coefficients.items():
            if name in where:
                coefficients[row, robot.virtual_names.index(name)] = value
                if len(element.coefficients) == 1 and _is_angle(*where[name]):
                    turns[row] = 2.0 * np.pi * abs(value)
    return coefficients, turns


def _cut_joints(model, velocities, elements):
    """The cut joints that elements act on, switched off, and by coordinate name its loop and index.

    ModelError for an unknown coordinate; a cut joint with a target or switched off; a displacement of a ball, whose
    velocities are not the rates of coordinates.
    """
    where = {loop.name + suffix: (loop, k) for loop in model.loops
             for k, suffix in enumerate(LOOP_KINDS[loop.kind].velocities)}
    used = set()
    for each in elements:
        owner = validation.owner_of("actuator" if each.law in DRIVEN else "force element", each.name)
        for name in each.coefficients.keys() - velocities:
            loop, _ = where[validation.choice(owner, "coordinate", name, (*velocities, *where))]
            for trouble, is_so in (("is moved by a function", loop.target is not None),
                                   ("is switched off", not loop.active)):
                if is_so:
                    raise ModelError(f"{owner}, coordinate {shown(name)}: cut joint {shown(loop.name)} {trouble}; make "
                                     "it a joint of the tree, and cut another joint of the loop")
            if LOOP_KINDS[loop.kind].has_quaternion and not is_rate_only(each):
                raise ModelError(f"{owner}, coordinate {shown(name)}: the rates of a ball are no derivatives of "
                                 "coordinates, so that dampers and actuators act on it, but no springs: take a bushing")
            used.add(loop.name)
    return tuple(replace(loop, active=False) for loop in model.loops if loop.name in used), where


def is_rate_only(element):
    """True if its force does not depend on the displacement."""
    return element.law in ("friction", "motor", *DRIVEN) or element.law == "linear" and not (
        element.numbers[0] or element.numbers[2])


def _measure(element, where):
    """Its measuring constraint, under a name that no joint has, without coordinates of cut joints."""
    name = f"{element.name} ({'actuator' if element.law in DRIVEN else 'force element'})"
    measure = replace(element.measure, name=name)
    if not element.coefficients.keys() & where.keys():
        return measure
    return replace(measure, coefficients={name: x for name, x in element.coefficients.items() if name not in where})


def _is_angle(loop, k):
    """True if a coordinate of a cut joint is an angle; one with a pitch is not, as its turns are counted."""
    return LOOP_KINDS[loop.kind].motions[k][0] == "w" and not loop.pitch


def build(model):
    """Check a whole model and make the robot; raises as :meth:`Builder.build`."""
    validation.tree(model)
    tree = link_tree(model)
    ints, floats = packed = pack(model, tree)
    everything = model.loops + model.constraints
    joints = [(joint, JOINT_KINDS[joint.kind]) for joint in tree.joints]
    coordinates = tuple(joint.name + suffix for joint, kind in joints for suffix in kind.coordinates)
    velocities = tuple(joint.name + suffix for joint, kind in joints for suffix in kind.velocities)
    virtuals = tuple(loop.name + suffix for loop in model.loops for suffix in LOOP_KINDS[loop.kind].velocities)
    validation.unique("coordinate", velocities + virtuals)
    for name in model.independent:
        validation.choice(f"robot {shown(model.name)}", "independent", name, velocities + virtuals)
    places = {name: k for k, name in enumerate(velocities)}
    limits = _per_joint(tree, "limits", (0, 2))
    zero = _frozen(np.array([value for _, kind in joints for value in neutral(kind)]))
    home = _frozen(_home(model, joints, coordinates, zero))
    rows = [(each.name, suffix, each.kind in LOOP_KINDS or k < each.holonomic) for each in everything
            for k, suffix in enumerate(rows_of(each))]
    functions = _attached(packed, everything, joints, places, home)
    robot = Robot(
        model, packed, nq=len(coordinates), nv=len(velocities), functions=functions, neutral=zero, home=home,
        body_names=_names(model.bodies), joint_names=_names(tree.joints), loop_names=_names(model.loops),
        coordinate_names=coordinates, velocity_names=velocities, virtual_names=virtuals,
        constraint_names=_names(everything), row_names=tuple(name + suffix for name, suffix, _ in rows),
        row_owners=tuple(name for name, _, _ in rows),
        holonomic=_frozen(np.array([holonomic for _, _, holonomic in rows], dtype=bool)),
        lower=_frozen(limits[:, 0]), upper=_frozen(limits[:, 1]),
        velocity_limit=_per_joint(tree, "velocity_limit", (0,)), effort_limit=_per_joint(tree, "effort_limit", (0,)),
        actuator_names=_names(model.actuators) or tuple(np.array(velocities, dtype=object)[_driven(tree)]),
        tree_actuators=_frozen(_tree_actuators(model, tree, places, virtuals)),
        loop_folding=_frozen(np.array([joint_basis(loop.axes) for loop in model.loops]).reshape(-1, 3, 3)),
        singular_tree=singular_bodies(model, tree),
        massless=not links_of(packed)[1][:, LINK_MASS].sum() > 0.0, elements=pack_elements(model, velocities, build))
    of_constraints = np.concatenate(weights(robot))
    floats[floats.size - len(of_constraints):] = of_constraints
    ints[WEIGHED] = (of_constraints != 1.0).any()
    return robot.at(0.0) if any(each.target is not None for each in everything) else robot


def _attached(packed, constraints, joints, places, home):
    """Functions of targets and custom rows by name; addresses of these, and coefficients, are written to `packed`."""
    (ints, floats), functions = packed, {}
    for k, each in enumerate(constraints):
        record = int(ints[LOOPS_AT]) + LOOP_I * k
        if each.target is not None:
            attach_target(ints, record, functions, each, each.target)
        if is_coupling(each):
            fill_coefficients(ints, floats, record, each, joints, places)
        if each.kind == "custom":
            attach_functions(ints, record, functions, each, _generic(joints, home), len(places))
    return functions


def _generic(joints, home):
    """A configuration near home in general position, where neither angles nor lengths vanish."""
    single = np.array([kind.nq == kind.nv for _, kind in joints for _ in kind.coordinates], dtype=bool)
    return np.where(single, home + 0.1 * np.cos(np.arange(len(home))), home)


def _names(things):
    return tuple(each.name for each in things)


def _frozen(array):
    array.setflags(write=False)
    return array


def _per_joint(tree, name, empty):
    return _frozen(np.concatenate([np.empty(empty)] + [getattr(joint, name) for joint in tree.joints]))


def _home(model, joints, coordinates, zero):
    """The home configuration, from values by coordinate name or lists by joint name."""
    home, places = zero.copy(), {name: k for k, name in enumerate(coordinates)}
    parts = np.split(home, np.cumsum([kind.nq for _, kind in joints])[:-1])  # np.split returns views
    own = {joint.name: part for (joint, _), part in zip(joints, parts)}
    for name, value in model.home.items():
        if name in places:
            home[places[name]] = numbers("home", shown(name), value, ())
        else:
            part = own[validation.choice("home", "name", name, places | own)]
            part[:] = numbers("home", shown(name), value, part.shape)
    for joint, kind in joints:
        own[joint.name][:] = validation.unit_quaternion(f"home, {shown(joint.name)}", kind, own[joint.name])
    return home


def _driven(tree):
    """The velocity coordinates that are inputs if no actuators are declared."""
    return np.repeat([joint.driven for joint in tree.joints], [len(joint.damping) for joint in tree.joints]) > 0


def _tree_actuators(model, tree, places, virtuals):
    """Columns of the actuators on coordinates of the tree; those of other actuators are zero here."""
    if not model.actuators:
        return np.eye(len(places))[:, _driven(tree)]
    matrix = np.zeros((len(places), len(model.actuators)))
    for column, actuator in enumerate(model.actuators):
        for coordinate in actuator.gears:
            validation.choice(f"actuator {shown(actuator.name)}", "coordinate", coordinate, (*places, *virtuals))
        if actuator.gears.keys() <= places.keys():
            for coordinate, gear in actuator.gears.items():
                matrix[places[coordinate], column] = gear
    return matrix
