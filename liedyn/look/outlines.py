"""Outlines of bodies that are held by no joint or at one point only: edges of shapes, contacts, inertia boxes."""
import numpy as np


def outlines(robot):
    """Lines (k, 3) in the body's frame, by name of the body: edges of its shapes, visible ones if there are any;
    else of its contact or rolling geometry; else of a box with the body's inertia. No lines for a point mass."""
    frames = {frame.name: frame for frame in robot.model.frames}
    shapes = {name: {"visual": [], "collision": []} for name in robot.body_names}
    for shape in robot.model.shapes:
        owner, placement = shape.body, shape.placement
        while owner in frames:
            owner, placement = frames[owner].body, frames[owner].placement @ placement
        if owner in shapes:
            shapes[owner][shape.role] += [_moved(line, placement) for line in _edges(shape.kind, shape.size)]
    rolling = {name: [] for name in robot.body_names}
    for each in robot.model.constraints:
        if each.child in rolling and each.radius > 0.0:
            lines = (_edges("sphere", (each.radius,)) if each.kind.startswith("sphere")
                     else [_ring(each.radius, each.radius, each.child_axis)])
            rolling[each.child] += [_moved(line, each.child_placement) for line in lines]
    return {body.name: shapes[body.name]["visual"] or shapes[body.name]["collision"] or rolling[body.name]
            or _inertia_box(body) for body in robot.model.bodies}


def _moved(line, placement):
    return line @ placement[:3, :3].T + placement[:3, 3]


def _ring(a, b, axis, height=0.0):
    """An ellipse about an axis, with semi-axes a and b along the other two in their order, or along any two."""
    angle, axis = np.linspace(0.0, 2.0 * np.pi, 41), np.asarray(axis, float) / np.linalg.norm(axis)
    first = np.eye(3)[(np.abs(axis).argmax() + 1) % 3]
    first = first - (first @ axis) * axis
    first /= np.linalg.norm(first)
    return (height * axis + a * np.cos(angle)[:, None] * first + b * np.sin(angle)[:, None] * np.cross(axis, first))


def _edges(kind, size):
    """Lines (k, 3) that outline a shape; none for planes and meshes."""
    x, y, z = np.eye(3)
    if kind == "box":
        half, corners = 0.5 * np.asarray(size), np.array([[1, 1], [-1, 1], [-1, -1], [1, -1], [1, 1]])
        rims = [np.column_stack([corners, np.full(5, side)]) * half for side in (-1.0, 1.0)]
        return rims + [np.stack([rims[0][k], rims[1][k]]) for k in range(4)]
    if kind in ("sphere", "ellipsoid"):
        a, b, c = size * 3 if kind == "sphere" else size
        return [_ring(b, c, x), _ring(c, a, y), _ring(a, b, z)]
    if kind in ("cylinder", "capsule"):
        radius, half = size[0], 0.5 * size[1]
        sides = [radius * x, radius * y, -radius * x, -radius * y]
        lines = [np.stack([side - half * z, side + half * z]) for side in sides]
        if kind == "capsule":
            angle = np.linspace(0.0, np.pi, 21)
            lines += [s * half * z + radius * (np.cos(angle)[:, None] * along + s * np.sin(angle)[:, None] * z)
                      for s in (-1.0, 1.0) for along in (x, y)]
        return lines + [_ring(radius, radius, z, height) for height in (-half, half)]
    return []


def _inertia_box(body):
    """Edges of the homogeneous box with the mass and the inertia of a body; none for points."""
    if not body.mass > 0.0:
        return []
    moments, axes = np.linalg.eigh(body.inertia)
    squares = np.maximum(6.0 * (moments.sum() - 2.0 * moments) / body.mass, 0.0)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = axes, body.com
    return [_moved(line, pose) for line in _edges("box", np.sqrt(squares))] if squares.max() > 0.0 else []
