"""Solids, arrows and names of a robot on a viser server, at its present configuration."""
# mypy: ignore-errors
from urllib.parse import quote

import numpy as np
from scipy.spatial.transform import Rotation

from liedyn.look.cable_lines import ROPE, THICK, dashes, lines
from liedyn.look.planes import poses_of
from liedyn.look.solids import THICKNESS, along, colour, extent, size_of, solids
from liedyn.look.solid_surfaces import required, triangles
from liedyn.look.viewer.scene import CENTRE, arrows, camera, centre
from liedyn.machine.texts import printable
from liedyn.model import GROUND

LEAST_MOVE = 1e-9


class Stage:
    """The drawing of one robot.

    `server` is a `viser.ViserServer`; its scene is filled with nodes "/robot/<body>", each with the solids of the body.
    The camera looks at the robot at q, and at other configurations that it will have.
    """

    def __init__(self, server, robot, q, *others):
        self.server, self.robot, self.size = server, robot, size_of(robot)
        self.scene, self.bodies, self.labels, self.axes, self.parts = server.scene, {}, [], [], {}
        self.arrows, self.cables, self._at = {}, {}, {}
        self.scene.configure_environment_map(None)  # would need the network
        self.scene.world_axes.visible = False
        look = camera(robot, q, *others)
        self.scene.set_up_direction(tuple(look.up))
        first = server.initial_camera
        first.position, first.look_at, first.up = tuple(look.position), tuple(look.target), tuple(look.up)
        first.fov = np.radians(45.0)
        first.near, first.far = 0.01 * self.size, 1e3 * self.size
        self._light(look)
        self._grid(look)
        self._solids()
        self.centre = self.scene.add_icosphere("/centre of mass", radius=0.022 * self.size, color=_rgb(colour(CENTRE)),
                                               visible=False, cast_shadow=False)
        self.pose(q)

    def _light(self, look):
        self.scene.configure_default_lights(False)
        self.scene.add_light_ambient("/light/all around", intensity=0.9)
        aside = np.cross(look.up, look.position - look.target)
        for name, place, power in (("front", look.position - 0.4 * aside + self.size * look.up, 1.7),
                                   ("behind", 2.0 * look.target - look.position + self.size * look.up, 0.5)):
            self.scene.add_light_directional(f"/light/{name}", intensity=power, position=tuple(place - look.target))

    def _grid(self, look):
        """The floor: below the robot, or at its foot, perpendicular to the upward direction."""
        low = extent(self.robot)
        corners = np.array([[low[i, 0], low[j, 1], low[k, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
        height = min(0.0, float((corners @ look.up).min()) - 0.02 * self.size)
        middle = look.target - (look.target @ look.up - height) * look.up
        cell = 10.0 ** np.floor(np.log10(0.5 * self.size))
        z_to_up = Rotation.align_vectors([look.up], [[0.0, 0.0, 1.0]])[0]
        self.floor = self.scene.add_grid(
            "/floor", width=3.0 * self.size, height=3.0 * self.size, plane="xy", cell_size=cell, section_size=5 * cell,
            position=tuple(middle), wxyz=_wxyz(z_to_up), fade_distance=8.0 * self.size, shadow_opacity=0.0)

    def _solids(self):
        hidden = {"collision"} if any(each.role == "visual" for each in solids(self.robot)) else set()
        for name in (GROUND, *self.robot.body_names, *self.robot.frame_names):
            self.bodies[name] = self.scene.add_frame(
                f"/robot/{_node(name)}", show_axes=False, axes_length=0.09 * self.size, axes_radius=0.004 * self.size)
        for name in self.robot.body_names:
            self.labels.append(self.scene.add_label(f"/robot/{_node(name)}/name", printable(name), visible=False))
        for k, solid in enumerate(solids(self.robot)):
            corners, faces = triangles(solid, 2.0 * self.size)
            if corners is None:
                continue
            self.parts[k] = self.scene.add_mesh_simple(
                f"/robot/{_node(solid.body)}/{solid.role}{k}", corners.astype(np.float32), faces.astype(np.uint32),
                color=_rgb(solid.color), opacity=None if solid.color[3] >= 1.0 else float(solid.color[3]),
                side="double", flat_shading=solid.kind in ("box", "mesh"), cast_shadow=False, receive_shadow=False,
                visible=solid.role not in hidden)

    def pose(self, q):
        """Moves every body to its pose at q; nothing is sent for those that do not move."""
        moved = {name: pose for name, pose in poses_of(self.robot, q).items()
                 if name not in self._at or np.abs(self._at[name] - pose).max() >= LEAST_MOVE * self.size}
        self._at |= moved
        with self.server.atomic():
            for place in enumerate(lines(self.robot, q) if moved else ()):
                self._cable(*place)
            if moved:
                turned = Rotation.from_matrix([pose[:3, :3] for pose in moved.values()]).as_quat()
                for (name, pose), wxyz in zip(moved.items(), np.roll(turned, 1, axis=1)):
                    self.bodies[name].position, self.bodies[name].wxyz = pose[:3, 3], wxyz
            point = centre(self.robot, q)
            if point is not None:
                self.centre.position = tuple(point)

    def _cable(self, place, line):
        parts = np.float32(dashes(line))
        if place in self.cables:
            self.cables[place].points = parts
            return
        self.cables[place] = self.scene.add_line_segments(
            f"/cables/{place} {_node(line.name)}", parts, _rgb(colour(ROPE)),
            thickness=2.0 * THICK * THICKNESS * self.size)

    def forces(self, robot, q, lam, unit=None):
        """Arrows of constraint forces; `robot` has the time and the switches. lam = None removes them."""
        found = () if lam is None else arrows(robot, q, lam, unit)
        with self.server.atomic():
            for each in found:
                node = self.arrows.get(each.name) or self._arrow(each)
                size = float(np.linalg.norm(each.vector))
                node.position, node.wxyz, node.scale = tuple(each.start), _upright(each.vector / size), size
                node.visible = True
            for name in self.arrows.keys() - {each.name for each in found}:
                self.arrows[name].visible = False

    def _arrow(self, each):
        """An arrow of unit length along z: it is moved, rotated and scaled with the bodies."""
        made = required("trimesh").creation
        shaft, head = made.cylinder(radius=0.02, height=0.8, sections=12), made.cone(radius=0.06, height=0.25)
        shaft.apply_translation([0.0, 0.0, 0.4])
        head.apply_translation([0.0, 0.0, 0.75])
        mesh = required("trimesh").util.concatenate([shaft, head])
        self.arrows[each.name] = self.scene.add_mesh_simple(
            f"/forces/{_node(each.name)}", np.float32(mesh.vertices), np.uint32(mesh.faces), color=_rgb(each.color),
            cast_shadow=False, receive_shadow=False)
        return self.arrows[each.name]

    def show(self, what, on):
        """Shows or hides "names", "axes", "centre of mass", "floor" or "collision" shapes."""
        if what == "axes":
            for name, node in self.bodies.items():
                node.show_axes = on and name != GROUND
        else:
            nodes = {"names": self.labels, "centre of mass": [self.centre], "floor": [self.floor]}.get(what) or [
                node for k, node in self.parts.items() if solids(self.robot)[k].role == what]
            for node in nodes:
                node.visible = on


def _node(name):
    """A name as a part of viser's paths, with escaped slashes, which would separate nodes."""
    return quote(name, safe=" ")


def _rgb(color):
    return tuple(int(round(255 * x)) for x in color[:3])


def _upright(direction):
    """The quaternion that rotates z to a direction."""
    return _wxyz(Rotation.from_matrix(along(direction)[:3, :3]))


def _wxyz(rotation):
    return tuple(np.roll(rotation.as_quat(), 1))
