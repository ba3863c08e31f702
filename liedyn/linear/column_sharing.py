"""Which directions of a local state space share columns (`liedyn.mechanics.tree.column_coloring`) or need none.

A floating base that no constraint, spring or damper ties to the ground can be rotated, translated and set in motion at
constant velocity without a change of the forces within the robot. The accelerations therefore vary in closed form with
its position and its linear velocity: seen from the base, gravity g turns by the rotation `turn`, and the velocity
varies by dv while the base has the angular velocity omega:

    d(a - g) = g x turn         da = -omega x dv
"""
from collections import namedtuple

from numba import types

from liedyn.lie.algebra import cross, dot, unrotate
from liedyn.linear.space import COLUMNS
from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, group, inline, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import clear, clear_columns, element, padded_for, put_element
from liedyn.machine.simd.lanes import LANES, SCALAR, integer
from liedyn.machine.simd.registers import at_once
from liedyn.mechanics.constraints.elimination import cluster_count, cluster_lists, cluster_size
from liedyn.mechanics.tree.column_coloring import (
    COUNT, DIRECTIONS, END, FIRST, FLOATS, LEADER, RECORDS, directions_of, leader, record_of,
)
from liedyn.mechanics.tree.kinematics import world_pose
from liedyn.model.constraint_records import all_cut
from liedyn.model.packed import FREE
from liedyn.model.packed_records import (
    MODEL, armature, damping, dof_count, dof_link, first_dof, get3, kind, link_count, minus_gravity, parent, splat3,
    stiffness,
)


Sharing = namedtuple("Sharing", "picked shares own moved")
"""Coordinates of the directions; groups of links (`liedyn.mechanics.tree.column_coloring`); `Directions` with own and
with shared columns."""


@inline
def shares_size(model, p):
    """Size of `shares` for p coordinates and as many velocities."""
    return RECORDS + link_count(model) * (DIRECTIONS + 2 * p)


@inline
def may_share(model):
    """True if a search for directions that share columns may pay: the first joint is free, as for legged robots."""
    return link_count(model) > 0 and kind(model, 0) == FREE and all_cut(model)


@inline
def share_nothing(model, shares):
    """No column is shared: all links form one group."""
    shares[0] = 1
    for i in range(link_count(model)):
        shares[record_of(shares, i) + LEADER] = 0


@inline
def floats_freely(model, i):
    """True if link i is a floating base that no constraint, spring or damper ties to the ground."""
    if parent(model, i) >= 0 or kind(model, i) != FREE:
        return False
    free, last = False, cluster_count(model) - 1  # the last cluster has the coordinates that no constraint moves
    dofs = cluster_lists(model, last)[1]
    for k in range(dofs, dofs + cluster_size(model, last)[1]):
        free = free or integer(model.ints, k) == first_dof(model, i)
    for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
        free = free and stiffness(model, j) == 0.0 and damping(model, j) == 0.0
        free = free and armature(model, j) == 0.0
    return free


@inline
def put_groups(model, shares):
    """Leaders of groups, floating bases, and no columns yet. COUNT is the number of child groups until it is reset."""
    for i in range(link_count(model)):
        record = record_of(shares, i)
        shares[record + LEADER], shares[record + FLOATS] = i, floats_freely(model, i)
        shares[record + COUNT], shares[record + COUNT + 1] = 0, 0
    for c in range(cluster_count(model)):
        dofs = cluster_lists(model, c)[1]
        if cluster_size(model, c)[0] > 0:
            for k in range(dofs, dofs + cluster_size(model, c)[1]):
                shares[record_of(shares, dof_link(model, integer(model.ints, k))) + LEADER] = dof_link(
                    model, integer(model.ints, dofs))
    join_groups(model, shares)


