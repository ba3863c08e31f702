"""Some entries of the deviation of a state: where a robot has rolled to does not matter, only how it stands there.

Coordinates that are left out may become large. In R^n they do not appear in the others. On a ball or free joint they
do: a rotation vector mixes lean with yaw. There the reference r is carried along the directions L that are left out,
as far as they form a group H (yaw, yaw with both directions of a plane, all turns, all displacements, ...):

    u = log((r h)^-1 q),    h in H such that u_L = 0

h is a turn about one axis (the twist of a swing-twist decomposition) or any turn, and a displacement. A variation eta
of q, body-fixed, and zeta of r h, in the directions L, give du = J(u) eta - J(-u) zeta, hence with du_L = 0

    du = J(u) eta - J(-u)_{:L} (J(-u)_{LL})^-1 J(u)_{L:} eta
"""
# mypy: ignore-errors
import numpy as np

from liedyn.lie import exp, quaternion_from_rotation, so3_exp, so3_left_jacobian_inverse, so3_log
from liedyn.mechanics.tree.configuration import difference
from liedyn.motion.local_coordinates import Deviation, inverse_jacobian

ALL_TURNS = 3


class PartialDeviation(Deviation):
    """The entries `kept` of x = (y, w) from a reference state, carried along with coordinates that are left out.

    Attributes
    ----------
    kept : ndarray of int
        Indices in the whole x.
    """

    @classmethod
    def of(cls, whole, kept):
        """The same deviation as `whole`, of which only some entries are kept."""
        found = cls.by(whole.robot, whole.q, whole.v, whole.y, whole.w, whole.tolerance)
        found._keep(np.asarray(kept))
        return found

    def at(self, q, v):
        """The same coordinates about another reference state."""
        found = super().at(q, v)
        found._keep(self.kept)
        return found

    def _keep(self, kept):
        self.kept, self.zero = kept, np.zeros(len(kept))
        left = np.setdiff1d(np.arange(len(self.y.names)), kept)
        picked = [np.flatnonzero(row) for row in self.y.rows[left]]
        loose = {int(row[0]) for row in picked if len(row) == 1}
        self._carried = []
        for group in self.robot.groups:
            along = np.array([j - group.start for j in range(group.start, group.stop) if j in loose], dtype=int)
            if len(along) and is_group(along):
                self._carried.append((group, along))

    def __call__(self, q, v):
        x = super().__call__(q, v)
        if self._carried:
            places = self.y.rows @ self._from_carried(q)
            x[:len(places)] = np.where(self._reads, x[:len(places)], places)
        return x[self.kept]

    def derivative(self, q, v):
        """dx/dq in the tangent space at q, and dx/dv, each with a row for each entry that is kept."""
        by_q, by_v = super().derivative(q, v)
        if self._carried:
            u, turned = self._from_carried(q), np.eye(self.robot.nv)
            for group in self.robot.groups:
                turned[group, group] = inverse_jacobian(u[group])
            for group, L in self._carried:
                J, back = turned[group, group], inverse_jacobian(-u[group])
                turned[group, group] = J - back[:, L] @ np.linalg.solve(back[np.ix_(L, L)], J[L])
            rows = self.y.rows @ turned
            by_q[:len(rows)] = np.where(self._reads[:, None], by_q[:len(rows)], rows)
        return by_q[self.kept], by_v[self.kept]

    def state_at(self, x, robot=None):
        """The state with the difference x; what is left out is that of the reference state."""
        whole = np.zeros(len(self.y.names) + len(self.w.names))
        whole[self.kept] = x
        return super().state_at(whole, robot)

    def _from_carried(self, q):
        """log((r h)^-1 q) of all joints."""
        u = difference(self.robot, self.q, q)
        for group, along in self._carried:
            u[group] = from_carried(u[group], along)
        return u


def is_group(along):
    """True if these directions, of a ball joint's 3 or a free joint's 6, are closed: turns with what they turn."""
    turns, moves = [int(j) for j in along if j < 3], {int(j) - 3 for j in along if j >= 3}
    if len(turns) in (0, ALL_TURNS):
        return not turns or len(moves) in (0, 3)
    return len(turns) == 1 and moves in (set(), {turns[0]}, {0, 1, 2} - {*turns}, {0, 1, 2})


def from_carried(d, along):
    """u = log(h^-1 exp(d)), zero in the directions `along`, of a rotation vector d (3) or a twist (6)."""
    turns, moves, u = along[along < 3], along[along >= 3] - 3, np.zeros_like(d)
    R, R_h = so3_exp(d[:3]), np.eye(3)
    if len(turns) == ALL_TURNS:
        R_h = R
    elif len(turns):
        turn = quaternion_from_rotation(R)
        R_h = so3_exp(2.0 * np.arctan2(turn[turns[0]], turn[3]) * np.eye(3)[turns[0]])
        u[:3] = so3_log(R_h.T @ R)
        u[turns] = 0.0  # rounding
    else:
        u[:3] = d[:3]
    if len(d) > 3:
        inverse = so3_left_jacobian_inverse(u[:3])
        u[3:] = inverse @ (R_h.T @ exp(d)[:3, 3])
        u[3:] -= inverse[:, moves] @ np.linalg.solve(inverse[np.ix_(moves, moves)], u[3:][moves])
    return u
