"""Packing of force elements, and of actuators that depend on the configuration, for kernels."""

from dataclasses import replace

import numpy as np

from liedyn.machine.errors import ModelError, shown
from liedyn.model import validation
from liedyn.model.attachments import element_functions
from liedyn.model.description import Cylinder, Element, Loop
from liedyn.model.force_elements import HOLDING, LAW_KINDS, NUMBERS, ROW, Elements, Laws, is_conservative
from liedyn.model.kinds import LOOP_KINDS


def pack_elements(model, velocities, build):
    """The force elements as a packed model with the measured displacements as its constraints; None if there are none.

    `velocities` are the coordinates of the tree. Coordinates of cut joints cannot be measured by constraints on the
    tree: their cut joints are included, switched off, so that the coordinates can be computed. `build` makes the robot.
    """
    driven = {k: Element(each.measure, "driven", (each.gear, 0.0)) for k, each in enumerate(model.actuators)
              if isinstance(each, Cylinder) or each.gears.keys() - set(velocities)}
    elements = [*model.elements, *driven.values()]
    if not elements:
        return None
    cuts, where = _cut_joints(model, set(velocities), elements)
    measures = [_measure(each, where) for each in elements]
    bushings = tuple(each for each in measures if isinstance(each, Loop))
    others = tuple(each for each in measures if not isinstance(each, Loop))
    robot = build(replace(model, loops=cuts + bushings, constraints=others, actuators=(), independent=(), outputs=(),
                          elements=(), shapes=()))
    owned = {name: [k for k, owner in enumerate(robot.row_owners) if owner == name] for name in robot.row_owners}
    records, numbers, functions, rows = [], [], {}, []
    for element, measure in zip(elements, measures):
        own, (first, *_, last) = element_functions(element), owned[measure.name] * 2
        addresses = {key: each.address for key, each in own.items()}
        records.append((LAW_KINDS.index(element.law), first, element.law in HOLDING, len(numbers),
                        addresses.get("law", addresses.get("force", 0)), addresses.get("torque", 0)))
        numbers += element.numbers
        rows.append(first if first == last else slice(first, last + 1))
        functions |= {f"{key} of {element.name}": each for key, each in own.items()}
    coefficients, turns = _read_at_cuts(robot, zip(elements, (record[1] for record in records)), where)
    inputs = [(k, record[ROW], record[NUMBERS]) for k, record in zip(driven, records[len(model.elements):])]
    laws = Laws(np.array(records, dtype=np.int64), np.array([*numbers, 0.0]), coefficients, turns,
                np.array(inputs, dtype=np.int64).reshape(-1, 3))
    return Elements(robot.packed, laws, functions, tuple(rows), all(map(is_conservative, elements)),
                    tuple(each.name for each in cuts), tuple(each.name for each in driven.values()))


def _read_at_cuts(robot, rows, where):
    """Weights (rows, nz) of coordinates of cut joints in rows of elements; whole turns (rows) where they are angles."""
    coefficients, turns = np.zeros((len(robot.row_names), len(robot.virtual_names))), np.zeros(len(robot.row_names))
    for element, row in rows:
        for name, value in element.coefficients.items():
            if name in where:
                coefficients[row, robot.virtual_names.index(name)] = value
                if len(element.coefficients) == 1 and _is_angle(*where[name]):
                    turns[row] = 2.0 * np.pi * abs(value)
    return coefficients, turns


def _cut_joints(model, velocities, elements):
    """The cut joints that elements act on, switched off, and by coordinate name its loop and index.

    ModelError for an unknown coordinate; a cut joint with a target or switched off; a displacement of a ball, whose
    velocities are not the rates of coordinates.
    """
    where = {loop.name + suffix: (loop, k) for loop in model.loops
             for k, suffix in enumerate(LOOP_KINDS[loop.kind].velocities)}
    used = set()
    for each in elements:
        owner = validation.owner_of("actuator" if each.law == "driven" else "force element", each.name)
        for name in each.coefficients.keys() - velocities:
            loop, _ = where[validation.choice(owner, "coordinate", name, (*velocities, *where))]
            for trouble, is_so in (("is moved by a function", loop.target is not None),
                                   ("is switched off", not loop.active)):
                if is_so:
                    raise ModelError(f"{owner}, coordinate {shown(name)}: cut joint {shown(loop.name)} {trouble}; make "
                                     "it a joint of the tree, and cut another joint of the loop")
            if LOOP_KINDS[loop.kind].has_quaternion and not is_rate_only(each):
                raise ModelError(f"{owner}, coordinate {shown(name)}: the rates of a ball are no derivatives of "
                                 "coordinates, so that dampers and actuators act on it, but no springs: take a bushing")
            used.add(loop.name)
    return tuple(replace(loop, active=False) for loop in model.loops if loop.name in used), where


def is_rate_only(element):
    """True if its force does not depend on the displacement."""
    return element.law in ("friction", "motor", "driven") or element.law == "linear" and not (
        element.numbers[0] or element.numbers[2])


def _measure(element, where):
    """Its measuring constraint, under a name that no joint has, without coordinates of cut joints."""
    name = f"{element.name} ({'actuator' if element.law == 'driven' else 'force element'})"
    measure = replace(element.measure, name=name)
    if not element.coefficients.keys() & where.keys():
        return measure
    return replace(measure, coefficients={name: x for name, x in element.coefficients.items() if name not in where})


def _is_angle(loop, k):
    """True if a coordinate of a cut joint is an angle; one with a pitch is not, as its turns are counted."""
    return LOOP_KINDS[loop.kind].motions[k][0] == "w" and not loop.pitch
