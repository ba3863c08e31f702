"""Special points between two points of a curve: turning points, branch points, changes of stability.

    turning point    the rate of the parameter along the curve changes its sign
    branch point     a real eigenvalue of N = [J S; t^T] [J S; t^T]_0^-1 goes through zero: the null space of J grows
    hopf             a pair of eigenvalues of A crosses the imaginary axis
    flutter          two pairs on the axis meet and leave it: conservative or circulatory systems without damping
    divergence       a real eigenvalue of A goes through zero, and there is no turning or branch point

For N the eigenvalues in the left half-plane are counted, for A those in the right one: if a count differs, the step is
halved until each part has a single difference, so that two within a step do not cancel. The other branch at a branch
point is found by a step along the second null vector: its parameter shows whether the branch point is a pitchfork.

Where derivatives of eigenvalues along the curve are asked for (`liedyn.tasks.operating_points.branch_slopes`) a single
crossing of the axis is found by Newton's method instead of halving.
"""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial import Chebyshev

from liedyn.machine.errors import LiedynError
from liedyn.tasks.operating_points.branch_slopes import kept, moving_eigenvalues
from liedyn.tasks.operating_points.curve import Place
from liedyn.tasks.operating_points.trim_result import outcome

if TYPE_CHECKING:
    from liedyn.tasks.operating_points.trim_result import Trim
    from liedyn.typing import Array

AXIS, GREY = 1e-6, 30.0
"""Real part, relative to the largest eigenvalue, below which an eigenvalue is on the imaginary axis; and the factor
within which that cannot be distinguished from rounding."""
STEPS, MOVES = 8, 1e-3
"""Largest number of Newton steps to the axis; and the change of the real part within a step of the curve, relative to
the largest eigenvalue, below which an eigenvalue does not cross the axis."""
TINY = 1e-11
"""Fraction of a step below which changes are not separated any more."""
TOGETHER = 1e-6
"""Fraction of a step within which a change of stability belongs to a turning or branch point."""
AT_A_FORK = 1e-2
"""The same fraction at a branch point, for the turning point of one of its branches."""
NEARBY, VANISHES = 1e-2, 1e-3
"""Fraction of a step on both sides of a zero eigenvalue, and the ratio to the product of all eigenvalues there below
which it is zero."""
SINGULAR = 1e-6
"""Singular values, relative to others or to those at the ends of a step, that are zero at a branch point located to
`TINY`; and the scaled rate of a parameter at a turning point."""
DEGREE = 12
"""Degree of the polynomial that approximates the parameter within a step, as in `curve.AROUND`."""
ASIDE, FAR = 1e-3, 100.0
"""Scaled distance along the second null vector at which the other branch is searched, and the largest ratio of the
distance along the first one."""


@dataclass(frozen=True)
class SpecialPoint:
    """A turning point, a branch point, or a change of stability of a branch.

    Attributes
    ----------
    kind : str
        "turning point"; "branch point"; "hopf", where a pair of eigenvalues crosses the imaginary axis; "flutter",
        where two pairs on the axis meet and leave it; "divergence", where a real eigenvalue goes through zero and the
        branch neither turns nor is crossed.
    parameter : float
    q, v, u : ndarray
    frequency : float
        Frequency of the oscillation [rad/s]; zero for other kinds.
    form : str
        For a branch point: "pitchfork", if the parameter of one of the two branches has an extremum;
        "transcritical", if neither has; "vertical", if it is constant on the other one; "multiple", if more
        than two branches may cross; "" if the other branch was not found, and for other kinds.
    unstable : tuple of int
        Number of eigenvalues in the right half-plane before and after it.
    crossing : Trim or None
        A point of the other branch next to a branch point, from which `continuation` can follow it.

    Examples
    --------
    >>> import liedyn as ld
    >>> ld.SpecialPoint("turning point", 1.0, None, None, None).frequency
    0.0
    """

    kind: str
    parameter: float
    q: Array
    v: Array
    u: Array
    frequency: float = 0.0
    form: str = ""
    unstable: tuple[int, ...] = (0, 0)
    crossing: Trim | None = None


# ---- stability


def eigenvalues(A):
    """Eigenvalues of A, sorted; exactly zero for cyclic coordinates and conserved quantities."""
    found = np.zeros(len(A), dtype=complex)
    others = _others(A)
    found[:len(others)] = others
    return np.sort_complex(found)


def _others(A):
    """The eigenvalues of A without those of zero rows and columns."""
    left = kept(A)
    return np.linalg.eigvals(A[np.ix_(left, left)])


def _size(*places):
    """The largest absolute eigenvalue at some places."""
    return max(*(np.abs(eigenvalues(each.point.A)).max(initial=0.0) for each in places), np.finfo(float).tiny)


def _unstable(place, size):
    """Number of eigenvalues in the right half-plane."""
    return int((eigenvalues(place.point.A).real > AXIS * size).sum())


