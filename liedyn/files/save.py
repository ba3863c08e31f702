"""Write a robot to a file whose format follows from the file name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.files.paths import path_of
from liedyn.machine.arguments import require_robot
from liedyn.machine.by_name import by_name
from liedyn.machine.errors import InputError, shown, suggestion

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import PathLike

WRITERS = {
    ".toml": "liedyn.files.toml:save_toml",
    ".urdf": "liedyn.files.to_urdf:save_urdf",
    ".xml": "liedyn.files.to_mjcf:save_mjcf",
}
"""The writer, as module and function of robot and path, by ending of the file name."""


def save(robot: Robot, path: PathLike) -> None:
    """Write a robot to a file: TOML, URDF or MJCF.

    TOML holds everything except functions; see :func:`save_toml`. For the other formats, a joint, loop or constraint
    that they lack is an error, and a property that they lack (springs and gravity in URDF) is omitted with a warning.

    In **URDF**, the ground is the root link. Joints of several coordinates (cylindrical, universal, planar,
    translational) become several joints with the names of the coordinates. Loops are elements <loop> of URDF+,
    couplings of two joints are <mimic>. :func:`load_urdf` returns a robot with the same coordinates.

    In **MJCF**, joints of several coordinates are several joints of one body, in the same way; a free joint that is not
    at the origin of the ground becomes three slides and a ball. Welds, balls and pins that close loops are equality
    constraints between sites (two points on the axis of a pin), couplings are tendons of fixed length, linear and
    polynomial force elements are tendons with springs, forces that compensate a weight are ``gravcomp``, and the home
    configuration is a key. MuJoCo needs an inertia about every axis: bodies without one get 2e-15 kg m^2.

    Parameters
    ----------
    robot : Robot
        With its switched constraints.
    path : str or Path
        Its ending must be one of `WRITERS`.

    Raises
    ------
    ModelError
        A joint, loop or constraint that such a file cannot hold; the message names it.
    InputError
        `robot` is not a Robot, the kind of file is unknown, or it cannot be written.

    Warns
    -----
    ModelWarning
        A property that such a file cannot hold, with the names of the parts that have it.

    Examples
    --------
    >>> import tempfile
    >>> import liedyn as ld
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(ld.load("solo12"), f"{folder}/solo12.xml")
    """
    require_robot(robot)
    kind = path_of(path).suffix.lower()
    if kind not in WRITERS:
        raise InputError(f"{shown(str(path))}: no kind of file that is written, {suggestion(kind, WRITERS)}")
    by_name(WRITERS[kind])(robot, path)
