"""Constrained accelerations of many states without Python in between, one workspace for each thread."""
import numpy as np

from liedyn.constraints.cut_rows import cut_bias_kernel
from liedyn.constraints.rows import reader_rows
from liedyn.dense import independent_rows_in_place
from liedyn.dynamics.alike import fits_lanes, nullspace_alike, nullspace_alike_size
from liedyn.dynamics.elimination import shortest_multipliers
from liedyn.dynamics.nullspace import (
    OK, SINGULAR_CHOICE, SINGULAR_INERTIA, WRONG_COUNT, given_accelerations, invert_rows,
)
from liedyn.dynamics.terms import terms_in_place, terms_size
from liedyn.exchange import padded
from liedyn.jit import inline, kernel_in_place
from liedyn.lie.lanes import SCALAR, WIDTH, take_matrix, take_vector
from liedyn.model.packed import N_ROWS, N_VIRTUAL, NV
from liedyn.tree.batches import aligned, batch, gather, in_lanes, scatter

GIVEN, PIVOTED, EITHER = range(3)
"""Independent coordinates: those given, those that pivoting leaves at each state, or these where those do not fit."""

FEW = WIDTH // 2
"""States from which on lanes pay: a register takes as long as 2 states of a four-bar, and up to 7 of a large machine
with many motions, whose derivatives fill registers at one state already."""


@kernel_in_place
def pivoted_rows(G, tolerance, columns, order, pivots, R):
    """R, unit rows of the coordinates left over when the best conditioned columns of G are the dependent ones.

    Returns how many; `columns` (n, m), `order` and `pivots` (n) are scratch.
    """
    m, n = G.shape
    for i in range(m):
        for j in range(n):
            columns[j, i] = G[i, j]
    rank = independent_rows_in_place(columns, tolerance, order, pivots)
    p = 0
    for j in range(n):
        dependent = False
        for k in range(rank):
            dependent = dependent or int(order[k]) == j
        if not dependent:
            for i in range(n):
                R[p, i] = 1.0 if i == j else 0.0
            p += 1
    return p


@kernel_in_place
def solve_in_coordinates(M, h, G, E, gamma, rho, tau, R, virtual, tolerance, work, rows, columns, a, lam):
    """a and the minimum-norm lam in given coordinates; returns (status, rank, condition) as `nullspace_kernel`."""
    (m, n), p = G.shape, virtual.size
    table, Z_inverse = take_matrix(work, m + p, padded(n)), take_matrix(work, n, padded(n))
    free = take_matrix(work, 2, padded(n))
    status, rank, condition = invert_rows(G, E, R, virtual, tolerance, table, rows, columns, free, Z_inverse)
    if status == OK:
        K, MK, reduced = (take_matrix(work, n, padded(p + 1)), take_matrix(work, n, padded(p + 1)),
                          take_matrix(work, p, padded(p + 1)))
        if given_accelerations(M, h, gamma, rho, tau, virtual, rank, rows, Z_inverse, K, MK, reduced, a, lam):
            shortest_multipliers(
                SCALAR, table, rank, m, rows, columns, take_matrix(work, rank, padded(rank + 1)), lam)
        else:
            status = SINGULAR_INERTIA
    return status, rank, condition


@inline
def nullspace_size(ints):
    """Numbers in the workspace of `nullspace_in_place`."""
    n, m, nz = ints[NV], ints[N_ROWS], ints[N_VIRTUAL]
    state = terms_size(ints) + n * n + n + m * n + nz * n + m + nz
    solution = (m + n) * (padded(n) + 2) + n * padded(n) + 2 * padded(n) + 3 * n * padded(n + 1) + m * padded(m + 1)
    return 1 + state + m * n + 2 * n + n * n + solution + WIDTH * 20  # as many arrays fill whole registers


