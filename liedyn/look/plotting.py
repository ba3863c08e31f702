"""Plots of mechanisms and of poles, with matplotlib (``pip install 'liedyn[plot]'``).

A body is drawn through the points where joints hold it: as a bar for two, an outlined patch for more. A body that is
held nowhere, or at its origin only, is drawn by the edges of its shapes, of its rolling geometry, or of a box with its
inertia. Only the poses of the bodies are needed. A planar mechanism is shown in its plane, any other in perspective.
"""
import numpy as np

from liedyn.look.outlines import outlines
from liedyn.machine.errors import InputError, LiedynError, shown
from liedyn.machine.figures import COLOURS, figure
from liedyn.machine.texts import drawn
from liedyn.mechanics.tree.forward_kinematics import forward_kinematics, pose
from liedyn.model import GROUND
from liedyn.model.remembered import remembered

SLIDING = ("prismatic", "cylindrical")
_PARALLEL = 1e-9


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
    view = _View(ax, axes_of_view(robot, normal))
    points, edges = points_of(robot, poses), edges_of(robot)
    for k, name in enumerate(robot.body_names):
        color, label = COLOURS[k % len(COLOURS)], drawn(name) if len(robot.body_names) <= 10 else None
        if name in edges:
            view.edges([line @ poses[name][:3, :3].T + poses[name][:3, 3] for line in edges[name]], color, label)
        else:
            view.body(points[name], color, label)
    joints = [_place_of(joint, poses) for joint in robot.model.joints if joint.kind not in ("fixed", "free")]
    grounds = [j.placement[:3, 3] for j in robot.model.joints if j.parent == GROUND and j.kind != "free"]
    cuts = [(poses[loop.parent] @ loop.parent_placement)[:3, 3] for loop in robot.model.loops]
    cuts += [(poses[loop.child] @ loop.child_placement)[:3, 3] for loop in robot.model.loops]
    grounds += [frame[:3, 3] for loop in robot.model.loops for body, frame in (
        (loop.parent, loop.parent_placement), (loop.child, loop.child_placement)) if body == GROUND]
    view.marks(joints, "o", "white", 18 if len(joints) > 15 else 36, "joint")
    view.marks(grounds, "^", "black", 130, "ground", order=4)
    view.marks(cuts, "X", "#FFD400", 60, "cut joint of a loop", order=6)
    view.finish(drawn(robot.name), legend_outside=own and len(robot.body_names) <= 10)
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


def poses_of(robot, q):
    """Poses of bodies, frames and the ground by name."""
    frames = {name: pose(robot, q, name) for name in robot.frame_names}
    return dict(zip(robot.body_names, forward_kinematics(robot, q))) | frames | {GROUND: np.eye(4)}


def plane_of(robot, poses):
    """The unit normal of the plane of motion of all joints; None if there is no such plane."""
    turning, sliding = [], []
    for joint in robot.model.joints:
        axes = [poses[joint.parent][:3, :3] @ joint.placement[:3, :3] @ axis for axis in joint.axes]
        if joint.kind in ("revolute", "planar"):
            turning += axes
        elif joint.kind == "prismatic":
            sliding += axes
        elif joint.kind != "fixed":
            return None
    if not turning:
        return None
    normal = turning[0]
    if (any(np.linalg.norm(np.cross(normal, axis)) > _PARALLEL for axis in turning)
            or any(abs(normal @ axis) > _PARALLEL for axis in sliding)):
        return None
    return normal * np.sign(normal[np.abs(normal).argmax()])


def axes_of_view(robot, normal):
    """Unit vectors to the right and upward of a flat picture (up is against gravity), or the axes of space."""
    if normal is None:
        return np.eye(3)
    up = -robot.gravity + (robot.gravity @ normal) * normal
    if np.linalg.norm(up) < 1e-6:
        up = np.eye(3)[1 if abs(normal[2]) > 0.5 else 2]
        up = up - (up @ normal) * normal
    up = up / np.linalg.norm(up)
    return np.array([np.cross(up, normal), up])


def _place_of(joint, poses):
    """The point where a joint is drawn: for a sliding one where rod and barrel meet (`points_of`)."""
    start, end = poses[joint.parent][:3, 3], poses[joint.child][:3, 3]
    if joint.kind in SLIDING and joint.parent != GROUND:
        return start + 0.475 * (end - start)
    return (poses[joint.parent] @ joint.placement)[:3, 3]


