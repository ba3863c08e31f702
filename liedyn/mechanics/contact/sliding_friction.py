"""Sliding friction of contacts as one small linear system, and how it varies.

A contact with slip u = G_t v - b_t, direction of slip s = u / |u| and normal force N = -side lambda_n has the
multipliers lambda_t = mu N s of its tangential rows: a generalised force N d with d = -mu G_t^T s. Normal forces are
linear in all forces, N = N_0 + C N, where column j of C is the effect of d_j alone, so that

    (1 - C) N = N_0

(Glocker 2001, 5.4). If 1 - C has a pivot that is not positive, friction increases the normal force faster than itself:
the accelerations are contradictory (Painleve 1895).

Along directions 1 and 2, where mu varies along 2 only, so do N_1 and N_12 of

    s_1 = (u_1 - s (s . u_1)) / |u|
    s_12 = (u_12 - s (s . u_12) - s_2 (s . u_1) - s (s_2 . u_1) - s_1 (s . u_2)) / |u|
    lambda_t,1 = mu N_1 s + mu N s_1
    lambda_t,12 = mu N_12 s + mu (N s_12 + N_1 s_2 + N_2 s_1) + mu_2 (N s_1 + N_1 s)

as all but the first term is known: the same small system, with other right sides.

In a run, every formulation solves first without friction, then once with each d_j added, and finally with the forces N
d; a contact that friction holds is resolved by the run. Just before slip begins, and in the part of a step after its
reversal, the previous direction is used, so that the right side stays smooth up to the event.

Dry friction of joints is Coulomb's with Stribeck's curve, set-valued at rest (`Builder.friction` with ``width=0``). It
is friction of a contact that never opens and has a given normal force: with w the rate of the joint,

    |P| <= static where w = 0        P = -F(|w|) w / |w| elsewhere
    F(x) = coulomb + (static - coulomb) exp(-(x / stribeck)^2) + viscous x

(Armstrong-Helouvry, Dupont and Canudas de Wit 1994), so that a joint begins to move with the friction that has held it;
with stribeck = 0 friction drops to coulomb as soon as it moves. The record of such a constraint has two rows: an empty
one, which has the limit as its normal force, and that of the rate; so contacts and joints stick and slide by the same
rules.
"""
import functools
import math
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, kernel_in_place, late
from liedyn.machine.linalg.dense import solve_square
from liedyn.machine.linalg.vectors import add_multiple, copy_to
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.families.contact import contact, velocity_jets
from liedyn.mechanics.constraints.families.coupling import rate
from liedyn.mechanics.constraints.jets import constant
from liedyn.mechanics.constraints.relative import path_ends, relative_screw, relative_twist, toward_ground
from liedyn.model.constraint_records import holonomic_count, loop_at, loop_count, loop_integer, loop_kind, loop_rows
from liedyn.model.kinds import DRY_FRICTION
from liedyn.model.packed import LOOP_ACTIVE, LOOP_COEFFICIENTS, LOOP_FRICTION, LOOP_LIMIT, LOOP_SIDE, OFF, SLIDING
from liedyn.model.packed_records import MODEL

SlidingWork = namedtuple("SlidingWork", "direction used drags influence trials solution force known")
"""Arrays for L constraints, of which S are contacts: the previous direction (L, 3) of slip, and that used at this state
(L, 3); d (S, n) and 1 - C (S, S) of the contacts that slide now, and for each the normal force without friction, the
scale of the trial force and the number of the constraint (S, 3); N (S); the forces (n) with which a formulation is to
solve, and the known ones (n): those of the inputs, and the dry friction of joints that move."""
SLIDING_WORK = types.NamedTuple([*[MATRIX] * 5, *[VECTOR] * 3], SlidingWork)
"""Its Numba type."""
SLOW = 1e-10
"""Slip [m/s] below which its direction is rounding."""
PAINLEVE = 5e-4
"""Pivot of 1 - C below which friction holds a contact that should slide; the contact's mode is determined before."""


# ---- dry friction of joints


@inline
def is_dry(model, l):
    """True if constraint l is the dry friction of a joint."""
    return loop_kind(model, l) == DRY_FRICTION


@kernel_in_place
def friction_limit(model, l, x, slides):
    """F at the rate x along the direction of motion, smooth beyond its reversal, at negative rates; or that at rest."""
    at = loop_at(model, l, LOOP_LIMIT)
    coulomb, static, stribeck = model.floats[at], model.floats[at + 1], model.floats[at + 2]
    if not slides:
        return static
    excess = (static - coulomb) * math.exp(-(x / stribeck) ** 2) if stribeck > 0.0 else 0.0
    return coulomb + excess + model.floats[at + 3] * x


