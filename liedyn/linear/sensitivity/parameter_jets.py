"""Jets in time and in two directions, to third order, for the mixed variations of rows of contacts.

A jet is a pair: one of `liedyn.mechanics.constraints.jets`, (x, x_t, x_2, x_t2), and its derivative along direction 1.
Each operation is that of `jets` on the first part, and its derivative by the product rule on the second.
"""
from liedyn.machine.compiled.jit import inline
from liedyn.mechanics.constraints import jets as of_time


@inline
def paired(x, x_1, x_2, x_12, y, y_1, y_2, y_12):
    """The jet with the value x, the rate y, and their variations along directions 1 and 2."""
    return (x, y, x_2, y_2), (x_1, y_1, x_12, y_12)


@inline
def constant(x):
    """A vector that does not move."""
    return of_time.constant(x), of_time.constant(of_time.ZERO3)


@inline
def jet_add(a, b):
    return of_time.jet_add(a[0], b[0]), of_time.jet_add(a[1], b[1])


@inline
def jet_sub(a, b):
    return of_time.jet_sub(a[0], b[0]), of_time.jet_sub(a[1], b[1])


@inline
def sum_of(a, b):
    """The sum of two numbers with variations along two directions (quadruples)."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]


@inline
def times(a, b):
    """The product of two such quadruples."""
    return (a[0] * b[0], a[1] * b[0] + a[0] * b[1], a[2] * b[0] + a[0] * b[2],
            a[3] * b[0] + a[1] * b[2] + a[2] * b[1] + a[0] * b[3])


@inline
def jet_scale(s, a):
    return (of_time.jet_scale(s[0], a[0]),
            of_time.jet_add(of_time.jet_scale(s[1], a[0]), of_time.jet_scale(s[0], a[1])))


@inline
def jet_multiple(c, a):
    return of_time.jet_multiple(c, a[0]), of_time.jet_multiple(c, a[1])


@inline
def jet_dot(a, b):
    return of_time.jet_dot(a[0], b[0]), sum_of(of_time.jet_dot(a[1], b[0]), of_time.jet_dot(a[0], b[1]))


@inline
def jet_cross(a, b):
    return (of_time.jet_cross(a[0], b[0]),
            of_time.jet_add(of_time.jet_cross(a[1], b[0]), of_time.jet_cross(a[0], b[1])))


@inline
def jet_component(a, k):
    return of_time.jet_component(a[0], k), of_time.jet_component(a[1], k)


@inline
def jet_across(a):
    return of_time.jet_across(a[0]), of_time.jet_across(a[1])


@inline
def jet_zero(a):
    return of_time.jet_zero(a[0]), of_time.jet_zero(a[1])


@inline
def jet_unit(a):
    """n = a / |a|, with the derivative (a_1 - n (n . a_1)) / |a|."""
    n, size = of_time.jet_unit(a[0]), of_time.jet_dot(a[0], a[0])
    inverse = of_time.jet_inverse_root(size)
    across = of_time.jet_sub(a[1], of_time.jet_scale(of_time.jet_dot(n, a[1]), n))
    return n, of_time.jet_scale(inverse, across)