def points_of(robot, poses):
    """World points through which each body is drawn, and line widths."""
    points = {name: [poses[name][:3, 3]] for name in poses}
    thick = dict.fromkeys(poses, 1.0)
    for joint in robot.model.joints:
        start, end = poses[joint.parent][:3, 3], poses[joint.child][:3, 3]
        if joint.kind in SLIDING and joint.parent != GROUND and np.linalg.norm(end - start) > 1e-9:
            # a cylinder: barrel and rod overlap in the middle
            points[joint.parent].append(start + 0.6 * (end - start))
            points[joint.child].append(start + 0.35 * (end - start))
            thick[joint.parent], thick[joint.child] = 2.2, 0.8
        else:
            points[joint.parent].append((poses[joint.parent] @ joint.placement)[:3, 3])
    for loop in robot.model.loops:
        points[loop.parent].append((poses[loop.parent] @ loop.parent_placement)[:3, 3])
        points[loop.child].append((poses[loop.child] @ loop.child_placement)[:3, 3])
    holder = {frame.name: frame.body for frame in robot.model.frames}
    for frame in holder:
        body = frame
        while body in holder:
            body = holder[body]
        points[body] += points[frame]
    for body in robot.model.bodies:
        if np.ptp(points[body.name], axis=0).max() < 1e-9:  # held at one point only: show the centre of mass, too
            points[body.name].append((poses[body.name] @ np.append(body.com, 1.0))[:3])
    return {name: (np.array(points[name]), thick[name]) for name in points}


@remembered
def edges_of(robot):
    """Lines (k, 3) in the body's frame, by name, for bodies with a single point in `points_of` (`outlines`)."""
    points, lines = points_of(robot, poses_of(robot, robot.home)), outlines(robot)
    return {name: lines[name] for name in robot.body_names
            if lines[name] and np.ptp(points[name][0], axis=0).max() < 1e-9}


def _hull(points):
    """Corners of the convex hull of points in the plane, counter-clockwise (Andrew's monotone chain)."""
    ordered = sorted(set(map(tuple, points.round(9))))

    def half(chain):
        corners = []
        for p in chain:
            while len(corners) > 1 and np.linalg.det([np.subtract(corners[-1], corners[-2]),
                                                      np.subtract(p, corners[-2])]) <= 1e-12:
                corners.pop()
            corners.append(p)
        return corners

    return np.array((half(ordered)[:-1] + half(ordered[::-1])[:-1]) or ordered)


class _View:
    """Drawing of points in space on matplotlib axes: projected onto `directions`, two or three rows."""

    def __init__(self, ax, directions):
        self.ax, self.directions = ax, np.asarray(directions)
        self.flat, self.seen = len(self.directions) == 2, []

    def project(self, points):
        points = np.reshape(points, (-1, 3)) @ self.directions.T
        self.seen.append(points)
        return points

    def body(self, points_and_thickness, colour, label):
        points, thickness = points_and_thickness
        xs = self.project(points)
        style = {"color": colour, "lw": (4.0 if self.flat else 2.5) * thickness, "solid_capstyle": "round"}
        if self.flat:
            corners = _hull(xs)
            closed = np.vstack([corners, corners[:1]])
            if len(corners) > 2:
                self.ax.fill(*closed.T, color=colour, alpha=0.25, lw=0)
                style["lw"] = 2.0
            self.ax.plot(*closed.T, label=label, zorder=2 + 1 / thickness, **style)
        else:  # a star from the body's origin
            self.ax.plot(*np.vstack([np.stack([xs[0], x]) for x in xs[1:]]).T, label=label, **style)

    def edges(self, lines, colour, label):
        for line in lines:
            self.ax.plot(*self.project(line).T, color=colour, lw=1.5, label=label)
            label = None

    def marks(self, points, marker, colour, size, label, order=5):
        if points:
            options = {} if self.flat else {"depthshade": False}
            self.ax.scatter(*self.project(points).T, marker=marker, s=size, c=colour, edgecolors="black",
                            linewidths=0.9, label=label, zorder=order, **options)

    def finish(self, title, legend_outside):
        seen = np.vstack(self.seen)
        centre, half = (seen.max(axis=0) + seen.min(axis=0)) / 2, np.ptp(seen, axis=0) / 2
        self.ax.set_title(title)
        if self.flat:
            names = [self._name(direction) for direction in self.directions]
            self.ax.set(xlabel=f"{names[0]} [m]", ylabel=f"{names[1]} [m]")
            self.ax.set_aspect("equal", adjustable="datalim")
            self.ax.grid(alpha=0.3)
            self.ax.margins(0.08)
        else:
            half = np.maximum(half, 0.3 * half.max()) * 1.05 if half.max() > 0 else half + 1.0
            limits = np.stack([centre - half, centre + half], axis=1)
            self.ax.set(xlim=limits[0], ylim=limits[1], zlim=limits[2], xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
            self.ax.set_box_aspect(half)
            for axis, ticks in zip("xyz", 2 + np.round(5 * half / half.max())):
                self.ax.locator_params(axis, nbins=int(ticks))
            self.ax.view_init(elev=18, azim=-55)
        place = {"loc": "center right", "bbox_to_anchor": (-0.12, 0.5)} if legend_outside else {"loc": "best"}
        if self.ax.get_legend_handles_labels()[0]:
            self.ax.legend(frameon=False, **place)

    @staticmethod
    def _name(direction):
        k = np.abs(direction).argmax()
        return "in plane" if abs(direction[k]) < 1.0 - 1e-9 else ("-" if direction[k] < 0 else "") + "xyz"[k]
