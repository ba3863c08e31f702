"""Visual and collision shapes of URDF files."""
import numpy as np

from liedyn.files.shapes import Shapes, mesh_path
from liedyn.machine.errors import ModelError

_SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}


def add_shapes(builder, root, links, path):
    """Declare the shapes of all links; returns what was left out, with the names of the links."""
    shapes, colors = Shapes(builder), {}
    for material in root.xml.findall("material"):
        color = material.find("color")
        if color is not None and material.get("name"):
            colors[material.get("name")] = _numbers(color.get("rgba", ""))
    for link in links:
        for role in ("visual", "collision"):
            for element in _elements(link, role):
                try:
                    values = _shape(element, path)
                except ModelError as error:
                    shapes.left_out[str(error)] = link.name
                    continue
                material = element.xml.find("material")
                if material is not None:
                    color = material.find("color")
                    values["color"] = (_numbers(color.get("rgba", "")) if color is not None
                                       else colors.get(material.get("name")))
                name = element.xml.get("name") or f"{link.name} {role}"
                shapes.add(name, link.name, role=role, **values)
    return shapes.left_out


def _elements(link, role):
    return [type(link)(xml, f"{link.owner}, {role}") for xml in link.xml.findall(role)]


def _shape(element, path):
    """Arguments of `Builder.shape`."""
    geometry = element.part("geometry", needed=True)
    given = {"placement": element.pose()}
    for kind, keys in _SIZES.items():
        part = geometry.part(kind)
        if part:
            return given | {"kind": kind, "size": [x for key in keys for x in part.numbers(key)]}
    mesh = geometry.part("mesh", needed=True)
    scale = mesh.numbers("scale") if "scale" in mesh.xml.attrib else [1.0] * 3
    return given | {"kind": "mesh", "mesh": mesh_path(mesh.text("filename"), path),
                    "scale": scale * 3 if len(scale) == 1 else scale}


def _numbers(text):
    """Four numbers from 0 to 1 in a text, or None: a wrong color is no reason to leave a shape out."""
    try:
        found = np.array([float(word) for word in text.split()])
    except ValueError:
        return None
    return np.clip(found, 0.0, 1.0).tolist() if len(found) == 4 and np.isfinite(found).all() else None
