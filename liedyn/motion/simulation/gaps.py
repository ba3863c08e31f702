"""Gaps, their rates and slip velocities of all one-sided constraints along a run."""
import numpy as np

from liedyn.machine.compiled.jit import kernel
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import residual_rows, velocity_rows
from liedyn.mechanics.contact.contact_state import statuses
from liedyn.mechanics.tree.kinematics import world_positions, world_size, world_velocities
from liedyn.model.constraint_records import refresh, switch
from liedyn.model.packed import N_ROWS, OFF, ON, OPEN, SLIDING
from liedyn.motion.simulation.trajectory import EventRecord


@kernel
def row_states(model, active, t, q, v):
    """Residual and psi (count, m) of states (count, ...) at their times, with these statuses (count, constraints).

    The model keeps the statuses and the time of the last state.
    """
    work = np.empty(world_size(model))
    residual, psi = np.zeros((t.size, model.ints[N_ROWS])), np.zeros((t.size, model.ints[N_ROWS]))
    for b in range(t.size):
        for l in range(active.shape[1]):
            switch(model, l, active[b, l])
        refresh(model, t[b])
        world_positions(SCALAR, model, q[b], work)
        residual_rows(model, q[b], work, residual[b])
        world_velocities(SCALAR, model, v[b], work)
        velocity_rows(model, q[b], v[b], work, psi[b])
    return residual, psi


def gaps(model, contacts, t, q, v):
    """Gaps and their rates (count, contacts), NaN where a contact is off; slip (count, contacts, 3)."""
    active = np.repeat(statuses(model)[None], len(t), axis=0)
    off = statuses(model)[contacts.index] == OFF
    active[:, contacts.index] = np.where(off, OFF, ON)  # with rows for every contact that is not off, closed or open
    residual, psi = row_states(model._replace(ints=model.ints.copy()), active, t, q, v)
    gap, rate = (np.where(off, np.nan, contacts.side * rows[:, contacts.first]) for rows in (residual, psi))
    slip = np.zeros((len(t), len(contacts.index), 3))
    for c, count in enumerate(contacts.count):
        slip[:, c, :count - 1] = psi[:, contacts.tangential(c)]
    return gap, rate, slip


def by_forces(run, lam):
    """Time-stepping: the status of every constraint (rows, constraints) from the forces (rows, m) of steps."""
    contacts, status = run.contacts, np.tile(statuses(run.packed), (len(lam), 1))
    for c, (index, count) in enumerate(zip(contacts.index, contacts.count)):
        normal, rub = map(np.abs, contacts.loads(c, lam))
        disk = np.multiply(contacts.friction[c], normal, out=np.zeros_like(normal), where=normal > 0.0)
        closed = np.where((rub < disk * (1.0 - 1e-9)) & (count > 1), ON, SLIDING)
        status[:, index] = np.where(status[:, index] == OFF, OFF, np.where(
            (normal > 0.0) | contacts.dry[c], closed, OPEN))
    return status


def steps_of_contacts(run, k):
    """Time-stepping: the status of every constraint at rows 1 to k, from the forces of the steps that end there.

    Contacts that close or open between two rows become records of the run.
    """
    rows, robot = run.rows, run.robot
    status, number = by_forces(run, rows.lam[:k + 1]), {index: c for c, index in enumerate(run.contacts.index)}
    for p in np.flatnonzero(((status[1:] > OFF) != (status[:-1] > OFF)).any(axis=1)) + 1:
        before, after = (rows.q[p - 1], rows.v[p - 1]), (rows.q[p], rows.v[p])
        h = rows.t[p] - rows.t[p - 1]
        for index in np.flatnonzero((status[p] > OFF) != (status[p - 1] > OFF)):
            name, closes, c = robot.constraint_names[index], status[p, index] > OFF, number[index]
            run.recorder.events.append(EventRecord(
                float(rows.t[p]), run.contacts.event("contact" if closes else "release", c),
                *(x.copy() for x in before + after),
                np.where(np.isin(robot.row_owners, name), h * rows.lam[p], 0.0),
                float(rows.memory[p, run.contacts.first[c]]), (name,) if closes else (), () if closes else (name,)))
    return status[1:]
