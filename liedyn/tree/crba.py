"""Composite-rigid-body algorithm: the joint-space inertia matrix (Featherstone 2008, section 6.2), world coordinates.

Composite inertias add up without a transform; each column of M is then the momentum that one unit of joint speed gives
to all it carries, felt at every joint on the way to the ground.
"""
from liedyn.boundary import delivered, rows_for, states
from liedyn.direct import configuration, direct, model, result
from liedyn.jit import inline, kernel_in_place
from liedyn.lie.algebra import dot6, inertia_in_parent, inertia_times
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, load, store
from liedyn.objects import is_none, numbers, scratch
from liedyn.tree.batches import aligned, batch, gather, in_lanes, scatter_matrix, tile_for
from liedyn.tree.kinematics import S, of_dof, world_pose, world_positions, world_size
from liedyn.tree.records import (
    armature, dof_count, dof_total, first_dof, get6, get_inertia, inertia, link_count, parent, previous_dof,
    put_inertia,
)

INERTIA = 10  # numbers per link beyond the shared workspace: composite inertia (m, h, J)


@inline
def inertia_entries(lane, ints, floats, base, size, work, M):
    """All entries that are not zero: those of pairs of which one carries the other."""
    n, nv = link_count(ints), dof_total(ints)
    for i in range(n):
        I = get_inertia(lane, work, base + size * i)
        for j in range(first_dof(ints, i), first_dof(ints, i) + dof_count(ints, i)):
            Sj = get6(lane, work, of_dof(ints, j, S))
            carried = inertia_times(I, Sj)
            store(lane, M, j * nv + j, dot6(carried, Sj) + armature(ints, floats, j))
            k = previous_dof(ints, j)
            while k >= 0:
                inertia_kj = dot6(carried, get6(lane, work, of_dof(ints, k, S)))
                store(lane, M, k * nv + j, inertia_kj)
                store(lane, M, j * nv + k, inertia_kj)
                k = previous_dof(ints, k)


@inline
def inertia_columns(lane, ints, floats, base, size, work, M):
    """M (nv, nv) from the composite inertias at work[base + size * i:] of all links i."""
    for k in range(dof_total(ints) * dof_total(ints)):
        store(lane, M, k, 0.0)
    inertia_entries(lane, ints, floats, base, size, work, M)


@kernel_in_place
def composite_inertias(lane, ints, floats, q, work):
    """Poses, screws, and behind these the inertia of all that each joint carries."""
    world_positions(lane, ints, floats, q, work)
    n, base = link_count(ints), world_size(ints)
    for i in range(n):
        I = inertia_in_parent(world_pose(lane, work, i), inertia(ints, floats, i))
        put_inertia(lane, work, base + INERTIA * i, I)
    for i in range(n - 1, -1, -1):
        if parent(ints, i) >= 0:
            c, up = base + INERTIA * i, base + INERTIA * parent(ints, i)
            for k in range(INERTIA):
                store(lane, work, up + k, load(lane, work, up + k) + load(lane, work, c + k))


@kernel_in_place
def crba_kernel(lane, ints, floats, q, work, M):
    """M(q), nv x nv, armatures on its diagonal."""
    composite_inertias(lane, ints, floats, q, work)
    inertia_columns(lane, ints, floats, world_size(ints), INERTIA, work, M)


@batch
def crba_states(begin, end, ints, floats, q, M):
    """`crba_kernel` on each row; M has one row of nv * nv numbers per state."""
    work = aligned((world_size(ints) + INERTIA * link_count(ints)) * WIDTH)
    if end - begin == 1:
        crba_kernel(SCALAR, ints, floats, q[begin], work, M[begin])
        return
    q_w, M_w, tile = in_lanes(q), in_lanes(M), tile_for(M)
    M_w[:] = 0.0  # once: zeros stay where they are
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        composite_inertias(LANES, ints, floats, q_w, work)
        inertia_entries(LANES, ints, floats, world_size(ints), INERTIA, work, M_w)
        scatter_matrix(M_w, b, end, M, tile)


@direct
def crba_direct(ints, floats, q, out):
    """`crba_kernel` on one state as Python passes it."""
    ints, floats = model(ints, floats)
    q, nv, work = configuration(ints, q), dof_total(ints), scratch(world_size(ints) + INERTIA * link_count(ints))
    M = result(out, (nv, nv), (floats, q, work))
    if not is_none(M):
        crba_kernel(SCALAR, ints, floats, q, work, numbers(M, nv * nv))
    return M


def crba(robot, q, out=None):
    """Joint-space inertia matrix of the open tree by the composite-rigid-body algorithm.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    out : ndarray, shape (..., nv, nv), optional
        Where the result goes: C-contiguous float64 of the very shape of the result.

    Returns
    -------
    M : ndarray, shape (..., nv, nv)
        Symmetric inertia matrix [kg m^2, kg m, kg], joint armatures on its diagonal.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

    Notes
    -----
    Featherstone 2008, section 6.2.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> ld.crba(panda, ld.neutral(panda)).shape
    (7, 7)
    """
    M = crba_direct(robot.ints, robot.floats, q, out)
    if M is not None:
        return M
    lead, q = states(robot, q=q)
    square = (robot.nv, robot.nv)
    M = rows_for(out, lead, square, q)
    crba_states(robot.ints, robot.floats, q, M)
    return delivered(M, lead, square, out)
