"""Rotations about coordinate axes, on tuples: vectors and articulated inertias in the turned axes, and back.

A turn is (c, s), cosine and sine of its angle, and changes two coordinates only. An articulated inertia is turned about
z and then about x with half the operations of a general rotation.
"""
from liedyn.machine.compiled.jit import inline_algebra


@inline_algebra
def turned(turn, a, b):
    """The point (a, b) of a plane, rotated."""
    c, s = turn
    return c * a - s * b, s * a + c * b


@inline_algebra
def turned_back(turn, a, b):
    c, s = turn
    return c * a + s * b, c * b - s * a


@inline_algebra
def turned_block(turn, xx, xy, yx, yy):
    """T B T^T for a 2x2 matrix B and the turn T; its trace and its skew part do not change."""
    c, s = turn
    d, e, cs, ss = xx - yy, xy + yx, c * s, s * s
    t, w = ss * d + cs * e, cs * d - ss * e
    return xx - t, xy + w, yx + w, yy + t


@inline_algebra
def about_z(turn, a):
    x, y = turned(turn, a[0], a[1])
    return (x, y, a[2])


@inline_algebra
def about_x(turn, a):
    y, z = turned(turn, a[1], a[2])
    return (a[0], y, z)


@inline_algebra
def back_about_z(turn, a):
    x, y = turned_back(turn, a[0], a[1])
    return (x, y, a[2])


@inline_algebra
def back_about_x(turn, a):
    y, z = turned_back(turn, a[1], a[2])
    return (a[0], y, z)


@inline_algebra
def symmetric_about_z(turn, S):
    xx, xy, _, yy = turned_block(turn, S[0], S[1], S[1], S[3])
    xz, yz = turned(turn, S[2], S[4])
    return (xx, xy, xz, yy, yz, S[5])


@inline_algebra
def symmetric_about_x(turn, S):
    yy, yz, _, zz = turned_block(turn, S[3], S[4], S[4], S[5])
    xy, xz = turned(turn, S[1], S[2])
    return (S[0], xy, xz, yy, yz, zz)


@inline_algebra
def matrix_about_z(turn, B):
    xx, xy, yx, yy = turned_block(turn, B[0], B[1], B[3], B[4])
    xz, yz = turned(turn, B[2], B[5])
    zx, zy = turned(turn, B[6], B[7])
    return (xx, xy, xz, yx, yy, yz, zx, zy, B[8])


@inline_algebra
def matrix_about_x(turn, B):
    yy, yz, zy, zz = turned_block(turn, B[4], B[5], B[7], B[8])
    xy, xz = turned(turn, B[1], B[2])
    yx, zx = turned(turn, B[3], B[6])
    return (B[0], xy, xz, yx, yy, yz, zx, zy, zz)


@inline_algebra
def articulated_about_z(turn, I):
    return symmetric_about_z(turn, I[0]), matrix_about_z(turn, I[1]), symmetric_about_z(turn, I[2])


@inline_algebra
def articulated_about_x(turn, I):
    return symmetric_about_x(turn, I[0]), matrix_about_x(turn, I[1]), symmetric_about_x(turn, I[2])
