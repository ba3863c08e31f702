"""Many simulated motions: one trajectory for each initial state, and their states as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.by_name import by_name
from liedyn.machine.errors import InputError, shown
from liedyn.motion.simulation.recorder import Recorder
from liedyn.motion.simulation.workspace import CONDITION, INPUT_WORK, OTHER_WORK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.motion.simulation.trajectory import Trajectory
    from liedyn.typing import Booleans

COLUMNS = "q", "v", "a", "tau", "lam"
SCALARS = {"condition": CONDITION, "input_work": INPUT_WORK, "other_work": OTHER_WORK}
NAMES = "coordinate_names", "velocity_names", "row_names"


class Trajectories:
    """The result of `simulate` for a batch of initial states.

    Attributes
    ----------
    shape : tuple of int
        Leading axes of the initial states.
    t : ndarray, shape (nt,)
        Times [s] of all runs. This and the arrays below exist only if all runs have the same times: events add rows.
    q, v, a, tau, lam : ndarray, shape (..., nt, nq), (..., nt, nv), ..., (..., nt, m)
        As in `Trajectory`. NaN after the end of a run that failed, and everywhere for runs that could not
        start.
    u : ndarray, shape (..., nt, nu)
        Forces of the actuators, as in `Trajectory`.
    kinetic, potential, energy, input_work, other_work, condition : ndarray, shape (..., nt)
        As in `Trajectory`.
    failed : ndarray of bool, shape `shape`
        Runs that stopped with an error; their states up to there are available. For a run that could not start, taking
        its trajectory raises the error.
    errors : dict
        The error of each failed run, by its index, a tuple of int.

    Examples
    --------
    >>> import numpy as np, liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> starts = ld.close(robot, robot.home, q1=robot.home[0] + np.array([-0.1, 0.0, 0.1]))
    >>> runs = ld.simulate(robot, starts, [0.0] * 4, 0.05)
    >>> runs.shape, runs.q.shape, runs[1].t[-1].item(), bool(runs.failed.any())
    ((3,), (3, 51, 4), 0.05, False)
    >>> runs["q1"].shape, runs["pose:link1"].shape, runs.energy.shape
    ((3, 51), (3, 51, 4, 4), (3, 51))
    """

    shape: tuple[int, ...]
    errors: dict[str, Any]

    def __init__(self, robot: Robot, shape: tuple[int, ...]) -> None:
        self.shape, self.errors = shape, {}
        self._robot, self._runs = robot, [None] * int(np.prod(shape, dtype=int))
        self._times = self._found = self._labels = self._stacked = None

    def _keep(self, number, trajectory, error=None):
        """Stores the trajectory of a run made by itself, with the error that stopped it."""
        self._runs[number] = trajectory
        if error is not None:
            self.errors[self._index(number)] = error

    def _index(self, number):
        """The index of a run along each axis of the initial states."""
        return tuple(int(k) for k in np.unravel_index(number, self.shape))

    def _keep_together(self, times, found, labels):
        """Stores the results of runs in lanes (`liedyn.motion.simulation.simulate_in_lanes.Runs`)."""
        self._times, self._found, self._labels = times, found, labels

    @property
    def failed(self) -> Booleans:
        failed = np.zeros(self.shape, bool)
        for index in self.errors:
            failed[index] = True
        return failed

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Trajectory]:
        return (self._run(number) for number in range(len(self._runs)))

    def __getitem__(self, index: Any) -> Any:
        """The `Trajectory` of one run, by its index along each axis of the initial states; or a column of all runs.

        Columns are named as those of a `Trajectory`; they have the leading axes of the initial states.
        """
        if isinstance(index, str):
            return by_name("liedyn.motion.simulation.run_columns:column")(self, index)
        index = index if isinstance(index, tuple) else (index,)
        whole = all(isinstance(k, int | np.integer) and not isinstance(k, bool) for k in index)
        if not whole or len(index) != len(self.shape) or any(not -n <= k < n for k, n in zip(index, self.shape)):
            raise InputError(f"no run {shown(index)}: there are runs of shape {self.shape}")
        return self._run(int(np.ravel_multi_index([k % n for k, n in zip(index, self.shape)], self.shape)))

    def _run(self, number):
        if self._runs[number] is None and self._index(number) in self.errors:
            raise self.errors[self._index(number)]
        if self._runs[number] is None and self._labels is None:
            raise InputError(f"run {self._index(number)} was not made: the batch was interrupted")
        if self._runs[number] is None:
            status = np.tile(self._labels["status"], (len(self._times), 1))
            recorder = Recorder(1, {name: self._labels[name] for name in ("method", "formulation", "stabilisation")})
            columns = (getattr(self._found, name)[number].copy() for name in (*COLUMNS, "scalars"))
            recorder.blocks.append((self._times.copy(), *columns, status))
            self._runs[number] = recorder.trajectory(self._robot)
        return self._runs[number]

    def _together(self):
        """Times and arrays of all runs."""
        if self._stacked is None:
            alone = {number: run for number, run in enumerate(self._runs) if run is not None}
            times = self._times
            if times is None and not alone:
                raise InputError("there are no arrays: none of the runs could start")
            if times is None:
                times = max((run.t for run in alone.values()), key=len)
            for number, run in alone.items():
                if not np.array_equal(run.t, times[:len(run.t)]):
                    raise InputError(f"runs have times of their own, as number {number} with {len(run.events)} events: "
                                     "take them one by one")
            if self._found is None:
                arrays = {name: np.full((len(self._runs), len(times), *getattr(run, name).shape[1:]), np.nan)
                          for name in (*COLUMNS, *SCALARS)}
            else:
                arrays = {name: getattr(self._found, name) for name in COLUMNS}
                arrays |= {name: self._found.scalars[..., k] for name, k in SCALARS.items()}
            for number, run in alone.items():
                for name, array in arrays.items():
                    array[number, :len(run.t)] = getattr(run, name)
                    array[number, len(run.t):] = np.nan
            for number, run in enumerate(self._runs):
                if run is None and self._index(number) in self.errors:  # in lanes another run was in its place
                    for array in arrays.values():
                        array[number] = np.nan
            self._stacked = {name: array.reshape(self.shape + array.shape[1:]) for name, array in arrays.items()}
            self._stacked["t"] = times
        return self._stacked

    def __getattr__(self, name: str) -> Any:
        if name == "t" or name in COLUMNS or name in SCALARS:
            return self._together()[name]
        if name in ("kinetic", "potential", "energy"):
            if "kinetic" not in self._together():
                self._together()["kinetic"], self._together()["potential"] = by_name(
                    "liedyn.motion.simulation.run_columns:energies")(self)
            together = self._together()
            return together["kinetic"] + together["potential"] if name == "energy" else together[name]
        if name == "u":
            return by_name("liedyn.motion.simulation.run_columns:inputs")(self)
        if name in NAMES:
            return getattr(self._robot, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        failed = f", {len(self.errors)} of them failed" if self.errors else ""
        return f"Trajectories({self._robot.name!r}, {len(self._runs)} runs of shape {self.shape}{failed})"
