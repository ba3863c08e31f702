"""Constrained accelerations of many states in compiled code, with one workspace for each thread."""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, group, inline, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import padded
from liedyn.machine.simd.lanes import SCALAR, WIDTH, integer, matrix_in, take_integers, take_matrix, take_vector
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.constraint_rows import reader_rows
from liedyn.mechanics.constraints.elimination import independent_dofs, put_row_order
from liedyn.mechanics.constraints.families.cut import cut_bias_kernel
from liedyn.mechanics.constraints.reduced import constraint_force, multipliers_size, shortest_multipliers
from liedyn.mechanics.dynamics.forward_in_lanes import all_cut_joints, nullspace_in_lanes, nullspace_in_lanes_size
from liedyn.mechanics.dynamics.nullspace import (
    OK, SINGULAR_CHOICE, SINGULAR_INERTIA, WRONG_COUNT, Reduced, Tableau, elimination_in, given_accelerations,
    invert_rows, solve_chosen, solve_multipliers, solve_padded, solve_size,
)
from liedyn.mechanics.dynamics.picked import picked_condition, picks
from liedyn.mechanics.dynamics.state import TERMS, State, Terms, gather_state, state_in_lanes
from liedyn.mechanics.dynamics.terms import put_terms, terms_size
from liedyn.model.calls.batches import aligned, batch, in_lanes, scatter
from liedyn.model.packed import NV, N_ROWS, N_VIRTUAL, PackedModel
from liedyn.model.packed_records import MODEL

GIVEN, PIVOTED, EITHER = range(3)
"""Independent coordinates: those given; those of pivoting at each state; or pivoting where the given ones fail."""

FEW = WIDTH // 2
"""Number of states from which on lanes are faster: a register takes as long as 2 states of a four-bar, and up to 7 of a
large machine with many motions, whose derivatives fill registers for one state already."""


Choice = namedtuple("Choice", "R virtual way tolerance")
"""Rows R of the independent velocities; numbers of virtual velocities that replace a row, else -1; way of choosing;
tolerance of the rank."""

Found = namedtuple("Found", "a lam force rank condition")
"""Results, one row for each state: accelerations, multipliers, G^T lam, rank and condition number."""

Solved = namedtuple("Solved", "a lam force")
"""Accelerations, multipliers and G^T lam of one state."""

Order = namedtuple("Order", "rows left")
"""Numbers of the rows of G, independent ones first (room for m + n); 1 for each independent coordinate chosen by
pivoting (n)."""


@late(MODEL, VECTOR, TERMS, VECTOR, group(Choice, MATRIX, INTEGERS, types.int64, types.float64), VECTOR, INTEGERS,
      group(Solved, *[VECTOR] * 3), returns=types.Tuple((types.int64, types.int64, types.float64)))
def solve_given(model, world, terms, tau, choice, work, rows, solved):
    """a and the minimum-norm lam in coordinates for which the elimination cannot be used: those of cuts, of tangent
    spaces, and unsuitable ones; `rows` has room for m + n. Returns (status, rank, condition) as `nullspace_kernel`."""
    (m, n), nz, p = terms.G.shape, model.ints[N_VIRTUAL], choice.virtual.size
    E, rho = take_matrix(work, nz, n), take_vector(work, nz)
    if nz > 0:
        reader_rows(SCALAR, model, world, E)
        cut_bias_kernel(model, world, True, rho)
    tableau = Tableau(take_matrix(work, m + p, padded(n)), rows, take_integers(work, rows.size),
                      take_matrix(work, 2, padded(n)), take_matrix(work, n, padded(n)))
    status, rank, condition = invert_rows(model, terms.G, E, choice.R, choice.virtual, choice.tolerance, tableau)
    if status == OK:
        reduced = Reduced(take_matrix(work, n, padded(p + 1)), take_matrix(work, n, padded(p + 1)),
                          take_matrix(work, p, padded(p + 1)))
        if given_accelerations(terms, rho, tau, choice.virtual, rank, tableau, reduced, solved.a, solved.lam):
            shortest_multipliers(SCALAR, tableau.table, rank, m, rows, tableau.columns,
                                 take_matrix(work, rank, padded(rank + 1)), solved.lam)
        else:
            status = SINGULAR_INERTIA
    return status, rank, condition


@inline
def nullspace_size(model):
    """Size of the workspace of `nullspace_in_place`."""
    n, m, nz = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL]
    state = terms_size(model) + solve_size(model) + n + m * n + m
    given = (m + n) * (padded(n) + 2) + nz * n + nz + n * padded(n) + 2 * padded(n) + 3 * n * padded(n + 1)
    return 1 + state + given + multipliers_size(SCALAR, model) + WIDTH * 20  # each array fills whole registers


