"""Events at one time: the state jumps, constraints are switched, contacts collide, stick, slip or open.

All changes at one time are made together, in this order: the actions of events, then switches, then one impact of all
touching contacts together with all equations (`liedyn.mechanics.contact.impact`), then the accelerations, which decide
how each contact continues (`liedyn.mechanics.contact.contact_state`).
"""
import numpy as np

from liedyn.machine.errors import InputError, said, shown
from liedyn.mechanics.constraints.undefined import undefined_rows
from liedyn.mechanics.contact.contact_state import (
    AT_REST, DEEPEST, TOUCHING, accelerations, penetration, put_statuses, statuses, with_rows_of,
)
from liedyn.mechanics.contact.impact import collide, jam
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.state import State
from liedyn.model.calls.boundary import states
from liedyn.model.constraint_records import refresh
from liedyn.model.packed import LOOP_ROW, OFF, ON, OPEN, SLIDING, constraints_of
from liedyn.motion.simulation.gaps import gaps
from liedyn.motion.simulation.manifold_projection import constraint_state, project_positions, project_velocities
from liedyn.motion.simulation.trajectory import EventRecord

ALMOST_CLOSED = 1e-6
"""Closure error [rad, sizes of the mechanism] with which a constraint may be switched on; located events
have a far smaller one."""
CONSISTENT = 1e-12
"""Velocity residual, relative to the speeds, that is rounding and needs no impulse."""
SLIP_LEFT = 1e-5
"""Slip, relative to the speeds, below which a contact whose slip reverses is stopped if friction holds."""


class Contradiction(Exception):
    """Accelerations of contacts contradict each other, and no impulse resolves that."""


def apply_events(run, events=(), causes=(), beginning=False):
    """Makes all changes of one time, at row 0.

    Parameters
    ----------
    run : Run
    events : sequence of Event
        Events whose guards have crossed zero.
    causes : sequence of tuple
        (kind, number of the contact): "touch", "release", "slip", "rest" or "balance", as `first_crossing` returns
        them.
    beginning : bool
        True at the start of the run, where contacts that rest are no events.
    """
    t, before = float(run.rows.t[0]), (run.rows.q[0].copy(), run.rows.v[0].copy())
    refresh(run.packed, t)
    status_before, contacts = run.present().copy(), run.contacts
    if not beginning:
        if run.redundant:
            run.holds(run.rows, 0)  # of all solutions with this motion, forces that push
        run.recorder.add_always(run.rows, 0, status_before)
    q, v = before
    for event in events:
        q, v = acted_on(run, event, t, q, v)
    q, v = q.copy(), v.copy()
    restitution, bounce_back = switch_constraints(run, events)
    touching = touching_contacts(run, t, q, v, events, causes)
    if len(run.x.psi):
        close_constraints(run, events, touching, q)
    v_after, impulse, collided, left = impact(run, events, touching, restitution, bounce_back, q, v)
    for name in left:
        statuses(run.packed)[run.robot.constraint_index(name)] = OFF
    stuck = ()
    if run.integrator.stepping:
        _go_on_stepping(run, q, v_after, impulse, touching)
    elif len(contacts.index):
        v_after, impulse, stuck = _go_on_from(run, t, q, v_after, impulse, touching, causes)
    after = (q, v_after)
    loss = run.energy(*before) - run.energy(*after)
    quiet = beginning and not collided and not stuck  # contacts at rest at the start are no event, unless they open
    if not quiet:
        run.energy_at_no_work -= loss
    run.rows.q[0], run.rows.v[0] = after
    contradiction = _restarted(run)
    changed = [c for c in range(len(contacts.index)) if not quiet or status_before[contacts.index[c]] > OFF]
    records = _records(run, events, left, changed, collided, stuck, status_before)
    if beginning and not records and contradiction is None:
        return
    if beginning:
        run.rows.q[0], run.rows.v[0] = before
        run.recorder.add_always(run.rows, 0, status_before)
        run.rows.q[0], run.rows.v[0] = after
    if contradiction is None:
        run.recorder.add_always(run.rows, 0, run.present())
    acting = {event.name for event in events if event.action is not None}
    _keep_records(run, t, records, acting, (before, after), impulse, loss)
    if contradiction is not None:
        raise contradiction
    run.collided(t, collided)


