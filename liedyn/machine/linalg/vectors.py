"""Vectors and rows of matrices in loops of kernels: copied, added, multiplied, without allocation."""
from liedyn.machine.compiled.jit import inline


@inline
def copy_to(x, out):
    """out = x for the first len(out) entries."""
    for k in range(out.size):
        out[k] = x[k]


@inline
def add_multiple(factor, x, out):
    """out += factor x for the first len(out) entries."""
    for k in range(out.size):
        out[k] += factor * x[k]


@inline
def inner(x, y):
    """x . y over the first len(y) entries."""
    s = 0.0
    for k in range(y.size):
        s += x[k] * y[k]
    return s
