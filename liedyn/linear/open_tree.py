"""The local state space of a tree without constraints, in its own coordinates: y = q, w = v.

All coordinates are independent, N = S = 1 and Delta = 0 (symbols: `liedyn.linear.local`), so that only the derivatives
of forward dynamics remain, from their sparse factors:

    A = [-ad_v    1   ]      B = [   0    ]
        [da/dq  da/dv ]          [M^-1 S_u]

The same body is compiled for one state and for W of them in lanes.
"""
from numba import types

from liedyn.linear.space import COORDINATES, SPACE
from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import at, clear, element, put_element
from liedyn.machine.simd.comparisons import is_positive, larger, largest_lane, magnitude
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, splat, store, take_vector, width_of
from liedyn.machine.simd.registers import copy_row, first_place, load_at_once
from liedyn.mechanics.dynamics.nullspace import OK, SINGULAR_INERTIA
from liedyn.mechanics.dynamics.state import STATE
from liedyn.mechanics.tree.aba_derivatives import aba_derivatives_kernel, aba_derivatives_size
from liedyn.model.packed_records import MODEL, dof_count, dof_total, first_dof, get3, link_count, put_zeros


@inline
def picks_all_in_order(R, virtual):
    """True if row k picks coordinate k of the tree, for each k."""
    n = R.shape[1]
    if virtual.size != n:
        return False
    others = splat(LANES, 0.0)
    for k in range(n):
        if virtual[k] >= 0 or at(R, k, k) != 1.0:
            return False
        for c in range((n + 1) * k + 1, min((n + 1) * (k + 1), R.size), WIDTH):  # entries between two of the diagonal
            others = larger(others, magnitude(load_at_once(SCALAR, R, c, (n + 1) * (k + 1) - c)))
    return largest_lane(others) == 0.0


@inline
def put_minus_skew(lane, w, A, i, j):
    """A[i:i+3, j:j+3] = -[w], the matrix of x -> x cross w."""
    for r, c, x in ((0, 1, w[2]), (1, 2, w[0]), (2, 0, w[1])):
        put_element(lane, A, i + r, j + c, x)
        put_element(lane, A, i + c, j + r, -x)


@inline
def put_tangent_bracket(lane, model, v, A):
    """-ad_v joint by joint in the rows of ydot: zero except for ball and free joints, whose tangents turn with them."""
    for i in range(link_count(model)):
        j = first_dof(model, i)
        if dof_count(model, i) > 1:
            put_minus_skew(lane, get3(lane, v, j), A, j, j)
        if dof_count(model, i) == 6:
            put_minus_skew(lane, get3(lane, v, j), A, j + 3, j + 3)
            put_minus_skew(lane, get3(lane, v, j + 3), A, j + 3, j)


@kernel_in_place
def linearize_tree(lane, model, state, actuators, world, work, space):
    """A, B, f0 and accelerations a. Returns False if M is singular, in any lane."""
    A, B, f0, a = space.A, space.B, space.f0, space.a
    n, size, x = dof_total(model), width_of(lane) * dof_total(model) * dof_total(model), 2 * dof_total(model)
    L, da_dq, da_dv, Minv = (
        take_vector(work, size), take_vector(work, size), take_vector(work, size), take_vector(work, size))
    aba_derivatives_kernel(lane, model, state.q, state.v, state.tau, state.f_ext, world, a, L, da_dq, da_dv, Minv)
    put_zeros(lane, A, n * x)  # the rows of ydot
    put_zeros(lane, B, x * actuators.shape[1])
    put_tangent_bracket(lane, model, state.v, A)
    regular = True
    for i in range(n):
        regular = regular and is_positive(load(lane, L, n * i + i))
        put_element(lane, A, i, n + i, splat(lane, 1.0))
        copy_row(lane, da_dq, n * i, n, A, x * (n + i))
        copy_row(lane, da_dv, n * i, n, A, x * (n + i) + n)
        store(lane, f0, i, load(lane, state.v, i))
        store(lane, f0, n + i, load(lane, a, i))
    for j in range(n):
        for c in range(actuators.shape[1]):
            s = at(actuators, j, c)
            if s != 0.0:
                for i in range(n):  # M^-1 is symmetric: a column is a row
                    put_element(lane, B, n + i, c, element(lane, B, n + i, c) + s * load(lane, Minv, n * j + i))
    return regular


@inline
def put_tree_directions(lane, space):
    """N = [1 0] and X = [0 1] (padded), and D = 0."""
    clear(space.N)
    clear(space.X)
    clear(space.M)
    clear(space.da)
    clear(space.balance)
    n = space.N.shape[0]
    for i in range(n):
        put_element(lane, space.N, i, i, splat(lane, 1.0))
        put_element(lane, space.X, i, n + i, splat(lane, 1.0))


@late(MODEL, STATE, COORDINATES, MATRIX, types.float64, VECTOR, SPACE,
      returns=types.Tuple((types.int64, types.int64, types.float64) * 2))
def linearize_unconstrained(model, state, coordinates, actuators, tolerance, work, space):
    """`linearize_constrained` (`liedyn.linear.local`) without constraints, if R picks all coordinates in order."""
    work[0] = first_place(work)
    put_tree_directions(SCALAR, space)
    world = take_vector(work, aba_derivatives_size(model))
    regular = linearize_tree(SCALAR, model, state, actuators, world, work, space)
    for i in range(state.v.size):
        space.w[i] = state.v[i]
    return (OK if regular else SINGULAR_INERTIA), 0, 1.0, OK, 0, 1.0
