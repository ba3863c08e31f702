"""Coriolis matrices of rigid bodies and of subtrees, in twelve numbers instead of 36.

With D = sum m rdot r^T over all particles and P the linear momentum, both at the world's origin, the Coriolis matrix is
B (w, v) = (tr(D) w - D w, w x P): B = (D, P), and those of several bodies add up (after Singh, Russell and Wensing
2022, IEEE RA-L 7(2)).
"""
from liedyn.lie.algebra import add, add6, add_cross, cross, inertia_times, scale, sub, unrotate
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
