"""The result of a simulation: every recorded state with its forces, energies and errors, and the events of the run."""
# mypy: ignore-errors

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import require_robot
from liedyn.machine.by_name import by_name
from liedyn.machine.errors import InputError, LiedynError, said, shown
from liedyn.machine.reading import open_regular

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, Booleans, Integers, PathLike


@dataclass(frozen=True, repr=False)
class EventRecord:
    """One event of a run.

    Attributes
    ----------
    t : float
        Time [s].
    name : str
        Name of the event; for a unilateral constraint ``"contact <constraint>"`` where it closes or bounces,
        ``"release ..."`` where it opens, ``"stick ..."`` and ``"slip ..."`` where friction begins or ceases to hold
        it, ``"jam ..."`` where friction stops it at once (an impact without collision). Of an inextensible cable the
        first two are shown as "... becomes taut" and "... goes slack", unless they come from a file. All changes at one
        time are one change of the state: their records share times and states, and the first record whose constraints
        have impulses has the energy loss. In time-stepping each contact that closes has its own.
        ``"singular passage"`` where the constraints lose rank, exactly or nearly; it changes nothing, and adds no
        rows to the trajectory.
    q_before, v_before, q_after, v_after : ndarray
        The state before and after it.
    impulse : ndarray, shape (m,)
        Impulses of the constraints, rows as in ``row_names`` [N m s, N s]: ``M (v_after - v_before) = -G^T impulse``,
        summed over the records at this time, each of which has the rows of its own constraints.
    energy_loss : float
        Kinetic and potential energy before minus after [J].
    on, off : tuple of str
        Constraints that it has switched, including contacts that have closed or opened.
    condition : float
        For a singular passage the largest condition number of G in a row; else NaN.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> opens = ld.Event("open", lambda t, q, v: t - 0.05, off="pin")
    >>> [(event.name, round(event.t, 9), event.off) for event in ld.simulate(robot, robot.home, [0.0] * 4, 0.1,
    ...                                                                      events=opens).events]
    [('open', 0.05, ('pin',))]
    """

    t: float
    name: str
    q_before: Array
    v_before: Array
    q_after: Array
    v_after: Array
    impulse: Array
    energy_loss: float
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    condition: float = float("nan")

    def __repr__(self) -> str:
        switched = "".join(f", {key}={names!r}" for key, names in (("on", self.on), ("off", self.off)) if names)
        return f"EventRecord({self.name!r}, t={self.t:.6g}, energy_loss={self.energy_loss:.3g}{switched})"


