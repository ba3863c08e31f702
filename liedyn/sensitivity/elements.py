"""Forces of force elements varied in two directions to second order: G^T f with f(x, w) of `liedyn.sensitivity.laws`.

Elements have a model of their own, with the robot's links and with what they measure as its constraints
(`liedyn.model.force_elements`). With x and w quadruples,

    f_12 = f_x x_12 + f_w w_12 + x_1 (f_xx x_2 + f_xw w_2 + f_xp) + w_1 (f_xw x_2 + f_ww w_2 + f_wp)

and p the numbers of the law. f is then to the links what multipliers are, and varies with all that turns it.
"""
from numba import types

from liedyn.compiled.jit import INTEGERS, MATRIX, VECTOR, inline, late
from liedyn.constraints import jets as of_time
from liedyn.constraints.families.contact import contact, velocity_jets
from liedyn.constraints.records import (
    CONTACT, family_of, is_active, is_cut, loop_count, loop_integer, loop_kind, loop_rows,
)
from liedyn.lie.algebra import dot
from liedyn.model.packed import LOOP_COEFFICIENTS
from liedyn.sensitivity.changes import (
    CHANGES, LENGTH_AT, number_change, of_loop, of_number, put_changes, spread_size,
)
from liedyn.sensitivity.contacts import axle_variations, no_force, place_variations, pull, quadruple_of
from liedyn.sensitivity.links import FLOATS, LANED, Passes, add_to, gather_forces, vary_links
from liedyn.sensitivity.rows import VARIED
from liedyn.sensitivity.second_order import out_of
from liedyn.sensitivity.sides import push_sides, relative_motion, sides
from liedyn.sensitivity.variations import MOTION
from liedyn.simd.lanes import LANES, SCALAR, WIDTH, load, splat, take_vector
from liedyn.simd.registers import first_place
from liedyn.tree.kinematics import world_positions, world_size
from liedyn.tree.records import MODEL, dof_total, link_count


@inline
def element_variations_size(model, numbers):
    """Numbers in the workspace of `vary_elements`, for laws with so many numbers."""
    links = (FLOATS + WIDTH * LANED) * link_count(model)
    return WIDTH * (5 + numbers) + world_size(model) + spread_size(model) + links


@inline
def number_slopes(model, laws, r, spread):
    """What direction 2 changes of f, f_x and f_w of row r by numbers of its law."""
    _, by_numbers, owners = laws
    f, f_x, f_w = splat(LANES, 0.0), splat(LANES, 0.0), splat(LANES, 0.0)
    for k in range(owners.size):
        if owners[k] == r:
            d = number_change(spread, of_number(model, k))
            f, f_x, f_w = f + by_numbers[k, 0] * d, f_x + by_numbers[k, 1] * d, f_w + by_numbers[k, 2] * d
    return f, f_x, f_w


@inline
def force_variations(model, laws, pushed, r, x, w, spread):
    """f as a quadruple, for those of the displacement and the rate; `pushed` is what direction 1 adds to it."""
    s, (p, p_x, p_w) = laws[0], number_slopes(model, laws, r, spread)
    f_x, f_w = s[r, 1], s[r, 2]
    slope_x = p_x + s[r, 3] * x[2] + s[r, 4] * w[2]
    slope_w = p_w + s[r, 4] * x[2] + s[r, 5] * w[2]
    return (s[r, 0], f_x * x[1] + f_w * w[1] + pushed[r], p + f_x * x[2] + f_w * w[2],
            f_x * x[3] + f_w * w[3] + x[1] * slope_x + w[1] * slope_w)


@inline
def between_points(model, l, work, laws, pushed, passes):
    """An element along the line between two points pulls its links."""
    kind, r = loop_kind(model, l), loop_rows(model, l)[0]
    length, radius, p, d, C = contact(model, work, l)
    side_a, side_b = sides(model, work, passes, l)
    M, L, V, _ = relative_motion(kind, False, C, side_a, side_b)
    p, d = place_variations(p, C, M), axle_variations(d, C, L)
    w = velocity_jets(kind, length, radius, p, d, quadruple_of(V, 0), quadruple_of(V, 1))[0]
    n = of_time.jet_unit(p)
    x_2 = dot(n[0], p[2]) - number_change(passes.spread, of_loop(model, l, LENGTH_AT))
    x = 0.0, dot(n[0], p[1]), x_2, dot(n[0], p[3]) + dot(n[2], p[1])
    f = force_variations(model, laws, pushed, r, x, w, passes.spread)
    none = no_force()
    push_sides(model, passes, l, M, L, out_of(C, pull(kind, length, radius, p, d, (f, none, none, none))))


@inline
def on_coordinates(model, l, laws, pushed, one, two, N_12, X_12, b, passes, force, mixed):
    """An element on a sum of coordinates."""
    at, r, width = loop_integer(model, l, LOOP_COEFFICIENTS), loop_rows(model, l)[0], N_12.shape[1] // WIDTH
    zero = splat(LANES, 0.0)
    x_1, w_1, x_2, x_12, w_2, w_12 = 0.0, 0.0, zero, zero, zero, zero
    x_2 = x_2 - number_change(passes.spread, of_loop(model, l, LENGTH_AT))
    for j in range(dof_total(model)):
        c, k = model.floats[at + j], width * j + b
        x_1, w_1 = x_1 + c * one.N[j], w_1 + c * one.X[j]
        x_2, x_12 = x_2 + c * load(LANES, two.N, k), x_12 + c * load(LANES, N_12, k)
        w_2, w_12 = w_2 + c * load(LANES, two.X, k), w_12 + c * load(LANES, X_12, k)
    f = force_variations(model, laws, pushed, r, (0.0, x_1, x_2, x_12), (0.0, w_1, w_2, w_12), passes.spread)
    for j in range(dof_total(model)):
        add_to(force, width * j + b, model.floats[at + j] * f[2])
        add_to(mixed, width * j + b, model.floats[at + j] * f[3])


@late(MODEL, CHANGES, types.Tuple((MATRIX, MATRIX, INTEGERS)), VECTOR, MOTION, *VARIED, MATRIX, MATRIX, VECTOR, MATRIX,
      MATRIX)
def vary_elements(model, changes, laws, pushed, motion, one, two, N_12, X_12, work, force, mixed):
    """Add to `force` and `mixed` (nv, padded) those of G^T f, with laws (rows, by_numbers, owners) of one state."""
    q, v, a, _ = motion
    work[0] = first_place(work)
    world, links = take_vector(work, world_size(model)), link_count(model)
    passes = Passes(take_vector(work, spread_size(model) + WIDTH * laws[2].size), take_vector(work, FLOATS * links),
                    take_vector(work, WIDTH * LANED * links))
    world_positions(SCALAR, model, q, world)
    for b in range(N_12.shape[1] // WIDTH):
        put_changes(model, changes, b, world, passes.spread)
        vary_links(model, v, a, world, one, two, N_12, X_12, b, False, passes)
        for l in range(loop_count(model)):
            if is_cut(model, l) or not is_active(model, l):
                continue
            if family_of(model, l) == CONTACT:
                between_points(model, l, world, laws, pushed, passes)
            else:
                on_coordinates(model, l, laws, pushed, one, two, N_12, X_12, b, passes, force, mixed)
        gather_forces(model, world, one, two, N_12, b, passes, force, mixed)