def acted_on(run, event, t, q, v):
    """The state after the event's action."""
    if event.action is None:
        return q, v
    what = f"action of event {event.name!r}"
    try:
        result = event.action(t, q.copy(), v.copy())
    except Exception as error:
        raise InputError(f"{what}: fails with {said(error)} at t = {t:.6g}") from error
    if result is None:
        return q, v
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise InputError(f"{what} must return (q, v) or None, got {shown(result)}")
    try:
        lead, q, v = states(run.robot, q=result[0], v=result[1])
    except InputError as error:
        raise InputError(f"{what}: {error}") from None
    if lead:
        raise InputError(f"{what} must return one state, got leading axes {lead}")
    return q[0], v[0]


def switch_constraints(run, events):
    """Switches constraints as the events demand; returns restitutions of contacts, and of equations by row."""
    status, contacts = statuses(run.packed), run.contacts
    places = {int(index): c for c, index in enumerate(contacts.index)}
    restitution, bounce = contacts.restitution.copy(), {}
    for event in events:
        for name in event.off:
            status[run.robot.constraint_index(name)] = OFF
    for event in events:
        for name in event.on:
            k = run.robot.constraint_index(name)
            if k in places:
                status[k] = OPEN if status[k] == OFF else status[k]
                restitution[places[k]] = event.restitution
            elif status[k] == OFF:
                status[k] = ON
                bounce[int(constraints_of(run.packed)[0][k, LOOP_ROW])] = name, event
    return restitution, bounce


def require_outside(run, t, q, v, deepest, events=()):
    """Gaps of all contacts, NaN where one is off; raises an error where one is below -`deepest`."""
    gap = gaps(run.packed, run.contacts, np.array([t]), q[None], v[None])[0][0]
    for c in np.flatnonzero(gap < -deepest):
        name = run.contacts.names[c]
        by = [f", and event {event.name!r} switches it on there" for event in events if name in event.on]
        raise run.failure(penetration(run.contacts, c, gap[c]) + "".join(by[:1]))
    return gap


def _speed(v):
    return max(1.0, float(np.abs(v).max(initial=0.0)))


def touching_contacts(run, t, q, v, events, causes):
    """Numbers of the contacts whose gap is closed, without those that are to open.

    A constraint without a gap, such as a loop, that an event switches on has to be closed.
    """
    if not len(run.contacts.index):
        return np.empty(0, np.int64)
    gap, status = require_outside(run, t, q, v, DEEPEST, events), statuses(run.packed)[run.contacts.index]
    wanted = [name in event.on for name in run.contacts.names for event in events]
    loops = ~run.have_gaps & np.reshape(wanted, (len(gap), -1)).any(axis=1)
    # NaN where the contact is off
    touch = (gap <= TOUCHING) | (status > OFF) | (loops & (status != OFF))
    touch[[c for kind, c in causes if kind == "touch"]] = True
    touch[[c for kind, c in causes if kind == "release"]] = False
    return np.flatnonzero(touch)


def close_constraints(run, events, touching, q):
    """Projects q on all closed constraints, in place."""
    model = with_rows_of(run.packed, run.contacts, touching)
    constraint_state(model, run.x, q, np.zeros(run.robot.nv))
    undefined = ~np.isfinite(run.x.psi)
    if undefined.any():
        raise run.failure(str(undefined_rows(run.robot, undefined)))
    open_by = np.abs(run.x.residual) / run.x.row_sizes
    rows = run.contacts.first[touching]
    open_by[rows[np.abs(run.x.residual[rows]) <= DEEPEST]] = 0.0  # as deep as steps leave contacts
    worst = int(open_by.argmax())
    if not open_by[worst] <= ALMOST_CLOSED:
        name = "event " + " and ".join(repr(event.name) for event in events) if events else "a contact"
        raise run.failure(f"{name} cannot close its constraints: {run.robot.row_names[worst]} is open by "
                          f"{abs(run.x.residual[worst]):.3g}")
    project_positions(model, run.o, run.x, q)


