"""Composite-rigid-body algorithm: the joint-space inertia matrix (Featherstone 2008, section 6.2).

Composite inertias expressed in one frame add up without transforms; each column of M is then the momentum of a unit
joint speed, projected on the screw of every joint on the way to the ground.

In lanes that frame is the world, an inertia is (m, h, J), and M is written pair by pair. One state fills registers with
columns of matrices (`liedyn.machine.simd.columns`): an inertia is the moments of mass, the frame is the first link of
each tree (M does not depend on its pose), and M is written in squares. In that frame the screws of a free base are the
unit vectors, so that its rows of M are the momenta themselves.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import dot6, inertia_in_parent, inertia_times, neg
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.columns import (
    add_columns, at_place, cross_columns, moments_in_parent, moments_of_speed, momentum_of_moments, turned_about_z,
)
from liedyn.machine.simd.lanes import NARROW, SCALAR, load, narrow, store
from liedyn.machine.simd.registers import at_once, load_at_once, side_by_side, store_at_once
from liedyn.machine.simd.sines import put_sines_from, sines_size
from liedyn.machine.simd.strided import chosen_records_at_once, records_at_once, where_before
from liedyn.machine.simd.transposition import turned
from liedyn.mechanics.tree.joint_transforms import first_angle
from liedyn.mechanics.tree.joints import dofs_of_kind, pose_by_sines, screw_of_kind_at
from liedyn.mechanics.tree.kinematics import (
    DOF, POSE, S, of_dof, of_link, sines_at, world_pose, world_positions, world_size,
)
from liedyn.mechanics.tree.poses import COLUMN, columns_beyond, get_columns, get_world_pose, put_columns, slid
from liedyn.mechanics.tree.rows import (
    BAND, FOUR, clear_lanes, clear_squares, filled, four_from, of_next6, of_one6, put_next6, put_square, put_squares,
    put_symmetric,
)
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed import DOF_I, FREE, REVOLUTE
from liedyn.model.packed_records import (
    armature, as_inertia, as_twist, dof_count, dof_link_at, dof_total, first_dof, first_q, get3, get6, get_inertia,
    inertia, kind, link_count, moments, parent, parent_dof, placement, put6, put_inertia, q_total, subtree_end,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike

INERTIA = 10  # numbers of a composite inertia (m, h, J)
RECORD = 16  # numbers reserved for it beyond the shared workspace, or for the moments of mass
SCREW, CARRIED = 0, 6  # rows of a table: S_j, and the momentum of a unit speed of j
TURN, SLIDE, SPEEDS = 0, 4, 8  # for one state, per degree of freedom: S_j in two registers, `moments_of_speed` in three


@kernel_in_place
def crba_size(model):
    """Size of the workspace of `crba_kernel`."""
    return world_size(model) + RECORD * link_count(model)


@inline
def composite_at(model, i):
    """Index in the workspace of the composite inertia of link i, or of its moments."""
    return world_size(model) + RECORD * i


@inline
def add_armatures(lane, model, M):
    """Add the armatures to the diagonal."""
    for j in range(dof_total(model)):
        if armature(model, j) != 0.0:  # most have none, and reading a number just written is slow
            k = (dof_total(model) + 1) * j
            store(lane, M, k, load(lane, M, k) + armature(model, j))


# ---- lanes: world coordinates, pair by pair


@inline
def composite_inertias(lane, model, q, work):
    """Poses, screws, and after these the composite inertia that each joint carries."""
    world_positions(lane, model, q, work)
    for i in range(link_count(model)):
        put_inertia(lane, work, composite_at(model, i), inertia_in_parent(world_pose(lane, work, i), inertia(model, i)))
    add_up_inward(lane, model, composite_at(model, 0), RECORD, INERTIA, work)


@inline
def add_up_inward(lane, model, base, step, count, work):
    """Sum the `count` numbers at work[base + step * i] of all links i inward, to those that their joints carry."""
    for i in range(link_count(model) - 1, -1, -1):
        if parent(model, i) >= 0:
            up = base + step * parent(model, i)
            for k in range(count):
                store(lane, work, up + k, load(lane, work, up + k) + load(lane, work, base + step * i + k))


@inline
def inertia_entries(lane, model, base, size, work, M):
    """M (nv, nv) in lanes, nonzero entries only, from the composite inertias at work[base + size * i]."""
    n, nv = link_count(model), dof_total(model)
    for i in range(n):
        I = get_inertia(lane, work, base + size * i)
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj = get6(lane, work, of_dof(model, j, S))
            carried = inertia_times(I, Sj)
            store(lane, M, j * nv + j, dot6(carried, Sj))
            k = parent_dof(model, j)
            while k >= 0:
                inertia_kj = dot6(carried, get6(lane, work, of_dof(model, k, S)))
                store(lane, M, k * nv + j, inertia_kj)
                store(lane, M, j * nv + k, inertia_kj)
                k = parent_dof(model, k)
    add_armatures(lane, model, M)


# ---- one state: columns, squares


@inline
def base_dofs(model):
    """Degrees of freedom of a free first link, else 0. In its frame its screws are the unit vectors."""
    return dof_count(model, 0) if link_count(model) > 0 and kind(model, 0) == FREE else 0


@inline
def beyond_joint(model, i, q, work, X):
    """The pose of link i, given the pose X of its parent."""
    if kind(model, i) == REVOLUTE:  # rotating two columns costs less than a pose of the joint
        k = sines_at(model) + first_q(model, i)
        s, c = load(SCALAR, work, k), load(SCALAR, work, k + sines_size(q_total(model)) // 2)
        return turned_about_z(columns_beyond(X, placement(SCALAR, model, i)), s, c)
    return columns_beyond(X, pose_by_sines(SCALAR, kind(model, i), model, i, q, work, sines_at(model)))


@inline
def put_screws(model, i, X, work):
    """Screws of link i, from the columns of its pose."""
    j = first_dof(model, i)
    if kind(model, i) == REVOLUTE:
        store_at_once(NARROW, work, of_dof(model, j, TURN), COLUMN, X[2])
        store_at_once(NARROW, work, of_dof(model, j, SLIDE), COLUMN, cross_columns(X[3], X[2]))
        return
    pose = get_world_pose(SCALAR, work, of_link(i, POSE))
    for d in range(dofs_of_kind(kind(model, i))):
        turn, slide = screw_of_kind_at(SCALAR, kind(model, i), model, i, pose, d)
        store_at_once(NARROW, work, of_dof(model, j + d, TURN), COLUMN, side_by_side(turn[0], turn[1], turn[2], 0.0))
        store_at_once(NARROW, work, of_dof(model, j + d, SLIDE), COLUMN,
                      side_by_side(slide[0], slide[1], slide[2], 0.0))


@inline
def get_screw(model, work, at, j):
    """S_j, for degrees of freedom whose records begin at work[at]."""
    k = at + DOF * j
    return get3(SCALAR, work, k + TURN), get3(SCALAR, work, k + SLIDE)


@inline
def outward_by_columns(model, q, work):
    """Poses, screws and moments of all links, relative to their tree's first rotating link, in the axes of the root."""
    put_sines_from(SCALAR, q, first_angle(model), q_total(model), work, sines_at(model))
    X = at_place((0.0, 0.0, 0.0))
    for i in range(link_count(model)):
        if parent(model, i) < 0:
            X = at_place(neg(slid(SCALAR, model, i, q)))
        else:
            if parent(model, i) != i - 1:
                X = get_columns(work, of_link(parent(model, i), POSE))
            X = beyond_joint(model, i, q, work, X)
        put_columns(work, of_link(i, POSE), X)
        if first_dof(model, i) >= base_dofs(model):
            put_screws(model, i, X, work)
        pose = get_world_pose(SCALAR, work, of_link(i, POSE))
        put_columns(work, composite_at(model, i), moments_in_parent(X, pose, moments(model, i)))


