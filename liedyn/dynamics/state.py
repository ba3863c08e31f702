"""What kernels are given of a state: configuration, velocity and forces, in one argument."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import VECTOR, group


class State(NamedTuple):
    """A state and the forces at it; of a batch, one row for each state."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    f_ext: np.ndarray
    """Wrenches on the links, six numbers each, or none."""


STATE = group(State, *[VECTOR] * 4)
"""Type of one state, for `liedyn.jit.late`."""
