"""One explicit Runge-Kutta step in local coordinates (`liedyn.motion.local_coordinates`), with its derivative.

    k_i = f(x_i)        x_i = x + h sum_j a_ij k_j        x' = x + h sum_i b_i k_i

and stage by stage their variations: those of the state are what the space makes of those at the start and of the change
of x, and dk_i is what the equations and the space make of them. On a group this is the method of Runge, Kutta and
Munthe-Kaas (Hairer, Lubich and Wanner 2006, IV.8.2).
"""
from typing import NamedTuple

import numpy as np


def tableau(A, b):
    """One array (stages + 1, stages): the first row, which is empty, the rows of A, and the weights b.

    Of implicit methods no row is empty.
    """
    return np.array([[*row, *[0.0] * (len(b) - len(row))] for row in ([], *A, b)], dtype=np.float64)


CLASSICAL = ([1 / 2], [0, 1 / 2], [0, 0, 1]), [1 / 6, 1 / 3, 1 / 3, 1 / 6]
"""A and b of the classical Runge-Kutta method."""
RK4 = tableau(*CLASSICAL)


def step(space, equations, rows, h, start=None, of_length=None):
    """The change of x within one step, and the variation of the state at its end.

    Parameters
    ----------
    space
        With ``zero``, an array like x; ``carry(change, start, d_change)``, the variation of the state where x has
        changed; and ``rate(change, f, df, variation, d_change)``, the rate of x there and its variation. `Vectors`
        where x is what the equations are in.
    equations : callable
        ``equations(part, change, variation)`` gives the rates (..., x) at a part of the step and their variation.
    rows : ndarray, shape (stages + 1, stages)
        The `tableau` of the method.
    h : float or ndarray, shape (...)
        Length of the step [s].
    start : ndarray, shape (..., x, z), optional
        Variation of the state at the start; default: none is followed.
    of_length : ndarray, shape (..., 1, z), optional
        Variation of h.

    Returns
    -------
    change : ndarray, shape (..., x)
    end : ndarray, shape (..., x, z), or None
    """
    h, k, dk, eta, d_change = np.asarray(h)[..., None], [], [], None, None
    for part, weights in zip(rows.sum(axis=1), rows):
        rate = _combined(weights, k, space.zero)
        change = h * rate
        if start is not None:
            d_change = h[..., None] * _combined(weights, dk, np.zeros_like(start))
            if of_length is not None:
                d_change = d_change + rate[..., None] * of_length
            eta = space.carry(change, start, d_change)
        if len(k) == rows.shape[1]:
            return change, eta
        found = space.rate(change, *equations(part, change, eta), eta, d_change)
        for kept, each in zip((k, dk), found):
            kept.append(each)


class Vectors(NamedTuple):
    """The space of arrays x themselves."""

    zero: np.ndarray

    def carry(self, change, start, d_change):
        return start + d_change

    def rate(self, change, f, df, variation, d_change):
        return f, df


def _combined(weights, terms, zero):
    """zero + the weighed sum of the terms there are so far."""
    return sum((a * x for a, x in zip(weights, terms) if a), zero)
