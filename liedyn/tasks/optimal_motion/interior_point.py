"""A primal-dual interior-point method with line search for the program, sparse and with exact Hessians.

Limits become barriers -mu log(w - w_low) - mu log(w_high - w) of w = (x, s), with slacks s for the rows of c that are
inequalities; the rows of g(w) = 0 are c - c_low for equations and c - s for the others. Newton's step on the conditions
of a minimum,

    [H + Sigma + delta    A^T ] [dw     ]     [grad phi + A^T lambda]
    [A                 -gamma ] [dlambda] = - [g                    ]      Sigma = z_low / (w - w_low) + z_high / ...

must make either the cost with its barriers, phi, or the violation |g| smaller than all iterates before (a filter), else
it is corrected for the curvature of the constraints (second-order correction), then shortened. delta grows until the
cost is convex along the constraints, so that solutions are minima and no saddles: H + Sigma + delta + A^T A / rho is
then positive definite for small rho (Debreu 1952), which a Cholesky elimination checks. With a large delta the step is
the least-norm step towards g = 0. gamma admits redundant rows and changes no solution, as it acts on the change of
lambda. All this is the method of Waechter and Biegler 2006, with their constants, but without computing the inertia. If
no step is accepted, or limits shorten many steps in succession while violations are large, violations are reduced
first, by a restoration of feasibility: such steps would creep along the limits, and the multipliers grow without bound.

Restoration: without regard to the cost, violations are reduced near the iterate w_r at which the search stopped,

    minimize |g(w)|^2 / 2 s + eta |w - w_r|^2 / 2 - mu (log(w - w_low) + log(w_high - w)),        eta = sqrt(mu)

by Newton's method with exact second derivatives. Its step is that of the program with g / s as multipliers,

    [sum g_i H_i / s + eta + Sigma + delta   A^T] [dw]     [eta (w - w_r) - mu / (w - w_low) + mu / (w_high - w)]
    [A                                        -s] [y ] = - [g                                                   ]

(Waechter and Biegler 2006, section 3.3, with squares in place of absolute values: typical are violations of many rows
at once, as for a guess that does not satisfy the dynamics.) It ends when the filter accepts the iterate and violations
are reduced to the demanded fraction, or when they cannot be reduced further nearby. If they have not fallen by a tenth
then, the constraints contradict each other.
"""
# mypy: ignore-errors

import numpy as np
from scipy.sparse import block_array, csc_matrix, diags_array

from liedyn.tasks.optimal_motion.bordered import Bordered, is_positive
from liedyn.tasks.optimal_motion.solving import FAR

STEPS, SMALLER = 60, 0.9
"""Largest number of steps, and the fraction of violations that may be left."""
HEAVY = 1e3
"""Weight of the largest violation relative to barriers and distances of size one (Waechter and Biegler)."""
SHORTEST, SUFFICIENT, STILL = 1e-6, 1e-4, 1e-9
"""The smallest fraction of a step that is tried, the fraction of its slope by which the sum has to fall, and the size
of steps that count as zero."""


def restore(method, step_of, deltas, part):
    """Moves an `InteriorPoint` to an iterate that its filter accepts; False if none is found.

    `step_of(B, s)` returns factors of the matrix above for its upper left block, None if it is not positive along the
    constraints; deltas are the first and the largest delta, `part` is the fraction of the violations to reach.
    """
    before = np.abs(method.g).sum()
    while_smaller(method, step_of, deltas, part * before)
    if np.abs(method.g).sum() > SMALLER * before or not method.is_new():
        return False
    method.multipliers = method.least_multipliers()
    return True


def while_smaller(method, step_of, deltas, enough):
    """Newton steps until violations are small enough, or cease to fall."""
    w_r, eta, mu, last = method.w.copy(), np.sqrt(method.mu), method.mu, 0.0
    s = np.abs(method.g).max() / HEAVY

    def size(w):
        rooms, g = np.concatenate([w - method.low, method.high - w]), method.rows(w)[1]
        with np.errstate(divide="ignore"):  # at a limit the barrier is infinite
            return 0.5 * (g @ g / s + eta * (w - w_r) @ (w - w_r)) - mu * np.log(rooms[np.isfinite(rooms)]).sum()

    for _ in range(STEPS):
        H, sigma = method.hessian(method.g / s, of_cost=0.0), method.sigma()
        slope = eta * (method.w - w_r) + method.barrier_slope()
        fall, here, delta, dw = slope + method.A.T @ method.g / s, size(method.w), 0.0, None
        while dw is None:
            factor = step_of(H + diags_array(eta + sigma + delta), s)
            if factor is not None:
                dw = factor.solve(-np.concatenate([slope, method.g]))[:len(w_r)]
                alpha = method.longest(dw)
                while size(method.w + alpha * dw) > here + SUFFICIENT * alpha * (fall @ dw):
                    alpha *= 0.5
                    if alpha < SHORTEST:
                        dw = None
                        break
            if dw is None:
                delta = max(deltas[0], last / 3.0) if delta == 0.0 else 8.0 * delta
                if delta > deltas[1]:
                    return
        last = delta
        method.go(alpha, dw, np.zeros(len(method.g)))
        if np.abs(method.g).sum() <= enough and method.is_new() or alpha * np.abs(dw).max() < STILL:
            return


