"""Derivatives at the events of a run: of the time of the event, and of the state after it (saltation matrix).

An event ends a part of a step where its guard g(t, x) crosses zero. With dx the variation at the end of that part at
constant length, and x' the derivative of its end by its length,

    dt = -g_x dx / (g_x x' + g_t)        dx_before = dx + x' dt        (Aizerman and Gantmacher 1958; Leine and
                                                                        Nijmeijer 2004, 7.2)

and the part of the step after the event is shorter by dt. An impact with active rows G, impulses L and restitutions e
obeys

    M (v+ - v-) = -G^T L        psi(q, v+) = -e psi(q, v-)

whose variation is solved like that of accelerations. If a contact slips in its impact, its tangential impulses are
mu N s with the direction s of the slip after the impact, in place of equations
(`liedyn.motion.gradients.sliding_derivatives`). Positions vary as before the event: the rows that it closes are
already zero in dx_before, as their gap is the guard.
"""
from typing import NamedTuple

import numpy as np

from liedyn.machine.arguments import floats
from liedyn.machine.errors import InputError, SimulationError, said, shown
from liedyn.mechanics.constraints.cluster_weights import rank_of_rows
from liedyn.mechanics.contact.contact_state import AT_REST
from liedyn.mechanics.dynamics.state import Motion
from liedyn.mechanics.tree.configuration import difference
from liedyn.model.packed import OFF, ON, SLIDING
from liedyn.motion.gradients.sliding_derivatives import friction_changes
from liedyn.motion.simulation.apply_events import acted_on
from liedyn.motion.simulation.inputs import put_input_forces
from liedyn.motion.simulation.integrators.derivatives import put_derivatives, put_mechanism_derivatives
from liedyn.motion.simulation.manifold_projection import constraint_state


RANK = 1e-11
"""Singular values below this fraction of the largest one count as zero."""
JUMPS = 1e-6
"""Force of a contact that opens, relative to the largest one of the run, above which an input has caused a jump."""
MOVED = 1e-9
"""Largest displacement by which constraints may move coordinates after an action."""
LOWERED = 1e-7
"""Largest reduction of the restitution of an impact that rounding of slow impacts explains."""
SLIPS = 1.0 - 1e-9
"""Fraction of the largest friction above which a contact slips in its impact."""


class Instant(NamedTuple):
    """One event, between rows `row` and `row` + 1.

    Attributes
    ----------
    row : int
    by_state, by_time, by_parameters : ndarray (2 n), float, ndarray (np)
        Derivatives of the guard by the state, the time and the parameters.
    jump, jump_by_time, jump_by_parameters : ndarray, shape (2 n, 2 n), (2 n,), (2 n, np)
        Derivatives of the state after the event by the state before it, by its time, and by the parameters.
    """

    row: int
    by_state: np.ndarray
    by_time: float
    by_parameters: np.ndarray
    jump: np.ndarray
    jump_by_time: np.ndarray
    jump_by_parameters: np.ndarray


def require_differentiable(run, trajectory):
    """Requires a run in which no event depends on an explicit function of time.

    Raises SimulationError if an event happens although inputs or targets are functions of time.
    """
    happened = [event.t for event in trajectory.events if event.name != "singular passage"]
    if happened and (run.inputs.functions or run.robot.functions):
        raise SimulationError(f"the run has no derivative at t = {happened[0]:.9g} s: an event moves with the state, "
                              "and how users' functions change in time is not known", trajectory)


def instants_of(run, trajectory, events):
    """The instants of a trajectory, in order.

    Parameters
    ----------
    run : Tape
    trajectory : Trajectory
    events : sequence of Event

    Raises
    ------
    InputError
        A guard or an action has no derivative.
    SimulationError
        The run has no derivative: friction begins or ceases to hold, or several guards are zero at once.
    """
    found = []
    for t in dict.fromkeys(event.t for event in trajectory.events if event.name != "singular passage"):
        rows = np.flatnonzero(trajectory.t == t)
        records = [event for event in trajectory.events if event.t == t]
        if len(rows) > 1:
            found.append(_instant(run, trajectory, events, int(rows[-2]), records))
    return found


