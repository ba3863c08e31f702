"""Runs of the five-bar in complex numbers, written from scratch for complex-step derivatives (Squire and Trapp 1998).

Planar links in absolute angles, the tip held by two rows, classical Runge-Kutta steps on the multiplier equations and
the projection of `simulate`: positions by Newton steps along M^-1 G^T, M that of the state before, then velocities.
"""
import numpy as np

LENGTHS, CENTRES = (1.0, 1.5, 1.5, 1.0), (0.5, 0.75, 0.75, 0.5)
MASSES, INERTIAS, GRAVITY = (2.0, 3.0, 3.0, 2.0), (1.0, 2.0, 2.0, 1.0), 9.81
"""Inertias about the centres of mass."""
SUM = np.tril(np.ones((4, 4)))  # absolute angles


class ComplexFiveBar:
    """The five-bar with its masses and lengths as attributes, which may be complex."""

    def __init__(self, masses=MASSES, lengths=LENGTHS, centres=CENTRES, support=1.0):
        self.m, self.l, self.c, self.support = (np.array(x, complex) for x in (masses, lengths, centres, support))

    def arms(self, k):
        """How far each link carries the centre of link k."""
        return np.concatenate([self.l[:k], self.c[k:k + 1], np.zeros(3 - k)])

    def terms(self, q, w):
        """M, h, G and Gdot v for absolute speeds w = SUM v, all by relative angles."""
        angles = SUM @ q
        M, h = np.diag(np.array(INERTIAS, complex)), np.zeros(4, complex)
        for k in range(4):
            arms = self.arms(k)
            J = np.array([-arms * np.sin(angles), arms * np.cos(angles)])
            drift = np.array([-(arms * np.cos(angles)) @ w ** 2, -(arms * np.sin(angles)) @ w ** 2])
            M = M + self.m[k] * J.T @ J
            h = h + self.m[k] * J.T @ (drift + [0.0, GRAVITY])
        # the point of the last link that is at the support: off the constraint it is not the tip
        tip = np.array([-self.l * np.sin(angles), self.l * np.cos(angles)])
        x, y = -self.residual(q)
        G = tip + np.outer([-y, x], [0.0, 0.0, 0.0, 1.0])
        drift = np.array([-(self.l * np.cos(angles)) @ w ** 2, -(self.l * np.sin(angles)) @ w ** 2])
        drift = drift + w[3] * np.array([1.0, -1.0]) * (tip @ w)[::-1]
        return SUM.T @ M @ SUM, SUM.T @ h, G @ SUM, drift

    def residual(self, q):
        """How far the tip is from its support."""
        angles = SUM @ q
        return np.array([self.l @ np.cos(angles) - self.support, self.l @ np.sin(angles)])

    def accelerations(self, q, v, tau):
        M, h, G, drift = self.terms(q, SUM @ v)
        K = np.block([[M, G.T], [G, np.zeros((2, 2))]])
        return np.linalg.solve(K, np.concatenate([tau - h, -drift]))[:4]

    def project(self, q, v):
        """The nearest closed position and consistent velocity, in the metric of M(q)."""
        M = self.terms(q, 0.0 * v)[0]

        def nearest(G, left):
            X = np.linalg.solve(M, G.T)
            return -X @ np.linalg.solve(G @ X, left)

        for _ in range(6):
            q = q + nearest(self.terms(q, 0.0 * v)[2], self.residual(q))
        G = self.terms(q, 0.0 * v)[2]
        return q, v + nearest(G, G @ v)

    def run(self, q, v, tau, h, steps):
        """(q, v) at the end of so many steps, with a row of tau each, or one for all."""
        for k in range(steps):
            u = tau if np.ndim(tau) == 1 else tau[k]
            kq, kv, q_k, v_k = [], [], q, v
            for part in (0.0, 0.5, 0.5, 1.0):
                if kq:
                    q_k, v_k = q + part * h * kq[-1], v + part * h * kv[-1]
                kq.append(v_k)
                kv.append(self.accelerations(q_k, v_k, u))
            q = q + h / 6.0 * (kq[0] + 2.0 * kq[1] + 2.0 * kq[2] + kq[3])
            v = v + h / 6.0 * (kv[0] + 2.0 * kv[1] + 2.0 * kv[2] + kv[3])
            q, v = self.project(q, v)
        return np.concatenate([q, v])
