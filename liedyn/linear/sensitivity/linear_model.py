"""Total derivatives of accelerations, multipliers and linear models by parameters, at rows of states.

Along a parameter p the independent coordinates and velocities are held constant, and the dependent ones follow. With
D the total derivative by p, Z_h = [G_h; R_y], Z = [G; R_w] (symbols: `liedyn.linear.local`) and
F = ID(q, v, a) + G^T lambda - tau,

    Z_h q_p = -(dg/dp, 0)       Z v_p = -(D psi, 0)       M a_p + G^T lambda_p = -D F       G a_p = -D phi

where D contains the derivatives that are already known. The null-space bases, and then the linear model, change by

    Z_h N_p = -(D(G_h) N, 0)    Z X_p = -(D psi', 0)      M a'_p + G^T lambda'_p = -D F'    G a'_p = -D phi'

where a prime is the variation along a column (N, X, a', lambda') of the linear model: mixed second variations
(`liedyn.linear.sensitivity.second_order_sensitivity`). The derivatives of the multipliers are those of the least-norm
solution.
"""
import math
from collections import namedtuple

import numpy as np

from liedyn.linear.sensitivity.changes import (
    ARMATURE, DAMPING, GRAVITY, INERTIA, LENGTH, RADIUS, REST, SHIFT, SIDE_A, SIDE_B, STIFFNESS,
)
from liedyn.linear.sensitivity.law_sensitivity import pushed_by_inputs
from liedyn.linear.sensitivity.link_sensitivity import Columns
from liedyn.linear.sensitivity.model_parameters import body_displacements
from liedyn.linear.sensitivity.sensitivity_columns import Variations, brackets, forces_at_rest
from liedyn.machine.errors import ClosureError, listed, of_the_batch

Derivatives = namedtuple("Derivatives", "q v a lam A B C D f0")
"""Derivatives by parameters, which are numbered by the last axis."""

Chosen = namedtuple("Chosen", "y w R_y R_w")
"""The independent coordinates and velocities, each an `Independent`, and their rows at each state, (states, p, nv)."""

At = namedtuple("At", "motion M rank inputs")
"""Where linear models are made: a `Motion`, rows of q, v, a and lambda; mass matrices M, (states, nv, nv); ranks of G,
(states,); and the forces of unit inputs, (states, nv, nu)."""

Besides = namedtuple("Besides", "slopes outputs friction", defaults=(None, None, None))
"""`Slopes` of the laws of force elements, `Outputs` if they are not the independent coordinates, and `Friction` of
contacts that slide, all of whose rows are closed in the robot."""

GEOMETRIC = SHIFT, SIDE_A, SIDE_B, LENGTH, RADIUS
"""Kinds of changes that displace something, so that coordinates have to follow."""
AT_REST = INERTIA, GRAVITY, ARMATURE, DAMPING, STIFFNESS, REST
"""Kinds of changes with a closed form of the forces (`liedyn.linear.sensitivity.sensitivity_columns`)."""
FOLLOWS = 1e-8
"""Constraints follow a parameter if their rates are cancelled up to this part: rounding leaves 1e-12 or so."""


