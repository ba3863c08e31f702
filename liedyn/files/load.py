"""Load a robot by the name of a bundled one, or from a file."""

from __future__ import annotations

import importlib.resources
import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from liedyn.files.paths import path_of
from liedyn.machine.by_name import by_name
from liedyn.machine.errors import InputError, ModelError, shown, suggestion

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import PathLike

READERS = {
    ".toml": "liedyn.files.toml:load_toml",
    ".urdf": "liedyn.files.urdf:load_urdf",
    ".xml": "liedyn.files.mjcf:load_mjcf",
    ".sdf": "liedyn.files.sdf:load_sdf",
    ".world": "liedyn.files.sdf:load_sdf",
}
"""The reader, as module and function, by ending of the file name; it takes the path, and options as keywords."""

_USD = (".usd", ".usda", ".usdc", ".usdz")  # MjSpec.from_file in MuJoCo 4.0's wheel cannot read them


def load(source: PathLike, **options: Any) -> Robot:
    """Load a robot.

    Parameters
    ----------
    source : str or Path
        Name of a bundled robot (:func:`bundled`), or path of a file of one of the kinds in `READERS`.
    **options
        Options of the reader: for URDF files :func:`load_urdf`, for SDFormat files :func:`load_sdf`.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        Neither a bundled name nor a file of a known kind, or a file that does not describe a robot.
    InputError
        An unknown option, or a source that is neither a name nor a path.

    Examples
    --------
    >>> load("loader").loop_names
    ('lift_pin', 'link_pin', 'tilt_pin')
    """
    kind = path_of(source).suffix.lower()
    if kind in _USD:
        raise ModelError(f"{shown(str(source))}: USD is not read; convert it to URDF or MJCF first, as Isaac Sim's "
                         "URDF exporter does, or a MuJoCo that is built with USD")
    reader = by_name(READERS[kind if kind in READERS else ".toml"])
    known = list(inspect.signature(reader).parameters)[1:]
    for option in options:
        if option not in known:
            file = f"a {kind} file" if kind in READERS else "a bundled robot"
            raise InputError(f"{file} is loaded without an option {shown(option)}, {suggestion(option, known)}")
    if kind in READERS:
        return reader(source, **options)
    name, names = str(source), bundled()
    if name not in names:
        raise ModelError(f"no robot {shown(name)}: give the path of a {' or '.join(READERS)} file, or a bundled name; "
                         f"{suggestion(name, names)}")
    from liedyn.files.toml import read_toml

    with importlib.resources.as_file(_folder() / f"{name}.toml") as path:
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
    folder = _folder()
    if folder is None:
        return []
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def _folder():
    try:
        return importlib.resources.files("liedyn_robots")
    except ModuleNotFoundError:  # a source checkout that is on the path but not installed
        beside = Path(__file__).resolve().parents[2] / "robots"
        return beside if beside.is_dir() else None
