"""Checks of users' declarations. Each raises a ModelError that names the thing and the value.

First those of single things, whose numbers are also converted to arrays; then those of names and of the tree.
"""
import sys
import warnings

import numpy as np

from liedyn.machine.arguments import ORTHOGONALITY
from liedyn.machine.errors import ModelError, ModelWarning, cut, listed, near_names, shown, suggestion
from liedyn.model.description import GROUND
from liedyn.model.links import depth_first
from liedyn.model.numbers import any_numbers, numbers
from liedyn.model.packed import status_code

SYMMETRY = 1e-6  # of inertias, relative; also the largest relative size of a negative principal moment
NOTHING = 1e-18  # a principal moment above minus this [kg m^2] is zero up to rounding
TRIANGLE = 1e-3  # relative slack of the triangle inequality: inertias in files are rounded to three or four digits
ALIKE = 0.7
"""Similarity (of difflib) from which on a word is taken for one of a list; below it all of the list are said."""


def warn(text):
    """A ModelWarning at the user's line that called the library, through whichever function."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("liedyn."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, ModelWarning, stacklevel=level)


def owner_of(kind, name):
    """The description of a thing in messages."""
    return f"{kind} {shown(text(kind, 'name', name))}"


def text(owner, key, value):
    """`value` as a string that is not empty."""
    if not isinstance(value, str) or not value:
        raise ModelError(f"{owner}, {key}: expected a name, got {shown(value)}")
    return prose(owner, key, value)


def prose(owner, key, value):
    """`value` as a string without lone surrogates, which files cannot hold."""
    if not isinstance(value, str):
        raise ModelError(f"{owner}, {key}: expected text, got {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ModelError(f"{owner}, {key}: not Unicode text, got {shown(value)}") from None
    return value


def names(owner, key, values):
    """`value` as a tuple of distinct names."""
    if not isinstance(values, list | tuple):
        raise ModelError(f"{owner}, {key}: expected a list of names, got {shown(values)}")
    unique(f"{owner}, {key}", [text(owner, key, value) for value in values])
    return tuple(values)


def table(owner, key, value):
    """`value` as a new dictionary."""
    if not isinstance(value, dict):
        raise ModelError(f"{owner}, {key}: expected values by name, got {shown(value)}")
    return dict(value)


def function(owner, key, value):
    """`value`, which must be a function or None."""
    if value is not None and not callable(value):
        raise ModelError(f"{owner}, {key}: expected a function, got {shown(value)}")
    return value


def choice(owner, key, value, known):
    """`value`, which must be one of the known names; of kinds all are said where none is much like it."""
    if not isinstance(value, str) or value not in known:
        near = key != "kind" or isinstance(value, str) and near_names(value, known, like=ALIKE)
        told = suggestion(value, known) if near else f"known: {listed(known, most=20)}"
        raise ModelError(f"{owner}, {key}: unknown {shown(value)}, {told}")
    return value


def per_dof(owner, key, value, size, bounds=False):
    """One number for all coordinates, or a list with one for each; without coordinates, only zero or no list."""
    array = any_numbers(owner, key, value)
    if array.ndim == 0 and (size > 0 or array == 0.0):
        return np.full(size, numbers(owner, key, value, (), bounds))
    return numbers(owner, key, value, (size,), bounds)


def one_number(owner, key, value, is_fine, what, bounds=False):
    """A float for which ``is_fine`` is true; `what` describes the condition in the message."""
    found = float(numbers(owner, key, value, (), bounds))
    if not is_fine(found):
        raise ModelError(f"{owner}, {key}: must {what}, got {shown(value)}")
    return found


def mass(owner, value):
    """A mass, zero for a massless body."""
    return one_number(owner, "mass", value, lambda x: x >= 0.0, "not be negative")


def not_negative(owner, key, value, size, bounds=False):
    """Numbers per degree of freedom, none of them negative."""
    array = per_dof(owner, key, value, size, bounds)
    if (array < 0.0).any():
        raise ModelError(f"{owner}, {key}: must not be negative, got {shown(value)}")
    return array


def bound(owner, key, value, size):
    """Bounds on magnitudes per degree of freedom, which may be infinite; None for no bounds."""
    return np.full(size, np.inf) if value is None else not_negative(owner, key, value, size, bounds=True)


def inertia(owner, value):
    """A rotational inertia about the centre of mass: symmetric, not negative; a warning beyond the triangle inequality.

    Published descriptions of real robots violate that inequality (placeholders, moments about another point); their
    motions are still well defined.
    """
    if any_numbers(owner, "inertia", value).shape == (3,):
        matrix = np.diag(numbers(owner, "inertia", value, (3,)))
    else:
        matrix = numbers(owner, "inertia", value, (3, 3))
    size = np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > SYMMETRY * size:
        raise ModelError(f"{owner}, inertia: not symmetric, got {shown(matrix.tolist())}")
    moments = np.linalg.eigvalsh(matrix)
    if moments[0] < -max(SYMMETRY * size, NOTHING):
        raise ModelError(f"{owner}, inertia: has the negative principal moment {moments[0]:.6g}")
    if moments[2] > moments[0] + moments[1] + max(TRIANGLE * size, NOTHING):
        warn(f"{owner}, inertia: the largest principal moment exceeds the sum of the other two, got "
             f"{moments[0]:.6g}, {moments[1]:.6g}, {moments[2]:.6g}")
    return (matrix + matrix.T) / 2


def pose(owner, key, value):
    """A pose: None for the identity, 3 numbers for a translation, or a 4 x 4 matrix with an orthogonal rotation."""
    if value is None:
        return np.eye(4)
    if any_numbers(owner, key, value).shape == (3,):
        matrix = np.eye(4)
        matrix[:3, 3] = numbers(owner, key, value, (3,))
        return matrix
    matrix = numbers(owner, key, value, (4, 4))
    R = matrix[:3, :3]
    if np.abs(R.T @ R - np.eye(3)).max() > ORTHOGONALITY or np.linalg.det(R) < 0.0:
        raise ModelError(f"{owner}, {key}: not a rotation: {shown(R.tolist())}")
    if not np.array_equal(matrix[3], [0.0, 0.0, 0.0, 1.0]):
        raise ModelError(f"{owner}, {key}: the last row must be 0, 0, 0, 1, got {matrix[3].tolist()}")
    matrix[:3, :3] = R @ (3.0 * np.eye(3) - R.T @ R) / 2.0  # a Newton step to the nearest rotation
    return matrix


def axes(owner, kind_name, kind, given):
    """The unit axes of a joint or cut joint; None means the default of its kind."""
    for key, value in list(zip(("axis", "axis2"), given))[len(kind.axes):]:
        if value is not None:
            raise ModelError(f"{owner}, {key}: a {kind_name} joint has none, got {shown(value)}")
    units = tuple(unit(owner, key, default if value is None else value)
                  for key, value, default in zip(("axis", "axis2"), given, kind.axes))
    if len(units) < 2:
        return units
    first, second = units
    if abs(first @ second) > ORTHOGONALITY:
        raise ModelError(f"{owner}, axis2: must be orthogonal to axis, got {first.tolist()} and {second.tolist()}")
    return first, second - (first @ second) * first


def unit(owner, key, value):
    """A direction, scaled to length one."""
    vector = numbers(owner, key, value, (3,))
    length = np.linalg.norm(vector)
    if length < 1e-12:
        raise ModelError(f"{owner}, {key}: must not be zero, got {shown(value)}")
    return vector / length


def pitch(owner, kind, form, value):
    """The pitch of a joint, which is required if its kind has one; zero for every other kind."""
    if form.has_pitch != (value is not None):
        reason = f"a {kind} joint needs one" if value is None else f"a {kind} joint has none, got {shown(value)}"
        raise ModelError(f"{owner}, pitch: {reason}")
    return 0.0 if value is None else float(numbers(owner, "pitch", value, ()))


def flag(owner, key, value):
    """`value` as a bool; 0, 1 and the like are refused."""
    if not isinstance(value, bool | np.bool_):
        raise ModelError(f"{owner}, {key}: expected true or false, got {shown(value)}")
    return bool(value)


def switch(owner, value, one_sided):
    """A constraint's initial state: true or false, or for a one-sided one that is closed, "sliding" or "sticking"."""
    if status_code(value, one_sided) is None:
        words = ", 'off', 'open', 'sliding' or 'sticking'" if one_sided else ""
        raise ModelError(f"{owner}, active: expected true or false{words}, got {shown(value)}")
    return {"off": False, "open": True}.get(value, value) if isinstance(value, str) else bool(value)


