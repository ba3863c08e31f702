"""Write a robot to a file, by the kind of the file."""

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
"""By the end of a file's name its writer, module and function of robot and path."""


def save(robot: Robot, path: PathLike) -> None:
    """Write a robot to a file: TOML, URDF or MJCF.

    TOML holds all of a robot but functions; see :func:`save_toml`. The other formats have no place for some of it: a
    joint, loop or constraint that they lack is refused, and a property that they lack (springs and gravity in URDF) is
    left out with a warning.

    In **URDF**, the ground is the root link. Joints of several coordinates (cylindrical, universal, planar,
    translational) become several joints, which have the coordinates' names. Loops are elements <loop> of URDF+,
    couplings of two joints are <mimic>. :func:`load_urdf` gives a robot with the same coordinates back.

    In **MJCF**, joints of several coordinates are several joints of one body, in the same way; a free joint that is not
    at the origin of the ground becomes three slides and a ball. Welds, balls and pins that close loops are equality
    constraints between sites (a pin is held at two points of its axis), couplings are tendons of fixed length, linear
    and polynomial force elements are tendons with springs, forces that bear a weight are ``gravcomp``, and the home
    configuration is a key. MuJoCo wants an inertia about every
    axis: bodies without one get 2e-15 kg m^2.

    Parameters
    ----------
    robot : Robot
        Its constraints as switched.
    path : str or Path
        Ends in one of `WRITERS`.

    Raises
    ------
    ModelError
        A joint, loop or constraint that such a file cannot hold; the message names it.
    InputError
        It is no robot, the file is of no known kind, or it cannot be written.

    Warns
    -----
    ModelWarning
        A property that such a file cannot hold, with the names of what has it.

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
