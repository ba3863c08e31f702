"""Variations of a state along many directions: one outward and one inward pass for each register of columns.

At one state a register holds several directions; in lanes it holds one direction of W states. Symbols are those of
`liedyn.linear.local`.
"""
from collections import namedtuple

from liedyn.linear.choice import GIVEN, PICKED, SPANNED, hold_choice, hold_span, put_picked, reads_cuts
from liedyn.linear.column_sharing import (
    Sharing, gather_directions, may_share, share_directions, share_nothing, shares_size, spread_directions,
)
from liedyn.linear.space import Directions
from liedyn.machine.compiled.jit import inline
from liedyn.machine.linalg.gauss_jordan import element, padded_for
from liedyn.machine.simd.lanes import (
    LANES, WIDTH, integer, integers_in, load, splat, store, take_integers, take_matrix, take_vector, vector_in,
    width_of,
)
from liedyn.machine.simd.registers import at_once
from liedyn.mechanics.constraints.constraint_rows import (
    clear_block, push_constraints, vary_acceleration_rows, vary_constraint_wrenches, vary_other_forces,
    vary_velocity_rows,
)
from liedyn.mechanics.constraints.elimination import ROW, cluster_count, dependent_dofs, kept, numbering, solved_cluster
from liedyn.mechanics.constraints.families.cut import CUT, vary_cut_accelerations, vary_cut_velocities
from liedyn.mechanics.constraints.sparse_elimination import forced_by_factor, is_sparse
from liedyn.mechanics.tree.tangent_recursion import (
    BODY, VARIATION, VariedLinks, gather_wrenches, put_bodies, vary_accelerations, vary_forces, vary_velocities,
    vary_wrenches,
)
from liedyn.model.constraint_records import loop_count
from liedyn.model.packed import NV, N_ROWS, N_VIRTUAL
from liedyn.model.packed_records import link_count

Known = namedtuple("Known", "world e E z rho h actuators virtual_upper")
"""Data of a state: kinematics in world axes, the elimination, the rows E that read the virtual velocities with their
values and rates at a = 0, the forces h at a = 0, and S_u of tau = S_u u; room for the variations of the virtual
velocities that y reads."""

Pass = namedtuple("Pass", "masks bodies cuts variations rates virtual_rates columns_y")
"""Workspace of a pass: a register of ones, and 1 in the columns of y, 0 in others; data of bodies and cut joints; the
variations of all links; those of the constraint rows, and of the virtual velocities that w reads; the number of
columns of y, which come first."""


@inline
def forced(lane, model, e, rates, masks, mask, b, out):
    """out[:, block b] -= mask * (dependent velocities that give the independent constraint rows these rates).

    Block `mask` of `masks` has one factor for each column.
    """
    if width_of(lane) == 1 and is_sparse(model, e):
        forced_by_factor(model, e, rates, masks, mask, b, out)
        return
    dependent, columns = dependent_dofs(model, e)
    rows = integers_in(e, numbering(model)[2], rates.shape[0])
    width, to, scale = rates.shape[1] // WIDTH, out.shape[1] // WIDTH, load(LANES, masks, mask)
    for c in range(cluster_count(model)):
        table, first, rank = solved_cluster(lane, model, e, c)
        row = kept(e, c, ROW)
        for k in range(rank):
            total = splat(LANES, 0.0)
            for l in range(rank):
                x = element(lane, table, k, integer(columns, first + l))
                total = total + x * load(LANES, rates, width * integer(rows, row + l) + b)
            i = to * integer(dependent, first + k) + b
            store(LANES, out, i, load(LANES, out, i) - scale * total)


@inline
def held(lane, model, chosen, known, virtual_rates, S, scale, b, out):
    """out[:, block b] -= scale * (what moves the chosen coordinates), if the elimination chose others."""
    if chosen.way == SPANNED:
        hold_span(lane, model, known.e, chosen.coordinates.R_w, scale, b, out)
    elif chosen.way == GIVEN:
        hold_choice(chosen.coordinates, known.E, virtual_rates, S, scale, b, out)


