"""Poses, inertias and momenta as matrices of 4 x 4, each column in a register of four numbers: for one state.

With r a particle's place, (r, 1) its homogeneous coordinates and m its mass, a body's moments (Wensing, Kim and
Slotine 2018, IEEE RA-L 3(1): pseudo-inertia) and its rotational inertia are

    sum of m (r, 1) (r, 1)^T = [ Q  h ]     Q = sum of m r r^T,     J = tr(Q) 1 - Q
                               [ h' m ]

For a body at pose X they are X (Q h; h' m) X^T, without cross products or parallel-axis terms, and moments of bodies
that move together add up. All products are columns times scalars. The fourth number of a direction is 0, that of a
point 1.
"""
from liedyn.machine.compiled.jit import inline, inline_algebra
from liedyn.machine.simd.registers import side_by_side, yzx


@inline
def at_place(p):
    """Pose of a frame with origin p and the axes of the reference frame."""
    return (side_by_side(1.0, 0.0, 0.0, 0.0), side_by_side(0.0, 1.0, 0.0, 0.0),
            side_by_side(0.0, 0.0, 1.0, 0.0), side_by_side(p[0], p[1], p[2], 1.0))


@inline_algebra
def turned_about_z(X, s, c):
    """X exp([e_z] q), with s, c = sin q, cos q."""
    x, y, z, p = X
    return c * x + s * y, c * y - s * x, z, p


@inline_algebra
def cross_columns(a, b):
    """a x b."""
    return yzx(a * yzx(b) - yzx(a) * b)


@inline_algebra
def add_columns(A, B):
    """A + B."""
    return A[0] + B[0], A[1] + B[1], A[2] + B[2], A[3] + B[3]


@inline_algebra
def moments_in_parent(X, numbers, moments):
    """Moments X (Q h; h' m) X^T in the parent's frame, from the columns and numbers (R, p) of the pose X, and m, h and
    Q = (xx, xy, xz, yy, yz, zz)."""
    x, y, z, p = X
    R, t = numbers
    m, h, Q = moments
    a = x * Q[0] + y * Q[1] + z * Q[2] + p * h[0]
    b = x * Q[1] + y * Q[3] + z * Q[4] + p * h[1]
    c = x * Q[2] + y * Q[4] + z * Q[5] + p * h[2]
    d = x * h[0] + y * h[1] + z * h[2] + p * m
    return (a * R[0] + b * R[1] + c * R[2] + d * t[0], a * R[3] + b * R[4] + c * R[5] + d * t[1],
            a * R[6] + b * R[7] + c * R[8] + d * t[2], d)


@inline_algebra
def moments_of_speed(moments, V):
    """For each axis, the sum of m (r, 1) times the component of w x r + v, for a body of these moments with twist V."""
    x, y, z, h = moments
    w, v = V
    return v[0] * h + w[1] * z - w[2] * y, v[1] * h + w[2] * x - w[0] * z, v[2] * h + w[0] * y - w[1] * x


@inline_algebra
def momentum_of_moments(x, y, z):
    """Momentum (sum of m r x rdot, sum of m rdot), from the results x, y, z of `moments_of_speed`."""
    return (z[1] - y[2], x[2] - z[0], y[0] - x[1]), (x[3], y[3], z[3])
