"""Restoration of feasibility, for iterates of an interior-point method from which no step is accepted.

Without regard to the cost, violations are reduced near the iterate w_r at which the search stopped,

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
from scipy.sparse import diags_array

STEPS, SMALLER = 60, 0.9
"""Largest number of steps, and the fraction of violations that may be left."""
HEAVY = 1e3
"""Weight of the largest violation relative to barriers and distances of size one (Waechter and Biegler)."""
SHORTEST, ARMIJO, STILL = 1e-6, 1e-4, 1e-9
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
                while size(method.w + alpha * dw) > here + ARMIJO * alpha * (fall @ dw):
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
