"""Loops and couplings of URDF files, in all their dialects: elements, sidecar files, pairs of frames.

YAML files are read from the events of PyYAML's parser. `yaml.safe_load` is not used: it is written in Python even if
the parser in C is installed (5 s for 2 MB), and the result of a small file may be huge, as aliases stand for lists of
aliases, and keys ``<<`` for tables of tables. Here every value occurs literally in the file, and unquoted values are
text, except an empty one, ``~`` and ``null``.
"""
# mypy: ignore-errors
import os
import re

import numpy as np

from liedyn.files.file_bodies import mimic_once
from liedyn.files.paths import read_bytes
from liedyn.files.toml import as_table, declare, read_document, take_section
from liedyn.machine.errors import InputError, ModelError, cut, errors_at, listed, shown, suggestion
from liedyn.model.kinds import LOOP_KINDS
from liedyn.model.validation import warn

DEEPEST = 20
"""Largest nesting depth of lists and tables."""
MOST = 800_000
"""Largest number of texts, and of begins and ends of lists and tables, in a file."""
MOST_IN_PYTHON = 200_000
"""Largest size in bytes if PyYAML has no parser in C: read in about a second."""
_TAGS = (None, "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")
_NOTHING = ("", "~", "null", "Null", "NULL")


def read_yaml(data):
    """The content of a YAML file, given as bytes: a dict, a list, a str or None.

    ModelError if it is not YAML, or has unsupported parts: aliases of lists and tables, tags, directives, several
    documents, too many values, or too deep nesting; or if PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise ModelError("loops in YAML are read by PyYAML: pip install 'liedyn[yaml]'; or give them as `loops`"
                         ) from None
    loader = getattr(yaml, "CSafeLoader", None)
    if loader is None and len(data) > MOST_IN_PYTHON:
        raise ModelError(f"PyYAML comes without libyaml here, and {len(data)} bytes would take it long: give the loops "
                         "in a .loops.toml file, or as `loops`")
    if re.search(rb"^%(?!YAML )", data, re.MULTILINE):  # libyaml compares each directive with all others
        raise ModelError("directives (lines that begin with %) are not read")
    try:
        return _made(yaml, yaml.parse(data, Loader=loader or yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"not YAML: {cut(' '.join(str(error).split()), 200)}") from None


def _made(yaml, events):
    """The value described by successive events; for a table, the stack holds an object that takes its next key or
    value."""
    scalar, begins, table = yaml.ScalarEvent, (yaml.SequenceStartEvent, yaml.MappingStartEvent), yaml.MappingStartEvent
    ends = yaml.SequenceEndEvent, yaml.MappingEndEvent
    texts, documents, stack = {}, [], []
    put = documents.append
    for number, event in enumerate(events):
        if number > MOST:
            raise ModelError(f"more than {MOST} texts, and begins and ends of lists and tables")
        kind = type(event)
        if kind is scalar:
            value = event.value
            if event.tag is not None or event.anchor is not None or value in _NOTHING:
                _require_known_tag(event)
                value = None if event.implicit[0] and value in _NOTHING else value
                texts[event.anchor] = value
            put(value)
        elif kind in ends:
            put = stack.pop()
        elif kind in begins:
            if event.tag is not None:
                _require_known_tag(event)
            if len(stack) == DEEPEST:
                raise ModelError(f"more than {DEEPEST} lists and tables lie within one another")
            made = {} if kind is table else []
            put(made)
            stack.append(put)
            put = _Table(made).put if kind is table else made.append
        elif kind is yaml.AliasEvent:
            if event.anchor not in texts:
                raise ModelError(f"*{cut(event.anchor)}: aliases of lists and tables are not read, write them out")
            put(texts[event.anchor])
        elif kind is yaml.DocumentStartEvent and documents:
            raise ModelError("several documents in one file")
    return documents[0] if documents else None


class _Table:
    """Accepts keys and values in turn."""

    def __init__(self, made):
        self.made, self.key, self.is_key = made, None, True

    def put(self, value):
        if self.is_key:
            if not isinstance(value, str):
                raise ModelError(f"expected a key, got {shown(value)}")
            if value in self.made:
                raise ModelError(f"key {shown(value)} is there twice")
            self.key = value
        else:
            self.made[self.key] = value
        self.is_key = not self.is_key


def _require_known_tag(event):
    if event.tag not in _TAGS:
        raise ModelError(f"tag {shown(event.tag)} is not read")


_PROPOSED = {"link": "fixed", "revolute": "revolute", "prismatic": "prismatic", "universal": "universal",
             "spherical": "spherical"}
_COUPLED = ("revolute", "prismatic")  # kinds with one coordinate
_YAML_KEYS = ("closed_loop", "type", "joint_name", "joint_type", "name_mot")
_YAML_LOOPS = {"3d": "spherical", "6d": "fixed"}
_YAML_JOINTS = {"SPHERICAL": ("spherical", None), "FIXED": ("fixed", None), "CARDAN": ("universal", "XY")} | {
    f"UJOINT_{axes}": ("universal", axes) for axes in ("XY", "XZ", "YX", "YZ", "ZX", "ZY")}
"""Kinds of joints, and the axes of the joint's frame about which they rotate, the first one first."""


