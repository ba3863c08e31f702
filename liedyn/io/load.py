"""Load a robot by the name it is bundled under, or from a file."""

import importlib.resources
from pathlib import Path

from liedyn.errors import ModelError, suggestion
from liedyn.io.toml import load_toml
from liedyn.io.urdf import load_urdf

_READERS = {".toml": load_toml, ".urdf": load_urdf}


def load(source, **options):
    """Load a robot.

    Parameters
    ----------
    source : str or Path
        Name of a bundled robot (:func:`bundled`), or path of a ``.toml`` or ``.urdf`` file.
    **options
        For URDF files, those of :func:`load_urdf`.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        Neither a bundled name nor a file of a known kind, or a file that does not describe a robot.

    Examples
    --------
    >>> load("loader").loop_names
    ('lift_pin', 'link_pin', 'tilt_pin')
    """
    reader = _READERS.get(Path(source).suffix.lower())
    if reader is not None:
        return reader(source, **options)
    names = bundled()
    if source not in names:
        raise ModelError(
            f"no robot {str(source)!r}: give the path of a .toml or .urdf file, or a bundled name; "
            f"{suggestion(source, names)}"
        )
    with importlib.resources.as_file(_folder() / f"{source}.toml") as path:
        return load_toml(path, **options)


def bundled():
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
    except ModuleNotFoundError:  # a checkout that is on the path but not installed
        beside = Path(__file__).resolve().parents[2] / "robots"
        return beside if beside.is_dir() else None
