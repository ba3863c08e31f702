"""Shapes of MJCF files, to be drawn. Meshes that no inertia needs are not opened: their files may be missing."""
from collections import namedtuple

import numpy as np

from liedyn.errors import ModelError, shown
from liedyn.io.mjcf.reader import pose
from liedyn.io.shapes import Shapes

Look = namedtuple("Look", "color mesh scale")
"""What compiled models do not say of a shape: the color of its material, the file of its mesh."""
COLLIDES_ONLY = 3  # the group of shapes that MuJoCo's viewer hides, where most files have those for collisions


def leave_shapes(mujoco, spec, folder):
    """Take out meshes that no inertia needs, and all else that has files of its own; returns a `Look` by name of a
    shape. In the place of such a mesh there is a point without mass, whose place in the body will be that of the mesh.
    """
    auto, always = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO, mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    meshes, looks, needed = {mesh.name: mesh for mesh in spec.meshes}, {}, set()
    colors = {material.name: material.rgba for material in spec.materials}
    for k, geom in enumerate(list(spec.geoms)):
        geom.name = geom.name or f"{geom.parent.name} shape {k}"
        color, mesh = colors.get(geom.material, geom.rgba), meshes.get(geom.meshname)
        looks[geom.name] = Look(np.clip(color, 0.0, 1.0), mesh and mesh.file and str(
            folder / mesh.compiler.meshdir / mesh.file), tuple(mesh.scale) if mesh else (1.0, 1.0, 1.0))
        geom.material = ""
        is_mesh = geom.type in (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF)
        if not is_mesh and not geom.meshname:
            continue
        body, rule = geom.parent, geom.compiler.inertiafromgeom
        is_given = rule != always and (body.explicitinertial or rule != auto)
        if not (is_given or not _moves(body) or geom.mass == 0.0 or geom.density == 0.0):
            needed.add(geom.meshname)
        elif is_mesh and looks[geom.name].mesh:
            geom.type, geom.size, geom.meshname, geom.mass = mujoco.mjtGeom.mjGEOM_SPHERE, [1e-9, 0.0, 0.0], "", 0.0
        else:
            del looks[geom.name]
            spec.delete(geom)
    for mesh in list(spec.meshes):
        if mesh.name not in needed:
            spec.delete(mesh)
        elif mesh.file and not (folder / mesh.compiler.meshdir / mesh.file).exists():
            raise ModelError(f"mesh {shown(mesh.name)}: no file {shown(mesh.file)}; an inertia is computed from it: "
                             "give the file, or its body an <inertial>")
    for kind in (spec.skins, spec.hfields, spec.materials, spec.textures):
        for each in list(kind):
            spec.delete(each)
    return looks


def _moves(body):
    """Is there a joint between a body and the world?"""
    while body.name != "world":
        if list(body.joints):
            return True
        body = body.parent
    return False


def declare(reader, looks):
    """Shapes of all bodies: to be seen, unless they are in a group that only collides; to touch, if they collide."""
    m, mujoco, shapes = reader.model, reader.mujoco, Shapes(reader.builder)
    for k in range(m.ngeom):
        name = reader.name("geom", k)
        look = looks.get(name)
        if look is None:
            continue
        kind, size = _form(mujoco, m.geom_type[k], m.geom_size[k], look)
        if kind is None:
            continue
        place = pose(m.geom_pos[k], m.geom_quat[k])
        if m.geom_dataid[k] >= 0 and kind == "mesh":  # MuJoCo has moved it into its own centre and axes
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
    """Kind and size as `Builder.shape` has them; None for what it does not have."""
    forms, r = mujoco.mjtGeom, size
    if kind == forms.mjGEOM_MESH or look.mesh:
        return ("mesh", ()) if look.mesh else (None, ())
    return {forms.mjGEOM_SPHERE: ("sphere", r[:1]), forms.mjGEOM_BOX: ("box", 2.0 * r),
            forms.mjGEOM_CAPSULE: ("capsule", (r[0], 2.0 * r[1])), forms.mjGEOM_PLANE: ("plane", ()),
            forms.mjGEOM_CYLINDER: ("cylinder", (r[0], 2.0 * r[1])), forms.mjGEOM_ELLIPSOID: ("ellipsoid", r),
            }.get(int(kind), (None, ()))
