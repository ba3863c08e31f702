"""The program solved by a primal-dual interior-point method with a line search, sparse and on exact Hessians.

Limits become barriers -mu log(w - w_low) - mu log(w_high - w) of w = (x, s), with slacks s of the rows of c that are
inequalities; rows g(w) = 0 are c = c_low of equations and c - s of the others. Newton's step on the conditions of a
minimum,

    [H + Sigma + delta    A^T ] [dw     ]     [grad phi + A^T lambda]
    [A                 -gamma ] [dlambda] = - [g                    ]      Sigma = z_low / (w - w_low) + z_high / ...

must make either the cost with its barriers, phi, or the violation |g| smaller than all iterates did (a filter), else it
is bent by the constraints' curvature (second-order correction), then shortened. delta grows until the cost is convex
along the constraints, so that solutions are minima and no saddles: H + Sigma + delta + A^T A / rho is positive definite
then, for small rho (Debreu 1952), which a Cholesky elimination tells. With a large delta a step is that of least size
towards g = 0. gamma lets rows repeat each other and moves no solution, as it acts on the change of lambda. All this is
the method of Waechter and Biegler 2006, whose numbers are used, but for the inertia and for their restoration phase.
"""
import numpy as np
from scipy.sparse import block_array, csc_matrix, diags_array
from scipy.sparse.linalg import splu

from liedyn.arguments import positive
from liedyn.errors import InputError, shown, suggestion
from liedyn.optimal_motion.bordered import Bordered
from liedyn.optimal_motion.solving import FAR

SETTINGS = {"mu": 0.1, "push": 1e-2, "warm_mu": 1e-7, "warm_push": 1e-7}
"""The first barrier parameter, and how far from limits the start is moved; the same where a motion is known already."""
NEAR = 3e-3
"""Gradients and violations below which a guess is the solution of a problem like this one: from farther away the
first steps of a large mu go wide around limits, and those of a small one creep along them."""
GAMMA, RHO = 1e-9, 1e-7
"""Small against the squares of singular values of A, of size one or so, and 1e-16 / RHO against curvatures."""
STEEP = 100.0
"""Rows with larger derivatives, as of stiff springs, are scaled to it."""
DELTAS = 1e-4, 1e10
"""The first delta, where one is needed, and the largest one."""
HALVINGS, LONGEST = 12, 1.0
"""How often a step is tried again at half its length; most that an unknown changes by, of a size of one."""
FLAT = 1e-12
"""Changes of the cost by this part of it are rounding."""
ENOUGH, ARMIJO = 1e-5, 1e-4
"""By which part of the violation an iterate has to be better than others; which part of its slope the cost has to fall
by where violations are small."""
SMALL, LARGE = 1e-4, 1e4
"""Violations that are, over the first one, or over one."""


def check_settings(settings):
    """InputError for an option that there is not, or that is no positive number."""
    for name, x in settings.items():
        if name not in SETTINGS:
            raise InputError(f"unknown option {shown(name)} in settings of the solver 'liedyn', "
                             f"{suggestion(name, SETTINGS)}")
        positive(f"settings[{name!r}]", x)


def solve(problem, x, options):
    """Unknowns, multipliers of c and of the limits, iterations, status in words, and did it converge?"""
    settings, warm = SETTINGS | options.settings, options.warm is not None
    method = InteriorPoint(problem, x, *(settings[f"warm_{name}" if warm else name] for name in ("mu", "push")),
                           problem.carried(options.warm or {}))
    status = "its limit of iterations"
    for made in range(options.iterations):
        if method.errors(0.0, options) <= 1.0:
            return *method.found(), made, "converged", True
        method.lower_barrier(options)
        if not method.step():
            return *method.found(), made, "no step makes cost or violations smaller", False
        problem.iterated(made + 1)
    return *method.found(), options.iterations, status, method.errors(0.0, options) <= 1.0


def is_near(problem, x, densities):
    """Is x, with multipliers of limits as these densities make them, nearly a solution?"""
    method = InteriorPoint(problem, x, SETTINGS["warm_mu"], SETTINGS["warm_push"], problem.carried(densities))
    slope = method.gradient + method.A.T @ method.multipliers - method.z_low + method.z_high
    return max(np.abs(slope).max(initial=0.0), np.abs(method.g).max(initial=0.0)) < NEAR