@kernel_in_place
def nullspace_in_place(ints, floats, q, v, tau, f_ext, R, virtual, none, way, tolerance, work, rows, columns, R_own, a,
                       lam, force):
    """a, lam and force = G^T lam at one state.

    `none` is -1 for n coordinates that read no virtual velocity; `rows` (m + n) receives the independent rows first,
    `columns` (m + n) is scratch, `R_own` (n, n) receives what pivoting chose. Returns (status, rank, condition,
    pivoted).
    """
    n, m, nz = ints[NV], ints[N_ROWS], ints[N_VIRTUAL]
    work[0] = 1.0
    world, M, h, G = (take_vector(work, terms_size(ints)), take_matrix(work, n, n), take_vector(work, n),
                      take_matrix(work, m, n))
    E, gamma, rho = take_matrix(work, nz, n), take_vector(work, m), take_vector(work, nz)
    terms_in_place(ints, floats, q, v, f_ext, world, M, h, G, gamma)
    if nz > 0:
        reader_rows(SCALAR, ints, floats, world, E)
        cut_bias_kernel(ints, floats, world, True, rho)
    begin, pivoted = work[0], way == PIVOTED
    status, rank, condition = WRONG_COUNT, 0, np.inf
    if not pivoted:
        status, rank, condition = solve_in_coordinates(
            M, h, G, E, gamma, rho, tau, R, virtual, tolerance, work, rows, columns, a, lam)
        pivoted = way == EITHER and (status == WRONG_COUNT or status == SINGULAR_CHOICE)
    if pivoted:
        work[0] = begin
        p = pivoted_rows(G, tolerance, take_matrix(work, n, m), take_vector(work, n), take_vector(work, n), R_own)
        status, rank, condition = solve_in_coordinates(
            M, h, G, E, gamma, rho, tau, R_own, none[:p], tolerance, work, rows, columns, a, lam)
    for j in range(n):
        force[j] = 0.0
        for i in range(m):
            force[j] += G[i, j] * lam[i]
    return status, rank, condition, pivoted


@batch
def nullspace_registers(begin, end, ints, floats, q, v, tau, f_ext, R, virtual, way, tolerance, a, lam, force, rank,
                        condition, last):
    """`nullspace_states` W rows at a time, for those that depend alike on given coordinates (`liedyn.dynamics.alike`).

    The rank of all others, and `last`, stay what they are: `nullspace_states` has to follow. It is a kernel of its
    own, as a single state should not wait for it to be compiled.
    """
    p, choosable = virtual.size, np.empty(ints[NV])
    if not fits_lanes(ints, R, virtual, choosable):
        return
    q_w, v_w, tau_w, f_ext_w = in_lanes(q), in_lanes(v), in_lanes(tau), in_lanes(f_ext)
    a_w, lam_w, force_w, condition_w = in_lanes(a), in_lanes(lam), in_lanes(force), aligned(WIDTH)
    work = aligned(nullspace_alike_size(ints, p))
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        gather(v, b, end, v_w)
        gather(tau, b, end, tau_w)
        gather(f_ext, b, end, f_ext_w)
        if nullspace_alike(ints, floats, q_w, v_w, tau_w, f_ext_w, choosable, p, tolerance, work, a_w, lam_w, force_w,
                           condition_w):
            scatter(a_w, b, end, a)
            scatter(lam_w, b, end, lam)
            scatter(force_w, b, end, force)
            for k in range(b, min(b + WIDTH, end)):
                rank[k], condition[k] = ints[NV] - p, condition_w[k - b]


@batch
def nullspace_states(begin, end, ints, floats, q, v, tau, f_ext, R, virtual, way, tolerance, a, lam, force, rank,
                     condition, last):
    """`nullspace_in_place` on each row whose rank is not known yet, -1, and on the last row.

    `last` (1 + m + n) tells of that: it receives whether pivoting chose, the order of the rows of G, independent ones
    first, and 1 for each coordinate that pivoting left. The first state that has no accelerations keeps its rank, and
    none behind it in its block is worked on.
    """
    n, m = ints[NV], ints[N_ROWS]
    floats = floats.copy()  # where moving targets and custom rows leave what they return
    work, R_own, none = np.empty(nullspace_size(ints)), np.empty((n, n)), np.full(n, -1)
    rows, columns = np.empty(m + n, np.int64), np.empty(m + n, np.int64)
    for b in range(begin, end):
        if rank[b] >= 0 and b < q.shape[0] - 1:
            continue
        status, rank[b], condition[b], pivoted = nullspace_in_place(
            ints, floats, q[b], v[b], tau[b], f_ext[b], R, virtual, none, way, tolerance, work, rows, columns, R_own,
            a[b], lam[b], force[b])
        if status != OK:
            rank[b] = -1  # and not that of G
            return
        if b == q.shape[0] - 1:
            last[0] = 1.0 if pivoted else 0.0
            for i in range(m):
                last[1 + i] = rows[i]
            for k in range(n):
                last[1 + m + k] = 0.0
            for s in range(n - rank[b] if pivoted else 0):
                for k in range(n):
                    last[1 + m + k] += R_own[s, k]
