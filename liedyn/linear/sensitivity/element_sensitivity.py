"""Forces of force elements varied in two directions to second order: G^T f with f(x, w) of `law_sensitivity`.

The elements have a model of their own, with the robot's links, in which the quantities that they measure are the
constraints (`liedyn.model.force_elements`). With x and w as quadruples,

    f_12 = f_x x_12 + f_w w_12 + x_1 (f_xx x_2 + f_xw w_2 + f_xp) + w_1 (f_xw x_2 + f_ww w_2 + f_wp)

and p the numbers of the law. f then enters as multipliers do, and varies as its line of action turns. For elements
that act on coordinates z of cut joints, x has also C z, which varies as the readers of the cut joints do
(`liedyn.linear.sensitivity.row_sensitivity`), and the forces C^T f along z act on both sides of the cut.

Bushings, wrenches that the user gives (`liedyn.mechanics.elements.element_wrenches`) and cables
(`liedyn.linear.sensitivity.cable_sensitivity`) follow the same way: the element's force law with quadruples as numbers.
"""
from collections import namedtuple

from numba import types

from liedyn.lie.algebra import Ad_inverse, ad, add, add6, compose, cross, dot, neg
from liedyn.lie.exponential import inverse, log
from liedyn.linear.sensitivity.cable_sensitivity import piece_changes, piece_of, pull_piece
from liedyn.linear.sensitivity.changes import (
    CHANGES, LENGTH_AT, number_change, of_loop, of_number, put_changes, spread_size,
)
from liedyn.linear.sensitivity.contact_sensitivity import (
    axle_variations, joined, no_force, place_variations, quadruple_of,
)
from liedyn.linear.sensitivity.law_sensitivity import SLOPES
from liedyn.linear.sensitivity.link_sensitivity import (
    FLOATS, LANED, PASSES, Passes, add_to, gather_forces, vary_links,
)
from liedyn.linear.sensitivity.row_sensitivity import ALONG
from liedyn.linear.sensitivity.second_order_sensitivity import (
    displacement_in, inverse_jacobian_times, moved_with, out_of, place_moved_by, rotation_vector,
)
from liedyn.linear.sensitivity.two_frames import push_sides, relative_motion, sides
from liedyn.linear.sensitivity.variations import MOTION, Motion, take_still
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, kernel_in_place, late
from liedyn.machine.linalg.gauss_jordan import clear
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, splat, store, take_matrix, take_vector
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.cut_joints import loop_frames
from liedyn.mechanics.constraints.families.cable import piece_at, piece_count
from liedyn.mechanics.constraints.families.contact import contact, varied_wrench, velocity_jets
from liedyn.mechanics.constraints.families.cut import cut_wrench, read, rows_in
from liedyn.mechanics.constraints.jets import ZERO3, jet_add, jet_cross, jet_unit, sum_of
from liedyn.mechanics.elements.element_wrenches import DAMPING_AT, PRELOAD_AT, times
from liedyn.mechanics.tree.kinematics import world_positions, world_size
from liedyn.model.constraint_records import (
    CONTACT, family_of, is_active, is_cut, loop_count, loop_integer, loop_kind, loop_pitch, loop_rows,
)
from liedyn.model.force_elements import BUSHING, FOLLOWER, LAW, NUMBERS, ROW, THRUST
from liedyn.model.kinds import CABLE
from liedyn.model.packed import LOOP_COEFFICIENTS, NV, N_ROWS, N_VIRTUAL
from liedyn.model.packed_records import MODEL, dof_total, get6, link_count, zero3, zero6


@inline
def product(c, at, x, y):
    """A constant (6, 6) matrix times quadruples of angular and of linear parts."""
    a, b = times(c, at, (x[0], y[0])), times(c, at, (x[1], y[1]))
    e, f = times(c, at, (x[2], y[2])), times(c, at, (x[3], y[3]))
    return (a[0], b[0], e[0], f[0]), (a[1], b[1], e[1], f[1])


