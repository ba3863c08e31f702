"""The part of `Builder` that declares shapes, and their contacts with the ground."""
# mypy: ignore-errors

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.errors import ModelError, listed, shown
from liedyn.model import validation
from liedyn.model.description import GROUND, SHAPE_ROLES, SHAPE_SIZES, Shape
from liedyn.model.frames import placement as make_pose
from liedyn.model.numbers import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from liedyn.typing import ArrayLike


class ShapeBuilder:
    """Shapes; see :class:`Builder`."""

    def shape(self, name: str, body: str, kind: str, placement: ArrayLike | None = None, size: float | ArrayLike = (),
              mesh: str = "", scale: float | ArrayLike = 1.0, color: ArrayLike | None = None,
              role: Literal["visual", "collision"] = "visual") -> None:
        """Declare a shape fixed in a body, for pictures (`liedyn.view`) or for contacts with the ground. Shapes have no
        mass and do not affect the dynamics.

        Parameters
        ----------
        name : str
        body : str
            Name of a body or frame; or ``"ground"``.
        kind : str
            box, sphere, cylinder, capsule, ellipsoid, plane or mesh.
        placement : array_like, shape (4, 4) or (3,), optional
            In the frame of the body (three numbers: its origin).
        size : float or array_like
            [m] Box: edges along x, y, z; sphere: radius; cylinder and capsule, along z: radius, and length without the
            caps; ellipsoid: half axes; empty for a plane, whose normal is z, and for a mesh.
        mesh : str
            File of a mesh, which is read when it is drawn.
        scale : float or array_like, shape (3,)
            Factors for the coordinates of the mesh.
        color : array_like, shape (3,) or (4,), optional
            Red, green, blue and opacity, from 0 to 1; by default one for each body.
        role : {"visual", "collision"}
            Whether it is for pictures or for contacts.

        Raises
        ------
        ModelError
            An unknown kind or role, a size that does not fit the kind, or an invalid color.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("four_bar"))
        >>> b.shape("knob", "crank", "sphere", (0.2, 0.0, 0.0), size=0.05, color=(0.8, 0.4, 0.0))
        >>> b.build().model.shapes[0].size
        (0.05,)
        """
        owner = validation.owner_of("shape", name)
        validation.choice(owner, "kind", kind, SHAPE_SIZES)
        validation.choice(owner, "role", role, SHAPE_ROLES)
        size = numbers(owner, "size", [size] if isinstance(size, float | int) else size, (SHAPE_SIZES[kind],))
        if (size < 0.0).any():
            raise ModelError(f"{owner}, size: must not be negative, got {shown(size.tolist())}")
        if bool(mesh) != (kind == "mesh"):
            raise ModelError(f"{owner}, mesh: a mesh has a file, other shapes have none, got {shown(mesh)}")
        scale = numbers(owner, "scale", [scale] * 3 if isinstance(scale, float | int) else scale, (3,))
        if color is not None:
            opaque = isinstance(color, list | tuple) and len(color) == 3
            color = numbers(owner, "color", [*color, 1.0] if opaque else color, (4,))
            if (color < 0.0).any() or (color > 1.0).any():
                raise ModelError(f"{owner}, color: numbers from 0 to 1, got {shown(color.tolist())}")
            color = tuple(color.tolist())
        self._shapes.append(Shape(
            name, validation.text(owner, "body", body), kind, validation.pose(owner, "placement", placement),
            tuple(size.tolist()), validation.prose(owner, "mesh", mesh), tuple(scale.tolist()), color, role))

    def ground_contacts(self, bodies: Sequence[str] | None = None, friction: float = 0.0, restitution: float = 0.0,
                        height: float = 0.0, shapes: Sequence[str] | None = None) -> None:
        """Declare contacts of shapes with the ground: one-sided constraints that keep them above the plane z =
        `height`. A sphere has one contact, a capsule one for each cap, a box one for each corner; they are named after
        the shape, ``foot``, ``leg cap 1``, ``box corner 3``. The shapes of a body that are used are those with the role
        collision, or all if there are none.

        Parameters
        ----------
        bodies : sequence of str, optional
            Bodies whose shapes are used; by default all.
        friction, restitution : float
            As for :meth:`constraint`.
        height : float
            Height of the ground [m].
        shapes : sequence of str, optional
            Names of the shapes to use, instead of `bodies`.

        Raises
        ------
        ModelError
            An unknown shape or body, a body without shapes, both `bodies` and `shapes`; or a shape of another kind,
            whose contacts are not fixed points of it.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder("ball")
        >>> b.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
        >>> b.joint("free", "free", "ground", "ball")
        >>> b.shape("skin", "ball", "sphere", size=0.1, role="collision")
        >>> b.ground_contacts(friction=0.4)
        >>> b.build().constraint_names
        ('skin',)
        """
        height = float(numbers("ground_contacts", "height", height, ()))
        options = {"parent_placement": (0.0, 0.0, height), "unilateral": True, "friction": friction,
                   "restitution": restitution}
        for shape in self._touching("ground_contacts", bodies, shapes):
            for suffix, place, radius in _POINTS[shape.kind](shape.size):
                at = shape.placement @ make_pose(place)
                kind = {"kind": "sphere_on_plane", "radius": radius} if radius > 0.0 else {"kind": "on_plane"}
                self.constraint(shape.name + suffix, parent=GROUND, child=shape.body, child_placement=at[:3, 3],
                                **kind, **options)

    def box_contacts(self, boxes: Sequence[str], bodies: Sequence[str] | None = None, friction: float = 0.0,
                     restitution: float = 0.0, shapes: Sequence[str] | None = None) -> None:
        """Declare contacts of shapes with boxes, such as tables, steps and walls of a file: one-sided constraints that
        keep points and spheres out of the boxes.

        What touches are the points of :meth:`ground_contacts`: spheres, caps of capsules, corners of boxes. Each has
        one contact with each face, a surface that ends (``extent`` of :meth:`constraint`), named ``ball on table +z``.
        A sphere also has one with each edge and each corner, named ``ball on table +x +z`` and ``ball on table +x +y
        +z``, so that it rolls over an edge and off a corner; these are without friction.

        Parameters
        ----------
        boxes : sequence of str
            Names of shapes of the kind box, on the ground or on bodies that move.
        bodies : sequence of str, optional
            Bodies whose shapes touch; by default all that move.
        friction, restitution : float
            As for :meth:`constraint`; friction is that of faces.
        shapes : sequence of str, optional
            Names of the shapes that touch, instead of `bodies`.

        Raises
        ------
        ModelError
            An unknown shape or body, a shape that is no box, a body without shapes, both `bodies` and `shapes`; or
            shapes that touch whose contacts are not fixed points of them.

        Notes
        -----
        A box that touches another one does so with its corners: edges that cross each other pass, and so does a corner
        of the fixed box that meets a face of the moving one; declare the moving box as the box, too.

        The 26 contacts of a sphere with a box have a price: a step of a run takes 5 times as long as with one contact
        with the ground, 0.28 ms instead of 0.06 ("rk4") and 0.21 instead of 0.04 ("moreau"); for four spheres 8 and 10
        times, 0.93 instead of 0.12 ms and 0.78 instead of 0.08 (one core, measured). Where only one face is touched, a
        ``sphere_on_plane`` with an ``extent`` (:meth:`constraint`) takes 1.1 to 1.6 times as long as the ground.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder("ball on a table")
        >>> b.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
        >>> b.joint("free", "free", "ground", "ball")
        >>> b.shape("skin", "ball", "sphere", size=0.1, role="collision")
        >>> b.shape("table", "ground", "box", (0.0, 0.0, 0.5), size=(1.0, 1.0, 0.1), role="collision")
        >>> b.box_contacts(["table"], friction=0.4)
        >>> robot = b.build()
        >>> len(robot.constraint_names), robot.constraint_names[3]
        (26, 'skin on table +z')
        """
        known = {each.name: each for each in self._shapes}
        named = [known[validation.choice("box_contacts", "boxes", name, known)]
                 for name in validation.names("box_contacts", "boxes", boxes)]
        options = {"unilateral": True, "restitution": restitution}
        for box in named:
            if box.kind != "box":
                raise ModelError(f"box_contacts, boxes: {shown(box.name)} is a {box.kind}, not a box")
            for shape in self._touching("box_contacts", bodies, shapes):
                if shape.body == box.body or shape.name in boxes and shapes is None:
                    continue
                for suffix, place, radius in _POINTS[shape.kind](shape.size):
                    at = (shape.placement @ make_pose(place))[:3, 3]
                    for sides, kind, pose, more in _surfaces_of(box.size, radius, friction):
                        self.constraint(f"{shape.name}{suffix} on {box.name} {sides}", kind, box.body, shape.body,
                                        box.placement @ pose, at, **more, **options)

    def _touching(self, owner, bodies, shapes):
        """The shapes of these names, or the shapes of bodies that are used for contacts."""
        own = [each for each in self._shapes if each.body != GROUND]
        key, known = ("bodies", dict.fromkeys(each.body for each in own)) if shapes is None else (
            "shapes", {each.name: each for each in own})
        if bodies is not None and shapes is not None:
            raise ModelError(f"{owner}: give bodies or shapes, not both")
        given = bodies if shapes is None else shapes
        chosen = known if given is None else validation.names(owner, key, given)
        if not known:
            raise ModelError(f"{owner}: no body of {shown(self._name)} has a shape that could touch; declare "
                             "some with shape(...)")
        for name in chosen:
            if key == "bodies" and name not in known and any(each.name == name for each in self._bodies):
                raise ModelError(f"{owner}: body {shown(name)} has no shapes that could touch; declare some "
                                 f"with shape(...), or name others: {listed(known)}")
            validation.choice(owner, key, name, known)
        found = [known[name] for name in chosen] if shapes is not None else _of_bodies(own, chosen)
        others = [each for each in found if each.kind not in _POINTS]
        if others:
            body = others[0].body
            what = listed([f"{each.name} ({each.kind})" for each in others if each.body == body])
            raise ModelError(f"{owner}, body {shown(body)}: {what}: contacts are made of "
                             f"{listed(list(_POINTS))}; name other bodies or shapes, or declare shapes of these kinds")
        return found