def impact(run, events, touching, restitution, bounce, q, v):
    """(v after, impulse, contacts that have collided, equations that bounce and are therefore off)."""
    contacts = run.contacts
    constraint_state(with_rows_of(run.packed, contacts, touching), run.x, q, v)
    psi = run.x.psi.copy()
    speed = _speed(v)
    approach = contacts.side[touching] * psi[contacts.first[touching]]
    collided = touching[approach < -AT_REST * speed].tolist()
    back = {row: event.restitution * psi[row] for row, (name, event) in bounce.items()
            if event.restitution > 0.0 and abs(psi[row]) > event.resting}
    named = {name for event in events for name in event.on}
    slow = [c for c in collided if contacts.names[c] in named
            and abs(psi[contacts.first[c]]) <= max(event.resting for event in events if event.on)]
    restitution[slow] = 0.0
    if not len(collided) and np.abs(psi[run.equations]).max(initial=0.0) <= CONSISTENT * speed and not back:
        return v, np.zeros(len(psi)), collided, ()
    state = State(q, v, run.x.zero, run.x.f_ext)  # other forces have no impulse
    found = collide(run.robot, run.packed, contacts, touching, state, (restitution[touching], back),
                    [contacts.names[c] for c in collided] or [event.name for event in events])
    return found.v, found.impulse, collided, tuple(bounce[row][0] for row in back)


def _go_on_from(run, t, q, v, impulse, touching, causes):
    """Sets the status of every contact; returns (v, impulse, contacts that friction has stopped), sticking ones at
    rest.
    """
    contacts, status = run.contacts, statuses(run.packed)
    stuck = ()
    for jammed in (False, True):
        constraint_state(with_rows_of(run.packed, contacts, touching), run.x, q, v)
        speed = _speed(v)
        leaving = contacts.side[touching] * run.x.psi[contacts.first[touching]] > AT_REST * speed
        resting = touching[~leaving]
        slip_limit = (SLIP_LEFT if any(kind in ("rest", "touch") for kind, _ in causes) or jammed else AT_REST) * speed
        slip = contacts.slips(run.x.psi, resting)
        sliding = [c for c, speed in zip(resting, slip) if run.rubs(c) and speed > slip_limit]
        v = _at_rest(run, resting, slip_limit, q, v)
        state = State(q, v, run.forces_at(t, q, v), run.x.f_ext)
        found = accelerations(run.packed, contacts, resting, state, slip_limit, RANK_TOLERANCE)
        if found is not None:
            break
        stopped = None if jammed else jam(run.packed, contacts, resting, sliding, state)
        if stopped is None:
            names = ", ".join(map(contacts.called, resting))
            raise Contradiction(f"the accelerations of {names} contradict each other (sliding friction that "
                                "holds what it should let slide, Painleve), and no impulse settles it")
        v, impulse, stuck = stopped.v, impulse + stopped.impulse, tuple(
            c for c in sliding if np.abs(stopped.impulse[contacts.first[c]]) > 0.0)
    run.flies[:] = True
    run.flies[resting] = False
    put_statuses(status, contacts, resting, found.status)
    status[contacts.index[(status[contacts.index] == OPEN) & ~run.have_gaps]] = OFF
    for e, c in enumerate(resting):
        begins = found.status[e] == SLIDING and c not in sliding and ("rest", c) in causes
        if run.rubs(c) and run.grips(c, t, ("rest", c) in causes or ("slip", c) in causes, begins):
            status[contacts.index[c]] = ON
        elif found.status[e] == SLIDING:
            run.direction[c] = found.direction[e]
        if ("slip", c) in causes and status[contacts.index[c]] == ON:  # the friction that holds it is at its limit
            friction = found.lam[contacts.tangential(c)]
            if friction.any():
                status[contacts.index[c]] = SLIDING
                run.direction[c, :len(friction)] = friction / np.linalg.norm(friction)
    run.put_directions()
    run.look_for_redundancy(q)
    return v, impulse, stuck