@inline
def bushing(c, at, phi, p, V):
    """Moment and force at B, in the axes of A, as quadruples."""
    w = quadruple_of(V, 0)
    held_moment, held = product(c, at, phi, p)
    moment, force = product(c, at + DAMPING_AT, w, jet_add(quadruple_of(V, 1), jet_cross(w, p)))
    m, F = get6(SCALAR, c, at + PRELOAD_AT)
    held_moment, held = (add(held_moment[0], m), *held_moment[1:]), (add(held[0], F), *held[1:])
    return jet_add(inverse_jacobian_times(phi, 0.5, held_moment), moment), jet_add(held, force)


@inline
def more_along_1(x, more, w_2, turns):
    """A quadruple x with `more` along direction 1; if it turns, by w_2 along direction 2."""
    mixed = add(x[3], cross(w_2, more)) if turns else x[3]
    return x[0], add(x[1], more), x[2], mixed


@late(MODEL, SLOPES, VECTOR, types.int64, VECTOR, PASSES)
def vary_bushing(model, slopes, pushed, l, work, passes):
    """Adds the wrenches of the six-row element that cut joint l measures to its links; needs `vary_links`."""
    (A, B), r, e = loop_frames(SCALAR, model, work, l), loop_rows(model, l)[0], 0
    while slopes.records[e, ROW] != r:
        e += 1
    at = slopes.records[e, NUMBERS]
    side_a, side_b = sides(model, work, passes, l)
    M, L, V, _ = relative_motion(loop_kind(model, l), False, A, side_a, side_b)  # M is zero: A stays where it is
    (w_1, _), (w_2, _), (w_12, _) = displacement_in(A, L)
    R, p = compose(inverse(A), B)
    p = place_moved_by(A, L, p)
    if slopes.records[e, LAW] == BUSHING:
        moment, force = bushing(
            slopes.numbers, at, rotation_vector(log((R, ZERO3))[0], -0.5, w_1, w_2, w_12), p, V)
    else:
        s, still = slopes.rows, zero3(LANES)
        m, F = neg((s[r, 0], s[r + 1, 0], s[r + 2, 0])), neg((s[r + 3, 0], s[r + 4, 0], s[r + 5, 0]))
        turns, (more, more_force) = slopes.records[e, LAW] in (FOLLOWER, THRUST), get6(SCALAR, pushed, r)
        if turns:
            moment, force = moved_with(m, w_1, w_2, w_12), moved_with(F, w_1, w_2, w_12)
        else:
            moment, force = (m, ZERO3, still, still), (F, ZERO3, still, still)
        moment, force = more_along_1(moment, more, w_2, turns), more_along_1(force, more_force, w_2, turns)
    moment = jet_add(moment, jet_cross(p, force))
    push_sides(model, passes, l, M, L, out_of(A, joined(moment, force)))


Cuts = namedtuple("Cuts", "places rates forces")
"""Coordinates z of cut joints, their rates, and the forces along them: each has four vectors, the parts of
quadruples, those of direction 2 in registers."""

ElementPasses = namedtuple("ElementPasses", "world passes cuts")
"""Workspace: poses of the links, `Passes` over them, and `Cuts`."""

Acting = namedtuple("Acting", "slopes pushed")
"""`Slopes` of the laws, and what is added to the force of each row along direction 1."""

ACTING = group(Acting, SLOPES, VECTOR)


@inline
def element_variations_size(model, numbers):
    """Size of the workspace of `vary_elements`, for laws with `numbers` numbers."""
    links, cuts = (FLOATS + WIDTH * LANED) * link_count(model), 6 * (1 + WIDTH) * model.ints[N_VIRTUAL]
    return WIDTH * (17 + numbers) + world_size(model) + spread_size(model) + links + cuts


