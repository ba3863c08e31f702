"""The optional package python-control: its module, and signal names that it accepts."""
# mypy: ignore-errors
from liedyn.machine.errors import LiedynError


def python_control(what):
    """The module `control`; LiedynError, which names `what` needs it, if it is not installed."""
    try:
        import control
    except ImportError:
        raise LiedynError(f"{what} needs python-control: pip install 'liedyn[control]'") from None
    return control


def plain(names, before=""):
    """Names of signals with dots and colons replaced, which python-control refuses."""
    return [before + name.replace(":", "_").replace(".", "_") for name in names]


def forces(names):
    """Names of the actuators' forces, prefixed as they may equal those of the coordinates that they drive."""
    return plain(names, "force_")
