"""Shapes of MJCF files: what is only for the eye or for contact is left out, and the meshes that it takes with it."""
from liedyn.errors import ModelError, shown


def leave_shapes(mujoco, spec, folder):
    """Take out all that only shows, and meshes that no inertia needs: their files may be missing."""
    auto, always = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO, mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    needed = set()
    for geom in list(spec.geoms):
        geom.material = ""
        if geom.type not in (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF):
            if not geom.meshname:
                continue
        body, rule = geom.parent, geom.compiler.inertiafromgeom
        is_given = rule != always and (body.explicitinertial or rule != auto)
        if is_given or not _moves(body) or geom.mass == 0.0 or geom.density == 0.0:
            spec.delete(geom)
        else:
            needed.add(geom.meshname)
    for mesh in list(spec.meshes):
        if mesh.name not in needed:
            spec.delete(mesh)
        elif mesh.file and not (folder / mesh.compiler.meshdir / mesh.file).exists():
            raise ModelError(f"mesh {shown(mesh.name)}: no file {shown(mesh.file)}; an inertia is computed from it: "
                             "give the file, or its body an <inertial>")
    for kind in (spec.skins, spec.hfields, spec.materials, spec.textures):
        for each in list(kind):
            spec.delete(each)


def _moves(body):
    """Is there a joint between a body and the world?"""
    while body.name != "world":
        if list(body.joints):
            return True
        body = body.parent
    return False
