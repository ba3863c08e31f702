"""Load a robot by the name of a bundled one, or from a file.

Write a robot to a file whose format follows from the file name. Robots of the package robot_descriptions, which knows
where files of many are kept, are fetched by it.
"""
from __future__ import annotations

import importlib
import importlib.resources
import importlib.util
import inspect
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from liedyn.files.paths import path_of
from liedyn.files.text_path import of_text
from liedyn.machine.arguments import require_robot
from liedyn.machine.by_name import by_name
from liedyn.machine.errors import InputError, LiedynError, ModelError, said, shown, suggestion
from liedyn.machine.typed_decorators import once

DESCRIPTION = re.compile(r"[a-z][a-z0-9_]*_(?:mj_)?description", re.ASCII)
"""Names of modules of robot_descriptions."""
PATHS = "URDF_PATH", "MJCF_PATH", "SDF_PATH", "XACRO_PATH"
"""What these modules say, in the order in which it is taken."""


def described(name):
    """The path of a robot by its name in robot_descriptions, which fetches it if need be.

    Raises LiedynError if the package is not installed, and ModelError if it has no such robot, or cannot fetch it.
    """
    package = importlib.util.find_spec("robot_descriptions")
    if package is None or not package.submodule_search_locations:
        raise LiedynError(f"{shown(name)} is a name of robot_descriptions: pip install robot_descriptions")
    folders = [Path(each) for each in package.submodule_search_locations]
    names = sorted({each.stem for folder in folders for each in folder.glob("*_description.py")})
    if name not in names:
        raise ModelError(f"robot_descriptions has no {shown(name)}, {suggestion(name, names)}")
    try:
        module = importlib.import_module(f"robot_descriptions.{name}")
    except Exception as error:  # it clones repositories
        raise ModelError(f"robot_descriptions cannot fetch {shown(name)}: {said(error)}") from error
    for each in PATHS:
        if getattr(module, each, None):
            return Path(getattr(module, each))
    raise ModelError(f"robot_descriptions has no file of {shown(name)}")


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
    polynomial force elements are tendons with springs, forces that compensate a weight are ``gravcomp``, one-sided
    contacts of points and spheres with planes of the ground and with spheres are pairs of geoms, and the home
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


if TYPE_CHECKING:
    from typing import IO, Any

    from liedyn.model.robot import Robot
    from liedyn.typing import PathLike

READERS = {
    ".toml": "liedyn.files.toml:load_toml",
    ".urdf": "liedyn.files.urdf:load_urdf",
    ".xml": "liedyn.files.mjcf:load_mjcf",
    ".sdf": "liedyn.files.sdf:load_sdf",
    ".world": "liedyn.files.sdf:load_sdf",
    ".xacro": "liedyn.files.xacro:load_xacro",
}
"""The reader, as module and function, by ending of the file name; it takes the path, and options as keywords."""

_USD = (".usd", ".usda", ".usdc", ".usdz")  # MjSpec.from_file in MuJoCo 4.0's wheel cannot read them


def load(source: PathLike | IO[Any], **options: Any) -> Robot:
    """Load a robot.

    Parameters
    ----------
    source : str, Path or open file
        Name of a bundled robot (:func:`bundled`), or path of a file of one of the kinds in `READERS`; the text of such
        a file, or an open one; or a name of the package robot_descriptions where it is installed,
        ``"ur10_description"``. Meshes and included files of a text are looked for in the working directory, of an open
        file beside it.
    **options
        Options of the reader: for URDF files :func:`load_urdf`, for SDFormat files :func:`load_sdf`, for xacro files
        ``arguments`` (values by name) and those of :func:`load_urdf`.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        Neither a bundled name nor a file or text of a known kind, or one that does not describe a robot.
    InputError
        An unknown option, or a source that is none of these; an open file that cannot be read.
    LiedynError
        A package that reads this kind of file, or robot_descriptions, is not installed.

    Examples
    --------
    >>> load("loader").loop_names
    ('lift_pin', 'link_pin', 'tilt_pin')
    >>> load("<robot name='stick'><link name='rod'/></robot>").body_names
    ('rod',)
    """
    text = of_text(source)
    source = source if text is None else text
    kind = path_of(source).suffix.lower()
    if kind in _USD:
        raise ModelError(f"{shown(str(source))}: USD is not read; convert it to URDF or MJCF first, as Isaac Sim's "
                         "URDF exporter does, or a MuJoCo that is built with USD")
    if kind not in READERS and DESCRIPTION.fullmatch(str(source)) and str(source) not in bundled():
        return load(described(str(source)), **options)
    reader = by_name(READERS[kind if kind in READERS else ".toml"])
    known = _options(reader)
    if kind == ".xacro":
        known = [*known[:-1], *_options(by_name(READERS[".urdf"]))]
    for option in options:
        if option not in known:
            file = f"a {kind} file" if kind in READERS else "a bundled robot"
            raise InputError(f"{file} is loaded without an option {shown(option)}, {suggestion(option, known)}")
    if kind in READERS:
        return reader(source, **options)
    name, folder = str(source), _folder()
    names = _names(folder)
    if name not in names:
        raise ModelError(f"no robot {shown(name)}: give the path of a {' or '.join(READERS)} file, or a bundled name; "
                         f"{suggestion(name, names)}")
    from liedyn.files.toml import read_toml

    with importlib.resources.as_file(folder / f"{name}.toml") as path:
        return read_toml(path)


def bundled() -> list[str]:
    """Names of the bundled robots, sorted.

    Returns
    -------
    list of str

    Examples
    --------
    >>> "loader" in bundled()
    True
    """
    return _names(_folder())


def _names(folder):
    if folder is None:
        return []
    # a package in an archive is no Path
    names = os.listdir(folder) if isinstance(folder, Path) else [entry.name for entry in folder.iterdir()]
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


@once
def _options(reader):
    """Names of a reader's options."""
    return list(inspect.signature(reader).parameters)[1:]


def _folder():
    try:
        return importlib.resources.files("liedyn_robots")
    except ModuleNotFoundError:  # a source checkout that is on the path but not installed
        beside = Path(__file__).resolve().parents[2] / "robots"
        return beside if beside.is_dir() else None
