"""Coriolis matrices of rigid bodies and of subtrees, in twelve numbers instead of 36.

With D = sum m rdot r^T over all particles and P the linear momentum, both at the world's origin, the Coriolis matrix is
B (w, v) = (tr(D) w - D w, w x P): B = (D, P), and those of several bodies add up (after Singh, Russell and Wensing
2022, IEEE RA-L 7(2)).
"""
from liedyn.lie.algebra import (
    add, add6, add9, add_cross, cross, inertia_times, rotate, scale, sub, symmetric_times, unrotate,
)
from liedyn.machine.compiled.jit import inline, inline_algebra


@inline
def coriolis_moments(I, V):
    """D = sum m rdot r^T and P = sum m rdot of a rigid body with twist V (both at the world's origin)."""
    m, h, J = I
    w, u = V
    t = 0.5 * (J[0] + J[3] + J[5])
    # [w] E with E = sum m r r^T = tr(J)/2 1 - J, column by column
    c0 = cross(w, (t - J[0], -J[1], -J[2]))
    c1 = cross(w, (-J[1], t - J[3], -J[4]))
    c2 = cross(w, (-J[2], -J[4], t - J[5]))
    return ((u[0] * h[0] + c0[0], u[0] * h[1] + c1[0], u[0] * h[2] + c2[0],
             u[1] * h[0] + c0[1], u[1] * h[1] + c1[1], u[1] * h[2] + c2[1],
             u[2] * h[0] + c0[2], u[2] * h[1] + c1[2], u[2] * h[2] + c2[2]),
            add(scale(m, u), cross(w, h)))


@inline_algebra
def add_coriolis(F, B, w):
    """F + B V; only the angular part w of V matters."""
    (D, P), (n, f) = B, F
    t = D[0] + D[4] + D[8]
    return ((n[0] + t * w[0] - D[0] * w[0] - D[1] * w[1] - D[2] * w[2],
             n[1] + t * w[1] - D[3] * w[0] - D[4] * w[1] - D[5] * w[2],
             n[2] + t * w[2] - D[6] * w[0] - D[7] * w[1] - D[8] * w[2]), add_cross(f, w, P))


@inline_algebra
def coriolis_transpose_times(B, V):
    """The moment part of B^T V; its force part is zero."""
    (D, P), (w, u) = B, V
    return add_cross(sub(scale(D[0] + D[4] + D[8], w), unrotate(D, w)), P, u)


@inline_algebra
def contribution(I, B, Sj, psi_turn, psi_ddot, S_rate):
    """Contributions of degree of freedom j, without the term in F: to the rows of those that carry j, by q and by v,
    and to the rows of those that j carries.

    psi_turn is the angular part of Psi_dot_j.
    """
    twice = add6(Sj, Sj)
    return (add_coriolis(inertia_times(I, psi_ddot), B, add(psi_turn, psi_turn)),
            add_coriolis(inertia_times(I, S_rate), B, twice[0]), coriolis_transpose_times(B, twice))


@inline_algebra
def carried_moments(B, s):
    """The rate of (D, P) of bodies that are carried along by a unit of the screw s, positions and velocities alike."""
    (D, P), (w, u) = B, s
    x, y, z = cross(w, (D[0], D[3], D[6])), cross(w, (D[1], D[4], D[7])), cross(w, (D[2], D[5], D[8]))
    a, b, c = cross(w, (D[0], D[1], D[2])), cross(w, (D[3], D[4], D[5])), cross(w, (D[6], D[7], D[8]))
    return ((x[0] + a[0] + P[0] * u[0], y[0] + a[1] + P[0] * u[1], z[0] + a[2] + P[0] * u[2],
             x[1] + b[0] + P[1] * u[0], y[1] + b[1] + P[1] * u[1], z[1] + b[2] + P[1] * u[2],
             x[2] + c[0] + P[2] * u[0], y[2] + c[1] + P[2] * u[1], z[2] + c[2] + P[2] * u[2]), cross(w, P))


@inline
def second_moments(I, B, Sj, psi_dot):
    """What second derivatives need of degree of freedom j: B(I, S_j), and B(I, Psi_dot_j) with the rate of B along
    S_j."""
    (d, p), (dd, dp) = coriolis_moments(I, psi_dot), carried_moments(B, Sj)
    return coriolis_moments(I, Sj), (add9(d, dd), add(p, dp))


# ---- the same with the block E = tr(D) 1 - D, for many products with one B


@inline_algebra
def as_block(B):
    """(E, P), with B (w, u) = (E w, w x P)."""
    D, P = B
    t = D[0] + D[4] + D[8]
    return (t - D[0], -D[1], -D[2], -D[3], t - D[4], -D[5], -D[6], -D[7], t - D[8]), P


@inline_algebra
def add_block(F, B, w):
    """F + B V; only the angular part w of V matters."""
    (E, P), (n, f) = B, F
    return add(n, rotate(E, w)), add_cross(f, w, P)


@inline_algebra
def block_transpose_times(B, V):
    """The moment part of B^T V; its force part is zero."""
    (E, P), (w, u) = B, V
    return add_cross(unrotate(E, w), P, u)


@inline_algebra
def add_both_blocks(F, B, V):
    """F + (B + B^T) V."""
    (E, P), (w, u), (n, f) = B, V, F
    both = symmetric_times((E[0] + E[0], E[1] + E[3], E[2] + E[6], E[4] + E[4], E[5] + E[7], E[8] + E[8]), w)
    return add_cross(add(n, both), P, u), add_cross(f, w, P)
