"""From a declaration to a robot: check it as a whole, pack it, name its coordinates and rows."""

from dataclasses import replace

import numpy as np

from liedyn.errors import ModelError, shown
from liedyn.model import validation
from liedyn.model.attachments import attach_functions, attach_target, element_functions, fill_coefficients, is_coupling
from liedyn.model.description import Loop
from liedyn.model.force_elements import HOLDING, LAW_KINDS, Elements, Laws, is_conservative
from liedyn.model.frames import joint_basis
from liedyn.model.kinds import JOINT_KINDS, LOOP_KINDS, neutral
from liedyn.model.links import link_tree
from liedyn.model.numbers import numbers
from liedyn.model.packed import LINK_MASS, LOOPS_AT, LOOP_I, links_of, pack, rows_of
from liedyn.model.regularity import singular_bodies
from liedyn.model.robot import Robot


def build(model):
    """Check a model as a whole and make the robot.

    Raises
    ------
    ModelError
        See :meth:`Builder.build`.
    """
    validation.tree(model)
    tree = link_tree(model)
    ints, floats = packed = pack(model, tree)
    everything = model.loops + model.constraints
    joints = [(joint, JOINT_KINDS[joint.kind]) for joint in tree.joints]
    coordinates = tuple(joint.name + suffix for joint, kind in joints for suffix in kind.coordinates)
    velocities = tuple(joint.name + suffix for joint, kind in joints for suffix in kind.velocities)
    virtuals = tuple(loop.name + suffix for loop in model.loops for suffix in LOOP_KINDS[loop.kind].velocities)
    validation.unique("coordinate", velocities + virtuals)
    _refuse_cut_coordinates(model, velocities, virtuals)
    for name in model.independent:
        validation.choice(f"robot {shown(model.name)}", "independent", name, velocities + virtuals)
    places = {name: k for k, name in enumerate(velocities)}
    limits = _per_joint(tree, "limits", (0, 2))
    zero = _frozen(np.array([value for _, kind in joints for value in neutral(kind)]))
    home = _frozen(_home(model, joints, coordinates, zero))
    rows = [(each.name, suffix, each.kind in LOOP_KINDS or k < each.holonomic) for each in everything
            for k, suffix in enumerate(rows_of(each))]
    functions = {}
    for k, each in enumerate(everything):
        record = int(ints[LOOPS_AT]) + LOOP_I * k
        if each.target is not None:
            attach_target(ints, record, functions, each, each.target)
        if is_coupling(each):
            fill_coefficients(ints, floats, record, each, joints, places)
        if each.kind == "custom":
            attach_functions(ints, record, functions, each, _generic(joints, home), len(velocities))
    robot = Robot(
        model, packed, nq=len(coordinates), nv=len(velocities), functions=functions, neutral=zero, home=home,
        body_names=_names(model.bodies), joint_names=_names(tree.joints), loop_names=_names(model.loops),
        coordinate_names=coordinates, velocity_names=velocities, virtual_names=virtuals,
        constraint_names=_names(everything), row_names=tuple(name + suffix for name, suffix, _ in rows),
        row_owners=tuple(name for name, _, _ in rows),
        holonomic=_frozen(np.array([holonomic for _, _, holonomic in rows], dtype=bool)),
        lower=_frozen(limits[:, 0]), upper=_frozen(limits[:, 1]),
        velocity_limit=_per_joint(tree, "velocity_limit", (0,)), effort_limit=_per_joint(tree, "effort_limit", (0,)),
        actuator_names=_names(model.actuators) or velocities,
        actuator_matrix=_frozen(_actuator_matrix(model, places)),
        loop_folding=_frozen(np.array([joint_basis(loop.axes) for loop in model.loops]).reshape(-1, 3, 3)),
        singular_tree=singular_bodies(model, tree),
        massless=not links_of(packed)[1][:, LINK_MASS].sum() > 0.0, elements=_elements(model))
    return robot.at(0.0) if any(each.target is not None for each in everything) else robot


def _refuse_cut_coordinates(model, velocities, virtuals):
    """Actuators and force elements act on coordinates of the tree."""
    used = [(f"actuator {shown(each.name)}", each.gears) for each in model.actuators]
    used += [(f"force element {shown(each.name)}", getattr(each.measure, "coefficients", {}))
             for each in model.elements]
    cuts = set(virtuals + _names(model.loops)) - set(velocities)
    for owner, names in used:
        for name in names:
            if name in cuts:
                raise ModelError(f"{owner}, coordinate: {shown(name)} belongs to a cut joint, and forces act on "
                                 "coordinates of the tree only: make it a joint of the tree, and cut another joint of "
                                 "the loop")


def _elements(model):
    """The force elements as a model of their own with what they measure as its constraints; None if there are none."""
    if not model.elements:
        return None
    # under names that no joint has
    measures = [replace(each.measure, name=f"{each.name} (force element)") for each in model.elements]
    loops = tuple(each for each in measures if isinstance(each, Loop))
    others = tuple(each for each in measures if not isinstance(each, Loop))
    robot = build(replace(
        model, loops=loops, constraints=others, actuators=(), independent=(), outputs=(), elements=()))
    owned = {name: [k for k, owner in enumerate(robot.row_owners) if owner == name] for name in robot.row_owners}
    records, numbers, functions, rows = [], [], {}, []
    for element, measure in zip(model.elements, measures):
        own, (first, *_, last) = element_functions(element), owned[measure.name] * 2
        addresses = {key: each.address for key, each in own.items()}
        records.append((LAW_KINDS.index(element.law), first, element.law in HOLDING, len(numbers),
                        addresses.get("law", addresses.get("force", 0)), addresses.get("torque", 0)))
        numbers += element.numbers
        rows.append(first if first == last else slice(first, last + 1))
        functions |= {f"{key} of {element.name}": each for key, each in own.items()}
    laws = Laws(np.array(records, dtype=np.int64), np.array([*numbers, 0.0]))
    return Elements(robot.packed, laws, functions, tuple(rows), all(map(is_conservative, model.elements)))


def _generic(joints, home):
    """A configuration near home but at no special place, where angles are zero or lengths vanish."""
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
    """The home configuration from values by coordinate name or lists by joint name."""
    home, places = zero.copy(), {name: k for k, name in enumerate(coordinates)}
    parts = np.split(home, np.cumsum([kind.nq for _, kind in joints])[:-1])  # views
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


def _actuator_matrix(model, places):
    if not model.actuators:
        return np.eye(len(places))
    matrix = np.zeros((len(places), len(model.actuators)))
    for column, actuator in enumerate(model.actuators):
        for coordinate, gear in actuator.gears.items():
            validation.choice(f"actuator {shown(actuator.name)}", "coordinate", coordinate, places)
            matrix[places[coordinate], column] = gear
    return matrix
