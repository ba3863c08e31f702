"""Signed distances between the shapes of bodies, with their derivatives; shapes are handed to coal.

With p_a and p_b the nearest points of two shapes (of the deepest penetration, if they overlap) and n the unit vector
from a to b, the distance is d = n . (p_b - p_a). Moved points stay nearest to first order, so that

    dd/dq = n . (J_b - J_a)

with J_a and J_b the Jacobians of the points as points of their bodies. Where several pairs of points are nearest, as
for parallel faces, d has a kink, and this is one of its one-sided derivatives.
"""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import require_robot
from liedyn.machine.errors import InputError, LiedynError, said, shown, suggestion
from liedyn.mechanics.tree.forward_kinematics import pose
from liedyn.mechanics.tree.jacobians import body_jacobian
from liedyn.model.calls.boundary import states
from liedyn.model.description import GROUND
from liedyn.model.packed import BODIES_AT, BODY_I, BODY_LINK
from liedyn.model.remembered import remembered

if TYPE_CHECKING:
    from collections.abc import Sequence
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike

TOLERANCE = 1e-13
"""Of distances in coal [m], whose default is 1e-6; normals, and so derivatives, are exact to its root."""


@dataclass(frozen=True, repr=False)
class Distances:
    """Distances between pairs of shapes.

    Attributes
    ----------
    pairs : tuple of (str, str)
        Names of the shapes.
    distance : ndarray, shape (..., pairs)
        Signed distances [m]: minus the depth of penetration where shapes overlap.
    jacobian : ndarray, shape (..., pairs, nv)
        Their derivatives along the velocity coordinates [m/rad, m/m].
    points : ndarray, shape (..., pairs, 2, 3)
        The nearest points of both shapes, in the world [m].
    normal : ndarray, shape (..., pairs, 3)
        Unit vectors from the first shape to the second, in the world.

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder("ball")
    >>> b.body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1))
    >>> b.joint("slide", "prismatic", "ground", "ball", axis=(1, 0, 0))
    >>> b.shape("sphere", "ball", "sphere", size=0.1, role="collision")
    >>> b.shape("wall", "ground", "box", placement=(1.0, 0.0, 0.0), size=(0.2, 1.0, 1.0), role="collision")
    >>> found = ld.distances(b.build(), [0.3])
    >>> found.pairs, found.distance.round(9).tolist(), found.jacobian.round(9).tolist()
    ((('sphere', 'wall'),), [0.5], [[-1.0]])
    """

    pairs: tuple[tuple[str, str], ...]
    distance: Array
    jacobian: Array
    points: Array
    normal: Array

    def __repr__(self) -> str:
        least = f", least {self.distance.min():.4g} m" if self.distance.size else ""
        return f"Distances({len(self.pairs)} pairs{least})"


def distances(robot: Robot, q: ArrayLike, pairs: Sequence[tuple[str, str]] | None = None) -> Distances:
    """Signed distances between shapes of the robot, their nearest points, and the exact derivatives.

    Parameters
    ----------
    robot : Robot
        With shapes, as files bring them, or declared by ``Builder.shape(..., role="collision")``.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    pairs : sequence of (str, str), optional
        Pairs of shapes, by their names, or by names of bodies, frames or "ground" for all their shapes for collision.
        By default all pairs of shapes for collision except those of bodies that are fixed to each other, or that a
        joint or cut joint joins; shapes of the ground itself are paired with all that moves.

    Returns
    -------
    Distances
        ``distance``, ``jacobian``, ``points``, ``normal`` and the names of the ``pairs``.

    Raises
    ------
    LiedynError
        coal is not installed (extra ``collision``), or cannot read a mesh.
    InputError
        A name is unknown, there are no pairs, a shape does not fit, an entry is not finite, or a quaternion is not of
        unit length.

    Notes
    -----
    Meshes count as their convex hulls, planes as half-spaces below. Pan, Chitta and Manocha 2012 (FCL) and Montaut et
    al. 2022, as implemented by coal, to 1e-12 m; derivatives to 1e-6.

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder.of(ld.load("panda"))
    >>> b.shape("fist", "panda_hand", "sphere", size=0.1, role="collision")
    >>> b.shape("table", "ground", "plane", role="collision")
    >>> panda = b.build()
    >>> found = ld.distances(panda, panda.home)
    >>> bool(abs(found.distance[0] - (ld.pose(panda, panda.home, "panda_hand")[2, 3] - 0.1)) < 1e-9)
    True
    """
    require_robot(robot)
    lead, q = states(robot, q=q)
    pairs = chosen_pairs(robot, _named(pairs))
    d, points, normal = _measured(robot, q, pairs)
    J = np.zeros((*d.shape, robot.nv))
    for side, sign in ((0, -1.0), (1, 1.0)):
        for name in dict.fromkeys(pair[side].body for pair in pairs):
            if name == GROUND:
                continue
            own = [k for k, pair in enumerate(pairs) if pair[side].body == name]
            X, jacobian = pose(robot, q, name)[:, None], body_jacobian(robot, q, name)[:, None]
            # the power of a unit force n at the point: n . v_point, with twists in the body's axes
            n = np.einsum("bkji,bkj->bki", X[..., :3, :3], normal[:, own])
            at = np.einsum("bkji,bkj->bki", X[..., :3, :3], points[:, own, side] - X[..., :3, 3])
            force = np.concatenate([np.cross(at, n), n], axis=-1)
            J[:, own] += sign * np.einsum("bki,bkij->bkj", force, np.broadcast_to(
                jacobian, (*force.shape[:2], 6, robot.nv)))
    shaped = [x.reshape(lead + x.shape[1:]) for x in (d, J, points, normal)]
    return Distances(tuple((a.name, b.name) for a, b in pairs), *shaped)