def _instant(run, trajectory, events, row, records):
    guards = [_guard(run, trajectory, events, row, record) for record in records]
    first = row == 0
    if len(guards) > 1 and not first:
        raise SimulationError(
            f"the run has no derivative at t = {trajectory.t[row]:.9g} s: {', '.join(repr(r.name) for r in records)} "
            "happen at one instant, and which comes first changes with the start", trajectory)
    guard = (np.zeros(2 * run.n), 1.0, np.zeros(run.parameters)) if first else guards[0]
    return Instant(row, *guard, *_change(run, trajectory, events, row, records))


# ---- the time of an event


def _guard(run, trajectory, events, row, record):
    """Derivatives (by state, by time, by parameters) of the guard."""
    t, q, v = float(trajectory.t[row]), trajectory.q[row].copy(), trajectory.v[row].copy()
    for event in events:
        if event.name == record.name:
            return *_users_guard(event, t, q, v), np.zeros(run.parameters)
    kind, _, name = record.name.partition(" ")
    if kind == "contact":
        return _gap(run, name, t, q, v)
    if kind in ("release", "slip"):
        return _force(run, trajectory, row, name, kind == "slip")
    if kind == "stick":
        return _slip(run, trajectory, row, name)
    raise SimulationError(f"the run has no derivative at t = {t:.9g} s: {record.name!r}, where friction stops a "
                          "contact at once, is not differentiated", trajectory)


def _users_guard(event, t, q, v):
    found = _users_derivative(event, "derivative", "returns those of the guard by t, by the tangent at q and by v",
                              t, q, v, ((), v.shape, v.shape))
    return np.concatenate(found[1:]), float(found[0])


def _users_derivative(event, key, says, t, q, v, shapes):
    """The three arrays that a user's function returns, checked."""
    what = f"{key} of event {event.name!r}"
    if getattr(event, key) is None:
        raise InputError(f"event {event.name!r} has no {key}: give Event(..., {key}=f), where f(t, q, v) {says}")
    try:
        found = getattr(event, key)(t, q.copy(), v.copy())
    except Exception as error:
        raise InputError(f"{what} fails with {said(error)} at t = {t:.6g}") from error
    if not isinstance(found, tuple | list) or len(found) != 3:
        raise InputError(f"{what} must return (by_t, by_q, by_v), got {shown(found)}")
    found = [floats(what, x) for x in found]
    if tuple(x.shape for x in found) != shapes:
        raise InputError(f"{what} must return three arrays of shapes {', '.join(map(str, shapes))}, got "
                         f"{', '.join(str(x.shape) for x in found)}")
    if not all(np.isfinite(x).all() for x in found):
        raise InputError(f"{what} is not finite at t = {t:.6g}")
    return found


def _gap(run, name, t, q, v):
    """Derivatives of the gap of a contact: its row of G, and the part of its rate that moving targets force."""
    c = list(run.contacts.names).index(name)
    run.put(np.where(np.arange(len(run.robot.constraint_names)) == run.contacts.index[c], ON, OFF), t)
    constraint_state(run.model, run.x, q, v)
    row, side = run.contacts.first[c], float(run.contacts.side[c])
    by_q = side * run.x.G[row].copy()
    g = run.partials(q, v, run.x.zero, np.zeros(len(run.x.psi)))[3]
    return np.concatenate([by_q, np.zeros(run.n)]), side * float(run.x.psi[row]) - float(by_q @ v), side * g[row]


def _slip(run, trajectory, row, name):
    """Derivatives of the slip of a contact, along its direction, at the moment when slip ends."""
    c = list(run.contacts.names).index(name)
    rows, t, d, x = run.contacts.tangential(c), float(trajectory.t[row]), run.d, run.x
    q, v, friction = trajectory.q[row], trajectory.v[row], trajectory.lam[row, rows]
    s = friction / np.linalg.norm(friction)
    run.put(np.where(np.arange(len(run.robot.constraint_names)) == run.contacts.index[c], ON, OFF), t)
    zero = np.zeros(len(x.psi))
    put_mechanism_derivatives(run.model, x.none, Motion(q, v, x.zero, zero), x.G, x.M, d)
    psi = run.partials(q, v, x.zero, zero)[2]
    return np.concatenate([s @ d.psi_q[rows], s @ x.G[rows]]), 0.0, s @ psi[rows]


