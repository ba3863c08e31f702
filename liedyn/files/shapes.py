"""Shapes of robot files: their names, and the paths of their meshes."""
import os
from pathlib import Path

from liedyn.machine.errors import ModelError


class Shapes:
    """Declares shapes to a builder with unique names; shapes that cannot be declared are omitted and noted.

    Attributes
    ----------
    left_out : dict
        The reason, by owner of the shape.
    """

    def __init__(self, builder):
        self.builder, self.left_out, self._names = builder, {}, set()

    def add(self, wanted, body, kind, **values):
        """Declare a shape."""
        name, k = wanted, 1
        while name in self._names:
            k += 1
            name = f"{wanted} {k}"
        self._names.add(name)
        try:
            self.builder.shape(name, body, kind, **values)
        except ModelError as error:
            self.left_out[str(error)] = body


def mesh_path(name, file):
    """The path of a mesh; ``package://`` is searched for in the parent folders and in ROS_PACKAGE_PATH.

    A path that is not found is returned unchanged; the error comes when it is drawn.
    """
    plain = name.removeprefix("file://")
    if plain != name or "://" not in name:
        return str(Path(file).parent.joinpath(plain))
    package, _, rest = name.split("://", 1)[1].partition("/")
    elsewhere = map(Path, filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(":")))
    folders = [*Path(file).resolve().parents, *elsewhere]
    for folder in folders:
        for place in (folder / package / rest, *([folder / rest] if folder.name == package else [])):
            if place.is_file():
                return str(place)
    return name