def given(owner, key, value):
    """`value`, which must not be None."""
    if value is None:
        raise ModelError(f"{owner}: missing {key!r}")


def positive(owner, key, value):
    """A length that must be positive; None, for a kind without this length, gives zero."""
    return 0.0 if value is None else one_number(owner, key, value, lambda x: x > 0.0, "be positive")


def parameters(owner, kind, form, values):
    """Check that a constraint has all parameters that its kind needs, and no unknown ones."""
    for key in form.needs:
        given(owner, key, values[key])
    for key, value in values.items():
        if value is not None and key not in form.needs + form.takes:
            raise ModelError(f"{owner}, {key}: a {kind} constraint has none, got {shown(value)}")


def contact(owner, kind, form, unilateral, restitution, friction, rolling):
    """Side, restitution and friction of a constraint; zeros for a bilateral one."""
    one_way = isinstance(unilateral, str) and unilateral in ("above", "below")
    if not isinstance(unilateral, bool | np.bool_) and not one_way:
        raise ModelError(f"{owner}, unilateral: expected true, false, 'above' or 'below', got {shown(unilateral)}")
    if not unilateral:
        for key, value in (("restitution", restitution), ("friction", friction)):
            if value is not None:
                raise ModelError(f"{owner}, {key}: only a unilateral constraint has one, got {shown(value)}")
        return 0, 0.0, 0.0
    if not form.one_sided:
        raise ModelError(f"{owner}, unilateral: a {kind} constraint has no gap that could stay on one side of zero")
    bounce = 0.0 if restitution is None else one_number(
        owner, "restitution", restitution, lambda x: 0.0 <= x <= 1.0, "be between 0 and 1")
    if friction is None:
        grip = np.inf if rolling else 0.0
    else:
        grip = one_number(owner, "friction", friction, lambda x: x >= 0.0, "not be negative", bounds=True)
        if grip > 0.0 and form.coefficients:
            raise ModelError(f"{owner}, friction: a {kind} has no surface that could rub, got {shown(friction)}")
        if rolling and grip == 0.0:
            raise ModelError(f"{owner}, friction: nothing rolls without friction")
    return (-1 if unilateral == "below" else 1), bounce, grip