@inline
def take_quadruples(work, count):
    """Arrays for `count` quadruples."""
    return (take_vector(work, count), take_vector(work, count), take_vector(work, WIDTH * count),
            take_vector(work, WIDTH * count))


@inline
def put_quadruple(parts, k, x):
    store(SCALAR, parts[0], k, x[0])
    store(SCALAR, parts[1], k, x[1])
    store(LANES, parts[2], k, x[2])
    store(LANES, parts[3], k, x[3])


@inline
def add_multiple(x, c, parts, k):
    """x + c times quadruple k."""
    return (x[0] + c * load(SCALAR, parts[0], k), x[1] + c * load(SCALAR, parts[1], k),
            x[2] + c * load(LANES, parts[2], k), x[3] + c * load(LANES, parts[3], k))


@inline
def cut_motion(model, l, work, passes):
    """For cut joint l: the frame of its virtual velocities, M and L, and the relative twist (`sides`)."""
    kind, C, first, count = rows_in(SCALAR, model, work, l, True)
    side_a, side_b = sides(model, work, passes, l)
    M, L, x, _ = relative_motion(kind, True, C, side_a, side_b)
    return kind, C, first, count, M, L, x


@inline
def read_each(kind, pitch, r, x):
    """Row r read from each part of a quadruple that is seen from C."""
    return (read(kind, pitch, True, r, x[0]), read(kind, pitch, True, r, x[1]), read(kind, pitch, True, r, x[2]),
            read(kind, pitch, True, r, x[3]))


@inline
def read_cuts(model, work, passes, cuts):
    """Coordinates and rates of cut joints: direction 1 moves C by M_1 relative to a, and b by L_1 relative to C."""
    none = splat(LANES, 0.0)
    for l in range(loop_count(model)):
        if not is_cut(model, l):
            continue
        kind, C, first, count, M, L, x = cut_motion(model, l, work, passes)
        moved = (zero6(SCALAR), Ad_inverse(C, add6(M[0], L[0])), Ad_inverse(C, add6(M[1], L[1])),
                 Ad_inverse(C, add6(add6(M[2], L[2]), ad(L[1], L[0]))))
        for r in range(count):
            put_quadruple(cuts.places, first + r, read_each(kind, loop_pitch(model, l), r, moved))
            put_quadruple(cuts.rates, first + r, read_each(kind, loop_pitch(model, l), r, x))
            put_quadruple(cuts.forces, first + r, (0.0, 0.0, none, none))


@inline
def push_cuts(model, work, passes, cuts):
    """Applies the forces along coordinates of cut joints to both sides."""
    f, f_1, f_2, f_12 = cuts.forces
    for l in range(loop_count(model)):
        if is_cut(model, l):
            kind, C, first, count, M, L, _ = cut_motion(model, l, work, passes)
            F = (cut_wrench(SCALAR, kind, 0.0, True, first, count, f),
                 cut_wrench(SCALAR, kind, 0.0, True, first, count, f_1),
                 cut_wrench(LANES, kind, 0.0, True, first, count, f_2),
                 cut_wrench(LANES, kind, 0.0, True, first, count, f_12))
            push_sides(model, passes, l, M, L, out_of(C, F))


@inline
def number_slopes(model, slopes, r, spread):
    """Changes of f, f_x and f_w of row r along direction 2, by numbers of its law."""
    f, f_x, f_w = splat(LANES, 0.0), splat(LANES, 0.0), splat(LANES, 0.0)
    for k in range(slopes.owners.size):
        if slopes.owners[k] == r:
            d, s = number_change(spread, of_number(model, k)), slopes.by_numbers
            f, f_x, f_w = f + s[k, 0] * d, f_x + s[k, 1] * d, f_w + s[k, 2] * d
    return f, f_x, f_w


