"""Total derivatives of accelerations, multipliers and linear models by parameters, at rows of states.

Along a parameter p the independent coordinates and velocities are held, and all that depends on them follows. With
D the total derivative by p, Z_h = [G_h; R_y], Z = [G; R_w] (symbols: `liedyn.linearization.local`) and
F = ID(q, v, a) + G^T lambda - tau,

    Z_h q_p = -(dg/dp, 0)       Z v_p = -(D psi, 0)       M a_p + G^T lambda_p = -D F       G a_p = -D phi

each with what is known so far in D. The motions of the coordinates, and then the linear model, change by

    Z_h N_p = -(D(G_h) N, 0)    Z X_p = -(D psi', 0)      M a'_p + G^T lambda'_p = -D F'    G a'_p = -D phi'

with a prime for the variation along a column (N, X, a', lambda') of the linear model: mixed second variations
(`liedyn.sensitivity.second_order`). The multipliers' own derivatives are those of the smallest solution, as lambda is.
"""
from collections import namedtuple

import numpy as np

from liedyn.errors import ClosureError, listed, of_the_batch
from liedyn.model.packed import LINK_IV, LINK_NV, links_of
from liedyn.sensitivity.changes import (
    ARMATURE, DAMPING, GRAVITY, INERTIA, LENGTH, RADIUS, REST, SHIFT, SIDE_A, SIDE_B, STIFFNESS,
)
from liedyn.sensitivity.columns import Columns, Variations, forces_at_rest

Derivatives = namedtuple("Derivatives", "q v a lam A B f0")
"""By parameters, which are numbered by the last axis."""

GEOMETRIC = SHIFT, SIDE_A, SIDE_B, LENGTH, RADIUS
"""Changes by which coordinates have to follow."""
AT_REST = INERTIA, GRAVITY, ARMATURE, DAMPING, STIFFNESS, REST
"""Changes of which `liedyn.sensitivity.columns_at_rest` knows the forces."""
FOLLOWS = 1e-8
"""Constraints follow a parameter if what is left of their rates is this part of them: rounding leaves 1e-12 or so."""