def _of_sphere(size):
    return [("", (0.0, 0.0, 0.0), size[0])]


def _of_capsule(size):
    return [(f" cap {k + 1}", (0.0, 0.0, z), size[0]) for k, z in enumerate((-0.5 * size[1], 0.5 * size[1]))]


def _of_box(size):
    corners = itertools.product(*((-0.5 * x, 0.5 * x) for x in size))
    return [(f" corner {k + 1}", corner, 0.0) for k, corner in enumerate(corners)]


_POINTS = {"sphere": _of_sphere, "capsule": _of_capsule, "box": _of_box}
"""Suffixes of names, centres and radii of the points of a shape that may touch a plane."""


def _surfaces_of(size, radius, friction):
    """What keeps a sphere of this radius, or a point, out of a box: (name, kind, frame A in the box, arguments) of its
    faces, and for a sphere of its edges and corners."""
    for signs in sorted(itertools.product((-1, 0, 1), repeat=3), key=lambda signs: (np.count_nonzero(signs), signs)):
        sides = " ".join(f"{'+' if sign > 0 else '-'}{x}" for sign, x in zip(signs, "xyz") if sign)
        outward = [k for k in range(3) if signs[k]]
        along = [k for k in range(3) if not signs[k]]
        frame = make_pose([0.5 * sign * length for sign, length in zip(signs, size)])
        if len(outward) == 1:
            frame[:3, :3] = np.eye(3)[:, [*along, *outward]]
            frame[:3, 2] *= signs[outward[0]]
            frame[:3, 0] *= np.linalg.det(frame[:3, :3])
            more = {"extent": [size[k] for k in along], "friction": friction}
            yield (sides, "sphere_on_plane", frame, {"radius": radius} | more) if radius > 0.0 else (
                sides, "on_plane", frame, more)
        elif len(outward) == 2 and radius > 0.0:
            yield sides, "on_cylinder", frame, {
                "radius": radius, "axis": np.eye(3)[along[0]], "extent": size[along[0]]}
        elif len(outward) == 3 and radius > 0.0:
            yield sides, "distance", frame, {"length": radius}


def _of_bodies(shapes, bodies):
    """Shapes of bodies that are there for collisions; of a body that has none of these, all."""
    found = []
    for body in bodies:
        mine = [each for each in shapes if each.body == body]
        found += [each for each in mine if each.role == "collision"] or mine
    return found