@inline
def force_variations(model, acting, r, x, w, spread):
    """f of row r as a quadruple, for quadruples of displacement and rate."""
    s, (p, p_x, p_w) = acting.slopes.rows, number_slopes(model, acting.slopes, r, spread)
    f_x, f_w = s[r, 1], s[r, 2]
    slope_x = p_x + s[r, 3] * x[2] + s[r, 4] * w[2]
    slope_w = p_w + s[r, 4] * x[2] + s[r, 5] * w[2]
    return (s[r, 0], f_x * x[1] + f_w * w[1] + acting.pushed[r], p + f_x * x[2] + f_w * w[2],
            f_x * x[3] + f_w * w[3] + x[1] * slope_x + w[1] * slope_w)


@inline
def between_points(model, l, work, acting, passes):
    """Adds the wrenches of an element along the line between two points to its links."""
    kind, r = loop_kind(model, l), loop_rows(model, l)[0]
    length, radius, p, d, C = contact(model, work, l)
    side_a, side_b = sides(model, work, passes, l)
    M, L, V, _ = relative_motion(kind, False, C, side_a, side_b)
    p, d = place_variations(p, C, M), axle_variations(d, C, L)
    w = velocity_jets(kind, length, radius, p, d, quadruple_of(V, 0), quadruple_of(V, 1))[0]
    n = jet_unit(p)
    x_2 = dot(n[0], p[2]) - number_change(passes.spread, of_loop(model, l, LENGTH_AT))
    x = 0.0, dot(n[0], p[1]), x_2, dot(n[0], p[3]) + dot(n[2], p[1])
    f = force_variations(model, acting, r, x, w, passes.spread)
    moment, force = varied_wrench(kind, length, radius, p, d, (f, no_force(), no_force(), no_force()))
    push_sides(model, passes, l, M, L, out_of(C, joined(moment, force)))


@late(MODEL, ACTING, types.int64, VECTOR, PASSES)
def vary_cable(model, acting, l, world, passes):
    """Adds the forces of the cable that row l measures to its links; needs `vary_links`."""
    r, zero = loop_rows(model, l)[0], splat(LANES, 0.0)
    x, w = (0.0, 0.0, zero - number_change(passes.spread, of_loop(model, l, LENGTH_AT)), zero), (0.0, 0.0, zero, zero)
    for k in range(piece_count(model, l)):
        more = piece_changes(piece_of(model, piece_at(model, l, k), world, passes))
        x, w = sum_of(x, more[0]), sum_of(w, more[1])
    f = force_variations(model, acting, r, x, w, passes.spread)
    for k in range(piece_count(model, l)):
        pull_piece(passes, piece_of(model, piece_at(model, l, k), world, passes), f)


@inline
def on_coordinates(model, l, acting, along, b, passes, cuts, forces):
    """Adds the forces of an element on a weighted sum of coordinates."""
    (one, two, N_12, X_12), (force, mixed), weights = along, forces, acting.slopes.cuts
    at, r, width = loop_integer(model, l, LOOP_COEFFICIENTS), loop_rows(model, l)[0], N_12.shape[1] // WIDTH
    zero = splat(LANES, 0.0)
    x, w = (0.0, 0.0, zero - number_change(passes.spread, of_loop(model, l, LENGTH_AT)), zero), (0.0, 0.0, zero, zero)
    for j in range(dof_total(model)):
        c, k = model.floats[at + j], width * j + b
        x = 0.0, x[1] + c * one.N[j], x[2] + c * load(LANES, two.N, k), x[3] + c * load(LANES, N_12, k)
        w = 0.0, w[1] + c * one.X[j], w[2] + c * load(LANES, two.X, k), w[3] + c * load(LANES, X_12, k)
    for k in range(weights.shape[1]):
        x, w = add_multiple(x, weights[r, k], cuts.places, k), add_multiple(w, weights[r, k], cuts.rates, k)
    f = force_variations(model, acting, r, x, w, passes.spread)
    for j in range(dof_total(model)):
        add_to(force, width * j + b, model.floats[at + j] * f[2])
        add_to(mixed, width * j + b, model.floats[at + j] * f[3])
    for k in range(weights.shape[1]):
        c = weights[r, k]
        put_quadruple(cuts.forces, k, add_multiple((c * f[0], c * f[1], c * f[2], c * f[3]), 1.0, cuts.forces, k))


