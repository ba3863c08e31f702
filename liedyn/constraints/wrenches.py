"""Multipliers as wrenches: what each constraint does to the body on its child side."""
import numpy as np

from liedyn.boundary import states
from liedyn.constraints.contacts import contact, contact_wrench
from liedyn.constraints.cut_rows import cut_wrench
from liedyn.constraints.records import (
    get_rotation, is_contact, is_cut, loop_at, loop_count, loop_kind, loop_pitch, loop_rows,
)
from liedyn.errors import InputError
from liedyn.jit import kernel
from liedyn.lie.algebra import neg, rotate
from liedyn.lie.lanes import SCALAR
from liedyn.model.packed import LOOP_FOLDING
from liedyn.tree.kinematics import world_positions, world_size
from liedyn.tree.records import put3


@kernel
def wrench_states(ints, floats, q, lam, out):
    """out (count, constraints, 6), in the user's axes of each frame; zero for what pulls not and what has no frames."""
    work = np.empty(world_size(ints))
    out[:] = 0.0
    for b in range(q.shape[0]):
        world_positions(SCALAR, ints, floats, q[b], work)
        for l in range(loop_count(ints)):
            first, count = loop_rows(ints, l)
            if not (is_cut(ints, l) or is_contact(ints, l)) or not lam[b, first:first + count].any():
                continue
            if is_cut(ints, l):
                M, F = cut_wrench(loop_kind(ints, l), loop_pitch(ints, floats, l), first, count, lam[b])
            else:
                L, r, p, d, _ = contact(ints, floats, work, l)
                M, F = contact_wrench(loop_kind(ints, l), L, r, p, d, count, lam[b], first)
            fold = get_rotation(floats, loop_at(ints, l, LOOP_FOLDING))
            put3(SCALAR, out[b, l], 0, rotate(fold, neg(M)))
            put3(SCALAR, out[b, l], 3, rotate(fold, neg(F)))


def constraint_wrenches(robot, q, lam):
    """The wrench of every constraint on the body at its child side.

    Parameters
    ----------
    robot : Robot
        At the time of ``robot.at(t)``, where constraints move.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    lam : array_like, shape (..., m)
        Multipliers, rows as in ``robot.row_names``.

    Returns
    -------
    wrenches : dict
        By constraint name (moment, force) [N m, N], shape (..., 6): of a loop in its cut frame, with the axes the user
        declared; of a contact about the origin of its frame B, in the axes of frame A. Couplings and custom rows have
        no frames and are left out.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

    Notes
    -----
    ``-W lam``, with W the directions of the rows (`liedyn.constraints.cut_joints`, `liedyn.constraints.contacts`).

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> r = ld.forward_dynamics(loader, loader.home, [0.0] * 8, [0.0] * 8)
    >>> sorted(ld.constraints.constraint_wrenches(loader, loader.home, r.lam))
    ['lift_pin', 'link_pin', 'tilt_pin']
    """
    lead, q = states(robot, q=q)
    lam = np.asarray(lam, dtype=np.float64)
    if lam.shape != lead + (len(robot.row_names),):
        raise InputError(f"lam must have shape {lead + (len(robot.row_names),)}, got {lam.shape}")
    out = np.empty((len(q), len(robot.constraint_names), 6))
    wrench_states(robot.ints, robot.floats, q, np.ascontiguousarray(lam.reshape(len(q), -1)), out)
    frames = list(robot.model.loops) + list(robot.model.constraints)
    return {each.name: out[:, k].reshape(lead + (6,)) for k, each in enumerate(frames) if each.parent is not None}
