"""Branches of equilibria over a parameter, by pseudo-arclength (Keller 1977; Allgower and Georg 1990, 6 and 8).

What is free of an operating point, the parameter included, is one more than the balances there are, and so a curve.
The tangent t spans the null space of the exact derivatives J of the balances; a step goes along it, and Newton's method
comes back to the curve at right angles to it,

    J S d = -r        t^T d = 0

so that the parameter may turn round. Special points change the sign of a test function between two steps; its root is
where they are: t_parameter (turning point), det [J S; t^T] (branch point: another branch crosses), the real part of
a pair of eigenvalues (Hopf).
"""
from dataclasses import dataclass

import numpy as np

from liedyn.arguments import floats, positive, require_robot, whole
from liedyn.dynamics.nullspace import RANK_TOLERANCE
from liedyn.errors import ClosureError, InputError, SingularConfigurationError, shown
from liedyn.linearization.linearize import linearize
from liedyn.operating_points.problem import RANK, Problem
from liedyn.operating_points.trim import Trim, TrimError

CORRECTIONS, EASY, QUICK = 12, 3, 1e-9
"""Newton steps of a correction; with so few of them the next step is longer; and what they leave, scaled."""
MET, LOST = 1e-13, 1e-4
"""Residual, scaled, that is rounding, and that of a balance which the others do not imply any more."""
LONGER, SHORTER, LEAST = 1.5, 0.5, 1e-7
"""How steps grow and shrink, and the part of the first one at which the branch is given up."""
OSCILLATES = 1e-6
"""Imaginary part of an eigenvalue, as a part of the largest one, from which on it is one of a pair."""


@dataclass(frozen=True)
class SpecialPoint:
    """Where a branch turns, another one crosses it, or an oscillation begins to grow.

    Attributes
    ----------
    kind : str
        "turning point", "branch point" or "hopf".
    parameter : float
    q, v, u : ndarray
    frequency : float
        Of the oscillation [rad/s]; zero for the others.

    Examples
    --------
    >>> import liedyn as ld
    >>> ld.SpecialPoint("turning point", 1.0, None, None, None).frequency
    0.0
    """

    kind: str
    parameter: float
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    frequency: float = 0.0


@dataclass(frozen=True, repr=False)
class Branch:
    """A branch of equilibria; made by :func:`liedyn.continuation`.

    Attributes
    ----------
    name : str
        Of the parameter.
    parameter : ndarray, shape (count,)
    q, v, u : ndarray, shapes (count, nq), (count, nv), (count, nu)
    eigenvalues : ndarray of complex, shape (count, x)
        Of A there, sorted.
    special : list of SpecialPoint
        In the order of the branch.
    ended : str
        Why it ends: "span", "points" or "lost" (no equilibrium could be found a shortest step further on).

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> start = ld.trim(arm, arm.home, free=["force:q1", "force:q4"])
    >>> ld.continuation(arm, start, "q1", (2.0, 2.2), free=["force:q1", "force:q4"], hold=["q2"]).ended
    'span'
    """

    name: str
    parameter: np.ndarray
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    eigenvalues: np.ndarray
    special: list
    ended: str

    def __repr__(self):
        found = ", ".join(f"{each.kind} at {each.parameter:.6g}" for each in self.special) or "no special points"
        return f"Branch({len(self.parameter)} points over {self.name}, {found}, ended: {self.ended})"

    def __len__(self):
        return len(self.parameter)