def limits(numbers, x):
    """F and dF/dx of rows of (coulomb, static, stribeck, viscous) that slide, at the rates x."""
    coulomb, static, stribeck, viscous = np.moveaxis(np.asarray(numbers), -1, 0)
    inverse = np.divide(1.0, stribeck, out=np.zeros_like(stribeck), where=stribeck > 0.0)
    excess = np.where(stribeck > 0.0, static - coulomb, 0.0) * np.exp(-np.square(x * inverse))
    return coulomb + excess + viscous * x, viscous - 2.0 * x * np.square(inverse) * excess


# ---- contacts that slide


class SlidingFriction:
    """The friction of contacts that slide, and its variations to second order.

    Variations have the rows of all contacts along the last but one axis, and directions along the last; with states, or
    with a second direction, in front. Axes of length one are broadcast.

    Parameters
    ----------
    contacts : Contacts
        Those that slide.
    slip : ndarray, shape (..., m)
        psi = G v - b, of which the tangential rows are read.
    lam : ndarray, shape (..., m)
        Multipliers, of which the normal rows are read.
    speed : ndarray, shape (..., contacts), optional
        By default those of the slip.

    Attributes
    ----------
    rows : ndarray of int, shape (t,)
        Indices of all tangential rows.
    of_unit : ndarray, shape (..., t, contacts)
        mu s, column by column: multipliers of the friction of unit normal forces.
    """

    def __init__(self, contacts, slip, lam, speed=None):
        self.contacts, self.lam, rows, owner = contacts, lam, [], []
        for c, (first, count) in enumerate(zip(contacts.first.tolist(), contacts.count.tolist())):
            rows += range(first + 1, first + count)
            owner += [c] * (count - 1)
        self.rows, self.owner = np.array(rows, np.int64), np.array(owner, np.int64)
        self.belongs = (self.owner[:, None] == np.arange(len(contacts.first))).astype(float)
        slip = slip[..., self.rows, None]
        self.size, self.mu = np.sqrt(self._sum(slip * slip)), contacts.friction[self.owner, None]
        self.s = slip / self.size
        self.of_unit = self.mu * self.s * self.belongs
        if contacts.dry.any():
            speed = np.sqrt(np.square(slip[..., 0]) @ self.belongs) if speed is None else speed
            self.limit, self.steepness = limits(contacts.law, speed)
        else:
            self.limit = self.steepness = np.zeros(len(contacts.dry))

    @functools.cached_property
    def N(self):
        """Normal force of the contact to which each tangential row belongs, (..., t, 1)."""
        return self.normal(self.lam[..., None])

    def _sum(self, x):
        """Sums over the rows of each contact, repeated for each of its rows."""
        return self.belongs @ (self.belongs.T @ x)

    def normals(self, lam):
        """Normal forces of the contacts, from all multipliers (..., m, columns): N = -side lambda_n."""
        return -self.contacts.side[:, None] * lam[..., self.contacts.first, :]

    def normal(self, lam):
        """Normal force of the contact to which each tangential row belongs."""
        return self.normals(lam)[..., self.owner, :]

    def of_speed(self, u):
        """Change of the limits of dry friction along a change u of the slip; zero for contacts."""
        steepness = np.where(self.contacts.dry, self.steepness, 0.0)
        return steepness[..., None] * (self.belongs.T @ (self.s * u))

    def balanced(self, N_0, C):
        """Normal forces N = N_0 + C N."""
        return np.linalg.solve(np.eye(len(C)) - C, N_0)

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


# ---- in the loops of runs


@inline
def contact_numbers(model, l):
    """First row of a contact, number of rows, side and coefficient of friction."""
    first, rows = loop_rows(model, l)
    return first, rows, float(loop_integer(model, l, LOOP_SIDE)), model.floats[loop_at(model, l, LOOP_FRICTION)]


@kernel_in_place
def slips(model, l):
    """True if contact l slides with friction."""
    return (loop_integer(model, l, LOOP_SIDE) != 0 and loop_integer(model, l, LOOP_ACTIVE) == SLIDING
            and loop_rows(model, l)[1] > holonomic_count(model, l) and not is_dry(model, l)
            and model.floats[loop_at(model, l, LOOP_FRICTION)] > 0.0)


