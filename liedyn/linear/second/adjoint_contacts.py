"""What contacts add to the gradient of `liedyn.linear.second.adjoint_recursion`, with its variations.

A row of a contact is c(p, d) . x: linear in the relative twist x, in the axes of frame C, with coefficients that move
with the position p and the axle d (`liedyn.mechanics.constraints.families.contact`). The weights of its accelerations,
velocities and multipliers make a number that depends on the displacement y of side b relative to side a, on x and on
its rate. Its derivatives by these are wrenches in C, which are found along the six unit twists, with their variations,
by the rows on jets of one order more. From there on a contact is a cut joint whose wrenches vary
(`liedyn.linear.second.adjoint_cuts`). Cables are called from here too (`liedyn.linear.second.adjoint_cables`).
"""
from numba import types

from liedyn.lie.algebra import Ad_dual_inverse, Ad_inverse, add6, cross, scale, scale6, sub6
from liedyn.linear.second.adjoint_cables import add_cable, hold_cable, is_cable, vary_cable
from liedyn.linear.second.adjoint_cuts import WEIGHED, carry_down, push_sides, target_twist
from liedyn.linear.second.adjoint_recursion import weighed_twist
from liedyn.linear.second.adjoint_sides import adjoints_of_sides, rate, still, value
from liedyn.linear.sensitivity.contact_sensitivity import varied_rows
from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, splat, store
from liedyn.mechanics.constraints.constraint_rows import others
from liedyn.mechanics.constraints.families.contact import contact, contact_wrench, sizes_of
from liedyn.mechanics.constraints.jets import ZERO3
from liedyn.mechanics.constraints.relative import (
    ZERO6, followed, relative_rate, relative_twist, relative_variation, side_states, side_variations,
)
from liedyn.mechanics.tree.tangent_recursion import ADDED, variation_of
from liedyn.model.constraint_records import (
    CONTACT, family_of, is_active, loop_count, loop_kind, loop_links, present_rows,
)


@inline
def weight(weights, rows, k):
    """The weight of row k of a contact; zero if there is no such row."""
    first, count = rows
    return load(SCALAR, weights, first + k) if k < count else 0.0


@inline
def varied_weight(lam_2, rows, k):
    """A register of variations of the multiplier of row k; zeros if there is no such row."""
    first, count = rows
    return load(LANES, lam_2, first + k) if k < count else splat(LANES, 0.0)


@inline
def psi_sum(found, weights):
    """Sum over the rows of weights times the derivative of psi along direction 1, and its variation."""
    x, x_2 = 0.0, 0.0 * found[0][1][2]
    for k in range(4):
        x, x_2 = x + weights[k] * found[k][1][0], x_2 + weights[k] * found[k][1][2]
    return x, x_2


@inline
def phi_sum(found, weights):
    """`psi_sum` for phi."""
    x, x_2 = 0.0, 0.0 * found[0][1][3]
    for k in range(4):
        x, x_2 = x + weights[k] * found[k][1][1], x_2 + weights[k] * found[k][1][3]
    return x, x_2


@inline
def multiplier_sum(found, lam, lam_2):
    """`psi_sum` for multipliers, which vary too."""
    x, x_2 = psi_sum(found, lam)
    for k in range(4):
        x_2 = x_2 + found[k][1][0] * lam_2[k]
    return x, x_2


@inline
def unit_twist(j):
    return ((1.0 if j == 0 else 0.0, 1.0 if j == 1 else 0.0, 1.0 if j == 2 else 0.0),
            (1.0 if j == 3 else 0.0, 1.0 if j == 4 else 0.0, 1.0 if j == 5 else 0.0))


@inline
def add_along(F, x, unit):
    """The pair F plus the pair of numbers x along a unit twist."""
    return add6(F[0], scale6(x[0], unit)), add6(F[1], scale6(x[1], unit))


@inline
def along(x, unit):
    """The quadruple of a pair that changes along direction 1 by a unit, the same at all states."""
    return x[0], unit, x[1], scale6(0.0, x[1])


