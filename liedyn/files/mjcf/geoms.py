"""Shapes of MJCF files, for pictures. Meshes that no inertia needs are not opened, as their files may be missing."""
import os
from collections import namedtuple

import numpy as np

from liedyn.files.mjcf.reader import pose
from liedyn.files.file_bodies import Shapes
from liedyn.machine.errors import ModelError, shown

Look = namedtuple("Look", "color mesh scale left_out", defaults=("",))
"""Data of a shape that compiled models lack: color of its material, file of its mesh, reason for omitting it."""
COLLIDES_ONLY = 3  # MuJoCo's viewer hides this group of shapes, which most files use for collisions


def leave_shapes(mujoco, spec, folder):
    """Remove meshes that no inertia needs, and other parts with files of their own; returns a `Look` by shape name. A
    point without mass replaces such a mesh, or a height field."""
    auto, always = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO, mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    meshes, looks, needed = {mesh.name: mesh for mesh in spec.meshes}, {}, set()
    colors = {material.name: material.rgba for material in spec.materials}
    for k, geom in enumerate(list(spec.geoms)):
        geom.name = geom.name or f"{geom.parent.name or 'body'} shape {k}"
        color, mesh = colors.get(geom.material, geom.rgba), meshes.get(geom.meshname)
        looks[geom.name] = look = Look(np.clip(color, 0.0, 1.0), mesh and mesh.file and str(
            folder / mesh.compiler.meshdir / mesh.file), tuple(mesh.scale) if mesh else (1.0, 1.0, 1.0))
        is_mesh = geom.type in (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF)
        if is_mesh and not look.mesh:
            looks[geom.name] = look = look._replace(left_out="mesh without a file")
        if geom.type == mujoco.mjtGeom.mjGEOM_HFIELD:
            looks[geom.name] = look._replace(left_out="height field")
            _make_point(mujoco, geom)
        if not is_mesh and not geom.meshname:
            continue
        body, rule = geom.parent, geom.compiler.inertiafromgeom
        is_given = rule != always and (body.explicitinertial or rule != auto)
        if not (is_given or not _moves(body) or geom.mass == 0.0 or geom.density == 0.0):
            needed.add(geom.meshname)
        else:
            if not is_mesh:
                looks[geom.name] = look._replace(left_out="fitted to a mesh")
            _make_point(mujoco, geom)
    for mesh in list(spec.meshes):
        if mesh.name not in needed:
            spec.delete(mesh)
        elif mesh.file and not os.path.isfile(folder / mesh.compiler.meshdir / mesh.file):
            raise ModelError(f"mesh {shown(mesh.name)}: no file {shown(mesh.file)}; an inertia is computed from it: "
                             "give the file, or its body an <inertial>")
    _leave_pictures(mujoco, spec)
    return looks


def _make_point(mujoco, geom):
    """Replace a shape by a point without mass, so that references to it remain valid."""
    geom.type, geom.size, geom.mass = mujoco.mjtGeom.mjGEOM_SPHERE, [1e-9, 0.0, 0.0], 0.0
    geom.meshname = geom.hfieldname = ""


def _leave_pictures(mujoco, spec):
    """Remove parts with files that are only for pictures, and sensors, which may refer to these."""
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for light in spec.lights:
        light.texture = ""
    for site in spec.sites:
        if getattr(site, "meshname", ""):
            site.type, site.meshname, site.size = mujoco.mjtGeom.mjGEOM_SPHERE, "", [1e-9, 0.0, 0.0]
    for kind in (spec.skins, spec.hfields, spec.textures, spec.sensors):
        for each in list(kind):
            spec.delete(each)


def _moves(body):
    """True if there is a joint between a body and the world."""
    while body.name != "world":
        if list(body.joints):
            return True
        body = body.parent
    return False


def declare(reader, looks):
    """Declare the shapes of all bodies: visual unless their group is for collisions only; collision if they collide."""
    m, mujoco, shapes = reader.model, reader.mujoco, Shapes(reader.builder)
    for k in range(m.ngeom):
        name = reader.name("geom", k)
        look = looks.get(name, Look((), None, (), "no geom of the file's own"))
        kind, size = (None, ()) if look.left_out else _form(mujoco, m.geom_type[k], m.geom_size[k], look)
        if kind is None:
            reader.missing["shapes of bodies"].append(f"{name}: {look.left_out or 'of a kind that is not known'}")
            continue
        place = pose(m.geom_pos[k], m.geom_quat[k])
        if m.geom_dataid[k] >= 0 and kind == "mesh":  # MuJoCo has moved it to its own centre and axes
            j = m.geom_dataid[k]
            place = place @ np.linalg.inv(pose(m.mesh_pos[j], m.mesh_quat[j]))
        given = {"placement": place, "size": size, "color": look.color}
        if kind == "mesh":
            given |= {"mesh": look.mesh, "scale": look.scale}
        touches = bool(m.geom_contype[k] or m.geom_conaffinity[k])
        if m.geom_group[k] < COLLIDES_ONLY or not touches:
            shapes.add(name, reader.bodies[m.geom_bodyid[k]], kind, **given)
        if touches:
            shapes.add(name, reader.bodies[m.geom_bodyid[k]], kind, role="collision", **given)
    for why, body in shapes.left_out.items():
        reader.missing["shapes of bodies"].append(f"{body}: {why}")


def _form(mujoco, kind, size, look):
    """Kind and size for `Builder.shape`; None for unknown kinds."""
    forms, r = mujoco.mjtGeom, size
    if kind == forms.mjGEOM_MESH or look.mesh:
        return ("mesh", ()) if look.mesh else (None, ())
    return {forms.mjGEOM_SPHERE: ("sphere", r[:1]), forms.mjGEOM_BOX: ("box", 2.0 * r),
            forms.mjGEOM_CAPSULE: ("capsule", (r[0], 2.0 * r[1])), forms.mjGEOM_PLANE: ("plane", ()),
            forms.mjGEOM_CYLINDER: ("cylinder", (r[0], 2.0 * r[1])), forms.mjGEOM_ELLIPSOID: ("ellipsoid", r),
            }.get(int(kind), (None, ()))
