"""Common functions of the writers of XML formats: single motions of joints, numbers as text, warnings for omissions."""

from collections import defaultdict
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from liedyn.machine.errors import ModelError, listed, shown
from liedyn.machine.texts import printable
from liedyn.model.frames import joint_basis
from liedyn.model.kinds import CONSTRAINT_KINDS, JOINT_KINDS, components
from liedyn.model.validation import warn


class JointMotion(NamedTuple):
    """One coordinate of a joint, if a number: its name, index among the joint's coordinates, kind and axis."""

    name: str
    place: int
    is_turn: bool
    axis: np.ndarray


def motions(joint):
    """The successive motions of a joint; ModelError if it is not a sequence of single motions."""
    kind = JOINT_KINDS[joint.kind]
    if kind.nq != kind.nv or kind.has_pitch:
        raise ModelError(f"joint {shown(joint.name)}: the file cannot hold a {joint.kind} joint")
    basis = joint_basis(joint.axes)
    return [JointMotion(joint.name + suffix, k, place < 3, basis[:, place % 3])
            for k, (suffix, place) in enumerate(zip(kind.velocities, components(kind.motions)))]


def words(values):
    """Numbers as text, with full precision."""
    return " ".join(repr(float(value) + 0.0) for value in np.ravel(values))  # no minus sign before zero


def document(xml):
    """The text of a file with an XML element as root."""
    try:
        ElementTree.indent(xml)
        text = ElementTree.tostring(xml, encoding="unicode") + "\n"
        ElementTree.fromstring(text)
    except SyntaxError as error:
        raise ModelError(f"a name or text that XML cannot hold: {error}") from None
    except RecursionError:
        raise ModelError("bodies are nested too deeply for the file") from None
    return text


def require_plain(each, target="the file"):
    """Raise an error for a loop or constraint that is switched off, moves with time or is one-sided."""
    what = "constraint" if each.kind in CONSTRAINT_KINDS else "loop"
    for trouble, is_so in (("is moved by a function", each.target is not None),
                           ("is switched off", each.active is not True),
                           ("is one-sided", getattr(each, "side", 0) != 0)):
        if is_so:
            raise ModelError(f"{what} {shown(each.name)}: {trouble}, which {target} cannot hold")


def refused(each, target="the file"):
    """The error for a kind of loop or constraint that the format lacks."""
    what = "constraint" if each.kind in CONSTRAINT_KINDS else "loop"
    return ModelError(f"{what} {shown(each.name)}: {target} cannot hold the kind {shown(each.kind)}")


class LeftOut:
    """Properties that a file cannot hold but does not need: one warning for each sort, with names."""

    def __init__(self):
        self._found = defaultdict(list)

    def add(self, what, name, is_so=True):
        if is_so:
            self._found[what].append(name)

    def warn(self, path):
        """Issue one warning for each sort; `path` is the file or model that has them."""
        for what, names in self._found.items():
            warn(f"{printable(path.name)}: left out {what}: {listed(names)}")