@inline
def rows_along(form, place, moved, x, x_dot):
    """The rows where direction 1 displaces b by `moved`, a constant twist in C; x and x_dot are quadruples."""
    (kind, L, r), ((p, p_2), (d, d_2)) = form, place
    still = scale(0.0, p_2)
    return varied_rows(kind, L, r, (p, moved[1], p_2, still), (d, cross(moved[0], d), d_2, cross(moved[0], d_2)),
                       x, x_dot)


@inline
def wrenches_in_frame(form, weights, multipliers, place, x, x_dot, w):
    """The wrenches K, J, L and H in C (`liedyn.linear.second.adjoint_cuts`), pairs.

    `weights` are those of phi, psi and the residual for four rows, `multipliers` (lam, lam_2) for four rows; `place`
    has the pairs p and d, and x, x_dot, w are pairs of twists in C.
    """
    (of_phi, of_psi, of_g), (lam, lam_2) = weights, multipliers
    zero = scale6(0.0, x[0]), scale6(0.0, x[1])
    K, J, L, H = zero, zero, zero, zero
    for j in range(6):
        unit = unit_twist(j)
        found = rows_along(form, place, ZERO6, along(x, unit), along(x_dot, ZERO6))
        K, H = add_along(K, psi_sum(found, of_phi), unit), add_along(H, psi_sum(found, of_g), unit)
        J = add_along(add_along(J, psi_sum(found, of_psi), unit), phi_sum(found, of_phi), unit)
        L = add_along(L, multiplier_sum(found, lam, lam_2), unit)
        found = rows_along(form, place, unit, along(x, ZERO6), along(x_dot, ZERO6))
        H = add_along(add_along(H, psi_sum(found, of_psi), unit), phi_sum(found, of_phi), unit)
        found = rows_along(form, place, unit, along(w, ZERO6), along(zero, ZERO6))
        H = add_along(H, multiplier_sum(found, lam, lam_2), unit)
    return K, J, L, H


@inline
def in_world(C, F):
    """A pair of wrenches in C, in world axes and seen from C."""
    return Ad_dual_inverse(C, F[0]), Ad_dual_inverse(C, F[1])


@inline
def four(weights, rows):
    return weight(weights, rows, 0), weight(weights, rows, 1), weight(weights, rows, 2), weight(weights, rows, 3)


@inline
def all_weights(weighed, rows):
    return four(weighed.rows.phi, rows), four(weighed.rows.psi, rows), four(weighed.rows.residual, rows)


@inline
def is_contact(model, l):
    return is_active(model, l) and family_of(model, l) == CONTACT


@others(VECTOR, VECTOR, WEIGHED)
def add_contacts(model, world, lam, weighed):
    """Add the wrenches of the rows of contacts to those of the links (`liedyn.linear.second.adjoint_cuts.add_cuts`)."""
    for l in range(loop_count(model)):
        if is_contact(model, l):
            kind, rows, (link_a, link_b) = loop_kind(model, l), present_rows(model, l), loop_links(model, l)
            L, r, p, d, C = contact(model, world, l)
            (v, a), w_a, w_b = (side_states(SCALAR, model, world, l), weighed_twist(SCALAR, weighed.adjoints, link_a),
                                weighed_twist(SCALAR, weighed.adjoints, link_b))
            x, x_dot = (relative_twist(SCALAR, model, world, l, C),
                        relative_rate(SCALAR, model, world, l, kind, False, C))
            found = wrenches_in_frame(
                (kind, L, r), all_weights(weighed, rows), (four(lam, rows), (0.0, 0.0, 0.0, 0.0)),
                ((p, ZERO3), (d, ZERO3)), still(x), still(x_dot), still(Ad_inverse(C, sub6(w_b, w_a))))
            moved = ZERO6, ZERO6
            found = adjoints_of_sides(
                (kind, False, C),
                (in_world(C, found[0]), in_world(C, found[1]), in_world(C, found[2]), in_world(C, found[3])), moved,
                (still(v[0]), still(a[0]), still(w_a)), (still(v[1]), still(a[1]), still(w_b)))
            push_sides(SCALAR, value, model, l, moved, found, target_twist(SCALAR, model, world, l), weighed.adjoints)
        elif is_cable(model, l):
            add_cable(model, l, world, lam, weighed)


