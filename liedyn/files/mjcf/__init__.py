"""Robots from MJCF files, read by MuJoCo's own parser: the extra ``mjcf``.

The robot is made from MuJoCo's compiled model, in which defaults, frames, units and inertias of shapes are resolved.
MuJoCo's constraints are soft; here they are hard, and the rest of the dynamics is the same.
"""
# mypy: ignore-errors

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from liedyn.files.file_bodies import add_friction, require_width
from liedyn.files.mjcf import actuators, equalities, fields, geoms
from liedyn.files.mjcf.documents import looked_through
from liedyn.files.mjcf.passive import declare_limits, declare_tendons
from liedyn.files.mjcf.reader import BALL, Reader
from liedyn.files.paths import path_of
from liedyn.files.text_path import TextPath
from liedyn.machine.errors import LiedynError, ModelError, cut, errors_at, listed
from liedyn.machine.texts import printable
from liedyn.model.validation import warn

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import PathLike


def load_mjcf(path: PathLike, keyframe: str | None = None, friction: float | None = None) -> Robot:
    """Read a robot from an MJCF file of MuJoCo.

    Bodies keep their names and frames, joints their names and coordinates (`ref` included). A body with several joints
    becomes a chain of massless bodies, sites become frames. Equalities between bodies or sites become cut joints, those
    between joints or fixed tendons couplings; springs and dampers of tendons, and polynomial ones of joints, become
    force elements, upper limits of tendons over sites cables that do not stretch, compensation of gravity applied
    forces. Motors, and position and velocity servos become actuators, the feedback of servos springs and dampers, and
    ranges of forces and inputs of motors that drive a joint alone its limit of effort; a free joint is driven only by
    actuators of the file. Features
    switched off in the file are off. Shapes are used for inertias and pictures.

    A warning names everything else in MuJoCo's compiled model that differs from its default, unless it does not affect
    the motion; `liedyn.files.mjcf.fields` lists all fields.

    Parameters
    ----------
    path : str or Path
    keyframe : str, optional
        The keyframe that is the home configuration. Default: the one named ``"home"``, else the first one, else the
        configuration in which the file draws the model.
    friction : float, optional
        Keep the dry friction of joints as ``<coordinate> friction`` (:meth:`Builder.friction`): force elements that are
        smooth below this rate [rad/s, m/s], or, with 0, friction that really sticks. Default: it is omitted, with a
        warning.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        MuJoCo cannot read the file or would not terminate, a name is not UTF-8, a mesh needed for an inertia is
        missing, or the file does not describe a robot.
    LiedynError
        MuJoCo is not installed.

    Warns
    -----
    ModelWarning
        The file has properties that the robot lacks, given by name; or names had to be changed.

    Examples
    --------
    >>> robot = load_mjcf("cassie.xml")  # doctest: +SKIP
    """
    path = path_of(path)
    require_width("load_mjcf", friction)
    with errors_at(path):
        source = path.name.encode(errors="replace").decode()  # file names may be any bytes
        mujoco, model, looks = compiled(path)
        reader = Reader(mujoco, model, source, keyframe)
        servos = actuators.linear_servos(reader)
        reader.add_bodies(servos, actuators.effort_limits(reader))
        reader.add_sites()
        polynomials = equalities.declare(reader)
        declare_tendons(reader)
        declare_limits(reader)
        actuators.declare(reader)
        geoms.declare(reader, looks)
        add_friction(reader.builder, reader.frictions() if friction is not None else {}, friction)
        robot = equalities.with_polynomials(reader.builder, polynomials)
    for what, names in left_out(reader, friction is not None).items():
        warn(f"{cut(path.name)}: left out {what}: {listed(names)}")
    if reader.renamed:
        warn(f"{cut(path.name)}: names that others have, too, changed: {listed(reader.renamed)}")
    return robot


def compiled(path):
    """The module mujoco, the model compiled from a file (without meshes for pictures only), and a `Look` by shape."""
    try:
        import mujoco
    except ImportError:
        raise LiedynError("MJCF files need MuJoCo: pip install 'liedyn[mjcf]'") from None
    if looked_through(path) == "robot":  # a URDF file, which MuJoCo reads without its loops and friction
        raise ModelError("this is a URDF: give it a name that ends with .urdf, or take load_urdf")
    with _parsing(mujoco):
        if isinstance(path, TextPath):
            spec = mujoco.MjSpec.from_string(path.data.decode("utf-8-sig"))
            spec.modelfiledir = str(path.parent)
        else:
            spec = mujoco.MjSpec.from_file(str(path))
        spec.compiler.fusestatic = False
        spec.compiler.LRopt.mode = mujoco.mjtLRMode.mjLRMODE_NONE  # ranges of muscles would need a simulation
        looks = geoms.leave_shapes(mujoco, spec, path.parent)
        return mujoco, spec.compile(), looks


@contextlib.contextmanager
def _parsing(mujoco):
    """Context that turns MuJoCo's messages about a file into a ModelError of one line."""
    try:
        yield
    except (ValueError, mujoco.FatalError, mujoco.UnexpectedError, MemoryError) as error:
        raise ModelError(f"MuJoCo cannot read it: {printable(' '.join(str(error).split()))}") from None


def left_out(reader, keeps_friction):
    """Properties that the robot lacks: names by description."""
    m, found = reader.model, reader.missing
    fields.tell(reader)
    for j in m.dof_jntid[np.flatnonzero(m.dof_frictionloss)] if not reader.has_no_friction() else ():
        if not (keeps_friction and reader.is_single(j)):
            found["the dry friction of joints"].append(reader.joints[j])
    for j in np.flatnonzero(m.jnt_limited) if not reader.has_no_limits() else ():
        if m.jnt_type[j] == BALL:
            found["the ranges of balls"].append(f"{reader.joints[j]} ({m.jnt_range[j, 1]:g})")
    for j in np.flatnonzero(m.jnt_actfrclimited):
        low, high = m.jnt_actfrcrange[j]
        if reader.is_single(j) and low != -high:
            found["that forces of actuators are limited otherwise to one side"].append(
                f"{reader.joints[j]} ({low:g} {high:g})")
    return {what: list(dict.fromkeys(names)) for what, names in found.items() if names}