def extent(owner, kind, value, side, axis, target):
    """Lengths of a rectangle or radius of a disk, or the length of a cylinder, positive; nothing for None."""
    if value is None:
        return ()
    sizes = any_numbers(owner, "extent", value)
    if kind == "on_cylinder" and (sizes.ndim or not sizes > 0.0):
        raise ModelError(f"{owner}, extent: expected the positive length of a cylinder, got {shown(value)}")
    if sizes.shape not in ((), (2,)) or not (sizes > 0.0).all():
        raise ModelError(f"{owner}, extent: expected two positive lengths or a radius, got {shown(value)}")
    if not side:
        raise ModelError(f"{owner}, extent: only a unilateral constraint has a surface that ends, got {shown(value)}")
    if sizes.ndim and axis is not None:
        raise ModelError(f"{owner}, extent: a rectangle lies in the x and y of frame A; turn that instead of an axis")
    if target is not None:
        raise ModelError(f"{owner}, extent: a surface that ends has no target; let a body carry it")
    return tuple(sizes.reshape(-1).tolist())


def coefficients(owner, form, value):
    """Coefficients by coordinate name: a number, or as many as the kind needs for each."""
    return by_coordinate(owner, "coefficients", value, () if form.coefficients == 1 else (form.coefficients,))


def by_coordinate(owner, key, value, shape=()):
    """Numbers of one shape by coordinate name, at least one entry."""
    if not isinstance(value, dict) or not value:
        raise ModelError(f"{owner}, {key}: expected numbers by coordinate name, got {shown(value)}")
    return {text(owner, key, name): numbers(owner, f"{key}, {shown(name)}", each, shape).tolist()
            for name, each in value.items()}


def limits(owner, value, size):
    """Lowest and highest values, shape (size, 2); None for no limits; one pair for a single coordinate."""
    if value is None:
        return np.tile([-np.inf, np.inf], (size, 1))
    array = any_numbers(owner, "limits", value)
    if array.shape == (2,) and size == 1:
        array = array[np.newaxis]
    if array.shape != (size, 2):
        raise ModelError(f"{owner}, limits: expected {size} pairs of lowest and highest value, got {shown(value)}")
    if not (array[:, 0] <= array[:, 1]).all():
        raise ModelError(f"{owner}, limits: the lowest value must not exceed the highest, got {shown(value)}")
    return array


