"""Local state spaces of W states in lanes, of mechanisms of cut joints in coordinates of the tree.

What `liedyn.linearization.local` does at one state, with one decision for all on which velocities depend on which
(`liedyn.dynamics.alike`). All constraints are holonomic, and y and w the same coordinates: N = S = K, and Delta = Kdot.
A register holds one direction of W states.
"""
from liedyn.compiled.batches import aligned
from liedyn.compiled.jit import inline, inline_array, kernel_in_place
from liedyn.constraints.elimination import elimination_size
from liedyn.dynamics.alike import eliminate_alike, fits_lanes, state_alike
from liedyn.dynamics.picked import picked_condition
from liedyn.dynamics.terms import terms_size
from liedyn.linalg.gauss_jordan import clear, padded
from liedyn.linearization.choice import PICKED, picked_motions
from liedyn.linearization.directions import Known
from liedyn.linearization.local import local_size, put_local_space
from liedyn.linearization.space import LocalSpace
from liedyn.model.packed import NV, N_ROWS
from liedyn.simd.comparisons import is_positive, larger, magnitude
from liedyn.simd.lanes import LANES, WIDTH, load, splat, store, take_matrix, take_vector


@inline
def spaces_fit_lanes(model, coordinates, choosable):
    """Are all constraints cut joints, and y and w the same coordinates of the tree at all states (`fits_lanes`)?"""
    R_y, virtual_y, R_w, virtual_w = coordinates
    if R_y.shape[0] != 1 or R_w.shape[0] != 1 or virtual_y.size != virtual_w.size:
        return False
    for k in range(virtual_y.size):
        if virtual_y[k] != virtual_w[k]:
            return False
        for i in range(R_y.shape[2]):
            if R_y[0, k, i] != R_w[0, k, i]:
                return False
    return fits_lanes(model, R_w[0], virtual_w, choosable)


@inline_array
def space_in_lanes(n, m, p, nu, directions):
    """A `LocalSpace` of registers; without `directions` there is no room for those."""
    x = 2 * p
    k = n if directions else 0
    return LocalSpace(
        matrix_of(x, x), matrix_of(x, nu), matrix_of(1, x), matrix_of(1, p), matrix_of(1, n), matrix_of(1, m),
        matrix_of(1, m), matrix_of(1, m), matrix_of(m, n), matrix_of(k, n), matrix_of(k, x), matrix_of(k, x),
        matrix_of(k, x + nu), matrix_of(k, x + nu))


@inline_array
def matrix_of(m, n):
    """Room for a matrix of registers, in memory a multiple of W of them (`scatter`)."""
    return aligned(WIDTH * padded(m * n))[:m * n * WIDTH].reshape(m, WIDTH * n)


@kernel_in_place
def linearize_alike_size(model, p, nu):
    """Numbers in the workspace of `linearize_alike`."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    return (WIDTH * (8 + terms_size(model) + n + m) + elimination_size(LANES, model)
            + local_size(LANES, model, p, p, nu))


@inline
def largest(x, count):
    """The largest of |x_0|, |x_1|, ... in every lane."""
    found = splat(LANES, 0.0)
    for k in range(count):
        found = larger(found, magnitude(load(LANES, x, k)))
    return found


@kernel_in_place
def linearize_alike(model, state, coordinates, choosable, actuators, tolerances, work, space, condition):
    """`linearize_in_place` of W states, their condition numbers; False if they are to be worked on one by one.

    That is also where any state is off the manifold, or leaves it.
    """
    n, m, p = model.ints[NV], model.ints[N_ROWS], coordinates.virtual_w.size
    work[0] = WIDTH
    e, world = take_vector(work, elimination_size(LANES, model)), take_vector(work, WIDTH * terms_size(model))
    none, h, gamma = take_vector(work, 0), take_vector(work, WIDTH * n), take_vector(work, WIDTH * m)
    known = Known(world, e, take_matrix(work, 0, WIDTH * n), none, none, h)
    state_alike(model, state.q, state.v, state.f_ext, world, space.M, h, space.G, gamma, space.residual, space.psi)
    closed = splat(LANES, tolerances.closure) - largest(space.residual, m)
    slip = larger(splat(LANES, 1.0), largest(state.v, n)) * tolerances.closure - largest(space.psi, m)
    if not is_positive(closed) or not is_positive(slip):
        return False
    if not eliminate_alike(model, space.G, gamma, choosable, p, tolerances.rank, e):
        return False
    store(LANES, condition, 0, picked_condition(LANES, model, e, space.G, p))
    clear(space.X)
    picked_motions(LANES, model, e, coordinates.R_w, p, space.X)
    return put_local_space(LANES, model, state, coordinates, PICKED, True, known, actuators, work, space)
