"""Numbers and vectors with their derivatives in two directions, to second order.

A jet is (x, x_t, x_d, x_td): a value, its rate in time, its derivative in a direction, and the rate's derivative. One
formula for the velocity of a constraint, evaluated on jets, gives its acceleration and all derivatives of both, exact
to rounding, by the chain rule (hyper-dual numbers: Fike and Alonso 2011).
"""
import math

from liedyn.lie.algebra import add, cross, dot, scale, sub
from liedyn.machine.compiled.jit import inline

ZERO3 = (0.0, 0.0, 0.0)


@inline
def constant(x):
    """A constant vector as a jet."""
    return x, ZERO3, ZERO3, ZERO3


@inline
def jet_add(a, b):
    return add(a[0], b[0]), add(a[1], b[1]), add(a[2], b[2]), add(a[3], b[3])


@inline
def jet_sub(a, b):
    return sub(a[0], b[0]), sub(a[1], b[1]), sub(a[2], b[2]), sub(a[3], b[3])


@inline
def jet_scale(s, a):
    """Number times vector, both jets."""
    return (scale(s[0], a[0]), add(scale(s[1], a[0]), scale(s[0], a[1])), add(scale(s[2], a[0]), scale(s[0], a[2])),
            add(add(scale(s[3], a[0]), scale(s[1], a[2])), add(scale(s[2], a[1]), scale(s[0], a[3]))))


@inline
def jet_multiple(c, a):
    """A constant times a vector."""
    return scale(c, a[0]), scale(c, a[1]), scale(c, a[2]), scale(c, a[3])


@inline
def jet_dot(a, b):
    return (dot(a[0], b[0]), dot(a[1], b[0]) + dot(a[0], b[1]), dot(a[2], b[0]) + dot(a[0], b[2]),
            dot(a[3], b[0]) + dot(a[1], b[2]) + dot(a[2], b[1]) + dot(a[0], b[3]))


@inline
def jet_cross(a, b):
    return (cross(a[0], b[0]), add(cross(a[1], b[0]), cross(a[0], b[1])), add(cross(a[2], b[0]), cross(a[0], b[2])),
            add(add(cross(a[3], b[0]), cross(a[1], b[2])), add(cross(a[2], b[1]), cross(a[0], b[3]))))


@inline
def jet_component(a, k):
    """Component k of a vector; k is a literal."""
    return a[0][k], a[1][k], a[2][k], a[3][k]


@inline
def jet_across(a):
    """The x and y components of a vector; z is set to zero."""
    return ((a[0][0], a[0][1], 0.0), (a[1][0], a[1][1], 0.0), (a[2][0], a[2][1], 0.0), (a[3][0], a[3][1], 0.0))


@inline
def jet_zero(a):
    """The number zero as a jet, with parts that are floats or lanes as those of a vector."""
    return 0.0, 0.0, 0.0 * a[2][0], 0.0 * a[3][0]


@inline
def jet_inverse_root(s):
    """1 / sqrt(s) of a number."""
    f = 1.0 / math.sqrt(s[0])  # f(s) = s^-1/2
    first = -0.5 * f / s[0]
    second = -1.5 * first / s[0]
    return f, first * s[1], first * s[2], first * s[3] + second * s[1] * s[2]


@inline
def jet_unit(a):
    """a / |a|."""
    return jet_scale(jet_inverse_root(jet_dot(a, a)), a)