@late(MODEL, VECTOR, SLIDING_WORK, returns=types.int64)
def put_drags(model, world, f):
    """Directions, d and numbers of the contacts that slide; returns their count. Needs `world_velocities`."""
    count = 0
    for l in range(loop_count(model)):
        if not slips(model, l):
            continue
        kind, mu, rows = loop_kind(model, l), model.floats[loop_at(model, l, LOOP_FRICTION)], loop_rows(model, l)[1]
        length, r, p, d, C = contact(model, world, l)
        w, v = relative_twist(SCALAR, model, world, l, C)
        motion = velocity_jets(kind, length, r, constant(p), constant(d), constant(w), constant(v))
        size, ahead = 0.0, 0.0
        for k in range(1, rows):
            size += motion[k][0] * motion[k][0]
            ahead += motion[k][0] * f.direction[l, k - 1]
        size = math.sqrt(size)
        for k in range(1, rows):
            f.used[l, k - 1] = motion[k][0] / size if ahead > 0.0 and size > SLOW else f.direction[l, k - 1]
        f.drags[count] = 0.0
        ja, jb = path_ends(model, l)
        while ja != jb:
            j = max(ja, jb)
            w, v = relative_screw(SCALAR, model, world, j, jb > ja, C)
            motion = velocity_jets(kind, length, r, constant(p), constant(d), constant(w), constant(v))
            for k in range(1, rows):
                f.drags[count, j] -= mu * f.used[l, k - 1] * motion[k][0]
            ja, jb = toward_ground(model, ja, jb)
        f.trials[count, 2] = l
        count += 1
    return count


@kernel_in_place
def put_known(model, v, tau, f):
    """f.known: tau and the dry friction of joints that move, -F s c; its direction s is kept past a reversal."""
    copy_to(tau, f.known)
    for l in range(loop_count(model)):
        if is_dry(model, l) and loop_integer(model, l, LOOP_ACTIVE) == SLIDING:
            w = rate(model, l, v)
            s = math.copysign(1.0, f.direction[l, 0] if f.direction[l, 0] != 0.0 else w)
            f.used[l, 0] = s
            at = loop_integer(model, l, LOOP_COEFFICIENTS)
            friction = -friction_limit(model, l, s * w, True) * s
            for j in range(tau.size):
                f.known[j] += friction * model.floats[at + j]


@kernel_in_place
def begin_trials(model, world, v, tau, rubs, f):
    """Number of solutions that a formulation needs (1, or 2 plus the sliding contacts), and the first force."""
    if rubs:
        put_known(model, v, tau, f)
    else:
        copy_to(tau, f.known)
    copy_to(f.known, f.force)
    count = put_drags(model, world, f) if rubs else 0
    return (1 if count == 0 else count + 2), f.force


@kernel_in_place
def normal_force(model, l, lam):
    return -loop_integer(model, l, LOOP_SIDE) * lam[loop_rows(model, l)[0]]


@kernel_in_place
def next_trial(model, f, k, trials, lam):
    """The force of trial k + 1, from the result of trial k. False if friction holds a contact that should slide."""
    count = trials - 2
    if k > count:
        return True
    for i in range(count):
        N = normal_force(model, int(f.trials[i, 2]), lam)
        if k == 0:
            f.trials[i, 0] = N
        else:
            f.influence[i, k - 1] = (1.0 if i == k - 1 else 0.0) - (N - f.trials[i, 0]) / f.trials[k - 1, 1]
    copy_to(f.known, f.force)
    if k < count:
        # a force of the expected size, so that differences lose few digits
        f.trials[k, 1] = max(abs(f.trials[k, 0]), 1e-6)
        add_multiple(f.trials[k, 1], f.drags[k], f.force)
        return True
    for i in range(count):
        f.solution[i] = f.trials[i, 0]
    if not solve_square(f.influence, f.solution, count, PAINLEVE):  # a small pivot means a contact that is held
        return False
    for i in range(count - 1, -1, -1):
        add_multiple(f.solution[i], f.drags[i], f.force)
    return True


@kernel_in_place
def keep_directions(f):
    """Stores the directions of slip at this state for the next ones."""
    for l in range(f.used.shape[0]):
        copy_to(f.used[l], f.direction[l])


@kernel_in_place
def put_friction(model, v, rubs, f, trials, lam):
    """Multipliers of the friction, in the tangential rows, and the limits of dry friction in its empty ones."""
    for l in range(loop_count(model) if rubs else 0):
        if is_dry(model, l) and loop_integer(model, l, LOOP_ACTIVE) > OFF:
            first, _, side, _ = contact_numbers(model, l)
            slides = loop_integer(model, l, LOOP_ACTIVE) == SLIDING
            limit = friction_limit(model, l, f.used[l, 0] * rate(model, l, v), slides)
            lam[first] = -side * limit
            if slides:
                lam[first + 1] = limit * f.used[l, 0]
    for i in range(trials - 2):
        l = int(f.trials[i, 2])
        first, rows, _, mu = contact_numbers(model, l)
        for k in range(1, rows):
            lam[first + k] = mu * normal_force(model, l, lam) * f.used[l, k - 1]


def make_sliding_work(robot, contacts):
    """Arrays for a run with these contacts."""
    L, S, n = len(robot.constraint_names), len(contacts.index), robot.nv
    return SlidingWork(*map(np.zeros, ((L, 3), (L, 3), (S, n), (S, S), (S, 3), S, n, n)))


def set_directions(f, index, directions):
    """Sets the directions of slip of the contacts with these numbers."""
    for kept in (f.direction, f.used):
        kept[:] = 0.0
        kept[index] = directions
