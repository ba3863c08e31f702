"""Animations of trajectories, with matplotlib (``pip install 'liedyn[plot]'``).

Axes and labels are drawn once; each picture is a copy of them with the robot on it.
"""
import itertools
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from liedyn.look.planes import plane_of, poses_of
from liedyn.machine.arguments import between, floats, positive, require_robot
from liedyn.machine.errors import InputError, LiedynError, said, shown
from liedyn.machine.figures import figure
from liedyn.machine.progress import Progress
from liedyn.machine.texts import drawn
from liedyn.model.calls.boundary import states

MOST_FRAMES = 10_000
"""Largest number of pictures of an animation: more are a mistake of units."""


def animate(robot, t, q, path, speed=1.0, rate=25.0, progress=None):
    """Write a moving picture of a robot: of configurations over time, from wherever they come.

    Parameters
    ----------
    robot : Robot
    t : array_like, shape (nt,)
        Times [s], in order.
    q : array_like, shape (nt, nq)
        Configurations [rad, m; quaternions (x, y, z, w)]. Each picture shows the last one before its time.
    path : str or Path
        ``.gif``, or ``.mp4`` where FFmpeg is installed, by the system or by the extra `video`.
    speed : float
        Seconds of the motion per second of the animation.
    rate : float
        Pictures per second of the animation.
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
        Another file type; times out of order, or not as many as configurations; more than 10,000 pictures.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import liedyn as ld
    >>> robot = ld.load("loader")
    >>> q = ld.close(robot, robot.home, boom=np.linspace(0.0, 0.2, 5), bucket=0.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     animate(robot, np.linspace(0.0, 1.0, 5), q, f"{folder}/lift.gif", rate=4.0).stat().st_size > 1000
    True
    """
    require_robot(robot)
    speed, rate = positive("speed", speed), between("rate", rate, 0.1, 1000.0)
    try:
        path = Path(path)
    except TypeError:
        raise InputError(f"path must be a name of a file, got {shown(path)}") from None
    if path.suffix.lower() not in (".gif", ".mp4"):
        raise InputError(f"moving pictures are .gif or .mp4, not {shown(path.name)}")
    _, q = states(robot, q=q)
    t = floats("t", t, "times")
    if t.shape != (len(q),) or not len(t):
        raise InputError(f"t must have one time for each of {len(q)} configurations, got shape {t.shape}")
    if not (np.isfinite(t).all() and (np.diff(t) >= 0.0).all()):
        raise InputError("times must be finite and in order")
    if path.suffix.lower() == ".mp4" and _ffmpeg() is None:
        raise LiedynError("pictures of .mp4 are made by FFmpeg, which is not installed: take .gif, or pip install "
                          "'liedyn[video]', which brings one")
    length = float(t[-1] - t[0]) / speed
    if not length * rate < MOST_FRAMES:
        raise InputError(f"{length:g} s at {rate:g} pictures in a second are more than {MOST_FRAMES}: "
                         "take a higher speed or a lower rate")
    times = np.linspace(t[0], t[-1], max(2, int(np.ceil(length * rate)) + 1))
    rows = np.maximum(np.searchsorted(t, times + 1e-12, side="right") - 1, 0)
    bar = Progress(progress, float(t[0]), float(t[-1]), "animate")
    write = _write_mp4 if path.suffix.lower() == ".mp4" else _write_gif
    try:
        write(path.absolute(), _pictures(robot, times, q[rows], bar), rate)
    except (OSError, ValueError) as error:
        raise LiedynError(f"cannot write {path}: {said(error)}") from None
    finally:
        bar.close()
    return path


def animate_run(trajectory, path, robot, speed, rate, progress):
    """`Trajectory.animate`."""
    if robot is None:
        raise InputError(f"a trajectory from a file does not know its robot: give animate(path, robot=...), "
                         f"{trajectory.robot!r}")
    require_robot(robot)
    if trajectory.coordinate_names != robot.coordinate_names:
        raise InputError(f"the trajectory is of {trajectory.robot!r}, with other coordinates than {robot.name!r}")
    if not len(trajectory):
        raise InputError("the trajectory is empty: there is nothing to be seen")
    return animate(robot, trajectory.t, trajectory.q, path, speed, rate, progress)


def _pictures(robot, times, q, bar):
    """One array (height, width, 4) of bytes for each configuration; the axes show all of the motion."""
    picture = figure((7.2, 5.4), shown=False)
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from liedyn.look.drawing import Drawing

    name = drawn(robot.name)
    canvas, normal = FigureCanvasAgg(picture), plane_of(robot, poses_of(robot, q[0]))
    ax = picture.add_subplot(projection=None if normal is not None else "3d")
    drawing = Drawing(robot, ax, normal)
    seen = (drawing.seen(each) for each in q)
    corners = np.array([(each.min(axis=0), each.max(axis=0)) for each in seen])
    drawing.move(q[0])
    drawing.frame(corners[:, 0].min(axis=0), corners[:, 1].max(axis=0))
    title = ax.set_title(f"{name}, t = {times[0]:.2f} s")
    moving = sorted([*drawing.moving, title], key=lambda artist: artist.get_zorder())
    for artist in moving:
        artist.set_animated(True)
    canvas.draw()
    background = canvas.copy_from_bbox(picture.bbox)
    for time, each in zip(times, q):
        canvas.restore_region(background)
        drawing.move(each)
        title.set_text(f"{name}, t = {time:.2f} s")
        for artist in moving:
            artist.draw(canvas.get_renderer())
        yield np.asarray(canvas.buffer_rgba()).copy()
        bar.show(float(time))


def _write_gif(path, pictures, rate):
    from PIL import Image

    first = Image.fromarray(next(pictures)).convert("RGB").quantize(256, Image.Quantize.FASTOCTREE)
    paper, colours = 3 * first.getpixel((0, 0)), first.getpalette()
    colours[paper:paper + 3] = 255, 255, 255  # a mean of similar colours would be a little darker
    first.putpalette(colours)
    rest = (Image.fromarray(each).convert("RGB").quantize(palette=first, dither=Image.Dither.NONE) for each in pictures)
    first.save(path, save_all=True, append_images=rest, duration=1000.0 / rate, loop=0)


def _ffmpeg():
    """The program of FFmpeg: that of the machine, or the one that imageio-ffmpeg brings; None if there is neither."""
    found = shutil.which("ffmpeg")
    if found is None:
        try:
            from imageio_ffmpeg import get_ffmpeg_exe  # type: ignore[import-untyped]

            found = get_ffmpeg_exe()
        except (ImportError, RuntimeError):  # not installed, or without a program for this machine
            return None
    return found


def _write_mp4(path, pictures, rate):
    first = next(pictures)
    height, width = first.shape[:2]
    command = [_ffmpeg(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgba", "-s", f"{width}x{height}",
               "-r", f"{rate:g}", "-i", "-", "-an", "-pix_fmt", "yuv420p", str(path)]
    with tempfile.TemporaryFile() as told:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=told, stderr=told) as ffmpeg:
            try:
                for each in itertools.chain([first], pictures):
                    ffmpeg.stdin.write(each.tobytes())
            except BrokenPipeError:
                pass  # it says why
        if ffmpeg.returncode:
            told.seek(0)
            raise OSError(told.read().decode(errors="replace").strip() or f"ffmpeg ended with {ffmpeg.returncode}")
