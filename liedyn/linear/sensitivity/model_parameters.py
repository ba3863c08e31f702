"""The parameters of a robot by name, and the numbers of the packed model that each changes.

=============================================== ===================================================================
``mass:BODY``                                   [kg]; the centre of mass, and the inertia about it, stay
``com.x:BODY`` (x, y, z)                        [m] centre of mass in the body's frame; the inertia about it stays
``inertia.xx:BODY`` (xx, xy, xz, yy, yz, zz)    [kg m^2] about the centre of mass, in the body's axes
``placement.x:JOINT`` (x, y, z, rx, ry, rz)     [m, rad] of a joint, fixed ones too, or of a frame: its place in its
                                                parent, and turns about the axes of the parent through that place
``parent_placement.x:LOOP``,                    the same of the two frames that a cut joint, another constraint or a
``child_placement.x:LOOP``                      force element joins, each in its body
``length:C``, ``radius:C``, ``offset:C``        [m] of a constraint; of a coupling its offset [rad, m]
``friction:C``                                  of a contact that may slide
``armature:V``, ``damping:V``                   of a velocity coordinate, of a joint with one its name
``stiffness:V``, ``rest:V``                     of its spring, where it is a coordinate of one degree of freedom
``stiffness:E``, ``damping:E``, ``preload:E``,  of a force element with a linear law, and by the names that they have
``length:E`` or ``rest:E``                      in a law with a name, ``coulomb:E`` of friction for instance
``gravity.x`` (x, y, z), ``gravity``            [m/s^2]; its size, along its direction
=============================================== ===================================================================
"""
import fnmatch
from collections import defaultdict

import numpy as np

from liedyn.linear.sensitivity.changes import (
    ARMATURE, DAMPING, FRICTION, GRAVITY, INERTIA, LENGTH, NUMBER, RADIUS, REST, SHIFT, SIDE_A, SIDE_B, STIFFNESS,
)
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.model.description import GROUND
from liedyn.model.force_elements import NUMBERS
from liedyn.model.frames import skew
from liedyn.model.kinds import CONSTRAINT_KINDS, JOINT_KINDS, LOOP_KINDS
from liedyn.model.laws import LAWS
from liedyn.model.packed import (
    BODIES_AT, BODY_F, BODY_FLOATS_AT, BODY_I, BODY_LINK, DOF_LINK, LINK_JOINT, LINK_NV, LOOP_NROWS, LOOP_ROW,
    constraints_of, dofs_of, links_of,
)
from liedyn.model.remembered import remembered

AXES, ENTRIES = "xyz", ("xx", "xy", "xz", "yy", "yz", "zz")
TWISTS = *AXES, *(f"r{axis}" for axis in AXES)
OF_DOFS = {"armature": ARMATURE, "damping": DAMPING, "stiffness": STIFFNESS, "rest": REST}
_TRIANGLE = np.triu_indices(3)


@remembered
def all_changes(robot):
    """For each parameter, by name, two lists of changes (`liedyn.linear.sensitivity.changes`): those of the robot's
    model, and those of the model of its force elements."""
    found = {}
    for body in robot.model.bodies:
        found |= _of_body(robot, body)
    for joint in robot.model.tree_joints:
        found |= _of_joint(robot, joint)
    for k, each in enumerate(robot.model.loops + robot.model.constraints):
        read = robot.elements is not None and each.name in robot.elements.loops
        of_elements = _of_constraint(robot, each, robot.elements.loops.index(each.name)) if read else {}
        found |= {name: (own, of_elements.get(name, [])) for name, own in _of_constraint(robot, each, k).items()}
    found |= _of_coordinates(robot)
    for k, each in enumerate(robot.model.elements):
        found |= _of_element(robot, each, k)
    size = np.linalg.norm(robot.gravity)
    down = {"gravity": robot.gravity / size} if size else {}
    for name, e in (down | {f"gravity.{axis}": e for axis, e in zip(AXES, np.eye(3))}).items():
        found[name] = [(GRAVITY, 0, e)], [(GRAVITY, 0, e)]
    if robot.elements is None:  # there is no model of force elements to change
        found = {name: (own, []) for name, (own, _) in found.items()}
    return found


def chosen(robot, patterns):
    """Names of the parameters that match the patterns, each once, in the order of the patterns.

    Raises InputError if a pattern matches no parameter.
    """
    known, found = all_changes(robot), {}
    if not isinstance(patterns, str) and not (
            isinstance(patterns, (list, tuple)) and all(isinstance(each, str) for each in patterns)):
        raise InputError(f"parameters must be names, or patterns of names, got {shown(patterns)}")
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        fits = [pattern] if pattern in known else [
            name for name in known if fnmatch.fnmatchcase(name, pattern) or name.partition(":")[2] == pattern]
        if not fits:
            raise InputError(f"robot {shown(robot.name)} has no parameter {shown(pattern)}, "
                             f"{suggestion(pattern, list(known))}")
        found |= dict.fromkeys(fits)
    return tuple(found)


