"""Constrained accelerations of W states in lanes, with the same elimination for all of them.

The elimination chooses the independent rows and the dependent velocities. States in lanes need one choice for all. If
every constraint is a cut joint and the independent velocities are coordinates of the tree, only the pivots could
differ, and lanes share them by threshold pivoting: a pivot need not be the largest element of each lane, but at least
PIVOT times that. If there is no such pivot, if a rank is in doubt, or if any lane fails, there is no result for the W
states together, and the caller computes each of them with the kernel for one state: only the time differs, not the
results.

Accelerations and minimum-norm multipliers do not depend on the chosen rows. The condition number of [G_1; R] does, if
rows are redundant.
"""
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import clear, element, exchange, padded_for, put_element, swap_rows
from liedyn.machine.linalg.ranks import SMALL_ROW
from liedyn.machine.simd.comparisons import is_positive, larger, magnitude, smallest_lane
from liedyn.machine.simd.lanes import (
    LANES, SCALAR, WIDTH, integer, integers_in, load, matrix_in, splat, store, take_matrix, take_vector, vector_in,
)
from liedyn.mechanics.constraints.constraint_rows import clear_rows
from liedyn.mechanics.constraints.elimination import (
    cluster_count, cluster_lists, cluster_size, elimination_size, fill_table, keep_choice, keep_places, layout,
    numbering, put_slopes, unweigh_table, weigh_table,
)
from liedyn.mechanics.constraints.families.cut import cut_state_kernel, cut_terms_kernel
from liedyn.mechanics.constraints.reduced import (
    ForceBalance, constrained_motion, constraint_force, multipliers_size,
)
from liedyn.mechanics.dynamics.picked import picked_condition, picks
from liedyn.mechanics.dynamics.state import Terms
from liedyn.mechanics.dynamics.terms import negate, terms_size, tree_terms
from liedyn.model.constraint_records import is_active, is_cut, is_long, is_weighed, loop_count
from liedyn.model.packed import NV, N_ROWS

PIVOT = 0.1
"""Smallest accepted size of a shared pivot, as a fraction of each lane's largest element. Errors grow by a factor of at
most 1 + 1/PIVOT in a step, instead of 2 (Duff, Erisman and Reid 1986, section 5.4, who recommend this value)."""

DOUBT = 1000.0
"""Other pivots leave different remainders, so a rank is in doubt if the largest remaining element is within this factor
of the tolerance. Remainders of redundant rows are far below, those of independent rows far above (`RANK_TOLERANCE`)."""

LONG_IN_LANES = 30
"""Largest number of degrees of freedom of a long chain of loops for which W states in lanes, with dense elimination,
are faster than one after the other with sparse elimination; measured on rows of four-bars."""


@inline
def all_cut_joints(model):
    """True if there are active constraints, all of them cut joints, without long chains."""
    if model.ints[N_ROWS] == 0 or is_long(model) and model.ints[NV] > LONG_IN_LANES:
        return False
    for l in range(loop_count(model)):
        if is_active(model, l) and not is_cut(model, l):
            return False
    return True


@inline
def fits_lanes(model, R, virtual, choosable):
    """True if all active constraints are cut joints, and the rows R pick coordinates of the tree.

    `choosable` is then zero for these coordinates, and one elsewhere.
    """
    return all_cut_joints(model) and picks(model, R, virtual, choosable)


# ---- elimination


@inline
def largest_elements(T, begin, m, n, free):
    """Each lane's largest element in rows `begin` to m and columns where `free` is 1, not 0; the second row of `free`
    receives the largest element of each column."""
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
    """Row of a column with the largest minimum, over the lanes, of the element's size times `by`; and that minimum."""
    row, part = begin, -1.0
    for i in range(begin, m):
        x = smallest_lane(by * magnitude(element(LANES, T, i, column)))
        if x > part:
            row, part = i, x
    return row, part


