"""Rows of constraints in numbers of any kind, as a robot has them: residual, velocity and acceleration.

All is seen in the axes of frame A, which is on the parent: twists of frame B relative to A, at A's origin, or at B's
where the rows follow it. Residuals of turns are other numbers than the robot's, and vanish where those do.
"""
import numpy as np

from liedyn.model.frames import joint_basis
from liedyn.model.kinds import LOOP_KINDS, TWIST

AT_B = "spherical", "inline", "planar"
"""Cut joints whose rows follow frame B."""


def cross(a, b):
    """NumPy's moves axes about first, which takes longer than fifty digits."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


class Seen:
    """Frame B in the axes of A: its place p, turn R, and rates."""

    def __init__(self, A, B, basis):
        (Ra, pa, wa, dwa, ua, dua), (Rb, pb, wb, dwb, ub, dub) = A, B
        axes = (Ra @ basis).T
        x, u = pb - pa, ub - ua

        def rate(y, y_dot):
            """A vector and its rate, both seen in A, which turns."""
            return axes @ y, axes @ (y_dot - cross(wa, y))

        self.R, self.p = axes @ Rb, axes @ x
        self.w, self.dw = rate(wb - wa, dwb - dwa)
        self.v, self.dv = rate(u - cross(wa, x), dub - dua - cross(dwa, x) - cross(wa, u))
        self.at_a = rate(u - cross(wb, x), dub - dua - cross(dwb, x) - cross(wb, u))

    def direction(self, d):
        """One that is constant in B, and its rate."""
        d = self.R @ d
        return d, cross(self.w, d)


def cut_rows(each, A, B, number):
    """Those of a cut joint but universal and helical ones."""
    basis = number(joint_basis(each.axes))
    seen = Seen(A, B, basis)
    v, dv = (seen.v, seen.dv) if each.kind in AT_B else seen.at_a
    E = seen.R @ basis
    turn = np.array([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]]) / 2
    if "wz" not in LOOP_KINDS[each.kind].forbidden:  # turns about z leave where its z axis points
        turn = np.array([-E[1, 2], E[0, 2], 0 * E[0, 2]])
    place, rate, rate_2 = np.concatenate([turn, seen.p]), np.concatenate([seen.w, v]), np.concatenate([seen.dw, dv])
    return [(place[k], rate[k], rate_2[k]) for k in map(TWIST.index, LOOP_KINDS[each.kind].forbidden)]


def along(n, n_dot, v, dv):
    """n . v and its rate."""
    return n @ v, n @ dv + n_dot @ v


def unit(x, x_dot, sqrt):
    """x / |x| and its rate."""
    size = sqrt(x @ x)
    n = x / size
    return n, (x_dot - n * (n @ x_dot)) / size, size


def contact_rows(each, A, B, number, sqrt, length, radius):
    """Those of points, directions and surfaces in contact."""
    seen = Seen(A, B, number(joint_basis((each.axis,))))
    p, w, dw, v, dv, e = seen.p, seen.w, seen.dw, seen.v, seen.dv, number(np.eye(3)[2])
    if each.kind == "on_plane":
        return [(p[2], v[2], dv[2])]
    if each.kind == "knife_edge":
        axis = number(each.child_axis)
        return [(None, *along(*seen.direction(axis / sqrt(axis @ axis)), v, dv))]
    if each.kind in ("distance", "on_cylinder", "sphere_on_sphere"):
        keep = number(np.diag([1.0, 1.0, float(each.kind != "on_cylinder")]))
        n, n_dot, size = unit(keep @ p, keep @ v, sqrt)
        first = (size - length - radius, *along(n, n_dot, v, dv))
        if each.kind != "sphere_on_sphere":
            return [first]
        s = v - radius * cross(w, n)
        ds = dv - radius * (cross(dw, n) + cross(w, n_dot))
        power, rate = along(n, n_dot, s, ds)
        return [first, *((None, *x) for x in zip(s - n * power, ds - n_dot * power - n * rate))]
    assert each.kind == "disk_on_plane"
    axis = number(each.child_axis)
    d, d_dot = seen.direction(axis / sqrt(axis @ axis))
    n, n_dot, size = unit(e - d * d[2], -d_dot * d[2] - d * d_dot[2], sqrt)
    c = v - radius * cross(w, n)
    dc = dv - radius * (cross(dw, n) + cross(w, n_dot))
    return [(p[2] - radius * size, c[2], dc[2]), (None, c[0], dc[0]), (None, c[1], dc[1])]
