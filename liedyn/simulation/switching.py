"""What happens at an event: the state changes, constraints are switched, velocities jump, energy is lost."""
import numpy as np

from liedyn.boundary import states
from liedyn.constraints.records import switch
from liedyn.constraints.rows import jacobian_rows, residual_rows, velocity_rows
from liedyn.errors import InputError
from liedyn.jit import kernel_in_place
from liedyn.lie.lanes import SCALAR
from liedyn.simulation.events import guard_value
from liedyn.simulation.fixed_step import advance
from liedyn.simulation.impulse import consistent_jump
from liedyn.simulation.projection import close_positions, metric
from liedyn.simulation.trajectory import EventRecord
from liedyn.simulation.workspace import OK, copy_row
from liedyn.tree.kinematics import world_positions, world_velocities

OPEN = 1e-6
"""Closure error [rad, m] with which a constraint may be switched on; an event that was located leaves far less."""
CONSISTENT = 1e-12
"""Velocity residual, relative to the speeds, that is rounding and calls for no impulse."""
PULL = 1e-9
"""Force of the wrong sign, relative to the largest multiplier, that is rounding."""


@kernel_in_place
def constraint_state(ints, floats, x, q, v):
    """x.residual, x.G, x.psi at (q, v)."""
    world_positions(SCALAR, ints, floats, q, x.world)
    residual_rows(ints, floats, q, x.world, x.residual)
    jacobian_rows(ints, floats, q, x.world, x.G)
    world_velocities(SCALAR, ints, v, x.world)
    velocity_rows(ints, floats, q, v, x.world, x.psi)


def set_active(run, name, on):
    """Switch one constraint of the run."""
    k = run.robot.constraint_index(name)
    run.active[k] = on
    switch(run.ints, k, on)


def happen(run, event):
    """Everything an event does, at row 0."""
    t, q, v = float(run.rows.t[0]), run.rows.q[0].copy(), run.rows.v[0].copy()
    run.recorder.add_always(run.rows, 0, run.active)
    q_new, v_new = _changed(run, event, t, q, v)
    off = tuple(name for name in event.off if run.active[run.robot.constraint_index(name)])
    on = tuple(name for name in event.on if not run.active[run.robot.constraint_index(name)])
    for name in off:
        set_active(run, name, False)
    v_new, impulse, left = _jump(run, event, on, q_new, v_new)
    on = tuple(name for name in on if name not in left)
    _go_on(run, event.name, (q, v), (q_new, v_new), impulse, on, off + tuple(x for x in left if x not in event.on))
    run.ended = run.ended or event.terminal
    if event.direction and not run.ended:
        _hold(run, event)
        if any(name in event.on for name in left) and event not in run.held:
            raise run.failure(f"chattering: event {event.name!r} bounces faster than it can be followed; a larger "
                              f"resting speed than {event.resting:g} would end it")


def release(run, name):
    """A unilateral constraint lets go: nothing jumps but its force."""
    q, v = run.rows.q[0].copy(), run.rows.v[0].copy()
    run.recorder.add_always(run.rows, 0, run.active)
    set_active(run, name, False)
    _go_on(run, f"release {name}", (q, v), (q, v), np.zeros(len(run.x.psi)), (), (name,))


def pulling(run):
    """A unilateral constraint whose force at row 0 has the wrong sign, or None."""
    lam = run.rows.lam[0]
    limit = PULL * max(1.0, np.abs(lam).max(initial=0.0))
    for name, (row, sign) in run.unilateral.items():
        if run.active[run.robot.constraint_index(name)] and -sign * lam[row] < -limit:
            return name
    return None


def _changed(run, event, t, q, v):
    """The state after the event's own action."""
    if event.action is None:
        return q.copy(), v.copy()
    result = event.action(t, q.copy(), v.copy())
    if result is None:
        return q.copy(), v.copy()
    try:
        q_new, v_new = result
    except (TypeError, ValueError):
        raise InputError(f"action of event {event.name!r} must return (q, v) or None, got {result!r}") from None
    _, q_new, v_new = states(run.robot, q=q_new, v=v_new)
    return q_new[0].copy(), v_new[0].copy()


def _jump(run, event, on, q, v):
    """Close q in place; consistent velocities, the impulse, and constraints that do not stay: bounces and releases."""
    if not len(run.x.psi):
        return v, np.zeros(0), ()
    for name in on:
        set_active(run, name, True)
    constraint_state(run.ints, run.floats, run.x, q, v)
    worst = int(np.abs(run.x.residual).argmax())
    if not abs(run.x.residual[worst]) <= OPEN:
        for name in on:
            set_active(run, name, False)
        raise run.failure(f"event {event.name!r} cannot close its constraints: {run.robot.row_names[worst]} is open by "
                          f"{abs(run.x.residual[worst]):.3g}")
    metric(run.ints, run.floats, run.x, q)
    close_positions(run.ints, run.floats, run.o, run.x, q)
    left, bounce = [], {}
    for name in on:
        row = run.inputs.first_row[name]
        if event.restitution > 0.0 and abs(run.x.psi[row]) > event.resting:
            bounce[row] = event.restitution * run.x.psi[row]
            left.append(name)
    while True:
        constraint_state(run.ints, run.floats, run.x, q, v)
        if np.abs(run.x.psi).max() <= CONSISTENT * max(1.0, np.abs(v).max()):
            v_new, impulse = v, np.zeros(len(run.x.psi))
        else:
            target = run.x.G @ v - run.x.psi
            for row, speed in bounce.items():
                target[row] -= speed
            v_new, impulse = consistent_jump(run.x.M.copy(), run.x.G, v, target, run.robot.row_names)
        wrong = [name for name, (row, sign) in run.unilateral.items() if name not in on
                 and run.active[run.robot.constraint_index(name)]
                 and -sign * impulse[row] < -PULL * max(1.0, np.abs(impulse).max())]
        if not wrong:
            break
        left.append(wrong[0])
        set_active(run, wrong[0], False)
    for name in left:
        set_active(run, name, False)
    return v_new, impulse, tuple(left)


def _go_on(run, name, before, after, impulse, on, off):
    """Record both sides and make the state after the event row 0."""
    loss = run.energy(*before) - run.energy(*after)
    run.energy_at_no_work -= loss
    run.rows.q[0], run.rows.v[0] = after
    run.restart()
    run.recorder.add_always(run.rows, 0, run.active)
    run.recorder.events.append(EventRecord(float(run.rows.t[0]), name, *before, after[0].copy(), after[1].copy(),
                                           impulse, float(loss), on, off))


def _hold(run, event):
    """Is the state going back to the side that the event came from? Then it counts as being there a little later."""
    copy_row(run.rows, 0, run.single, 0)
    run.single.t[1] = run.single.t[0] + 1e-3 * run.integrator.step
    status, _ = advance(run.ints, run.floats, run.o, run.x, run.single, 1, True, run.energy_at_no_work)
    run.restart()
    later = float(run.single.t[1])
    value = guard_value(event, later, run.single.q[1], run.single.v[1])
    if status == OK and event.direction * value < 0.0:
        run.held[event] = later, value
