"""Robots as TOML files: one robot a file, readable by a mechanical engineer.

A table is named after the thing it describes; its keys are the arguments of the method of :class:`liedyn.model.Builder`
that declares such a thing. Units are SI and radians.

.. code-block:: toml

    name = "pendulum"
    gravity = [0.0, -9.81, 0.0]

    [bodies.rod]
    mass = 1.0
    com = [0.0, -0.5, 0.0]
    inertia = [0.08, 0.0, 0.08]                          # or {xx = .., xy = ..}, or three rows; about the com

    [joints.pivot]
    kind = "revolute"
    parent = "ground"
    child = "rod"
    placement = { xyz = [0, 0, 1], rpy = [0, 0, 0] }     # or quaternion = [x, y, z, w]
    axis = [0, 0, 1]

    [frames.tip]                                         # a named place in a body
    body = "rod"
    placement = { xyz = [0, -1, 0] }

    [home]
    pivot = 0.3

Inputs are numbered in the order of the tables: actuators, cylinders, thrusters, winches. A table ``[order]`` with lists
of names, ``actuators``, ``elements`` or ``constraints``, numbers them otherwise.
"""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from typing import TYPE_CHECKING

import numpy as np

from liedyn.files.declared_coordinates import fitting
from liedyn.files.paths import path_of, read_bytes, write_text
from liedyn.machine.arguments import require_robot
from liedyn.machine.errors import ModelError, cut, errors_at, shown, suggestion
from liedyn.machine.typed_decorators import once
from liedyn.model import Builder, placement
from liedyn.model.declared import arguments_of, method_of
from liedyn.model.description import Element
from liedyn.model.frames import rpy_from_rotation
from liedyn.model.laws import NamedLaw, named

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import PathLike

_SECTIONS = {"bodies": Builder.body, "frames": Builder.frame, "joints": Builder.joint, "loops": Builder.loop,
             "constraints": Builder.constraint, "actuators": Builder.actuator, "cylinders": Builder.cylinder,
             "thrusters": Builder.thruster, "winches": Builder.winch, "springs": Builder.spring,
             "cables": Builder.cable, "coordinate_forces": Builder.coordinate_force,
             "frictions": Builder.friction, "bushings": Builder.bushing, "applied_forces": Builder.applied_force,
             "shapes": Builder.shape}
_DEEPEST = 50  # largest nesting depth of tables and lists, as their readers are recursive
_DEEP_KEY = re.compile(rb"^[ \t]*\[*[ \t]*(?:[\w-]+[ \t]*\.[ \t]*){%d}" % _DEEPEST, re.MULTILINE)


def load_toml(path: PathLike) -> Robot:
    """Read a robot from a TOML file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        The file does not describe a robot; the message names the file, the table and the key.

    Warns
    -----
    ModelWarning
        The declared independent coordinates do not fit the constraints, and are ignored.

    Examples
    --------
    >>> import tempfile
    >>> import liedyn as ld
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ld.save_toml(ld.load("four_bar"), f"{folder}/copy.toml")
    ...     load_toml(f"{folder}/copy.toml").velocity_names
    ('crank', 'coupler', 'rocker')
    """
    return fitting(read_toml(path), path_of(path).name)


def read_toml(path):
    """`load_toml` without checking the declared independent coordinates, for bundled robots."""
    with errors_at(path):
        document = read_document(path_of(path))
        sections = {section: take_section(document, section) for section in _SECTIONS}
        order = take_section(document, "order")
        builder = _call(Builder, document | {"home": dict(_flat(take_section(document, "home")))})
        for section, tables in sections.items():
            for name, table in tables.items():
                declare(builder, section, name, table)
        with errors_at("[order]"):
            _put_in_order(builder, order)
        return builder.build()


def _put_in_order(builder, order):
    """Things of several sections that are numbered together take the order in which the file lists their names."""
    lists = {"actuators": builder._actuators, "elements": builder._elements, "constraints": builder._constraints}
    for key, names in order.items():
        if key not in lists:
            raise ModelError(f"unknown key {shown(key)}, {suggestion(key, lists)}")
        declared = [each.name for each in lists[key]]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or (
                sorted(names) != sorted(declared)):
            raise ModelError(f"{key}: expected each of the names {shown(declared)} once, got {shown(names)}")
        places = {name: place for place, name in enumerate(names)}
        lists[key].sort(key=lambda each: places[each.name])


def read_document(path):
    """The tables of a TOML file as dictionaries; ModelError if it cannot be read."""
    data = read_bytes(path)
    try:  # tomllib takes a minute for a key of thousands of parts
        document = None if _DEEP_KEY.search(data) else tomllib.loads(data.decode("utf-8-sig"))
    except ValueError as error:
        digits = re.search(rb"\d{4000,}", data)
        if digits and "digits" in str(error):  # Python's message suggests changing the interpreter's settings
            line = data.count(b"\n", 0, digits.start()) + 1
            error = f"Integer of {len(digits[0])} digits (at line {line})"
        raise ModelError(f"not TOML: {error}") from None
    except RecursionError:
        document = None
    if document is None or _is_deep(document):
        raise ModelError(f"more than {_DEEPEST} tables and lists lie within one another")
    return document


def _is_deep(document):
    level = [document]
    for _ in range(_DEEPEST):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    return bool(level)


def as_table(value):
    """`value`, which must be a table."""
    if not isinstance(value, dict):
        raise ModelError(f"expected a table, got {shown(value)}")
    return value


