"""The packed model: one int64 array and one float64 array, the only form in which kernels see a robot.

Layout. The header holds counts and offsets; records of fixed size follow. Numba treats these constants as literals.

====== =================================================================================================================
ints   header (20) | links (LINK_I each) | dofs (DOF_I) | bodies (BODY_I) | loops (LOOP_I) | clusters (CLUSTER_I)
floats gravity (3), 0 | links (LINK_F) | dofs (DOF_F) | rest (nq) | bodies (BODY_F) | loops (LOOP_F) | room | weights
====== =================================================================================================================

A pose is R (9, row-major) then p (3). A link's placement is its frame, at zero, in the frame of its parent link. Links
are numbered depth first, parents before children; link -1 is the ground. Room is that of couplings and custom rows.
Weights are those of rows (m) and columns (nv) of the constraints, by which ranks are judged
(`liedyn.machine.linalg.ranks`); `liedyn.model.build` puts them there, and notes in the header whether any is
not 1.
"""

from typing import NamedTuple

import numpy as np

from liedyn.model.cable_paths import path_numbers
from liedyn.model.clusters import clusters, pack_clusters
from liedyn.model.frames import joint_basis, rotation_pose, turns
from liedyn.model.kinds import (  # noqa: F401  codes of primitives are part of the layout
    CONSTRAINT_KINDS, FREE, JOINTS, KINDS, LOOP_KINDS, PRISMATIC, REVOLUTE,
)

# Header of ints: counts, then offsets of the record arrays.
N_LINKS, NQ, NV, N_BODIES, N_LOOPS, N_ROWS, N_VIRTUAL = range(7)
LINKS_AT, DOFS_AT, BODIES_AT, LOOPS_AT = range(7, 11)
LINK_FLOATS_AT, DOF_FLOATS_AT, REST_AT, BODY_FLOATS_AT, LOOP_FLOATS_AT = range(11, 16)
N_CLUSTERS, CLUSTERS_AT = 16, 17
SPARSE = 18
"""Entries reserved for L and U of long chains of loops (`liedyn.mechanics.constraints.sparse_factor`); else 0."""
WEIGHED = 19  # 1 if some weights of rows or columns are not 1
HEADER = 20
GRAVITY, TIME = 0, 3  # in floats
GRAVITY_SIZE = 4

# Records: size, then the meaning of each entry.
LINK_I = 8
LINK_PARENT, LINK_PRIMITIVE, LINK_IQ, LINK_IV, LINK_NV, LINK_NQ, LINK_JOINT = range(7)
LINK_F = 40
LINK_PLACEMENT, LINK_MASS, LINK_MOMENT, LINK_INERTIA, LINK_PITCH = 0, 12, 13, 16, 22  # inertia: xx, xy, xz, yy, yz, zz
LINK_TURNS, LINK_SHIFT = 23, 29  # the placement as Rz(beta) (Rx(alpha) Rz(gamma), r): cosines and sines; r
# Q = sum of m r r^T, the second moments that correspond to the inertia, in the same order
LINK_SPREAD, LINK_END = 32, 38

DOF_I = 6
DOF_LINK, DOF_PREVIOUS = range(2)  # previous dof towards the root, -1 if none
# the first dof on the way from the ground to this one; the first one after all that it carries
DOF_ROOT, DOF_END = 2, 3
DOF_FORK, DOF_STRETCH = 4, 5  # number among those that carry several dofs directly, else -1; first dof after a fork
DOF_F = 4
DOF_ARMATURE, DOF_DAMPING, DOF_STIFFNESS = range(3)

BODY_I = 2  # bodies first, N_BODIES of them, then all frames, in one list of records
BODY_LINK = 0
BODY_F = 12
BODY_POSE = 0  # of the body in its link; in the world if the link is -1