class LinearModels:
    """The linear models at rows of states, and all that their derivatives are made of.

    Parameters
    ----------
    robot : Robot
    lead : tuple of int
        Leading axes of the states, for errors.
    coordinates, velocities : Independent
    R_y, R_w : ndarray, shape (states, p_y, nv), (states, p_w, nv)
    motion : Motion
        Rows of q, v, a and lambda.
    M : ndarray, shape (states, nv, nv)
    rank : ndarray of int, shape (states,)
        That of G.
    inputs : ndarray, shape (states, nv, nu)
    slopes : Slopes, optional
        Of the laws of force elements.
    first : int
        Number of the first of these states in a batch.
    """

    def __init__(self, robot, lead, coordinates, velocities, R_y, R_w, motion, M, rank, inputs, slopes=None,
                 first=0):
        self.robot, self.lead, self.motion, self.M, self.inputs = robot, lead, motion, M, inputs
        self.first, self.slopes = first, slopes
        self.groups = [(int(link[LINK_NV]), int(link[LINK_IV])) for link in links_of(robot.packed)[0]
                       if link[LINK_NV] > 1]
        self.y, self.w, self.R_y, self.R_w = coordinates, velocities, R_y, R_w
        self.reads = bool((self.y.virtual >= 0).any() or (self.w.virtual >= 0).any())
        states, n = len(motion.q), robot.nv
        one = np.broadcast_to(np.eye(n), (states, n, n))
        found = self._columns(n).along(Columns(*[None] * 4), Columns(None, one, None, None))
        self.G, E = found.rows.psi[:, 0], found.readers.psi[:, 0]
        self.holonomic = robot.holonomic
        self.Z = np.concatenate([self.G, self._rows(self.w, R_w, E)], axis=1)
        self.Z_h = np.concatenate([self.G[:, self.holonomic], self._rows(self.y, R_y, E)], axis=1)
        self.Z_inverse, self.Z_h_inverse = (np.linalg.pinv(Z) for Z in (self.Z, self.Z_h))
        self.G_inverse = _inverse_of_rank(self.G, rank)
        self.N, self.S = self.Z_h_inverse[:, :, -len(self.y.names):], self.Z_inverse[:, :, -len(self.w.names):]
        self.inertia = self.S.swapaxes(1, 2) @ M @ self.S
        self._linearize()

    def _columns(self, count):
        return Variations(self.robot, self.motion, [([], [])] * count, self.reads, self.slopes)

    @staticmethod
    def _rows(chosen, R, E):
        """R, with the rows of E that read virtual velocities."""
        R = R.copy()
        R[:, chosen.virtual >= 0] = E[:, chosen.virtual[chosen.virtual >= 0]]
        return R

    def _held(self, chosen, readers):
        """Rates of the chosen coordinates of cut joints, and zeros for the others."""
        found = np.zeros((*readers.shape[:-2], len(chosen.names), readers.shape[-1]))
        found[..., chosen.virtual >= 0, :] = readers[..., chosen.virtual[chosen.virtual >= 0], :]
        return found

    def follow(self, positions, rows, readers):
        """What of q, or of v or a, cancels these rates of the rows and of the chosen coordinates."""
        chosen, inverse = (self.y, self.Z_h_inverse) if positions else (self.w, self.Z_inverse)
        if positions:
            rows = rows[..., self.holonomic, :]
        rates = np.concatenate([rows, self._held(chosen, readers)], axis=-2)
        inverse = inverse.reshape(inverse.shape[0], *(1,) * (rates.ndim - 3), *inverse.shape[1:])
        return -inverse @ rates, rates

    def balance(self, force, free):
        """wdot, for which accelerations `free` + S wdot balance M a + force along S."""
        S = self.S.swapaxes(1, 2)
        S, SM = (x.reshape(len(x), *(1,) * (force.ndim - 3), *x.shape[1:]) for x in (S, S @ self.M))
        rest = np.moveaxis(S @ force + SM @ free, -2, 1)  # one factor for all columns of a state
        found = -np.linalg.solve(self.inertia, rest.reshape(*rest.shape[:2], -1))
        return np.moveaxis(found.reshape(rest.shape), 1, -2)

    def accelerate(self, force, free):
        """These accelerations, and wdot."""
        w_dot = self.balance(force, free)
        return free + self.S @ w_dot, w_dot

    def _linearize(self):
        """The columns of the linear model: y, w, then the inputs."""
        states, n, p = len(self.M), self.robot.nv, len(self.y.names)
        x, still = p + len(self.w.names), Columns(*[None] * 4)
        found = self._columns(p).along(still, Columns(self.N, None, None, None))
        delta, _ = self.follow(False, found.rows.psi[:, 0], found.readers.psi[:, 0])
        none = np.zeros((states, n, x - p)), np.zeros((states, n, self.inputs.shape[2]))
        N = np.concatenate([self.N, *none], axis=2)
        X = np.concatenate([delta, self.S, none[1]], axis=2)
        found = self._columns(N.shape[2]).along(still, Columns(N, X, None, None))
        free, _ = self.follow(False, found.rows.phi[:, 0], found.readers.phi[:, 0])
        force = found.force[:, 0].copy()
        force[:, :, x:] -= self.inputs
        A, self.w_dot = self.accelerate(force, free)
        L = -self.G_inverse.swapaxes(1, 2) @ (force + self.M @ A)
        self.columns, self.x, self.upper = Columns(N, X, A, L), x, found.readers.psi[:, 0]

    def pushed(self):
        """What the inputs do to the forces of force elements, column by column: actuators may be such elements."""
        if self.slopes is None:
            return None
        laws = self.robot.elements.laws
        pushed = np.zeros((len(self.M), self.columns.N.shape[2], self.slopes.rows.shape[1]))
        for actuator, row, at in laws.inputs:
            pushed[:, self.x + actuator, row] = -laws.numbers[at]
        return pushed

    def model(self):
        """A (states, x, x) and B (states, x, nu), as `linearize` has them."""
        p, x = len(self.y.names), self.x
        upper = self.R_y @ self.columns.X + self._held(self.y, self.upper)
        turned = self._bracket(self.motion.v[:, None], self.N.swapaxes(1, 2))
        upper[:, :, :p] -= self.R_y @ turned.swapaxes(1, 2)
        found = np.concatenate([upper, self.w_dot], axis=1)
        return found[:, :, :x], found[:, :, x:]

    def _bracket(self, v, N):
        """ad_v N, joint by joint, for v (..., nv) and N (..., nv): zero but for ball and free joints."""
        v, N = np.broadcast_arrays(v, N)
        found = np.zeros(N.shape)
        for i, j in self.groups:
            w, turn = slice(j, j + 3), slice(j, j + 3)
            found[..., turn] = np.cross(v[..., w], N[..., turn])
            if i == 6:  # the linear part: w x linear + v x angular
                slide = slice(j + 3, j + 6)
                found[..., slide] = np.cross(v[..., w], N[..., slide]) + np.cross(v[..., slide], N[..., turn])
        return found

    def derivatives(self, names, changes):
        """`Derivatives` by parameters, of three kinds apart.

        Some displace something, so that coordinates follow. Of others, all that displaces nothing, inverse dynamics is
        closed form. What is left, numbers of force elements, displaces nothing either.
        """
        found = None
        moves = np.array([bool(self.robot.row_names) and any(kind in GEOMETRIC for kind, *_ in own)
                          for own, _ in changes])
        rests = np.array([bool(own) and all(kind in AT_REST for kind, *_ in (*own, *of_elements))
                          for own, of_elements in changes])
        ways = (moves, lambda *some: self._derivatives(*some, True)), (rests, self._derivatives_at_rest), (
            ~moves & ~rests, lambda *some: self._derivatives(*some, False))
        for chosen, way in ways:
            k = np.flatnonzero(chosen)
            if not len(k):
                continue
            part = way([names[i] for i in k], [changes[i] for i in k])
            if found is None:
                found = Derivatives(*(np.empty((*x.shape[:-1], len(names))) for x in part))
            for x, y in zip(found, part):
                x[..., k] = y
        return found

    def _derivatives_at_rest(self, names, changes):
        """The mixed variation is what that of the parameter's own forces is, and M' a_p + G'^T lambda_p, G' a_p."""
        n, m, states = self.robot.nv, len(self.robot.row_names), len(self.M)
        force, mixed = forces_at_rest(self.robot, self.motion, [own for own, _ in changes], self.columns)
        a_p, w_dot_p = self.accelerate(force, np.zeros(force.shape))
        lam_p = -self.G_inverse.swapaxes(1, 2) @ (force + self.M @ a_p)
        one = np.broadcast_to(np.eye(n + m), (states, n + m, n + m))
        along = Variations(self.robot, self.motion, [([], [])] * (n + m), self.reads)
        found = along.along(self.columns, Columns(None, None, one[:, :n], one[:, n:]))
        both = np.concatenate([a_p, lam_p], axis=1)[:, None]
        free, _ = self.follow(False, found.rows.phi_mixed @ both, found.readers.phi_mixed @ both)
        lower = self.balance(mixed + found.mixed @ both, free)
        none = np.zeros((*a_p.shape,))
        upper = np.zeros((*lower.shape[:2], len(self.y.names), len(names)))
        model = np.concatenate([upper, lower], axis=2).swapaxes(1, 2)
        f0_p = np.concatenate([upper[:, 0], w_dot_p], axis=1)
        return Derivatives(none, none, a_p, lam_p, model[:, :, :self.x], model[:, :, self.x:], f0_p)

    def _derivatives(self, names, changes, moves):
        along = Variations(self.robot, self.motion, changes, self.reads, self.slopes)
        still, p = Columns(*[None] * 4), len(self.y.names)
        found = along.along(still, still)
        q_p = v_p = None
        if moves:
            q_p = self._followed(True, names, found.rows.g[:, 0], found.readers.g[:, 0])
            found = along.along(still, Columns(q_p, None, None, None))
            v_p = self._followed(False, names, found.rows.psi[:, 0], found.readers.psi[:, 0])
            found = along.along(still, Columns(q_p, v_p, None, None))
        free = self._followed(False, names, found.rows.phi[:, 0], found.readers.phi[:, 0])
        a_p, w_dot_p = self.accelerate(found.force[:, 0], free)
        lam_p = -self.G_inverse.swapaxes(1, 2) @ (found.force[:, 0] + self.M @ a_p)
        if moves:
            lam_p += self._turned_multipliers(along, q_p)
        if q_p is None:
            q_p = v_p = along.zeros(self.robot.nv)
        f0_p = np.concatenate([self.R_y @ v_p + self._held(self.y, found.readers.psi[:, 0]), w_dot_p], axis=1)
        two = Columns(q_p, v_p, a_p, lam_p)
        N_p, X_p = self._motions(along, names, two, moves)
        found = along.along(self.columns, two, N_p, X_p, self.pushed())
        free = self._followed(False, names, found.rows.phi_mixed, found.readers.phi_mixed)
        lower = self.balance(found.mixed, free)
        upper = self.R_y[:, None] @ X_p + self._held(self.y, found.readers.psi_mixed)
        if self.groups:
            upper[:, :p] -= self.R_y[:, None] @ self._bracket_by(v_p, N_p[:, :p])
        both = np.concatenate([upper, lower], axis=2).swapaxes(1, 2)  # (states, rows, columns, parameters)
        return Derivatives(q_p, v_p, a_p, lam_p, both[:, :, :self.x], both[:, :, self.x:], f0_p)

    def _bracket_by(self, v_p, N_p):
        """The derivatives of ad_v N by the parameters, ad_(v_p) N + ad_v N_p: (states, columns, nv, parameters)."""
        v, N = self.motion.v[:, None, None], self.N.swapaxes(1, 2)[:, :, None]
        found = self._bracket(v_p.swapaxes(1, 2)[:, None], N) + self._bracket(v, N_p.swapaxes(2, 3))
        return found.swapaxes(2, 3)

    def _motions(self, along, names, two, moves):
        """N_p and X_p, (states, columns, nv, parameters)."""
        states, columns = len(self.M), self.columns.N.shape[2]
        N_p = np.zeros((states, columns, self.robot.nv, along.count))
        X_p = N_p.copy()
        if moves:
            p = len(self.y.names)
            found = along.along(Columns(None, self.N, None, None), two)
            N_p[:, :p] = self._followed(True, names, found.rows.psi_mixed, found.readers.psi_mixed)
            N, X = (x[:, :, :self.x] for x in self.columns[:2])
            found = along.along(Columns(N, X, None, None), two, N_p[:, :self.x])
            X_p[:, :self.x] = self._followed(False, names, found.rows.psi_mixed, found.readers.psi_mixed)
        return N_p, X_p

    def _turned_multipliers(self, along, q_p):
        """What the smallest multipliers gain among those that have no force, as the redundant rows turn."""
        y = self.G_inverse @ self.motion.lam[:, :, None]
        found = along.along(Columns(None, y, None, None), Columns(q_p, None, None, None)).rows.psi_mixed[:, 0]
        return found - self.G @ (self.G_inverse @ found)

    def _followed(self, positions, names, rows, readers):
        """`follow`.

        Raises
        ------
        ClosureError
            The constraints cannot follow a parameter: redundant rows contradict each other.
        """
        found, rates = self.follow(positions, rows, readers)
        Z = self.Z_h if positions else self.Z
        left = np.abs(Z.reshape(len(Z), *(1,) * (rates.ndim - 3), *Z.shape[1:]) @ found + rates)
        worst = left.max(axis=-2, initial=0.0) > FOLLOWS * np.maximum(1.0, np.abs(rates).max(axis=-2, initial=0.0))
        if worst.any():
            b = int(np.argwhere(worst)[0][0])
            bad = [names[k] for k in np.flatnonzero(worst[b].reshape(-1, len(names)).any(axis=0))]
            owners = np.array(self.robot.row_owners)[self.holonomic if positions else slice(None)]
            rows_left = left[b].reshape(-1, *left.shape[-2:])[:, :len(owners)].max(axis=(0, 2))
            with of_the_batch(self.lead, self.first + b):
                raise ClosureError(
                    f"the constraints of {self.robot.name!r} cannot follow {listed(bad)}: redundant rows contradict "
                    "each other then; leave such parameters out", float(rows_left.max()),
                    str(owners[rows_left.argmax()]), self.motion.q[b])
        return found


def _inverse_of_rank(G, rank):
    """The pseudo-inverse of matrices (states, m, n) of known ranks."""
    if 0 in G.shape:
        return np.zeros(G.swapaxes(1, 2).shape)
    U, s, Vt = np.linalg.svd(G, full_matrices=False)
    kept = np.arange(s.shape[1]) < np.reshape(rank, (-1, 1))
    inverse = np.where(kept, 1.0, 0.0) / np.where(kept, s, 1.0)
    return (Vt.swapaxes(1, 2) * inverse[:, None]) @ U.swapaxes(1, 2)
