"""Whether the mass matrix of the open tree is regular, and if not, which bodies make it singular.

For most trees the articulated inertias of the joints show that it is regular. Otherwise the kinetic energy |W v|^2 / 2
decides. W has six rows for each body, the velocity of its centre of mass and its angular velocity about its principal
axes, weighted by square roots of mass and moments, and one row for each armature. The tree is singular if W has
dependent columns at random configurations.
"""

import numpy as np

from liedyn.machine.errors import ModelError, listed
from liedyn.model.description import GROUND
from liedyn.model.frames import skew
from liedyn.model.kinds import JOINTS, JOINT_KINDS

DEPENDENT = 1e-7  # singular value of W, columns scaled to length one: a motion below it has no inertia
# columns of W below this fraction of the longest, and principal moments below this fraction of the largest, are zero
ROUNDING = 1e-12
SOUND = 1e-5  # a joint whose articulated inertia is a larger fraction of the inertia it carries needs no further check
NEGLIGIBLE = 1e-6  # component of a null vector
_ATTEMPTS = 3  # a regular tree may be singular at one random configuration by chance, but not at three


def singular_bodies(model, tree):
    """Bodies whose motion has no inertia in the open tree but is prevented by loops; usually none.

    ModelError if there are bodies without inertia whose motion no loop prevents.
    """
    if not tree.links or _every_joint_moves_inertia(tree, np.random.default_rng(0)):
        return ()
    for attempt in range(_ATTEMPTS):
        null = _null_space(_energy_root(model, tree, np.random.default_rng(attempt)))
        if null.shape[1] == 0:
            return ()
    moved = np.abs(null).max(axis=1) > NEGLIGIBLE
    owners = [joint for joint in tree.joints for _ in JOINT_KINDS[joint.kind].velocities]
    culprits = tuple(dict.fromkeys(joint.child for joint, moves in zip(owners, moved) if moves))
    loose = [name for name in culprits if name not in _held_by_loops(model)]
    if loose:
        raise ModelError(f"the motion of body {listed(loose)} has no inertia, so the mass matrix is singular; "
                         "give it mass and inertia, give its joint armature, or fix it")
    return culprits


def _every_joint_moves_inertia(tree, rng):
    """True if every joint has inertia, at a random configuration, when the joints that it carries move freely.

    Their articulated inertias are the pivots of the mass matrix (Featherstone, Rigid Body Dynamics Algorithms, 2008,
    section 7.2). False if one of them is too small to be distinguished from rounding.
    """
    armature = _armature(tree)
    column = len(armature)
    before = [_spatial_inertia(link) for link in tree.links]  # with the joints that a link carries locked
    after = [inertia.copy() for inertia in before]
    for k in reversed(range(len(tree.links))):
        link = tree.links[k]
        motion, S = _random_motion(link, rng)
        column -= S.shape[1]
        own = np.diag(armature[column : column + S.shape[1]])
        U = after[k] @ S
        D = S.T @ U + own
        traces = np.repeat([np.trace(before[k][:3, :3]), np.trace(before[k][3:, 3:])], 3)
        summed = np.diag(traces @ S**2 + np.diag(own))  # sum of absolute values, to estimate cancellation
        locked = np.diag(np.diag(S.T @ before[k] @ S + own))
        if np.linalg.eigvalsh([D - ROUNDING * summed, D - SOUND * locked])[:, 0].min() <= np.finfo(np.float64).tiny:
            return False
        if link.parent >= 0:
            X = _Ad_inverse(link.placement @ motion)
            before[link.parent] += X.T @ after[k] @ X
            after[link.parent] += X.T @ (after[k] - U @ np.linalg.solve(D, U.T)) @ X
    return True


def _armature(tree):
    return np.concatenate([joint.armature for joint in tree.joints])


def _spatial_inertia(link):
    h = skew(link.moment)
    return np.block([[link.inertia, h], [h.T, link.mass * np.eye(3)]])


def _held_by_loops(model):
    """Bodies that are an end of a loop or constraint, and all their ancestors; effects of custom rows are unknown."""
    parents = {joint.child: joint.parent for joint in model.tree_joints}
    held = set()
    if any(constraint.kind == "custom" for constraint in model.constraints):
        return set(parents)
    pairs = [(each.parent, each.child) for each in model.loops + model.constraints if each.parent is not None]
    moved = {joint.name + suffix: joint.child
             for joint in model.joints for suffix in JOINT_KINDS[joint.kind].velocities}
    pairs += [(moved[name], GROUND) for constraint in model.constraints for name in constraint.coefficients
              if name in moved]
    pairs += [tuple(each.bodies) for each in model.constraints if each.stations]
    for pair in pairs:
        for body in pair:
            while body != GROUND and body not in held:
                held.add(body)
                body = parents[body]
    return held


def _null_space(W):
    """Velocities without kinetic energy, as columns, in coordinates scaled by their own inertia."""
    lengths = np.linalg.norm(W, axis=0)
    scale = np.where(lengths > ROUNDING * lengths.max(), lengths, np.inf)
    # W has at least as many rows as columns: one for each armature
    _, values, Vt = np.linalg.svd(W / scale, full_matrices=False)
    return Vt[np.count_nonzero(values > DEPENDENT * np.sqrt(len(lengths))):].T


def _energy_root(model, tree, rng):
    """W at a random configuration, so that M = W^T W."""
    armature = _armature(tree)
    jacobians = _body_jacobians(tree, len(armature), rng)
    rows = [np.diag(np.sqrt(armature))]
    for body in model.bodies:
        link = tree.body_links[body.name]
        if link >= 0:
            omega, v = np.split(_Ad_inverse(tree.body_poses[body.name]) @ jacobians[link], 2)
            moments, axes = np.linalg.eigh(body.inertia)
            moments[moments < ROUNDING * moments[-1]] = 0.0
            rows.append(np.sqrt(body.mass) * (v - skew(body.com) @ omega))
            rows.append(np.sqrt(moments)[:, np.newaxis] * (axes.T @ omega))
    return np.concatenate(rows)


def _body_jacobians(tree, nv, rng):
    """Body Jacobian (6, nv) of every link at a random configuration."""
    jacobians, column = [], 0
    for link in tree.links:
        motion, screws = _random_motion(link, rng)
        above = np.zeros((6, nv)) if link.parent < 0 else jacobians[link.parent]
        jacobian = _Ad_inverse(link.placement @ motion) @ above
        jacobian[:, column : column + screws.shape[1]] = screws
        column += screws.shape[1]
        jacobians.append(jacobian)
    return jacobians


def _random_motion(link, rng):
    """Pose of a link relative to its placement at random coordinates, and the body screws (6, nv) of these."""
    screws = JOINTS[link.primitive].screws_of(link.pitch)
    omega, v = np.split(screws @ rng.uniform(-3.0, 3.0, size=screws.shape[1]), 2)
    angle, motion = np.linalg.norm(omega), np.eye(4)
    K = skew(omega) / (angle or 1.0)  # exponential of a twist, by Rodrigues' formula
    motion[:3, :3] += np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K
    motion[:3, 3] = v + ((1.0 - np.cos(angle)) * K @ v + (angle - np.sin(angle)) * K @ K @ v) / (angle or 1.0)
    return motion, screws


def _Ad_inverse(pose):
    """Matrix that transforms a twist (omega, v) from the parent frame to the child frame at `pose`."""
    R, p = pose[:3, :3], pose[:3, 3]
    return np.block([[R.T, np.zeros((3, 3))], [-R.T @ skew(p), R.T]])
