"""Contact modes of a robot's one-sided constraints at a state, for dynamics and linearization.

The state determines them (`liedyn.mechanics.contact.contact_state`): gaps decide which contacts touch, velocities which
of these separate, and the complementarity problem of the accelerations which of the others open, stick or slide. The
result is a robot with closed contacts as equations and a known friction force tau_f on those that slide,

    M a + h + G^T lam = tau + tau_f        tau_f = -G_t^T lam_t        lam_t = mu N s        N = -side lam_n

with s the direction of the slip. For redundant rows (a table on four feet) the multipliers are those of least norm, as
everywhere, unless these would pull or leave a friction disk; then other multipliers, which do neither, are used.
"""
from typing import NamedTuple

import numpy as np

from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError, SingularConfigurationError
from liedyn.mechanics.constraints.cluster_weights import rank_of_rows
from liedyn.mechanics.constraints.undefined import require_rows
from liedyn.mechanics.contact.contact_state import (
    AT_REST, DEEPEST, NOTHING, TOUCHING, accelerations, contacts_of, penetration, place_on, statuses,
    surfaces_that_end, with_rows_of,
)
from liedyn.mechanics.contact.sliding_friction import SlidingFriction
from liedyn.mechanics.dynamics.state import State
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.model.packed import ON, OPEN, SLIDING, mode_of_cable

WATCHED = "watched contacts"
"""Key of `robot._memo`."""
SLIPS = " is about to slip"
"""The end of what is said of a contact whose friction is at its limit."""
LESS = 1e-6
"""A contact is about to slip if it cannot stick with its friction coefficient reduced by this fraction."""


def watched(robot):
    """The one-sided constraints whose mode the state decides, as `Contacts` (`liedyn.mechanics.contact.watching`)."""
    memo = robot._memo
    if WATCHED not in memo:
        contacts = contacts_of(robot, robot.packed)
        open_ones = statuses(robot.packed)[contacts.index] == OPEN
        memo[WATCHED] = contacts.some(open_ones)
    return memo[WATCHED]


class Settled(NamedTuple):
    """A state with its contact modes.

    Attributes
    ----------
    robot : Robot
        Closed contacts "sticking" or "sliding", the others off.
    names : dict
        Mode by name: "open", "leaving" (touching, but separating), "sliding" or "sticking"; "off" if it is switched
        off.
    sliding : list of int
        Numbers, among the watched contacts, of those that slide with friction.
    friction : ndarray, shape (m,)
        Multipliers of their friction, zero in all other rows but the empty ones of dry friction.
    force : ndarray, shape (nv,)
        tau_f.
    lam : ndarray, shape (m,)
        All multipliers.
    least_norm : bool
        True if these have least norm.
    transitions : dict
        By name, a clause that says which transition a contact is just about to make.
    """

    robot: object
    names: dict
    sliding: list
    friction: np.ndarray
    force: np.ndarray
    lam: np.ndarray
    least_norm: bool
    transitions: dict

    def require_no_transition(self):
        """InputError if a contact is just about to open, slip or stick, or if friction is not determined."""
        for what in self.transitions.values():
            raise InputError(f"{what}: the dynamics has no derivative exactly at a transition; "
                             "linearize before or after it, or switch the constraint (Robot.switched)")
        if self.sliding and not self.least_norm:
            names = [name for name, how in self.names.items() if how in ("sliding", "sticking")]
            raise InputError(f"how contacts {', '.join(map(repr, names))} share the load is not determined, as forces "
                             "of least norm pull or slip, and so is not what the sliding ones rub with")


