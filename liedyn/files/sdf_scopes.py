"""Names in an SDFormat file and the poses of their frames: nested models, and frames relative to frames."""

import contextlib

import numpy as np

from liedyn.files.xml_elements import Element, numbers_in
from liedyn.machine.errors import ModelError, cut, errors_at, shown, suggestion
from liedyn.model import GROUND, placement
from liedyn.model.frames import ROUNDING

MODEL, WORLD = "__model__", "world"
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_KINDS = ("link", "model", "frame", "joint")  # if two have the same name, as in old files, the first kind is meant


class SdfElement(Element):
    """An element whose values are the texts of its child elements."""

    def all(self, tag):
        """The child elements of this tag."""
        return [SdfElement(xml, self.owner) for xml in self.xml.findall(tag)]

    def part(self, tag, needed=False):
        """The one child element of this tag, or None."""
        found = super().part(tag, needed)
        return found and SdfElement(found.xml, found.owner)

    def word(self, tag, default=None):
        """The text of a child element, which is required if there is no default."""
        found = self.part(tag, needed=default is None)
        return default if found is None else (found.xml.text or "").strip()

    def numbers_of(self, tag, count, default=None):
        """The numbers in a child element, which must be there if there is no default."""
        if default is not None and self.part(tag) is None:
            return default
        text = self.word(tag)
        found = numbers_in(text, f"{self.owner}, {tag}")
        if len(found) != count:
            expected = "one number" if count == 1 else f"{count} numbers"
            raise ModelError(f"{self.owner}, {tag}: expected {expected}, got {shown(text)}")
        return found

    def number_of(self, tag, default=None):
        """The number in a child element."""
        return self.numbers_of(tag, 1, None if default is None else [default])[0]

    def is_set(self, tag):
        """True if a child element exists and is true."""
        return truth(f"{self.owner}, {tag}", self.word(tag, "false"))


def truth(what, text):
    """A truth value in SDFormat's notation."""
    if text.lower() not in _TRUTHS:
        raise ModelError(f"{what}: expected true or false, got {shown(text)}")
    return _TRUTHS[text.lower()]


def own_pose(element):
    """The pose in an element's <pose>, and the name of the frame to which it is relative, empty for the default one."""
    given = element.part("pose")
    if given is None:
        return np.eye(4), ""
    what = f"{element.owner}, pose"
    numbers = numbers_in(given.xml.text or "", what) or [0.0] * 6
    form = given.xml.get("rotation_format", "euler_rpy")
    sizes = {"euler_rpy": 6, "quat_xyzw": 7}
    if form not in sizes:
        raise ModelError(f"{what}, rotation_format: unknown {shown(form)}, {suggestion(form, sizes)}")
    if len(numbers) != sizes[form]:
        raise ModelError(f"{what}: expected {sizes[form]} numbers, got {shown(given.xml.text.strip())}")
    turn = numbers[3:]
    if truth(f"{what}, degrees", given.xml.get("degrees", "false")):
        turn = np.radians(turn)
    with errors_at(what, owner="placement"):
        pose = placement(numbers[:3], **{"rpy" if form == "euler_rpy" else "quaternion": turn})
    return pose, given.xml.get("relative_to", "")


def relative(A, B):
    """The pose of B in A; rounding errors of zero are set to zero."""
    R, pose = A[:3, :3].T, np.eye(4)
    turn, shift = R @ B[:3, :3], R @ (B[:3, 3] - A[:3, 3])
    size = max(1.0, np.abs(A[:3, 3]).max(), np.abs(B[:3, 3]).max())
    pose[:3, :3] = np.where(np.abs(turn) < ROUNDING, 0.0, turn)
    pose[:3, 3] = np.where(np.abs(shift) < ROUNDING * size, 0.0, shift)
    return pose


