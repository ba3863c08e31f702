"""Force elements as kernels see them: a packed model of what they measure, and their laws
(`liedyn.mechanics.elements`)."""

from typing import Any, NamedTuple

import numpy as np

from liedyn.model.laws import LAWS
from liedyn.model.packed import GRAVITY_SIZE, HEADER, PackedModel

LAW_KINDS = (*LAWS, "function", "bushing", "wrench", "follower")
"""All laws, in the order of their codes: of one length each, then of the six numbers of a displacement."""
FUNCTION, BUSHING, WRENCH, FOLLOWER = range(len(LAWS), len(LAW_KINDS))
BUSHING_NUMBERS = {"stiffness": 36, "damping": 36, "preload": 6}
"""How many numbers each argument of a bushing has, in the order in which its law reads them."""

LAW_I = 6  # what `Laws.records` hold of each element
LAW, ROW, HOLDS, NUMBERS, FUNCTION_AT, TORQUE_AT = range(LAW_I)
HOLDING = "linear", "gas_spring", "polynomial", "bushing"
"""Laws whose force, but for damping, is the slope of an energy."""


class Laws(NamedTuple):
    """Of all elements of a robot."""

    records: np.ndarray  # (elements, LAW_I): code, first row, is it one of HOLDING, place of
    # the numbers, addresses of users' functions or 0
    numbers: np.ndarray
    cuts: np.ndarray  # (rows, nz): coefficients of the coordinates of cut joints in the displacements
    turns: np.ndarray  # (rows): a displacement is counted up to half of that from rest to either side, 0 without end
    inputs: np.ndarray  # (inputs, 3): number of an actuator, its row, place of its gear in `numbers`; u is behind it


class Elements(NamedTuple):
    """The force elements of a robot."""

    packed: PackedModel  # the tree, and as its constraints what the elements measure
    laws: Laws
    functions: dict[str, Any]  # users' functions by name (`liedyn.machine.compiled.user_functions.Function`)
    rows: tuple[Any, ...]  # of each element: its row, or a slice of its six
    conservative: bool  # do all of them give back what they take, and nothing else?
    loops: tuple[str, ...] = ()  # the cut joints whose coordinates they act on
    driven: tuple[str, ...] = ()  # the actuators among them


NO_ELEMENTS = Elements(
    PackedModel(np.zeros(HEADER, np.int64), np.zeros(GRAVITY_SIZE)),
    Laws(np.zeros((0, LAW_I), np.int64), np.zeros(0), np.zeros((0, 0)), np.zeros(0), np.zeros((0, 3), np.int64)),
    {}, (), True)
"""Those of a robot that has none, where kernels want some."""


def is_conservative(element):
    """Does an element give back what it takes, and nothing else? What an input does is seen from the input."""
    if element.law == "driven":
        return True
    if element.law == "bushing":
        return not any(element.numbers[36:72])
    return element.law in HOLDING and not any(
        value for name, value in zip(LAWS[element.law].numbers, element.numbers) if name.endswith("damping"))
