"""W states of a mechanism in lanes: constraints eliminated alike in all of them, and accelerations from that.

Elimination decides: which rows are independent, and which velocities depend on them. States side by side in lanes need
one decision for all. Where every constraint is a cut joint and the independent velocities are coordinates of the tree,
only the pivots could differ, and lanes share them: threshold pivoting, where a pivot need not be the largest element of
each lane, but no less than PIVOT of it. Where there is none such, where a rank is in doubt, or where any lane fails in
any way, there is no answer for the W states together, and the caller has the kernel for one state work on each of them:
a matter of time, not of results.

Accelerations and multipliers, of minimum norm, do not depend on the rows that are solved. The condition number of
[G_1; R] does, where rows are redundant.
"""
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import clear, element, exchange, padded_for, put_element, swap_rows, unweigh
from liedyn.machine.linalg.ranks import SMALL_ROW
from liedyn.machine.simd.comparisons import is_positive, larger, magnitude, smallest_lane
from liedyn.machine.simd.lanes import (
    LANES, SCALAR, WIDTH, integer, integers_in, load, matrix_in, splat, store, take_matrix, take_vector, vector_in,
)
from liedyn.mechanics.constraints.constraint_rows import clear_rows
from liedyn.mechanics.constraints.elimination import (
    cluster_count, cluster_lists, cluster_size, cluster_weights, elimination_size, fill_table, keep_choice, keep_places,
    layout, numbering, put_slopes,
)
from liedyn.mechanics.constraints.families.cut import cut_state_kernel, cut_terms_kernel
from liedyn.mechanics.constraints.reduced import constrained_motion, constraint_force, multipliers_size
from liedyn.mechanics.dynamics.picked import picked_condition, picks
from liedyn.mechanics.dynamics.terms import negate, terms_size, tree_terms
from liedyn.model.constraint_records import is_active, is_cut, is_long, is_weighed, loop_count
from liedyn.model.packed import NV, N_ROWS

PIVOT = 0.1
"""Least size of a shared pivot as a part of each lane's largest element. Errors grow by 1 + 1/PIVOT in a step at most,
against 2 (Duff, Erisman and Reid 1986, section 5.4, who recommend the same number)."""

DOUBT = 1000.0
"""Other pivots leave other elements behind: a rank is in doubt where the largest that is left is within this factor of
the tolerance. What redundant rows leave is far below, and that of real ones far above (`RANK_TOLERANCE`)."""

LONG_IN_LANES = 30
"""Degrees of freedom up to which W states of a long chain of loops in lanes, whose elimination is dense, are faster
than one after the other by a sparse one: measured on rows of four-bars."""


@inline
def all_cut_joints(model):
    """Are there active constraints, all of them cut joints, and do they make no long chains?"""
    if model.ints[N_ROWS] == 0 or is_long(model) and model.ints[NV] > LONG_IN_LANES:
        return False
    for l in range(loop_count(model)):
        if is_active(model, l) and not is_cut(model, l):
            return False
    return True


@inline
def fits_lanes(model, R, virtual, choosable):
    """Are all active constraints cut joints, and do the rows R pick coordinates of the tree?

    `choosable` is then zero for those, and one elsewhere.
    """
    return all_cut_joints(model) and picks(model, R, virtual, choosable)


# ---- elimination


@inline
def largest_elements(T, begin, m, n, free):
    """Each lane's largest element, rows from `begin` to m, columns where `free` is 1, not 0; its second row is filled
    with the largest of each column."""
    every = splat(LANES, 0.0)
    for j in range(n):
        s = splat(LANES, 0.0)
        for i in range(begin, m):
            s = larger(s, magnitude(element(LANES, T, i, j)))
        s = s * element(LANES, free, 0, j)
        put_element(LANES, free, 1, j, s)
        every = larger(every, s)
    return every


@inline
def shared_row(T, begin, m, column, by):
    """Row of the element of a column whose least size in all lanes, times `by`, is largest; and that size."""
    row, part = begin, -1.0
    for i in range(begin, m):
        x = smallest_lane(by * magnitude(element(LANES, T, i, column)))
        if x > part:
            row, part = i, x
    return row, part


@inline
def shared_pivot(T, begin, m, n, free, every):
    """Row and column of an element that is large in all lanes, and its least size as a part of the lane's largest.

    It is in the column whose largest elements come closest to `every` where they are farthest from it; if the lanes
    have these in different rows, in any column.
    """
    column, bound, by = 0, -1.0, 1.0 / every
    for j in range(n):
        x = smallest_lane(by * element(LANES, free, 1, j))
        if x > bound:
            column, bound = j, x
    row, part = shared_row(T, begin, m, column, by)
    for j in range(n):
        if part < PIVOT and smallest_lane(by * element(LANES, free, 1, j)) > part:
            i, x = shared_row(T, begin, m, j, by)
            if x > part:
                row, column, part = i, j, x
    return row, column, part


