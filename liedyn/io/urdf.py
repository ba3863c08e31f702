"""Robots from URDF files, read through yourdfpy.

Loops, which URDF cannot express, come as an argument or in a sidecar file. Meshes are never opened.
"""

from pathlib import Path

import numpy as np

from liedyn.errors import ModelError, errors_at, suggestion
from liedyn.io.toml import as_table, declare, read_document, take_section
from liedyn.model import GROUND, Builder
from liedyn.model.kinds import JOINT_KINDS

_KINDS = {
    "fixed": "fixed",
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "planar": "planar",
    "floating": "free",
}


def load_urdf(path, floating_base=False, base_name="base", loops=None, gravity=(0.0, 0.0, -9.81)):
    """Read a robot from a URDF file.

    Links become bodies; a link without <inertial> is massless. Joints keep their names, limits and damping; a `planar`
    joint moves in the plane orthogonal to its axis.

    Parameters
    ----------
    path : str or Path
    floating_base : bool
        Join the root link to the ground by a free joint; else it is fixed.
    base_name : str
        Name of the joint between the ground and the root link.
    loops : dict, optional
        Tables as in ``[loops.x]`` of a robot's TOML file, by name. Instead of `parent` a table may have `parent_frame`,
        the name of a link, or of a joint, whose frame is that of its child link; likewise `child_frame`. Default: those
        of the file ``robot.loops.toml`` beside ``robot.urdf``, if there is one.
    gravity : array_like, shape (3,)
        [m/s^2]

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        The file is not a URDF, has mimic joints, or does not describe a robot; yourdfpy is not installed.

    Warns
    -----
    ModelWarning
        A link has an inertia that no real body has, as some of published files do.

    Examples
    --------
    >>> robot = load_urdf("solo12.urdf", floating_base=True)  # doctest: +SKIP
    """
    with errors_at(path):
        urdf = _parse(path)
        builder = Builder(urdf.name, gravity=gravity, source=Path(path).name)
        for link in urdf.links:
            _add_body(builder, link)
        _add_base(builder, urdf, base_name, "free" if floating_base else "fixed")
        for joint in urdf.joints:
            _add_joint(builder, joint)
        _add_loops(builder, urdf, _sidecar_loops(path) if loops is None else loops)
        return builder.build()


def _parse(path):
    try:
        import yourdfpy
    except ImportError:
        raise ModelError("reading URDF needs yourdfpy: pip install 'liedyn[urdf]'") from None
    try:
        return yourdfpy.URDF.load(str(path), build_scene_graph=False, load_meshes=False).robot
    except (ValueError, KeyError, AttributeError, TypeError, SyntaxError) as error:
        raise ModelError(f"not a URDF: {error!r}") from None


def _add_body(builder, link):
    inertial = link.inertial
    if inertial is None:
        builder.body(link.name)
        return
    pose = np.eye(4) if inertial.origin is None else inertial.origin
    inertia = np.zeros((3, 3)) if inertial.inertia is None else inertial.inertia
    R = pose[:3, :3]
    builder.body(link.name, mass=inertial.mass or 0.0, com=pose[:3, 3], inertia=R @ inertia @ R.T)


def _add_base(builder, urdf, name, kind):
    children = {joint.child for joint in urdf.joints}
    roots = [link.name for link in urdf.links if link.name not in children]
    if len(roots) == 1:  # else there is no tree, and the builder knows why
        builder.joint(name, kind, parent=GROUND, child=roots[0])


def _add_joint(builder, joint):
    if joint.mimic is not None:
        raise ModelError(f"joint {joint.name!r}: mimics {joint.mimic.joint!r}, which a tree joint of liedyn cannot do")
    if joint.type not in _KINDS:
        raise ModelError(f"joint {joint.name!r}, type: unknown {joint.type!r}, {suggestion(joint.type, _KINDS)}")
    kind = _KINDS[joint.type]
    builder.joint(
        joint.name, kind, joint.parent, joint.child,
        placement=joint.origin,
        axis=joint.axis if JOINT_KINDS[kind].axes else None,
        damping=_damping(joint),
        **_limits(joint),
    )


def _damping(joint):
    if joint.dynamics is None or joint.type == "fixed":  # exporters write <dynamics> everywhere
        return 0.0
    try:
        return float(joint.dynamics.damping or 0.0)  # yourdfpy leaves it a string
    except ValueError:
        raise ModelError(f"joint {joint.name!r}, damping: expected a number, got {joint.dynamics.damping!r}") from None


def _limits(joint):
    """Limits of the joints that have one coordinate; missing ones are infinite."""
    if joint.limit is None or joint.type not in ("revolute", "continuous", "prismatic"):
        return {}
    lower, upper = joint.limit.lower, joint.limit.upper
    limits = {"velocity_limit": joint.limit.velocity, "effort_limit": joint.limit.effort}
    if joint.type != "continuous":
        limits["limits"] = (-np.inf if lower is None else lower, np.inf if upper is None else upper)
    return limits


def _sidecar_loops(path):
    sidecar = Path(path).with_suffix(".loops.toml")
    if not sidecar.is_file():
        return {}
    with errors_at(sidecar.name):
        document = read_document(sidecar)
        loops = take_section(document, "loops")
        if document:
            raise ModelError(f"unknown key {next(iter(document))!r}: only [loops.x] tables stand in a sidecar file")
        return loops


def _add_loops(builder, urdf, loops):
    frames = {joint.name: joint.child for joint in urdf.joints} | {link.name: link.name for link in urdf.links}
    for name, table in loops.items():
        with errors_at(f"[loops.{name}]"):
            declare(builder, Builder.loop, name, _with_bodies(as_table(table), frames))


def _with_bodies(table, frames):
    """The table with `parent_frame` and `child_frame` replaced by the bodies whose frames they are."""
    table = dict(table)
    for body in ("parent", "child"):
        frame = table.pop(f"{body}_frame", None)
        if frame is None:
            continue
        if body in table:
            raise ModelError(f"give {body} or {body}_frame, not both")
        if frame not in frames:
            raise ModelError(f"{body}_frame: unknown {frame!r}, {suggestion(frame, frames)}")
        table[body] = frames[frame]
    return table