class InteriorPoint:
    """An iterate (w, lambda, z_low, z_high) and its barrier parameter mu."""

    def __init__(self, problem, x, mu, push, carried):
        """From x, at least `push` or, where limits have multipliers (of c and of x), mu over them away from limits."""
        self.problem, self.mu, self.delta, self.filter = problem, mu, 0.0, []
        self.equal = problem.c_low == problem.c_high
        self.free = np.flatnonzero(~self.equal)
        self.low = np.concatenate([problem.low, problem.c_low[self.free]])
        self.high = np.concatenate([problem.high, problem.c_high[self.free]])
        w, z = np.concatenate([x, problem.values(x)[1][self.free]]), np.concatenate([carried[1], carried[0][self.free]])
        self.w = np.clip(w, self.low + self._away(self.low, push, -z), self.high - self._away(self.high, push, z))
        self.z_low, self.z_high = mu / (self.w - self.low), mu / (self.high - self.w)
        steepest = np.abs(problem.jacobian(x)).max(axis=1).toarray().ravel()
        self.row_scale = 1.0 / np.maximum(1.0, steepest / STEEP)
        self._look()
        self.size = max(1.0, np.abs(self.g).sum())
        K = self._matrix(diags_array(np.ones(len(w))))
        slope = self.gradient + self.z_high - self.z_low
        self.multipliers = Bordered(K, len(w)).solve(np.concatenate([-slope, np.zeros(len(self.equal))]))[len(w):]

    def _away(self, limit, push, z):
        """How far from a limit with multipliers z to begin: less than half of what there is between two."""
        far = np.minimum(push * np.maximum(1.0, np.abs(limit)), push * (self.high - self.low))
        return np.where(np.isfinite(limit), np.minimum(far, self.mu / np.maximum(z, self.mu)), 0.0)

    def _x(self, w):
        return w[:len(self.problem.low)]

    def _rows(self, w):
        """Cost and g."""
        cost, c = self.problem.values(self._x(w))
        g = c - self.problem.c_low if self.equal.all() else np.where(self.equal, c - self.problem.c_low, c)
        g[self.free] -= w[len(self.problem.low):]
        return cost, self.row_scale * g

    def _look(self):
        """Cost, rows and their derivatives at w."""
        x, slacks = self._x(self.w), len(self.free)
        self.cost, self.g = self._rows(self.w)
        self.gradient = np.concatenate([self.problem.gradient(x), np.zeros(slacks)])
        minus = csc_matrix((-self.row_scale[self.free], (self.free, np.arange(slacks))),
                           shape=(len(self.equal), slacks))
        self.A = block_array([[diags_array(self.row_scale) @ self.problem.jacobian(x), minus]]).tocsc()

    def _matrix(self, H):
        return block_array([[H, self.A.T], [self.A, diags_array(np.full(len(self.equal), -GAMMA))]]).tocsc()

    def errors(self, mu, options):
        """The largest of slope, complementarity and violation, each over its tolerance or, if mu is not zero, over ten
        times mu."""
        slope = np.abs(self.gradient + self.A.T @ self.multipliers - self.z_low + self.z_high).max(initial=0.0)
        slack = max(np.abs(z[np.isfinite(room)] * room[np.isfinite(room)] - mu).max(initial=0.0) for z, room in (
            (self.z_low, self.w - self.low), (self.z_high, self.high - self.w)))
        beyond = np.abs(self.g if mu else self.g / self.row_scale).max(initial=0.0)
        if mu:
            return max(slope, slack, beyond) / (10.0 * mu)
        return max(slope / options.optimality, slack / options.optimality, beyond / options.feasibility)

    def lower_barrier(self, options):
        """The next mu, where the problem of this one is solved."""
        least = 0.1 * options.optimality
        while self.mu > least and self.errors(self.mu, options) <= 1.0:
            self.mu = max(least, min(0.2 * self.mu, self.mu ** 1.5))
            self.filter = []

    def found(self):
        """Unknowns, multipliers of c and of the limits."""
        n = len(self.problem.low)
        return self._x(self.w).copy(), self.row_scale * self.multipliers, (self.z_high - self.z_low)[:n]

    def _merit(self, w):
        """Cost with barriers, and the size of g."""
        cost, g = self._rows(w)
        rooms = np.concatenate([w - self.low, self.high - w])
        return cost - self.mu * np.log(rooms[np.isfinite(rooms)]).sum(), np.abs(g).sum()

    def step(self):
        """Make a step; was there one?"""
        n = len(self.w)
        H = self.problem.hessian(self._x(self.w), self.row_scale * self.multipliers)
        if len(self.free):
            H = block_array([[H, None], [None, csc_matrix((len(self.free),) * 2)]])
        sigma = self.z_low / (self.w - self.low) + self.z_high / (self.high - self.w)
        slope = self.gradient - self.mu / (self.w - self.low) + self.mu / (self.high - self.w)
        right = -np.concatenate([slope + self.A.T @ self.multipliers, self.g])
        delta, squares = 0.0, (self.A.T @ self.A / RHO).tocsc()
        while delta <= DELTAS[1]:
            B = H + diags_array(sigma + delta)
            if _is_positive((B + squares).tocsc()):
                factor = Bordered(self._matrix(B), n)
                d = factor.solve(right)
                if np.isfinite(d).all() and self._search(d[:n], d[n:], slope, factor, right):
                    self.delta = delta
                    return True
            delta = max(DELTAS[0], self.delta / 3.0) if delta == 0.0 else 8.0 * delta
        return False

    def _search(self, dw, d_multipliers, slope, factor, right):
        """Go along a step as far as the filter lets it; was there such a point?"""
        n, alpha, here = len(dw), self._longest(dw), self._merit(self.w)
        descent = slope @ dw
        ok, size = self._accepted(self.w + alpha * dw, alpha, here, descent)
        if size >= FAR:  # there is no motion, and shorter steps of less curvature are better ones
            return False
        if not ok and here[1] <= size:  # the constraints' curvature is in the way
            g = alpha * self.g + self._rows(self.w + alpha * dw)[1]
            bent = factor.solve(np.concatenate([right[:n], -g]))[:n]
            beta = self._longest(bent)
            if self._accepted(self.w + beta * bent, alpha, here, descent)[0]:
                ok, alpha, dw = True, beta, bent
        for _ in range(HALVINGS if not ok else 0):
            alpha *= 0.5
            ok, _ = self._accepted(self.w + alpha * dw, alpha, here, descent)
            if ok:
                break
        if ok:
            if not self._falls(alpha, here, descent):
                self.filter.append((here[0] - ENOUGH * here[1], (1.0 - ENOUGH) * here[1]))
            self._go(alpha, dw, d_multipliers)
        return ok

    def _falls(self, alpha, here, descent):
        """Should the cost fall, as violations are small and its slope is not?"""
        return descent < 0.0 and here[1] < SMALL * self.size and alpha * (-descent) ** 2.3 > here[1] ** 1.1

    def _accepted(self, w, alpha, here, descent):
        """Is a point better than this one, and than those of the filter? And its violation."""
        (phi, beyond), (cost, size) = here, self._merit(w)
        flat = FLAT * max(1.0, abs(phi))
        if size > LARGE * self.size or any(cost >= other and size >= each for other, each in self.filter):
            return False, size
        if self._falls(alpha, here, descent):
            return cost <= phi + ARMIJO * alpha * descent + flat, size
        return size <= (1.0 - ENOUGH) * beyond or cost <= phi - ENOUGH * beyond + flat, size

    def _longest(self, dw):
        """The longest share of a step that keeps w within its limits, and unknowns near where its model holds."""
        far = LONGEST / max(LONGEST, np.abs(self._x(dw)).max(initial=0.0))
        return far * _share(np.concatenate([self.w - self.low, self.high - self.w]), np.concatenate([dw, -dw]), self.mu)

    def _go(self, alpha, dw, d_multipliers):
        rooms = self.w - self.low, self.high - self.w
        dz = [self.mu / room - z - z / room * change for z, room, change in zip(
            (self.z_low, self.z_high), rooms, (dw, -dw))]
        z, dz = np.concatenate([self.z_low, self.z_high]), np.concatenate(dz)
        z = z + _share(z, dz, self.mu) * dz
        self.w = self.w + alpha * dw
        self.multipliers = self.multipliers + alpha * d_multipliers
        rooms = np.concatenate([self.w - self.low, self.high - self.w])
        z = np.clip(z, self.mu / (1e10 * rooms), 1e10 * self.mu / rooms)
        self.z_low, self.z_high = np.split(z, 2)
        self._look()


def _share(x, dx, mu):
    """How much of dx leaves one percent of x, or mu of it."""
    falling = dx < 0.0
    return min(1.0, float(np.min(-max(0.99, 1.0 - mu) * x[falling] / dx[falling], initial=1.0)))


def _is_positive(B):
    """Is a symmetric matrix positive definite? Elimination without pivots then meets positive ones only."""
    try:
        factor = splu(B, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # singular
        return False
    return bool((factor.perm_r == factor.perm_c).all() and (factor.U.diagonal() > 0.0).all())
