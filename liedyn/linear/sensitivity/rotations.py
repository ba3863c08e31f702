"""Vectors and rotation vectors varied in two directions to second order
(`liedyn.linear.sensitivity.second_order_sensitivity`).

With d of `liedyn.lie.exponential`, the inverse Jacobians of SO(3) are 1 + h [phi] + d [phi]^2; they map angular
displacements to changes of phi. The displacements are seen from the frame where phi begins for h = -1/2 (left
Jacobian), and from the frame where it ends for h = 1/2 (right Jacobian).
"""
from liedyn.lie.algebra import add, cross, dot, scale
from liedyn.lie.exponential import coefficient_d, polynomial_times, rate_d, second_rate_d
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import LANES
from liedyn.model.packed_records import zero3

ZERO3 = 0.0, 0.0, 0.0


@inline
def added(a, b):
    """a + b of quadruples of vectors."""
    return add(a[0], b[0]), add(a[1], b[1]), add(a[2], b[2]), add(a[3], b[3])


@inline
def multiple(c, a):
    """c a for a constant c."""
    return scale(c, a[0]), scale(c, a[1]), scale(c, a[2]), scale(c, a[3])


@inline
def crossed(a, b):
    """a x b of quadruples."""
    return (cross(a[0], b[0]), add(cross(a[1], b[0]), cross(a[0], b[1])), add(cross(a[2], b[0]), cross(a[0], b[2])),
            add(add(cross(a[3], b[0]), cross(a[0], b[3])), add(cross(a[1], b[2]), cross(a[2], b[1]))))


@inline
def multiplied(x, a):
    """x a of a quadruple of numbers and one of vectors."""
    return (scale(x[0], a[0]), add(scale(x[1], a[0]), scale(x[0], a[1])), add(scale(x[2], a[0]), scale(x[0], a[2])),
            add(add(scale(x[3], a[0]), scale(x[0], a[3])), add(scale(x[1], a[2]), scale(x[2], a[1]))))


@inline
def coefficient(phi):
    """d at the square of phi, as a quadruple."""
    square = dot(phi[0], phi[0])
    d = coefficient_d(square)
    rate = rate_d(square, d)
    along_1, along_2 = dot(phi[0], phi[1]), dot(phi[0], phi[2])
    mixed = dot(phi[1], phi[2]) + dot(phi[0], phi[3])
    return d, rate * along_1, rate * along_2, rate * mixed + second_rate_d(square, d, rate) * along_1 * along_2


@inline
def inverse_jacobian_times(phi, h, x):
    """(1 + h [phi] + d [phi]^2) x."""
    turned = crossed(phi, x)
    return added(x, added(multiple(h, turned), multiplied(coefficient(phi), crossed(phi, turned))))


@inline
def rotation_vector(phi, h, w_1, w_2, w_12):
    """phi as a quadruple; w_12 is the change along direction 2 of the angular displacement w_1."""
    d, still = coefficient_d(dot(phi, phi)), zero3(LANES)
    phi_1, phi_2 = polynomial_times(phi, h, d, w_1), polynomial_times(phi, h, d, w_2)
    moved = inverse_jacobian_times((phi, ZERO3, phi_2, still), h, (w_1, ZERO3, w_12, still))
    return phi, phi_1, phi_2, moved[2]
