"""Runs from many initial states: in SIMD lanes if possible, else one after the other in threads."""
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numba
import numpy as np

from liedyn.machine.compiled.slices import Slices
from liedyn.machine.errors import ConditionWarning, InputError, LiedynError
from liedyn.machine.progress import Progress, Stopped
from liedyn.machine.simd.lanes import WIDTH
from liedyn.mechanics.constraints.loops import rank_of
from liedyn.mechanics.contact.contact_state import statuses
from liedyn.mechanics.dynamics.forward_in_lanes import LONG_IN_LANES
from liedyn.model.calls.boundary import as_floats, require_usable
from liedyn.model.kinds import N_JOINTS
from liedyn.model.packed import LOOP_ACTIVE, LOOP_KIND, N_ROWS, OFF, SPARSE, constraints_of
from liedyn.motion.simulation.recorder import NOTICEABLE
from liedyn.motion.simulation.integrators.explicit import ExplicitRungeKutta
from liedyn.motion.simulation.preparation import consistent_starts, prepare_start
from liedyn.motion.simulation.recorder import energies_at
from liedyn.motion.simulation.sampled import Sampled
from liedyn.motion.simulation.simulate_in_lanes import Plan, Runs, advance_runs
from liedyn.motion.simulation.trajectories import Trajectories
from liedyn.motion.simulation.workspace import FREE_ENERGY, NONE, NULLSPACE, N_SCALARS, PROJECTION

FEWEST = 8
"""Smallest number of runs for which lanes are worth their compilation."""
FEWEST_STEPS = 64
"""Number of steps in the first slice of runs in lanes."""
MOST_NUMBERS = 2 ** 28
"""Largest number of results of runs in lanes, two gigabytes; larger batches are computed run by run."""


class Batch:
    """The initial states of a batch, and the forces of each run: tau, or u of the actuators.

    Forces are constant for all, (n,), or for each run, (*lead, n); over the time grid for all, (steps, n) or
    (steps + 1, n), or for each run, (*lead, steps, n); or anything that is no array, for all.
    """

    def __init__(self, robot, lead, q, v, tau, u, grid):
        if tau is not None and u is not None:
            raise InputError("give tau or u, not both: u are the forces of the actuators, tau those of all coordinates")
        self.robot, self.lead, self.q, self.v, self.grid = robot, lead, q, v, grid
        self.name, self.given = ("u", u) if u is not None else ("tau", tau)
        size = len(robot.actuator_names) if u is not None else robot.nv
        self.table = np.zeros((1, 1, size)) if self.given is None else None
        if not (self.given is None or callable(self.given) or isinstance(self.given, tuple | Sampled)):
            self.table = self._arranged(as_floats(self.name, self.given, size), (grid.steps, grid.steps + 1))
        if not len(q):
            raise InputError("there are no starts: q0 and v0 are empty")

    def _arranged(self, values, rows):
        """Forces (runs or 1, steps or 1, n)."""
        require_usable(self.name, values, axes=values.ndim)
        axes, size, lead = values.shape[:-1], values.shape[-1], self.lead
        if axes == lead and len(axes) == 1 and axes[0] in rows:
            raise InputError(f"{self.name} of shape {values.shape} may be meant for {axes[0]} runs or for as many "
                             f"steps: give shape {(*lead, 1, size)} or {(1, *values.shape)}")
        if axes == ():
            return values.reshape(1, 1, size).copy()
        if axes == lead:
            return values.reshape(-1, 1, size).copy()
        if len(axes) == 1 and axes[0] in rows:
            return values[None].copy()
        if axes[:-1] in (lead, (1,) * len(lead)) and axes[-1] in (1, *rows):
            return values.reshape(-1, axes[-1], size).copy()
        raise InputError(f"{self.name} of {len(self.q)} runs must have shape ({size},), {(*lead, size)}, "
                         f"({rows[0]}, {size}) or {(*lead, rows[0], size)}; got {values.shape}")

    def state(self, number):
        """Copies of an initial state."""
        return self.q[number].copy(), self.v[number].copy()

    def forces(self, number):
        """tau and u of a run, one of which is None."""
        given = self.given
        if self.table is not None and given is not None:
            rows = self.table[number if len(self.table) > 1 else 0]
            given = rows[0] if len(rows) == 1 else rows
        return (None, given) if self.name == "u" else (given, None)


class Wanted(NamedTuple):
    """Arguments of `simulate`, and the labels of the trajectories."""

    start: str
    record: int
    labels: dict
    events: tuple


def run_many(batch, prepared, run, method, wanted, progress):
    """The `Trajectories` of a batch.

    Parameters
    ----------
    batch : Batch
    prepared : function of (q, v, tau, u)
        Returns a `ReadyRun`.
    run : function of (q, v, tau, u, progress)
        Makes one run.
    method : Method
    wanted : Wanted
    progress
        As for `liedyn.simulate`.
    """
    runs, count = Trajectories(batch.robot, batch.lead), len(batch.q)
    bar = Progress(progress, 0, count, unit="runs")
    try:
        numbers = _side_by_side(batch, prepared, method, wanted, runs)
        bar.show(count - len(numbers))
        for done, _ in enumerate(_one_by_one(batch, runs, numbers, run), 1):
            bar.show(count - len(numbers) + done)
    except BaseException as stop:
        stop.trajectories = runs
        raise
    finally:
        bar.close()
    if runs.errors:
        index, error = next(iter(sorted(runs.errors.items())))
        warnings.warn(f"{len(runs.errors)} of {count} runs of {batch.robot.name!r} failed; the one at "
                      f"{index if len(index) > 1 else index[0]}: {error}", ConditionWarning, stacklevel=3)
    return runs


