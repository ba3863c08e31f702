"""Kane's method with embedded constraints (Gillespie 2003, section 4, eq. 3-5 and 43-46).

The generalised speeds are split into p independent ones u_i and dependent ones u_d. Independent rows G_1 = [A B] give

    u_d = D u_i + ...        D = -A^-1 B
    F~ = F_i + D^T F_d        F~* = F_i* + D^T F_d*        F~ + F~* = 0

(the paper's D = A^-1 B holds its constraints with the other sign). F = tau - h are the generalised active forces and
the part of the inertia forces without a, F* = -M a the rest; with a_d = D a_i + A^-1 wanted_1 the last line is p
equations in the independent a_i. The rows of the dependent speeds, the kinetostatic equations, give the forces:
A^T lambda_1 = (tau - h - M a)_d.

Which speeds are independent is chosen by pivoting (best conditioned A), and chosen again where a given choice
brings A near a singularity: the paper's singularity avoidance.
"""
import numpy as np

from liedyn.machine.arguments import non_negative
from liedyn.machine.errors import InputError
from liedyn.machine.linalg.dense import independent_rows
from liedyn.machine.linalg.ranks import Ranking
from liedyn.mechanics.constraints.independent import by_name
from liedyn.mechanics.dynamics.dynamics_problem import REGULAR, Solution, no_inertia, stabilized

CONDITION_LIMIT = 1e4
"""Condition number of A above which other speeds are chosen; 1e4 means that a quarter of the digits is lost."""


def speeds(robot, names):
    """Numbers of the generalised speeds named; None if pivoting chooses."""
    if names is None:
        names = robot.independent or "auto"
        if any(name in robot.virtual_names for name in names):
            return None  # declared for other formulations: the coordinate of a cut is no speed of the tree
    if isinstance(names, str) and names == "auto":
        return None
    chosen = by_name(robot, names)
    if (chosen.virtual >= 0).any():
        raise InputError("Kane's generalised speeds are those of the tree, not of cut joints: "
                         f"{', '.join(name for name in chosen.names if name in robot.virtual_names)}")
    return np.flatnonzero(chosen.rows.any(axis=0))


def split(G_1, wanted, limit, rows, columns):
    """Independent and dependent speeds, and the condition number of A; the speeds `wanted` are used if that is below
    `limit`.

    `rows` and `columns` are weights of G_1 (`liedyn.machine.linalg.ranks`).
    """
    rank, n = G_1.shape
    if wanted is not None and len(wanted) == n - rank:
        dependent = np.setdiff1d(np.arange(n), wanted)
        condition = np.linalg.cond(G_1[:, dependent]) if rank else 1.0
        if condition <= limit:
            return np.asarray(wanted), dependent, condition
    order = independent_rows(np.ascontiguousarray(G_1.T), Ranking(0.0, columns, rows))[1]
    dependent = np.sort(order[:rank])
    return np.sort(order[rank:]), dependent, (np.linalg.cond(G_1[:, dependent]) if rank else 1.0)


def embed(M, force, wanted, A, D, i, d):
    """(a, lambda_1): p equations for the independent accelerations, then the kinetostatic ones. None if singular."""
    n, p = len(force), len(i)
    K, a = np.zeros((n, p)), np.zeros(n)
    K[i], K[d] = np.eye(p), D
    a[d] = np.linalg.solve(A, wanted)
    inertia = K.T @ M @ K
    if p and not np.linalg.cond(inertia) < REGULAR:
        return None
    a += K @ np.linalg.solve(inertia, K.T @ (force - M @ a))
    return a, np.linalg.solve(A.T, (force - M @ a)[d])


def solve(problem, independent=None, condition_limit=CONDITION_LIMIT, baumgarte=None):
    """Accelerations by constraint embedding; `condition` is that of A."""
    robot, wanted = problem.robot, stabilized(problem, baumgarte)
    of_rows, of_columns = problem.ranking[1:]
    chosen, limit = speeds(robot, independent), non_negative("condition_limit", condition_limit)
    a, constraint_force, condition = np.empty_like(problem.h), np.empty_like(problem.h), np.empty(len(problem.h))
    for b, M in enumerate(problem.M):
        rows = problem.order[b][:problem.rank[b]]
        G_1 = problem.G[b][rows]
        i, d, condition[b] = split(G_1, chosen, limit, of_rows[rows], of_columns)
        A = G_1[:, d]
        D = -np.linalg.solve(A, G_1[:, i])
        force, aim, found = problem.tau[b] - problem.h[b], wanted[b][rows], np.zeros(robot.nv)
        lam_1 = np.zeros(len(rows))
        for _ in range(2):  # the second pass removes rounding errors of the first, as in `linear_solution`
            more = embed(M, force - M @ found - G_1.T @ lam_1, aim - G_1 @ found, A, D, i, d)
            if more is None:
                raise no_inertia(problem, b)
            found, lam_1 = found + more[0], lam_1 + more[1]
        a[b], constraint_force[b] = found, G_1.T @ lam_1
    names = tuple(robot.velocity_names[k] for k in i)
    return Solution(a, problem.minimum_norm(constraint_force), problem.rank, condition, problem.dependent, names)
