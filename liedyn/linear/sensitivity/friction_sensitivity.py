"""Sliding friction of contacts, varied in two directions to second order.

A contact with slip u = G_t v - b_t, direction of slip s = u / |u| and normal force N = -side lambda_n has the friction
lambda_t = mu N s. Along directions 1 and 2, where mu varies along 2 only,

    s_1 = (u_1 - s (s . u_1)) / |u|
    s_12 = (u_12 - s (s . u_12) - s_2 (s . u_1) - s (s_2 . u_1) - s_1 (s . u_2)) / |u|
    lambda_t,12 = mu N_12 s + mu (N s_12 + N_1 s_2 + N_2 s_1) + mu_2 (N s_1 + N_1 s)

so that friction is a known force except for the first term, in which the normal force is unknown: the effect of unit
normal forces on each other is one small linear system (Glocker 2001, 5.4;
`liedyn.motion.gradients.sliding_derivatives`). The forces of all rows of the contacts are counted, but the tangential
rows are no equations of motion.
"""
import numpy as np

from liedyn.linear.sensitivity.changes import FRICTION
from liedyn.mechanics.dynamics.terms import terms_kernel


class Friction:
    """The friction of the contacts that slide, at rows of states.

    Arrays are (states, columns of direction 1, rows, columns of direction 2); axes may have length one and are
    broadcast.

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
        Indices of all tangential rows.
    of_unit : ndarray, shape (states, t, contacts)
        mu s, column by column: friction forces of unit normal forces.
    """

    def __init__(self, robot, contacts, motion):
        self.contacts, numbers = contacts, range(len(contacts.names))
        self.rows = np.concatenate([np.arange(robot.packed.ints.size)[contacts.tangential(c)] for c in numbers])
        self.owner = np.concatenate([np.full(contacts.count[c] - 1, c) for c in numbers])
        psi = np.array([terms_kernel(robot.packed, q, v, np.empty(0))[4] for q, v in zip(motion.q, motion.v)])
        slip = psi[:, None, self.rows, None]
        self.size = np.sqrt(self._sum(slip * slip))
        self.s, self.N = slip / self.size, self.normal(motion.lam[:, None, :, None])
        self.mu = contacts.friction[self.owner, None]
        self.of_unit = (self.mu * self.s)[:, 0] * (self.owner[:, None] == np.arange(len(contacts.names)))

    def _sum(self, x):
        """Sums over the rows of each contact, repeated for each of its rows."""
        same = (self.owner[:, None] == self.owner).astype(float)
        return same @ x

    def normals(self, lam):
        """Normal forces of the contacts, from all multipliers: N = -side lambda_n."""
        return -self.contacts.side[:, None] * lam[..., self.contacts.first, :]

    def normal(self, lam):
        """Normal force of the contact to which each tangential row belongs."""
        return self.normals(lam)[..., self.owner, :]

    def coefficients(self, changes):
        """Derivatives of the coefficients of friction by the parameters, for each tangential row."""
        names = self.contacts.index[self.owner]
        return np.array([[sum(x for kind, k, x in own if kind == FRICTION and k == index) for own, _ in changes]
                         for index in names], dtype=float)

    def turned(self, u):
        """Derivative of the direction of slip along a change u of the slip: (u - s (s . u)) / |slip|."""
        return (u - self.s * self._sum(self.s * u)) / self.size

    def known(self, u, mu):
        """The known part of the derivative of lambda_t along one direction: mu N ds + dmu N s."""
        return self.mu * self.N * self.turned(u) + mu * self.N * self.s

    def known_mixed(self, one, two, u_12, mu_2):
        """The known part of lambda_t,12, for pairs (slip, multipliers) along both directions."""
        (u_1, N_1), (u_2, N_2) = ((u, self.normal(lam)) for u, lam in (one, two))
        s, s_1, s_2, dot = self.s, self.turned(u_1), self.turned(u_2), self._sum
        s_12 = self.turned(u_12) - (s_2 * dot(s * u_1) + s * dot(s_2 * u_1) + s_1 * dot(s * u_2)) / self.size
        return self.mu * (self.N * s_12 + N_1 * s_2 + N_2 * s_1) + mu_2 * (self.N * s_1 + N_1 * s)
