"""A robot on matplotlib axes: shaded solids, and in a plane bars through the points where joints hold each body.

Artists are made once and moved: pictures of a motion differ in the poses of the bodies only.
"""
import numpy as np
from matplotlib.collections import PolyCollection

from liedyn.look.cable_lines import ROPE, THICK, cables, lines, tube
from liedyn.look.planes import SLIDING, axes_of_view, poses_of
from liedyn.look.solids import CUT, DARK, PULLEY, THICKNESS, colour, size_of, solids
from liedyn.look.solid_surfaces import coarse, surface
from liedyn.machine.figures import COLOURS
from liedyn.machine.texts import drawn
from liedyn.model import GROUND
from liedyn.model.remembered import remembered

SECTIONS, MOST_FACES = 16, 1500
"""Faces around a round shape, and the number of faces of a mesh above which it is drawn coarsely."""
AMBIENT = 0.55
"""Brightness of a face that is turned away from the light, relative to one that faces it."""


class Faces(PolyCollection):
    """Shaded faces in the plane of the picture, or in perspective on axes of space: those behind are drawn first.

    PolyCollection draws an array of faces at once, ten times faster than Poly3DCollection, which has a list.
    """

    def __init__(self, colours, closed, light):
        super().__init__([], closed=False, linewidths=0.4)
        self.colours, self.closed, self.light = colours, closed, np.asarray(light) / np.linalg.norm(light)
        self.corners = None

    def put(self, corners):
        """Set the corners (count, 4, 3) of all faces, in space."""
        normals = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
        length = np.linalg.norm(normals, axis=1)
        normals /= np.where(length > 0.0, length, 1.0)[:, None]
        facing = normals @ self.light
        brightness = AMBIENT + (1.0 - AMBIENT) * np.where(self.closed, facing.clip(0.0), abs(facing))
        self.corners, self.shaded = corners, self.colours.copy()
        self.shaded[:, :3] *= brightness[:, None]

    def project(self, xy, height):
        """Draw faces whose corners lie at `xy` (count, 4, 2), `height` above the picture, towards the viewer."""
        one, other = xy[:, 2] - xy[:, 0], xy[:, 3] - xy[:, 1]
        seen = np.flatnonzero((one[:, 0] * other[:, 1] > one[:, 1] * other[:, 0]) | ~self.closed)
        seen = seen[np.argsort(height[seen].mean(axis=1), kind="stable")]
        self.set_verts(xy[seen], closed=False)
        self.set_facecolor(self.shaded[seen])
        self.set_edgecolor(self.shaded[seen])

    def do_3d_projection(self):
        """Called by axes of space before they are drawn."""
        M = self.axes.M
        places = (self.corners @ M[:3, :3].T + M[:3, 3]) / (self.corners @ M[3, :3] + M[3, 3])[..., None]
        self.project(places[..., :2], -places[..., 2])
        return 0.0


@remembered
def faces_of(robot):
    """Corners (k, 4, 3) in the body's frame, colour, and whether the surface is closed, of each visible solid; and
    whether it is a pulley."""
    found = []
    for solid in solids(robot):
        if solid.role == "collision":
            continue
        corners, faces = surface(solid, size_of(robot), SECTIONS)
        if corners is not None:
            if len(faces) > MOST_FACES:
                corners, faces = coarse(corners, faces)
            found.append((solid.body, corners[faces], solid.color, solid.kind not in ("mesh", "plane"),
                          solid.role == PULLEY))
    return found