def rest(owner, kind, value, neutral):
    """Rest configuration of a joint's springs; its quaternion must have unit length."""
    if value is None:
        return np.array(neutral)
    return unit_quaternion(f"{owner}, rest", kind, per_dof(owner, "rest", value, kind.nq))


def unit_quaternion(what, kind, values):
    """The values of one joint, with its quaternion, if there is one, normalised."""
    if not kind.has_quaternion:
        return values
    length = np.linalg.norm(values[:4])
    if abs(length - 1.0) > 1e-6:
        raise ModelError(f"{what}: the quaternion {values[:4].tolist()} must have length one")
    return np.concatenate([values[:4] / length, values[4:]])


def stiffness(owner, kind, value):
    """Stiffness per degree of freedom; for ball and free joints the same in all three directions."""
    array = per_dof(owner, "stiffness", value, kind.nv)
    if kind.has_quaternion and np.ptp(array.reshape(-1, 3), axis=1).any():
        raise ModelError(f"{owner}, stiffness: must be the same in all three directions, got {shown(value)}")
    return array


def tree(model):
    """Check that names are unique and known, and that the joints form a tree that connects every body to the ground."""
    bodies, frames = [body.name for body in model.bodies], [frame.name for frame in model.frames]
    unique("body or frame", [GROUND] + bodies + frames)
    unique("joint, loop or constraint", [each.name for each in model.joints + model.loops + model.constraints])
    unique("actuator", [actuator.name for actuator in model.actuators])
    unique("force element", [element.name for element in model.elements])
    known = dict.fromkeys([GROUND] + bodies + frames)
    for frame in model.frames:
        choice(f"frame {shown(frame.name)}", "body", frame.body, known)
    unique("shape", [shape.name for shape in model.shapes])
    for shape in model.shapes:
        choice(f"shape {shown(shape.name)}", "body", shape.body, known)
    for thing in (*model.elements, *model.actuators, *model.constraints):
        for station in getattr(getattr(thing, "measure", thing), "stations", ()):
            choice(f"cable {shown(thing.name)}", "path", station.body, known)
    children = dict.fromkeys([GROUND] + bodies)
    pairs = [constraint for constraint in model.constraints if constraint.parent is not None]
    springs = [element.measure for element in model.elements if element.measure.parent is not None]
    for kind, things in (("joint", model.joints), ("loop", model.loops), ("constraint", pairs),
                         ("force element", springs)):
        for thing in things:
            choice(f"{kind} {shown(thing.name)}", "parent", thing.parent, known)
            choice(f"{kind} {shown(thing.name)}", "child", thing.child, children if kind == "joint" else known)
            if thing.parent == thing.child:
                raise ModelError(f"{kind} {shown(thing.name)}: joins {shown(thing.child)} to itself")
    _one_parent_each(model.joints)
    _reached(bodies + frames, model.tree_joints)


def unique(what, names):
    """Check that no name occurs twice."""
    seen = set()
    for name in names:
        if name in seen:
            raise ModelError(f"{what} {shown(name)}: {'the name is reserved' if name == GROUND else 'declared twice'}")
        seen.add(name)


def _one_parent_each(joints):
    holder = {}
    for joint in joints:
        if joint.child == GROUND:
            raise ModelError(f"joint {shown(joint.name)}, child: the ground is no joint's child; swap parent and child")
        if joint.child in holder:
            raise ModelError(f"body {shown(joint.child)}: child of two joints, {shown(holder[joint.child])} and "
                             f"{shown(joint.name)}; declare one of them as a loop")
        holder[joint.child] = joint.name


def _reached(bodies, joints):
    parents = {joint.child: joint.parent for joint in joints}
    roots = [body for body in bodies if body not in parents]
    if roots:
        raise ModelError(f"no joint holds {listed(roots)}: join each tree to the ground, by a free joint if it floats")
    reached = {joint.child for joint in depth_first(joints)}
    for body in bodies:
        if body not in reached:
            cycle = cut(" -> ".join(_cycle(body, parents)), 300)
            raise ModelError(f"the joints make a cycle: {cycle}; declare one of them as a loop")


def _cycle(body, parents):
    """The cycle met on the way from `body` towards the root, as names from parent to child."""
    path = {}
    while body not in path:
        path[body] = len(path)
        body = parents[body]
    return (list(path)[path[body]:] + [body])[::-1]
