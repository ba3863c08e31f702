"""Multipliers as wrenches: the wrench of each constraint on the body at its child side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.lie.algebra import add, cross, neg, rotate, sub, unrotate
from liedyn.machine.arguments import floats
from liedyn.machine.compiled.jit import kernel
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.cut_joints import loop_frames
from liedyn.mechanics.constraints.cut_joints import FORBIDDEN
from liedyn.mechanics.constraints.families.contact import contact, contact_wrench, contact_wrench_variation, sizes_of
from liedyn.mechanics.constraints.families.cut import rows_between
from liedyn.mechanics.constraints.relative import path_ends, relative_screw, toward_ground
from liedyn.mechanics.constraints.undefined import require_rows
from liedyn.mechanics.tree.kinematics import world_positions, world_size
from liedyn.model.calls.boundary import require_usable, states
from liedyn.model.constraint_records import (
    CONTACT, family_of, get_rotation, is_cut, loop_at, loop_count, loop_kind, loop_rows, refresh,
)
from liedyn.model.kinds import HELICAL
from liedyn.model.packed import (
    LOOPS_AT, LOOP_F, LOOP_FLOATS_AT, LOOP_FOLDING, LOOP_I, LOOP_KIND, LOOP_NROWS, LOOP_PITCH, LOOP_ROW,
)
from liedyn.model.packed_records import get6, put6
from liedyn.model.remembered import remembered

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike


@kernel
def contact_wrench_states(model, t, q, lam, out):
    """Wrenches of contacts, out (count, constraints, 6), in the user's axes of frame A; sets the model's time."""
    work = np.empty(world_size(model))
    out[:] = 0.0
    for b in range(q.shape[0]):
        refresh(model, t[b])
        world_positions(SCALAR, model, q[b], work)
        for l in range(loop_count(model)):
            first, count = loop_rows(model, l)
            # an inactive contact has no force, and may have no normal here
            if family_of(model, l) != CONTACT or not lam[b, first:first + count].any():
                continue
            L, r, p, d, _ = contact(model, work, l)
            M, F = contact_wrench(loop_kind(model, l), L, r, p, d, sizes_of((first, count), lam[b]))
            fold = get_rotation(model, loop_at(model, l, LOOP_FOLDING))
            put6(SCALAR, out[b, l], 0, (rotate(fold, neg(M)), rotate(fold, neg(F))))


@kernel
def turn_wrenches(model, t, q, wrenches):
    """Turn wrenches (count, constraints, 6) from the user's axes into world axes, about the origins of frames B."""
    work = np.empty(world_size(model))
    for b in range(q.shape[0]):
        refresh(model, t[b])
        world_positions(SCALAR, model, q[b], work)
        for l in range(loop_count(model)):
            if not is_cut(model, l) and family_of(model, l) != CONTACT:
                continue
            A, B = loop_frames(SCALAR, model, work, l)
            C = A[0], B[1]
            if is_cut(model, l):
                C = rows_between(model, l, False, A, B)[1]
            fold, F = get_rotation(model, loop_at(model, l, LOOP_FOLDING)), get6(SCALAR, wrenches[b, l], 0)
            moment, force = rotate(C[0], unrotate(fold, F[0])), rotate(C[0], unrotate(fold, F[1]))
            put6(SCALAR, wrenches[b, l], 0, (add(moment, cross(sub(C[1], B[1]), force)), force))


@kernel
def contact_wrench_derivatives(model, q, lam, l, by_lam, by_q):
    """Derivatives of the wrench of contact l by its own multipliers (6, rows) and by q (6, nv)."""
    work = np.empty(world_size(model))
    world_positions(SCALAR, model, q, work)
    kind, (first, count) = loop_kind(model, l), loop_rows(model, l)
    L, r, p, d, C = contact(model, work, l)
    fold = get_rotation(model, loop_at(model, l, LOOP_FOLDING))
    unit, column = np.zeros(lam.size), np.empty(6)
    for k in range(count):
        unit[first + k] = 1.0
        M, F = contact_wrench(kind, L, r, p, d, sizes_of((first, count), unit))
        unit[first + k] = 0.0
        put6(SCALAR, column, 0, (rotate(fold, neg(M)), rotate(fold, neg(F))))
        by_lam[:, k] = column
    by_q[:] = 0.0
    ja, jb = path_ends(model, l)
    while ja != jb:
        j = max(ja, jb)
        y = relative_screw(SCALAR, model, work, j, jb > ja, C)
        M, F = contact_wrench_variation(kind, L, r, p, d, y, sizes_of((first, count), lam))
        put6(SCALAR, column, 0, (rotate(fold, neg(M)), rotate(fold, neg(F))))
        by_q[:, j] = column
        ja, jb = toward_ground(model, ja, jb)