def _force(run, trajectory, row, name, friction):
    """Derivatives of a contact's normal force just before it opens, or of the margin of its friction."""
    c = list(run.contacts.names).index(name)
    t, d, x, lam = float(trajectory.t[row]), run.d, run.x, trajectory.lam[row]
    first, side, mu = run.contacts.first[c], float(run.contacts.side[c]), run.contacts.friction[c]
    readers = np.zeros((1, len(lam)))
    readers[0, first] = -side
    if friction:
        rub = lam[run.contacts.tangential(c)]
        readers[0, first] *= mu
        readers[0, run.contacts.tangential(c)] = -rub / np.linalg.norm(rub)
    # a jump of the input causes it, at a time of the grid
    if abs(readers[0] @ lam) > JUMPS * np.abs(trajectory.lam).max():
        return np.zeros(2 * run.n), 1.0, np.zeros(run.parameters)
    run.put(trajectory.status[row], t)
    if (trajectory.status[row, run.contacts.index] == SLIDING).any() and run.o.friction:
        raise SimulationError(f"the run has no derivative at t = {t:.9g} s, where {name!r} lets go or begins to slip "
                              "while contacts slide", trajectory)
    q, v = trajectory.q[row].copy(), trajectory.v[row].copy()
    put_input_forces(run.o, x, t, run.row(t), q, v)  # elements that are actuators take their inputs from there
    put_derivatives(run.model, run.o, x, t, Motion(q, v, trajectory.a[row], lam), d)
    on = np.abs(x.G).max(axis=1) > 0.0
    G = x.G[on]
    if rank_of_rows(run.robot, x.G, RANK) < len(G):
        raise SimulationError(f"the run has no derivative at t = {t:.9g} s, where {name!r} lets go: forces of "
                              "redundant constraints are not unique", trajectory)
    force, phi, *_ = run.partials(q, v, trajectory.a[row], lam)
    force += run.element_partials(t, q, v)
    right = np.block([[d.tau_q - d.ID_q - d.force_q, d.tau_v - d.ID_v, -force], [-d.phi_q[on], -d.phi_v[on], -phi[on]]])
    varied = np.linalg.solve(np.block([[x.M, G.T], [G, np.zeros((len(G), len(G)))]]), right)[run.n:]
    slope = (readers[:, on] @ varied)[0]
    if friction:
        slope[2 * run.n:] -= side * lam[first] * friction_changes(run.room.changes, run.contacts.index[c])
    return slope[:2 * run.n], 0.0, slope[2 * run.n:]


# ---- the state after an event


def _change(run, trajectory, events, row, records):
    """Derivatives of the state after an event by the state before it, by time, and by the parameters."""
    n, t, q, v = run.n, float(trajectory.t[row]), trajectory.q[row].copy(), trajectory.v[row].copy()
    acted, by_time = np.eye(2 * n), np.zeros(2 * n)
    for event in [each for each in events if each.action is not None and each.name in [r.name for r in records]]:
        found = _users_derivative(
            event, "action_derivative", "returns those of the new displacement and velocity by t, by the tangent at q "
            "and by v", t, q, v, ((2 * n,), (2 * n, n), (2 * n, n)))
        by_state = np.hstack(found[1:])
        acted, by_time = by_state @ acted, by_state @ by_time + found[0]
        q, v = acted_on(run, event, t, q, v)
        moved = np.abs(difference(run.robot, q, trajectory.q[row + 1])).max()
        if moved > MOVED:
            raise SimulationError(
                f"the run has no derivative at t = {t:.9g} s: the action of event {event.name!r} opens constraints, "
                f"whose projection moves coordinates by {moved:.3g}", trajectory)
    jump, by_parameters = _jump(run, trajectory, row, v, records)
    return jump @ acted, jump @ by_time, by_parameters


