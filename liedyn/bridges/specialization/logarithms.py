"""Logarithms of poses in programs, with fewer decisions than in kernels, or none."""
import numpy as np

from liedyn.lie.algebra import cross, dot, scale, sub
from liedyn.lie.exponential import log, quaternion_unit, rotation_quaternion
from liedyn.machine.program.expressions import value_of, where_less
from liedyn.mechanics.constraints.cut_joints import _log

SMALL = 1e-16
"""Squares of angles below this are lost in rounding."""
LARGE = 0.02
"""Least size of four times the square of the quaternion's component by which others are divided; the largest one has
1 or more."""


def wherever_open(plain):
    """Logarithms for constraints that are open as far as may be, by less than 120 degrees.

    In closed loops they are almost zero, and their formula there is a decision of the program. Here both formulas are
    computed, and one is selected at each state.
    """
    def quaternion_of_any_length(R):
        trace = R[0] + R[4] + R[8]
        if not trace > 0.0:
            raise RuntimeError("a reference state is closed")
        return R[7] - R[5], R[2] - R[6], R[3] - R[1], 1.0 + trace

    return {rotation_quaternion: quaternion_of_any_length, _log: lambda E: _of_both(plain, E)}


def anywhere(plain):
    """Logarithms of displacements of any size: the component by which a quaternion is divided is that of the reference
    state, as long as it is large enough."""
    def quaternion(R):
        trace, k = R[0] + R[4] + R[8], _largest(R)
        q = ((R[7] - R[5], R[2] - R[6], R[3] - R[1], 1.0 + trace),
             (1.0 + R[0] - R[4] - R[8], R[1] + R[3], R[2] + R[6], R[7] - R[5]),
             (R[1] + R[3], 1.0 + R[4] - R[0] - R[8], R[5] + R[7], R[2] - R[6]),
             (R[2] + R[6], R[5] + R[7], 1.0 + R[8] - R[0] - R[4], R[3] - R[1]))[k]
        if not q[k - 1] > LARGE:
            raise ValueError("these are no numbers of a rotation")
        sign = where_less(q[3], 0.0, -1.0, 1.0) if k else 1.0
        return plain(quaternion_unit)(tuple(sign * x for x in q))

    return {rotation_quaternion: quaternion,
            _log: lambda E: plain(log)(E) if _largest(E[0]) else _of_both(plain, E)}


def _largest(R):
    """Which component of the quaternion is the largest at the reference state: 0 for w, 1 for x and so on."""
    return int(np.argmax([value_of(x) for x in (R[0] + R[4] + R[8], R[0], R[4], R[8])]))


def _of_both(plain, E):
    """The formula of `_log` for small angles, and the other one: selected at each state."""
    R, p = E
    w = (0.5 * (R[7] - R[5]), 0.5 * (R[2] - R[6]), 0.5 * (R[3] - R[1]))
    near, far = (w, plain(sub)(p, plain(scale)(0.5, plain(cross)(w, p)))), plain(log)(E)
    size = plain(dot)(w, w)
    return tuple(tuple(where_less(size, SMALL, a, b) for a, b in zip(*each)) for each in zip(near, far))
