"""python-control, which is optional: the module itself, and names as it takes them."""
from liedyn.machine.errors import LiedynError


def python_control(what):
    """The module `control`.

    Raises
    ------
    LiedynError
        It is not installed; `what` needs it.
    """
    try:
        import control
    except ImportError:
        raise LiedynError(f"{what} needs python-control: pip install 'liedyn[control]'") from None
    return control


def plain(names, before=""):
    """Names of signals, in which python-control refuses dots and colons."""
    return [before + name.replace(":", "_").replace(".", "_") for name in names]


def forces(names):
    """Names of the forces of actuators, which may be called as the coordinates are that they drive."""
    return plain(names, "force_")
