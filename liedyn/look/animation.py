"""Animations of trajectories, with matplotlib (``pip install 'liedyn[plot]'``)."""
import shutil
from pathlib import Path

import numpy as np

from liedyn.look.plotting import axes_of_view, edges_of, mechanism, plane_of, points_of, poses_of
from liedyn.machine.arguments import between, positive, require_robot
from liedyn.machine.errors import InputError, LiedynError, shown
from liedyn.machine.figures import figure
from liedyn.machine.progress import Progress
from liedyn.machine.texts import drawn

MOST_FRAMES = 10_000
"""Largest number of pictures of an animation: more are a mistake of units."""


def animate(trajectory, path, robot, speed, rate, progress):
    """`Trajectory.animate`."""
    speed, rate = positive("speed", speed), between("rate", rate, 0.1, 1000.0)
    try:
        path = Path(path)
    except TypeError:
        raise InputError(f"path must be a name of a file, got {shown(path)}") from None
    if path.suffix.lower() not in (".gif", ".mp4"):
        raise InputError(f"moving pictures are .gif or .mp4, not {shown(path.name)}")
    if robot is None:
        raise InputError(f"a trajectory from a file does not know its robot: give animate(path, robot=...), "
                         f"{trajectory.robot!r}")
    require_robot(robot)
    if trajectory.coordinate_names != robot.coordinate_names:
        raise InputError(f"the trajectory is of {trajectory.robot!r}, with other coordinates than {robot.name!r}")
    if not len(trajectory):
        raise InputError("the trajectory is empty: there is nothing to be seen")
    picture = figure((7.2, 5.4), shown=False)
    from matplotlib.animation import FFMpegWriter, PillowWriter

    if path.suffix.lower() == ".mp4" and shutil.which("ffmpeg") is None:
        raise LiedynError("pictures of .mp4 are made by FFmpeg, which is not installed: take .gif, or install ffmpeg")
    writer = (FFMpegWriter if path.suffix.lower() == ".mp4" else PillowWriter)(fps=rate)
    t = trajectory.t
    length = float(t[-1] - t[0]) / speed
    if not length * rate < MOST_FRAMES:
        raise InputError(f"{length:g} s at {rate:g} pictures in a second are more than {MOST_FRAMES}: "
                         "take a higher speed or a lower rate")
    count = max(2, int(np.ceil(length * rate)) + 1)
    times = np.linspace(t[0], t[-1], count)
    rows = np.maximum(np.searchsorted(t, times + 1e-12, side="right") - 1, 0)
    normal, limits = plane_of(robot, poses_of(robot, trajectory.q[0])), _limits(robot, trajectory.q[rows])
    ax = picture.add_subplot(projection=None if normal is not None else "3d")
    bar = Progress(progress, float(t[0]), float(t[-1]), "animate")
    try:
        with writer.saving(picture, str(path.absolute()), dpi=100):
            for time, k in zip(times, rows):
                ax.clear()
                mechanism(robot, trajectory.q[k], ax)
                _frame(ax, limits, f"{drawn(trajectory.robot)}, t = {time:.2f} s")
                if picture.get_layout_engine() is not None:  # only once: it takes most of the time of a picture
                    picture.draw_without_rendering()
                    picture.set_layout_engine("none")
                writer.grab_frame()
                bar.show(float(time))
    except (OSError, ValueError) as error:
        raise LiedynError(f"cannot write {path}: {error}") from None
    finally:
        bar.close()
    return path


def _limits(robot, q):
    """Lower and upper corner of all that is visible during a run, in the axes of the picture."""
    normal = plane_of(robot, poses_of(robot, q[0]))
    directions = axes_of_view(robot, normal)
    seen = [np.vstack(list(_seen(robot, poses_of(robot, each)))) @ directions.T for each in q]
    low, high = np.min([x.min(axis=0) for x in seen], axis=0), np.max([x.max(axis=0) for x in seen], axis=0)
    margin = 0.06 * max(float((high - low).max()), 1e-3)
    return low - margin, high + margin


def _seen(robot, poses):
    """All points of a picture at one configuration."""
    yield from (points for points, _ in points_of(robot, poses).values())
    for name, lines in edges_of(robot).items():
        yield from (line @ poses[name][:3, :3].T + poses[name][:3, 3] for line in lines)


def _frame(ax, limits, title):
    low, high = limits
    ax.set_title(title)
    if len(low) == 2:
        ax.set_aspect("equal", adjustable="box")
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    else:
        half = np.maximum(high - low, 0.3 * (high - low).max()) / 2
        middle = (low + high) / 2
        ax.set(**{f"{axis}lim": (middle[k] - half[k], middle[k] + half[k]) for k, axis in enumerate("xyz")})
        ax.set_box_aspect(half)