@kernel_in_place
def nullspace_in_place(model, state, choice, work, order, solved):
    """a, lam and force = G^T lam at one state, and `Order`. Returns (status, rank, condition, pivoted)."""
    n, m, tau, virtual, tolerance = model.ints[NV], model.ints[N_ROWS], state.tau, choice.virtual, choice.tolerance
    work[0] = first_place(work)
    world, solution = take_vector(work, terms_size(model)), take_vector(work, solve_size(model))
    h, G, gamma = take_vector(work, n), take_matrix(work, m, n), take_vector(work, m)
    terms, (choosable, e) = Terms(matrix_in(solution, 0, n, padded(n)), h, G, gamma), elimination_in(model, solution)
    put_terms(model, state.q, state.v, state.f_ext, world, terms)
    pivoted, eliminated = choice.way == PIVOTED, False
    status, rank, condition = WRONG_COUNT, 0, np.inf
    if not pivoted and picks(model, choice.R, virtual, choosable):
        status, rank, _ = solve_chosen(model, terms, tau, tolerance, solution, solved.a)
        eliminated = status == OK and rank + virtual.size == n
    if not pivoted and not eliminated:
        status, rank, condition = solve_given(model, world, terms, tau, choice, work, order.rows, solved)
        pivoted = choice.way == EITHER and (status == WRONG_COUNT or status == SINGULAR_CHOICE)
    if pivoted:
        status, rank, _ = solve_padded(model, terms, tau, tolerance, solution, solved.a)
    if pivoted or eliminated:
        condition = picked_condition(SCALAR, model, e, G, n - rank)
        solve_multipliers(model, solution, solved.lam)
        put_row_order(model, e, order.rows)
    for j in range(n):
        order.left[j] = 0.0
    if pivoted:
        independent = independent_dofs(model, e)[0]
        for s in range(n - rank):
            order.left[integer(independent, s)] = 1.0
    constraint_force(SCALAR, model, G, solved.lam, solved.force)
    return status, rank, condition, pivoted


@batch
def nullspace_registers(begin, end, model, states, choice, found, last):
    """`nullspace_states` for W rows at a time with the same elimination (`liedyn.mechanics.dynamics.forward_in_lanes`).

    The rank of rows that fail, and `last`, are not changed: `nullspace_states` must follow. It is a kernel of its own,
    as a single state should not wait for its compilation. If pivoting chooses, `virtual` gives the number of
    independent coordinates, and the lanes share the choice.
    """
    p, choosable = choice.virtual.size, np.ones(model.ints[NV])
    if not all_cut_joints(model) or choice.way != PIVOTED and not picks(model, choice.R, choice.virtual, choosable):
        return
    state, work = state_in_lanes(states), aligned(nullspace_in_lanes_size(model, p))
    lanes = Found(in_lanes(found.a), in_lanes(found.lam), in_lanes(found.force), found.rank, aligned(WIDTH))
    for b in range(begin, end, WIDTH):
        gather_state(states, b, end, state)
        if nullspace_in_lanes(model, state, choosable, p, choice.tolerance, work, lanes):
            scatter(lanes.a, b, end, found.a)
            scatter(lanes.lam, b, end, found.lam)
            scatter(lanes.force, b, end, found.force)
            for k in range(b, min(b + WIDTH, end)):
                found.rank[k], found.condition[k] = model.ints[NV] - p, lanes.condition[k - b]


@kernel_in_place
def nullspace_row(b, model, states, choice, work, order, found):
    """`nullspace_in_place` on row b: (status, rank, condition, pivoted)."""
    state = State(states.q[b], states.v[b], states.tau[b], states.f_ext[b])
    solved = Solved(found.a[b], found.lam[b], found.force[b])
    return nullspace_in_place(model, state, choice, work, order, solved)


@batch
def nullspace_states(begin, end, model, states, choice, found, last):
    """`nullspace_in_place` on each row whose rank is still -1, and on the last row.

    `last` (1 + m + n) receives the data of the last row: whether pivoting chose, the order of the rows of G,
    independent ones first, and 1 for each independent coordinate. The first state without accelerations keeps its rank
    of -1, and later rows of its block are not computed.
    """
    n, m, count = model.ints[NV], model.ints[N_ROWS], states.q.shape[0]
    model = PackedModel(model.ints, model.floats.copy())  # a copy, as moving targets and custom rows write to floats
    work, order = np.empty(nullspace_size(model)), Order(np.empty(m + n, np.int64), np.empty(n))
    for b in range(begin, end):
        if found.rank[b] >= 0 and b < count - 1:
            continue
        status, found.rank[b], found.condition[b], pivoted = nullspace_row(
            b, model, states, choice, work, order, found)
        if status != OK:
            found.rank[b] = -1  # not the rank of G
            return
        if b == count - 1:
            last[0] = 1.0 if pivoted else 0.0
            for i in range(m):
                last[1 + i] = order.rows[i]
            for k in range(n):
                last[1 + m + k] = order.left[k]
