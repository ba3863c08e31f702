"""The explicit equation of motion (Udwadia and Kalaba; Xu and Liu 2017, eq. 5-9, misprints corrected).

    B = A M^-1/2        a = M^-1 Q + M^-1/2 B^+ (b - A M^-1 Q)        Q^c = M^1/2 B^+ (b - A M^-1 Q)        Q = tau - h

Of all accelerations that satisfy the constraints, a is the one nearest to the free one M^-1 Q in the metric of the
kinetic energy (Gauss's principle). Any root with L L^T = M serves as M^1/2, as L^-T (A L^-T)^+ does not depend on it;
the Cholesky factor preserves the digits of small bodies beside large ones, which the eigenvectors of the symmetric root
mix. Our sign: Q^c = -G^T lambda.
"""
import numpy as np

from liedyn.mechanics.constraints.cluster_weights import pseudoinverse
from liedyn.mechanics.dynamics.dynamics_problem import (
    Solution, apply, linear_solution, no_inertia, require_regular_tree, spread, stabilized, transposed,
)


def solve(problem, baumgarte=None):
    """Explicit accelerations and ideal constraint forces; `condition` is that of B."""
    require_regular_tree(problem.robot, "'udwadia_kalaba'")
    try:
        L_inverse = np.linalg.inv(np.linalg.cholesky(problem.M))
    except np.linalg.LinAlgError:
        raise no_inertia(problem, int(np.argmax(np.linalg.cond(problem.M)))) from None
    B = problem.G @ np.swapaxes(L_inverse, -1, -2)
    B_plus = pseudoinverse(B, problem.rank)

    def explicit(Q, b):
        free = apply(L_inverse, Q)  # L^T M^-1 Q
        pulled = apply(B_plus, b - apply(B, free))
        Q_c = np.linalg.solve(L_inverse, pulled[..., None])[..., 0]  # L B^+ (b - A M^-1 Q)
        return transposed(L_inverse, free + pulled), -problem.minimum_norm(Q_c)

    a, lam = linear_solution(problem, stabilized(problem, baumgarte), explicit)
    condition = spread(np.linalg.svd(B, compute_uv=False), problem.rank)
    return Solution(a, lam, problem.rank, condition, problem.dependent)
