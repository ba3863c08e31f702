"""Input and output of a formulation, for a batch of states, in plain NumPy.

All formulations solve M a + G^T lambda = tau - h, G a = wanted, where `wanted` is gamma with or without stabilisation.
Each is a linear map (force, wanted) -> (a, lambda), so one step of iterative refinement on the residual removes its
rounding errors: with the constraint forces subtracted, small inertias get their digits back (`linear_solution`).
"""
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from liedyn.machine.arguments import floats, non_negative
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError, SingularConfigurationError, shown
from liedyn.machine.linalg.ranks import Ranking
from liedyn.mechanics.constraints.cluster_weights import pseudoinverse, ranking, ranks_by
from liedyn.mechanics.constraints.undefined import require_rows
from liedyn.mechanics.dynamics.nullspace import OK
from liedyn.mechanics.dynamics.state import StateTerms
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.model.calls.boundary import require_usable

REGULAR = 1.0 / np.finfo(np.float64).eps
"""Condition number above which a matrix counts as singular in floating point."""

OTHERS = "'nullspace', 'svd', 'kane', 'unified', or 'projection' with inertia=\"M_c''\""
"""Formulations that do not invert the inertia of the open tree."""


@dataclass(frozen=True)
class Problem:
    """Dense terms of a batch of states; the first axis is the state.

    Attributes
    ----------
    robot : Robot
    q, v, tau : ndarray, shape (count, nq or nv)
    f_ext : ndarray, shape (count, 6 links or 0)
    ranking : Ranking
        Rule for ranks (`liedyn.machine.linalg.ranks`).
    M, h, G, residual, psi, gamma : ndarray
        As `terms_kernel` returns them.
    rank : ndarray of int, shape (count,)
    order : ndarray of int, shape (count, m)
        Rows of G, independent ones first.
    ratio : ndarray, shape (count,)
        Largest weighted pivot of G, at least 1, divided by the smallest: large near singular configurations.
    """

    robot: object
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    f_ext: np.ndarray
    ranking: Ranking
    M: np.ndarray
    h: np.ndarray
    G: np.ndarray
    residual: np.ndarray
    psi: np.ndarray
    gamma: np.ndarray
    rank: np.ndarray
    order: np.ndarray
    ratio: np.ndarray

    @cached_property
    def G_plus(self):
        """The Moore-Penrose inverse of G, shape (count, nv, m)."""
        return pseudoinverse(self.G, self.rank)

    @property
    def dependent(self):
        """Numbers of the dependent rows, at the last state."""
        return tuple(sorted(int(k) for k in self.order[-1][self.rank[-1]:]))

    def minimum_norm(self, force):
        """The shortest multipliers with G^T lambda = force."""
        return np.where(self.G.any(axis=-1), transposed(self.G_plus, force), 0.0)  # no rounding errors in inactive rows


@dataclass(frozen=True)
class Solution:
    """Output of every formulation, state by state; the base of `ForwardDynamics`."""

    a: np.ndarray
    lam: np.ndarray
    rank: np.ndarray
    condition: np.ndarray
    dependent: tuple = ()  # numbers of the dependent rows, at the last state
    independent: tuple = ()
    singular_values: np.ndarray | None = None
    indicator: np.ndarray | None = None


def problem(robot, lead, q, v, tau, f_ext, tolerance):
    """Terms of each state of a batch with leading shape `lead`."""
    terms = [np.array(x) for x in zip(*(terms_kernel(robot.packed, *state) for state in zip(q, v, f_ext)))]
    raise_errors(robot.functions)
    require_rows(robot, lead, *terms[2:])
    by = ranking(robot, tolerance)
    return Problem(robot, q, v, tau, f_ext, by, *terms, *ranks_by(by, terms[2]))


def of_each_state(problem, kernel, option, more=()):
    """Accelerations, multipliers and ranks from a kernel of dense terms with its gains.

    It also fills a row of each array in `more`.
    """
    count, m, n = problem.G.shape
    a, lam, rank = np.empty((count, n)), np.empty((count, m)), np.empty(count, int)
    terms = StateTerms(problem.M, problem.h, problem.G, problem.residual, problem.psi, problem.gamma)
    for b in range(count):
        status, rank[b] = kernel(StateTerms(*(x[b] for x in terms)), problem.tau[b], option, problem.ranking, a[b],
                                 lam[b], *(x[b] for x in more))
        if status != OK:
            raise no_inertia(problem, b)
    return a, lam, rank


def spread(values, rank):
    """Largest of the first `rank` singular values divided by the smallest; 1 for rank 0."""
    values = np.concatenate([np.ones((len(values), 1)), values], axis=1)
    return np.where(rank > 0, values[:, min(1, values.shape[1] - 1)], 1.0) / values[np.arange(len(rank)), rank]


def apply(A, x):
    """A x, for each state."""
    return np.einsum("bij,bj->bi", A, x)


def transposed(A, x):
    """A^T x, for each state."""
    return np.einsum("bji,bj->bi", A, x)


def linear_solution(problem, wanted, solve):
    """(a, lambda) by `solve(force, wanted)`, with one refinement on the residual."""
    force = problem.tau - problem.h
    a, lam = solve(force, wanted)
    left = force - apply(problem.M, a) - transposed(problem.G, lam)
    more_a, more_lam = solve(left, wanted - apply(problem.G, a))
    return a + more_a, lam + more_lam


def stabilized(problem, baumgarte):
    """gamma - 2 alpha psi - beta^2 residual, for `baumgarte` = (alpha, beta); gamma for None."""
    alpha, beta = gains(baumgarte)
    return problem.gamma - 2.0 * alpha * problem.psi - beta ** 2 * problem.residual


def gains(baumgarte):
    """(alpha, beta) [1/s]; (0, 0), no stabilisation, for None."""
    if baumgarte is None:
        return 0.0, 0.0
    pair = floats("baumgarte", baumgarte)
    if pair.shape != (2,):
        raise InputError(f"baumgarte must be two numbers (alpha, beta), got {shown(baumgarte)}")
    require_usable("baumgarte", pair)
    alpha, beta = pair.tolist()
    return non_negative("baumgarte alpha", alpha), non_negative("baumgarte beta", beta)


def require_regular_tree(robot, method, instead=OTHERS):
    """SingularConfigurationError for massless bodies held by loops only: a method that inverts M cannot treat them."""
    if robot.singular_tree:
        raise SingularConfigurationError(
            f"{method} inverts the mass matrix of the open tree, but that of {robot.name!r} is singular: nothing "
            f"resists the motion of {', '.join(robot.singular_tree)}, which only the constraints hold; use "
            f"{instead}", np.zeros(1))


def no_inertia(problem, b):
    """The error for state b, where some motion that the constraints permit has no inertia."""
    _, _, Vt = np.linalg.svd(problem.G[b])
    K = Vt[problem.rank[b]:].T
    return SingularConfigurationError(
        f"no inertia resists some motion of {problem.robot.name!r} that its constraints allow: K^T M K is not positive "
        "definite", np.linalg.svd(K.T @ problem.M[b] @ K, compute_uv=False))