def add_mimic(builder, joint, kinds, leaders):
    """The coupling of an element <mimic>: coordinate = multiplier * other + offset; `leaders`: see `mimic_once`."""
    mimic = joint.part("mimic")
    if mimic is None or kinds[joint.name] == "fixed":  # mimic of fixed joints is omitted, with a warning
        return
    other = mimic.text("joint")
    if other not in kinds:
        raise ModelError(f"{joint.owner}, mimic: unknown {shown(other)}, {suggestion(other, kinds)}")
    for name in (joint.name, other):
        _require_one_coordinate(f"{joint.owner}, mimic", name, kinds)
    mimic_once(f"{joint.owner}, mimic", joint.name, other, leaders)
    builder.constraint(f"{joint.name} mimic", "coupling", offset=mimic.number("offset", 0.0),
                       coefficients={joint.name: 1.0, other: -mimic.number("multiplier", 1.0)})


def _require_one_coordinate(place, name, kinds):
    if kinds[name] not in _COUPLED:
        raise ModelError(f"{place}: joint {shown(name)} is {kinds[name]}, and only joints with one coordinate "
                         "can be coupled")


def add_elements(builder, root, joints, kinds):
    """Declare <loop> and <coupling> of URDF+, and <constraint> as proposed to URDF.

    In liedyn's dialect <loop> has all its kinds of cut joints, with <axis2> and <pitch value=""/> where they need them.
    """
    for loop in root.named("loop"):
        kind = _choice(loop, {"continuous": "revolute"} | {kind: kind for kind in LOOP_KINDS})
        form = LOOP_KINDS[kind]
        ends = {new: loop.part(old, needed=True) for new, old in (("parent", "predecessor"), ("child", "successor"))}
        more = {key: loop.axis(key) for key in ("axis", "axis2")[:len(form.axes)]}
        if form.has_pitch:
            more["pitch"] = loop.part("pitch", needed=True).number("value")
        builder.loop(loop.name, kind, **{end: part.text("link") for end, part in ends.items()}, **more,
                     **{f"{end}_placement": part.pose() for end, part in ends.items()})
    for coupling in root.named("coupling"):
        _add_coupling(builder, coupling, joints, kinds)
    for constraint in root.named("constraint"):
        kind = _choice(constraint, _PROPOSED)
        axes = [constraint.axis(tag) for tag in ("parent_axis", "child_axis")]
        count = len(LOOP_KINDS[kind].axes)
        if count == 1 and constraint.part("child_axis") and np.cross(*axes).any():
            raise ModelError(f"{constraint.owner}, child_axis: must be parallel to parent_axis, got {shown(axes[1])} "
                             f"and {shown(axes[0])}")
        builder.loop(constraint.name, kind, constraint.end("parent"), constraint.end("child"),
                     constraint.pose("parent_origin"), constraint.pose("child_origin"),
                     **dict(zip(("axis", "axis2")[:count], axes)))


def _choice(element, known):
    kind = element.text("type")
    if kind not in known:
        raise ModelError(f"{element.owner}, type: unknown {shown(kind)}, {suggestion(kind, known)}")
    return known[kind]


def _add_coupling(builder, coupling, joints, kinds):
    """Declare a coupling of URDF+: `ratio` times the sum of the coordinates on the way from the nearest common ancestor
    of the two links to the predecessor equals the sum of those on the way to the successor."""
    if "type" in coupling.xml.attrib:
        _choice(coupling, {"rolling": "rolling"})
    holders = {joint.end("child"): joint for joint in joints}
    ways = [_way(coupling.end(tag), holders) for tag in ("predecessor", "successor")]
    ratio = coupling.part("ratio", needed=True).number("value")
    coefficients = {}
    for way, other, factor in ((*ways, ratio), (*ways[::-1], -1.0)):
        for name in way:
            if name not in other and kinds[name] != "fixed":
                _require_one_coordinate(coupling.owner, name, kinds)
                coefficients[name] = factor
    builder.constraint(coupling.name, "coupling", coefficients=coefficients)


def _way(link, holders):
    """Names of the joints from the root to a link, up to the first cycle."""
    way = []
    while link in holders and holders[link].name not in way:
        way.append(holders[link].name)
        link = holders[link].end("parent")
    return way[::-1]


def add_loops(builder, frames, loops):
    """Declare loops given as tables by name, or as pairs of frames, optionally with the kind of cut joint."""
    for name, table in loops.items() if isinstance(loops, dict) else map(_pair, loops):
        with errors_at(f"[loops.{cut(str(name))}]"):
            table = _with_bodies(as_table(table), frames)
        declare(builder, "loops", name, table)


def _pair(pair):
    """Name and table of a loop given as a pair of frames."""
    if not isinstance(pair, list | tuple) or len(pair) not in (2, 3) or not all(isinstance(x, str) for x in pair):
        raise InputError(f"load_urdf, loops: expected names of two frames, perhaps with a kind, got {shown(pair)}")
    first, second, kind = (*pair, "fixed")[:3]
    return f"{first} {second}", {"kind": kind, "parent_frame": first, "child_frame": second}


