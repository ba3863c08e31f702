"""Articulated-body inertias on tuples: any symmetric 6x6 matrix that maps a twist to a wrench, as three 3x3 blocks.

(moment, force) = [[A, B], [B^T, C]] (omega, v): A and C are upper triangles (xx, xy, xz, yy, yz, zz), B is row-major.
"""
from liedyn.lie.algebra import (
    add, add9, add_cross, add_symmetric, rotate, rotate_rotation, rotate_symmetric, symmetric_times, unrotate,
)
from liedyn.machine.compiled.jit import inline_algebra


@inline_algebra
def articulated(lane_zero, I):
    """A rigid body's inertia (m, h, J) in block form; `lane_zero` is a zero of the kernel's number type."""
    m, h, J = I
    o = lane_zero
    return ((o + J[0], o + J[1], o + J[2], o + J[3], o + J[4], o + J[5]),
            (o, o - h[2], o + h[1], o + h[2], o, o - h[0], o - h[1], o + h[0], o),
            (o + m, o, o, o + m, o, o + m))


@inline_algebra
def articulated_times(I, V):
    A, B, C = I
    return (add(symmetric_times(A, V[0]), rotate(B, V[1])), add(unrotate(B, V[0]), symmetric_times(C, V[1])))


@inline_algebra
def add_articulated(I, K):
    return add_symmetric(I[0], K[0]), add9(I[1], K[1]), add_symmetric(I[2], K[2])


@inline_algebra
def without_direction(I, U, d):
    """I - d U U^T: the inertia of a body behind a joint that moves freely along one screw."""
    A, B, C = I
    u, w = U
    x, y, z = d * u[0], d * u[1], d * u[2]
    p, q, r = d * w[0], d * w[1], d * w[2]
    return ((A[0] - x * u[0], A[1] - x * u[1], A[2] - x * u[2], A[3] - y * u[1], A[4] - y * u[2], A[5] - z * u[2]),
            (B[0] - x * w[0], B[1] - x * w[1], B[2] - x * w[2], B[3] - y * w[0], B[4] - y * w[1], B[5] - y * w[2],
             B[6] - z * w[0], B[7] - z * w[1], B[8] - z * w[2]),
            (C[0] - p * w[0], C[1] - p * w[1], C[2] - p * w[2], C[3] - q * w[1], C[4] - q * w[2], C[5] - r * w[2]))


@inline_algebra
def articulated_in_parent(X, I):
    """Ad*_{X^-1} I Ad_{X^-1}: the inertia in the parent's frame; rotated by R, then shifted by p."""
    R, p = X
    B = rotate_rotation(rotate_rotation(R, I[1]), (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8]))
    return articulated_shifted(p, (rotate_symmetric(R, I[0]), B, rotate_symmetric(R, I[2])))


@inline_algebra
def articulated_shifted(p, I):
    """The inertia about another point, seen from which the old one is at p: B' = B + [p] C, A' = A + [p] B^T - B'
    [p]."""
    A, B, C = I
    # columns of B' = B + [p] C; then column k of [p] B^T is p x (row k of B), and row k of -B' [p] is p x (row k of B')
    c0 = add_cross((B[0], B[3], B[6]), p, (C[0], C[1], C[2]))
    c1 = add_cross((B[1], B[4], B[7]), p, (C[1], C[3], C[4]))
    c2 = add_cross((B[2], B[5], B[8]), p, (C[2], C[4], C[5]))
    # the sum is symmetric: its upper triangle, row by row
    a0 = add_cross((A[0], A[1], A[2]), p, (c0[0], c1[0], c2[0]))
    a1 = add_cross((A[1], A[3], A[4]), p, (c0[1], c1[1], c2[1]))
    a2 = add_cross((A[2], A[4], A[5]), p, (c0[2], c1[2], c2[2]))
    b0, b1, b2 = (B[0], B[1], B[2]), (B[3], B[4], B[5]), (B[6], B[7], B[8])
    return ((a0[0] + p[1] * b0[2] - p[2] * b0[1], a0[1] + p[1] * b1[2] - p[2] * b1[1],
             a0[2] + p[1] * b2[2] - p[2] * b2[1], a1[1] + p[2] * b1[0] - p[0] * b1[2],
             a1[2] + p[2] * b2[0] - p[0] * b2[2], a2[2] + p[0] * b2[1] - p[1] * b2[0]),
            (c0[0], c1[0], c2[0], c0[1], c1[1], c2[1], c0[2], c1[2], c2[2]), C)