SETTINGS = {"mu": 0.1, "push": 1e-2, "warm_mu": 1e-7, "warm_push": 1e-7}
"""The first barrier parameter and the first distance from limits; the same for a warm start."""
WARM = 50
"""Largest number of iterations with multipliers from another mesh or motion; about ten are needed if they fit."""
LOOK = 10
"""Number of iterations between accurate checks for a solution."""
NEAR = 3e-3
"""Gradients and violations below which a guess is nearly a solution: from farther away the
first steps with a large mu stay away from limits, and those with a small one creep along them."""
GAMMA, RHO = 1e-9, 1e-7
"""Small compared with squares of singular values of A (about one), and 1e-16 / RHO small compared with curvatures."""
STEEP = 100.0
"""Rows with larger derivatives, such as those of stiff springs, are scaled to this size."""
DELTAS = 1e-4, 1e10
"""The first non-zero delta, and the largest one."""
HALVINGS, LONGEST = 5, 5.0
"""Number of halvings of a step; largest change of an unknown, whose size is one."""
FLAT = 1e-12
"""Relative changes of the cost below this are rounding."""
ENOUGH, ARMIJO = 1e-5, 1e-4
"""Relative decrease of the violation by which an iterate has to be better than others; fraction of its slope by which
the cost has to fall if violations are small."""
TRIES, NOTHING = 4, 1e-12
"""Number of deltas that are tried before the restoration of feasibility, and violations of rounding."""
LEAST_PART = 0.1
"""Smallest fraction of violations with which a restoration ends: the first one at `SMALLER`, each
later one at half of the fraction before, down to this."""
SHORT, CREEPING = 0.1, 5
"""Length of short steps, and the number of them in succession that is too many while violations are large."""
SMALL, LARGE = 1e-4, 1e4
"""Small and large violations, relative to the first one or to one."""


def solve(problem, x, options):
    """Unknowns, multipliers of c and of the limits, iterations, status as text, and whether it converged."""
    settings, densities, made = SETTINGS | options.settings, options.warm, 0
    while True:
        warm, left = densities is not None, options.iterations - made
        method = InteriorPoint(problem, x, *(settings[f"warm_{name}" if warm else name] for name in ("mu", "push")),
                               problem.carried(densities or {}))
        found, count, status, ok = _solved(problem, method, options, min(left, WARM) if warm else left, made)
        made += count
        if ok or not warm or made >= options.iterations:
            return *found, made, status, ok
        densities = None  # limits have moved: the active ones are determined anew


def _solved(problem, method, options, most, before):
    """Result of `InteriorPoint.found` after at most `most` iterations, number of these, status, and convergence."""
    for made in range(most):
        if method.errors(0.0, options) <= 1.0 or made % LOOK == LOOK - 1 and method.is_solution(options):
            return method.found(), made, "converged", True
        method.lower_barrier(options)
        if not method.step():
            return method.found(), made, "no step makes cost or violations smaller", False
        problem.iterated(before + made + 1)
    return method.found(), most, "its limit of iterations", method.errors(0.0, options) <= 1.0


def is_near(problem, x, densities):
    """True if x, with multipliers of limits from these densities, is nearly a solution."""
    method = InteriorPoint(problem, x, SETTINGS["warm_mu"], SETTINGS["warm_push"], problem.carried(densities))
    slope = method.gradient + method.A.T @ method.multipliers - method.z_low + method.z_high
    return max(np.abs(slope).max(initial=0.0), np.abs(method.g).max(initial=0.0)) < NEAR


