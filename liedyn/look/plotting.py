"""Plots of mechanisms and of poles, with matplotlib (``pip install 'liedyn[plot]'``).

A planar mechanism is shown in its plane: bodies with shapes by these, others through the points where joints hold
them, as a bar for two, an outlined patch for more. Any other is shown in perspective, by the solids of the viewer.
"""
import numpy as np

from liedyn.look.animation import animate as animate
from liedyn.look.planes import plane_of, poses_of
from liedyn.machine.errors import InputError, LiedynError, shown
from liedyn.machine.figures import COLOURS as COLOURS
from liedyn.machine.figures import figure
from liedyn.machine.texts import drawn


def mechanism(robot, q, ax=None):
    """Draw a robot at one configuration.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)]. Open loops are drawn open.
    ax : matplotlib axes, optional
        Axes to draw in; with ``projection="3d"`` for a mechanism that is not planar. Default: a new figure of
        pyplot.

    Returns
    -------
    ax : matplotlib axes
        ``ax.figure.savefig(path)`` writes the picture, ``plt.show()`` shows it.

    Raises
    ------
    LiedynError
        Matplotlib is not installed.
    InputError
        `q` is not one configuration, or the axes are flat and the mechanism is not.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("loader")
    >>> ax = mechanism(robot, robot.home)
    >>> ax.get_xlabel()
    'x [m]'
    """
    if np.ndim(q) != 1:
        raise InputError(f"a picture shows one configuration, q must have shape ({robot.nq},), got {np.shape(q)}")
    poses = poses_of(robot, q)
    normal, own = plane_of(robot, poses), ax is None
    if own:
        ax = figure((7, 6)).add_subplot(projection=None if normal is not None else "3d")
    elif hasattr(ax, "get_zlim"):
        normal = None
    elif normal is None:
        raise InputError(f"{shown(robot.name)} does not move in one plane: give axes with projection='3d'")
    from liedyn.look.drawing import Drawing  # imports matplotlib

    drawing = Drawing(robot, ax, normal)
    drawing.move(q)
    seen = drawing.seen(q)
    drawing.frame(seen.min(axis=0), seen.max(axis=0))
    ax.set_title(drawn(robot.name))
    outside = own and len(robot.body_names) <= 10
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, **({"loc": "center right", "bbox_to_anchor": (-0.12, 0.5)} if outside
                                    else {"loc": "best"}))
    return ax


def poles(eigenvalues, ax=None):
    """Draw eigenvalues in the complex plane.

    Parameters
    ----------
    eigenvalues : array_like
        Complex numbers [1/s], of any shape.
    ax : matplotlib axes, optional
        Axes to draw in. Default: a new figure of pyplot.

    Returns
    -------
    ax : matplotlib axes

    Raises
    ------
    LiedynError
        Matplotlib is not installed.
    InputError
        An eigenvalue is not finite.

    Examples
    --------
    >>> ax = poles([-1 + 2j, -1 - 2j])
    >>> ax.get_ylabel()
    'imaginary part [rad/s]'
    """
    values = np.ravel(np.asarray(eigenvalues, dtype=complex))
    if not np.isfinite(values).all():
        raise InputError(f"eigenvalues are not finite: {values}")
    if ax is None:
        ax = figure((6, 6)).add_subplot()
    span = np.abs(values).max(initial=0.0) or 1.0
    growing = values.real > 1e-9 * span
    ax.axvspan(0.0, 2.0 * span, color="#D55E00", alpha=0.06, lw=0)
    ax.axhline(0.0, color="black", lw=0.8)
    ax.axvline(0.0, color="black", lw=0.8)
    for chosen, colour, label in ((~growing, "#0072B2", "decaying or neutral"), (growing, "#D55E00", "growing")):
        if chosen.any():
            ax.plot(values.real[chosen], values.imag[chosen], "x", color=colour, ms=10, mew=2.2, label=label)
    ax.set(xlim=(-1.25 * span, 1.25 * span), ylim=(-1.25 * span, 1.25 * span), title="poles",
           xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")
    ax.set_aspect("equal")
    ax.grid(alpha=0.3)
    if len(values):
        ax.legend(loc="best", framealpha=0.9)
    return ax


def save_picture(path, robot, q, eigenvalues):
    """Write a picture of a mechanism and its poles, side by side.

    Parameters
    ----------
    path : str or Path
        The file type determines the format: ``.png``, ``.pdf``, ``.svg``.
    robot : Robot
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)].
    eigenvalues : array_like
        Complex numbers [1/s].

    Returns
    -------
    path
        The argument.

    Raises
    ------
    LiedynError
        Matplotlib is not installed, or the file cannot be written.
    InputError
        `q` is not one configuration.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import liedyn as ld
    >>> robot = ld.load("loader")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(save_picture(f"{folder}/loader.png", robot, robot.home, [-1.0, -2.0]))
    ...     file.stat().st_size > 1000
    True
    """
    both = figure((13, 6), shown=False)
    flat = plane_of(robot, poses_of(robot, q)) is not None
    left, right = both.add_gridspec(1, 2, width_ratios=(1.3, 1.0))
    mechanism(robot, q, both.add_subplot(left, projection=None if flat else "3d"))
    poles(eigenvalues, both.add_subplot(right))
    try:
        both.savefig(path, dpi=130)
    except (OSError, ValueError) as error:
        raise LiedynError(f"cannot write {path}: {error}") from None
    return path