@others(VECTOR, types.UniTuple(VECTOR, 2), WEIGHED, types.int64, VECTOR, MATRIX)
def vary_contacts(model, world, multipliers, weighed, b, variations, of_lam):
    """The variations of `add_contacts` along block b, and those of the velocities of the rows for mu, in of_lam."""
    for l in range(loop_count(model)):
        if is_contact(model, l):
            kind, rows, (link_a, link_b) = loop_kind(model, l), present_rows(model, l), loop_links(model, l)
            L, r, p, d, C = contact(model, world, l)
            v, a = side_states(SCALAR, model, world, l)
            eta, dv, da = side_variations(SCALAR, model, world, variations, l)
            da = (add6(da[0], variation_of(variations, link_a, ADDED)),
                  add6(da[1], variation_of(variations, link_b, ADDED)))
            w = (weighed_twist(SCALAR, weighed.adjoints, link_a), weighed_twist(SCALAR, weighed.adjoints, link_b))
            dw = weighed_twist(LANES, weighed.rates, link_a), weighed_twist(LANES, weighed.rates, link_b)
            x, x_dot = (relative_twist(SCALAR, model, world, l, C),
                        relative_rate(SCALAR, model, world, l, kind, False, C))
            x_2, x_dot_2 = relative_variation(kind, False, C, v, a, eta, dv, da)
            w_2, _ = relative_variation(kind, False, C, w, w, eta, dw, dw)
            R = sub6(eta[1], eta[0])
            y, M = Ad_inverse(C, R), followed(kind, False, C, R)
            moved, place, w_r = (M, sub6(R, M)), ((p, y[1]), (d, cross(y[0], d))), Ad_inverse(C, sub6(w[1], w[0]))
            lam_2 = (varied_weight(multipliers[1], rows, 0), varied_weight(multipliers[1], rows, 1),
                     varied_weight(multipliers[1], rows, 2), varied_weight(multipliers[1], rows, 3))
            found = wrenches_in_frame(
                (kind, L, r), all_weights(weighed, rows), (four(multipliers[0], rows), lam_2), place, (x, x_2),
                (x_dot, x_dot_2), (w_r, w_2))
            found = adjoints_of_sides(
                (kind, False, C),
                (in_world(C, found[0]), in_world(C, found[1]), in_world(C, found[2]), in_world(C, found[3])), moved,
                ((v[0], dv[0]), (a[0], da[0]), (w[0], dw[0])), ((v[1], dv[1]), (a[1], da[1]), (w[1], dw[1])))
            push_sides(LANES, rate, model, l, moved, found, target_twist(SCALAR, model, world, l), weighed.rates)
            no_rate = along((ZERO6, scale6(0.0, w_2)), ZERO6)
            of_w = rows_along((kind, L, r), place, ZERO6, along((w_r, w_2), ZERO6), no_rate)
            for k in range(rows[1]):
                store(LANES, of_lam, of_lam.shape[1] // WIDTH * (rows[0] + k) + b, splat(LANES, 0.0) + of_w[k][0][2])
        elif is_cable(model, l):
            vary_cable(model, l, world, multipliers, weighed, b, variations, of_lam)


@others(VECTOR, WEIGHED)
def hold_contacts(model, world, weighed):
    """Add the wrenches of the weights of residuals to of_q of all links from both sides to the ground."""
    for l in range(loop_count(model)):
        if is_contact(model, l):
            L, r, p, d, C = contact(model, world, l)
            sizes = sizes_of(present_rows(model, l), weighed.rows.residual)
            F = Ad_dual_inverse(C, contact_wrench(loop_kind(model, l), L, r, p, d, sizes))
            carry_down(SCALAR, model, loop_links(model, l), F, weighed.adjoints)
        elif is_cable(model, l):
            hold_cable(model, l, world, weighed)