def is_undecided(curve, place, before):
    """True if the place itself is special, or an eigenvalue is so near to the axis that its side may be rounding."""
    near = np.abs(eigenvalues(place.point.A).real) / _size(place, before)
    if ((near > AXIS / GREY) & (near < AXIS * GREY)).any() or abs(curve.along(place)) < SINGULAR:
        return True
    here, there = (np.linalg.svd(curve.matrix(each), compute_uv=False)[-1] for each in (before, place))
    return bool(there < SINGULAR * here)


# ---- between two places


def special_points(curve, a, h, b):
    """Special points between place a and place b, a step h further on, in their order, as pairs (distance, point)."""
    return _Step(curve, a, h, b).special_points()


class _Step:
    """A step of a curve; distances s go from 0 to h."""

    def __init__(self, curve, a, h, b):
        self.curve, self.a, self.h, self.places, self.size = curve, a, h, {0.0: a, h: b}, _size(a, b)
        self.base = max((curve.matrix(each) for each in (a, b)), key=lambda M: np.linalg.svd(M, compute_uv=False)[-1])

    def at(self, s):
        if s not in self.places:
            self.places[s] = self.curve.at(self.a, s)
        return self.places[s]

    def special_points(self):
        """Pairs (distance, point), in their order."""
        h = self.h
        found = [self.branch_point(s) for s in self.crossings(0.0, h, self.left(0.0), self.left(h))]
        ends = [self.curve.along(self.at(s)) for s in (0.0, h)]
        if ends[0] * ends[1] < 0.0 and self.curve.problem.family is None:
            s = _root(lambda s: self.curve.along(self.at(s)), 0.0, h)
            # at a fork the tangent of the turning branch has lost digits
            if all(abs(s - other) > (AT_A_FORK if more else TOGETHER) * h for other, _, *more in found):
                found.append((s, "turning point"))
        elif ends[0] * ends[1] < 0.0 and not found:
            found = [self.branch_point(s) for s in self.extrema()]
        ends = self.unstable(0.0), self.unstable(h)
        explained = any(self.explains(s, *ends) for s, *_ in found)
        for s, kind, *frequency in () if explained else self.changes(0.0, h, *ends):
            if kind and (frequency or all(abs(s - each[0]) > TOGETHER * h for each in found)):
                found.append((s, kind, "", None, *frequency))
        found = sorted(found, key=lambda each: each[0])
        between = [0.5 * (one[0] + other[0]) for one, other in zip(found, found[1:])]
        sides = [self.unstable(s) for s in (0.0, *between, h)] if found else []
        return [(each[0], self.special(*each, sides=pair)) for each, pair in zip(found, zip(sides, sides[1:]))]

    def special(self, s, kind, form="", crossing=None, frequency=0.0, sides=(0, 0)):
        at = self.at(s) if kind != "branch point" else self.curve.through(self.a, s, self.h)
        at = at.point
        return SpecialPoint(kind, self.curve.value(at), at.q, at.v, at.u, frequency, form, sides, crossing)

    # ---- branch points

    def relative(self, s):
        """N at distance s."""
        return np.linalg.solve(self.base.T, self.curve.matrix(self.at(s)).T).T

    def left(self, s):
        """Number of eigenvalues of N in the left half-plane."""
        return int((np.linalg.eigvals(self.relative(s)).real < 0.0).sum())

    def crossings(self, low, high, at_low, at_high):
        """Distances of branch points."""
        if at_low == at_high:
            return []
        if abs(at_low - at_high) == 1:
            return [_root(lambda s: np.linalg.det(self.relative(s)), low, high)]
        middle = 0.5 * (low + high)
        if high - low <= TINY * self.h:  # several at once, or a pair of complex eigenvalues, which is no branch point
            return [middle] if np.linalg.svd(self.relative(middle), compute_uv=False)[-1] < SINGULAR else []
        at = self.left(middle)
        return self.crossings(low, middle, at_low, at) + self.crossings(middle, high, at, at_high)

    def extrema(self):
        """Distances where the parameter of a family has an extremum. If `left` is the same on both sides, another
        branch crosses there in a pitchfork, and the null vector is the tangent."""
        value = np.vectorize(lambda s: self.curve.value(self.at(s).point))
        roots = Chebyshev.interpolate(value, DEGREE, (0.0, self.h)).deriv().roots()
        return [float(s.real) for s in roots if abs(s.imag) < TOGETHER * self.h and 0.0 < s.real < self.h]

    def branch_point(self, s):
        """The distance and the branch point there; for a family it may be a turning point."""
        at = self.curve.through(self.a, s, self.h)
        if self.curve.turns(at, self.a):
            return s, "turning point"
        _, sizes, Vt = np.linalg.svd(self.curve.matrix(at))
        if (sizes < SINGULAR * sizes[0]).sum() > 1:
            return s, "branch point", "multiple", None
        return s, "branch point", *self.fork(at, self.curve.aside(at, Vt[-1]))

    def fork(self, at, aside):
        """The form of a branch point, and a point of the branch that crosses there, along the second null vector."""
        curve, other = self.curve, Place(at.point, aside, at.U)
        try:
            there, back = (curve.step(other, side * ASIDE) for side in (1.0, -1.0))
        except (LiedynError, np.linalg.LinAlgError):
            return "", None
        if max(abs(there[2] @ at.t), abs(back[2] @ at.t)) > FAR * ASIDE:
            return "", None
        width = curve.span[1] - curve.span[0]
        up, down = ((curve.value(each[0]) - curve.value(at.point)) / width for each in (there, back))
        crossing = outcome(curve.problem, there[0], 0, True)
        if max(abs(up), abs(down)) < ASIDE ** 3:
            return "vertical", crossing
        is_even = abs(up + down) > abs(up - down)
        return "pitchfork" if is_even or abs(curve.along(at)) < ASIDE else "transcritical", crossing

    # ---- stability

    def unstable(self, s):
        return _unstable(self.at(s), self.size)

    def explains(self, s, at_start, at_end):
        """True if one eigenvalue changes sides within the step, a real one at the turning or branch point s."""
        aside = TOGETHER * self.h
        while abs(at_start - at_end) == 1 and aside < NEARBY * self.h:
            before, after = max(s - aside, 0.0), min(s + aside, self.h)
            if (self.unstable(before), self.unstable(after)) == (at_start, at_end):
                return True
            aside *= 8.0
        return False

    def changes(self, low, high, at_low, at_high):
        """Where the number of unstable eigenvalues changes, as `to_the_axis` returns it."""
        if at_low == at_high:
            return []
        single = self.newton(low, high, at_low, at_high) if self.curve.second else None
        if single is not None:
            return [single]
        middle = 0.5 * (low + high)
        if high - low <= TINY * self.h:
            return [self.to_the_axis(low if at_low > at_high else high)]  # the side with more unstable eigenvalues
        at = self.unstable(middle)
        return self.changes(low, middle, at_low, at) + self.changes(middle, high, at, at_high)

    def moving(self, s):
        """Eigenvalues at distance s, and their derivatives by the distance."""
        at = self.at(s)
        direction = at.t * self.curve.scale(at.point) / (at.t @ self.a.t)
        return moving_eigenvalues(self.curve.problem, at.point, direction)

    def newton(self, low, high, at_low, at_high):
        """As `to_the_axis`, by Newton's method: None if the eigenvalues that cross are not one real or one pair."""
        s, sense = (low, -1.0) if at_low > at_high else (high, 1.0)
        (values, slopes), k = self.moving(s), None
        for _ in range(STEPS):
            with np.errstate(all="ignore"):
                ahead = s - values.real / slopes.real
            if k is None:  # the nearest crossing of those that are unstable
                there = np.where((values.real > AXIS * self.size) & (ahead > low) & (ahead < high), ahead, np.inf)
                k = int(np.abs(there - s).argmin())
            crosses = sense * slopes[k].real * self.h > MOVES * self.size
            if not (low < ahead[k] < high and crosses):
                return None
            if abs(ahead[k] - s) <= TINY * self.h:
                pair = abs(values[k].imag) > AXIS * self.size
                frequency = [abs(float(values[k].imag))] if pair else []
                is_single = abs(at_low - at_high) == 1 + pair
                return (ahead[k], "hopf" if pair else "divergence", *frequency) if is_single else None
            expected, s = values[k] + slopes[k] * (ahead[k] - s), float(ahead[k])
            values, slopes = self.moving(s)
            k = int(np.abs(values - expected).argmin())
        return None

    def to_the_axis(self, s):
        """Distance where an eigenvalue just right of the axis at s is on the axis, its kind, and the frequency."""
        right = [x for x in _others(self.at(s).point.A) if x.real > AXIS * self.size]
        near = min(right, key=lambda x: x.real)
        frequency = [abs(float(near.imag))] if abs(near.imag) > AXIS * self.size else []

        def nearest(x):
            values = np.append(_others(self.at(x).point.A), np.inf)  # there may be no eigenvalues
            return values[np.abs(values - near).argmin()]

        def real(x):
            return nearest(x).real / self.size if np.isfinite(nearest(x)) else 0.0

        aside = TINY * self.h
        while aside < self.h:
            low, high = max(s - aside, 0.0), min(s + aside, self.h)
            ends = real(low), real(high)
            if min(ends) < -AXIS / GREY and max(ends) > AXIS / GREY:
                on = _root(real, low, high)
                return on, "hopf" if frequency else "divergence", *(abs(float(nearest(on).imag)) for _ in frequency)
            aside *= 4.0
        if frequency:
            return s, "flutter", *frequency
        # a pair that reaches zero along the axis, or an eigenvalue whose real part is rounding
        nearby = [abs(np.prod(_others(self.at(x).point.A))) for x in (max(s - NEARBY * self.h, 0.0), s,
                                                                     min(s + NEARBY * self.h, self.h))]
        return s, "divergence" if nearby[1] < VANISHES * max(nearby) else ""


def _root(f, low, high):
    from scipy.optimize import brentq

    return brentq(f, low, high, xtol=1e-15, rtol=1e-14)