@inline
def join_groups(model, shares):
    """A group that is the only child of another becomes part of it."""
    for i in range(link_count(model)):
        if leader(shares, i) == i and parent(model, i) >= 0:
            shares[record_of(shares, leader(shares, parent(model, i))) + COUNT] += 1
    for i in range(link_count(model)):  # until the end of this loop FIRST says whether the group is an only child
        if leader(shares, i) == i:
            shares[record_of(shares, i) + FIRST] = parent(model, i) >= 0 and integer(
                shares, record_of(shares, leader(shares, parent(model, i))) + COUNT) == 1
    for i in range(link_count(model)):
        record = record_of(shares, i)
        if leader(shares, i) != i:
            shares[record + LEADER] = leader(shares, leader(shares, i))
        elif integer(shares, record + FIRST) == 1:
            shares[record + LEADER] = leader(shares, parent(model, i))
        shares[record + COUNT] = 0


@inline
def needs_column(model, shares, j, part):
    """False if the effect of varying coordinate or velocity j is known in closed form."""
    i = dof_link(model, j)
    return integer(shares, record_of(shares, i) + FLOATS) == 0 or (part == 1 and j < first_dof(model, i) + 3)


@inline
def count_columns(model, picked, part, shares):
    """The first column of each group for a part (coordinates or velocities); returns the number of columns."""
    for u in range(picked.size):
        j = integer(picked, u)
        if needs_column(model, shares, j, part):
            shares[record_of(shares, leader(shares, dof_link(model, j))) + COUNT + part] += 1
    columns = 0
    for i in range(link_count(model)):
        if leader(shares, i) == i:
            record, first = record_of(shares, i), 0
            if parent(model, i) >= 0:
                below = record_of(shares, leader(shares, parent(model, i)))
                first = integer(shares, below + FIRST + part) + integer(shares, below + COUNT + part)
            shares[record + FIRST + part] = shares[record + END + part] = first
            columns = max(columns, first + integer(shares, record + COUNT + part))
    return columns


@inline
def put_directions(model, picked, part, shares):
    """Writes the directions in the columns of each group, and END."""
    p = picked.size
    for u in range(p):
        j = integer(picked, u)
        if needs_column(model, shares, j, part):
            record = record_of(shares, leader(shares, dof_link(model, j)))
            shares[record + DIRECTIONS + p * part + integer(shares, record + END + part)] = p * part + u
            shares[record + END + part] += 1
    for i in range(link_count(model)):
        if leader(shares, i) == i and parent(model, i) >= 0:
            listed, first, _, _ = directions_of(shares, i, part)
            below = directions_of(shares, parent(model, i), part)[0]
            for c in range(first):
                shares[listed + c] = integer(shares, below + c)


@kernel_in_place
def share_columns(lane, model, picked, shares):
    """Fills `shares`; returns the number of columns for the coordinates and for all, velocities behind coordinates.

    `picked` has the degree of freedom of each coordinate. All constraints have to be cut joints. Nothing is shared
    where sharing would not save a whole register of columns.
    """
    p = picked.size
    shares[0], shares[1] = DIRECTIONS + 2 * p, p
    put_groups(model, shares)
    shares[2] = count_columns(model, picked, 0, shares)
    columns = integer(shares, 2) + count_columns(model, picked, 1, shares)
    if padded_for(lane, columns) == padded_for(lane, 2 * p):
        share_nothing(model, shares)
        return p, 2 * p
    put_directions(model, picked, 0, shares)
    put_directions(model, picked, 1, shares)
    return integer(shares, 2), columns


@inline
def gather_columns(lane, model, shares, N, X, N_shared, X_shared):
    """The shared columns of N and X, from their own columns. A direction moves joints of its own group only."""
    clear(N_shared)
    clear(X_shared)
    for i in range(link_count(model)):
        listed, first, end, _ = directions_of(shares, i, 0)
        listed_w, first_w, end_w, begin = directions_of(shares, i, 1)
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            for c in range(first, end):
                put_element(lane, N_shared, j, c, element(lane, N, j, integer(shares, listed + c)))
            for c in range(first_w, end_w):
                put_element(lane, X_shared, j, begin + c, element(lane, X, j, integer(shares, listed_w + c)))


