"""Local state spaces of W states in lanes, of mechanisms of cut joints in coordinates of the tree or tangent spaces.

The same equations as `liedyn.linear.local`, with one decision for all W states on which velocities are dependent
(`liedyn.mechanics.dynamics.forward_in_lanes`). All constraints are holonomic, and y and w are the same coordinates:
N = S = K and Delta = Kdot. A register holds one direction of W states. The basis of a tangent space is computed at each
state on its own.
"""
from liedyn.linear.choice import PICKED, SPANNED, picked_motions, spanned_motions
from liedyn.linear.directions import Known
from liedyn.linear.local import local_size, put_local_space
from liedyn.linear.space import Chosen, LocalSpace
from liedyn.machine.compiled.jit import inline, inline_array, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import clear, columns_of, padded
from liedyn.machine.simd.comparisons import is_positive, larger, magnitude
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, splat, store, take_matrix, take_vector
from liedyn.mechanics.constraints.elimination import INDEPENDENT, cluster_count, eliminate, elimination_size, kept
from liedyn.mechanics.constraints.free_velocities import TANGENT, is_left, put_tangent
from liedyn.mechanics.dynamics.forward_in_lanes import (
    all_cut_joints, eliminate_in_lanes, fits_lanes, state_terms_in_lanes,
)
from liedyn.mechanics.dynamics.picked import picked_condition
from liedyn.mechanics.dynamics.state import StateTerms
from liedyn.mechanics.dynamics.terms import terms_size
from liedyn.model.calls.batches import aligned
from liedyn.model.packed import NV, N_ROWS


MOST_IN_LANES = 300_000
"""Size of the workspace above which lanes are slower than one state after another (by a quarter at 700,000): it no
longer fits into the second-level cache, 1.25 MB per core where this was measured."""


@inline
def spaces_fit_lanes(model, coordinates, choosable):
    """True if all constraints are cut joints, and y and w the same coordinates (`fits_lanes`), or tangent spaces."""
    R_y, virtual_y, R_w, virtual_w = coordinates
    if is_left(virtual_w, TANGENT):
        choosable[:] = 1.0
        return all_cut_joints(model)
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
    """A `LocalSpace` of registers; without `directions` its arrays for directions are empty."""
    x = 2 * p
    k = n if directions else 0
    return LocalSpace(
        matrix_of(x, x), matrix_of(x, nu), matrix_of(1, x), matrix_of(1, p), matrix_of(1, n), matrix_of(1, m),
        matrix_of(1, m), matrix_of(1, m), matrix_of(m, n), matrix_of(k, n), matrix_of(k, x), matrix_of(k, x),
        matrix_of(k, x + nu), matrix_of(k, x + nu))


@inline_array
def matrix_of(m, n):
    """An uninitialised matrix of registers; its address is a multiple of W numbers (`scatter`)."""
    return aligned(WIDTH * padded(m * n))[:m * n * WIDTH].reshape(m, WIDTH * n)


@kernel_in_place
def linearize_in_lanes_size(model, p, nu):
    """Size of the workspace of `linearize_in_lanes`."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    tangents = WIDTH * 5 + elimination_size(SCALAR, model) + m * n + p * n + m + n
    return (WIDTH * (8 + terms_size(model) + n + m) + elimination_size(LANES, model) + tangents
            + local_size(LANES, model, p, p, nu))


@inline
def largest(x, count):
    """The largest of |x_0|, |x_1|, ... in each lane."""
    found = splat(LANES, 0.0)
    for k in range(count):
        found = larger(found, magnitude(load(LANES, x, k)))
    return found


@kernel_in_place
def put_tangents(model, e, G, tolerance, work, R):
    """The rows of `put_tangent` in all lanes; False if the elimination of a state chooses other coordinates than e."""
    m, p, n = G.shape[0], R.shape[0], columns_of(LANES, R)
    own, gamma, choosable = (
        take_vector(work, elimination_size(SCALAR, model)), take_vector(work, m), take_vector(work, n))
    G_own, R_own = take_matrix(work, m, n), take_matrix(work, p, n)
    gamma[:], choosable[:] = 0.0, 1.0
    for lane in range(WIDTH):
        for k in range(m * n):
            store(SCALAR, G_own, k, load(SCALAR, G, WIDTH * k + lane))
        _, _, complete = eliminate(model, G_own, gamma, choosable, tolerance, own)
        for c in range(cluster_count(model) + 1):
            complete = complete and kept(own, c, INDEPENDENT) == kept(e, c, INDEPENDENT)
        if not complete:
            return False
        put_tangent(model, own, R_own)
        for k in range(p * n):
            store(SCALAR, R, WIDTH * k + lane, load(SCALAR, R_own, k))
    return True


@kernel_in_place
def linearize_in_lanes(model, state, request, choosable, work, space, condition):
    """`linearize_in_place` of W states, with their condition numbers, for a `Request` in lanes.

    Returns False if the states have to be treated one by one, also if one of them violates the constraints or its
    velocity does.
    """
    coordinates, actuators, _, tolerances = request
    n, m, p = model.ints[NV], model.ints[N_ROWS], coordinates.virtual_w.size
    work[0] = WIDTH
    e, world = take_vector(work, elimination_size(LANES, model)), take_vector(work, WIDTH * terms_size(model))
    none, h, gamma = take_vector(work, 0), take_vector(work, WIDTH * n), take_vector(work, WIDTH * m)
    no_cuts = take_matrix(work, 0, WIDTH * n)
    known = Known(world, e, no_cuts, none, none, h, actuators, no_cuts)
    terms = StateTerms(space.M, h, space.G, space.residual, space.psi, gamma)
    state_terms_in_lanes(model, state.q, state.v, state.f_ext, world, terms)
    closed = splat(LANES, tolerances.closure) - largest(space.residual, m)
    slip = larger(splat(LANES, 1.0), largest(state.v, n)) * tolerances.closure - largest(space.psi, m)
    if not is_positive(closed) or not is_positive(slip):
        return False
    if not eliminate_in_lanes(model, space.G, gamma, choosable, p, tolerances.rank, e):
        return False
    store(LANES, condition, 0, picked_condition(LANES, model, e, space.G, p))
    clear(space.X)
    way = SPANNED if is_left(coordinates.virtual_w, TANGENT) else PICKED
    if way == PICKED:
        picked_motions(LANES, model, e, coordinates.R_w, p, space.X)
    else:
        if not put_tangents(model, e, space.G, tolerances.rank, work, coordinates.R_w):
            return False
        spanned_motions(LANES, coordinates.R_w, p, space.X)
    return put_local_space(LANES, model, state, Chosen(coordinates, way, True), known, work, space)
