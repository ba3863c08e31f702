"""XML elements with their owner, so that errors can name it."""

import re
from xml.etree import ElementTree

from liedyn.files.known import URDF
from liedyn.machine.errors import ModelError, cut, errors_at, near_names, shown
from liedyn.model import placement

_OF_POSES = {"xyz": "xyz", "rpy": "rpy", "quat_xyzw": "quaternion"}
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf(inity)?|nan", re.ASCII | re.IGNORECASE)


def numbers_in(text, what):
    """The numbers in a text; a ModelError about `what` if there are none."""
    words = text.split()
    if not all(map(_NUMBER.fullmatch, words)):
        raise ModelError(f"{what}: expected numbers, got {shown(text)}")
    return [float(word) for word in words]


def parse(data, tag, form):
    """The root element of a file, which must have this tag; elements in its own namespace lose their prefix."""
    try:
        xml = ElementTree.fromstring(data)
    except (SyntaxError, ValueError, LookupError) as error:  # the last two: unknown or wrong encodings
        raise ModelError(f"not {form}: {error}") from None
    namespace = xml.tag[: xml.tag.find("}") + 1]
    for each in xml.iter():
        each.tag = each.tag.removeprefix(namespace)
    if xml.tag != tag:
        raise ModelError(f"not {form}: expected <{tag}>, got <{cut(xml.tag)}>")
    return xml


class Element:
    """An XML element, and the link or joint that it belongs to, for messages."""

    def __init__(self, xml, owner):
        self.xml, self.owner = xml, owner

    @property
    def name(self):
        return self.xml.get("name")

    def named(self, tag):
        """The child elements of this tag, which must have names, each its own, and own their parts."""
        found, names = [Element(xml, tag) for xml in self.xml.findall(tag)], set()
        for each in found:
            each.owner = f"{tag} {shown(each.text('name'))}"
            if each.text("name") in names:
                raise ModelError(f"{each.owner}: declared twice")
            names.add(each.text("name"))
        return found

    def part(self, tag, needed=False):
        """The one child element of this tag, or None."""
        found = self.xml.findall(tag)
        if len(found) > 1 or (needed and not found):
            raise ModelError(f"{self.owner}: {len(found) or 'no'} <{tag}> in <{self.xml.tag}>, which has one")
        return Element(found[0], self.owner) if found else None

    def text(self, key):
        """A required attribute."""
        if key not in self.xml.attrib:
            known = URDF.elements.get(self.xml.tag, ((), ()))[0]
            others = near_names(key, [each for each in self.xml.attrib if each not in known], 1)  # such as iyx for ixy
            raise ModelError(f"{self.owner}: missing {key!r} of <{self.xml.tag}>" + "".join(
                f", which has {shown(each)}" for each in others))
        return self.xml.get(key)

    def numbers(self, key):
        """The numbers in a required attribute."""
        return numbers_in(self.text(key), f"{self.owner}, {self.xml.tag}, {key}")

    def number(self, key, default=None):
        """The number in an attribute, or the default value if it is missing; without a default it is required."""
        if default is not None and key not in self.xml.attrib:
            return default
        numbers = self.numbers(key)
        if len(numbers) != 1:
            raise ModelError(f"{self.owner}, {self.xml.tag}, {key}: expected one number, got {shown(self.text(key))}")
        return numbers[0]

    def pose(self, tag="origin"):
        """The pose in the element's <origin>, or in a part of another tag."""
        origin = self.part(tag)
        given = {ours: origin.numbers(key) for key, ours in _OF_POSES.items() if origin and key in origin.xml.attrib}
        if "rpy" in given and "quaternion" in given:
            raise ModelError(f"{self.owner}, {tag}: has rpy and quat_xyzw; give one of them")
        with errors_at(f"{self.owner}, {tag}", owner="placement"):
            return placement(**given)

    def axis(self, tag="axis"):
        """The direction in the element's <axis>; x if there is none."""
        axis = self.part(tag)
        return axis.numbers("xyz") if axis and "xyz" in axis.xml.attrib else (1.0, 0.0, 0.0)

    def end(self, tag):
        """The name of the link in a required part like <parent> or <child>."""
        return self.part(tag, needed=True).text("link")