@inline
def shared_pivot(T, begin, m, n, free, every):
    """Row and column of an element that is large in all lanes, and its least size as a fraction of the lane's largest.

    It is in the column whose largest elements come closest to `every` in the worst lane; if these are in different rows
    of different lanes, in any column.
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
    """`exchange_rows` on the first m rows of W tableaux with shared pivots; returns their number, -1 if the lanes
    differ.

    They differ if no pivot suits all, if a rank is in doubt, or if the remaining rows depend on columns that may not be
    chosen. `free` ends as 1 for chosen columns and 0 for others, in single numbers.
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
    """`eliminate` for W states; False unless all have the same p independent velocities (see above)."""
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
            if is_weighed(model):
                weigh_table(model, c, WIDTH, table)
            for j in range(n):
                put_element(LANES, free, 0, j, load(SCALAR, choosable, integer(model.ints, dofs + j)))
            order, own = integers_in(work, numbering(model)[2] + row, m), integers_in(work, numbering(model)[1] + k, n)
            rank = exchange_in_lanes(table, m, n, tolerance, order, own, free)
            if rank < 0:
                return False
            if is_weighed(model):
                unweigh_table(model, c, WIDTH, rank, m, order, own, table)
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
    """The largest pivot divided by the smallest one of any cluster, in each lane: large near singular
    configurations."""
    return load(LANES, vector_in(work, layout(LANES, model)[1], WIDTH), 0)


@kernel_in_place
def terms_in_lanes(model, q, v, f_ext, work, terms):
    """`terms_in_place` in lanes, for constraints that are cut joints."""
    clear(terms.M)
    tree_terms(LANES, model, q, v, f_ext, work, terms)
    clear_rows(terms.G)
    clear_rows(terms.gamma)
    cut_terms_kernel(LANES, model, work, terms.G, terms.gamma)
    negate(terms.gamma)


@kernel_in_place
def state_terms_in_lanes(model, q, v, f_ext, work, terms):
    """`put_state_terms` in lanes, for constraints that are cut joints."""
    clear(terms.M)
    tree_terms(LANES, model, q, v, f_ext, work, terms)
    clear_rows(terms.G)
    clear_rows(terms.gamma)
    clear_rows(terms.residual)
    clear_rows(terms.psi)
    cut_state_kernel(LANES, model, work, terms.residual, terms.psi, terms.G, terms.gamma)
    negate(terms.gamma)


# ---- accelerations


@kernel_in_place
def nullspace_in_lanes_size(model, p):
    """Size of the workspace of `nullspace_in_lanes`."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    state = terms_size(model) + n * n + 2 * n + m + m * n
    return (WIDTH * (1 + state + p * n + 2 * p * (p + 1) + m) + multipliers_size(LANES, model)
            + elimination_size(LANES, model))


@kernel_in_place
def nullspace_in_lanes(model, state, choosable, p, tolerance, work, found):
    """a, lam, force = G^T lam and the condition number of W states; False if they must be computed one by one."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    work[0] = WIDTH
    e, world = take_vector(work, elimination_size(LANES, model)), take_vector(work, WIDTH * terms_size(model))
    M, G = take_matrix(work, n, WIDTH * n), take_matrix(work, m, WIDTH * n)
    h, gamma = take_vector(work, WIDTH * n), take_vector(work, WIDTH * m)
    inertia = take_matrix(work, p, WIDTH * (p + 1))
    terms_in_lanes(model, state.q, state.v, state.f_ext, world, Terms(M, h, G, gamma))
    if not eliminate_in_lanes(model, G, gamma, choosable, p, tolerance, e):
        return False
    balance = ForceBalance(M, h, state.tau)
    if not constrained_motion(LANES, model, e, balance, work, inertia, (found.a, found.lam)):
        return False
    constraint_force(LANES, model, G, found.lam, found.force)
    store(LANES, found.condition, 0, picked_condition(LANES, model, e, G, p))
    return True