class Drawing:
    """The artists of one robot on axes.

    Attributes
    ----------
    moving : list of artists
        Those that `move` changes.
    """

    def __init__(self, robot, ax, normal):
        self.robot, self.ax, self.flat = robot, ax, normal is not None
        self.directions, self.moving = axes_of_view(robot, normal), []
        self.towards = normal if self.flat else np.array([0.5, -0.65, 0.57])  # to the viewer of `finish`
        shaped = {shape.body for shape in robot.model.shapes} | {
            frame.body for frame in robot.model.frames if frame.name in {shape.body for shape in robot.model.shapes}}
        points = points_of(robot, poses_of(robot, robot.home))
        self.thickness = THICK * THICKNESS * size_of(robot)
        self.patches = {name for name in robot.body_names if self.flat and name not in shaped
                        and np.ptp(points[name][0], axis=0).max() >= 1e-9}
        # in a plane joints and the ground are marked by signs, and bodies with shapes are drawn by these
        self.solids = [each for each in faces_of(robot)
                       if not self.flat or each[4] or each[0] not in self.patches | {GROUND} - shaped]
        self._make_faces()
        self._make_patches()
        self._make_marks()

    def _make_faces(self):
        count = [len(each[1]) for each in self.solids]
        colours = np.repeat(np.reshape([each[2] for each in self.solids], (-1, 4)), count, axis=0)
        closed = np.repeat([each[3] for each in self.solids], count).astype(bool)
        tubes = 0 if self.flat else len(self._tubes(self.robot.home))
        colours = np.vstack([colours, np.tile(colour(ROPE), (tubes, 1))])
        closed = np.append(closed, np.ones(tubes, bool))
        light = self.towards + 0.5 * (self.directions[1] if self.flat else np.eye(3)[2]) - 0.3 * self.directions[0]
        self.faces = Faces(colours, closed, light)
        if len(closed):
            self.ax.add_collection(self.faces, autolim=False)
            self.moving.append(self.faces)

    def _make_patches(self):
        self.lines, self.areas, self.cables = {}, {}, []
        labels = len(self.robot.body_names) <= 10
        for k, name in enumerate(self.robot.body_names):
            colour, label = COLOURS[k % len(COLOURS)], drawn(name) if labels else None
            if name in self.patches:
                self.areas[name], = self.ax.fill([], [], color=colour, alpha=0.25, lw=0)
                self.lines[name], = self.ax.plot([], [], color=colour, label=label, solid_capstyle="round")
                self.moving += [self.areas[name], self.lines[name]]
            elif labels:
                self._sample(colour, label)
        for _ in cables(self.robot):
            label = None if self.cables else "cable"
            if self.flat:
                self.cables += self.ax.plot([], [], color=ROPE, lw=1.8, zorder=3.5, label=label)
                self.moving.append(self.cables[-1])
            elif label:
                self.cables.append(None)
                self.ax.plot([], [], [], color=ROPE, lw=1.8, label=label)

    def _sample(self, colour, label):
        """An entry of the legend."""
        self.ax.fill([], [], color=colour, label=label) if self.flat else self.ax.plot(
            [], [], [], "s", color=colour, markersize=8, label=label)

    def _make_marks(self):
        self.marks = {}
        if not self.flat:
            colours = {tuple(each[2]) for each in self.solids}
            for text, label in ((DARK, "ground"), (CUT, "cut joint of a loop")):
                if colour(text) in colours:
                    self._sample(text, label)
            return
        kinds = (("joint", "o", "white", 18 if len(self.robot.model.joints) > 15 else 36, 5),
                 ("ground", "^", "black", 130, 4), ("cut joint of a loop", "X", CUT, 60, 6))
        for label, marker, colour_of, size, order in kinds:
            places = self._marked(poses_of(self.robot, self.robot.home))[label]
            if places:
                self.marks[label] = self.ax.scatter(*np.zeros((2, len(places))), marker=marker, s=size, c=colour_of,
                                                    edgecolors="black", linewidths=0.9, label=label, zorder=order)
                self.moving.append(self.marks[label])

    def _marked(self, poses):
        """Points of joints, of the ground and of cut joints, in space."""
        model = self.robot.model
        ends = [(loop.parent, loop.parent_placement) for loop in model.loops]
        ends += [(loop.child, loop.child_placement) for loop in model.loops]
        held = [j.placement[:3, 3] for j in model.joints if j.parent == GROUND and j.kind != "free"]
        return {"joint": [_place_of(joint, poses) for joint in model.joints if joint.kind not in ("fixed", "free")],
                "ground": held + [frame[:3, 3] for body, frame in ends if body == GROUND],
                "cut joint of a loop": [(poses[body] @ frame)[:3, 3] for body, frame in ends]}

    def _corners(self, poses):
        """Corners of all faces, in space."""
        return np.concatenate([corners @ poses[body][:3, :3].T + poses[body][:3, 3]
                               for body, corners, *_ in self.solids] or [np.zeros((0, 4, 3))])

    def _tubes(self, q):
        """Corners of the faces of all cables, in space."""
        return np.concatenate([tube(each, self.thickness) for each in lines(self.robot, q)] or [np.zeros((0, 4, 3))])

    def seen(self, q):
        """All points of the picture, in its axes, for the robot at q."""
        poses = poses_of(self.robot, q)
        bars = points_of(self.robot, poses) if self.flat else {}
        points = [self._corners(poses).reshape(-1, 3)] + [bars[name][0] for name in self.robot.body_names if bars]
        points += [np.reshape(each, (-1, 3)) for each in self._marked(poses).values()]
        points += [each.points for each in lines(self.robot, q)]
        return np.vstack(points) @ self.directions.T

    def move(self, q):
        """Put the robot where it is at q."""
        poses = poses_of(self.robot, q)
        if len(self.faces.colours):
            corners = self._corners(poses) if self.flat else np.vstack([self._corners(poses), self._tubes(q)])
            self.faces.put(corners)
            if self.flat:
                self.faces.project(corners @ self.directions.T, corners @ self.towards)
            elif getattr(self.ax, "M", None) is not None:
                self.faces.do_3d_projection()
        if not self.flat:
            return
        bars, marked = points_of(self.robot, poses), self._marked(poses)
        for name, line in self.lines.items():
            points, thickness = bars[name]
            corners = _hull(points @ self.directions.T)
            closed = np.vstack([corners, corners[:1]])
            self.areas[name].set_xy(closed)
            line.set_data(*closed.T)
            line.set(linewidth=2.0 if len(corners) > 2 else 4.0 * thickness, zorder=2 + 1 / thickness)
        for line, each in zip(self.cables, lines(self.robot, q)):
            line.set_data(*(each.points @ self.directions.T).T)
            line.set_linestyle("--" if each.slack else "-")
        for label, mark in self.marks.items():
            mark.set_offsets(np.array(marked[label]) @ self.directions.T)

    def frame(self, low, high):
        """Labels of the axes, with limits that show all points between two corners."""
        ax, middle = self.ax, (low + high) / 2
        half = np.maximum((high - low) / 2, 1e-3 * max(float(np.max(high - low)), 1e-3))
        if self.flat:
            names = [_name(direction) for direction in self.directions]
            half = half + 0.08 * half.max()
            ax.set(xlabel=f"{names[0]} [m]", ylabel=f"{names[1]} [m]")
            ax.update_datalim(np.array([middle - half, middle + half]))
            ax.autoscale_view()
            ax.set_aspect("equal", adjustable="datalim")
            ax.margins(0.0)
            ax.grid(alpha=0.3)
            return
        half = np.maximum(half, 0.3 * half.max()) * 1.05
        limits = np.stack([middle - half, middle + half], axis=1)
        ax.set(xlim=limits[0], ylim=limits[1], zlim=limits[2], xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
        ax.set_box_aspect(half)
        for axis, ticks in zip("xyz", 2 + np.round(5 * half / half.max())):
            ax.locator_params(axis, nbins=int(ticks))
        ax.view_init(elev=18, azim=-55)


def _name(direction):
    """The name of an axis of the picture: an axis of space, or only that it lies in the plane of motion."""
    k = np.abs(direction).argmax()
    return "in plane" if abs(direction[k]) < 1.0 - 1e-9 else ("-" if direction[k] < 0 else "") + "xyz"[k]


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
