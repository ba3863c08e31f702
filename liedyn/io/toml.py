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

    [home]
    pivot = 0.3
"""

import functools
import inspect
import json
import re
import tomllib

import numpy as np

from liedyn.arguments import require_robot
from liedyn.errors import ModelError, cut, errors_at, shown, suggestion
from liedyn.io.files import path_of, read_bytes, write_text
from liedyn.model import Builder, placement
from liedyn.model.frames import rpy_from_rotation
from liedyn.model.kinds import CONSTRAINT_KINDS, JOINT_KINDS, LOOP_KINDS, neutral

_SECTIONS = {"bodies": Builder.body, "joints": Builder.joint, "loops": Builder.loop, "constraints": Builder.constraint,
             "actuators": Builder.actuator, "springs": Builder.spring, "coordinate_forces": Builder.coordinate_force,
             "frictions": Builder.friction}
_DEEPEST = 50  # tables and lists within one another: what reads them is recursive
_DEEP_KEY = re.compile(rb"^[ \t]*\[*[ \t]*(?:[\w-]+[ \t]*\.[ \t]*){%d}" % _DEEPEST, re.MULTILINE)


def load_toml(path):
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

    Examples
    --------
    >>> import tempfile
    >>> import liedyn as ld
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ld.save_toml(ld.load("four_bar"), f"{folder}/copy.toml")
    ...     load_toml(f"{folder}/copy.toml").velocity_names
    ('crank', 'coupler', 'rocker')
    """
    with errors_at(path):
        document = read_document(path_of(path))
        sections = {section: take_section(document, section) for section in _SECTIONS}
        builder = _call(Builder, document | {"home": dict(_flat(take_section(document, "home")))})
        for section, tables in sections.items():
            for name, table in tables.items():
                declare(builder, section, name, table)
        return builder.build()


def read_document(path):
    """The tables of a TOML file as dictionaries; ModelError if it cannot be read."""
    data = read_bytes(path)
    try:  # tomllib takes a minute over a key of thousands of parts
        document = None if _DEEP_KEY.search(data) else tomllib.loads(data.decode("utf-8-sig"))
    except ValueError as error:
        digits = re.search(rb"\d{4000,}", data)
        if digits and "digits" in str(error):  # Python's message advises to change the interpreter's settings
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

    Raises
    ------
    ModelError
        Unknown or missing keys, or what the builder refuses.
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


@functools.cache
def _parameters(function):
    return list(inspect.signature(function).parameters.values())


def _flat(table, prefix=""):
    """Names and values of a table whose dotted keys (base.x = 1) TOML has made into tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _read_placement(key, value):
    """A placement as a table, or as the builder takes it."""
    with errors_at(key, owner="placement"):
        return _call(placement, value) if isinstance(value, dict) else value


def _read_inertia(key, value):
    """An inertia as a table of its components, or as the builder takes it."""
    with errors_at(key):
        return _call(_symmetric, value) if isinstance(value, dict) else value


def _symmetric(xx, yy, zz, xy=0.0, xz=0.0, yz=0.0):
    return [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]


def _read_coefficients(key, value):
    """Coefficients by coordinate name; a dotted name may be written without quotes."""
    with errors_at(key):
        return dict(_flat(as_table(value)))


_READERS = {"coefficients": _read_coefficients, "inertia": _read_inertia, **dict.fromkeys(
    ("placement", "parent_placement", "child_placement"), _read_placement)}


def save_toml(robot, path):
    """Write a robot as a TOML file that :func:`load_toml` reads back; what has its default value is left out.

    Constraints are written as they are switched.

    Parameters
    ----------
    robot : Robot
    path : str or Path

    Raises
    ------
    ModelError
        A custom constraint or a target: functions have no place in a file.
    InputError
        It is no robot, or the file cannot be written.

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
    for section, entries in zip(_SECTIONS, (_body, _joint, _loop, _constraint, _actuator), strict=False):
        parts += [f"[{section}.{_key(thing.name)}]\n{_lines(entries(thing))}" for thing in getattr(model, section)]
    for element in model.elements:
        section, entries = _element(element)
        parts.append(f"[{section}.{_key(element.name)}]\n{_lines(entries)}")
    if model.home:
        parts.append(f"[home]\n{_lines({name: np.array(value).tolist() for name, value in model.home.items()})}")
    return "\n".join(parts)


def _body(body):
    entries = {}
    if body.mass:
        entries["mass"] = body.mass
    if body.com.any():
        entries["com"] = body.com.tolist()
    if body.inertia.any():
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.inertia.tolist()
        diagonal = not (xy or xz or yz)
        entries["inertia"] = [xx, yy, zz] if diagonal else {"xx": xx, "yy": yy, "zz": zz, "xy": xy, "xz": xz, "yz": yz}
    return entries