def _touching(robot, contacts, q, residual, psi, limit):
    """Which contacts touch, which of them rest, with rates below `limit`, and how fast those slip; raises as
    `contact_modes`."""
    names = contacts.names
    gap, rate = contacts.side * residual[contacts.first], contacts.side * psi[contacts.first]
    ends = surfaces_that_end(robot)
    for c, k in enumerate(contacts.index.tolist()) if ends else ():
        if k in ends and (place_on(robot, k, q)[0] < 0.0 or gap[c] < -DEEPEST):  # beyond the edge, or below
            gap[c] = np.inf
    for c in np.flatnonzero(gap < -DEEPEST):
        raise InputError(penetration(contacts, c, gap[c]))
    touches = gap <= TOUCHING
    away = np.zeros(len(psi), bool)
    for c in np.flatnonzero(~touches):
        away[contacts.rows(c)] = True
    require_rows(robot, (), np.where(away, 0.0, psi)[None])
    for c in np.flatnonzero(touches & (rate < -limit)):
        how = "taut and gets longer with" if contacts.cable[c] else "closed and approaches with"
        raise InputError(f"an impact is due: {contacts.called(c)} is {how} {-rate[c]:.3g}; simulate() lets it collide")
    rests = touches & (rate <= limit)
    resting = np.flatnonzero(rests)
    slip = contacts.slips(psi, resting)
    for c, speed in zip(resting, slip):
        if speed > limit and np.isinf(contacts.friction[c]):
            raise InputError(f"an impact is due: contact {names[c]!r} never slips while it is closed, but does so with "
                             f"{speed:.3g}; make v consistent with complete_velocity(), with the contact sticking")
    return touches, rests, slip


def _opens(contacts, c):
    return f"{contacts.called(c)} is about to {'become slack' if contacts.cable[c] else 'open'}"


class About(NamedTuple):
    """What is known of contacts that rest: numbers, status, whether they slip slowly; numbers of those that slide."""

    contacts: object
    resting: np.ndarray
    status: np.ndarray
    slow: np.ndarray
    sliding: list


def _transitions(about, lam):
    """What contacts that rest are about to do, in words by name, with multipliers lam."""
    contacts, found = about.contacts, {}
    size = max(float(np.abs(lam).max(initial=0.0)), np.finfo(float).tiny)
    for e, c in enumerate(about.resting):
        if about.status[e] == OPEN:
            continue
        N, rubbed = contacts.loads(c, lam)
        if N <= NOTHING * size:
            found[contacts.names[c]] = _opens(contacts, c)
        elif about.status[e] == ON and contacts.friction[c] * N - rubbed <= NOTHING * size:
            found[contacts.names[c]] = contacts.called(c) + SLIPS
        elif c in about.sliding and about.slow[e]:
            found[contacts.names[c]] = f"{contacts.called(c)} is just beginning to slip"
    return found


