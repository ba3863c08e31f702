"""Curves of operating points: their tangent, and steps along them.

There is one unknown more than there are balances, including the parameter. The tangent t spans the null space of the
exact derivatives J of the balances, scaled by S; a step is made along it, and Newton's method returns to the curve at
right angles to it,

    J S d = -r        t^T d = 0

If balances are redundant (rolling, inputs that act on several coordinates at once) J has more rows than its rank, and
U^T J S is used instead, with U the left singular vectors of J S at an earlier place, chosen anew when they no longer
distinguish the balances.
"""
# mypy: ignore-errors
from dataclasses import dataclass

import numpy as np

from liedyn.machine.errors import InputError, LiedynError
from liedyn.mechanics.tree.configuration import difference, integrate
from liedyn.tasks.operating_points.equilibrium_problem import FAMILY, RANK, Point, place_rows, read_rows

CORRECTIONS, QUICK = 12, 1e-9
"""Largest number of Newton steps of a correction, and the scaled residual that they have to reach."""
MET, FAIR, LOST = 1e-13, 1e-11, 1e-8
"""Scaled residuals: of rounding; after a correction by secants; of a balance that no longer follows from the others."""
CROSSED = 1e-7
"""Part of the largest singular value of J S below which another branch crosses: the previous tangent is used."""
APART = 0.3
"""Part of the smallest singular value of all balances that the previous combinations must retain."""
AROUND, NODES = 0.2, np.array([-1.0, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0])
"""Part of a step on both sides of a branch point from which it is interpolated, and the nodes. As steps turn by less
than half a radian (`continuation.TURNS`), the error is about (0.1)^8."""
ROUGH = 0.003
"""Smallest component along the left null vector, at a turning point, of the derivative by the parameter of a family:
at branch points it is zero up to errors of the secant."""
AWAY, NOISE = 0.5, 1e-4
"""Corrections relative to the step above which they lead to another branch, and a size that is always admitted."""
SAME = 1e-6
"""Scaled distance below which two points are the same."""
STEEP = 10.0
"""Largest displacement of a coordinate per unit of the independent ones, above which these are chosen anew."""


class OffTheCurve(LiedynError):
    """Newton's method has not returned to the curve."""


@dataclass(frozen=True)
class Place:
    """A point of a curve with its scaled unit tangent t, the combinations U (m, rank) of balances used there, and the
    number of corrections."""

    point: Point
    t: np.ndarray
    U: np.ndarray
    count: int = 0