@kernel_in_place
def exchange_in_lanes(T, m, n, tolerance, rows, columns, free):
    """`exchange_rows` of the first m rows of W tables, on pivots that they share; returns how many, -1 if they differ.

    They differ where no pivot suits all, where a rank is in doubt, or where the rows that are left depend on columns
    that may not be chosen. `free` is 1 in the end for columns that were chosen, and 0 for others, in single numbers.
    """
    for i in range(m):
        rows[i] = i
    zero, k, first, spread = splat(LANES, 0.0), 0, splat(LANES, 0.0), splat(LANES, 1.0)
    while k < m:
        every = largest_elements(T, k, m, n, free)
        if k == 0:
            first = every
            zero = tolerance * larger(every, splat(LANES, SMALL_ROW))
        if is_positive(zero - DOUBT * every):
            break
        if not is_positive(every - DOUBT * zero):
            return -1
        spread = larger(spread, first / every)
        i, c, part = shared_pivot(T, k, m, n, free, every)
        if not part >= PIVOT:
            return -1
        if i != k:
            swap_rows(T, i, k)
            rows[i], rows[k] = rows[k], rows[i]
        exchange(LANES, T, k, c)
        columns[k] = c
        put_element(LANES, free, 0, c, 0.0)
        k += 1
    for j in range(n):
        store(SCALAR, free, j, 0.0)
    for i in range(k):
        store(SCALAR, free, columns[i], 1.0)
    for i in range(k, m):
        for j in range(n):
            left = magnitude(element(LANES, T, i, j))
            if load(SCALAR, free, j) == 0.0 and not is_positive(zero - DOUBT * left):
                return -1
    put_element(LANES, free, 1, 0, spread)
    return k


@kernel_in_place
def eliminate_in_lanes(model, G, gamma, choosable, p, tolerance, work):
    """`eliminate` for W states; False if they do not depend alike on p independent velocities (see above)."""
    _, scratch, _, at_table = layout(LANES, model)
    k = s = row = 0
    spread = splat(LANES, 1.0)
    for c in range(cluster_count(model)):
        keep_places(work, c, at_table, k, s, row)
        m, n = cluster_size(model, c)
        dofs = cluster_lists(model, c)[1]
        free = matrix_in(work, scratch, 2, padded_for(LANES, n + 1))
        clear(free)
        rank = 0
        if m > 0:
            table = matrix_in(work, at_table, m, padded_for(LANES, n + 1))
            fill_table(LANES, model, c, G, gamma, table)
            weights, scales = cluster_weights(LANES, model, work, c, table)
            for j in range(n):
                put_element(LANES, free, 0, j, load(SCALAR, choosable, integer(model.ints, dofs + j)))
            order, own = integers_in(work, numbering(model)[2] + row, m), integers_in(work, numbering(model)[1] + k, n)
            rank = exchange_in_lanes(table, m, n, tolerance, order, own, free)
            if rank < 0:
                return False
            if is_weighed(model):
                unweigh(table, WIDTH, rank, m, order, own, weights, scales)
            spread = larger(spread, element(LANES, free, 1, 0))
        s = keep_choice(model, work, c, k, s, row, rank, free)
        k, row, at_table = k + rank, row + m, at_table + m * padded_for(LANES, n + 1)
    keep_places(work, cluster_count(model), at_table, k, s, row)
    if s != p:
        return False
    put_slopes(LANES, model, work, s)
    store(LANES, vector_in(work, scratch, WIDTH), 0, spread)
    return True


@inline
def spread_in_lanes(model, work):
    """How far a singular configuration is: the largest pivot by the smallest one, of any cluster, in each lane."""
    return load(LANES, vector_in(work, layout(LANES, model)[1], WIDTH), 0)


@kernel_in_place
def terms_in_lanes(model, q, v, f_ext, work, M, h, G, gamma):
    """`terms_in_place` in lanes, for constraints that are cut joints."""
    clear(M)
    tree_terms(LANES, model, q, v, f_ext, work, M, h)
    clear_rows(G)
    clear_rows(gamma)
    cut_terms_kernel(LANES, model, work, G, gamma)
    negate(gamma)


@kernel_in_place
def state_terms_in_lanes(model, q, v, f_ext, work, M, h, G, gamma, residual, psi):
    """`state_terms` in lanes, for constraints that are cut joints."""
    clear(M)
    tree_terms(LANES, model, q, v, f_ext, work, M, h)
    clear_rows(G)
    clear_rows(gamma)
    clear_rows(residual)
    clear_rows(psi)
    cut_state_kernel(LANES, model, work, residual, psi, G, gamma)
    negate(gamma)


# ---- accelerations


@kernel_in_place
def nullspace_in_lanes_size(model, p):
    """Numbers in the workspace of `nullspace_in_lanes`."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    state = terms_size(model) + n * n + 2 * n + m + m * n
    return (WIDTH * (1 + state + p * n + 2 * p * (p + 1) + m) + multipliers_size(LANES, model)
            + elimination_size(LANES, model))


@kernel_in_place
def nullspace_in_lanes(model, state, choosable, p, tolerance, work, found):
    """a, lam, force = G^T lam and the condition number of W states; False if they are to be worked on one by one."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    work[0] = WIDTH
    e, world = take_vector(work, elimination_size(LANES, model)), take_vector(work, WIDTH * terms_size(model))
    M, G = take_matrix(work, n, WIDTH * n), take_matrix(work, m, WIDTH * n)
    h, gamma = take_vector(work, WIDTH * n), take_vector(work, WIDTH * m)
    inertia = take_matrix(work, p, WIDTH * (p + 1))
    terms_in_lanes(model, state.q, state.v, state.f_ext, world, M, h, G, gamma)
    if not eliminate_in_lanes(model, G, gamma, choosable, p, tolerance, e):
        return False
    if not constrained_motion(LANES, model, e, M, h, state.tau, work, inertia, found.a, found.lam):
        return False
    constraint_force(LANES, model, G, found.lam, found.force)
    store(LANES, found.condition, 0, picked_condition(LANES, model, e, G, p))
    return True
