"""Gaps, their rates and slip velocities of all one-sided constraints along a run."""
import numpy as np

from liedyn.constraints.records import refresh
from liedyn.constraints.rows import residual_rows, velocity_rows
from liedyn.contact.state import statuses
from liedyn.jit import kernel
from liedyn.lie.lanes import SCALAR
from liedyn.model.packed import N_ROWS, OFF, ON, OPEN, SLIDING
from liedyn.simulation.trajectory import EventRecord
from liedyn.tree.kinematics import world_positions, world_size, world_velocities


@kernel
def row_states(model, t, q, v, residual, psi):
    """Residual and psi (count, m) of states (count, ...) at their times; floats is left at the last one."""
    work = np.empty(world_size(model))
    for b in range(q.shape[0]):
        refresh(model, t[b])
        world_positions(SCALAR, model, q[b], work)
        residual_rows(model, q[b], work, residual[b])
        world_velocities(SCALAR, model, v[b], work)
        velocity_rows(model, q[b], v[b], work, psi[b])


def watched(model, contacts):
    """The model in which every contact that is not off has its rows, closed or not."""
    model = model._replace(ints=model.ints.copy())
    status = statuses(model)
    status[contacts.index] = np.where(status[contacts.index] == OFF, OFF, ON)
    return model


def gaps(model, contacts, t, q, v):
    """Gaps and their rates (count, contacts), not a number where a contact is off; slip (count, contacts, 3)."""
    m = int(model.ints[N_ROWS])
    residual, psi = np.zeros((len(t), m)), np.zeros((len(t), m))
    row_states(watched(model, contacts), t, q, v, residual, psi)
    off = statuses(model)[contacts.index] == OFF
    gap, rate = contacts.side * residual[:, contacts.first], contacts.side * psi[:, contacts.first]
    gap[:, off], rate[:, off] = np.nan, np.nan
    slip = np.zeros((len(t), len(contacts.index), 3))
    for c, (first, count) in enumerate(zip(contacts.first, contacts.count)):
        slip[:, c, :count - 1] = psi[:, first + 1:first + count]
    return gap, rate, slip


def steps_of_contacts(run, k):
    """Time-stepping: the status of every constraint at rows 1 to k, by the forces of the steps that lead there.

    Contacts that close or open between two rows become records of the run.
    """
    contacts, rows, robot = run.contacts, run.rows, run.robot
    status = np.tile(statuses(run.packed), (k + 1, 1))
    for c, (index, first, count) in enumerate(zip(contacts.index, contacts.first, contacts.count)):
        normal, rub = np.abs(rows.lam[:k + 1, first]), np.linalg.norm(rows.lam[:k + 1, first + 1:first + count], axis=1)
        sticks = (rub < contacts.friction[c] * normal * (1.0 - 1e-9)) if count > 1 else np.zeros(k + 1, bool)
        closed = np.where(sticks, ON, SLIDING)
        status[:, index] = np.where(status[:, index] == OFF, OFF, np.where(normal > 0.0, closed, OPEN))
    for p in np.flatnonzero(((status[1:] > OFF) != (status[:-1] > OFF)).any(axis=1)) + 1:
        before, after = (rows.q[p - 1], rows.v[p - 1]), (rows.q[p], rows.v[p])
        h, loss = rows.t[p] - rows.t[p - 1], float(rows.memory[p, 0])
        for index in np.flatnonzero((status[p] > OFF) != (status[p - 1] > OFF)):
            name, closes = robot.constraint_names[index], status[p, index] > OFF
            own = np.array(robot.row_owners) == name
            run.recorder.events.append(EventRecord(
                float(rows.t[p]), f"{'contact' if closes else 'release'} {name}", *(x.copy() for x in before + after),
                np.where(own, h * rows.lam[p], 0.0), loss, (name,) if closes else (), () if closes else (name,)))
            loss = 0.0
    return status[1:]
