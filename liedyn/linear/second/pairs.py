"""Values with their variations along a register of directions: (x, dx), the product rule to first order.

The value is in floats, the variation in lanes. Twists and wrenches are seen from a link; `pair_carried` and
`wrench_carried` change to one that is displaced (`liedyn.mechanics.tree.tangent_recursion`).
"""
from liedyn.lie.algebra import ad, add6, minus_ad_dual, neg6, sub6
from liedyn.machine.compiled.jit import inline


@inline
def pair_add(x, y):
    return add6(x[0], y[0]), add6(x[1], y[1])


@inline
def pair_sub(x, y):
    return sub6(x[0], y[0]), sub6(x[1], y[1])


@inline
def pair_neg(x):
    return neg6(x[0]), neg6(x[1])


@inline
def pair_dual(x, F):
    """-ad*_x F."""
    return minus_ad_dual(x[0], F[0]), add6(minus_ad_dual(x[1], F[0]), minus_ad_dual(x[0], F[1]))


@inline
def pair_carried(x, t):
    """A twist x, seen from a frame that is displaced by t."""
    return x[0], add6(x[1], ad(x[0], t))


@inline
def wrench_back(F, t):
    """A wrench F on a frame that is displaced by t, seen from the frame before the displacement."""
    return F[0], add6(F[1], minus_ad_dual(t, F[0]))
