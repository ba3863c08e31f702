"""Visual and collision shapes of SDFormat files."""
import numpy as np

from liedyn.files.sdf_scopes import SdfElement, own_pose
from liedyn.files.shapes import Shapes, mesh_path
from liedyn.machine.errors import ModelError, shown

_SIZES = {"box": (("size", 3),), "sphere": (("radius", 1),), "cylinder": (("radius", 1), ("length", 1)),
          "capsule": (("radius", 1), ("length", 1)), "ellipsoid": (("radii", 3),)}


def add_shapes(builder, links, path):
    """Declare the shapes of all links; returns what was left out, with the names of the links."""
    shapes = Shapes(builder)
    for body, link in links.items():
        for role in ("visual", "collision"):
            for xml in link.xml.findall(role):
                element = SdfElement(xml, f"{link.owner}, {role}")
                try:
                    values = _shape(element, path)
                except ModelError as error:
                    shapes.left_out[str(error)] = body
                    continue
                if values:
                    shapes.add(f"{body} {xml.get('name') or role}", body, role=role, **values)
    return shapes.left_out


def _shape(element, path):
    """Arguments of `Builder.shape`; none for what is empty."""
    geometry, (pose, frame) = element.part("geometry", needed=True), own_pose(element)
    if frame:
        raise ModelError(f"{element.owner}: its pose is relative to {shown(frame)}, not to its link")
    given = {"placement": pose, "color": _color(element)}
    for kind, keys in _SIZES.items():
        part = geometry.part(kind)
        if part:
            return given | {"kind": kind, "size": [x for key, count in keys for x in part.numbers_of(key, count)]}
    plane, mesh = geometry.part("plane"), geometry.part("mesh")
    if plane:
        return given | {"kind": "plane", "placement": pose @ _facing(plane.numbers_of("normal", 3, (0.0, 0.0, 1.0)))}
    if mesh:
        return given | {"kind": "mesh", "mesh": mesh_path(mesh.word("uri"), path),
                        "scale": mesh.numbers_of("scale", 3, (1.0,) * 3)}
    if geometry.part("empty") or not len(geometry.xml):
        return {}
    raise ModelError(f"{element.owner}: a {shown(geometry.xml[0].tag)} is not drawn")


def _facing(normal):
    """A pose whose z axis is a normal."""
    z = np.array(normal) / (np.linalg.norm(normal) or 1.0)
    x = np.cross(np.eye(3)[np.abs(z).argmin()], z)
    x /= np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    return pose


def _color(element):
    material = element.part("material")
    diffuse = material and material.part("diffuse")
    if not diffuse:
        return None
    try:
        found = np.array([float(word) for word in (diffuse.xml.text or "").split()])
    except ValueError:
        return None
    return np.clip(found, 0.0, 1.0).tolist() if len(found) in (3, 4) and np.isfinite(found).all() else None
