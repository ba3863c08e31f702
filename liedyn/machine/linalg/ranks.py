"""When a row of constraints counts: the one rule by which all ranks are judged.

Two machines that differ in their units alone have the same ranks. So entries are compared after rows and columns are
weighed: a row by what its entries are made of, one radian a second or the size of the mechanism a second, a column by
what a unit of its coordinate moves (`liedyn.model.size.weights`). A row of common size then has entries around 1, and
what rounding leaves of a row that vanishes, as of a planar loop on a planar arm, is below 1e-14, in any unit.

A pivot counts as zero where it is not above the tolerance times the first one; or times SMALL_ROW, where all rows
vanish together. Weights are powers of two, so weighing rounds nothing, and those of machines of common sizes are 1.
"""
import math
from typing import NamedTuple

import numpy as np

from liedyn.machine.compiled.jit import inline, kernel_in_place

SMALL_ROW = 1e-4
"""Weighed rows are larger than this. Pivots are compared with the largest one, but at least with this: where all rows
vanish together (a slider-crank with both links in one line), what rounding leaves of them is no constraint. With the
usual tolerance of 1e-8 that is 1e-12, to which states are closed."""


class Ranking(NamedTuple):
    """What a rank is judged by: the tolerance, and the weights of the rows (m) and columns (nv) of G."""

    tolerance: float
    rows: np.ndarray
    columns: np.ndarray


@inline
def negligible(size, first, tolerance):
    """Does a pivot of weighed rows count as zero, beside the first one?"""
    return size <= tolerance * max(first, SMALL_ROW)


@inline
def weighed_length(G, i, ranking):
    """Length of row i of G in weighed entries."""
    s = 0.0
    for j in range(G.shape[1]):
        x = G[i, j] * ranking.columns[j]
        s += x * x
    return ranking.rows[i] * math.sqrt(s)


@inline
def bring_to_length(Y, n, length, i):
    """Row i of Y times a number, so that its first n elements have a length; zero where they are zero."""
    s = 0.0
    for j in range(n):
        s += Y[i, j] * Y[i, j]
    factor = length / math.sqrt(s) if s > 0.0 else 0.0
    for j in range(Y.shape[1]):
        Y[i, j] *= factor


@kernel_in_place
def put_weighed(G, ranking, Y):
    """The weighed rows of G in the first columns of Y."""
    for i in range(G.shape[0]):
        for j in range(G.shape[1]):
            Y[i, j] = ranking.rows[i] * G[i, j] * ranking.columns[j]
