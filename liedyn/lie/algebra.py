"""SE(3) on tuples, as kernels use it: vectors are 3-tuples, rotations row-major 9-tuples.

A twist V = (omega, v) and a wrench F = (moment, force) are pairs of vectors; a pose X = (R, p) takes a child's
coordinates to its parent's. A rigid-body inertia is I = (m, h, J): mass, first moment m c, and the upper triangle
(xx, xy, xz, yy, yz, zz) of the rotational inertia about the frame's origin. Every function works on floats and lanes.
Symbols: Spencer 2004, appendix A.1; Featherstone 2008, chapter 2.
"""
from liedyn.machine.compiled.jit import inline_algebra

# ---- vectors and rotations


@inline_algebra
def add(a, b):
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@inline_algebra
def sub(a, b):
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@inline_algebra
def neg(a):
    return (-a[0], -a[1], -a[2])


@inline_algebra
def scale(c, a):
    return (c * a[0], c * a[1], c * a[2])


@inline_algebra
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inline_algebra
def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@inline_algebra
def add_cross(c, a, b):
    """c + a x b, with fused multiply-adds."""
    return (c[0] + a[1] * b[2] - a[2] * b[1], c[1] + a[2] * b[0] - a[0] * b[2], c[2] + a[0] * b[1] - a[1] * b[0])


@inline_algebra
def rotate(R, x):
    """R x."""
    return (R[0] * x[0] + R[1] * x[1] + R[2] * x[2],
            R[3] * x[0] + R[4] * x[1] + R[5] * x[2],
            R[6] * x[0] + R[7] * x[1] + R[8] * x[2])


@inline_algebra
def unrotate(R, x):
    """R^T x."""
    return (R[0] * x[0] + R[3] * x[1] + R[6] * x[2],
            R[1] * x[0] + R[4] * x[1] + R[7] * x[2],
            R[2] * x[0] + R[5] * x[1] + R[8] * x[2])


@inline_algebra
def rotate_rotation(A, B):
    """A B."""
    x = rotate(A, (B[0], B[3], B[6]))
    y = rotate(A, (B[1], B[4], B[7]))
    z = rotate(A, (B[2], B[5], B[8]))
    return (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2])


@inline_algebra
def about_z(R, s, c):
    """R exp([e_z] q), with s, c = sin q, cos q."""
    return (R[0] * c + R[1] * s, R[1] * c - R[0] * s, R[2],
            R[3] * c + R[4] * s, R[4] * c - R[3] * s, R[5],
            R[6] * c + R[7] * s, R[7] * c - R[6] * s, R[8])


@inline_algebra
def quaternion_rotation(x, y, z, w):
    """The rotation matrix of (x, y, z, w), normalised, so that rounding in it does not scale the body."""
    k = 2.0 / (x * x + y * y + z * z + w * w)
    xs, ys, zs = k * x, k * y, k * z
    return (1.0 - (y * ys + z * zs), x * ys - w * zs, x * zs + w * ys,
            x * ys + w * zs, 1.0 - (x * xs + z * zs), y * zs - w * xs,
            x * zs - w * ys, y * zs + w * xs, 1.0 - (x * xs + y * ys))


@inline_algebra
def symmetric_times(S, x):
    """S x, for the upper triangle S = (xx, xy, xz, yy, yz, zz)."""
    return (S[0] * x[0] + S[1] * x[1] + S[2] * x[2],
            S[1] * x[0] + S[3] * x[1] + S[4] * x[2],
            S[2] * x[0] + S[4] * x[1] + S[5] * x[2])


@inline_algebra
def rotate_symmetric(R, S):
    """R S R^T, upper triangle."""
    x = symmetric_times(S, (R[0], R[1], R[2]))
    y = symmetric_times(S, (R[3], R[4], R[5]))
    z = symmetric_times(S, (R[6], R[7], R[8]))
    a, b = rotate(R, x), rotate(R, y)
    return (a[0], a[1], a[2], b[1], b[2], R[6] * z[0] + R[7] * z[1] + R[8] * z[2])


# ---- twists and wrenches


@inline_algebra
def add6(A, B):
    return (add(A[0], B[0]), add(A[1], B[1]))


@inline_algebra
def sub6(A, B):
    return (sub(A[0], B[0]), sub(A[1], B[1]))


@inline_algebra
def neg6(A):
    return (neg(A[0]), neg(A[1]))


