"""Motions over time on a stage: a trajectory with its forces and events, or a mode; and the clock for playback.

Pages that need no server and no network: viser's recorded scene, in one file.
"""
# mypy: ignore-errors

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from liedyn.look.viewer.server import close_server, open_server
from liedyn.look.viewer.stage import Stage
from liedyn.machine.arguments import positive, require_robot
from liedyn.machine.errors import InputError, LiedynError, shown
from liedyn.machine.progress import Progress
from liedyn.machine.texts import printable
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.tree.configuration import integrate
from liedyn.model.calls.boundary import states
from liedyn.model.packed import as_shown

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.motion.simulation.trajectory import Trajectory
    from liedyn.typing import ArrayLike, PathLike

MOST_FRAMES = 3000
"""Largest number of pictures of a page: a longer run has fewer per second."""


def export_html(robot: Robot, trajectory: Trajectory | ArrayLike, path: PathLike, speed: float = 1.0,
                forces: bool = True, progress: bool | None = None, dark: bool = False) -> Path:
    """Write a page with a robot in motion, which any browser plays without a server and without a network.

    Parameters
    ----------
    robot : Robot
    trajectory : Trajectory or array_like, shape (nq,)
        A run of this robot; or one configuration [rad, m; quaternions (x, y, z, w)], which does not move.
    path : str or Path
        File to write.
    speed : float
        Seconds of the run per second of the page.
    forces : bool
        True to draw forces of constraints and contacts as arrows.
    progress : bool, optional
        Shows a progress bar, as in `simulate`.
    dark : bool
        True for a dark page.

    Returns
    -------
    path : Path
        The file, a megabyte or more.

    Raises
    ------
    InputError
        The trajectory belongs to another robot, or is empty; the speed is not positive.
    LiedynError
        viser or trimesh is not installed, or the file cannot be written.

    Warns
    -----
    ModelWarning
        A mesh file of the robot does not exist.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> tr = ld.simulate(robot, robot.home, [0.0] * 4, 1.0)
    >>> ld.export_html(robot, tr, "run.html")  # doctest: +SKIP
    PosixPath('run.html')
    """
    require_robot(robot)
    speed = positive("speed", speed)
    run = Run(robot, trajectory) if hasattr(trajectory, "coordinate_names") else None
    if run is None:
        lead, rows = states(robot, q=trajectory)
        if lead:
            raise InputError(f"expected a Trajectory or one configuration, got shape {np.shape(trajectory)}")
    try:
        path = Path(path)
    except TypeError:
        raise InputError(f"path must be a name of a file, got {shown(path)}") from None
    server = open_server("127.0.0.1", 0)
    try:
        server.gui.configure_theme(dark_mode=dark, show_logo=False, show_share_button=False)
        stage = Stage(server, robot, *(rows[:1] if run is None else run.configurations(25)))
        text = _still(server, stage, rows[0]) if run is None else _played(server, stage, run, speed, forces, progress)
    finally:
        close_server(server)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LiedynError(f"cannot write {path}: {error.strerror}") from None
    return path


def _still(server, stage, q):
    stage.pose(q)
    return server.get_scene_serializer().as_html()


def _played(server, stage, run, speed, forces, progress):
    """The recorded scene, picture by picture."""
    span = run.end - run.begin
    count = max(2, min(MOST_FRAMES, int(np.ceil(span / speed * FRAMES)) + 1))
    times, bar = np.linspace(run.begin, run.end, count), Progress(progress, run.begin, run.end, "export")
    clock = server.scene.add_label("/time", "", position=tuple(stage.floor.position))
    recorded = server.get_scene_serializer()
    for t in times:
        q = run.q(t)
        stage.pose(q)
        if forces:
            stage.forces(*_of_forces(run, t, q))
        clock.text = printable(" ".join([f"t = {t:.2f} s", *run.events(t)]))
        recorded.insert_sleep(span / speed / (count - 1))
        bar.show(float(t))
    bar.close()
    return recorded.as_html()


