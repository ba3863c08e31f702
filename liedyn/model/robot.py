"""The robot: a packed model, the names of its coordinates, and the declaration it came from."""

from dataclasses import dataclass

import numpy as np

from liedyn.errors import InputError, suggestion
from liedyn.model import validation
from liedyn.model.description import Model
from liedyn.model.frames import joint_basis
from liedyn.model.kinds import JOINT_KINDS, LOOP_ROWS, cut_kind, neutral
from liedyn.model.links import link_tree
from liedyn.model.packed import pack
from liedyn.model.regularity import singular_bodies


@dataclass(frozen=True, eq=False, repr=False)
class Robot:
    """A rigid mechanism, immutable. Made by :class:`Builder` or :func:`liedyn.load`, never by hand.

    Coordinates follow the tree depth first: parents first, the children of a body in the order their joints were
    declared. Bodies and loops keep the order of declaration. Joints are those that move: fixed ones are lumped.

    Attributes
    ----------
    model : Model
        What was declared, fixed joints and the frames of loops included.
    name, description, source, gravity, independent, outputs
        Those of the model.
    ints, floats : ndarray
        The packed model (:mod:`liedyn.model.packed`). Not to be written to; not write-protected either, because Numba
        would compile every kernel once more for arrays that are.
    nq, nv : int
        Sizes of a configuration and of a velocity.
    body_names, joint_names, loop_names : tuple of str
    coordinate_names : tuple of str
        One name for each entry of q.
    velocity_names : tuple of str
        One name for each entry of v, tau and of a tangent vector.
    virtual_names : tuple of str
        One name for each virtual velocity coordinate of the loops.
    row_names : tuple of str
        One name for each row of the loops' constraint Jacobian.
    lower, upper : ndarray, shape (nq,)
        Limits of the coordinates; infinite where there are none.
    velocity_limit, effort_limit : ndarray, shape (nv,)
    neutral : ndarray, shape (nq,)
        Zeros and identity quaternions.
    home : ndarray, shape (nq,)
        The declared home configuration; neutral where nothing was declared.
    actuator_names : tuple of str
        Names of the inputs u: the velocity coordinates themselves if no actuator was declared.
    actuator_matrix : ndarray, shape (nv, nu)
        tau = actuator_matrix @ u.
    loop_folding : ndarray, shape (nloops, 3, 3)
        Rotation from the user's cut frames to the frames of the packed model, in which the axis is z.
    singular_tree : tuple of str
        Bodies whose motion moves no inertia in the open tree, held by loops only: the tree's mass matrix is singular,
        the constrained mechanism need not be. Empty for most robots.
    """

    model: Model
    ints: np.ndarray
    floats: np.ndarray
    nq: int
    nv: int
    body_names: tuple
    joint_names: tuple
    loop_names: tuple
    coordinate_names: tuple
    velocity_names: tuple
    virtual_names: tuple
    row_names: tuple
    lower: np.ndarray
    upper: np.ndarray
    velocity_limit: np.ndarray
    effort_limit: np.ndarray
    neutral: np.ndarray
    home: np.ndarray
    actuator_names: tuple
    actuator_matrix: np.ndarray
    loop_folding: np.ndarray
    singular_tree: tuple

    name = property(lambda self: self.model.name)
    gravity = property(lambda self: self.model.gravity)
    independent = property(lambda self: self.model.independent)
    outputs = property(lambda self: self.model.outputs)
    description = property(lambda self: self.model.description)
    source = property(lambda self: self.model.source)
    nbodies = property(lambda self: len(self.body_names))

    def __repr__(self):
        return (
            f"Robot({self.name!r}, nq={self.nq}, nv={self.nv}, {self.nbodies} bodies, "
            f"{len(self.joint_names)} joints, {len(self.loop_names)} loops)"
        )

    def body_index(self, name):
        """Number of a body; InputError with near names if there is none."""
        return _index("body", name, self.body_names)

    def joint_index(self, name):
        """Number of a joint; InputError with near names if there is none."""
        return _index("joint", name, self.joint_names)

    def loop_index(self, name):
        """Number of a loop; InputError with near names if there is none."""
        return _index("loop", name, self.loop_names)

    def coordinate_index(self, name):
        """Place of a coordinate in q; InputError with near names if there is none."""
        return _index("coordinate", name, self.coordinate_names)

    def velocity_index(self, name):
        """Place of a velocity coordinate in v; InputError with near names if there is none."""
        return _index("velocity coordinate", name, self.velocity_names)

    def virtual_index(self, name):
        """Place of a loop's virtual velocity coordinate; InputError with near names if there is none."""
        return _index("virtual coordinate", name, self.virtual_names)


