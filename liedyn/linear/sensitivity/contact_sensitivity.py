"""Rows and wrenches of contacts, varied in two directions to second order.

The rows are those of `liedyn.mechanics.constraints.families.contact`, computed with jets of one order more. Frame C has
the axes of frame A and the origin of frame B: with L the displacement of b relative to C, and M that of C relative to
a, in the axes of C,

    p_1 = M_1      p_2 = M_2      p_12 = M_12      d_1 = L_1 x d      d_2 = L_2 x d      d_12 = L_12 x d + L_2 x d_1

Residuals are affine in length and radius, rows and wrenches in the radius, so that their derivatives are the
differences for a unit change.
"""
from liedyn.lie.algebra import Ad_inverse, add, add6, cross, scale, scale6, sub6
from liedyn.linear.sensitivity import parameter_jets as jets
from liedyn.linear.sensitivity.changes import LENGTH_AT, RADIUS_AT, number_change, of_loop
from liedyn.linear.sensitivity.parameter_jets import paired
from liedyn.linear.sensitivity.second_order_sensitivity import out_of
from liedyn.linear.sensitivity.two_frames import push_sides, put_row, relative_motion, sides
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import LANES, SCALAR, load, splat
from liedyn.mechanics.constraints import jets as of_time
from liedyn.mechanics.constraints.families.contact import contact, gaps, varied_wrench, velocity_jets, velocity_rows
from liedyn.mechanics.constraints.jets import ZERO3, jet_cross
from liedyn.model.constraint_records import holonomic_count, loop_kind, present_rows

rows_to_third_order = velocity_rows(jets)


@inline
def place_variations(p, C, M):
    """The position p with its variations, as a quadruple."""
    return p, Ad_inverse(C, M[0])[1], Ad_inverse(C, M[1])[1], Ad_inverse(C, M[2])[1]


@inline
def axle_variations(d, C, L):
    """The axle d with its variations, as a quadruple; it is constant in b."""
    turn_1, turn_2, turn_12 = Ad_inverse(C, L[0])[0], Ad_inverse(C, L[1])[0], Ad_inverse(C, L[2])[0]
    d_1 = cross(turn_1, d)
    return d, d_1, cross(turn_2, d), add(cross(turn_12, d), cross(turn_2, d_1))


@inline
def quadruple_of(x, part):
    """The angular (0) or linear (1) parts of a twist and its variations."""
    return x[0][part], x[1][part], x[2][part], x[3][part]


@inline
def varied_rows(kind, L, r, p, d, x, x_dot):
    """The constraint rows as jets, for quadruples of p, d, the relative twist and its rate."""
    w, v = quadruple_of(x, 0), quadruple_of(x, 1)
    return rows_to_third_order(kind, L, r, paired(*p, *v), paired(*d, *jet_cross(w, d)),
                               paired(*w, *quadruple_of(x_dot, 0)), paired(*v, *quadruple_of(x_dot, 1)))


@inline
def residual_variations(kind, L, r, p, d, moved):
    """Variations of the residuals by a relative displacement `moved`, in lanes."""
    w, v = moved
    zero = scale(0.0, v)
    still = of_time.constant(p), of_time.constant(d)
    return velocity_jets(kind, L, r, *still, (ZERO3, ZERO3, w, zero), (ZERO3, ZERO3, v, zero))


@inline
def no_force():
    """The quadruple of a row that does not exist: zeros."""
    return 0.0, 0.0, splat(LANES, 0.0), splat(LANES, 0.0)


@inline
def force_of(lam, one, lam_2, first, count, k):
    """The multiplier of row k of a contact, as a quadruple."""
    if k >= count:
        return no_force()
    return load(SCALAR, lam, first + k), load(SCALAR, one, first + k), load(LANES, lam_2, first + k), splat(LANES, 0.0)


@inline
def joined(a, b):
    """Quadruples of angular and linear parts as one of pairs."""
    return (a[0], b[0]), (a[1], b[1]), (a[2], b[2]), (a[3], b[3])


@inline
def contact_wrench(model, l, L, r, p, d, multipliers, thicker):
    """The wrench in C as a quadruple, for multipliers and their variations along directions 1 and 2."""
    kind, (first, count) = loop_kind(model, l), present_rows(model, l)
    lam = (force_of(*multipliers, first, count, 0), force_of(*multipliers, first, count, 1),
           force_of(*multipliers, first, count, 2), force_of(*multipliers, first, count, 3))
    F, grown = joined(*varied_wrench(kind, L, r, p, d, lam)), joined(*varied_wrench(kind, L, r + 1.0, p, d, lam))
    by_radius, by_radius_1 = sub6(grown[0], F[0]), sub6(grown[1], F[1])
    return F[0], F[1], add6(F[2], scale6(thicker, by_radius)), add6(F[3], scale6(thicker, by_radius_1))


@inline
def vary_contact(model, l, work, multipliers, b, passes, rows):
    """Rows of contact l and its wrench on the links, for multipliers and their variations along directions 1 and 2."""
    kind, (first, count) = loop_kind(model, l), present_rows(model, l)
    L, r, p, d, C = contact(model, work, l)
    longer = number_change(passes.spread, of_loop(model, l, LENGTH_AT))
    thicker = number_change(passes.spread, of_loop(model, l, RADIUS_AT))
    side_a, side_b = sides(model, work, passes, l)
    M, left, x, x_dot = relative_motion(kind, False, C, side_a, side_b)
    p, d = place_variations(p, C, M), axle_variations(d, C, left)
    g = residual_variations(kind, L, r, p[0], d[0], Ad_inverse(C, add6(M[1], left[1])))
    here, more = varied_rows(kind, L, r, p, d, x, x_dot), varied_rows(kind, L, r + 1.0, p, d, x, x_dot)
    gap, gap_by_length, gap_by_radius = (
        gaps(kind, L, r, p[0], d[0]), gaps(kind, L + 1.0, r, p[0], d[0]), gaps(kind, L, r + 1.0, p[0], d[0]))
    for k in range(count):
        moved = g[k][2]
        if k < holonomic_count(model, l):
            e = min(k, 1)
            moved = moved + (gap_by_length[e] - gap[e]) * longer + (gap_by_radius[e] - gap[e]) * thicker
        (psi, phi, psi_2, phi_2), (psi_1, phi_1, psi_12, phi_12) = here[k]
        by_r, by_r_1 = more[k]
        psi_2 = psi_2 + (by_r[0] - psi) * thicker
        phi_2 = phi_2 + (by_r[1] - phi) * thicker
        psi_12 = psi_12 + (by_r_1[0] - psi_1) * thicker
        phi_12 = phi_12 + (by_r_1[1] - phi_1) * thicker
        put_row(rows, first + k, b, moved if k < holonomic_count(model, l) else 0.0 * moved, (psi_2, psi_12),
                (phi_2, phi_12))
    F = contact_wrench(model, l, L, r, p, d, multipliers, thicker)
    push_sides(model, passes, l, M, left, out_of(C, F))
