"""Stores the states of a run, and makes a trajectory of them at any time."""
# mypy: ignore-errors
import numpy as np

from liedyn.mechanics.constraints.constraint_wrenches import wrenches_at
from liedyn.mechanics.elements.generalized import energies as held_energies
from liedyn.mechanics.tree.energy import kinetic_energy_states, potential_energy_states
from liedyn.model.packed import N_ROWS, OFF, PackedModel
from liedyn.motion.simulation.gaps import row_states
from liedyn.motion.simulation.trajectory import Trajectory
from liedyn.motion.simulation.workspace import CONDITION, INPUT_WORK, OTHER_WORK


def energies_at(robot, q, v):
    """Kinetic and potential energy at each row."""
    energies, verdict = np.empty((2, len(q), 1)), np.ones(1, np.int64)
    if len(q):
        kinetic_energy_states(robot.packed, q, v, energies[0], verdict)
        potential_energy_states(robot.packed, q, energies[1], verdict)
        if robot.elements is not None:
            energies[1, :, 0] += held_energies(robot, q)
    return energies[:, :, 0]


class Recorder:
    """Stores every `every`-th row, and the events; `labels` name the method, formulation and stabilisation."""

    def __init__(self, every, labels):
        self.every, self.labels, self.steps = every, labels, 0
        self.blocks, self.events = [], []

    def add(self, rows, first, last, status):
        """Rows first to last, both included, one per step; `status` of the constraints, for all rows or for each."""
        keep = np.arange(first, last + 1)
        chosen = (self.steps + keep - first) % self.every == 0
        self.steps += last + 1 - first
        self._put(rows, keep[chosen], status[chosen] if status.ndim == 2 else status)

    def add_always(self, rows, k, status):
        """Stores row k whatever its number: the two rows of an event, and the last one."""
        self._put(rows, np.array([k]), status)

    def _put(self, rows, keep, status):
        if len(keep):
            columns = (rows.t, rows.q, rows.v, rows.a, rows.tau, rows.lam, rows.scalars)
            self.blocks.append((*(column[keep] for column in columns),
                                np.broadcast_to(status, (len(keep), len(status.T))).copy()))

    def last_time(self):
        return self.blocks[-1][0][-1] if self.blocks else None

    def trajectory(self, robot):
        """The trajectory of all rows stored so far."""
        if self.blocks:
            t, q, v, a, tau, lam, scalars, active = (np.concatenate(column) for column in zip(*self.blocks))
        else:
            m = int(robot.packed.ints[N_ROWS])
            t, q, v, lam, scalars = np.empty(0), *(np.empty((0, n)) for n in (robot.nq, robot.nv, m, 4))
            a, tau, active = v.copy(), v.copy(), np.empty((0, len(robot.constraint_names)), np.int64)
        (kinetic, potential), residual = energies_at(robot, q, v), np.zeros((2, len(t), 1))
        if len(t):
            residual = row_states(PackedModel(robot.packed.ints.copy(), robot.packed.floats.copy()), active, t, q, v)
        position, velocity = (np.abs(rows).max(axis=1, initial=0.0) for rows in residual)
        condition, input_work, other_work = (scalars[:, k].copy() for k in (CONDITION, INPUT_WORK, OTHER_WORK))
        return Trajectory(
            t, q, v, a, tau, lam, active > OFF, active, kinetic, potential, input_work, other_work, position, velocity,
            condition, wrenches_at(robot, t, q, lam), tuple(self.events), robot.name, robot.coordinate_names,
            robot.velocity_names, robot.row_names, robot.constraint_names, **self.labels, _robot=robot)