class LinearModels:
    """The linear models at rows of states, and the matrices from which their derivatives are made.

    Parameters
    ----------
    robot : Robot
    batch : tuple
        Leading axes of all states, and the number of the first one of these, for error messages.
    chosen : Chosen
    at : At
    besides : Besides
    """

    def __init__(self, robot, batch, chosen, at, besides):
        self.robot, (motion, M, rank, inputs) = robot, at
        self.motion, self.M, self.inputs = motion, M, inputs
        (self.lead, self.first), (self.slopes, self.outputs, self.friction) = batch, besides
        self.y, self.w, self.R_y, self.R_w = chosen
        _, outputs, friction = besides
        self.reads = bool((self.y.virtual >= 0).any() or (self.w.virtual >= 0).any())
        self.reads = self.reads or outputs is not None and outputs.reads
        states, n = len(motion.q), robot.nv
        one = np.broadcast_to(np.eye(n), (states, n, n))
        found = self._columns(n).along(Columns(*[None] * 4), Columns(None, one, None, None))
        self.G, self.E = found.rows.psi[:, 0], found.readers.psi[:, 0]
        self.holonomic, self.equations = robot.holonomic, np.ones(self.G.shape[1], dtype=bool)
        if friction is not None:
            self.slip_rows = self.G[:, friction.rows].copy()
            self.G[:, friction.rows], self.equations[friction.rows] = 0.0, False
        self.Z = np.concatenate([self.G[:, self.equations], self._rows(self.w, self.R_w, self.E)], axis=1)
        self.Z_h = np.concatenate([self.G[:, self.holonomic], self._rows(self.y, self.R_y, self.E)], axis=1)
        self.Z_inverse, self.Z_h_inverse = (np.linalg.pinv(Z) for Z in (self.Z, self.Z_h))
        self.G_inverse, self.redundant = inverse_of_rank(self.G, rank), bool((rank < self.G.shape[1]).any())
        self.N, self.S = (inverse[:, :, inverse.shape[2] - len(chosen.names):] for inverse, chosen in (
            (self.Z_h_inverse, self.y), (self.Z_inverse, self.w)))
        self.inertia = self.S.swapaxes(1, 2) @ M @ self.S
        if friction is not None:  # normal forces, by the friction of unit normal forces on each other
            self.drag = self.slip_rows.swapaxes(1, 2) @ friction.of_unit
            own = self._normal(self.drag, np.zeros(self.drag.shape))
            self.grip = np.linalg.inv(np.eye(own.shape[-1]) - own)
        self._linearize()

    def _columns(self, count):
        return Variations(self.robot, self.motion, [([], [])] * count, self.reads, self.slopes)

    @staticmethod
    def _rows(chosen, R, E):
        """R, with the rows of E where R reads virtual velocities."""
        R = R.copy()
        R[:, chosen.virtual >= 0] = E[:, chosen.virtual[chosen.virtual >= 0]]
        return R

    def _held(self, chosen, readers):
        """Rates of those chosen coordinates that belong to cut joints, and zeros for the others."""
        found = np.zeros((*readers.shape[:-2], len(chosen.names), readers.shape[-1]))
        found[..., chosen.virtual >= 0, :] = readers[..., chosen.virtual[chosen.virtual >= 0], :]
        return found

    def follow(self, positions, rows, readers):
        """Displacement (velocity, acceleration) that cancels these rates of the rows and of the chosen coordinates."""
        chosen, inverse = (self.y, self.Z_h_inverse) if positions else (self.w, self.Z_inverse)
        rows = rows[..., self.holonomic if positions else self.equations, :]
        rates = np.concatenate([rows, self._held(chosen, readers)], axis=-2)
        return -_beside(inverse, rates) @ rates, rates

    def balance(self, force, free):
        """wdot for which the accelerations `free` + S wdot fulfil S^T (M a + force) = 0."""
        S = self.S.swapaxes(1, 2)
        S, SM = _beside(S, force), _beside(S @ self.M, force)
        rest = np.moveaxis(S @ force + SM @ free, -2, 1)  # one factorisation for all columns of a state
        found = -np.linalg.solve(self.inertia, rest.reshape(*rest.shape[:2], math.prod(rest.shape[2:])))
        return np.moveaxis(found.reshape(rest.shape), 1, -2)

    def accelerate(self, force, free):
        """The accelerations `free` + S wdot, and wdot."""
        w_dot = self.balance(force, free)
        return free + _beside(self.S, free) @ w_dot, w_dot

    def multipliers(self, force, a):
        """The least-norm multipliers that balance M a + force."""
        return -_beside(self.G_inverse.swapaxes(1, 2), force) @ (force + _beside(self.M, a) @ a)

    def _normal(self, force, free, more=0.0):
        """Normal forces of sliding contacts, without the effect of their own friction."""
        return self.friction.normals(self.multipliers(force, self.accelerate(force, free)[0]) + more)

    def rubbed(self, force, free, known, more=0.0):
        """`force` plus the sliding friction: its `known` part, and the part that changes of normal forces make.

        `more` are multipliers besides those that balance the force.
        """
        if self.friction is None:
            return force
        force = force + _beside(self.slip_rows.swapaxes(1, 2), force) @ known
        return force + _beside(self.drag @ self.grip, force) @ self._normal(force, free, more)

    def with_friction(self, lam, known):
        """Multipliers with those of the sliding friction in the tangential rows."""
        if self.friction is not None:
            pressed = _beside(self.friction.of_unit, lam) @ self.friction.normals(lam)
            lam[..., self.friction.rows, :] = known + pressed
        return lam

    def _linearize(self):
        """The columns of the linear model: those of y, of w, then of the inputs."""
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
        known, turned = None, 0.0
        if self.friction is not None:
            self.slip = found.rows.psi[:, 0, self.friction.rows]
            known = self.friction.known(self.slip[:, None], 0.0)[:, 0]
        shared = self.redundant and (self.friction is not None or self.outputs is not None and self.outputs.feel)
        if shared:
            turned = self._turned_rows(self._columns(N.shape[2]), N)
        more = self._out_of_range(turned) if shared else 0.0
        force = self.rubbed(force, free, known, more)
        A, _ = self.accelerate(force, free)
        L = self.with_friction(self.multipliers(force, A) + more, known)
        if shared:
            self.shares = self.G_inverse @ (L - turned)  # variation of y in lambda = G y
        self.columns, self.x = Columns(N, X, A, L), x

    def pushed(self):
        """Effect of the inputs on the forces of force elements, column by column: actuators may be such elements."""
        if self.slopes is None:
            return None
        return pushed_by_inputs(self.robot, self.motion.q, self.columns.N.shape[2], self.x)

    def derivatives(self, names, changes):
        """`Derivatives` by parameters, in three groups.

        Parameters of the first group displace something, so that coordinates follow. Those of the second change forces
        only, by a closed form of inverse dynamics. The third are numbers of force elements, which displace nothing
        either.
        """
        n, m, found = self.robot.nv, len(self.robot.row_names), None
        if not names:
            rows = len(self.y.names) if self.outputs is None else self.outputs.CD.shape[1]
            x, nu = self.x, self.inputs.shape[2]
            return Derivatives(*(np.zeros((len(self.M), *size, 0)) for size in (
                (n,), (n,), (n,), (m,), (x, x), (x, nu), (rows, x), (rows, nu), (x,))))
        moves = np.array([bool(self.robot.row_names) and any(kind in GEOMETRIC for kind, *_ in own)
                          for own, _ in changes])
        rests = np.array([bool(own) and all(kind in AT_REST for kind, *_ in (*own, *of_elements))
                          for own, of_elements in changes]) & (self.friction is None)
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
        """For parameters that change forces only; their mixed variation has M' a_p + G'^T lambda_p and G' a_p."""
        n, m, states = self.robot.nv, len(self.robot.row_names), len(self.M)
        force, mixed = forces_at_rest(self.robot, self.motion, [own for own, _ in changes], self.columns)
        a_p, w_dot_p = self.accelerate(force, np.zeros(force.shape))
        lam_p = self.multipliers(force, a_p)
        one = np.broadcast_to(np.eye(n + m), (states, n + m, n + m))
        along = Variations(self.robot, self.motion, [([], [])] * (n + m), self.reads)
        found = along.along(self.columns, Columns(None, None, one[:, :n], one[:, n:]))
        both = np.concatenate([a_p, lam_p], axis=1)[:, None]
        free, _ = self.follow(False, found.rows.phi_mixed @ both, found.readers.phi_mixed @ both)
        mixed = mixed + found.mixed @ both
        A_p, lower = self.accelerate(mixed, free)
        none = np.zeros((*a_p.shape,))
        C, D = self._of_outputs(names, Variations(self.robot, self.motion, changes, self.reads),
                                Columns(none, none, a_p, lam_p), (None, None, A_p), mixed, None)
        upper = np.zeros((*lower.shape[:2], len(self.y.names), len(names)))
        model = np.concatenate([upper, lower], axis=2).swapaxes(1, 2)
        f0_p = np.concatenate([np.zeros((states, len(self.y.names), len(names))), w_dot_p], axis=1)
        return Derivatives(none, none, a_p, lam_p, model[:, :, :self.x], model[:, :, self.x:], C, D, f0_p)

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
        more, known = self._turned_multipliers(along, q_p) if moves else 0.0, None
        if self.friction is not None:
            slip_p, mu_p = found.rows.psi[:, :, self.friction.rows], self.friction.coefficients(changes)
            known = self.friction.known(slip_p, mu_p)[:, 0]
        force = self.rubbed(found.force[:, 0], free, known, more)
        a_p, w_dot_p = self.accelerate(force, free)
        lam_p = self.with_friction(self.multipliers(force, a_p) + more, known)
        if q_p is None:
            q_p = v_p = along.zeros(self.robot.nv)
        f0_p = np.concatenate([self.R_y @ v_p + self._held(self.y, found.readers.psi[:, 0]), w_dot_p], axis=1)
        two = Columns(q_p, v_p, a_p, lam_p)
        N_p, X_p = self._motions(along, names, two, moves)
        found = along.along(self.columns, two, N_p, X_p, self.pushed())
        free = self._followed(False, names, found.rows.phi_mixed, found.readers.phi_mixed)
        known, mixed, more = None, found.mixed, 0.0
        if self.friction is not None:
            columns = self.slip.swapaxes(1, 2)[..., None], self.columns.L.swapaxes(1, 2)[..., None]
            known = self.friction.known_mixed(columns, (slip_p, lam_p[:, None]),
                                              found.rows.psi_mixed[:, :, self.friction.rows], mu_p)
            more = self.shared(along, two, N_p)
        mixed = self.rubbed(mixed, free, known, more)
        A_p, lower = self.accelerate(mixed, free)
        upper = self.R_y[:, None] @ X_p + self._held(self.y, found.readers.psi_mixed)
        if self.robot.groups:
            upper[:, :p] -= self.R_y[:, None] @ self._bracket_by(v_p, N_p[:, :p])
        both = np.concatenate([upper, lower], axis=2).swapaxes(1, 2)  # (states, rows, columns, parameters)
        C, D = self._of_outputs(names, along, two, (N_p, X_p, A_p), mixed, known)
        return Derivatives(q_p, v_p, a_p, lam_p, both[:, :, :self.x], both[:, :, self.x:], C, D, f0_p)

    def _of_outputs(self, names, along, two, mixed, force, known):
        """Derivatives of C and D; `mixed` are N_p and X_p, None if they are zero, and A_p; `force` is the mixed
        variation, without the terms of a'_p and lambda'_p."""
        if self.outputs is None:
            found = np.zeros((len(force), len(self.y.names), force.shape[1], len(names)))
            return found[:, :, :self.x], found[:, :, self.x:]
        none = np.zeros((*force.shape[:2], self.robot.nv, len(names)))
        (N_p, X_p, A_p), L_p = (none if x is None else x for x in mixed), None
        if self.outputs.feel:
            L_p = self.with_friction(self.multipliers(force, A_p) + self.shared(along, two, N_p), known)
        displaced = body_displacements(self.robot)
        found = self.outputs.derivatives(self, along, two, Columns(N_p, X_p, A_p, L_p),
                                         [displaced.get(name, {}) for name in names])
        return found[:, :, :self.x], found[:, :, self.x:]

    def _bracket_by(self, v_p, N_p):
        """The derivatives of ad_v N by the parameters, ad_(v_p) N + ad_v N_p: (states, columns, nv, parameters)."""
        v, N = self.motion.v[:, None, None], self.N.swapaxes(1, 2)[:, :, None]
        found = brackets(self.robot, v_p.swapaxes(1, 2)[:, None], N) + brackets(self.robot, v, N_p.swapaxes(2, 3))
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
        """Derivative, outside the range of G, of the least-norm multipliers as redundant rows turn."""
        return self._out_of_range(self._turned_rows(along, q_p))

    def _turned_rows(self, along, q_p):
        """dG y along q_p, for y in lambda = G y."""
        y = self.G_inverse @ self.motion.lam[:, :, None]
        return along.along(Columns(None, y, None, None), Columns(q_p, None, None, None)).rows.psi_mixed[:, 0]

    def _out_of_range(self, rows):
        G, inverse = _beside(self.G, rows), _beside(self.G_inverse, rows)
        rows = np.where(self.equations[:, None], rows, 0.0)
        return rows - G @ (inverse @ rows)

    def shared(self, along, two, N_p):
        """Mixed variation of the least-norm multipliers, along columns and parameters, outside the range of G."""
        if not self.redundant:
            return 0.0
        y = self.G_inverse @ self.motion.lam[:, :, None]
        y_p = self.G_inverse @ (two.L - self._turned_rows(along, two.N))
        turned = []
        for sign in (1.0, 0.0):  # the difference of the variations at y and at y = 0
            moving = along.of(self.motion._replace(v=np.ascontiguousarray(sign * y[..., 0])))
            turned.append(moving.along(Columns(self.columns.N, sign * self.shares, None, None),
                                       Columns(two.N, sign * y_p, None, None), N_p).rows.psi_mixed)
        return self._out_of_range(turned[0] - turned[1])

    def _followed(self, positions, names, rows, readers):
        """`follow`, checked.

        Raises ClosureError if the constraints cannot follow a parameter: redundant rows contradict each other.
        """
        found, rates = self.follow(positions, rows, readers)
        Z = self.Z_h if positions else self.Z
        left = np.abs(_beside(Z, rates) @ found + rates)
        worst = left.max(axis=-2, initial=0.0) > FOLLOWS * np.maximum(1.0, np.abs(rates).max(axis=-2, initial=0.0))
        if worst.any():
            b = int(np.argwhere(worst)[0][0])
            bad = [names[k] for k in np.flatnonzero(worst[b].reshape(-1, len(names)).any(axis=0))]
            owners = np.array(self.robot.row_owners)[self.holonomic if positions else self.equations]
            rows_left = left[b].reshape(-1, *left.shape[-2:])[:, :len(owners)].max(axis=(0, 2))
            with of_the_batch(self.lead, self.first + b):
                raise ClosureError(
                    f"the constraints of {self.robot.name!r} cannot follow {listed(bad)}: redundant rows contradict "
                    "each other then; leave such parameters out", float(rows_left.max()),
                    str(owners[rows_left.argmax()]), self.motion.q[b])
        return found


def _beside(x, other):
    """Matrices of states, with axes of length one for the column axes of `other`."""
    return x.reshape(x.shape[0], *(1,) * (other.ndim - 3), *x.shape[1:])


def inverse_of_rank(G, rank):
    """The pseudo-inverse of matrices (states, m, n) of known ranks."""
    if 0 in G.shape:
        return np.zeros(G.swapaxes(1, 2).shape)
    U, s, Vt = np.linalg.svd(G, full_matrices=False)
    kept = np.arange(s.shape[1]) < np.reshape(rank, (-1, 1))
    inverse = np.where(kept, 1.0, 0.0) / np.where(kept, s, 1.0)
    return (Vt.swapaxes(1, 2) * inverse[:, None]) @ U.swapaxes(1, 2)