@inline
def take_element_passes(model, slopes, work):
    """Arrays for `vary_block`, taken from a workspace."""
    links, nz = link_count(model), model.ints[N_VIRTUAL]
    world = take_vector(work, world_size(model))
    return ElementPasses(world, Passes(
        take_vector(work, spread_size(model) + WIDTH * slopes.owners.size), take_vector(work, FLOATS * links),
        take_vector(work, WIDTH * LANED * links)), Cuts(
            take_quadruples(work, nz), take_quadruples(work, nz), take_quadruples(work, nz)))


@kernel_in_place
def vary_block(model, acting, motion, along, b, room, forces):
    """Adds the variations in block b of the columns; needs `world_positions` and `put_changes`."""
    (world, passes, cuts), reads = room, acting.slopes.cuts.shape[1] > 0
    vary_links(model, motion, world, along, b, False, passes)
    if reads:
        read_cuts(model, world, passes, cuts)
    for l in range(loop_count(model)):
        if not is_active(model, l):
            continue
        if is_cut(model, l):
            vary_bushing(model, acting.slopes, acting.pushed, l, world, passes)
        elif family_of(model, l) == CONTACT:
            between_points(model, l, world, acting, passes)
        elif loop_kind(model, l) == CABLE:
            vary_cable(model, acting, l, world, passes)
        else:
            on_coordinates(model, l, acting, along, b, passes, cuts, forces)
    if reads:
        push_cuts(model, world, passes, cuts)
    gather_forces(model, world, along, b, passes, forces[0], forces[1])


@late(MODEL, CHANGES, ACTING, MOTION, ALONG, VECTOR, types.UniTuple(MATRIX, 2))
def vary_elements(model, changes, acting, motion, along, work, forces):
    """Adds those of G^T f to the forces (nv, padded), those along direction 2 and the mixed ones, at one state."""
    work[0] = first_place(work)
    room = take_element_passes(model, acting.slopes, work)
    world_positions(SCALAR, model, motion.q, room.world)
    for b in range(along.N_12.shape[1] // WIDTH):
        put_changes(model, changes, b, room.world, room.passes.spread)
        vary_block(model, acting, motion, along, b, room, forces)


@inline
def element_partials_size(model, numbers):
    """Size of the workspace of `add_element_partials`, for laws with `numbers` numbers."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    return element_variations_size(model, numbers) + 3 * n + m + WIDTH * (3 * n + m + 9)


@late(MODEL, CHANGES, SLOPES, VECTOR, VECTOR, VECTOR, MATRIX)
def add_element_partials(model, changes, slopes, q, v, work, force):
    """Adds the partial derivatives of G^T f by the parameters to `force` (nv, np)."""
    n, m, count = model.ints[NV], model.ints[N_ROWS], changes.first.size - 1
    work[0] = first_place(work)
    along, found, mixed = take_still(work, n, m), take_matrix(work, n, WIDTH), take_matrix(work, n, WIDTH)
    room, still = take_element_passes(model, slopes, work), along.one
    acting, motion = Acting(slopes, still.L), Motion(q, v, still.A, still.L)
    world_positions(SCALAR, model, q, room.world)
    for first in range(0, count, WIDTH):
        end = min(first + WIDTH, count)
        if changes.first[first] == changes.first[end]:  # no number of the elements changes
            continue
        clear(found)
        put_changes(model, changes, first // WIDTH, room.world, room.passes.spread)
        vary_block(model, acting, motion, along, 0, room, (found, mixed))
        for k in range(first, end):
            for j in range(n):
                force[j, k] += found[j, k - first]