def take_section(document, name):
    """Remove a table from the document and return it; empty if there is none."""
    with errors_at(f"[{name}]"):
        return as_table(document.pop(name, {}))


def declare(builder, section, name, table):
    """Declare one thing of a section to the builder; the keys of `table` are the arguments of the builder's method.

    ModelError for unknown or missing keys, or values that the builder refuses.
    """
    method = _SECTIONS[section]
    with errors_at(f"[{section}.{cut(str(name))}]", owner=f"{method.__name__} {shown(name)}"):
        table = as_table(table)
        given = {key: _READERS[key](key, value) if key in _READERS else value for key, value in table.items()}
        _call(method, given, builder, name)


def _call(function, table, *positional):
    """Call a function with the keys of a table as its arguments."""
    parameters = _parameters(function)[len(positional) :]
    known = [parameter.name for parameter in parameters]
    for key in table:
        if key not in known:
            raise ModelError(f"unknown key {shown(key)}, {suggestion(key, known)}")
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in table:
            raise ModelError(f"missing key {parameter.name!r}")
    return function(*positional, **table)


@once
def _parameters(function):
    return list(inspect.signature(function).parameters.values())


def _flat(table, prefix=""):
    """Names and values of a table, joining dotted keys (base.x = 1), which TOML turns into tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _read_placement(key, value):
    """A placement as a table, or in the builder's form."""
    with errors_at(key, owner="placement"):
        return _call(placement, value) if isinstance(value, dict) else value


def _read_inertia(key, value):
    """An inertia as a table of its components, or in the builder's form."""
    with errors_at(key):
        return _call(_symmetric, value) if isinstance(value, dict) else value


def _symmetric(xx, yy, zz, xy=0.0, xz=0.0, yz=0.0):
    return [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]


def _read_coefficients(key, value):
    """Coefficients by coordinate name; a dotted name may be written without quotes."""
    with errors_at(key):
        return dict(_flat(as_table(value)))


def _read_law(key, value):
    """A law as a table of its kind and parameters."""
    with errors_at(key):
        table = dict(as_table(value))
        law = named(table.pop("kind", None))
        return _call(law, table)


_READERS = {"coefficients": _read_coefficients, "inertia": _read_inertia, "law": _read_law, **dict.fromkeys(
    ("placement", "parent_placement", "child_placement"), _read_placement)}


def save_toml(robot: Robot, path: PathLike) -> None:
    """Write a robot as a TOML file that :func:`load_toml` reads; default values are omitted. Constraints are written
    with their current switches.

    Parameters
    ----------
    robot : Robot
    path : str or Path

    Raises
    ------
    ModelError
        A custom constraint or a target, as functions cannot be written to a file.
    InputError
        `robot` is not a Robot, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> b = Builder("block")
    >>> b.body("block", mass=2.0, inertia=(0.1, 0.1, 0.1))
    >>> b.joint("slide", "prismatic", parent="ground", child="block")
    >>> with tempfile.NamedTemporaryFile(suffix=".toml") as file:
    ...     save_toml(b.build(), file.name)
    ...     load_toml(file.name)
    Robot('block', nq=1, nv=1, 1 bodies, 1 joints, 0 loops)
    """
    require_robot(robot)
    write_text(path_of(path), _document(robot.model_as_is()))


def _document(model):
    header = {"name": model.name, "description": model.description, "source": model.source,
              "gravity": model.gravity.tolist(), "independent": list(model.independent), "outputs": list(model.outputs)}
    parts = [_lines({key: value for key, value in header.items() if value})]
    order = {}
    for kind in ("actuators", "elements", "constraints"):
        names = [each.name for each in getattr(model, kind)]
        by_section = [each.name for declare in _SECTIONS.values() for each in getattr(model, kind)
                      if method_of(each) == declare.__name__]
        order |= {} if names == by_section else {kind: names}
    parts += [f"[order]\n{_lines(order)}"] if order else []
    for section, declare in _SECTIONS.items():
        things = getattr(model, section, model.actuators + model.elements + model.constraints)
        things = [each for each in things if method_of(each) == declare.__name__]
        parts += [f"[{section}.{_key(thing.name)}]\n{_lines(_entries(thing))}" for thing in things]
    if model.home:
        parts.append(f"[home]\n{_lines({name: np.array(value).tolist() for name, value in model.home.items()})}")
    return "\n".join(parts)


def _entries(thing):
    """Keys and values of the table of a thing."""
    entries = {}
    for key, value in arguments_of(thing).items():
        if callable(value):
            what = "force element" if isinstance(thing, Element) else "constraint"
            raise ModelError(f"{what} {shown(thing.name)}, {key}: a function cannot be written to a file")
        value = value.table() if isinstance(value, NamedLaw) else value
        value = _inertia(value) if key == "inertia" else _placement(value) if isinstance(value, np.ndarray) else value
        entries |= {key: value} if value != {} else {}
    return entries


def _inertia(rows):
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = rows
    diagonal = not (xy or xz or yz)
    return [xx, yy, zz] if diagonal else {"xx": xx, "yy": yy, "zz": zz, "xy": xy, "xz": xz, "yz": yz}


def _placement(pose):
    parts = {"xyz": pose[:3, 3], "rpy": rpy_from_rotation(pose[:3, :3])}
    return {name: value.tolist() for name, value in parts.items() if value.any()}


def _lines(entries):
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in entries.items())


def _key(name):
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text):
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON does not escape it, TOML does


def _value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_value(entry)}' for key, entry in value.items())} }}"
    return repr(value + 0.0)  # no minus sign before zero
