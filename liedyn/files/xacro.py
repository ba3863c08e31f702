"""Robots from xacro files, the macros in which ROS writes URDF: expanded by the package xacrodoc."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.files.paths import path_of, read_bytes
from liedyn.files.text_path import TextPath
from liedyn.files.urdf import load_urdf
from liedyn.machine.errors import InputError, LiedynError, ModelError, errors_at, said, shown

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import PathLike


def load_xacro(path: PathLike, arguments: dict[str, Any] | None = None, **options: Any) -> Robot:
    """Read a robot from a xacro file, which xacrodoc turns into URDF (extra ``xacro``).

    xacro evaluates expressions of the file in Python, restricted but without bounds of time and memory: read files only
    whose authors you trust.

    Parameters
    ----------
    path : str or Path
    arguments : dict, optional
        Values of the file's arguments (``<xacro:arg>``) by name.
    **options
        Options of :func:`load_urdf`.

    Returns
    -------
    Robot

    Raises
    ------
    LiedynError
        xacrodoc is not installed.
    ModelError
        xacrodoc cannot expand the file, or the result is no robot.
    InputError
        An argument's name is not text, or an unknown option.

    Warns
    -----
    ModelWarning
        As for :func:`load_urdf`.

    Examples
    --------
    >>> robot = load_xacro("arm.urdf.xacro", {"gripper": "true"})  # doctest: +SKIP
    """
    path = path_of(path)
    if not isinstance(arguments, dict | None) or not all(isinstance(name, str) for name in arguments or ()):
        raise InputError(f"load_xacro, arguments: must be values by name, got {shown(arguments)}")
    try:
        import xacrodoc
    except ImportError:
        raise LiedynError("xacro files need xacrodoc: pip install 'liedyn[xacro]'") from None
    given = {name: str(x).lower() if isinstance(x, bool) else str(x) for name, x in (arguments or {}).items()}
    with errors_at(path):
        data = read_bytes(path)  # refuses what is no file
        try:
            options_of = dict(subargs=given, resolve_packages=False)
            if isinstance(path, TextPath):
                found = xacrodoc.XacroDoc.from_string(data.decode("utf-8-sig"), rootdir=path.parent, **options_of)
            else:
                found = xacrodoc.XacroDoc.from_file(str(path), **options_of)
            text = found.to_urdf_string()
        except Exception as error:  # xacro evaluates expressions, which fail in every way
            raise ModelError(f"xacrodoc cannot expand it: {said(error)}") from error
        name = path.name.removesuffix(".xacro").removesuffix(".urdf") + ".urdf"
        expanded = TextPath.with_data(path.parent, name, text.encode())
    return load_urdf(expanded, **options)
