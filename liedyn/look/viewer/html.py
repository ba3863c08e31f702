"""Pages that need no server and no network: viser's recorded scene, in one file."""
# mypy: ignore-errors

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from liedyn.look.viewer.player import FRAMES, Run
from liedyn.look.viewer.server import close_server, open_server
from liedyn.look.viewer.stage import Stage
from liedyn.machine.arguments import positive, require_robot
from liedyn.machine.errors import InputError, LiedynError, shown
from liedyn.machine.progress import Progress
from liedyn.machine.texts import printable
from liedyn.model.calls.boundary import states

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.motion.simulation.trajectory import Trajectory
    from liedyn.typing import ArrayLike, PathLike

MOST_FRAMES = 3000
"""Largest number of pictures of a page: a longer run has fewer per second."""


def export_html(robot: Robot, trajectory: Trajectory | ArrayLike, path: PathLike, speed: float = 1.0,
                forces: bool = True, progress: bool | None = None) -> Path:
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
        stage = Stage(server, robot, rows[0] if run is None else run.q(run.begin))
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