def continuation(robot, start, parameter, span, free=None, hold=None, step=0.02, points=1000, direction=1,
                 rank_tolerance=RANK_TOLERANCE):
    """Follow the equilibria of a robot while a parameter changes, round turning points too.

    Parameters
    ----------
    robot : Robot
    start : Trim
        Where the branch begins.
    parameter : str
        An actuator (``force:`` and a coordinate where none is declared), ``velocity:`` and an independent coordinate,
        or a coordinate.
    span : array_like, shape (2,)
        Lowest and highest value of the parameter, where the branch ends.
    free : sequence of str, optional
        What else may change, as for `trim`; default: all coordinates that are not held.
    hold : sequence of str, optional
        Coordinates that stay.
    step : float
        First step along the branch, in which coordinates count in radians and metres, and the parameter and inputs by
        the span; steps get longer and shorter as the curve demands.
    points : int
        After so many the branch ends.
    direction : int
        1 for a parameter that grows at first, -1 for one that falls.
    rank_tolerance : float
        Pivots of G below this part of the largest one count as zero.

    Returns
    -------
    Branch

    Raises
    ------
    InputError
        An unknown name, a start that is no equilibrium or outside the span, or what is free makes no curve: says how
        many directions there are.

    Examples
    --------
    A rod on a torsion spring under a load buckles: the upright place is one branch, and another one crosses it.

    >>> import liedyn as ld
    >>> b = ld.Builder("column", gravity=(0.0, 0.0, 0.0))
    >>> b.body("rod", 1.0, (1.0, 0.0, 0.0))
    >>> b.joint("hinge", "revolute", "ground", "rod", stiffness=3.0)
    >>> b.cylinder("load", "ground", "rod", (1000.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    >>> column = b.build()
    >>> branch = ld.continuation(column, ld.trim(column, [0.0]), "load", (-1.0, 5.0))
    >>> [(each.kind, round(each.parameter, 2)) for each in branch.special]
    [('branch point', 3.0)]
    """
    require_robot(robot)
    if not isinstance(start, Trim) or np.ndim(start.reached):
        raise InputError(f"start must be what trim returns for one state, got {shown(start)}")
    span = floats("span", span)
    if span.shape != (2,) or not np.isfinite(span).all() or not span[0] < span[1]:
        raise InputError(f"span must be (lowest, highest), got {shown(span.tolist())}")
    step, points = positive("step", step), whole("points", points, 1)
    if isinstance(direction, bool) or not isinstance(direction, int) or abs(direction) != 1:
        raise InputError(f"direction must be 1 or -1, got {shown(direction)}")
    curve = _Curve(robot, start, parameter, span, free, hold, rank_tolerance)
    return curve.follow(step, points, direction)


