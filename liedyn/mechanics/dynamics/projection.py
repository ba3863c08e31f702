"""Projection onto the admissible motions (Aghili 2005, sections II-V), at dense terms.

With a metric tensor W of the velocities, a velocity is split into v = P v + (I - P) v and a force into
f = P^T f + (I - P)^T f. For W = 1, P is symmetric and the equations are as printed; in general the printed ones hold
for W^1/2 v and W^-1/2 f (section VII-B), and those here are transformed back to v and f:

    P = I - A^# A        A^# = W^-1/2 (A W^-1/2)^+                                         (5, 8, 15)
    (I - P) a = C v = A^# gamma                                                            (13, 16)
    M_c a = P^T (f - h) + C_c v        the f that moves is P^T f alone                     (22)

    M_c   = M + P^T M - M P                     C_c v = M C v                              (23, 24)
    M_c'  = P^T M P + (I - P)^T M (I - P)       C_c' v = (I - 2 P)^T M C v                 (27, 28)
    M_c'' = P^T M + s W (I - P)                 C_c'' v = s W C v                          (29)

    G^T lambda = (I - P)^T (f - h) - mu (P^T (f - h) + C_c v)        mu = (I - P)^T M M_c^-1    (32)

All three give the exact constrained acceleration; (32) follows with the M_c, C_c of any of them. s is printed as gamma.
"""
import numpy as np

from liedyn.machine.arguments import floats, one_of, positive
from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.constraints.cluster_weights import pseudoinverse
from liedyn.mechanics.dynamics.dynamics_problem import (
    REGULAR, Solution, apply, linear_solution, no_inertia, require_regular_tree, stabilized, transposed,
)
from liedyn.model.calls.boundary import is_usable

FORMS = ("M_c", "M_c'", "M_c''")
"""The three constraint inertia matrices: positive definite; also symmetric; cheapest, and regular for singular M."""


def metric_tensor(metric, M):
    """W (count, n, n): the identity for None, a diagonal, a matrix, or "inertia" for M itself; InputError for other
    values, or if it is not symmetric and positive definite."""
    count, n = M.shape[:2]
    if metric is None:
        return np.broadcast_to(np.eye(n), M.shape)
    if isinstance(metric, str):
        if metric != "inertia":
            raise InputError(f"unknown metric {shown(metric)}; there is 'inertia', or give numbers")
        return M
    return np.broadcast_to(metric_matrix(metric, n), M.shape)


def metric_matrix(metric, n):
    """A metric tensor (n, n) from its diagonal or all of it; InputError if it has another shape, or is not symmetric
    and positive definite."""
    W = floats("metric", metric)
    if W.shape == (n,):
        W = np.diag(W)
    if W.shape != (n, n):
        raise InputError(f"metric must have shape ({n},) or ({n}, {n}), got {W.shape}")
    if not (is_usable(W).all() and np.allclose(W, W.T, rtol=1e-12, atol=0.0) and np.linalg.eigvalsh(W)[0] > 0.0):
        raise InputError(f"metric must be symmetric and positive definite, got {shown(W.tolist())}")
    return W


def weighted_inverse(G, rank, W):
    """A^#, the generalized inverse that gives the shortest solution in the metric W."""
    L_inverse_T = np.swapaxes(np.linalg.inv(np.linalg.cholesky(W)), -1, -2)
    return L_inverse_T @ pseudoinverse(G @ L_inverse_T, rank)


def inertia_matrix(M, P, W, form, scale=None):
    """M_c, M_c' or M_c''; `scale` is that of M_c'', by default the size of M in the metric W."""
    one_of("constraint inertia matrix", form, FORMS)
    Pt, n = np.swapaxes(P, -1, -2), M.shape[-1]
    if form == "M_c":
        return M + Pt @ M - M @ P
    if form == "M_c'":
        rest = np.eye(n) - P
        return Pt @ M @ P + np.swapaxes(rest, -1, -2) @ M @ rest
    return Pt @ M + size(M, W, scale)[:, None, None] * W @ (np.eye(n) - P)


def size(M, W, scale):
    """The number s of M_c'' for each state: `scale`, or ||M|| / ||W||, which gives both parts of M_c'' equal size."""
    if scale is None:
        return np.linalg.norm(M, axis=(1, 2)) / np.linalg.norm(W, axis=(1, 2))
    return np.full(len(M), positive("scale", scale))


def constraint_part(M, P, W, form, Cv, scale=None):
    """C_c v, C_c' v or C_c'' v, given C v."""
    MCv = apply(M, Cv)
    if form == "M_c":
        return MCv
    if form == "M_c'":
        return MCv - 2.0 * transposed(P, MCv)
    return size(M, W, scale)[:, None] * apply(W, Cv)


def solve(problem, inertia="M_c", metric=None, scale=None, baumgarte=None):
    """Accelerations and constraint forces by projection; `condition` is that of the constraint inertia matrix."""
    one_of("constraint inertia matrix", inertia, FORMS)
    if inertia != "M_c''" or isinstance(metric, str):
        require_regular_tree(problem.robot, f"'projection' with {inertia}")
    M, W = problem.M, metric_tensor(metric, problem.M)
    G_sharp = weighted_inverse(problem.G, problem.rank, W)
    P = np.eye(problem.robot.nv) - G_sharp @ problem.G
    M_c = inertia_matrix(M, P, W, inertia, scale)
    condition = np.linalg.cond(M_c) if M_c.size else np.ones(len(M))
    if not (condition < REGULAR).all():
        raise no_inertia(problem, int(np.argmax(~(condition < REGULAR))))

    def projected(force, wanted):
        active = transposed(P, force)
        right = active + constraint_part(M, P, W, inertia, apply(G_sharp, wanted), scale)
        a = np.linalg.solve(M_c, right[..., None])[..., 0]
        passive = force - apply(M, a)  # (32): mu times `right` is (I - P)^T M a
        return a, problem.minimum_norm(passive - transposed(P, passive))

    a, lam = linear_solution(problem, stabilized(problem, baumgarte), projected)
    return Solution(a, lam, problem.rank, condition, problem.dependent)