@remembered
def loop_wrench_matrix(robot, l):
    """The (6, rows) map from a loop's multipliers to the wrench on its child side, in the user's cut frame."""
    at = int(robot.packed.ints[LOOPS_AT]) + LOOP_I * l
    kind, first, count = (int(robot.packed.ints[at + k]) for k in (LOOP_KIND, LOOP_ROW, LOOP_NROWS))
    W = np.zeros((6, count))
    for r in range(count):
        W[FORBIDDEN[kind, r], r] = 1.0
        if kind == HELICAL and FORBIDDEN[kind, r] == 5:
            W[2, r] = -robot.packed.floats[int(robot.packed.ints[LOOP_FLOATS_AT]) + LOOP_F * l + LOOP_PITCH]
    fold = robot.loop_folding[l]
    return -np.vstack([fold @ W[:3], fold @ W[3:]]), slice(first, first + count)


@remembered
def _loop_wrench_matrices(robot):
    """`loop_wrench_matrix` of all cut joints."""
    return [loop_wrench_matrix(robot, l) for l in range(len(robot.loop_names))]


def wrenches_at(robot, t, q, lam):
    """Wrenches (count, 6) by constraint name, for rows of times, configurations and multipliers.

    For cut joints they are a constant map of the multipliers; for contacts the map depends on q.
    """
    out = {name: lam[:, rows] @ W.T for name, (W, rows) in zip(robot.loop_names, _loop_wrench_matrices(robot))}
    pairs = {each.name for each in robot.model.constraints if each.parent is not None}
    if pairs:
        t = np.broadcast_to(t, len(q)).copy()
        found = np.empty((len(q), len(robot.constraint_names), 6))
        contact_wrench_states(
            robot.packed._replace(floats=robot.packed.floats.copy()), t, np.ascontiguousarray(q),
            np.ascontiguousarray(lam),
            found)
        out |= {name: found[:, k] for k, name in enumerate(robot.constraint_names) if name in pairs}
    return out


def constraint_wrenches(robot: Robot, q: ArrayLike, lam: ArrayLike) -> dict[str, Any]:
    """The wrench of every constraint on the body at its child side.

    Parameters
    ----------
    robot : Robot
        At the time of ``robot.at(t)``, if constraints move.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    lam : array_like, shape (..., m)
        Multipliers, rows as in ``robot.row_names``.

    Returns
    -------
    wrenches : dict
        By constraint name (moment, force) [N m, N], shape (..., 6): of a loop in its cut frame, with the axes the user
        declared; of a contact about the origin of its frame B, in the axes of frame A. Couplings, cables and
        custom rows have no frames and are omitted.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.
    SingularConfigurationError
        A constraint has no direction at q.

    Notes
    -----
    ``-W lam``, with W the directions of the rows (`liedyn.mechanics.constraints.cut_joints`,
    `liedyn.mechanics.constraints.families.contact`).

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> r = ld.forward_dynamics(loader, loader.home, [0.0] * 8, [0.0] * 8)
    >>> sorted(ld.constraints.constraint_wrenches(loader, loader.home, r.lam))
    ['lift_pin', 'link_pin', 'tilt_pin']
    """
    return _wrenches(robot, q, lam, in_world=False)


def world_constraint_wrenches(robot: Robot, q: ArrayLike, lam: ArrayLike) -> dict[str, Any]:
    """The wrench of every constraint on the body at its child side, in world axes.

    Parameters
    ----------
    robot : Robot
        At the time of ``robot.at(t)``, if constraints move.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    lam : array_like, shape (..., m)
        Multipliers, rows as in ``robot.row_names``.

    Returns
    -------
    wrenches : dict
        By constraint name (moment, force) [N m, N], shape (..., 6), in world axes, the moment about the origin of the
        constraint's frame B, which is fixed in the child. Couplings, cables and custom rows have no frames:
        they are omitted.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.
    SingularConfigurationError
        A constraint has no direction at q.

    Notes
    -----
    The wrenches of `constraint_wrenches` in world axes; those of cut joints are moved from the cut frame to frame B.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> r = ld.forward_dynamics(loader, loader.home, [0.0] * 8, [0.0] * 8)
    >>> ld.constraints.world_constraint_wrenches(loader, loader.home, r.lam)["lift_pin"].shape
    (6,)
    """
    return _wrenches(robot, q, lam, in_world=True)


def _wrenches(robot, q, lam, in_world):
    lead, q = states(robot, q=q)
    lam = floats("lam", lam)
    if lam.shape != lead + (len(robot.row_names),):
        raise InputError(f"lam must have shape {lead + (len(robot.row_names),)}, got {lam.shape}")
    require_usable("lam", lam)
    wrenches = wrenches_at(robot, np.full(len(q), robot.t), q, lam.reshape(len(q), -1))
    raise_errors(robot.functions)
    rows = np.zeros((len(q), len(robot.row_names)))
    for name, F in wrenches.items():
        if not np.isfinite(F).all():
            rows[:, np.array(robot.row_owners) == name] = F.sum(axis=1, keepdims=True)
    require_rows(robot, lead, rows)
    if in_world:
        found = np.zeros((len(q), len(robot.constraint_names), 6))
        for name, F in wrenches.items():
            found[:, robot.constraint_index(name)] = F
        turn_wrenches(robot.packed._replace(floats=robot.packed.floats.copy()), np.full(len(q), robot.t), q, found)
        wrenches = {name: found[:, robot.constraint_index(name)] for name in wrenches}
    return {name: F.reshape(lead + (6,)) for name, F in wrenches.items()}