class _Curve:
    """The curve of operating points: a `Problem` with the parameter free."""

    def __init__(self, robot, start, parameter, span, free, hold, rank_tolerance):
        self.robot, self.span, self.rank_tolerance = robot, span, rank_tolerance
        self.problem = Problem(robot, () if hold is None else hold, free, None, rank_tolerance, parameter)
        self.name = parameter
        here = self.problem.start(start.q, start.v, start.u, dict.fromkeys(() if hold is None else hold))
        if not start.reached or np.abs(here.r).max(initial=0.0) > 1e-6 * max(1.0, np.abs(here.J).max()):
            raise InputError("start is no equilibrium of this robot")
        if parameter not in here.free:
            raise InputError(f"parameter {shown(parameter)} is not independent here; independent are "
                             f"{', '.join(here.y)}")
        self.column = list(here.free).index(parameter)
        self.S = here.scale.copy()
        self.S[self.column] = span[1] - span[0]
        if not span[0] <= self.value(here) <= span[1]:
            raise InputError(f"span: {parameter} = {self.value(here):.6g} is outside")
        J = here.J * self.S
        U, s, _ = np.linalg.svd(J)
        rank = int((s > RANK * s.max(initial=0.0)).sum())
        if rank != J.shape[1] - 1:
            raise InputError(f"what is free makes no curve but {J.shape[1] - rank} directions: free are "
                             f"{', '.join(here.free)}")
        from scipy.linalg import qr

        self.rows = np.sort(qr(J.T, mode="r", pivoting=True)[1][:rank])
        self.here = here

    def value(self, point):
        return point.free[self.name]

    def tangent(self, point, before):
        """The unit tangent, in the sense of the one before."""
        t = np.linalg.svd(point.J[self.rows] * self.S)[2][-1]
        return t if t @ before >= 0.0 else -t

    def step(self, point, t, h):
        """The point of the curve a step h along the tangent and at right angles to it, and how many corrections."""
        there, count = self.problem.moved(point, h * t * self.S), 0
        while count < CORRECTIONS:
            left = np.abs(there.r) / np.maximum(np.linalg.norm(there.J, axis=1), 1.0)
            if left[self.rows].max() <= MET:  # at branch points the equations below are singular
                break
            J = np.vstack([there.J[self.rows] * self.S, t])
            d = np.linalg.solve(J, np.append(-there.r[self.rows], 0.0))
            there, count = self.problem.moved(there, d * self.S), count + 1
            if np.abs(d).max() < QUICK:
                break
        else:
            raise TrimError("the correction does not converge", None)
        if left.max() > LOST:
            raise TrimError("a balance that was met by itself is so no more", None)
        return there, count

    def tests(self, point, t):
        """Turning point, branch point, Hopf."""
        J = np.vstack([point.J[self.rows] * self.S, t])
        return np.array([t[self.column], np.linalg.det(J / np.linalg.norm(J, axis=1)[:, None]), self.growth(point)[0]])

    def growth(self, point):
        """Real part and frequency of the pair of eigenvalues next to the imaginary axis."""
        values = self.eigenvalues(point)
        pairs = values[values.imag > OSCILLATES * max(np.abs(values).max(initial=0.0), 1.0)]
        if not len(pairs):
            return np.nan, 0.0
        nearest = pairs[np.abs(pairs.real).argmin()]
        return nearest.real, nearest.imag

    def eigenvalues(self, point):
        found = linearize(self.robot, point.q, point.v, u=point.u, independent=point.y,
                          rank_tolerance=self.rank_tolerance)
        return found.eigenvalues()

    def follow(self, h, points, direction):
        """The `Branch`."""
        here, first, special, ended = self.here, h, [], "points"
        t = self.tangent(here, direction * np.eye(len(self.S))[self.column])
        if t[self.column] * direction < 0.0:
            t = -t
        branch, tests = [here], self.tests(here, t)
        while len(branch) < points:
            try:
                there, count = self.step(here, t, h)
                t_there = self.tangent(there, t)
                if t_there @ t < 0.9 and h > LEAST * first:  # the curve turns within the step
                    raise TrimError("", None)
            except (TrimError, ClosureError, SingularConfigurationError, np.linalg.LinAlgError):
                h *= SHORTER
                if h < LEAST * first:
                    ended = "lost"
                    break
                continue
            after = self.tests(there, t_there)
            special += self.located(here, t, h, tests, after)
            here, t, tests = there, t_there, after
            if not self.span[0] <= self.value(here) <= self.span[1]:
                ended = "span"
                break
            branch.append(here)
            if count <= EASY:
                h *= LONGER
        return Branch(self.name, np.array([self.value(each) for each in branch]),
                      *(np.array([getattr(each, key) for each in branch]) for key in ("q", "v", "u")),
                      np.array([self.eigenvalues(each) for each in branch]),
                      [each for each in special if self.span[0] <= each.parameter <= self.span[1]], ended)

    def located(self, here, t, h, before, after):
        """The special points between two points."""
        from scipy.optimize import brentq

        found = []
        for k, kind in enumerate(("turning point", "branch point", "hopf")):
            if not before[k] * after[k] < 0.0 or kind == "hopf" and self.jumps(here, t, h, before[k], after[k]):
                continue

            def test(s, k=k):
                if s == 0.0:
                    return before[k]
                there, _ = self.step(here, t, s)
                return self.tests(there, self.tangent(there, t))[k]

            try:
                s = brentq(test, 0.0, h, xtol=1e-15, rtol=1e-14)
                there, _ = self.step(here, t, s)
            except (TrimError, ValueError, ClosureError, SingularConfigurationError, np.linalg.LinAlgError):
                continue
            frequency = self.growth(there)[1] if kind == "hopf" else 0.0
            found.append((s, SpecialPoint(kind, float(self.value(there)), there.q, there.v, there.u, float(frequency))))
        return [each for _, each in sorted(found, key=lambda pair: pair[0])]

    def jumps(self, here, t, h, before, after):
        """Is it another pair that is nearest to the axis behind the step?"""
        there, _ = self.step(here, t, 0.5 * h)
        middle = self.growth(there)[0]
        return not min(before, after) <= middle <= max(before, after)
