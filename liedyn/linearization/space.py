"""Groups of arguments of the linearization (symbols: `liedyn.linearization.local`)."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import INTEGERS, MATRIX, VECTOR, group


class Coordinates(NamedTuple):
    """Rows R that read the independent coordinates y and velocities w: ydot = R_y v, w = R_w v.

    Where an entry of `virtual` is not negative, it is the number of a velocity of a cut joint, which stands for the
    row; LEFT and TANGENT (`liedyn.constraints.left_open`) leave the choice to the kernel.
    """

    R_y: np.ndarray
    virtual_y: np.ndarray
    R_w: np.ndarray
    virtual_w: np.ndarray


class LocalSpace(NamedTuple):
    """The local state space of one state, or of W states in lanes, as kernels write it.

    M, N = [N 0], X = [Delta S], da and balance are padded to whole registers. Before `complete_derivatives` da and
    balance are those that belong to wdot = 0.
    """

    A: np.ndarray
    B: np.ndarray
    f0: np.ndarray
    w: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    residual: np.ndarray
    psi: np.ndarray
    G: np.ndarray
    M: np.ndarray
    N: np.ndarray
    X: np.ndarray
    da: np.ndarray
    balance: np.ndarray


class Directions(NamedTuple):
    """Columns: displacements N of q, X of v, D of the accelerations, and what of their forces is left to balance."""

    N: np.ndarray
    X: np.ndarray
    D: np.ndarray
    balance: np.ndarray


COORDINATES = group(Coordinates, MATRIX, INTEGERS, MATRIX, INTEGERS)
SPACE = group(LocalSpace, *[MATRIX] * 2, *[VECTOR] * 6, *[MATRIX] * 6)
COLUMNS = group(Directions, *[MATRIX] * 4)
"""Their types at one state, for `liedyn.jit.late`."""
