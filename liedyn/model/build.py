"""From a declaration to a robot: check it as a whole, pack it, and name its coordinates and rows."""

import numpy as np

from liedyn.machine.errors import shown
from liedyn.model import validation
from liedyn.model.attachments import attach_functions, attach_target, fill_coefficients, is_coupling
from liedyn.model.element_packing import pack_elements
from liedyn.model.frames import joint_basis
from liedyn.model.kinds import JOINT_KINDS, LOOP_KINDS, neutral
from liedyn.model.links import link_tree
from liedyn.model.numbers import numbers
from liedyn.model.packed import LINK_MASS, LOOPS_AT, LOOP_I, WEIGHED, links_of, pack, rows_of
from liedyn.model.regularity import singular_bodies
from liedyn.model.robot import Robot
from liedyn.model.size import weights


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