@inline
def spread_columns(lane, model, shares, moved, own):
    """Copies shared columns to those of their directions, in the rows of a group and its descendants."""
    for i in range(link_count(model)):
        for part in range(2):
            listed, _, end, begin = directions_of(shares, i, part)
            for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
                for c in range(end):
                    u = integer(shares, listed + c)
                    put_element(lane, own.D, j, u, element(lane, moved.D, j, begin + c))
                    put_element(lane, own.balance, j, u, element(lane, moved.balance, j, begin + c))
                    if part == 0:  # Delta
                        put_element(lane, own.X, j, u, element(lane, moved.X, j, begin + c))


@inline
def put_known_columns(lane, model, v, world, M, sharing):
    """Columns of `balance` for directions known in closed form: M (da - dg) of the equations at the top."""
    picked, shares, balance = sharing.picked, sharing.shares, sharing.own.balance
    for u in range(picked.size):
        i = dof_link(model, integer(picked, u))
        if integer(shares, record_of(shares, i) + FLOATS) != 0:
            k, linear = integer(picked, u) - first_dof(model, i), first_dof(model, i) + 3
            axis = splat3(lane, (1.0 if k % 3 == 0 else 0.0, 1.0 if k % 3 == 1 else 0.0, 1.0 if k % 3 == 2 else 0.0))
            if k < 3:
                column, rate = u, cross(axis, unrotate(world_pose(lane, world, i)[0], minus_gravity(lane, model)[1]))
            else:
                column, rate = picked.size + u, cross(axis, get3(lane, v, first_dof(model, i)))
            for j in range(M.shape[0]):
                m = (element(lane, M, j, linear), element(lane, M, j, linear + 1), element(lane, M, j, linear + 2))
                put_element(lane, balance, j, column, dot(m, rate))


# ---- compiled when a robot with a floating base first asks for it


@inline
def share_directions(lane, model, picked, shares):
    """`share_columns`, compiled for one state or for lanes."""
    return share_at_one_state(model, picked, shares) if at_once(lane) > 1 else share_in_lanes(model, picked, shares)


@inline
def gather_directions(lane, model, v, world, M, sharing):
    """Shared columns of N and X; `own.balance` gets the columns known in closed form, its rest and own.D zeros."""
    if at_once(lane) > 1:
        gather_at_one_state(model, v, world, M, sharing)
    else:
        gather_in_lanes(model, v, world, M, sharing)


@inline
def spread_directions(lane, model, shares, moved, own):
    """`spread_columns`, compiled for one state or for lanes."""
    if at_once(lane) > 1:
        spread_at_one_state(model, shares, moved, own)
    else:
        spread_in_lanes(model, shares, moved, own)


@inline
def gather(lane, model, v, world, M, sharing):
    picked, shares, own, moved = sharing
    gather_columns(lane, model, shares, own.N, own.X, moved.N, moved.X)
    clear_columns(lane, own.D, 2 * picked.size)
    clear_columns(lane, own.balance, 2 * picked.size)
    put_known_columns(lane, model, v, world, M, sharing)


_SHARE = MODEL, INTEGERS, INTEGERS
_GATHER = MODEL, VECTOR, VECTOR, MATRIX, group(Sharing, INTEGERS, INTEGERS, COLUMNS, COLUMNS)
_SPREAD = MODEL, INTEGERS, COLUMNS, COLUMNS


@late(*_SHARE, returns=types.UniTuple(types.int64, 2))
def share_at_one_state(model, picked, shares):
    return share_columns(SCALAR, model, picked, shares)


@late(*_SHARE, returns=types.UniTuple(types.int64, 2))
def share_in_lanes(model, picked, shares):
    return share_columns(LANES, model, picked, shares)


@late(*_GATHER)
def gather_at_one_state(model, v, world, M, sharing):
    gather(SCALAR, model, v, world, M, sharing)


@late(*_GATHER)
def gather_in_lanes(model, v, world, M, sharing):
    gather(LANES, model, v, world, M, sharing)


@late(*_SPREAD)
def spread_at_one_state(model, shares, moved, own):
    spread_columns(SCALAR, model, shares, moved, own)


@late(*_SPREAD)
def spread_in_lanes(model, shares, moved, own):
    spread_columns(LANES, model, shares, moved, own)
