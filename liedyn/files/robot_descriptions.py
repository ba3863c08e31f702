"""Files of the package robot_descriptions, which knows where robots are kept, and fetches them."""
import importlib
import importlib.util
import re
from pathlib import Path

from liedyn.machine.errors import LiedynError, ModelError, said, shown, suggestion

DESCRIPTION = re.compile(r"[a-z][a-z0-9_]*_(?:mj_)?description", re.ASCII)
"""Names of its modules."""
PATHS = "URDF_PATH", "MJCF_PATH", "SDF_PATH", "XACRO_PATH"
"""What its modules say, in the order in which it is taken."""


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