# ---- places of bodies and frames


def _carrier(robot, name):
    """The link that carries a body (-1: the ground), and the pose of the body in it."""
    if name == GROUND:
        return -1, np.eye(4)
    b = robot.body_index(name)
    pose, at = np.eye(4), robot.packed.ints[BODY_FLOATS_AT] + BODY_F * b
    pose[:3, :3], pose[:3, 3] = robot.packed.floats[at:at + 9].reshape(3, 3), robot.packed.floats[at + 9:at + 12]
    return int(robot.packed.ints[robot.packed.ints[BODIES_AT] + BODY_I * b + BODY_LINK]), pose


def _displacements(robot, body, placement):
    """Displacements of a frame at `placement` in a body, by the six names of `TWISTS`: twists at its link's frame."""
    X, p = _carrier(robot, body)[1], placement[:3, 3]
    R, o = X[:3, :3], X[:3, 3]
    moments, zero = R @ skew(p) + skew(o) @ R, np.zeros(3)  # R (p x e) + o x R e
    for k, name in enumerate(TWISTS):
        yield name, np.concatenate([zero, R[:, k]] if k < 3 else [R[:, k - 3], moments[:, k - 3]])


# ---- bodies


def _in_link(X, m, h, J):
    """Ten numbers of a change of inertia (m, h, J) in the axes of the body's link; J is about the body's origin."""
    R, p = X[:3, :3], X[:3, 3]
    h, P = R @ h, skew(p)
    J = R @ J @ R.T - P @ skew(h) - skew(h) @ P - m * P @ P
    return np.concatenate([[m], h + m * p, J[_TRIANGLE]])


def inertial_changes(robot):
    """Changes of the model by the `inertial_parameters`, ten for each body, in their order."""
    found = []
    for body in robot.body_names:
        link, X = _carrier(robot, body)
        for numbers in np.eye(10):
            J = np.zeros((3, 3))
            J[_TRIANGLE] = numbers[4:]
            change = numbers[0], numbers[1:4], np.maximum(J, J.T)
            found.append([(INERTIA, link, _in_link(X, *change))] if link >= 0 else [])
    return found


def _of_body(robot, body):
    link, X = _carrier(robot, body.name)
    c, zero = body.com, np.zeros((3, 3))
    by = {"mass": (1.0, c, -skew(c) @ skew(c))}
    for axis, e in zip(AXES, np.eye(3)):
        by[f"com.{axis}"] = 0.0, body.mass * e, -body.mass * (skew(e) @ skew(c) + skew(c) @ skew(e))
    for entry, i, j in zip(ENTRIES, *_TRIANGLE):
        J = zero.copy()
        J[i, j] = J[j, i] = 1.0
        by[f"inertia.{entry}"] = 0.0, np.zeros(3), J
    return {f"{what}:{body.name}": ([(INERTIA, link, _in_link(X, *change))] if link >= 0 else [], [])
            for what, change in by.items()}


# ---- joints


def _of_joint(robot, joint):
    """A moving joint displaces its first link; a fixed one all that its child carries in the same link."""
    found = {}
    for name, Z in _displacements(robot, joint.parent, joint.placement):
        if JOINT_KINDS[joint.kind].chain:
            first = int(np.argmax(links_of(robot.packed)[0][:, LINK_JOINT] == robot.joint_index(joint.name)))
            found[f"placement.{name}:{joint.name}"] = [(SHIFT, first, Z)], [(SHIFT, first, Z)]
        else:
            found[f"placement.{name}:{joint.name}"] = _of_lump(robot, joint.child, Z)
    return found


def _lump(robot, child):
    """A body with all bodies fixed to it, and the joints that move on them."""
    children, lump, joints = defaultdict(list), [child], []
    for joint in robot.model.tree_joints:
        children[joint.parent].append(joint)
    for body in lump:  # grows during the loop
        for joint in children[body]:
            if JOINT_KINDS[joint.kind].chain:
                joints.append(joint)
            else:
                lump.append(joint.child)
    return lump, joints


@remembered
def body_displacements(robot):
    """Displacements of bodies in their links, by body number, for each parameter that causes such; in body axes."""
    found = {}
    for joint in robot.model.tree_joints:
        if not JOINT_KINDS[joint.kind].chain:
            lump = [(robot.body_index(body), _carrier(robot, body)[1]) for body in _lump(robot, joint.child)[0]]
            for name, (*w, x, y, z) in _displacements(robot, joint.parent, joint.placement):
                found[f"placement.{name}:{joint.name}"] = {b: np.concatenate([
                    X[:3, :3].T @ w, X[:3, :3].T @ ((x, y, z) - np.cross(X[:3, 3], w))]) for b, X in lump}
    return found