def _index(what, name, names):
    try:
        return names.index(name)
    except ValueError:
        raise InputError(f"unknown {what} {name!r}, {suggestion(name, names)}") from None


def build(model):
    """Check a model as a whole and make the robot.

    Raises
    ------
    ModelError
        See :meth:`Builder.build`.
    """
    validation.tree(model)
    tree = link_tree(model)
    ints, floats = pack(model, tree)
    joints = [(joint, JOINT_KINDS[joint.kind]) for joint in tree.joints]
    coordinates = tuple(joint.name + suffix for joint, kind in joints for suffix in kind.coordinates)
    velocities = tuple(joint.name + suffix for joint, kind in joints for suffix in kind.velocities)
    virtuals = tuple(loop.name + suffix for loop in model.loops for suffix in cut_kind(loop.kind).velocities)
    validation.unique("coordinate", velocities + virtuals)
    for name in model.independent:
        validation.choice(f"robot {model.name!r}", "independent", name, velocities + virtuals)
    limits = _per_joint(tree, "limits", (0, 2))
    zero = _frozen(np.array([value for _, kind in joints for value in neutral(kind)]))
    return Robot(
        model, ints, floats,
        nq=len(coordinates),
        nv=len(velocities),
        body_names=tuple(body.name for body in model.bodies),
        joint_names=tuple(joint.name for joint in tree.joints),
        loop_names=tuple(loop.name for loop in model.loops),
        coordinate_names=coordinates,
        velocity_names=velocities,
        virtual_names=virtuals,
        row_names=tuple(loop.name + suffix for loop in model.loops for suffix in LOOP_ROWS[loop.kind]),
        lower=_frozen(limits[:, 0]),
        upper=_frozen(limits[:, 1]),
        velocity_limit=_per_joint(tree, "velocity_limit", (0,)),
        effort_limit=_per_joint(tree, "effort_limit", (0,)),
        neutral=zero,
        home=_frozen(_home(model, joints, coordinates, zero)),
        actuator_names=tuple(actuator.name for actuator in model.actuators) or velocities,
        actuator_matrix=_frozen(_actuator_matrix(model, velocities)),
        loop_folding=_frozen(np.array([joint_basis(loop.axes) for loop in model.loops]).reshape(-1, 3, 3)),
        singular_tree=singular_bodies(model, tree),
    )


def _frozen(array):
    array.setflags(write=False)
    return array


def _per_joint(tree, name, empty):
    return _frozen(np.concatenate([np.empty(empty)] + [getattr(joint, name) for joint in tree.joints]))


def _home(model, joints, coordinates, zero):
    """The home configuration from values by coordinate name or lists by joint name."""
    home = zero.copy()
    starts, start = {}, 0
    for joint, kind in joints:
        starts[joint.name] = start, kind.nq
        start += kind.nq
    for name, value in model.home.items():
        if name in coordinates:
            home[coordinates.index(name)] = validation.numbers("home", name, value, ())
        else:
            start, size = starts[validation.choice("home", "name", name, [*coordinates, *starts])]
            home[start : start + size] = validation.numbers("home", name, value, (size,))
    for joint, kind in joints:
        start, size = starts[joint.name]
        home[start : start + size] = validation.unit_quaternion(f"home, {joint.name}", kind, home[start : start + size])
    return home


def _actuator_matrix(model, velocities):
    if not model.actuators:
        return np.eye(len(velocities))
    matrix = np.zeros((len(velocities), len(model.actuators)))
    for column, actuator in enumerate(model.actuators):
        validation.choice(f"actuator {actuator.name!r}", "coordinate", actuator.coordinate, velocities)
        matrix[velocities.index(actuator.coordinate), column] = actuator.gear
    return matrix