LOOP_I = 19  # cut joints first, then all other constraints, in one list of records
LOOP_LINK_A, LOOP_LINK_B, LOOP_KIND, LOOP_ROW, LOOP_NROWS, LOOP_VIRTUAL, LOOP_NVIRTUAL = range(7)
LOOP_ACTIVE, LOOP_HOLONOMIC = 7, 8  # status, below; number of holonomic rows, which come first
LOOP_TARGET, LOOP_TARGET_SIZE = 9, 10  # address of the function that moves frame A (0: none), and size of its result
LOOP_COEFFICIENTS = 11  # index in floats: of a coupling's coefficients, one for each of nv; of a cable's path
LOOP_RESIDUAL, LOOP_JACOBIAN, LOOP_DRIFT, LOOP_BIAS, LOOP_DERIVATIVES, LOOP_FORCE = range(12, 18)  # addresses, custom
LOOP_SIDE = 18  # +1 or -1: the residual of the first row must not become negative, or positive; else 0
LOOP_F = 93
LOOP_POSE_A, LOOP_POSE_B, LOOP_PITCH = 0, 12, 24  # frames A and B in their links, axes folded into z (or x, y)
LOOP_LENGTH, LOOP_RADIUS, LOOP_DIRECTION = 25, 26, 27  # of the parent's side; of the child's; child's axis in frame B
LOOP_LIMIT = 26  # of dry friction, instead of radius and direction: coulomb, static, stribeck, viscous
LOOP_MOTION, LOOP_TWIST, LOOP_RATE = 30, 42, 48  # of the moving frame in A: pose, body-fixed twist, its rate
LOOP_FOLDING, LOOP_TOLD = 54, 63  # rotation from the folded to the user's axes of frame A; result of the target

LOOP_RESTITUTION, LOOP_FRICTION = 91, 92  # of one-sided constraints

# Status of a constraint. Positive ones have rows: all of them, or those with a residual for a sliding contact. An open
# contact has no rows, but is monitored.
OPEN, OFF, ON, SLIDING = -1, 0, 1, 2
STATUS = {OFF: "off", OPEN: "open", SLIDING: "sliding", ON: "sticking"}  # names for one-sided constraints
OF_CABLES = {"open": "slack", "leaving": "going slack", "sliding": "taut", "sticking": "held taut"}
"""What a mode of a contact means for a cable, which has no friction."""
EVENTS_OF_CABLES = {"contact": "becomes taut", "release": "goes slack"}

# constraints that share degrees of freedom; the last cluster has no rows, and the other degrees of freedom
CLUSTER_I = 4
CLUSTER_NROWS, CLUSTER_NDOFS, CLUSTER_ROWS, CLUSTER_DOFS = range(4)  # how many, and index in ints of their numbers

_TRIANGLE = np.triu_indices(3)


class PackedModel(NamedTuple):
    """A robot in the form that kernels use, as their argument `model`."""

    ints: np.ndarray
    floats: np.ndarray


def links_of(model):
    """Views of the records of links: integers (n, LINK_I) and numbers (n, LINK_F)."""
    return _records(model, N_LINKS, LINKS_AT, LINK_I, LINK_FLOATS_AT, LINK_F)


def dofs_of(model):
    """Views of the records of degrees of freedom: integers (nv, DOF_I) and numbers (nv, DOF_F)."""
    return _records(model, NV, DOFS_AT, DOF_I, DOF_FLOATS_AT, DOF_F)


def constraints_of(model):
    """Views of the records of constraints, cut joints first: integers (count, LOOP_I) and numbers (count, LOOP_F)."""
    return _records(model, N_LOOPS, LOOPS_AT, LOOP_I, LOOP_FLOATS_AT, LOOP_F)


def _records(model, count, ints_at, ints_size, floats_at, floats_size):
    ints, floats = model
    first, start, n = ints.item(ints_at), ints.item(floats_at), ints.item(count)
    return (ints[first:first + n * ints_size].reshape(n, ints_size),
            floats[start:start + n * floats_size].reshape(n, floats_size))


def pack(model, tree):
    """Pack a valid model with the links `tree` (:func:`liedyn.model.links.link_tree`), in the layout at the top."""
    link_ints, link_floats = _links(tree)
    dof_ints, dof_floats = _dofs(tree)
    rest = np.concatenate([np.empty(0)] + [joint.rest for joint in tree.joints])
    body_ints, body_floats = _bodies(model, tree)
    loop_ints, loop_floats = _constraints(model, tree)

    gravity = np.append(model.gravity, 0.0)
    n_rows, n_virtual = loop_ints[:, [LOOP_NROWS, LOOP_NVIRTUAL]].sum(axis=0)
    counts = [len(tree.links), len(rest), len(dof_ints), len(model.bodies), len(loop_ints), n_rows, n_virtual]
    int_parts = [link_ints, dof_ints, body_ints, loop_ints]
    float_parts = [link_floats, dof_floats, rest, body_floats, loop_floats]
    extra = _room(model, tree, len(dof_ints), loop_ints, GRAVITY_SIZE + sum(part.size for part in float_parts))
    groups, entries = clusters(model, tree, dof_ints[:, DOF_LINK])
    clusters_at = HEADER + sum(part.size for part in int_parts)
    header = counts + _offsets(HEADER, int_parts) + _offsets(GRAVITY_SIZE, float_parts)
    header += [len(groups), clusters_at, entries, 0]
    int_parts.append(pack_clusters(groups, loop_ints[:, [LOOP_ROW, LOOP_NROWS]].tolist(), clusters_at))
    return PackedModel(np.concatenate([np.array(header, dtype=np.int64), *(part.ravel() for part in int_parts)]),
                       np.concatenate([
                           gravity, *(part.ravel() for part in float_parts), extra, np.ones(n_rows + len(dof_ints))]))


