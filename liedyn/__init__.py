"""Robot dynamics on Lie groups: exact dynamics and exact minimal state-space models of any rigid mechanism.

    >>> import liedyn as ld
    >>> robot = ld.load("panda")
    >>> ld.crba(robot, robot.home).shape
    (7, 7)

Conventions, without switches: SI units and radians; twists are (omega, v) and wrenches (moment, force); everything at a
body is in that body's own frame; quaternions are (x, y, z, w); derivatives with respect to q live in the tangent space
at q, perturbed on the right. Every function of q, shape (nq,), also takes (..., nq).
"""
import importlib
import re

__version__ = "0.1.0"


def _listed():
    """{name: where it is} for names in `__init__.pyi`: of those imported at once, of the others, and of modules."""
    text = __spec__.loader.get_data(__file__.rpartition(".")[0] + ".pyi").decode()
    *names, modules = text.split("# ---- ")
    for part in names:
        yield {name: module for module, some in re.findall(r"^from (\S+) import (\([^)]*\)|.*)$", part, re.M)
               for name in re.findall(r"(\w+) as ", some)}
    found = {name: f"{package}.{module}"
             for package, module, name in re.findall(r"^from (\S+) import (\w+) as (\w+)$", modules, re.M)}
    yield found | {name: found.pop(other) for name, other in re.findall(r"^(\w+) = (\w+)$", modules, re.M)}


_AT_ONCE, _LATER, _MODULES = _listed()
__all__ = [*_AT_ONCE, *_LATER]


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in __all__:
        raise AttributeError(f"module 'liedyn' has no attribute {name!r}")
    value = getattr(importlib.import_module((_AT_ONCE | _LATER)[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__, *_MODULES})


_handover = importlib.import_module("liedyn.machine.program.handover")
_handover.install()  # before modules take what it changes
# open trees start with these, and without what loops and other libraries need
for _name in _AT_ONCE:
    __getattr__(_name)
if _handover.interprets_all():
    importlib.import_module("liedyn.model.calls.interpreted_batches")