@inline
def put_speeds(model, i, composite, work):
    """`moments_of_speed` of the composite inertia of link i, for unit speeds of its joint."""
    for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
        k = of_dof(model, j, SPEEDS)
        x, y, z = moments_of_speed(composite, get_screw(model, work, of_dof(model, 0, 0), j))
        store_at_once(NARROW, work, k, COLUMN, x)
        store_at_once(NARROW, work, k + COLUMN, COLUMN, y)
        store_at_once(NARROW, work, k + 2 * COLUMN, COLUMN, z)


@inline
def inward_by_columns(model, work):
    """Sum the moments from the tips to the roots, and compute `put_speeds` of each."""
    zero = side_by_side(0.0, 0.0, 0.0, 0.0)
    nothing = (zero, zero, zero, zero)
    beyond = nothing
    for i in range(link_count(model) - 1, -1, -1):
        composite = add_columns(get_columns(work, composite_at(model, i)), beyond)
        if first_dof(model, i) < base_dofs(model):
            put_columns(work, composite_at(model, i), composite)
        else:
            put_speeds(model, i, composite, work)
        beyond = composite
        if parent(model, i) != i - 1:
            beyond = nothing
            if parent(model, i) >= 0:  # i begins a branch, and its parent waits for its other branches
                k = composite_at(model, parent(model, i))
                put_columns(work, k, add_columns(get_columns(work, k), composite))


@inline
def get_four(work, records, column):
    """One column of four degrees of freedom, transposed: its numbers for all four."""
    return turned(load_at_once(NARROW, work, records[0] + column, COLUMN),
                  load_at_once(NARROW, work, records[1] + column, COLUMN),
                  load_at_once(NARROW, work, records[2] + column, COLUMN),
                  load_at_once(NARROW, work, records[3] + column, COLUMN))


@inline
def get_momenta(model, work, at, j):
    """The momenta of unit speeds of j and the next three; after the last one, the last again."""
    a, b, c, d = four_from(model, j)
    four = (at + DOF * a, at + DOF * b, at + DOF * c, at + DOF * d)
    return momentum_of_moments(get_four(work, four, SPEEDS), get_four(work, four, SPEEDS + COLUMN),
                               get_four(work, four, SPEEDS + 2 * COLUMN))


