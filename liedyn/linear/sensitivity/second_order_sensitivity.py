"""Variations in two directions at once, to second order: the derivative of a linearization by parameters.

Every quantity is a quadruple (x, x_1, x_2, x_12): its value, its variations along two directions, and the variation of
x_1 along direction 2. Direction 1 is one direction of the state, in floats; direction 2 is a parameter with all that
follows it, in lanes, a register of parameters at once.

A link moves relative to its parent by f = f_0 exp(s_2 t_2) exp(s_1 (t_1 + s_2 t_12)): first along direction 2, then
along direction 1, from the place that direction 2 has reached. In world axes, and seen from the link
(`liedyn.mechanics.tree.tangent_recursion`), a quantity x of the parent is *carried* by turns t = (t_1, t_2, t_12):

    y_1 = x_1 + ad(x, t_1)      y_2 = x_2 + ad(x, t_2)      y_12 = x_12 + ad(x_1, t_2) + ad(y_2, t_1) + ad(x, t_12)

and displacements add up to e_1 + t_1, e_2 + t_2, e_12 + ad(e_1, t_2) + t_12. Wrenches are carried back by the dual.
This is the chain rule, exact to rounding (hyper-dual numbers: Fike and Alonso 2011, here on SE(3)).

With d of `liedyn.lie.exponential`, the inverse Jacobians of SO(3) are 1 + h [phi] + d [phi]^2; they map angular
displacements to changes of phi. The displacements are seen from the frame where phi begins for h = -1/2 (left
Jacobian), and from the frame where it ends for h = 1/2 (right Jacobian).
"""
from liedyn.lie.algebra import (
    Ad, Ad_dual_inverse, Ad_inverse, ad, add, add6, cross, dot, dot6, inertia_times, minus_ad_dual, neg6, scale6,
    sub6,
)
from liedyn.lie.exponential import coefficient_d, polynomial_times, rate_d, second_rate_d
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import LANES
from liedyn.mechanics.constraints.jets import (
    ZERO3, composed, jet_add, jet_cross, jet_dot, jet_multiple, jet_scale, linear, linear_in_both, product,
    with_constant,
)
from liedyn.model.packed_records import zero3

# ---- displacements (t_1, t_2, t_12)


@inline
def combined(e, t):
    """The displacement e followed by t."""
    return add6(e[0], t[0]), add6(e[1], t[1]), add6(add6(e[2], ad(e[0], t[1])), t[2])


@inline
def relative(a, b):
    """The displacement from a to b: combined(a, relative(a, b)) is b."""
    r_2 = sub6(b[1], a[1])
    return sub6(b[0], a[0]), r_2, sub6(sub6(b[2], a[2]), ad(a[0], r_2))


# ---- twists and other vectors that are seen from a frame


@inline
def carried(x, t):
    """x, seen from a frame that is displaced by t."""
    y_2 = add6(x[2], ad(x[0], t[1]))
    return (x[0], add6(x[1], ad(x[0], t[0])), y_2,
            add6(add6(add6(x[3], ad(x[1], t[1])), ad(y_2, t[0])), ad(x[0], t[2])))


@inline
def carried_back(y, t):
    """The inverse of `carried`: the x for which carried(x, t) is y."""
    x_1, x_2 = sub6(y[1], ad(y[0], t[0])), sub6(y[2], ad(y[0], t[1]))
    return (y[0], x_1, x_2, sub6(sub6(sub6(y[3], ad(x_1, t[1])), ad(y[2], t[0])), ad(y[0], t[2])))


@inline
def wrench_carried(F, t):
    """A wrench on a body that is displaced by t, seen from the frame before the displacement."""
    G_1, G_12 = add6(F[1], minus_ad_dual(t[0], F[0])), add6(F[3], minus_ad_dual(t[0], F[2]))
    G_12 = add6(G_12, minus_ad_dual(t[2], F[0]))
    return F[0], G_1, add6(F[2], minus_ad_dual(t[1], F[0])), add6(G_12, minus_ad_dual(t[1], G_1))


