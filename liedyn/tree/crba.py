"""Composite-rigid-body algorithm: the joint-space inertia matrix (Featherstone 2008, section 6.2), world coordinates.

Composite inertias add up without a transform; each column of M is then the momentum that one unit of joint speed gives
to all it carries, felt at every joint on the way to the ground.
"""
from liedyn.boundary import delivered, rows_for, states
from liedyn.direct import configuration, direct, model, result
from liedyn.jit import inline, kernel_in_place
from liedyn.lie.algebra import dot6, inertia_in_parent, inertia_times
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, load, narrow, store
from liedyn.lie.registers import at_once, load_at_once, store_at_once
from liedyn.lie.strided import chosen_records_at_once, constants_at_once, put_records_at_once, records_at_once
from liedyn.model.packed import DOF_I, LINK_F
from liedyn.objects import is_none, numbers, scratch
from liedyn.tree.batches import aligned, batch, gather, in_lanes, lines_for, scatter_matrix
from liedyn.tree.kinematics import DOF, LINK, POSE, S, of_dof, of_link, world_positions, world_size
from liedyn.tree.poses import PLACES, as_world_pose
from liedyn.tree.records import (
    armature, as_inertia, as_twist, dof_count, dof_link_at, dof_total, first_dof, get6, get_inertia,
    inertia_at, link_count, parent, previous_dof,
)
from liedyn.tree.rows import (
    clear_lanes, filled, itself, of_next6, of_one6, put_ends, put_next6, put_rows, table_in, table_size,
)

INERTIA = 10  # numbers per link beyond the shared workspace: composite inertia (m, h, J)
RECORD = 16  # places for them: whole registers
SCREW, CARRIED = 0, 6  # rows of the table: S_j, and the momentum of all that a unit speed of j carries
ENDS, TABLE = 12, 13


@kernel_in_place
def crba_size(ints):
    """Numbers in the workspace of `crba_kernel`."""
    return world_size(ints) + RECORD * link_count(ints) + table_size(ints, TABLE)


@inline
def inertia_pairs(lane, ints, base, size, work, M):
    """All entries that are not zero, without armatures, pair by pair: in lanes an entry fills a register, for two."""
    n, nv = link_count(ints), dof_total(ints)
    for i in range(n):
        I = get_inertia(lane, work, base + size * i)
        for j in range(first_dof(ints, i), first_dof(ints, i) + dof_count(ints, i)):
            Sj = get6(lane, work, of_dof(ints, j, S))
            carried = inertia_times(I, Sj)
            store(lane, M, j * nv + j, dot6(carried, Sj))
            k = previous_dof(ints, j)
            while k >= 0:
                inertia_kj = dot6(carried, get6(lane, work, of_dof(ints, k, S)))
                store(lane, M, k * nv + j, inertia_kj)
                store(lane, M, j * nv + k, inertia_kj)
                k = previous_dof(ints, k)


@inline
def carried_momenta(lane, ints, base, size, work, table):
    """The table, from the composite inertias at work[base + size * i] of all links i."""
    few = narrow(lane)
    put_ends(lane, ints, work, table, ENDS)
    for j in range(0, filled(lane, ints), at_once(few)):
        last = dof_total(ints) - 1 - j
        I = as_inertia(chosen_records_at_once(
            few, work, base, size, ints, dof_link_at(ints, j), DOF_I, last, INERTIA))
        Sj = as_twist(records_at_once(few, work, of_dof(ints, j, S), DOF, last, 6), 0)
        put_next6(few, ints, work, table, SCREW, j, Sj)
        put_next6(few, ints, work, table, CARRIED, j, inertia_times(I, Sj))


@inline
def screw_and_momentum(lane, ints, work, table, i):
    """S_i, and the momentum of all that a unit speed of i carries."""
    return of_one6(lane, ints, work, table, SCREW, i), of_one6(lane, ints, work, table, CARRIED, i)


@inline
def screws_and_momenta(lane, ints, work, table, j):
    """S_j, and the momenta of all that unit speeds of j carry, of j and those behind it that fill a register."""
    return of_next6(lane, ints, work, table, SCREW, j), of_next6(lane, ints, work, table, CARRIED, j)


