"""Sliding friction of contacts, varied in two directions to second order.

With the slip u = G_t v - b_t of a contact, its direction s = u / |u| and its normal force N = -side lambda_n, friction
is lambda_t = mu N s. Along directions 1 and 2, of which mu changes along 2 only,

    s_1 = (u_1 - s (s . u_1)) / |u|
    s_12 = (u_12 - s (s . u_12) - s_2 (s . u_1) - s (s_2 . u_1) - s_1 (s . u_2)) / |u|
    lambda_t,12 = mu N_12 s + mu (N s_12 + N_1 s_2 + N_2 s_1) + mu_2 (N s_1 + N_1 s)

so that friction is a force that is known but for the first term, in which the normal force is one of the unknowns: what
a unit of it makes of itself is one small system (Glocker 2001, 5.4; `liedyn.motion.gradients.sliding_derivatives`). All
rows of the contacts count for forces, the tangential ones are no equations of motion.
"""
import numpy as np

from liedyn.linear.sensitivity.changes import FRICTION
from liedyn.mechanics.dynamics.terms import terms_kernel


class Friction:
    """That of the contacts that slide, at rows of states.

    Arrays are (states, columns of direction 1, rows, columns of direction 2), one of some of which may be single.

    Parameters
    ----------
    robot : Robot
        With these contacts closed in all their rows.
    contacts : Contacts
    motion : Motion
        Rows of q, v, a and lambda.

    Attributes
    ----------
    rows : ndarray of int, shape (t,)
        All tangential ones.
    of_unit : ndarray, shape (states, t, contacts)
        mu s, column by column: friction for unit normal forces.
    """

    def __init__(self, robot, contacts, motion):
        self.contacts, numbers = contacts, range(len(contacts.names))
        self.rows = np.concatenate([np.arange(robot.ints.size)[contacts.tangential(c)] for c in numbers])
        self.owner = np.concatenate([np.full(contacts.count[c] - 1, c) for c in numbers])
        psi = np.array([terms_kernel(robot.packed, q, v, np.empty(0))[4] for q, v in zip(motion.q, motion.v)])
        slip = psi[:, None, self.rows, None]
        self.size = np.sqrt(self._sum(slip * slip))
        self.s, self.N = slip / self.size, self.normal(motion.lam[:, None, :, None])
        self.mu = contacts.friction[self.owner, None]
        self.of_unit = (self.mu * self.s)[:, 0] * (self.owner[:, None] == np.arange(len(contacts.names)))

    def _sum(self, x):
        """Sums over the rows of each contact, for each row."""
        same = (self.owner[:, None] == self.owner).astype(float)
        return same @ x

    def normals(self, lam):
        """Normal forces of the contacts, from all multipliers."""
        return -self.contacts.side[:, None] * lam[..., self.contacts.first, :]

    def normal(self, lam):
        """The same for each tangential row."""
        return self.normals(lam)[..., self.owner, :]

    def coefficients(self, changes):
        """How the coefficients of friction change with parameters, for each tangential row."""
        names = self.contacts.index[self.owner]
        return np.array([[sum(x for kind, k, x in own if kind == FRICTION and k == index) for own, _ in changes]
                         for index in names], dtype=float)

    def turned(self, u):
        """How the direction of slip changes with the slip."""
        return (u - self.s * self._sum(self.s * u)) / self.size

    def known(self, u, mu):
        """What of lambda_t is known along one direction."""
        return self.mu * self.N * self.turned(u) + mu * self.N * self.s

    def known_mixed(self, one, two, u_12, mu_2):
        """What of lambda_t,12 is known, for pairs (slip, multipliers) along both directions."""
        (u_1, N_1), (u_2, N_2) = ((u, self.normal(lam)) for u, lam in (one, two))
        s, s_1, s_2, dot = self.s, self.turned(u_1), self.turned(u_2), self._sum
        s_12 = self.turned(u_12) - (s_2 * dot(s * u_1) + s * dot(s_2 * u_1) + s_1 * dot(s * u_2)) / self.size
        return self.mu * (self.N * s_12 + N_1 * s_2 + N_2 * s_1) + mu_2 * (self.N * s_1 + N_1 * s)