def _jump(run, trajectory, row, v, records):
    """Derivatives of the state after an impact, with velocity v before it, by the state before it and parameters."""
    n, jump, t = run.n, np.eye(2 * run.n), float(trajectory.t[row])
    by_parameters = np.zeros((2 * n, run.parameters))
    q, v_after = trajectory.q[row + 1], trajectory.v[row + 1].copy()
    if not (v_after != v).any():
        return jump, by_parameters
    impulse, contacts, slipping = sum(record.impulse for record in records), run.contacts, []
    status, active = trajectory.status[row + 1].copy(), np.abs(impulse) > 0.0
    for c, (index, first, count) in enumerate(zip(contacts.index, contacts.first, contacts.count)):
        hit, rub = active[first:first + count].any(), np.linalg.norm(impulse[first + 1:first + count])
        if rub > 0.0 and rub >= SLIPS * contacts.friction[c] * abs(impulse[first]):
            slipping.append(c)
        status[index] = ON if hit else status[index]
    run.put(status, t)
    # constraints that are closed after the event have no velocity, except for the slip of sliding contacts
    active |= np.array([status[run.robot.constraint_index(owner)] == ON for owner in run.robot.row_owners], dtype=bool)
    active[contacts.first[status[contacts.index] == SLIDING]] = True
    for c in slipping:
        active[contacts.tangential(c)] = False
    d, zero, zero_rows = run.d, run.x.zero, np.zeros(len(impulse))
    put_mechanism_derivatives(
        run.at_rest(), run.x.none, Motion(q, zero, v_after - v, impulse), run.x.G, run.x.M, d)
    forces, G, M, rates = -(d.ID_q + d.force_q), run.x.G.copy(), run.x.M.copy(), []
    force = run.partials(q, zero, v_after - v, impulse)[0] - run.partials(q, zero, zero, zero_rows)[0]
    for speed in (v, v_after):
        constraint_state(run.model, run.x, q, speed)
        psi = run.x.psi.copy()
        put_mechanism_derivatives(run.model, run.x.none, Motion(q, speed, zero, impulse), run.x.G, run.x.M, d)
        rates.append((psi, d.psi_q.copy(), run.partials(q, speed, zero, zero_rows)[2]))
    (psi, psi_q, psi_p), (psi_after, psi_q_after, psi_p_after) = rates
    fast, e = (np.abs(psi) > AT_REST * max(1.0, float(np.abs(v).max()))) & active, np.zeros(len(psi))
    e[fast] = np.maximum(0.0, -psi_after[fast] / psi[fast])
    _require_given(run, records, e, fast, t, trajectory)
    # psi_q+ dtheta + G dv+ = -e (psi_q- dtheta + G dv-), with the unknown x = dv+ - dv-
    e, mass, push = e[:, None], M.copy(), G.T.copy()
    right = np.hstack([forces, np.zeros((n, n)), -force])
    for c in slipping:  # lambda_t = mu N s, s = psi_t+ / |psi_t+|
        rows, first, mu = contacts.tangential(c), contacts.first[c], contacts.friction[c]
        N, size = -contacts.side[c] * impulse[first], np.linalg.norm(psi_after[rows])
        s = psi_after[rows] / size
        turn = G[rows].T @ (mu * N / size * (np.eye(len(s)) - np.outer(s, s)))
        push[:, first] -= contacts.side[c] * mu * G[rows].T @ s
        mass += turn @ G[rows]
        right -= turn @ np.hstack([psi_q_after[rows], G[rows], psi_p_after[rows]])
        right[:, 2 * n:] -= np.outer(G[rows].T @ s, N * friction_changes(run.room.changes, contacts.index[c]))
    below = -np.hstack([psi_q_after + e * psi_q, (1.0 + e) * G, psi_p_after + e * psi_p])[active]
    G, push = G[active], push[:, active]
    system = np.block([[mass, push], [G, np.zeros((len(G), len(G)))]])
    found = np.linalg.lstsq(system, np.vstack([right, below]), rcond=RANK)[0][:n]
    jump[n:] += found[:, :2 * n]
    by_parameters[n:] = found[:, 2 * n:]
    return jump, by_parameters


def _require_given(run, records, e, fast, t, trajectory):
    """SimulationError if contacts separate with less than their own restitution."""
    contacts = run.contacts
    closing = [c for c in range(len(contacts.names)) if fast[contacts.first[c]] and f"contact {contacts.names[c]}" in [
        record.name for record in records]]
    given = min((contacts.restitution[c] for c in closing), default=0.0)
    lowered = [contacts.names[c] for c in closing if e[contacts.first[c]] < given - LOWERED]
    if lowered:
        raise SimulationError(
            f"the run has no derivative at t = {t:.9g} s: the restitution {given:g} of {', '.join(map(repr, lowered))} "
            f"is lowered to {e[contacts.first[closing]].max():.4g}, and how that varies is not known", trajectory)