@inline
def put_base_square(model, work, M):
    """The diagonal block of a free base: the composite inertia, (J, [h]; -[h], m 1)."""
    nv, k = dof_total(model), composite_at(model, 0)
    (xx, xy, xz), (hx, hy, hz) = get3(SCALAR, work, k), get3(SCALAR, work, k + 3 * COLUMN)
    yy, yz = load(SCALAR, work, k + COLUMN + 1), load(SCALAR, work, k + COLUMN + 2)
    zz, m = load(SCALAR, work, k + 2 * COLUMN + 2), load(SCALAR, work, k + 3 * COLUMN + 3)
    put6(SCALAR, M, 0, ((yy + zz, -xy, -xz), (0.0, -hz, hy)))
    put6(SCALAR, M, nv, ((-xy, xx + zz, -yz), (hz, 0.0, -hx)))
    put6(SCALAR, M, 2 * nv, ((-xz, -yz, xx + yy), (-hy, hx, 0.0)))
    put6(SCALAR, M, 3 * nv, ((0.0, hz, -hy), (m, 0.0, 0.0)))
    put6(SCALAR, M, 4 * nv, ((-hz, 0.0, hx), (0.0, m, 0.0)))
    put6(SCALAR, M, 5 * nv, ((hy, -hx, 0.0), (0.0, 0.0, m)))


@inline
def put_base_rows(model, momenta, j, M):
    """Four columns of the rows of a free base, and their transposes: the momenta themselves."""
    nv, end, below = dof_total(model), subtree_end(model, 0), four_from(model, j)
    (a, b, c), (d, e, f) = momenta
    a, b, c = where_before(j, end, a), where_before(j, end, b), where_before(j, end, c)
    d, e, f = where_before(j, end, d), where_before(j, end, e), where_before(j, end, f)
    put_square(M, nv, (0, 1, 2, 3), j, nv - j, (a, b, c, d))
    put_square(M, nv, (4, 5, 5, 5), j, nv - j, (e, f, f, f))
    put_square(M, nv, below, 0, FOUR, turned(a, b, c, d))
    put_square(M, nv, below, 4, 2, turned(e, f, e, f))


@inline
def inertia_by_squares(model, work, M):
    """M (nv, nv) without armatures, from the screws and the results of `inward_by_columns`."""
    at, base = of_dof(model, 0, 0), base_dofs(model)
    if base > 0:
        put_base_square(model, work, M)
    for first in range(base, dof_total(model), BAND):
        for j in range(first, dof_total(model), FOUR):
            momenta = get_momenta(model, work, at, j)
            if base > 0 and first == base:
                put_base_rows(model, momenta, j, M)
            put_squares(model, work, at, get_screw, momenta, clear_squares, first, j, M)


# ---- one state with composite inertias computed before: a table, see `liedyn.mechanics.tree.rows`


@inline
def carried_momenta(lane, model, base, size, work, table):
    """Rows SCREW and CARRIED of the table, from the composite inertias at work[base + size * i] of all links i."""
    few = narrow(lane)
    for j in range(0, filled(lane, model), at_once(few)):
        last = dof_total(model) - 1 - j
        I = as_inertia(chosen_records_at_once(
            few, work, base, size, model.ints, dof_link_at(model, j), DOF_I, last, INERTIA))
        Sj = as_twist(records_at_once(few, work, of_dof(model, j, S), DOF, last, 6), 0)
        put_next6(few, model, work, table, SCREW, j, Sj)
        put_next6(few, model, work, table, CARRIED, j, inertia_times(I, Sj))


@inline
def screw_in_table(model, work, table, i):
    """S_i."""
    return of_one6(SCALAR, model, work, table, SCREW, i)


@inline
def momenta_in_table(model, work, table, j):
    """The momenta of unit speeds of j and the following ones, a register of each."""
    return of_next6(NARROW, model, work, table, CARRIED, j)


@inline
def inertia_rows(model, work, table, elsewhere, M):
    """M (nv, nv) without armatures, from rows SCREW and CARRIED."""
    put_symmetric(model, work, table, screw_in_table, momenta_in_table, elsewhere, M)


# ---- the kernel


@inline
def crba_entries(lane, model, q, work, M):
    """M(q) in lanes, nonzero entries only."""
    composite_inertias(lane, model, q, work)
    inertia_entries(lane, model, world_size(model), RECORD, work, M)


@kernel_in_place
def crba_kernel(lane, model, q, work, M):
    """M(q), nv x nv, armatures on its diagonal."""
    if at_once(lane) > 1:
        outward_by_columns(model, q, work)
        inward_by_columns(model, work)
        inertia_by_squares(model, work, M)
        add_armatures(lane, model, M)
    else:
        clear_lanes(lane, model, M)
        crba_entries(lane, model, q, work, M)


@recursion(crba_kernel, work=crba_size, nonzeros=crba_entries, M="nv nv")
def crba(robot: Robot, q: ArrayLike, out: Array | None = None) -> Array:
    """Joint-space inertia matrix of the open tree by the composite-rigid-body algorithm.

    Returns
    -------
    M : ndarray, shape (..., nv, nv)
        Symmetric inertia matrix [kg m^2, kg m, kg], joint armatures on its diagonal.

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