@inline
def wrench_carried_back(H, t):
    """The inverse of `wrench_carried`: the F for which wrench_carried(F, t) is H."""
    F_1, F_2 = sub6(H[1], minus_ad_dual(t[0], H[0])), sub6(H[2], minus_ad_dual(t[1], H[0]))
    G_12 = sub6(H[3], minus_ad_dual(t[1], H[1]))
    return H[0], F_1, F_2, sub6(sub6(G_12, minus_ad_dual(t[0], F_2)), minus_ad_dual(t[2], H[0]))


plus, minus, negative = linear_in_both(add6), linear_in_both(sub6), linear(neg6)
bracket, dual_bracket = product(ad, add6), product(minus_ad_dual, add6)
"""ad_x y and -ad*_x F."""


@inline
def momentum(I, dI, x):
    """I x for an inertia that varies along direction 2 only, by dI."""
    return (inertia_times(I, x[0]), inertia_times(I, x[1]), add6(inertia_times(I, x[2]), inertia_times(dI, x[0])),
            add6(inertia_times(I, x[3]), inertia_times(dI, x[1])))


seen_in = with_constant(Ad_inverse)
"""Components of x in C, if C is displaced together with the frame from which x is seen."""
out_of = with_constant(Ad_dual_inverse)
"""The wrench whose components in C are F."""


@inline
def constant_in(A, W):
    """A twist with constant components W in A; its variations are zero."""
    x = Ad(A, W)
    return x, scale6(0.0, x), scale6(0.0, x), scale6(0.0, x)


@inline
def power(x, F):
    """The parts of F . x that vary along direction 2, if x does not vary."""
    return dot6(x, F[2]), dot6(x, F[3])


# ---- vectors and rotation vectors


@inline
def moved_with(x, w_1, w_2, w_12):
    """A vector that turns by these angular displacements, as a quadruple."""
    x_2 = cross(w_2, x)
    return x, cross(w_1, x), x_2, add(cross(w_12, x), cross(w_1, x_2))


@inline
def displacement_in(A, L):
    """A displacement L of a body relative to A as twists in A: along 1, along 2, and the change of the first along 2,
    as seen from A."""
    return Ad_inverse(A, L[0]), Ad_inverse(A, L[1]), Ad_inverse(A, add6(L[2], ad(L[1], L[0])))


@inline
def place_moved_by(A, L, p):
    """The position p in A of a point that moves by L, as a quadruple.

    With (theta, rho) of `displacement_in`, p_1 = rho_1 + theta_1 x p and p_12 = rho_12 + theta_12 x p + theta_1 x p_2.
    """
    (w_1, v_1), (w_2, v_2), (w_12, v_12) = displacement_in(A, L)
    turned = moved_with(p, w_1, w_2, w_12)
    return p, add(v_1, turned[1]), add(v_2, turned[2]), add(add(v_12, turned[3]), cross(w_1, v_2))


@inline
def coefficient(phi):
    """d at the square of phi, as a quadruple; the rates of `liedyn.lie.exponential` are twice those by the square."""
    square = jet_dot(phi, phi)
    d = coefficient_d(square[0])
    rate = rate_d(square[0], d)
    return composed(d, 0.5 * rate, 0.25 * second_rate_d(square[0], d, rate), square)


@inline
def inverse_jacobian_times(phi, h, x):
    """(1 + h [phi] + d [phi]^2) x."""
    turned = jet_cross(phi, x)
    return jet_add(x, jet_add(jet_multiple(h, turned), jet_scale(coefficient(phi), jet_cross(phi, turned))))


@inline
def rotation_vector(phi, h, w_1, w_2, w_12):
    """phi as a quadruple; w_12 is the change along direction 2 of the angular displacement w_1."""
    d, still = coefficient_d(dot(phi, phi)), zero3(LANES)
    phi_1, phi_2 = polynomial_times(phi, h, d, w_1), polynomial_times(phi, h, d, w_2)
    moved = inverse_jacobian_times((phi, ZERO3, phi_2, still), h, (w_1, ZERO3, w_12, still))
    return phi, phi_1, phi_2, moved[2]
