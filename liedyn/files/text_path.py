"""Robots from texts and open files, as if they were files: a path with the text that readers find there."""
# mypy: ignore-errors
import os
import re
from pathlib import Path

from liedyn.machine.errors import InputError, ModelError, said, shown
from liedyn.machine.reading import LARGEST

ROOTS = {"robot": ".urdf", "sdf": ".sdf", "mujoco": ".xml", "mujocoinclude": ".xml"}
"""Endings of files by the first element of their XML."""
_ROOT = re.compile(r"\s*+(?>(?>(?:<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>))\s*+)*+<([A-Za-z_][\w.:-]*)", re.DOTALL)
_MACRO = re.compile(r"<xacro:|\$[({]")


class TextPath(type(Path())):
    """The path of a file whose bytes are known; paths that are made of it have none."""

    data = None

    @classmethod
    def with_data(cls, folder, name, data):
        """A file of this name in a folder, with these bytes."""
        found = cls(folder, name)
        found.data = data
        return found


def of_text(source):
    """The `TextPath` of a text or of an open file; None if `source` is a name or a path.

    Its folder, in which meshes and included files are looked for, is that of the open file, or the working directory.
    Raises InputError if the file gives neither text nor bytes, or too much, and ModelError if its kind is unknown.
    """
    name = None
    if hasattr(source, "read") and not isinstance(source, os.PathLike):
        name = getattr(source, "name", None)
        try:
            source = source.read(LARGEST + 1)
        except Exception as error:  # files of other libraries raise errors of all kinds
            raise InputError(f"{shown(name or source)} cannot be read: {said(error)}") from error
        if not isinstance(source, str | bytes | bytearray):
            raise InputError(f"an open file gives text or bytes, got {shown(source)}")
        if len(source) > LARGEST:
            raise InputError(f"{shown(name)} is larger than {LARGEST / 2**20:g} MiB")
    elif not (isinstance(source, str) and ("\n" in source or source.lstrip()[:1] == "<")):
        return None
    data = source.encode("utf-8", "surrogateescape") if isinstance(source, str) else bytes(source)
    folder, file = os.path.split(name) if isinstance(name, str) else ("", "")
    return TextPath.with_data(folder, f"{Path(file).stem or 'text'}{_ending(data, file)}", data)


def _ending(data, file):
    """The ending of a file name that says what is in it."""
    text = data.decode("utf-8-sig", "replace")
    found = _ROOT.match(text)
    if found is None:
        if text.lstrip()[:1] == "<":
            raise ModelError("the text begins as XML, but has no element")
        return Path(file).suffix or ".toml"
    if found[1] not in ROOTS:
        raise ModelError(f"a text that begins with <{shown(found[1])[1:-1]}> is none of a robot: known are "
                         f"{', '.join(f'<{root}>' for root in ROOTS)}, and TOML")
    # what xacro has written names it still, but has nothing to expand
    if Path(file).suffix == ".xacro" or "http://www.ros.org/wiki/xacro" in text and _MACRO.search(text):
        return ".xacro"
    return ROOTS[found[1]]
