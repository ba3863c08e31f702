"""Whether the mass matrix of the open tree is regular, and which bodies are to blame if it is not.

The kinetic energy is half the square of W v, with one block of six rows per link (the root of its spatial inertia times its
body Jacobian) and one row per armature. The tree is singular when W has dependent columns at configurations chosen at random.
"""

import numpy as np

from liedyn.errors import ModelError
from liedyn.model.description import GROUND
from liedyn.model.frames import rotation_pose, skew
from liedyn.model.kinds import FREE, HELICAL, JOINT_KINDS, PRISMATIC, REVOLUTE, SPHERICAL

DEPENDENT = 1e-7  # singular value of W, columns scaled to length one: below it a motion has no inertia
NEGLIGIBLE = 1e-6  # component of a null vector
_ATTEMPTS = 3  # a regular tree may pass through a singular configuration by chance, not three times


def singular_bodies(model, tree):
    """Bodies whose motion moves no inertia in the open tree although loops hold them; mostly none.

    Raises
    ------
    ModelError
        There are such bodies that no loop holds.
    """
    if not tree.links or _every_joint_moves_inertia(tree):
        return ()
    for attempt in range(_ATTEMPTS):
        null = _null_space(tree, np.random.default_rng(attempt))
        if null.shape[1] == 0:
            return ()
    moved = np.abs(null).max(axis=1) > NEGLIGIBLE
    owners = [joint for joint in tree.joints for _ in JOINT_KINDS[joint.kind].velocities]
    culprits = tuple(dict.fromkeys(joint.child for joint, moves in zip(owners, moved) if moves))
    loose = [name for name in culprits if name not in _held_by_loops(model)]
    if loose:
        raise ModelError(
            f"body {' and '.join(map(repr, loose))}: its motion moves no inertia, so the mass matrix is singular; "
            "give it mass and inertia, give its joint armature, or fix it"
        )
    return culprits


def _every_joint_moves_inertia(tree):
    """Enough for a regular mass matrix: the last link of every joint resists every twist."""
    last = {link.joint: link for link in tree.links}
    return all(np.linalg.eigvalsh(_spatial_inertia(link))[0] > 0.0 for link in last.values())


def _spatial_inertia(link):
    h = skew(link.moment)
    return np.block([[link.inertia, h], [h.T, link.mass * np.eye(3)]])


def _held_by_loops(model):
    """Bodies that are an end of a loop, and all their ancestors."""
    parents = {joint.child: joint.parent for joint in model.joints}
    held = set()
    for loop in model.loops:
        for body in (loop.parent, loop.child):
            while body != GROUND and body not in held:
                held.add(body)
                body = parents[body]
    return held


def _null_space(tree, rng):
    """Velocities, as columns (nv, k), without kinetic energy at a random configuration."""
    W = _energy_root(tree, rng)
    scale = np.linalg.norm(W, axis=0)
    scale[scale == 0.0] = 1.0
    _, values, Vt = np.linalg.svd(W / scale, full_matrices=W.shape[0] < W.shape[1])
    rank = np.count_nonzero(values > DEPENDENT * np.sqrt(len(scale)))
    return Vt[rank:].T / scale[:, np.newaxis]


def _energy_root(tree, rng):
    jacobians, rows, column = [], [], 0
    armature = np.concatenate([joint.armature for joint in tree.joints])
    for link in tree.links:
        motion, screws = _random_motion(link, rng)
        above = np.zeros((6, len(armature))) if link.parent < 0 else jacobians[link.parent]
        jacobian = _Ad_inverse(link.placement @ motion) @ above
        jacobian[:, column : column + screws.shape[1]] = screws
        column += screws.shape[1]
        jacobians.append(jacobian)
        values, vectors = np.linalg.eigh(_spatial_inertia(link))
        rows.append(np.sqrt(np.maximum(values, 0.0))[:, np.newaxis] * (vectors.T @ jacobian))
    return np.concatenate(rows + [np.diag(np.sqrt(armature))])


def _random_motion(link, rng):
    """Pose of a link relative to its placement at a random coordinate, and the body screws of its coordinates (6, nv)."""
    rotation, slide = np.eye(3), np.zeros(3)
    if link.primitive in (SPHERICAL, FREE):
        rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        rotation *= np.sign(np.linalg.det(rotation))
        slide = rng.normal(size=3) if link.primitive == FREE else slide
        screws = np.eye(6)[:, : 6 if link.primitive == FREE else 3]
    else:
        angle = rng.uniform(-3.0, 3.0)
        turns = float(link.primitive in (REVOLUTE, HELICAL))
        advance = 1.0 if link.primitive == PRISMATIC else link.pitch
        c, s = np.cos(turns * angle), np.sin(turns * angle)
        rotation[:2, :2] = [[c, -s], [s, c]]
        slide[2] = advance * angle
        screws = np.array([[0.0, 0.0, turns, 0.0, 0.0, advance]]).T
    motion = rotation_pose(rotation)
    motion[:3, 3] = slide
    return motion, screws


def _Ad_inverse(pose):
    """Takes a twist (omega, v) of the parent frame to the child frame at `pose`."""
    R, p = pose[:3, :3], pose[:3, 3]
    return np.block([[R.T, np.zeros((3, 3))], [-R.T @ skew(p), R.T]])
