"""Keeps the states of a run as they come, and makes the trajectory of what there is at any moment."""
import numpy as np

from liedyn.constraints.records import refresh, switch
from liedyn.constraints.rows import residual_rows, velocity_rows
from liedyn.constraints.wrenches import wrenches_at
from liedyn.dense import largest_size
from liedyn.jit import kernel
from liedyn.lie.lanes import SCALAR
from liedyn.model.packed import N_ROWS, OFF, PackedModel
from liedyn.simulation.trajectory import Trajectory
from liedyn.simulation.workspace import CONDITION, INPUT_WORK, OTHER_WORK
from liedyn.tree.energy import kinetic_energy_states, potential_energy_states
from liedyn.tree.kinematics import world_positions, world_size, world_velocities


@kernel
def residual_states(model, t, active, q, v, residuals):
    """Largest position and velocity residual of each row, with the constraints that were on then."""
    work, rows = np.empty(world_size(model)), np.zeros(model.ints[N_ROWS])
    for b in range(q.shape[0]):
        for l in range(active.shape[1]):
            switch(model, l, active[b, l])
        refresh(model, t[b])
        world_positions(SCALAR, model, q[b], work)
        residual_rows(model, q[b], work, rows)
        residuals[b, 0] = largest_size(rows)
        world_velocities(SCALAR, model, v[b], work)
        velocity_rows(model, q[b], v[b], work, rows)
        residuals[b, 1] = largest_size(rows)


def energies_at(robot, q, v):
    """Kinetic and potential energy at each row, whatever numbers it has."""
    energies, verdict = np.empty((2, len(q), 1)), np.ones(1, np.int64)
    if len(q):
        kinetic_energy_states(robot.packed, q, v, energies[0], verdict)
        potential_energy_states(robot.packed, q, energies[1], verdict)
    return energies[:, :, 0]


class Recorder:
    """Blocks of rows, every `every`-th step of them, and the events."""

    def __init__(self, every):
        self.every, self.steps = every, 0
        self.blocks, self.events = [], []

    def add(self, rows, first, last, status):
        """Rows first to last, ends included, each one more step; `status` of the constraints in all or each."""
        keep = np.arange(first, last + 1)
        chosen = (self.steps + keep - first) % self.every == 0
        self.steps += last + 1 - first
        self._put(rows, keep[chosen], status[chosen] if status.ndim == 2 else status)

    def add_always(self, rows, k, status):
        """Row k, whatever its number: the sides of an event, the end."""
        self._put(rows, np.array([k]), status)

    def _put(self, rows, keep, status):
        if len(keep):
            columns = (rows.t, rows.q, rows.v, rows.a, rows.tau, rows.lam, rows.scalars)
            self.blocks.append((*(column[keep] for column in columns),
                                np.broadcast_to(status, (len(keep), len(status.T))).copy()))

    def last_time(self):
        return self.blocks[-1][0][-1] if self.blocks else None

    def trajectory(self, robot, **settings):
        """All that is there so far."""
        if self.blocks:
            t, q, v, a, tau, lam, scalars, active = (np.concatenate(column) for column in zip(*self.blocks))
        else:
            m = int(robot.ints[N_ROWS])
            t, q, v, lam, scalars = np.empty(0), *(np.empty((0, n)) for n in (robot.nq, robot.nv, m, 4))
            a, tau, active = v.copy(), v.copy(), np.empty((0, len(robot.constraint_names)), np.int64)
        (kinetic, potential), residuals = energies_at(robot, q, v), np.zeros((len(t), 2))
        if len(t):
            residual_states(PackedModel(robot.ints.copy(), robot.floats.copy()), t, active, q, v, residuals)
        return Trajectory(
            t=t, q=q, v=v, a=a, tau=tau, lam=lam, active=active > OFF, status=active, kinetic=kinetic,
            potential=potential, input_work=scalars[:, INPUT_WORK].copy(),
            other_work=scalars[:, OTHER_WORK].copy(), position_residual=residuals[:, 0].copy(),
            velocity_residual=residuals[:, 1].copy(), condition=scalars[:, CONDITION].copy(),
            constraint_wrenches=wrenches_at(robot, t, q, lam), events=tuple(self.events), robot=robot.name,
            coordinate_names=robot.coordinate_names, velocity_names=robot.velocity_names, row_names=robot.row_names,
            constraint_names=robot.constraint_names, **settings)
