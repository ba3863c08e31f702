"""Triangle meshes of solids, with trimesh."""
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.errors import LiedynError, said
from liedyn.model.validation import warn


def required(name):
    """A package of the extra `view`."""
    import importlib
    try:
        return importlib.import_module(name)
    except ImportError:
        raise LiedynError(f"looking at robots in the browser needs {name}: pip install 'liedyn[view]'") from None


def triangles(solid, reach=1.0):
    """Vertices (k, 3) and faces (f, 3) of a solid in the frame of its body; (None, None) if a mesh file does not exist.

    `reach` is half the side of planes, which are infinite.
    """
    trimesh = required("trimesh")
    made, size = trimesh.creation, solid.size
    if solid.kind == "mesh":
        mesh = _read(solid)
        if mesh is None:
            return None, None
    elif solid.kind == "box":
        mesh = made.box(extents=size)
    elif solid.kind == "sphere":
        mesh = made.icosphere(subdivisions=3, radius=size[0])
    elif solid.kind == "cylinder":
        mesh = made.cylinder(radius=size[0], height=size[1], sections=32)
    elif solid.kind == "capsule":
        mesh = made.capsule(radius=size[0], height=size[1], count=(16, 16))
        mesh.apply_translation([0.0, 0.0, -mesh.bounds.mean(axis=0)[2]])
    elif solid.kind == "ellipsoid":
        mesh = made.icosphere(subdivisions=3)
        mesh.apply_scale(size)
    else:
        mesh = made.box(extents=(2.0 * reach, 2.0 * reach, 1e-3 * reach))
    R, p = solid.placement[:3, :3], solid.placement[:3, 3]
    return np.asarray(mesh.vertices) @ R.T + p, np.asarray(mesh.faces)


def _read(solid):
    """The mesh of a file; warns and returns None if there is none."""
    trimesh = required("trimesh")
    if not Path(solid.mesh).is_file():
        warn(f"body {solid.body!r}: its mesh {solid.mesh} is not there, and not drawn")
        return None
    try:
        mesh = trimesh.load(solid.mesh, resolver=_files_beside(solid.mesh), force="mesh")
        if not len(mesh.faces):
            raise ValueError("it has no faces")
        mesh.apply_scale(solid.scale)
        return mesh
    except Exception as error:  # readers of meshes raise errors of all kinds
        warn(f"body {solid.body!r}: its mesh {solid.mesh} cannot be read, and is not drawn: {said(error)}")
        return None


def _files_beside(path):
    """The resolver for files that a mesh names, such as materials: regular files only, no FIFO, no device."""
    if not TYPE_CHECKING:  # they would take it for one of the module
        class Files(required("trimesh.resolvers").FilePathResolver):
            def get(self, name):
                for each in (name.strip(), name.strip().lstrip("/"), Path(name).name):
                    if Path(self.parent, each).exists() and not Path(self.parent, each).is_file():
                        raise FileNotFoundError(name)
                return super().get(name)

    return Files(str(path))
