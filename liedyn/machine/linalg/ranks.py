"""The one rule for ranks of constraint rows: which pivots count as zero.

Two machines that differ in their units alone must have the same ranks. So rows and columns are weighted before entries
are compared: a row by its unit (one radian per second, or the size of the mechanism per second), a column by the motion
that a unit of its coordinate causes (`liedyn.model.size.weights`). A usual row then has entries around 1, and the
rounding error that is left of a vanishing row, as of a planar loop on a planar arm, is below 1e-14, in any unit.

A pivot counts as zero if it is not above the tolerance times the first pivot, or not above the tolerance times
SMALL_ROW, for the case where all rows vanish together. Weights are powers of two, so weighting causes no rounding, and
those of machines of common sizes are 1.
"""
import math
from typing import NamedTuple

import numpy as np

from liedyn.machine.compiled.jit import inline, kernel_in_place

SMALL_ROW = 1e-4
"""Usual weighted rows are longer than this. Pivots are compared with the largest one, but at least with SMALL_ROW:
where all rows vanish together (a slider-crank with both links in one line), their rounding errors are no constraints.
With the usual tolerance of 1e-8 the bound is 1e-12, the accuracy to which states satisfy constraints."""


class Ranking(NamedTuple):
    """How ranks are decided: the tolerance, and the weights of the rows (m) and columns (nv) of G."""

    tolerance: float
    rows: np.ndarray
    columns: np.ndarray


@inline
def negligible(size, first, tolerance):
    """True if a pivot of weighted rows counts as zero beside the first one."""
    return size <= tolerance * max(first, SMALL_ROW)


@inline
def weighed_length(G, i, ranking):
    """Length of the weighted row i of G."""
    s = 0.0
    for j in range(G.shape[1]):
        x = G[i, j] * ranking.columns[j]
        s += x * x
    return ranking.rows[i] * math.sqrt(s)


@inline
def bring_to_length(Y, n, length, i):
    """Scale row i of Y so that its first n elements have the given length; zero if they are zero."""
    s = 0.0
    for j in range(n):
        s += Y[i, j] * Y[i, j]
    factor = length / math.sqrt(s) if s > 0.0 else 0.0
    for j in range(Y.shape[1]):
        Y[i, j] *= factor


@kernel_in_place
def put_weighed(G, ranking, Y):
    """Write the weighted rows of G to the first columns of Y."""
    for i in range(G.shape[0]):
        for j in range(G.shape[1]):
            Y[i, j] = ranking.rows[i] * G[i, j] * ranking.columns[j]