def _with_bodies(table, frames):
    """The table with `parent_frame` and `child_frame` replaced by the bodies that have these frames."""
    table = dict(table)
    for body in ("parent", "child"):
        frame = table.pop(f"{body}_frame", None)
        if frame is None:
            continue
        if body in table:
            raise ModelError(f"give {body} or {body}_frame, not both")
        if not isinstance(frame, str) or frame not in frames:
            raise ModelError(f"{body}_frame: unknown {shown(frame)}, {suggestion(frame, frames)}")
        table[body] = frames[frame]
    return table


def sidecar(path):
    """The file with loops beside a URDF file, or None."""
    ours, yaml = path.with_suffix(".loops.toml"), path.with_suffix(".yaml")
    if os.path.lexists(ours):
        return _TomlSidecar(ours)
    if os.path.lexists(yaml):
        with errors_at(yaml.name):
            data = read_bytes(yaml)
        if re.search(rb"^closed_loop[ \t]*:", data, re.MULTILINE):  # a YAML file for another purpose may have this name
            return _YamlSidecar(yaml.name, data)
    return None


class _TomlSidecar:
    """Tables [loops.x] in a separate file."""

    axes = {}

    def __init__(self, path):
        self._name = path.name
        with errors_at(path.name):
            document = read_document(path)
            self._loops = take_section(document, "loops")
            for key in document:
                raise ModelError(f"unknown key {shown(key)}: only [loops.x] tables stand in a sidecar file")

    def change(self, kinds):
        """Change the kinds of joints, by name, as the sidecar file specifies."""

    def add_to(self, builder, frames):
        """Declare the loops."""
        with errors_at(self._name):
            add_loops(builder, frames, self._loops)


class _YamlSidecar:
    """The sidecar file that example-parallel-robots (Gepetto) writes beside a URDF file: pairs of frames that coincide
    ("6d") or have the same origin ("3d"), names of motors, and kinds of joints that URDF does not have."""

    def __init__(self, name, data):
        self._name = name
        with errors_at(name):
            document = as_table(read_yaml(data))
            lists = [_list(document, key) for key in _YAML_KEYS]
            pairs, types, joints, kinds, self._motors = lists
            others = [str(key) for key in document if key not in _YAML_KEYS]
            if others:
                warn(f"{cut(name)}: left out {listed(others)}, {suggestion(others[0], _YAML_KEYS)}")
            _require_distinct("closed_loop", [tuple(_two(pair)) for pair in pairs])
            _require_distinct("joint_name", joints)
            _require_distinct("name_mot", self._motors)
            if len(types) not in (0, len(pairs)) or len(joints) != len(kinds):
                raise ModelError("type and joint_type need one entry for each of closed_loop and joint_name")
            known = {_text("joint_name", joint): _known("joint_type", kind, _YAML_JOINTS)
                     for joint, kind in zip(joints, kinds)}
            self._kinds = {joint: kind for joint, (kind, _) in known.items()}
            self.axes = {joint: {"axis": np.eye(3)["XYZ".index(axes[0])], "axis2": np.eye(3)["XYZ".index(axes[1])]}
                         for joint, (_, axes) in known.items() if axes}
            types = types or ["6d"] * len(pairs)
            self._loops = [(*_two(pair), _known("type", str(kind).lower(), _YAML_LOOPS))
                           for pair, kind in zip(pairs, types)]

    def change(self, kinds):
        """Change the kinds of joints, by name, as the sidecar file specifies."""
        for joint, kind in self._kinds.items():
            if joint not in kinds:
                raise ModelError(f"{self._name}: joint_name: unknown {shown(joint)}, {suggestion(joint, kinds)}")
            kinds[joint] = kind

    def add_to(self, builder, frames):
        """Declare the loops, and the motors as actuators."""
        with errors_at(self._name):
            add_loops(builder, frames, self._loops)
            for motor in self._motors:
                builder.actuator(motor, motor)


def _list(document, key):
    value = document.get(key) or []
    if not isinstance(value, list):
        raise ModelError(f"{key}: expected a list, got {shown(value)}")
    return value


def _require_distinct(key, values):
    """Check for duplicates at once, as one by one it would take long for very many names."""
    seen = set()
    for each in values:
        if isinstance(each, str | tuple) and each in seen:
            raise ModelError(f"{key}: {shown(each)} is there twice")
        seen.add(each if isinstance(each, str | tuple) else None)


def _two(pair):
    if not isinstance(pair, list) or len(pair) != 2:
        raise ModelError(f"closed_loop: expected pairs of frames, got {shown(pair)}")
    return [_text("closed_loop", each) for each in pair]


def _text(key, value):
    if not isinstance(value, str):
        raise ModelError(f"{key}: expected a name, got {shown(value)}")
    return value


def _known(key, value, known):
    if not isinstance(value, str) or value not in known:
        raise ModelError(f"{key}: unknown {shown(value)}, {suggestion(value, known)}")
    return known[value]