def _go_on_stepping(run, q, v, impulse, touching):
    """In time-stepping, where the next step decides how contacts continue: closed contacts get forces in row 0.

    Contacts that collided get their impulse divided by a step; the others keep the forces of the last step.
    """
    contacts, lam = run.contacts, run.rows.lam[0]
    constraint_state(with_rows_of(run.packed, contacts, touching), run.x, q, v)
    leaving = contacts.side[touching] * run.x.psi[contacts.first[touching]] > AT_REST * _speed(v)
    stay = np.isin(run.robot.row_owners, contacts.names[touching[~leaving]]) | run.equations
    off = np.array(run.robot.constraint_names, dtype=object)[statuses(run.packed) == OFF]
    lam[:] = np.where(stay & ~np.isin(run.robot.row_owners, off), lam + impulse / run.integrator.step, 0.0)


def _at_rest(run, resting, slip_limit, q, v):
    """The nearest velocity without slip in contacts that slip by less than the limit."""
    status, v = np.where(run.contacts.slips(run.x.psi, resting) <= slip_limit, ON, SLIDING), v.copy()
    project_velocities(with_rows_of(run.packed, run.contacts, resting, status), run.o, run.x, q, v)
    return v


def _restarted(run):
    """Accelerations and forces after the instant; a `Contradiction` of them, or None."""
    try:
        run.restart()
    except Contradiction as found:  # the run reports it; the changes made so far are kept
        return found
    if run.redundant:
        run.holds(run.rows, 0)  # of all solutions with this motion, forces that push
    return None


def _keep_records(run, t, records, acting, states, impulse, loss):
    """Hand `records` to the recorder; the loss of energy, and impulses of no record, stand with the first cause."""
    (q, v), (q_after, v_after) = states
    owned = [np.isin(run.robot.row_owners, own) for _, own, _, _ in records]
    cause = next((k for k, rows in enumerate(owned) if impulse[rows].any() or records[k][0] in acting), 0)
    for number, (name, _, on, off) in enumerate(records):
        rows = owned[number] | ((number == cause) & ~np.any(owned, axis=0))
        run.recorder.events.append(EventRecord(
            t, name, q, v, q_after.copy(), v_after.copy(), np.where(rows, impulse, 0.0),
            float(loss) if number == cause else 0.0, on, off))


def _records(run, events, left, changed, collided, stuck, before):
    """(name, constraints, switched on, switched off) of all events that changed anything.

    An open contact that is off was switched off; one that was off and is open now was switched on.
    """
    contacts, status, names = run.contacts, run.present(), run.robot.constraint_names
    out, recorded = [], set()
    for event in events:
        own = [name for name in (*event.on, *event.off) if name not in recorded]
        on, off = _switched(names, before, status, own)
        hit = [name for name in own if name in left or names.index(name) in contacts.index[collided]]
        if on or off or hit or event.terminal or event.action is not None or not (event.on or event.off):
            recorded |= set(own)
            out.append((event.name, own, on, off))
    for c in changed:
        k = contacts.index[c]
        what = "jam" if c in stuck else "contact" if c in collided else _change(before[k], status[k], run.rubs(c))
        if what and names[k] not in recorded:
            out.append((contacts.event(what, c), [names[k]], *_switched(names, before, status, [names[k]])))
    return out


def _switched(names, before, after, some):
    """The constraints among `some` that have been switched on, and those that have been switched off."""
    ways = [(name, before[names.index(name)], after[names.index(name)]) for name in some]
    return (tuple(name for name, was, now in ways if was <= OFF < now or was == OFF != now),
            tuple(name for name, was, now in ways if now <= OFF < was or now == OFF != was))


def _change(was, now, rubs):
    """The change of a contact's status in one word; None if nothing is to be recorded."""
    if was == OPEN and now > OFF:
        return "contact"
    if was > OFF and now <= OFF:
        return "release"
    if was == now or not rubs:
        return None
    return "stick" if now == ON else "slip"