def _joint(joint):
    kind = JOINT_KINDS[joint.kind]
    entries = {"kind": joint.kind, "parent": joint.parent, "child": joint.child}
    entries |= _placement("placement", joint.placement) | _axes(kind, joint)
    if np.isfinite(joint.limits).any():
        entries["limits"] = joint.limits.tolist() if kind.nq > 1 else joint.limits[0].tolist()
    defaults = {"velocity_limit": np.inf, "effort_limit": np.inf, "armature": 0.0, "damping": 0.0, "stiffness": 0.0}
    for key, default in defaults.items():
        entries |= _per_dof(key, getattr(joint, key), default)
    return entries | _per_dof("rest", joint.rest, neutral(kind))


def _loop(loop):
    return _frames(loop) | _axes(LOOP_KINDS[loop.kind], loop) | _state(loop)


def _frames(each):
    """What loops and constraints between bodies have in common."""
    entries = {"kind": each.kind, "parent": each.parent, "child": each.child}
    return entries | _placement("parent_placement", each.parent_placement) | _placement(
        "child_placement", each.child_placement)


def _state(each):
    """What loops and constraints have in common; functions of time have no place in a file."""
    if each.target is not None:
        raise ModelError(f"constraint {shown(each.name)}, target: a function cannot be written to a file")
    return {} if each.active is True else {"active": each.active}


def _constraint(constraint):
    kind = constraint.kind
    if kind == "custom":
        raise ModelError(f"constraint {shown(constraint.name)}: functions cannot be written to a file")
    form = CONSTRAINT_KINDS[kind]
    if form.coefficients:
        offset = {"offset": constraint.offset} if constraint.offset else {}
        sum_of = {"kind": kind, "coefficients": constraint.coefficients}
        return sum_of | offset | _contact(constraint) | _state(constraint)
    entries = _frames(constraint)
    if "axis" in form.takes and not np.array_equal(constraint.axis, [0.0, 0.0, 1.0]):
        entries["axis"] = constraint.axis.tolist()
    needed = {"child_axis": constraint.child_axis.tolist(), "length": constraint.length,
              "radius": abs(constraint.radius) or constraint.length, "parent_radius": constraint.length}
    entries |= {key: value for key, value in needed.items() if key in form.needs}
    if "rolling" in form.takes and not constraint.side and constraint.rows != form.rows:
        entries["rolling"] = False
    if constraint.radius < 0.0:
        entries["inside"] = True
    return entries | _contact(constraint) | _state(constraint)


def _contact(constraint):
    """What a one-sided constraint has besides."""
    if not constraint.side:
        return {}
    numbers = {"restitution": constraint.restitution, "friction": constraint.friction}
    return {"unilateral": "above" if constraint.side > 0 else "below"} | {k: x for k, x in numbers.items() if x}


def _actuator(actuator):
    if len(actuator.gears) > 1:
        return {"coordinate": actuator.gears}
    [(coordinate, gear)] = actuator.gears.items()
    return {"coordinate": coordinate, "gear": gear}


def _element(element):
    """Section and entries of a force element."""
    measure = element.measure
    if element.function is not None:
        raise ModelError(f"force element {shown(element.name)}, law: a function cannot be written to a file")
    if element.law == "friction":
        numbers = dict(zip(("coulomb", "static", "stribeck", "width", "viscous"), element.numbers))
        return "frictions", {"coordinate": measure.coefficients} | numbers
    numbers = {key: x for key, x in zip(("stiffness", "damping", "preload"), element.numbers) if x}
    if measure.parent is None:
        return "coordinate_forces", {"coefficients": measure.coefficients, "rest": measure.offset} | numbers
    entries = _frames(measure) | {"length": measure.length} | numbers
    del entries["kind"]
    return "springs", entries


def _placement(key, pose):
    parts = {"xyz": pose[:3, 3], "rpy": rpy_from_rotation(pose[:3, :3])}
    table = {name: value.tolist() for name, value in parts.items() if value.any()}
    return {key: table} if table else {}


def _axes(kind, thing):
    entries = {key: axis.tolist() for key, axis, default in zip(("axis", "axis2"), thing.axes, kind.axes)
               if not np.array_equal(axis, default)}
    return entries | ({"pitch": thing.pitch} if kind.has_pitch else {})


def _per_dof(key, values, default):
    return {} if np.all(values == default) else {key: values.tolist() if len(values) > 1 else float(values[0])}


def _lines(entries):
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in entries.items())


def _key(name):
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text):
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML escapes this one too


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
