"""Numbers and vectors with their derivatives in two directions, to second order.

A jet is (x, x_1, x_2, x_12): a value, its derivatives along two directions, and the derivative of x_1 along direction
2. Linear functions act on each part, products follow the product rule: exact to rounding (hyper-dual numbers: Fike and
Alonso 2011). `linear`, `linear_in_both`, `with_constant` and `product` make functions of jets of those of values.

In the rows of constraints direction 1 is time, (x, x_t, x_d, x_td): one formula for the velocity of a constraint,
evaluated on jets, gives its acceleration and all derivatives of both.
"""
import math
import operator

from liedyn.lie.algebra import add, cross, dot, scale, sub
from liedyn.machine.compiled.jit import inline

ZERO3 = (0.0, 0.0, 0.0)


def linear(function):
    """f(x)."""
    @inline
    def of_parts(x):
        return function(x[0]), function(x[1]), function(x[2]), function(x[3])

    return of_parts


def linear_in_both(function):
    """A sum or difference f(x, y)."""
    @inline
    def of_parts(x, y):
        return function(x[0], y[0]), function(x[1], y[1]), function(x[2], y[2]), function(x[3], y[3])

    return of_parts


def with_constant(function):
    """f(c, x) for a c that does not vary."""
    @inline
    def of_parts(c, x):
        return function(c, x[0]), function(c, x[1]), function(c, x[2]), function(c, x[3])

    return of_parts


def product(function, add):
    """A product f(x, y), linear in each factor, whose values are added by `add`."""
    @inline
    def of_parts(x, y):
        return (function(x[0], y[0]), add(function(x[1], y[0]), function(x[0], y[1])),
                add(function(x[2], y[0]), function(x[0], y[2])),
                add(add(function(x[3], y[0]), function(x[0], y[3])), add(function(x[1], y[2]), function(x[2], y[1]))))

    return of_parts


@inline
def constant(x):
    """A constant vector as a jet."""
    return x, ZERO3, ZERO3, ZERO3


jet_add, jet_sub, jet_multiple = linear_in_both(add), linear_in_both(sub), with_constant(scale)
jet_scale, jet_cross, jet_dot = product(scale, add), product(cross, add), product(dot, operator.add)
"""Sums, differences, a constant times a vector; number times vector and products of vectors."""
sum_of, times = linear_in_both(operator.add), product(operator.mul, operator.add)
"""The sum and the product of numbers."""


@inline
def jet_along(s, u):
    """A number times a constant vector u."""
    return scale(s[0], u), scale(s[1], u), scale(s[2], u), scale(s[3], u)


@inline
def jet_component(a, k):
    """Component k of a vector; k is a literal."""
    return a[0][k], a[1][k], a[2][k], a[3][k]


@inline
def jet_across(a):
    """The x and y components of a vector; z is set to zero."""
    return ((a[0][0], a[0][1], 0.0), (a[1][0], a[1][1], 0.0), (a[2][0], a[2][1], 0.0), (a[3][0], a[3][1], 0.0))


@inline
def jet_lowered(s, c):
    """The number s less a constant."""
    return s[0] - c, s[1], s[2], s[3]


@inline
def jet_zero(a):
    """The number zero as a jet, with parts that are floats or lanes as those of a vector."""
    return 0.0, 0.0, 0.0 * a[2][0], 0.0 * a[3][0]


@inline
def composed(f, first, second, s):
    """f(s) of a number s, from f and its derivatives there."""
    return f, first * s[1], first * s[2], first * s[3] + second * s[1] * s[2]


@inline
def jet_inverse_root(s):
    """1 / sqrt(s) of a number."""
    f = 1.0 / math.sqrt(s[0])  # f(s) = s^-1/2
    first = -0.5 * f / s[0]
    return composed(f, first, -1.5 * first / s[0], s)


@inline
def jet_root(s):
    """sqrt(s) of a number."""
    root = math.sqrt(s[0])
    return composed(root, 0.5 / root, -0.25 / (root * s[0]), s)


@inline
def jet_unit(a):
    """a / |a|."""
    return jet_scale(jet_inverse_root(jet_dot(a, a)), a)


@inline
def followed_up(f, f_p, f_q, p, q):
    """A number f(p, q), from its value and its gradients."""
    return (f, dot(f_p[0], p[1]) + dot(f_q[0], q[1]), dot(f_p[0], p[2]) + dot(f_q[0], q[2]),
            dot(f_p[2], p[1]) + dot(f_p[0], p[3]) + dot(f_q[2], q[1]) + dot(f_q[0], q[3]))


@inline
def value_of(a):
    """The value alone."""
    return a[0]