@inline
def carried_by(own, columns):
    """M_ij where j carries i."""
    return dot6(own[1], columns[0])


@inline
def carrying(own, columns):
    """M_ij where i carries j."""
    return dot6(columns[1], own[0])


@inline
def inertia_rows(lane, ints, work, table, M):
    """M (nv, nv) of one state without armatures, row by row, from `carried_momenta`."""
    put_rows(lane, ints, work, table, ENDS, itself, screw_and_momentum, screws_and_momenta, carried_by,
             carrying, M)


@inline
def add_armatures(lane, ints, floats, M):
    """Armatures on the diagonal."""
    for j in range(dof_total(ints)):
        if armature(ints, floats, j) != 0.0:  # most have none, and what is just written is slow to read
            k = (dof_total(ints) + 1) * j
            store(lane, M, k, load(lane, M, k) + armature(ints, floats, j))


@inline
def inertia_entries(lane, ints, floats, base, size, work, table, M):
    """M (nv, nv) from the composite inertias at work[base + size * i] of all links i; in lanes without its zeros."""
    if at_once(lane) > 1:
        carried_momenta(lane, ints, base, size, work, table)
        inertia_rows(lane, ints, work, table, M)
    else:
        inertia_pairs(lane, ints, base, size, work, M)
    add_armatures(lane, ints, floats, M)


@inline
def composite_inertias(lane, ints, floats, q, work):
    """Poses, screws, and behind these the inertia of all that each joint carries."""
    world_positions(lane, ints, floats, q, work)
    n, base, few = link_count(ints), world_size(ints), narrow(lane)
    for i in range(0, n, at_once(few)):
        X = as_world_pose(records_at_once(few, work, of_link(i, POSE), LINK, n - 1 - i, PLACES))
        m, h, J = inertia_in_parent(X, as_inertia(constants_at_once(
            few, floats, inertia_at(ints, i), LINK_F, n - 1 - i, INERTIA)))
        put_records_at_once(few, work, base + RECORD * i, RECORD, n - 1 - i,
                            (m, h[0], h[1], h[2], J[0], J[1], J[2], J[3], J[4], J[5]))
    for i in range(n - 1, -1, -1):
        if parent(ints, i) >= 0:
            c, up = base + RECORD * i, base + RECORD * parent(ints, i)
            for k in range(0, INERTIA, at_once(few)):
                x = load_at_once(few, work, up + k, RECORD - k) + load_at_once(few, work, c + k, RECORD - k)
                store_at_once(few, work, up + k, RECORD - k, x)


@inline
def crba_table(lane, ints, work):
    """Where the table lies in the workspace of `crba_kernel`."""
    return table_in(lane, work, world_size(ints) + RECORD * link_count(ints))


@kernel_in_place
def crba_kernel(lane, ints, floats, q, work, M):
    """M(q), nv x nv, armatures on its diagonal."""
    composite_inertias(lane, ints, floats, q, work)
    clear_lanes(lane, ints, M)
    inertia_entries(lane, ints, floats, world_size(ints), RECORD, work, crba_table(lane, ints, work), M)


@batch
def crba_states(begin, end, ints, floats, q, M):
    """`crba_kernel` on each row; M has one row of nv * nv numbers per state."""
    work = aligned(crba_size(ints) * WIDTH)
    if end - begin == 1:
        crba_kernel(SCALAR, ints, floats, q[begin], work, M[begin])
        return
    q_w, M_w, lines = in_lanes(q), in_lanes(M), lines_for(M)
    M_w[:] = 0.0  # once: zeros stay where they are
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        composite_inertias(LANES, ints, floats, q_w, work)
        inertia_entries(LANES, ints, floats, world_size(ints), RECORD, work, crba_table(LANES, ints, work), M_w)
        scatter_matrix(M_w, b, end, M, lines)


@direct
def crba_direct(ints, floats, q, out):
    """`crba_kernel` on one state as Python passes it."""
    ints, floats = model(ints, floats)
    q, nv, work = configuration(ints, q), dof_total(ints), scratch(crba_size(ints))
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