@inline
def vary_state(lane, model, state, chosen, known, shares, along, columns, space, b):
    """Block b of Delta (in X), of D, and of balance = -(M D + d(ID + G^T lambda)/dq [N 0] + dID/dv X).

    Where directions share columns, `space.balance` receives the wrenches
    that a group passes on to its parent (`liedyn.mechanics.tree.column_coloring`).
    """
    q, lam, world, motion = state.q, space.lam, known.world, (state.q, state.v, space.a)
    variations, rates, virtual_rates = along.variations, along.rates, along.virtual_rates
    links = VariedLinks(world, along.cuts, variations)
    N, X, D = columns.N, columns.X, columns.D
    every, displaced = splat(LANES, 1.0), b * at_once(lane) < along.columns_y
    reads_w = reads_cuts(chosen.coordinates.virtual_w)
    if displaced:  # Delta
        of_y = load(LANES, along.masks, 1 + b)
        vary_velocities(lane, model, world, N, X, b, variations)
        vary_velocity_rows(lane, model, motion, links, N, b, rates)
        forced(lane, model, known.e, rates, along.masks, 1 + b, b, X)
        if reads_w:
            vary_cut_velocities(lane, model, links, True, b, virtual_rates)
        held(lane, model, chosen, known, virtual_rates, X, of_y, b, X)
    vary_accelerations(lane, model, world, displaced, X, b, variations)
    if reads_cuts(chosen.coordinates.virtual_y):
        vary_cut_velocities(lane, model, links, True, b, known.virtual_upper)
    vary_acceleration_rows(lane, model, motion, links, (N, X), b, rates)
    clear_block(D, b)
    forced(lane, model, known.e, rates, along.masks, 0, b, D)
    if reads_w:
        vary_cut_accelerations(lane, model, links, True, b, virtual_rates)
    held(lane, model, chosen, known, virtual_rates, X, every, b, D)
    vary_wrenches(lane, model, world, along.bodies, D, b, variations)
    if displaced:
        vary_constraint_wrenches(lane, model, links, lam, b, shares, space.balance)
    vary_forces(lane, model, q, links, along.bodies, displaced, columns, b, shares, space.balance)
    vary_other_forces(model, q, vector_in(lam, 0, model.ints[N_ROWS]), N, b, columns.balance)


@inline
def directions_size(lane, model, p_y, p_w):
    """Size of the workspace of `vary_directions`."""
    n, m, nz, x = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL], padded_for(lane, p_y + p_w)
    links, cuts = link_count(model), CUT * loop_count(model)
    kept_of_state = width_of(lane) * (BODY * links + cuts) + WIDTH * VARIATION * links
    return WIDTH * 17 + shares_size(model, p_w) + p_w + x * (1 + m + 2 * nz + 4 * n) + kept_of_state


@inline
def vary_directions(lane, model, state, chosen, known, work, space):
    """Delta (in X), da and balance for wdot = 0, and known.virtual_upper."""
    n, m, nz = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL]
    p_y, p_w = chosen.coordinates.virtual_y.size, chosen.coordinates.virtual_w.size
    x, links = padded_for(lane, p_y + p_w), link_count(model)
    shares, of_dofs = take_integers(work, shares_size(model, p_w)), take_integers(work, p_w)
    columns_y, columns = p_y, p_y + p_w
    own = Directions(space.N, space.X, space.da, space.balance)
    moved = own
    share_nothing(model, shares)
    if may_share(model) and chosen.way == PICKED and chosen.same and columns > at_once(lane):
        put_picked(chosen.coordinates.R_w, of_dofs)
        columns_y, columns = share_directions(lane, model, of_dofs, shares)
    share = columns < p_y + p_w
    if share:
        s = padded_for(lane, columns)
        moved = Directions(take_matrix(work, n, s), take_matrix(work, n, s), take_matrix(work, n, s),
                           take_matrix(work, n, s))
        gather_directions(lane, model, state.v, known.world, space.M, Sharing(of_dofs, shares, own, moved))
    along = Pass(
        take_vector(work, WIDTH + x), take_vector(work, width_of(lane) * BODY * links),
        take_vector(work, width_of(lane) * CUT * loop_count(model)), take_vector(work, WIDTH * VARIATION * links),
        take_matrix(work, m, x), take_matrix(work, nz, x), columns_y)
    store(LANES, along.masks, 0, splat(LANES, 1.0))
    for c in range(x):
        along.masks[WIDTH + c] = 1.0 if c * at_once(lane) < columns_y * WIDTH else 0.0
    put_bodies(lane, model, state.v, space.a, state.f_ext, known.world, along.bodies)
    push_constraints(lane, model, known.world, space.lam, along.bodies, along.cuts)
    gather_wrenches(lane, model, along.bodies)
    for b in range(padded_for(lane, columns) // WIDTH):
        vary_state(lane, model, state, chosen, known, shares, along, moved, space, b)
    if share:
        spread_directions(lane, model, shares, moved, own)