@dataclass(frozen=True, repr=False)
class Trajectory:
    """A simulated motion. At an event there are two rows of the same time: before and after.

    Attributes
    ----------
    t : ndarray, shape (nt,)
        Times [s].
    q, v, a : ndarray, shape (nt, nq), (nt, nv), (nt, nv)
        Configurations, velocities, accelerations.
    tau : ndarray, shape (nt, nv)
        Generalised forces of the inputs plus those of force elements.
    lam : ndarray, shape (nt, m)
        Multipliers of ``M a + h = tau - G^T lam``; zero in the rows of constraints that are off.
    constraint_wrenches : dict
        For every loop the wrench (moment, force), shape (nt, 6), as in `forward_dynamics`.
    active : ndarray of bool, shape (nt, nc)
        Constraints that are on, in the order of ``constraint_names``; one-sided ones if they are closed.
    status : ndarray of int, shape (nt, nc)
        Status of each constraint: 0 off, 1 on or sticking, 2 closed without tangential rows (sliding), -1 open.
    kinetic, potential : ndarray, shape (nt,)
        Energies [J]; `potential` includes springs, gas springs and bushings.
    input_work, other_work : ndarray, shape (nt,)
        Work since the start [J]. `input_work`: of the inputs and of force elements without their stored energy
        (damping, friction, motors, applied forces, laws that are functions). `other_work`: of dampers of joints,
        external wrenches and moving targets.
    position_residual, velocity_residual : ndarray, shape (nt,)
        Largest closure error [rad, m] and largest violation of ``G v = b`` [rad/s, m/s].
    condition : ndarray, shape (nt,)
        Distance from a singular configuration: ratio of largest to smallest pivot (null space) or singular value (SVD)
        of G; NaN for the other formulations.
    events : tuple of EventRecord
    robot : str
        Name of the robot.
    coordinate_names, velocity_names, row_names, constraint_names : tuple of str
    method, formulation, stabilisation : str
        How it was computed.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> tr = ld.simulate(robot, robot.home, [0.0] * 4, 0.01)
    >>> tr["q1"].shape, tr["velocity:q2"].shape, tr["pin.vx"].shape
    ((11,), (11,), (11,))
    """

    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    lam: Array
    active: Booleans
    status: Integers
    kinetic: Array
    potential: Array
    input_work: Array
    other_work: Array
    position_residual: Array
    velocity_residual: Array
    condition: Array
    constraint_wrenches: dict[str, Any] = field(default_factory=dict)
    events: tuple[EventRecord, ...] = ()
    robot: str = ""
    coordinate_names: tuple[str, ...] = ()
    velocity_names: tuple[str, ...] = ()
    row_names: tuple[str, ...] = ()
    constraint_names: tuple[str, ...] = ()
    method: str = ""
    formulation: str = ""
    stabilisation: str = ""
    # the robot itself, for animations; neither saved nor pickled
    _robot: object = field(default=None, compare=False)
    _f_ext: object = field(default=None, compare=False)  # external wrenches of the run, as the user gave them

    def __getstate__(self) -> Any:
        return vars(self) | {"_robot": None}

    @functools.cached_property
    def u(self) -> Array:
        """Forces of the actuators [N m, N], shape (nt, nu), from `tau`.

        Raises
        ------
        InputError
            Other forces than those of actuators were applied (`tau` of `simulate`), or two actuators do the same.
        LiedynError
            The trajectory came from a file, without its robot.
        """
        return by_name("liedyn.motion.simulation.run_columns:inputs")(self)

    @property
    def energy(self) -> Array:
        """Kinetic and potential energy [J], shape (nt,)."""
        return self.kinetic + self.potential

    @property
    def energy_drift(self) -> Array:
        """Energy minus its first value, the work done and the losses at events [J]: zero up to errors, shape (nt,)."""
        drift = self.energy - self.energy[0] - self.input_work - self.other_work
        for event in self.events:
            # the second of the two rows of an event is after the loss
            drift[np.searchsorted(self.t, event.t, side="right") - 1:] += event.energy_loss
        return drift

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        span = f"{self.t[0]:g} to {self.t[-1]:g} s" if len(self.t) else "empty"
        return (f"Trajectory({self.robot!r}, {len(self)} states, {span}, {len(self.events)} events, "
                f"{self.method}/{self.formulation}/{self.stabilisation})")

    def __getitem__(self, name: str) -> Array:
        """A column by name: a coordinate, ``velocity:x``, ``acceleration:x``, ``force:x``, a constraint row;

        ``u:actuator``; ``pose:body`` (nt, 4, 4), ``twist:body``, ``twist_rate:body`` (nt, 6), in the body's frame, also
        of frames; ``wrench:x`` (nt, 6) of a joint, loop or contact, as in `joint_wrenches` and `constraint_wrenches`;
        ``spring.length``, ``spring.rate``, ``spring.force`` of a force element, as in `element_states`; ``energy``,
        ``kinetic``, ``potential``.
        """
        if not isinstance(name, str):
            raise InputError(f"expected the name of a column, got {shown(name)}")
        return by_name("liedyn.motion.simulation.run_columns:column")(self, name)

    def plot(self, names: str | Sequence[str] | None = None, ax: Any = None) -> Any:
        """Plot columns over time, with events as vertical lines.

        Parameters
        ----------
        names : str or sequence of str, optional
            Columns, as in ``trajectory[name]``, or ``"energy"``; by default the coordinates, at most ten.
        ax : matplotlib axes, optional
            Axes to draw in. Default: a new figure.

        Returns
        -------
        ax : matplotlib axes
            ``ax.figure.savefig(path)`` writes the picture.

        Raises
        ------
        LiedynError
            Matplotlib is not installed.
        InputError
            There is no column of that name.

        Examples
        --------
        >>> import liedyn as ld
        >>> robot = ld.load("five_bar")
        >>> ld.simulate(robot, robot.home, [0.0] * 4, 0.01).plot("velocity:q1").get_xlabel()
        't [s]'
        """
        return by_name("liedyn.motion.simulation.run_curves:plot")(self, names, ax)

    def animate(self, path: PathLike, robot: Robot | None = None, speed: float = 1.0, rate: float = 25.0,
                progress: bool | None = None) -> Path:
        """Write an animation of the run.

        Parameters
        ----------
        path : str or Path
            ``.gif``, or ``.mp4`` where FFmpeg is installed, by the system or by the extra `video`.
        robot : Robot, optional
            The robot of the run: needed for trajectories that were loaded from a file.
        speed : float
            Seconds of the run per second of the animation.
        rate : float
            Pictures per second, between 0.1 and 1000.
        progress : bool, optional
            Shows a progress bar, as in `simulate`.

        Returns
        -------
        path : Path
            The file written.

        Raises
        ------
        LiedynError
            Matplotlib, or FFmpeg for ``.mp4``, is not installed, or the file cannot be written.
        InputError
            Another file type, no robot, or another one; the trajectory is empty; more than 10,000 pictures.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import liedyn as ld
        >>> robot = ld.load("five_bar")
        >>> tr = ld.simulate(robot, robot.home, [0.0] * 4, 0.1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tr.animate(f"{folder}/fall.gif").stat().st_size > 1000
        True
        """
        animate = by_name("liedyn.look.animation:animate_run")
        return animate(self, path, robot if robot is not None else self._robot, speed, rate, progress)

    def to_dataframe(self) -> Any:
        """All columns as a pandas table, one row for each state.

        Returns
        -------
        pandas.DataFrame
            Its index is the time, "t"; columns are named as in ``trajectory[name]``, followed by the energies and
            residuals. At an event there are two rows of the same time.

        Raises
        ------
        LiedynError
            pandas is not installed.

        Examples
        --------
        >>> import liedyn as ld
        >>> robot = ld.load("five_bar")
        >>> ld.simulate(robot, robot.home, [0.0] * 4, 0.01).to_dataframe()["velocity:q1"].shape
        (11,)
        """
        try:
            import pandas
        except ImportError:
            raise LiedynError("to_dataframe needs pandas: pip install 'liedyn[pandas]'") from None
        names = [*self.coordinate_names, *(f"{kind}:{name}" for kind in ("velocity", "acceleration", "force")
                                           for name in self.velocity_names), *self.row_names]
        numbers = ("kinetic", "potential", "input_work", "other_work", "position_residual", "velocity_residual",
                   "condition")
        return pandas.DataFrame({name: self[name] for name in names} | {name: getattr(self, name) for name in numbers},
                                index=pandas.Index(self.t, name="t"))

    def save(self, path: PathLike) -> Path:
        """Write everything to one ``.npz`` file.

        Parameters
        ----------
        path : str or Path
            ``.npz`` is added if it is missing.

        Returns
        -------
        path : Path
            The file written.

        Raises
        ------
        OSError
            The file cannot be written.

        Notes
        -----
        Arrays are stored by their names; names and the numbers of events as JSON text in ``meta``. No pickles.

        Examples
        --------
        >>> import tempfile
        >>> import liedyn as ld
        >>> robot = ld.load("five_bar")
        >>> tr = ld.simulate(robot, robot.home, [0.0] * 4, 0.01)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     len(ld.Trajectory.load(tr.save(f"{folder}/fall")))
        11
        """
        path = Path(path)
        path = path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
        arrays, meta = _split(self)
        meta["events"], meta["wrenches"] = [], list(meta.pop("constraint_wrenches"))
        arrays |= {f"wrench_{k}": wrench for k, wrench in enumerate(self.constraint_wrenches.values())}
        for k, event in enumerate(self.events):
            of_event, values = _split(event)
            arrays |= {f"event_{k}_{name}": x for name, x in of_event.items()}
            meta["events"].append(values)
        np.savez_compressed(path, meta=np.array(json.dumps(meta)), **arrays)
        return path

    @classmethod
    def load(cls, path: PathLike, robot: Robot | None = None) -> Trajectory:
        """Read a file that `save` has written.

        Parameters
        ----------
        path : str or Path
        robot : Robot, optional
            The robot of the run, for `u`, poses, twists and animations.

        Returns
        -------
        Trajectory
            Equal to the one saved.

        Raises
        ------
        InputError
            The file was not written by `save`, or is no regular file; the robot has other coordinates or constraints.

        Notes
        -----
        The file names the robot but does not contain it.

        Examples
        --------
        >>> import tempfile
        >>> import liedyn as ld
        >>> robot = ld.load("five_bar")
        >>> tr = ld.simulate(robot, robot.home, [0.0] * 4, 0.01)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ld.Trajectory.load(tr.save(f"{folder}/fall")).robot
        'five_bar'
        """
        try:
            with open_regular(path) as archive, np.load(archive, allow_pickle=False) as file:
                data = {name: file[name] for name in file.files}
        except Exception as error:  # NumPy and the zip library raise errors of all kinds
            raise InputError(f"{shown(path)} cannot be read as a trajectory: {said(error)}") from error
        try:
            found = _made(cls, data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{shown(path)} was not written by Trajectory.save: {said(error)}") from None
        if robot is None:
            return found
        require_robot(robot)
        if any(getattr(robot, name) != getattr(found, name) for name in ("coordinate_names", "row_names")):
            raise InputError(f"{shown(path)} is a motion of {shown(found.robot)} with other coordinates or constraints "
                             f"than {shown(robot.name)}")
        return replace(found, _robot=robot)


def _made(kind, data):
    """An object of this class from the arrays of a file."""
    meta, events = json.loads(str(data.pop("meta"))), []
    for k, values in enumerate(meta.pop("events")):
        prefix = f"event_{k}_"
        numbers = {name.removeprefix(prefix): data.pop(name) for name in list(data) if name.startswith(prefix)}
        events.append(EventRecord(**{name: _as_tuple(x) for name, x in values.items()}, **numbers))
    wrenches = {name: data.pop(f"wrench_{k}") for k, name in enumerate(meta.pop("wrenches"))}
    meta = {name: _as_tuple(x) for name, x in meta.items()}
    return kind(**data, **meta, constraint_wrenches=wrenches, events=tuple(events))


def _split(record):
    """Fields of a dataclass by name: arrays, and all others."""
    values = {f.name: getattr(record, f.name) for f in fields(record) if not f.name.startswith("_")}
    arrays = {name: x for name, x in values.items() if isinstance(x, np.ndarray)}
    return arrays, {name: x for name, x in values.items() if name not in arrays}


def _as_tuple(x):
    return tuple(x) if isinstance(x, list) else x
