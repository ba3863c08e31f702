"""Force elements in second derivatives of linear models.

Force elements give the generalised forces tau_e(q, v) + S(q) u. A weighted sum of a mechanism's motion is a function
G of the state and of all generalised forces, linear in the latter. With mu = dG/dtau, and columns 1 and 2 that tau
follows, tau_1 = tau_q N_1 + tau_v X_1 + S u_1,

    g_12 = G_12 along (y, w, tau) + mu . tau_12        tau_12 = tau_q d_12 + tau_v v_12 + tau'' along (N, X, u)

The terms of the displacements d_12 and velocities v_12 are weights tau_q^T mu and tau_v^T mu in the Hessian of G. What
is left are second variations of the elements alone (`liedyn.linear.sensitivity.element_sensitivity`) along column 2,
then along column 1: their symmetric part is that of displacements q exp(d), d linear in the columns.
"""
# mypy: ignore-errors

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from liedyn.linear.sensitivity.law_sensitivity import element_slopes, pushed_by_inputs
from liedyn.linear.sensitivity.linear_model import inverse_of_rank
from liedyn.linear.sensitivity.link_sensitivity import Columns
from liedyn.linear.sensitivity.sensitivity_columns import Variations
from liedyn.linear.sensitivity.variations import Motion
from liedyn.mechanics.constraints.loops import constraint_jacobian
from liedyn.mechanics.tree.crba import crba


class OpenModel(NamedTuple):
    """Linear models of a mechanism without its force elements: B by all generalised forces (states, x, nv), N and X
    (states, nv, p_y), (states, nv, x), S (states, nv, p_w) and the ranks of the constraints."""

    B: np.ndarray
    N: np.ndarray
    X: np.ndarray
    S: np.ndarray
    rank: np.ndarray


class ElementLoads:
    """The force elements of a robot at rows of states, for its second derivatives.

    Parameters
    ----------
    robot : Robot
    mechanism : Robot
        The same without force elements, with its contacts in the modes of these states.
    state : tuple
        Rows of q, v and u; None for no inputs.
    loop : ElementLoop
        The elements as a feedback at these states (`liedyn.linear.closed_loop`).
    opened : OpenModel
    """

    def __init__(self, robot, mechanism, state, loop, opened):
        self._robot, self._mechanism, (self._q, self._v, self._u) = robot, mechanism, state
        self._loop, self._opened = loop, opened

    def by_tau(self, name):
        """The derivatives (states, size, nv) by generalised forces of rates "f", "a", "lam" or of "q"."""
        robot, opened = self._mechanism, self._opened
        if name == "f":
            return opened.B
        a = opened.S @ opened.B[:, -opened.S.shape[2]:]
        if name == "a":
            return a
        if name == "q":
            return np.zeros((len(a), robot.nv, robot.nv))
        G = constraint_jacobian(robot, self._q)
        return inverse_of_rank(G, opened.rank).swapaxes(1, 2) @ (np.eye(robot.nv) - crba(robot, self._q) @ a)

    def weights(self, mu):
        """Weights of displacements and velocities (states, sums, nv) for the derivatives mu of sums by tau."""
        return mu @ self._loop.by_q, mu @ self._loop.by_v

    def closed(self, H, mu):
        """Hessians (states, sums, x + nu, x + nu) of those by (y, w, u, tau) of the mechanism alone."""
        x, n, size = self._opened.X.shape[2], self._robot.nv, H.shape[2]
        T = np.zeros((len(H), 1, size, size - n))
        T[:, 0, range(size - n), range(size - n)] = 1.0
        T[:, 0, size - n:, :x] = self._loop.of_state(self._opened.N, self._opened.X)
        if self._loop.driven is not None:
            T[:, 0, size - n:, x:] = self._loop.driven
        found = T.swapaxes(2, 3) @ H @ T
        own = np.einsum("bsj,bcjx->bscx", mu, self._bent, optimize=True)
        own[:, :, :x] *= 0.5  # both orders of two states, one of an input and a state
        found[..., :x] -= own
        found[..., :x, :] -= own.swapaxes(2, 3)
        return found

    @functools.cached_property
    def _bent(self):
        """Second variations of -tau_e - S u (states, x + nu, nv, x), along states, then along all columns."""
        robot, (_, N, X, _, _) = self._robot, self._opened
        p, x, nu, states = N.shape[2], X.shape[2], len(robot.actuator_names), len(self._q)
        one = Columns(*(np.zeros((states, robot.nv, x + nu)) for _ in range(2)), None, None)
        one.N[:, :, :p], one.X[:, :, :x] = N, X
        two = Columns(*(each[:, :, :x] for each in one[:2]), None, None)
        rest = np.zeros((states, robot.nv)), np.zeros((states, len(robot.row_names)))
        at = Motion(np.array(self._q), np.array(self._v), *rest)  # those of users may be read-only
        along = Variations(robot, at, [([], [])] * x, False,
                           element_slopes(robot, self._q, self._v, self._u, (states,)))
        return along.of_force_elements(one, two, pushed_by_inputs(robot, self._q, x + nu, x))