def _one_by_one(batch, runs, numbers, run):
    """Makes these runs one by one, in threads unless Python functions are called; yields after each run."""
    stop = threading.Event()

    def make(number):
        try:
            runs._keep(number, run(*batch.state(number), *batch.forces(number), stop))
        except LiedynError as error:
            runs._keep(number, getattr(error, "trajectory", None), error)
        except BaseException as end:
            runs._keep(number, getattr(end, "trajectory", None))
            if not isinstance(end, Stopped):
                raise

    threads = 1 if batch.robot.functions or batch.table is None else numba.get_num_threads()
    for number in numbers[:1 if threads > 1 else None]:  # the first one compiles
        yield make(number)
    if threads > 1 and len(numbers) > 1:
        with ThreadPoolExecutor(threads) as pool:
            try:
                yield from pool.map(make, numbers[1:])
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise


# ---- in lanes


def _fit_lanes(batch, method, model, o, contacts, events):
    """True if the runs can be made in lanes: plain joints and cut joints, a method with fixed steps, no events."""
    robot = batch.robot
    plain = robot.coordinate_names == robot.velocity_names and robot.elements is None and not robot.functions
    simple = not events and not len(contacts.index) and o.energy == FREE_ENERGY and not o.all_power
    records, long = constraints_of(model)[0], model.ints[SPARSE] and robot.nv > LONG_IN_LANES
    cut = not long and (records[records[:, LOOP_ACTIVE] != OFF][:, LOOP_KIND] < N_JOINTS).all()
    method_fits = isinstance(method, ExplicitRungeKutta) and o.formulation == NULLSPACE
    return (len(batch.q) >= FEWEST and batch.table is not None and plain and simple and cut and method_fits
            and o.stabilisation in (PROJECTION, NONE) and o.rate == o.stiffness == 0.0)


def _side_by_side(batch, prepared, method, wanted, runs):
    """Makes runs in lanes; returns the numbers of those that have to be made one by one."""
    robot, grid, count = batch.robot, batch.grid, len(batch.q)
    everyone, (start, record, labels, events) = list(range(count)), wanted
    first = prepared(*batch.state(0), *batch.forces(0))
    model, o, x, contacts, inputs = first
    n, m = robot.nv, int(model.ints[N_ROWS])
    recorded = np.unique(np.append(np.arange(0, grid.steps + 1, record), grid.steps))
    if (not _fit_lanes(batch, method, model, o, contacts, events)
            or count * len(recorded) * (4 * n + m + N_SCALARS) > MOST_NUMBERS):
        return everyone
    q, v = batch.q.copy(), batch.v.copy()
    ready = _ready(robot, first, grid.start, q, v, start)
    if ready.sum() < FEWEST:
        return everyone
    together, alone = np.flatnonzero(ready), np.flatnonzero(~ready)
    q[alone], v[alone] = q[together[0]], v[together[0]]
    rank = rank_of(robot, q[together[0]], o.rank_tolerance)[0] if m else 0
    plan = Plan(grid.start, grid.end, grid.dt, grid.steps, record, n - rank, o.stabilisation == PROJECTION, o.tolerance,
                o.rank_tolerance)
    shape = count, len(recorded)
    found = Runs(*(np.empty((*shape, size)) for size in (robot.nq, n, n, m, n)), np.zeros((*shape, N_SCALARS)),
                 np.full(count, grid.steps + 1), np.empty((count, robot.nq + n + 3)), np.zeros(count, np.int64))
    tau = np.ascontiguousarray(batch.table @ inputs.actuators.T)
    times = np.minimum(grid.start + recorded * grid.dt, grid.end)
    times[-1] = grid.end
    try:
        for budget in Slices(FEWEST_STEPS).until(lambda: (found.at > grid.steps).all()):
            advance_runs.at_once(0, count, count > WIDTH, model, q, v, tau, method.tableau, plan,
                                 (x.row_sizes, o.largest, x.damping), budget, found)
    finally:  # if interrupted, the rows that all runs have
        whole = int(np.searchsorted(recorded, found.at.min()))
        for run in np.flatnonzero(found.done <= grid.steps):  # another run took over its lane
            for each in found[:6]:
                each[run, np.searchsorted(recorded, found.done[run]):] = np.nan
        runs._keep_together(times[:whole], Runs(*(each[:, :whole] for each in found[:6]), *found[6:]),
                            labels | {"status": statuses(model).copy()})
    left = found.done <= grid.steps
    if not (tau.any() or x.damping.any()):
        left[~left] = _gain_energy(robot, *(x[:, [0, -1]][~left] for x in (found.q, found.v)))
    return sorted({*alone.tolist(), *np.flatnonzero(left).tolist()})


def _ready(robot, first, t, q, v, start):
    """For every run: True if it can start from its state, which `start="project"` moves to the manifold in place.

    Errors of the others are raised when they are made by themselves.
    """
    model, o, x, _, _ = first
    if start == "check" and len(x.psi):
        return consistent_starts(robot, model, x, t, q, v)
    ready = np.ones(len(q), dtype=bool)
    if start == "project":
        for number in range(len(q)):
            try:
                prepare_start(robot, model, o, x, q[number], v[number], start)
            except LiedynError:
                ready[number] = False
    return ready


def _gain_energy(robot, q, v):
    """Runs whose energy changes so much that `liedyn.motion.simulation.recorder` may have to warn, from their first and
    last states (runs, 2, ...)."""
    first, last = (energies_at(robot, q[:, k].copy(), v[:, k].copy()) for k in (0, 1))
    return ~(np.abs(last.sum(axis=0) - first.sum(axis=0)) <= NOTICEABLE * np.maximum(first[0], last[0]))