@inline_algebra
def scale6(c, A):
    return (scale(c, A[0]), scale(c, A[1]))


@inline_algebra
def dot6(F, V):
    """The power F . V of wrench F on twist V."""
    return dot(F[0], V[0]) + dot(F[1], V[1])


@inline_algebra
def add_power(x, F, V):
    """x + F . V, with fused multiply-adds."""
    (a, b), (w, v) = F, V
    return x + a[0] * w[0] + a[1] * w[1] + a[2] * w[2] + b[0] * v[0] + b[1] * v[1] + b[2] * v[2]


@inline_algebra
def compose(X, Y):
    """The pose X Y."""
    return (rotate_rotation(X[0], Y[0]), add(X[1], rotate(X[0], Y[1])))


@inline_algebra
def Ad(X, V):
    """Ad_X V: a child's twist in its parent's coordinates (Spencer A.1.4)."""
    w = rotate(X[0], V[0])
    return (w, add_cross(rotate(X[0], V[1]), X[1], w))


@inline_algebra
def Ad_inverse(X, V):
    """Ad_{X^-1} V: a parent's twist in the child's coordinates."""
    return (unrotate(X[0], V[0]), unrotate(X[0], add_cross(V[1], V[0], X[1])))


@inline_algebra
def Ad_dual(X, F):
    """Ad*_X F = Ad_X^T F: a parent's wrench in the child's coordinates."""
    return (unrotate(X[0], add_cross(F[0], F[1], X[1])), unrotate(X[0], F[1]))


@inline_algebra
def Ad_dual_inverse(X, F):
    """Ad*_{X^-1} F: a child's wrench in its parent's coordinates."""
    f = rotate(X[0], F[1])
    return (add_cross(rotate(X[0], F[0]), X[1], f), f)


@inline_algebra
def ad(V, W):
    """ad_V W, the Lie bracket: the rate of a twist W that is fixed in a frame moving with V."""
    return (cross(V[0], W[0]), add_cross(cross(V[0], W[1]), V[1], W[0]))


@inline_algebra
def add_ad(U, V, W):
    """U + ad_V W."""
    return (add_cross(U[0], V[0], W[0]), add_cross(add_cross(U[1], V[0], W[1]), V[1], W[0]))


@inline_algebra
def minus_ad_dual(V, F):
    """-ad*_V F = -ad_V^T F (Featherstone's V x* F): the rate of a wrench or momentum F fixed in a frame with twist
    V."""
    return (add_cross(cross(V[0], F[0]), V[1], F[1]), cross(V[0], F[1]))


@inline_algebra
def sub_ad_dual(G, V, F):
    """G - ad*_V F."""
    return (add_cross(add_cross(G[0], V[0], F[0]), V[1], F[1]), add_cross(G[1], V[0], F[1]))


# ---- inertia


@inline_algebra
def inertia_times(I, V):
    """I V, a momentum."""
    m, h, J = I
    w, v = V
    return (add_cross(symmetric_times(J, w), h, v), add_cross(scale(m, v), w, h))


@inline_algebra
def minus_square(a, b):
    """-sym([a][b]) as an upper triangle: (a.b) 1 - (a b^T + b a^T)/2."""
    d = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
    return (d - a[0] * b[0], -0.5 * (a[0] * b[1] + a[1] * b[0]), -0.5 * (a[0] * b[2] + a[2] * b[0]),
            d - a[1] * b[1], -0.5 * (a[1] * b[2] + a[2] * b[1]), d - a[2] * b[2])


@inline_algebra
def inertia_in_parent(X, I):
    """Ad*_{X^-1} I Ad_{X^-1}: the inertia of a body at pose X, in the parent's frame."""
    R, p = X
    m, h, J = I
    h, Jr = rotate(R, h), rotate_symmetric(R, J)
    # J' = R J R^T - [p][Rh] - [Rh][p] - m [p][p]; products such as [p][p] are expanded by minus_square
    shift = minus_square(p, add(add(h, h), scale(m, p)))
    return (m, add(h, scale(m, p)), add_symmetric(Jr, shift))


@inline_algebra
def add9(A, B):
    return add(A[:3], B[:3]) + add(A[3:6], B[3:6]) + add(A[6:], B[6:])


@inline_algebra
def add_symmetric(S, T):
    return (S[0] + T[0], S[1] + T[1], S[2] + T[2], S[3] + T[3], S[4] + T[4], S[5] + T[5])
