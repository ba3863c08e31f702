"""Force elements as kernels see them: a packed model of what they measure, and their laws (`liedyn.elements`)."""

from typing import NamedTuple

import numpy as np

from liedyn.model.packed import GRAVITY_SIZE, HEADER, PackedModel

LAW_KINDS = ("linear", "friction", "function")
LINEAR, FRICTION, FUNCTION = range(len(LAW_KINDS))
LINEAR_NUMBERS, FRICTION_NUMBERS = ("stiffness", "damping", "preload"), (
    "coulomb", "static", "stribeck", "width", "viscous")
"""Numbers of a law, in the order in which `liedyn.elements.laws` reads them."""
LAW_NUMBERS = 5
"""Room for those of each element."""


class Laws(NamedTuple):
    """Of all elements of a robot."""

    kinds: np.ndarray  # (2 elements): places in LAW_KINDS, then addresses of users' functions, else 0
    numbers: np.ndarray  # (elements, LAW_NUMBERS), as the law of `liedyn.elements.laws` reads them


class Elements(NamedTuple):
    """The force elements of a robot."""

    packed: PackedModel  # the tree, and as its constraints what the elements measure
    laws: Laws
    functions: dict  # users' laws by name (`liedyn.compiled.functions.Function`)


NO_ELEMENTS = Elements(
    PackedModel(np.zeros(HEADER, np.int64), np.zeros(GRAVITY_SIZE)),
    Laws(np.zeros(0, np.int64), np.zeros((0, LAW_NUMBERS))), {})
"""Those of a robot that has none, where kernels want some."""
