"""Laws of the displacement of a frame B relative to a frame A: bushings, and applied wrenches.

Six rows measure it: their residual is log(A^-1 B), their velocity the relative twist V = (omega, v) in A. In the axes
of A, with p the position of B and phi the rotation vector,

    s = (phi, p)        sdot = (J^-1(phi) omega, u)        u = v + omega x p

A bushing stores s^T K s / 2 + s^T p_0 and damps with D (omega, u): the wrench at B is

    (m, F) = (J^-T g_phi, g_p) + D (omega, u)        g = K s + p_0

so that everything except the damping is the gradient of an energy, exactly and at any displacement. The springs of a
free joint are a bushing of this kind. An applied wrench is also a moment and a force at B: constant in the axes of A,
which is the ground, or rotating with B. The rows need it about A, (m + p x F, F); an applied wrench pushes, f = -W.
Along a displacement eta = (theta, rho) of B in A, phi changes by J^-1 theta, p by rho + theta x p, and a vector that
rotates with B by theta x.

The laws of `liedyn.model.laws` for kernels, selected by their codes.
"""
from numba import types
from numba.np.unsafe.ndarray import to_fixed_tuple

from liedyn.lie.algebra import add, add6, cross, dot, dot6, neg6, rotate, scale6, sub, unrotate
from liedyn.lie.exponential import (
    coefficient_d, exp, polynomial_rate, polynomial_times, rate_d, so3_left_jacobian_inverse,
)
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline
from liedyn.machine.compiled.user_functions import call
from liedyn.machine.simd.lanes import SCALAR
from liedyn.model.force_elements import (
    BUSHING, BUSHING_NUMBERS, FOLLOWER, FUNCTION_AT, LAW, LAW_KINDS, NUMBERS, PUSH, ROW, THRUST, TORQUE_AT, Laws,
)
from liedyn.model.laws import LAWS
from liedyn.model.packed_records import get3, get6

LAWS_TYPE = group(Laws, types.int64[:, ::1], VECTOR, MATRIX, VECTOR, types.int64[:, ::1])
"""Numba's type of `Laws`."""


@inline
def _users(laws, e, t, x, w, out):
    """Force by the user's own function, whose energy is unknown."""
    r = laws.records[e, ROW]
    call(laws.records[e, FUNCTION_AT], t, x[r:], w[r:], w, w, out, 0)
    return out[0], out[1], out[2], 0.0, 0.0


def _either(name, otherwise):
    code, formula, count = LAW_KINDS.index(name), LAWS[name].formula, len(LAWS[name].numbers)

    def either(laws, e, t, x, w, out):
        if laws.records[e, LAW] == code:
            r, given = laws.records[e, ROW], to_fixed_tuple(laws.numbers[laws.records[e, NUMBERS]:], count)
            return formula(x[r], w[r], *given)
        return otherwise(laws, e, t, x, w, out)

    either.__name__ = either.__qualname__ = f"{name}_or_another"
    return inline(either)


force = _users
"""f, df/dx, df/dw, conservative part and energy of element e, for lengths x and rates w of all rows; scratch `out`."""
for _name in LAWS:
    force = _either(_name, force)


DAMPING_AT = BUSHING_NUMBERS["stiffness"]
PRELOAD_AT = DAMPING_AT + BUSHING_NUMBERS["damping"]
_ZERO = 0.0, 0.0, 0.0


@inline
def times(M, at, V):
    """The (6, 6) matrix stored at M[at:] times a six-vector."""
    return ((dot6(get6(SCALAR, M, at), V), dot6(get6(SCALAR, M, at + 6), V), dot6(get6(SCALAR, M, at + 12), V)),
            (dot6(get6(SCALAR, M, at + 18), V), dot6(get6(SCALAR, M, at + 24), V), dot6(get6(SCALAR, M, at + 30), V)))


@inline
def seen_at_a(p, W):
    """A wrench at B, expressed about A."""
    return add(W[0], cross(p, W[1])), W[1]


@inline
def seen_at_b(p, F):
    """A wrench about A, expressed at B."""
    return sub(F[0], cross(p, F[1])), F[1]


@inline
def rate(p, V):
    """(omega, u) for a twist (omega, v), with u = v + omega x p."""
    return V[0], add(V[1], cross(V[0], p))