def _of_lump(robot, child, Z):
    """Changes if a body, and all that is fixed to it, is displaced in its link."""
    (lump, joints), links = _lump(robot, child), links_of(robot.packed)[0]
    shifted = [(SHIFT, int(np.argmax(links[:, LINK_JOINT] == robot.joint_index(joint.name))), Z) for joint in joints]
    inertias = [_moved_inertia(robot, body, Z) for body in robot.model.bodies if body.name in lump]
    constraints = list(enumerate(robot.model.loops + robot.model.constraints))
    return [*shifted, *(each for each in inertias if each[1] >= 0), *_sides(constraints, lump, Z)], [
        *shifted, *_sides(_measures(robot), lump, Z)]


def _measures(robot):
    """The bodies and frames of each measurement in the model of the force elements, of elements and of actuators."""
    if robot.elements is None:
        return []
    driven = [each for each in robot.model.actuators if each.name in robot.elements.driven]
    own = [(measured(robot, e), each.measure) for e, each in enumerate((*robot.model.elements, *driven))]
    return own + [(k, robot.model.loops[robot.loop_names.index(name)]) for k, name in enumerate(robot.elements.loops)]


def _sides(constraints, lump, Z):
    for k, each in constraints:
        if each.parent is not None:
            yield from ((side, k, Z) for side, body in ((SIDE_A, each.parent), (SIDE_B, each.child)) if body in lump)


def _moved_inertia(robot, body, Z):
    """The change of a link's inertia if a body is displaced in it: of h, w x h + m v; of J, [w] J - J [w] - ..."""
    link, X = _carrier(robot, body.name)
    w, v = skew(Z[:3]), Z[3:]
    R, c = X[:3, :3], X[:3, :3] @ body.com + X[:3, 3]
    m, h, J = body.mass, body.mass * c, R @ body.inertia @ R.T - body.mass * skew(c) @ skew(c)
    change = w @ J - J @ w - skew(v) @ skew(h) - skew(h) @ skew(v)
    return INERTIA, link, np.concatenate([[0.0], w @ h + m * v, change[_TRIANGLE]])


def _of_coordinates(robot):
    """Armatures, dampers and springs."""
    links, dofs = links_of(robot.packed)[0], dofs_of(robot.packed)[0]
    single = links[dofs[:, DOF_LINK], LINK_NV] == 1
    return {f"{what}:{name}": ([(kind, j, 1.0)], []) for what, kind in OF_DOFS.items()
            for j, name in enumerate(robot.velocity_names) if single[j] or what in ("armature", "damping")}


# ---- constraints and force elements


def _of_constraint(robot, each, k):
    found = {}
    for side, kind in (("parent", SIDE_A), ("child", SIDE_B)):
        body = getattr(each, side)
        for name, Z in _displacements(robot, body, getattr(each, f"{side}_placement")) if body is not None else ():
            found[f"{side}_placement.{name}:{each.name}"] = [(kind, k, Z)]
    if each.kind in LOOP_KINDS:
        return found
    for name, kind, sign in _sizes(each):
        found[f"{name}:{each.name}"] = [(kind, k, sign)]
    if 0.0 < each.friction < np.inf and each.kind != "dry_friction":
        found[f"friction:{each.name}"] = [(FRICTION, k, 1.0)]
    return found


def _sizes(each):
    """The names that a constraint's length and radius have in its declaration, and their signs there."""
    inside = -1.0 if each.radius < 0.0 else 1.0
    if CONSTRAINT_KINDS[each.kind].coefficients:
        return [("offset", LENGTH, 1.0)]
    if each.kind in ("distance", "cable"):
        return [("length", LENGTH, 1.0)]
    if each.kind in ("on_cylinder", "on_circle"):
        return [("radius", LENGTH, 1.0)]
    own = [("radius", RADIUS, inside)] if "radius" in CONSTRAINT_KINDS[each.kind].needs else []
    return own + ([("parent_radius", LENGTH, 1.0)] if "parent_radius" in CONSTRAINT_KINDS[each.kind].needs else [])


def measured(robot, e):
    """Number of the constraint that measures force element e, in the model of the force elements."""
    row = robot.elements.rows[e]
    first = row.start if isinstance(row, slice) else row
    records = constraints_of(robot.elements.packed)[0]
    return int(np.flatnonzero((records[:, LOOP_ROW] == first) & (records[:, LOOP_NROWS] > 0))[0])


def _of_element(robot, each, e):
    """Changes of an element: numbers of its law, places of its points, and its rest length or sum at rest."""
    k, law, found = measured(robot, e), LAWS.get(each.law), {}
    at = int(robot.elements.laws.records[e, NUMBERS])
    for place, name in enumerate(law.numbers if law else ()):
        found[f"{name}:{each.name}"] = [], [(NUMBER, at + place, 1.0)]
    if each.measure.kind in ("distance", "cable", "coupling") and each.law != "friction":
        rest = "rest" if each.measure.kind == "coupling" else "length"
        found[f"{rest}:{each.name}"] = [], [(LENGTH, k, 1.0)]
    if each.measure.parent is not None:
        placements = _of_constraint(robot, each.measure, k)
        found |= {name: ([], changes) for name, changes in placements.items() if "placement" in name}
    return found