def status_code(on, one_sided):
    """The status for True, False or, for a one-sided constraint, a word; None for anything else."""
    if isinstance(on, bool | np.bool_):
        return (OPEN if one_sided else ON) if on else OFF
    return {word: code for code, word in STATUS.items()}.get(on) if one_sided and isinstance(on, str) else None


def _offsets(start, parts):
    """Start indices of parts that follow one another from `start`."""
    return [start + sum(part.size for part in parts[:k]) for k in range(len(parts))]


def _pose_numbers(pose):
    return np.concatenate([pose[:3, :3].ravel(), pose[:3, 3]])


def _links(tree):
    ints = np.zeros((len(tree.links), LINK_I), dtype=np.int64)
    floats = np.zeros((len(tree.links), LINK_F))
    iq = iv = 0
    for link, numbers, record in zip(tree.links, ints, floats):
        nv, nq = JOINTS[link.primitive].nv, JOINTS[link.primitive].nq
        numbers[: LINK_JOINT + 1] = link.parent, link.primitive, iq, iv, nv, nq, link.joint
        record[LINK_PLACEMENT:LINK_MASS] = _pose_numbers(link.placement)
        record[LINK_MASS] = link.mass
        record[LINK_MOMENT:LINK_INERTIA] = link.moment
        record[LINK_INERTIA:LINK_PITCH] = link.inertia[_TRIANGLE]
        record[LINK_PITCH] = link.pitch
        record[LINK_TURNS:LINK_SHIFT] = turns(link.placement[:3, :3])
        (c, s), (x, y, z) = record[LINK_SHIFT - 2:LINK_SHIFT], link.placement[:3, 3]
        record[LINK_SHIFT:LINK_SPREAD] = c * x + s * y, c * y - s * x, z
        record[LINK_SPREAD:LINK_END] = spread(record[LINK_INERTIA:LINK_PITCH])
        iq, iv = iq + nq, iv + nv
    return ints, floats


def spread(inertia):
    """Second moments Q of bodies with rotational inertias J = tr(Q) 1 - Q, both as (..., 6) upper triangles."""
    half = inertia[..., [0, 3, 5]].sum(axis=-1, keepdims=True) / 2
    return half * [1, 0, 0, 1, 0, 1] - inertia


def _dofs(tree):
    ints, last = [], {-1: -1}  # last: number of the last dof of each link
    for number, link in enumerate(tree.links):
        previous = last[link.parent]
        for _ in range(JOINTS[link.primitive].nv):
            root = ints[previous][DOF_ROOT] if previous >= 0 else len(ints)
            ints.append([number, previous, root, len(ints) + 1, -1, 0])
            previous = len(ints) - 1
        last[number] = previous
    for dof in reversed(ints):  # depth first: the dofs that a dof carries follow it without a gap
        if dof[DOF_PREVIOUS] >= 0:
            ints[dof[DOF_PREVIOUS]][DOF_END] = max(ints[dof[DOF_PREVIOUS]][DOF_END], dof[DOF_END])
    carriers = sorted(dof[DOF_PREVIOUS] for dof in ints if dof[DOF_PREVIOUS] >= 0)
    for fork, j in enumerate(sorted({a for a, b in zip(carriers, carriers[1:]) if a == b})):
        ints[j][DOF_FORK] = fork
    for j, dof in enumerate(ints):
        joins = dof[DOF_PREVIOUS] < 0 or ints[dof[DOF_PREVIOUS]][DOF_FORK] >= 0
        dof[DOF_STRETCH] = j if joins else ints[j - 1][DOF_STRETCH]
    floats = np.zeros((len(ints), DOF_F))
    for column, name in ((DOF_ARMATURE, "armature"), (DOF_DAMPING, "damping"), (DOF_STIFFNESS, "stiffness")):
        floats[:, column] = [value for joint in tree.joints for value in getattr(joint, name)]
    return np.array(ints, dtype=np.int64).reshape(-1, DOF_I), floats


def _bodies(model, tree):
    named = model.bodies + model.frames
    ints, floats = np.zeros((len(named), BODY_I), dtype=np.int64), np.zeros((len(named), BODY_F))
    for body, numbers, record in zip(named, ints, floats):
        numbers[BODY_LINK] = tree.body_links[body.name]
        record[BODY_POSE:BODY_F] = _pose_numbers(tree.body_poses[body.name])
    return ints, floats