@inline
def bushing(c, at, X, V):
    """f, its conservative part, and the energy."""
    p = exp(X)[1]
    s = X[0], p
    Ks, p_0 = times(c, at, s), get6(SCALAR, c, at + PRELOAD_AT)
    g = add6(Ks, p_0)
    held = polynomial_times(X[0], 0.5, coefficient_d(dot(X[0], X[0])), g[0]), g[1]
    f = add6(held, times(c, at + DAMPING_AT, rate(p, V)))
    return seen_at_a(p, f), seen_at_a(p, held), 0.5 * dot6(s, Ks) + dot6(s, p_0)


@inline
def bushing_change(c, at, X, V, eta, dV):
    """The change of f when B is displaced by eta in A, and the twist changes by dV."""
    phi, p, d = X[0], exp(X)[1], coefficient_d(dot(X[0], X[0]))
    A = so3_left_jacobian_inverse(phi)
    d_phi, dp = rotate(A, eta[0]), add(eta[1], cross(eta[0], p))
    g, dg = add6(times(c, at, (phi, p)), get6(SCALAR, c, at + PRELOAD_AT)), times(c, at, (d_phi, dp))
    dA = polynomial_rate(phi, d_phi, -0.5, d, 0.0, rate_d(dot(phi, phi), d))
    omega, u = rate(p, V)
    du = add(rate(p, dV)[1], cross(omega, dp))
    F = add(g[1], times(c, at + DAMPING_AT, (omega, u))[1])
    moment, force = times(c, at + DAMPING_AT, (dV[0], du))
    moment, force = add(moment, add(unrotate(dA, g[0]), unrotate(A, dg[0]))), add(force, dg[1])
    return add(seen_at_a(p, (moment, force))[0], cross(dp, F)), force


@inline
def given(laws, e, t, X, x, out):
    """The moment and force at B of an applied wrench, in the axes of A."""
    at = laws.records[e, NUMBERS]
    m, F = get6(SCALAR, laws.numbers, at)
    if laws.records[e, TORQUE_AT] != 0:
        call(laws.records[e, TORQUE_AT], t, x, x, x, x, out, 0)
        m = get3(SCALAR, out, 0)
    if laws.records[e, FUNCTION_AT] != 0:
        call(laws.records[e, FUNCTION_AT], t, x, x, x, x, out, 0)
        F = get3(SCALAR, out, 0)
    if laws.records[e, LAW] >= PUSH:
        m, F = scale6(laws.numbers[at + 6], (m, F))
    return in_axes_of_a(laws, e, X, (m, F))


@inline
def turns_with_b(laws, e):
    return laws.records[e, LAW] == FOLLOWER or laws.records[e, LAW] == THRUST


@inline
def in_axes_of_a(laws, e, X, W):
    """A wrench at B as it is given, in the axes of A."""
    if turns_with_b(laws, e):
        R = exp(X)[0]
        return rotate(R, W[0]), rotate(R, W[1])
    return W


@inline
def of_unit_input(laws, e, X):
    """The wrench about A of a unit of the input of a push or thrust."""
    W = get6(SCALAR, laws.numbers, laws.records[e, NUMBERS])
    return seen_at_a(exp(X)[1], in_axes_of_a(laws, e, X, W))


@inline
def pull(laws, e, t, X, V, x, out):
    """f about A, its conservative part, and the energy, of element e for the log X and the twist V."""
    if laws.records[e, LAW] == BUSHING:
        return bushing(laws.numbers, laws.records[e, NUMBERS], X, V)
    return neg6(seen_at_a(exp(X)[1], given(laws, e, t, X, x, out))), (_ZERO, _ZERO), 0.0


@inline
def change(laws, e, W, X, V, eta, dV):
    """The change of f of element e; W is the applied wrench."""
    if laws.records[e, LAW] == BUSHING:
        return bushing_change(laws.numbers, laws.records[e, NUMBERS], X, V, eta, dV)
    p = exp(X)[1]
    dp = add(eta[1], cross(eta[0], p))
    turned = (cross(eta[0], W[0]), cross(eta[0], W[1])) if turns_with_b(laws, e) else (_ZERO, _ZERO)
    moment, force = seen_at_a(p, turned)
    return neg6((add(moment, cross(dp, W[1])), force))