class InteriorPoint:
    """An iterate (w, lambda, z_low, z_high) and its barrier parameter mu."""

    def __init__(self, problem, x, mu, push, carried):
        """Starts from x, at least `push` from limits, or mu over their multipliers (of c and of x) if known."""
        self.problem, self.mu, self.delta, self.filter = problem, mu, 0.0, []
        self.creeping, self.part = 0, SMALLER
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
        self.multipliers = self.least_multipliers()

    def least_multipliers(self):
        """Multipliers that minimise the gradient of the Lagrangian in the least-squares sense."""
        n, slope = len(self.w), self.gradient + self.z_high - self.z_low
        return self._factors(diags_array(np.ones(n)), GAMMA).solve(
            np.concatenate([-slope, np.zeros(len(self.equal))]))[n:]

    def is_new(self):
        """True if this iterate is better than all those of the filter."""
        cost, size = self._merit(self.w)
        return not any(cost >= other and size >= each for other, each in self.filter)

    def _away(self, limit, push, z):
        """Initial distance from a limit with multipliers z: less than half of the distance between two limits."""
        far = np.minimum(push * np.maximum(1.0, np.abs(limit)), push * (self.high - self.low))
        return np.where(np.isfinite(limit), np.minimum(far, self.mu / np.maximum(z, self.mu)), 0.0)

    def _x(self, w):
        return w[:len(self.problem.low)]

    def rows(self, w):
        """Cost and g."""
        cost, c = self.problem.values(self._x(w))
        g = c - self.problem.c_low if self.equal.all() else np.where(self.equal, c - self.problem.c_low, c)
        g[self.free] -= w[len(self.problem.low):]
        return cost, self.row_scale * g

    def _look(self):
        """Cost, rows and their derivatives at w."""
        x, slacks = self._x(self.w), len(self.free)
        self.cost, self.g = self.rows(self.w)
        self.gradient = np.concatenate([self.problem.gradient(x), np.zeros(slacks)])
        minus = csc_matrix((-self.row_scale[self.free], (self.free, np.arange(slacks))),
                           shape=(len(self.equal), slacks))
        self.A = block_array([[diags_array(self.row_scale) @ self.problem.jacobian(x), minus]]).tocsc()

    def errors(self, mu, options):
        """The largest of gradient, complementarity and violation, each over its tolerance or, if mu > 0, ten times
        mu."""
        slope = np.abs(self.gradient + self.A.T @ self.multipliers - self.z_low + self.z_high).max(initial=0.0)
        slack = max(np.abs(z[np.isfinite(room)] * room[np.isfinite(room)] - mu).max(initial=0.0) for z, room in (
            (self.z_low, self.w - self.low), (self.z_high, self.high - self.w)))
        beyond = np.abs(self.g if mu else self.g / self.row_scale).max(initial=0.0)
        if mu:
            return max(slope, slack, beyond) / (10.0 * mu)
        return max(slope / options.optimality, slack / options.optimality, beyond / options.feasibility)

    def is_solution(self, options):
        """True at a solution with the best multipliers of equations: those of steps oscillate if not unique."""
        if self.mu > self._least_mu(options) or np.abs(self.g / self.row_scale).max(initial=0.0) > options.feasibility:
            return False
        return max(self.problem.refined(*self.found())[1:]) <= options.optimality

    @staticmethod
    def _least_mu(options):
        return 0.1 * options.optimality

    def lower_barrier(self, options):
        """The next mu, once the problem of the present mu is solved."""
        least = self._least_mu(options)
        while self.mu > least and self.errors(self.mu, options) <= 1.0:
            self.mu = max(least, min(0.2 * self.mu, self.mu ** 1.5))
            self.filter = []

    def found(self):
        """Unknowns, multipliers of c and of the limits."""
        n = len(self.problem.low)
        return self._x(self.w).copy(), self.row_scale * self.multipliers, (self.z_high - self.z_low)[:n]

    def _merit(self, w):
        """Cost with barriers, and the 1-norm of g."""
        cost, g = self.rows(w)
        rooms = np.concatenate([w - self.low, self.high - w])
        with np.errstate(divide="ignore"):  # at a limit the barrier is infinite
            return cost - self.mu * np.log(rooms[np.isfinite(rooms)]).sum(), np.abs(g).sum()

    def hessian(self, multipliers, of_cost=1.0):
        """Hessian by w of of_cost times the cost plus multipliers times the rows g."""
        H = self.problem.hessian(self._x(self.w), self.row_scale * multipliers, of_cost)
        if len(self.free):
            H = block_array([[H, None], [None, csc_matrix((len(self.free),) * 2)]])
        return H

    def sigma(self):
        """Curvatures of the barriers, from the multipliers of the limits."""
        return self.z_low / (self.w - self.low) + self.z_high / (self.high - self.w)

    def barrier_slope(self):
        """The gradient of the barriers."""
        return self.mu / (self.high - self.w) - self.mu / (self.w - self.low)

    def factors(self, B, gamma, rho):
        """Factors of [[B, A^T], [A, -gamma]], None if B is not positive along the constraints."""
        if not is_positive((B + self.A.T @ self.A / rho).tocsc()):
            return None
        return self._factors(B, gamma)

    def _factors(self, B, gamma):
        return Bordered(block_array([[B, self.A.T], [self.A, diags_array(np.full(len(self.g), -gamma))]]).tocsc(),
                        len(self.w))

    def step(self):
        """Makes a step; False if none is accepted."""
        if self.creeping >= CREEPING and self._restore():
            return True
        n, H, sigma = len(self.w), self.hessian(self.multipliers), self.sigma()
        slope = self.gradient + self.barrier_slope()
        right = -np.concatenate([slope + self.A.T @ self.multipliers, self.g])
        delta, tries = 0.0, 0
        while delta <= DELTAS[1] and tries < TRIES:
            factor = self.factors(H + diags_array(sigma + delta), GAMMA, RHO)
            if factor is not None:
                tries, d = tries + 1, factor.solve(right)
                if np.isfinite(d).all() and self._search(d[:n], d[n:], slope, factor, right):
                    self.delta = delta
                    return True
            delta = max(DELTAS[0], self.delta / 3.0) if delta == 0.0 else 8.0 * delta
        return self._restore()

    def _restore(self):
        """Restoration where no step is accepted; False if violations are too small for that, or it fails."""
        # charts are moved first at their boundary
        if np.abs(self.g).max(initial=0.0) <= NOTHING or self.problem.failures:
            return False
        cost, size = self._merit(self.w)
        self.filter.append((cost - ENOUGH * size, (1.0 - ENOUGH) * size))
        self.creeping, found = 0, restore(self, lambda B, s: self.factors(B, s, s), DELTAS, self.part)
        self.part = max(LEAST_PART, 0.5 * self.part)
        return found

    def _search(self, dw, d_multipliers, slope, factor, right):
        """Goes along a step as far as the filter accepts; False if it accepts no point."""
        n, alpha, here = len(dw), self.longest(dw), self._merit(self.w)
        descent = slope @ dw
        ok, size = self._accepted(self.w + alpha * dw, alpha, here, descent)
        if size >= FAR:  # the motion cannot be computed there, and shorter steps with a larger delta are better
            return False
        if not ok and here[1] <= size:  # the constraints' curvature prevents acceptance
            g = alpha * self.g + self.rows(self.w + alpha * dw)[1]
            bent = factor.solve(np.concatenate([right[:n], -g]))[:n]
            beta = self.longest(bent)
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
            self.creeping = self.creeping + 1 if alpha < SHORT and here[1] > SMALL * self.size else 0
            self.go(alpha, dw, d_multipliers)
        return ok

    def _falls(self, alpha, here, descent):
        """True if the cost must fall, as violations are small and its slope is not."""
        return descent < 0.0 and here[1] < SMALL * self.size and alpha * (-descent) ** 2.3 > here[1] ** 1.1

    def _accepted(self, w, alpha, here, descent):
        """Whether a point is better than this one and those of the filter; and its violation."""
        (phi, beyond), (cost, size) = here, self._merit(w)
        flat = FLAT * max(1.0, abs(phi))
        if size > LARGE * self.size or any(cost >= other and size >= each for other, each in self.filter):
            return False, size
        if self._falls(alpha, here, descent):
            return cost <= phi + ARMIJO * alpha * descent + flat, size
        return size <= (1.0 - ENOUGH) * beyond or cost <= phi - ENOUGH * beyond + flat, size

    def longest(self, dw):
        """The longest fraction of a step that keeps w within its limits, and unknowns where the model is valid."""
        far = LONGEST / max(LONGEST, np.abs(self._x(dw)).max(initial=0.0))
        return far * _share(np.concatenate([self.w - self.low, self.high - self.w]), np.concatenate([dw, -dw]), self.mu)

    def go(self, alpha, dw, d_multipliers):
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
    """The largest fraction of dx that leaves at least one percent of x, or mu times x."""
    falling = dx < 0.0
    return min(1.0, float(np.min(-max(0.99, 1.0 - mu) * x[falling] / dx[falling], initial=1.0)))
