"""Surfaces of solids: quadrilaterals of the simple shapes, triangles of meshes (read with trimesh)."""
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.errors import LiedynError, said
from liedyn.model.validation import warn


def required(name):
    """viser or trimesh, or an error with the command that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise LiedynError(f"drawing robots needs {name}: pip install 'liedyn[view]'") from None


def triangles(solid, reach=1.0):
    """Vertices (k, 3) and faces (f, 3) of a solid in the frame of its body; (None, None) if a mesh file does not exist.

    `reach` is half the side of planes, which are infinite.
    """
    corners, faces = surface(solid, reach, 32)
    if corners is None:
        return None, None
    halves = np.vstack([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])
    same = (halves == np.roll(halves, 1, axis=1)).any(axis=1)
    return corners, halves[~same]


def surface(solid, reach, sections):
    """Vertices (k, 3) and faces (f, 4) of a solid in the frame of its body; (None, None) if a mesh cannot be read.

    Corners of faces follow each other counter-clockwise, seen from outside; triangles repeat their last corner. Round
    shapes have as many faces around their axis as `sections`, a multiple of 4.
    """
    size = solid.size
    if solid.kind == "mesh":
        mesh = _read(solid)
        if mesh is None:
            return None, None
        corners, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces)[:, [0, 1, 2, 2]]
    elif solid.kind in ("box", "plane"):
        corners, faces = _box(size if solid.kind == "box" else (2.0 * reach, 2.0 * reach, 1e-3 * reach))
    elif solid.kind in ("sphere", "ellipsoid"):
        corners, faces = _revolved(_arc(-0.5, 0.5, sections // 2), sections)
        corners = corners * (size * 3 if solid.kind == "sphere" else size)
    else:  # a cylinder, or a capsule
        radius, half = size[0], 0.5 * size[1]
        if solid.kind == "cylinder":
            profile = np.array([[0.0, -half], [radius, -half], [radius, half], [0.0, half]])
        else:
            arc = radius * _arc(-0.5, 0.5, sections // 2)
            middle = len(arc) // 2
            profile = np.vstack([arc[:middle + 1] - (0.0, half), arc[middle:] + (0.0, half)])
        corners, faces = _revolved(profile, sections)
    R, p = solid.placement[:3, :3], solid.placement[:3, 3]
    return corners @ R.T + p, faces


def coarse(corners, faces, cells=24):
    """A surface of fewer faces, for small pictures: corners of one cell of a grid become one corner, their mean."""
    low, size = corners.min(axis=0), float(np.ptp(corners, axis=0).max()) or 1.0
    cells = np.floor((corners - low) * (cells / size))
    _, cell, count = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    cell = cell.ravel()
    merged = np.zeros((len(count), 3))
    np.add.at(merged, cell, corners)
    faces = cell[faces]
    ordered = np.sort(faces, axis=1)
    kept = (np.diff(ordered, axis=1) > 0).sum(axis=1) >= 2
    return merged / count[:, None], faces[kept][np.unique(ordered[kept], axis=0, return_index=True)[1]]


def _box(size):
    corners = 0.5 * np.asarray(size) * [[x, y, z] for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)]
    return corners, np.array([[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]])


def _arc(start, end, parts):
    """Points (radius, height) of the unit circle between two angles, in half turns."""
    angle = np.pi * np.linspace(start, end, parts + 1)
    return np.column_stack([np.cos(angle).clip(0.0), np.sin(angle)])


def _revolved(profile, sections):
    """The surface of a profile (radius, height), from bottom to top, that turns about z."""
    angle = 2.0 * np.pi * np.arange(sections) / sections
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    corners = np.concatenate([np.column_stack([r * ring, np.full(sections, h)]) for r, h in profile])
    lower, k = sections * np.arange(len(profile) - 1)[:, None], np.arange(sections)
    after = (k + 1) % sections
    faces = np.stack([lower + k, lower + after, lower + sections + after, lower + sections + k], axis=-1).reshape(-1, 4)
    # all corners of a pole are one
    pole = {row * sections + j: row * sections for row, (r, _) in enumerate(profile) if r < 1e-12 for j in k}
    faces = np.vectorize(lambda each: pole.get(each, each))(faces)
    first = faces[:, 0] == faces[:, 1]  # the pole comes last in a triangle
    faces[first] = faces[first][:, [2, 3, 0, 0]]
    return corners, faces


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
