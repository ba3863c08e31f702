"""Stores the states of a run, and makes a trajectory of them at any time.

Checks the energy of conservative runs, and warns of steps that change it.
"""
# mypy: ignore-errors
import warnings

import numpy as np

from liedyn.machine.errors import ConditionWarning
from liedyn.mechanics.constraints.constraint_wrenches import wrenches_at
from liedyn.mechanics.elements.generalized import energies as held_energies
from liedyn.mechanics.tree.energy import kinetic_energy_states, potential_energy_states
from liedyn.model.packed import N_ROWS, OFF, PackedModel
from liedyn.motion.simulation.gaps import row_states
from liedyn.motion.simulation.manifold_projection import constraint_state
from liedyn.motion.simulation.trajectory import Trajectory
from liedyn.motion.simulation.workspace import CONDITION, INPUT_WORK, OTHER_WORK, TABLE

UNUSUAL = 100.0
"""A step is reported if its change of energy is this many times the median of the run's steps,"""
NOTICEABLE = 1e-6
"""and above this part of the largest kinetic energy,"""
ROUNDING = 1e-13
"""and above this part of the largest potential energy, of which the change is a difference."""
GROWTH = 1e-3
"""Growth of the energy over the run, relative to the largest kinetic energy, that is reported in any case."""


def is_conservative(run):
    """True if inputs, dampers, external wrenches, moving targets and stabilisation leave the energy unchanged."""
    x, o = run.x, run.o
    if run.integrator.stepping or run.settler is not None:  # impacts happen within their steps
        return False
    if o.input_kind != TABLE or run.inputs.sampling is not None or o.all_power:
        return False
    if np.count_nonzero(x.table) or np.count_nonzero(x.damping):
        return False
    if run.robot.elements is not None and not run.robot.elements.conservative:
        return False
    if o.rate == o.stiffness == 0.0:
        return True
    return constraint_state(run.packed, x, run.rows.q[0], run.rows.v[0])


class EnergyCheck:
    """Checks the rows of a run as they are computed, if not all are recorded, and warns at the end."""

    def __init__(self, run):
        self.on, self.every, self.parts = is_conservative(run), run.recorder.every, []

    def look(self, robot, rows, last):
        """Checks rows 0 to `last`, each a step from the one before."""
        if self.on and last > 0 and self.every > 1:
            energies = energies_at(robot, rows.q[:last + 1], rows.v[:last + 1])
            self.parts.append(_steps(rows.t[:last + 1], *energies, rows.scalars[:last + 1, CONDITION]))

    def warn(self, trajectory):
        """One warning for the run, if any step changed the energy.

        Warns
        -----
        ConditionWarning
            Gives the number of steps, the worst one, its time and condition number; or how much the energy has grown.
        """
        if self.on and self.every == 1:
            energy = trajectory.energy
            if np.abs(energy[1:] - energy[:-1]).sum() <= NOTICEABLE * trajectory.kinetic.max(initial=0.0):
                return  # far from any warning, whatever the steps are
            self.parts = [_steps(trajectory.t, trajectory.kinetic, trajectory.potential, trajectory.condition)]
        if not self.parts:
            return
        times, changes, conditions, kinetic, potential = (
            self.parts[0] if len(self.parts) == 1 else (np.concatenate(column) for column in zip(*self.parts)))
        if not len(changes):
            return
        size, peak, noise = np.abs(changes), kinetic.max(), ROUNDING * np.abs(potential).max()
        wrong = size > max(NOTICEABLE * peak, noise)
        wrong &= wrong.any() and size > UNUSUAL * np.median(size)
        growth = np.cumsum(changes).max()
        if not (wrong.any() or growth > max(GROWTH * peak, noise)):
            return
        worst, name = int(size.argmax()), trajectory.robot
        text = (f"the step of {name!r} to t = {times[worst]:.9g} s changes the energy by "
                f"{changes[worst]:.3g} J (condition number {conditions[worst]:.3g})")
        if wrong.any():
            count = int(wrong.sum())
            text += (f", where nothing should; {count} such step{'s' if count > 1 else ''}, the median change is "
                     f"{np.median(size):.3g} J. ")
        else:
            text += f" and all steps together by up to {growth:.3g} J, where nothing should. "
        warnings.warn(text + "Steps are too long, near a singular configuration or all along: results from there on "
                      "are no better than that", ConditionWarning, stacklevel=4)


def _steps(t, kinetic, potential, condition):
    """Time, change of energy, condition number and both energies of each step; the two rows of an event are no step."""
    energy, steps = kinetic + potential, t[1:] > t[:-1]
    if steps.all():
        steps = slice(None)
    return (t[1:][steps], (energy[1:] - energy[:-1])[steps], np.fmax(condition[1:], condition[:-1])[steps],
            kinetic[1:][steps], potential[1:][steps])


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
        begin = -self.steps % self.every
        self.steps += last + 1 - first
        self._put(rows, slice(first + begin, last + 1, self.every),
                  status[begin::self.every] if status.ndim == 2 else status)

    def add_always(self, rows, k, status):
        """Stores row k whatever its number: the two rows of an event, and the last one."""
        self._put(rows, slice(k, k + 1), status)

    def _put(self, rows, keep, status):
        if len(t := rows.t[keep].copy()):
            statuses = np.empty((len(t), status.shape[-1]), status.dtype)
            statuses[:] = status
            columns = rows.q, rows.v, rows.a, rows.tau, rows.lam, rows.scalars
            self.blocks.append((t, *(column[keep].copy() for column in columns), statuses))

    def last_time(self):
        return self.blocks[-1][0][-1] if self.blocks else None

    def trajectory(self, robot):
        """The trajectory of all rows stored so far."""
        if len(self.blocks) > 1:
            self.blocks = [[np.concatenate(column) for column in zip(*self.blocks)]]
        if self.blocks:
            t, q, v, a, tau, lam, scalars, active = self.blocks[0]
        else:
            m = int(robot.packed.ints[N_ROWS])
            t, q, v, lam, scalars = np.empty(0), *(np.empty((0, n)) for n in (robot.nq, robot.nv, m, 4))
            a, tau, active = v.copy(), v.copy(), np.empty((0, len(robot.constraint_names)), np.int64)
        (kinetic, potential), residual = energies_at(robot, q, v), np.zeros((2, len(t), 1))
        if len(t):
            residual = row_states(PackedModel(robot.packed.ints.copy(), robot.packed.floats.copy()),
                                  np.ascontiguousarray(active), t, q, v)
        position, velocity = (np.maximum.reduce(np.abs(rows), axis=1, initial=0.0) for rows in residual)
        condition, input_work, other_work = (scalars[:, k].copy() for k in (CONDITION, INPUT_WORK, OTHER_WORK))
        return Trajectory(
            t, q, v, a, tau, lam, active > OFF, active, kinetic, potential, input_work, other_work, position, velocity,
            condition, wrenches_at(robot, t, q, lam), tuple(self.events), robot.name, robot.coordinate_names,
            robot.velocity_names, robot.row_names, robot.constraint_names, **self.labels, _robot=robot)