def _of_forces(run, t, q):
    robot, lam = run.forces(t)
    return robot, q, lam, run.unit


FRAMES = 30.0
"""Pictures per second."""
SHOWN_FOR = 0.4
"""Seconds for which the name of an event is shown."""
ANGLE = 0.35
"""Largest displacement of an animated mode [rad], or part of the robot's size [m]."""


class Run:
    """A trajectory of a robot, evaluated at the times of pictures."""

    def __init__(self, robot, trajectory):
        if trajectory.coordinate_names != robot.coordinate_names:
            raise InputError(f"the trajectory is of {trajectory.robot!r}, with other coordinates than {robot.name!r}")
        if not len(trajectory):
            raise InputError("the trajectory is empty")
        self.robot, self.trajectory = robot, trajectory
        self.begin, self.end = float(trajectory.t[0]), float(trajectory.t[-1])
        self.unit = self._largest_force() or None

    def _largest_force(self):
        """Force for the longest arrow: the 90 % quantile of all forces."""
        forces = [np.linalg.norm(F[:, 3:], axis=1) for F in self.trajectory.constraint_wrenches.values() if len(F)]
        return max((float(np.quantile(each, 0.9)) for each in forces), default=0.0)

    def row(self, t):
        """Index of the state at time t; at an event the one after it."""
        return max(0, int(np.searchsorted(self.trajectory.t, t + 1e-12, side="right")) - 1)

    def q(self, t):
        """The configuration at time t."""
        return self.trajectory.q[self.row(t)]

    def configurations(self, count):
        """The first configuration, and others spread over the run, at most `count`."""
        return self.trajectory.q[::max(1, -(-len(self.trajectory) // count))]

    def forces(self, t):
        """The robot at time t, and its multipliers."""
        k, run = self.row(t), self.trajectory
        return self.robot.at(run.t[k]), run.lam[k]

    def events(self, t):
        """Names of the events just before time t, in the words of a page."""
        return tuple(as_shown(each.name) for each in self.trajectory.events if 0.0 <= t - each.t < SHOWN_FOR)


class Swing:
    """A mode of a linear model, in slow motion if it is fast: one period in two seconds."""

    begin, end = 0.0, 2.0

    def __init__(self, robot, ss, modes, k, amplitude):
        self.robot, self.q0, self.message = robot, np.asarray(ss.q), ""
        self.shape, self.amplitude = modes.shapes[k], amplitude
        self.turning = modes.damped[k] > 0.0

    def q(self, t):
        """The configuration at time t, loops closed; if that is impossible, the first-order motion."""
        phase = np.exp(1j * np.pi * t) if self.turning else np.sin(np.pi * t)
        q = integrate(self.robot, self.q0, self.amplitude * np.real(self.shape * phase))
        try:
            self.message = ""
            return close(self.robot, q) if self.robot.active else q
        except LiedynError as error:
            self.message = str(error)
            return q


class Clock:
    """Calls `show(t)` in a thread of its own, cyclically between two times."""

    def __init__(self, show, begin, end, speed=1.0):
        self.show, self.begin, self.end, self.speed, self.t = show, begin, end, speed, begin
        self._stop, self._thread = threading.Event(), None

    @property
    def running(self):
        """True while the clock runs."""
        return self._thread is not None and self._thread.is_alive()

    def play(self):
        """Continue from the present time, or from the beginning if that is the end."""
        if self.running:
            return
        self.t = self.begin if self.t >= self.end else self.t
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def pause(self):
        """Stop, and wait until the last picture is drawn."""
        self._stop.set()
        if self.running and self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)

    def _run(self):
        last = time.monotonic()
        while not self._stop.wait(1.0 / FRAMES):
            now = time.monotonic()
            self.t, last = self.t + self.speed * (now - last), now
            if self.t > self.end:
                self.t = self.begin
            self.show(self.t)
