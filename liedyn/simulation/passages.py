"""How fixed steps pass singular configurations.

At a distance s from a singular configuration, s being the smallest singular value of G by the largest, rounding of the
closure error moves the configuration by eps / s, the constrained velocities by eps / s^2 and the accelerations by
eps / s^3. Where the motion itself goes on smoothly through the singular configuration, a step that happens to evaluate
them very close to it is worse than one that passes it by. Therefore

* a state that a step has put much closer to a singular configuration than the one it came from is kept as a result,
  but the next step does not begin there: it begins at the state before, and is twice as long;
* a step with a stage much closer than that is made once more in two unequal parts, whose stages lie elsewhere.

Where a motion approaches a singular configuration in many small steps, neither happens. A motion that passes at a small
distance s turns within the time in which it moves by s, which a fixed step may miss. Then the energy tells: a step near
a singular configuration whose gain is not the work done is made in 2, 4, ... parts, and the best of them is taken.

The stages of the implicit method are solved on minimal coordinates, into which these errors enter at first order, and
its coefficients, up to 14, enlarge them. Close to a singular configuration it leaves its steps to the explicit method,
unless the motion is too stiff for that.
"""
import math

from liedyn.jit import inline, kernel_in_place

CLOSER = 10.0
"""Factor by which the condition number of G grows from a state to another that is much closer to being singular."""
CLOSE = 1e3
"""Condition number below which rounding does no harm: eps 1e9 in the accelerations."""
NEAR = 30.0
"""Condition number above which the energy of a step is looked at, and the implicit method takes explicit steps."""
BALANCED = 1e-11
"""Energy gained beyond the work, as a part of the kinetic energy, at which a step is good."""
PARTS = 64
"""Parts of a step at most."""


@inline
def passing(condition):
    """The condition number that is too close to a singular configuration for a step from a state of this one."""
    return max(CLOSE, CLOSER * condition)


@inline
def part_end(start, end, number, parts):
    """End of part 0, 1, ... of a step: at 0.6 of two, at 0.3, 0.55 and 0.8 of four."""
    return start + (number + 1.2) / parts * (end - start)


@inline
def is_explicit(x, h, condition):
    """Is an implicit step of length h to be replaced, at this condition number, by an explicit one?"""
    return condition > NEAR and h * x.nearest[1] < 1.0


@kernel_in_place
def note_distance(x, A, p):
    """Keep the condition number of an implicit stage, and the fastest rate of wdot = -k y - d w, with p of the y."""
    condition = 1.0 / x.pivots[1]
    x.nearest[0] = max(x.nearest[0], condition)
    if not condition > NEAR:
        x.nearest[1] = 0.0
        for i in range(p, A.shape[0]):
            k, d = 0.0, 0.0
            for j in range(p):
                k += abs(A[i, j])
            for j in range(p, A.shape[0]):
                d += abs(A[i, j])
            x.nearest[1] = max(x.nearest[1], math.sqrt(k), d)
