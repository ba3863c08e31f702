"""Vectors, and rows of matrices, as loops of kernels take them: copied, added, multiplied; nothing is allocated."""
from liedyn.machine.compiled.jit import inline


@inline
def copy_to(x, out):
    """out = x, as far as `out` goes."""
    for k in range(out.size):
        out[k] = x[k]


@inline
def add_multiple(factor, x, out):
    """out += factor x, as far as `out` goes."""
    for k in range(out.size):
        out[k] += factor * x[k]


@inline
def inner(x, y):
    """x . y, as far as `y` goes."""
    s = 0.0
    for k in range(y.size):
        s += x[k] * y[k]
    return s