def contact_modes(robot, q, v, tau, f_ext, tolerance):
    """Modes and forces of the watched contacts at one state (q, v, tau) with wrenches f_ext on the links, as `Settled`.

    InputError if a contact penetrates by more than 1e-6, or touches and approaches, so that an impact is due;
    SingularConfigurationError if accelerations contradict each other (Painleve), or the constraints do.
    """
    contacts = watched(robot)
    names = contacts.names
    _, _, G, residual, psi, _ = terms_kernel(with_rows_of(robot.packed, contacts, slice(None)), q, v, f_ext)
    raise_errors(robot.functions)
    limit = AT_REST * max(1.0, float(np.abs(v).max(initial=0.0)))
    touches, rests, slip = _touching(robot, contacts, q, residual, psi, limit)
    resting = np.flatnonzero(rests)
    for c in np.flatnonzero(~rests):
        G[contacts.rows(c)] = 0.0
    try:
        found = accelerations(robot.packed, contacts, resting, State(q, v, tau, f_ext), limit, tolerance)
    except ValueError:
        raise_errors(robot.functions)
        raise SingularConfigurationError(f"the constraints of {robot.name!r} contradict each other: no acceleration "
                                         "satisfies them all", np.linalg.svd(G, compute_uv=False)) from None
    raise_errors(robot.functions)
    if found is None:
        raise SingularConfigurationError(
            f"accelerations of {', '.join(map(contacts.called, resting))} contradict each other (sliding friction "
            "that holds what it should let slide, Painleve), or no inertia resists some motion",
            np.linalg.svd(G, compute_uv=False))
    closed = {names[c]: {OPEN: "leaving", ON: "sticking", SLIDING: "sliding"}[int(status)]
              for c, status in zip(resting, found.status)}
    said = {name: closed.get(name, "leaving" if touches[c] else "open") for c, name in enumerate(names)}
    said = robot.contacts | {name: mode_of_cable(mode) if contacts.cable[c] else mode
                             for c, (name, mode) in enumerate(said.items())}
    switched = _switched(robot, names, closed)
    rubs = [e for e, c in enumerate(resting)
            if found.status[e] == SLIDING and contacts.count[c] > 1 and contacts.friction[c] > 0.0]
    sliding, slipping = resting[rubs].tolist(), np.zeros(len(psi))
    for c, along in zip(sliding, found.direction[rubs]):
        slipping[contacts.tangential(c)] = along[:contacts.count[c] - 1]
    rub = SlidingFriction(contacts.some(resting[rubs]), slipping, psi, slip[rubs])
    terms = terms_kernel(switched.packed, q, v, f_ext)
    raise_errors(robot.functions)
    lam, N = _least_norm(terms, tau, -G[rub.rows].T @ rub.of_unit, rub, rank_of_rows(switched, terms[2], tolerance))
    friction = np.zeros(len(lam))
    friction[rub.rows] = rub.of_unit @ N
    contacts.put_limits(friction, psi, resting, found.status == ON)
    lam += friction
    fits = _push(contacts, resting, found.status, lam)
    if not fits:
        lam = found.lam
        friction = np.where(slipping != 0.0, lam, 0.0)
        contacts.put_limits(friction, psi, resting, found.status == ON)
    about = About(contacts, resting, found.status, slip <= limit, sliding)
    transitions = {name: _opens(contacts, c) for c, name in enumerate(names) if said[name] == "leaving"}
    transitions |= _transitions(about, lam)
    # other contacts may carry the load of one
    if not fits and any(what.endswith(SLIPS) for what in transitions.values()):
        less = contacts._replace(friction=contacts.friction * (1.0 - LESS))
        other = accelerations(robot.packed, less, resting, State(q, v, tau, f_ext), limit, tolerance)
        if other is not None and np.array_equal(other.status, found.status):
            transitions = {name: what for name, what in transitions.items() if not what.endswith(SLIPS)}
    return Settled(switched, said, sliding, friction, -G.T @ friction, lam, fits, transitions)


def _switched(robot, names, closed):
    """The robot with these contacts closed and the other watched ones off, built once for each combination."""
    key = ("settled", tuple(closed.get(name, "") for name in names))
    if key not in robot._memo:
        robot._memo[key] = robot.switched({name: closed[name] if closed.get(name) in ("sliding", "sticking") else False
                                          for name in names})
    return robot._memo[key]


def _push(contacts, resting, status, lam):
    """True if no contact pulls and every sticking one stays in its friction disk."""
    size = float(np.abs(lam).max(initial=0.0))
    for c, how in zip(resting, status):
        N, rubbed = contacts.loads(c, lam)
        if how != OPEN and N < -NOTHING * size:
            return False
        if how == ON and rubbed > contacts.friction[c] * max(N, 0.0) + NOTHING * size:
            return False
    return True


def _least_norm(terms, tau, drags, rub, rank):
    """Multipliers without those of the friction `rub`, and its normal forces, both of least norm.

    `rank` is that of the constraints, `drags` (n, contacts) are the forces of the friction of unit normal forces.
    """
    M, h, G, _, _, gamma = terms
    U, s, Vt = np.linalg.svd(G)
    plus, K = Vt[:rank].T / s[:rank] @ U[:, :rank].T, Vt[rank:].T
    forces = np.column_stack([tau - h, drags])
    a = plus @ np.column_stack([gamma, np.zeros((len(gamma), drags.shape[1]))])
    a += K @ np.linalg.solve(K.T @ M @ K, K.T @ (forces - M @ a))
    lam = plus.T @ (forces - M @ a)
    N = rub.normals(lam)
    N = rub.balanced(np.where(rub.contacts.dry, rub.limit, N[:, 0]), N[:, 1:])
    return lam @ np.append(1.0, N), N