def _constraints(model, tree):
    everything = model.loops + model.constraints
    ints, floats = np.zeros((len(everything), LOOP_I), dtype=np.int64), np.zeros((len(everything), LOOP_F))
    row = virtual = 0
    for each, numbers, record in zip(everything, ints, floats):
        is_loop = each.kind in LOOP_KINDS
        n_rows, n_virtual = len(rows_of(each)), LOOP_KINDS[each.kind].nv if is_loop else 0
        links = (-1, -1) if each.parent is None else (tree.body_links[each.parent], tree.body_links[each.child])
        numbers[: LOOP_HOLONOMIC + 1] = (
            *links, KINDS.index(each.kind), row, n_rows, virtual, n_virtual,
            status_code(each.active, one_sided=not is_loop and each.side), n_rows if is_loop else each.holonomic)
        if not is_loop and each.side:
            numbers[LOOP_SIDE] = each.side
            record[LOOP_RESTITUTION], record[LOOP_FRICTION] = each.restitution, each.friction
        if each.parent is not None:
            _frames(each, joint_basis(each.axes if is_loop else (each.axis,)), is_loop, tree, record)
        if is_loop:
            record[LOOP_PITCH] = each.pitch
        else:
            record[LOOP_LENGTH] = each.offset if CONSTRAINT_KINDS[each.kind].coefficients else each.length
            record[LOOP_RADIUS] = each.radius
            record[LOOP_DIRECTION:LOOP_MOTION] = each.child_axis
            record[LOOP_LIMIT:LOOP_LIMIT + len(each.limit)] = each.limit
        row, virtual = row + n_rows, virtual + n_virtual
    return ints, floats


def rows_of(each):
    """Suffixes of the rows of a cut joint or constraint."""
    return LOOP_KINDS[each.kind].rows if each.kind in LOOP_KINDS else each.rows


def _frames(each, folding, both, tree, record):
    """Frames A and B; the axis of a cut joint is rotated to z in both, that of a surface in A only."""
    fold = rotation_pose(folding)
    frame_a = tree.body_poses[each.parent] @ each.parent_placement @ fold
    frame_b = tree.body_poses[each.child] @ each.child_placement @ (fold if both else np.eye(4))
    record[LOOP_POSE_A:LOOP_POSE_B] = _pose_numbers(frame_a)
    record[LOOP_POSE_B:LOOP_PITCH] = _pose_numbers(frame_b)
    record[LOOP_FOLDING:LOOP_TOLD] = folding.ravel()
    record[LOOP_MOTION:LOOP_TWIST] = _pose_numbers(np.eye(4))


def _room(model, tree, nv, ints, start):
    """Numbers after the records: coefficients of couplings (still zero), scratch space of custom rows, paths of
    cables."""
    parts = [np.empty(0)]
    for each, numbers in zip(model.constraints, ints[len(model.loops):]):
        size = CONSTRAINT_KINDS[each.kind].coefficients * nv
        if each.kind == "custom":
            size = max(3 * len(each.rows) * nv, nv * nv + len(each.rows))
        numbers[LOOP_COEFFICIENTS] = start + sum(part.size for part in parts)
        parts.append(path_numbers(tree, each.stations) if each.stations else np.zeros(size))
    return np.concatenate(parts)


class Shown(str):
    """A word that programs compare, with others in its representation: equal to "sliding", and shown as taut.

    Examples
    --------
    >>> mode = Shown("sliding", "taut")
    >>> mode, str(mode), mode == "sliding"
    (<taut: 'sliding'>, 'sliding', True)
    """

    def __new__(cls, word, words):
        made = super().__new__(cls, word)
        made.words = words
        return made

    def __getnewargs__(self):
        return str.__str__(self), self.words

    def __repr__(self):
        return f"<{self.words}: {str.__repr__(self)}>"


def as_shown(word):
    """The words of a `Shown`, or any other word itself."""
    return word.words if isinstance(word, Shown) else word


def mode_of_cable(mode):
    """The mode of a one-sided constraint that is a cable."""
    return Shown(mode, OF_CABLES[mode]) if mode in OF_CABLES else mode


def event_of_cable(what, name):
    """The name of the event that a cable becomes taut or slack: "contact rope", "release rope"."""
    word = f"{what} {name}"
    return Shown(word, f"{name} {EVENTS_OF_CABLES[what]}") if what in EVENTS_OF_CABLES else word