class Curve:
    """The curve of a `Problem` with a parameter, given by name, over a span; `second` if derivatives of eigenvalues are
    asked for."""

    def __init__(self, problem, name, span, here, second=False):
        self.problem, self.name, self.span, self.second = problem, name, span, second
        self.sizes = {each: x for each, x in zip(here.free, here.scale)} | {name: span[1] - span[0]}
        s = np.linalg.svd(here.J * self.scale(here), compute_uv=False)
        rank, count = int((s > RANK * s.max(initial=0.0)).sum()), here.J.shape[1]
        if rank != count - 1:
            raise InputError(f"what is free makes no curve but {count - rank} directions: free are "
                             f"{', '.join(here.free)}; if branches cross here, start next to this point")

    def first(self, here, direction):
        """The `Place` of the first point, in the direction in which the parameter grows (1) or falls (-1)."""
        ahead = direction * np.eye(len(here.free))[list(here.free).index(self.name)]
        t = self.tangent(here, ahead)
        return Place(here, t, self.balances(here, None))

    def value(self, point):
        """The value of the parameter."""
        return float(point.free[self.name])

    def along(self, place):
        """The scaled rate of the parameter along the tangent."""
        return place.t[list(place.point.free).index(self.name)]

    def scale(self, point):
        """Scales of the unknowns; 1 for coordinates that are chosen later."""
        return np.array([self.sizes.get(name, 1.0) for name in point.free])

    def tangent(self, point, before):
        """The unit tangent, with the orientation of the one before."""
        _, s, Vt = np.linalg.svd(point.J * self.scale(point))
        rank = len(Vt) - 1
        if rank and s[rank - 1] > CROSSED * s[0]:
            t = Vt[-1]
            return t if t @ before >= 0.0 else -t
        null = Vt[int((s[:rank] > CROSSED * s[0]).sum()):] if rank else Vt
        t = null.T @ (null @ before)
        return t / np.linalg.norm(t)

    def balances(self, point, before):
        """The combinations U for the next steps."""
        U, s, _ = np.linalg.svd(point.J * self.scale(point))
        rank = point.J.shape[1] - 1
        if before is None:
            return np.eye(len(U)) if len(U) == rank else U[:, :rank]
        if len(U) == rank or not rank or s[rank - 1] < CROSSED * s[0]:
            return before
        left = np.linalg.svd(before.T @ point.J * self.scale(point), compute_uv=False)
        return before if left[-1] > APART * s[rank - 1] else U[:, :rank]

    def matrix(self, place):
        """[U^T J S; t^T]: singular at branch points. For a family, whose last column is known roughly only, without
        that column, U^T J_y S_y: singular also at turning points."""
        M = place.U.T @ place.point.J * self.scale(place.point)
        return np.vstack([M, place.t]) if self.problem.family is None else M[:, :-1]

    def turns(self, place, before):
        """True if a turning point makes `matrix` singular: only for a family, or without a place before."""
        if self.problem.family is None:
            return False
        M = place.U.T @ place.point.J * self.scale(place.point)
        left = np.linalg.svd(M[:, :-1])[0][:, -1]
        return abs(left @ M[:, -1]) > ROUGH * np.linalg.norm(before.point.J * self.scale(before.point))

    def aside(self, place, null):
        """The unit direction across the curve from a null vector of `matrix`."""
        if self.problem.family is None:
            return null
        null, ahead = np.append(null, 0.0), np.eye(len(null) + 1)[-1]
        either = [each - each @ place.t * place.t for each in (null, ahead)]  # the null vector may be the tangent
        whole = max(either, key=np.linalg.norm)
        return whole / np.linalg.norm(whole)

    def step(self, place, h):
        """The point at a distance h along the tangent and at right angles to it, the number of corrections, and the
        whole scaled displacement."""
        scale, count, whole, exact = self.scale(place.point), 0, h * place.t, self.problem.family is None
        there = self.problem.moved(place.point, whole * scale)
        while count < CORRECTIONS:
            if _left(there) <= MET and (count or exact):  # next to a crossing of branches the Jacobian is singular
                break
            J = np.vstack([there.J * scale, place.t])
            d = np.linalg.lstsq(J, np.append(-there.r, 0.0), rcond=RANK)[0]
            there, count, whole = self.problem.moved(there, d * scale), count + 1, whole + d
            if np.abs(d).max() < (QUICK if exact else MET):
                if exact or _left(there) <= FAIR:
                    break
                # no secant so far contains the effect of the parameter here
                there = self.problem.probed(there, self.span)
        else:
            raise OffTheCurve("the correction does not converge")
        if _left(there) > LOST:
            raise OffTheCurve("a balance that was met by itself is so no more")
        return there, count, whole

    def through(self, place, s, h):
        """The place at a distance s where another branch crosses, and balances do not determine that direction: by
        interpolation of the state between places of a step h on both sides."""
        from scipy.interpolate import BarycentricInterpolator

        nodes, problem, here = s + AROUND * h * NODES, self.problem, place.point
        points = [self.step(place, x)[0] for x in nodes]
        states = [(difference(here.robot, here.q, each.q), each.w, each.u, problem.numbers_of(each),
                   self.tangent(each, place.t)) for each in points]
        dq, w, u, numbers, t = (BarycentricInterpolator(nodes, x)(s) for x in map(np.array, zip(*states)))
        there = problem.placed(here, integrate(here.robot, here.q, dq), w, u, numbers, {})
        there = there if problem.family is None else problem.probed(there, self.span)
        return Place(there, t / np.linalg.norm(t), place.U)

    def at(self, place, s):
        """The place at a distance s from another one, with the same U."""
        if s == 0.0:
            return place
        there, count, whole = self.step(place, s)
        if np.linalg.norm(whole - s * place.t) > AWAY * abs(s) + NOISE:
            raise OffTheCurve("the correction ends somewhere else")
        return Place(there, self.tangent(there, place.t), place.U, count)

    def returns(self, place, h, first):
        """The distance of a point on the step h from a place, None if it is not on that step."""
        here = place.point
        s = self._between(here, first) @ place.t
        if not 0.0 < s <= h or np.linalg.norm(self._between(here, first) - s * place.t) > AWAY * s:
            return None
        return s if np.abs(self._between(self.at(place, s).point, first)).max() < SAME else None

    def _between(self, here, there):
        """The scaled displacement from one point to another."""
        problem, robot = self.problem, here.robot
        names = [name for name in here.free if name in here.y]
        dy = place_rows(robot, here.q, names) @ difference(robot, here.q, there.q)
        w = read_rows(robot, there.q, problem.speeds) @ there.v - read_rows(robot, here.q, problem.speeds) @ here.v
        du, dp = (there.u - here.u)[problem.inputs], problem.numbers_of(there) - problem.numbers_of(here)
        return np.concatenate([dy, w, du, dp]) / self.scale(here)

    def onwards(self, place):
        """The same place with new U and, if they are poor, new coordinates."""
        point, problem = place.point, self.problem
        if problem.coordinates is None and point.speeds == point.y and np.abs(point.K).max(initial=0.0) > STEEP:
            y = problem.independent(point.robot, point.q, list(point.values))
            if set(y) != set(point.y):
                d, p = place.t * self.scale(point), len(y)
                rows, x = place_rows(point.robot, point.q, y) @ point.K, point.free.get(FAMILY)
                d = np.concatenate([rows @ d[:p], d[p:]])
                slope = np.concatenate([rows @ point.J[:p, -1], point.J[p:, -1]])
                point = problem.point(point.robot, (point.q, point.v, point.u), (y, y), point.values, (x, slope))
                return Place(point, self.tangent(point, d / self.scale(point)), self.balances(point, None))
        return Place(point, place.t, self.balances(point, place.U))


def _left(point):
    """The largest scaled residual."""
    return (np.abs(point.r) / np.maximum(np.linalg.norm(point.J, axis=1), 1.0)).max(initial=0.0)
