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


def _linear(function):
    @inline
    def of_pair(a, *arguments):
        return function(a[0], *arguments), function(a[1], *arguments)

    return of_pair


def _sum(function):
    @inline
    def of_pairs(a, b):
        return function(a[0], b[0]), function(a[1], b[1])

    return of_pairs


def _product(function, add):
    @inline
    def of_pairs(a, b):
        return function(a[0], b[0]), add(function(a[1], b[0]), function(a[0], b[1]))

    return of_pairs


jet_add, jet_sub = _sum(of_time.jet_add), _sum(of_time.jet_sub)
jet_scale, jet_cross = (_product(each, of_time.jet_add) for each in (of_time.jet_scale, of_time.jet_cross))
jet_dot = _product(of_time.jet_dot, of_time.sum_of)
jet_component, jet_across, jet_zero = map(_linear, (of_time.jet_component, of_time.jet_across, of_time.jet_zero))


sum_of, times = _sum(of_time.sum_of), _product(of_time.times, of_time.sum_of)


@inline
def jet_multiple(c, a):
    return of_time.jet_multiple(c, a[0]), of_time.jet_multiple(c, a[1])


@inline
def jet_lowered(s, c):
    return of_time.jet_lowered(s[0], c), s[1]


@inline
def jet_unit(a):
    """n = a / |a|, with the derivative (a_1 - n (n . a_1)) / |a|."""
    n, size = of_time.jet_unit(a[0]), of_time.jet_dot(a[0], a[0])
    inverse = of_time.jet_inverse_root(size)
    across = of_time.jet_sub(a[1], of_time.jet_scale(of_time.jet_dot(n, a[1]), n))
    return n, of_time.jet_scale(inverse, across)


@inline
def jet_inverse_root(s):
    """f = 1 / sqrt(s) of a number, with the derivative -f^3 s_1 / 2."""
    f = of_time.jet_inverse_root(s[0])
    return f, of_time.times(of_time.times(f, of_time.times(f, f)), of_time.times((-0.5, 0.0, 0.0, 0.0), s[1]))


@inline
def jet_root(s):
    """sqrt(s) of a number, with the derivative s_1 / (2 sqrt(s))."""
    half = of_time.times((0.5, 0.0, 0.0, 0.0), s[1])
    return of_time.jet_root(s[0]), of_time.times(of_time.jet_inverse_root(s[0]), half)


@inline
def followed_up(f, f_p, f_q, p, q):
    """A number f(p, q), from its value and its gradients."""
    return (of_time.followed_up(f, f_p[0], f_q[0], p[0], q[0]),
            of_time.sum_of(of_time.jet_dot(f_p[0], p[1]), of_time.jet_dot(f_q[0], q[1])))


@inline
def value_of(a):
    """The value alone."""
    return a[0][0]