class Scope:
    """A model, or the world, with the names that are valid in it. Poses are in its own frame.

    Attributes
    ----------
    element : SdfElement
        <model> or <world>.
    outer : Scope or None
        The scope that contains it; None for the world.
    prefix : str
        Prefix of its names in the robot: empty for the model that is read, which is ``chosen`` of the world.
    inner : dict
        Its models, by name.
    things : dict
        Kind and element of each thing that has a frame, by name.
    joints : list of SdfElement
    """

    def __init__(self, element, outer=None, prefix="", chosen=None):
        self.element, self.outer, self.prefix = element, outer, prefix
        self.things, self.joints = {}, []
        for kind in _KINDS:
            own = set()
            for xml in element.xml.findall(kind):
                each = SdfElement(xml, kind)
                name = each.text("name")
                each.owner = f"{kind} {shown(self.prefix + name)}"
                if name in own or name in (MODEL, WORLD) or (kind, prefix + name) == ("link", GROUND):
                    raise ModelError(f"{each.owner}: {'declared twice' if name in own else 'the name is reserved'}")
                own.add(name)
                self.things.setdefault(name, (kind, each))
                if kind == "joint":
                    self.joints.append(each)
        self.inner = {name: Scope(each, self, prefix + ("" if name == chosen else f"{name}::"))
                      for name, (kind, each) in self.things.items() if kind == "model"}
        self._poses, self._asked = {MODEL: np.eye(4)}, False
        if outer is None:
            self._poses[WORLD] = np.eye(4)

    def scopes(self):
        """This scope and those within."""
        return [self, *(scope for each in self.inner.values() for scope in each.scopes())]

    def links(self):
        """Its own links."""
        return [each for kind, each in self.things.values() if kind == "link"]

    def pose(self, name):
        """The pose of the frame of this name, in this scope's own frame."""
        if not name:
            name = MODEL
        *chain, base = self._chain(name, self._reference, self._poses)
        with errors_at(f"{self.things[chain[-1]][1].owner}, pose") if chain else contextlib.nullcontext():
            pose = self._poses[base] if base in self._poses else self._beyond(base)
        for each in reversed(chain):
            pose = self._poses[each] = pose @ self._own_pose(each)
        return pose

    def world_pose(self, name):
        """The pose of the frame of this name in the world."""
        return relative(self.pose(WORLD), self.pose(name))

    def body(self, name):
        """The link, by its name in the robot, to which the frame of this name is fixed; or the ground."""
        *chain, base = self._chain(name, self._carrier, ())
        if base == WORLD:
            return GROUND
        if base == MODEL:
            return self.canonical()
        if self.things.get(base, [""])[0] == "link":
            return self.prefix + base
        with errors_at(self.things[chain[-1]][1].owner) if chain else contextlib.nullcontext():
            model, rest = self._split(base)
        return self.inner[model].body(rest)

    def canonical(self):
        """The link to which the model's frame is fixed; the ground for the world."""
        if self.outer is None:
            return GROUND
        name = self.element.xml.get("canonical_link") or next((each.name for each in self.links()), "")
        name = name or next(iter(self.inner), "")
        if not name:
            raise ModelError(f"{self.element.owner}: has no link")
        *chain, base = self._chain(name, self._carrier, ())
        if base == MODEL:
            raise ModelError(f"{self.element.owner}, canonical_link: {shown(name)} is attached to the model itself")
        with errors_at(f"{self.element.owner}, canonical_link"):
            return self.body(base)

    def _chain(self, name, onward, known):
        """The names on the way from a name onward, up to one that leads to none within this scope."""
        chain = [name]
        while chain[-1] not in known and chain[-1] in self.things:
            following = onward(chain[-1])
            if following is None:
                break
            if following in chain:
                raise ModelError(f"frames in a circle: {cut(' -> '.join([*chain, following]), 300)}")
            chain.append(following)
        return chain

    def _reference(self, name):
        """The frame to which the pose of a thing is relative."""
        kind, element = self.things[name]
        frame = own_pose(element)[1]
        if not frame and kind == "joint":
            frame = element.word("child")
        if not frame and kind == "frame":
            frame = element.xml.get("attached_to")
        return frame or MODEL

    def _carrier(self, name):
        """The thing to which a thing is fixed; None for a link."""
        kind, element = self.things[name]
        if kind == "frame":
            return element.xml.get("attached_to") or MODEL
        return {"link": None, "model": f"{name}::{MODEL}"}.get(kind) if kind != "joint" else element.word("child")

    def _own_pose(self, name):
        kind, element = self.things[name]
        pose, inside = own_pose(element)[0], element.xml.get("placement_frame") if kind == "model" else None
        if inside:
            with errors_at(f"{element.owner}, placement_frame"):
                pose = pose @ relative(self.inner[name].pose(inside), np.eye(4))
        return pose

    def _beyond(self, name):
        """The pose of a frame outside this scope, or in a model within it."""
        if name == WORLD:
            if self._asked:
                raise ModelError(f"{self.element.owner}, pose: depends on itself")
            self._asked = True
            self._poses[WORLD] = relative(self.outer.pose(self.element.name), self.outer.pose(WORLD))
            return self._poses[WORLD]
        model, rest = self._split(name)
        return self.pose(model) @ self.inner[model].pose(rest)

    def _split(self, name):
        """The name of a model of this scope, and the remaining name within that."""
        model, _, rest = name.partition("::")
        if not rest or model not in self.inner:
            raise ModelError(f"unknown {shown(name)}, {suggestion(name, [*self.things, WORLD])}")
        return model, rest