def _measured(robot, q, pairs):
    """Distances (count, pairs), nearest points and normals by coal."""
    coal = require_coal()
    shapes = {shape.name: shape for pair in pairs for shape in pair}
    solids = {name: solid(robot, name) for name in shapes}
    poses = {name: (np.broadcast_to(np.eye(4), (len(q), 4, 4)) if shape.body == GROUND else pose(robot, q, shape.body))
             @ shape.placement for name, shape in shapes.items()}
    d, points, normal = np.empty((len(q), len(pairs))), np.empty((len(q), len(pairs), 2, 3)), np.empty(
        (len(q), len(pairs), 3))
    request = coal.DistanceRequest()
    request.gjk_tolerance = request.epa_tolerance = TOLERANCE
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    for b in range(len(q)):
        at = {name: coal.Transform3s(X[b, :3, :3], X[b, :3, 3]) for name, X in poses.items()}
        for k, (one, two) in enumerate(pairs):
            found = coal.DistanceResult()
            d[b, k] = coal.distance(solids[one.name], at[one.name], solids[two.name], at[two.name], request, found)
            points[b, k] = found.getNearestPoint1(), found.getNearestPoint2()
            normal[b, k] = found.normal
    return d, points, normal


def require_coal():
    """The module coal; LiedynError if it is not installed."""
    try:
        import coal
    except ImportError:
        raise LiedynError("distances between shapes need coal: pip install 'liedyn[collision]'") from None
    return coal


@remembered
def solid(robot, name):
    """The shape as coal has it."""
    coal, shape = require_coal(), next(each for each in robot.model.shapes if each.name == name)
    if shape.kind == "mesh":
        try:
            mesh = coal.MeshLoader().load(shape.mesh, np.array(shape.scale, dtype=float))
            mesh.buildConvexHull(True, "Qt")
            return mesh.convex
        except Exception as error:
            raise LiedynError(f"shape {shown(name)}: coal cannot read mesh {shown(shape.mesh)}: {said(error)}"
                              ) from error
    if shape.kind == "plane":
        return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
    return getattr(coal, shape.kind.capitalize())(*shape.size)


def _named(pairs):
    """Pairs of names as a tuple of tuples, or None."""
    if pairs is None:
        return None
    if not isinstance(pairs, (tuple, list)) or not all(
            isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(name, str) for name in pair)
            for pair in pairs):
        raise InputError(f"pairs must be pairs of names of shapes or bodies, got {shown(pairs)}")
    return tuple(map(tuple, pairs))


@remembered
def chosen_pairs(robot, pairs):
    """Pairs of `Shape`, for names of shapes and bodies, or None."""
    shapes = [each for each in robot.model.shapes if each.role == "collision"]
    if pairs is None:
        found = [(a, b) for k, a in enumerate(shapes) for b in shapes[k + 1:] if _may_touch(robot, a.body, b.body)]
        if not found:
            raise InputError(f"{robot.name!r} has no two shapes for collision on bodies that are not joined: declare "
                             "some by Builder.shape(..., role='collision'), or name pairs")
        return tuple(found)
    named, found = {each.name: [each] for each in robot.model.shapes}, []
    for body in (GROUND, *robot.body_numbers):
        own = [each for each in shapes if each.body == body]
        if own:
            named.setdefault(body, own)
    for pair in pairs:
        for name in pair:
            if name not in named:
                raise InputError(f"no shape or body with shapes for collision is called {shown(name)}, "
                                 f"{suggestion(name, list(named))}")
        found += [(a, b) for a in named[pair[0]] for b in named[pair[1]]]
    for a, b in found:
        if a.name == b.name:
            raise InputError(f"pairs: shape {shown(a.name)} has no distance from itself")
    if not found:
        raise InputError("pairs: name at least one")
    return tuple(found)


def _may_touch(robot, one, two):
    """True if two bodies belong to different links that no joint joins; the ground itself may touch all that moves."""
    a, b = (_link(robot, name) for name in (one, two))
    if a == b:
        return False
    joints = [each for each in (*robot.model.joints, *robot.model.loops) if GROUND not in (one, two)]
    return all({_link(robot, each.parent), _link(robot, each.child)} != {a, b} for each in joints)


def _link(robot, body):
    if body == GROUND:
        return -1
    return int(robot.packed.ints[int(robot.packed.ints[BODIES_AT]) + BODY_I * robot.body_index(body) + BODY_LINK])
