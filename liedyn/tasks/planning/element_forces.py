"""Force elements in the steps of a plan: the forces of springs, dampers and bushings."""
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, late
from liedyn.mechanics.elements.element_wrenches import LAWS_TYPE
from liedyn.mechanics.elements.forces import add_forces, give_inputs, room_for
from liedyn.model.force_elements import NO_ELEMENTS
from liedyn.model.packed import N_ROWS
from liedyn.model.packed_records import MODEL

PlanElements = namedtuple("PlanElements", "model laws work u")
"""The force elements of a robot, their scratch arrays, and the inputs (rows, nu) of the states to be linearized."""

ELEMENTS = group(PlanElements, MODEL, LAWS_TYPE, VECTOR, MATRIX)


def elements_of(robot, rows):
    """`PlanElements` for `rows` states."""
    elements = robot.elements or NO_ELEMENTS
    # a copy, to which inputs of actuators that are elements are written
    laws = elements.laws._replace(numbers=elements.laws.numbers.copy())
    return PlanElements(elements.packed, laws, room_for(elements.packed),
                        np.zeros((rows if robot.elements else 0, len(robot.actuator_names))))


@inline
def has_elements(d):
    """True if there are force elements; their kernels are compiled only for robots with such."""
    return d.elements.model.ints[N_ROWS] > 0


@late(MATRIX, ELEMENTS, *[VECTOR] * 4)
def put_all_forces(actuators, e, u, q, v, tau):
    """tau = S(q) u plus the forces of the elements."""
    for j in range(tau.size):
        x = 0.0
        for c in range(u.size):
            x += actuators[j, c] * u[c]
        tau[j] = x
    give_inputs(e.laws, u)
    add_forces(e.model, e.laws, e.work, 0.0, q, v, tau)


@late(MATRIX, ELEMENTS, types.int64, *[VECTOR] * 4)
def put_forces_of_row(actuators, e, row, u, q, v, tau):
    """`put_all_forces` of a state that is linearized later."""
    for c in range(u.size):
        e.u[row, c] = u[c]
    put_all_forces(actuators, e, u, q, v, tau)
