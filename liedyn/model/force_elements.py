"""Force elements for kernels: a packed model of the measured displacements, and their laws
(`liedyn.mechanics.elements`)."""

from typing import Any, NamedTuple

import numpy as np

from liedyn.model.laws import LAWS
from liedyn.model.packed import GRAVITY_SIZE, HEADER, PackedModel

LAW_KINDS = (*LAWS, "function", "bushing", "wrench", "follower", "push", "thrust")
"""All laws in the order of their codes: those of one length, then those of the six numbers of a displacement.

A push and a thrust are a wrench and a follower times an input, the number after their six."""
DRIVEN = "driven", "push", "thrust"
"""Laws of actuators; the last of their numbers is the input."""
FUNCTION, BUSHING, WRENCH, FOLLOWER, PUSH, THRUST = range(len(LAWS), len(LAW_KINDS))
BUSHING_NUMBERS = {"stiffness": 36, "damping": 36, "preload": 6}
"""Size of each argument of a bushing, in the order of its law."""

LAW_I = 6  # entries of `Laws.records` for each element
LAW, ROW, HOLDS, NUMBERS, FUNCTION_AT, TORQUE_AT = range(LAW_I)
HOLDING = "linear", "cable", "gas_spring", "polynomial", "bushing"
"""Laws whose force, except for damping, is the gradient of an energy."""


class Laws(NamedTuple):
    """The laws of all elements of a robot."""

    records: np.ndarray  # (elements, LAW_I): code, first row, 1 if it is one of HOLDING, index of
    # the numbers, addresses of users' functions or 0
    numbers: np.ndarray
    cuts: np.ndarray  # (rows, nz): coefficients of the coordinates of cut joints in the displacements
    # (rows): period of a displacement, which is measured from rest within half of it to either side; 0 without
    turns: np.ndarray
    # (inputs, 3): number of an actuator, of its element, index in `numbers` of its input u, the last of the element's
    inputs: np.ndarray


class Elements(NamedTuple):
    """The force elements of a robot."""

    packed: PackedModel  # the tree, with the measured displacements as its constraints
    laws: Laws
    functions: dict[str, Any]  # users' functions by name (`liedyn.machine.compiled.user_functions.Function`)
    rows: tuple[Any, ...]  # of each element: its row, or a slice of its six
    conservative: bool  # True if none of them dissipates or adds energy
    loops: tuple[str, ...] = ()  # the cut joints whose coordinates they act on
    driven: tuple[str, ...] = ()  # the actuators among them


NO_ELEMENTS = Elements(
    PackedModel(np.zeros(HEADER, np.int64), np.zeros(GRAVITY_SIZE)),
    Laws(np.zeros((0, LAW_I), np.int64), np.zeros(0), np.zeros((0, 0)), np.zeros(0), np.zeros((0, 3), np.int64)),
    {}, (), True)
"""An empty set of elements, for kernels that need one."""


def is_conservative(element):
    """True if an element neither dissipates nor adds energy; the work of an input is accounted for at the input."""
    if element.law in DRIVEN:
        return True
    if element.law == "bushing":
        return not any(element.numbers[36:72])
    return element.law in HOLDING and not any(
        value for name, value in zip(LAWS[element.law].numbers, element.numbers) if name.endswith("damping"))
