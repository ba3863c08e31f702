"""Holonomic, nonholonomic and moving constraints on one level (Yun and Sarkar 1998, section IV).

Every constraint is imposed on velocities, the holonomic ones with a term that reduces their residual C (eq. 17 and 20),

    A v = b - sigma C        v = S eta + xi        S = null space of A,  xi = A^+ (b - sigma C)

so that C decays like exp(-sigma t) from any initial state, also one that violates the constraints. Differentiated (eq.
37-39),

    A a = gamma - sigma psi        zeta = A^+ (gamma - sigma psi)        a = S eta_dot + zeta
    S^T M S eta_dot = S^T (tau - h - M zeta)                             (28)

which makes psi = A v - b decay like exp(-sigma t) in every row, exactly, for any initial state. An initial velocity
that does not satisfy A v = b - sigma C is corrected first: `unified_velocity_kernel` (eq. 36, in the least-squares
sense).
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import non_negative
from liedyn.machine.compiled.jit import kernel
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import of_the_batch
from liedyn.machine.linalg.dense import independent_rows
from liedyn.machine.linalg.row_space import row_space, shortest_solution
from liedyn.mechanics.constraints.cluster_weights import ranking
from liedyn.mechanics.constraints.undefined import require_rows
from liedyn.mechanics.dynamics.dynamics_problem import Solution, of_each_state, spread
from liedyn.mechanics.dynamics.nullspace import OK, RANK_TOLERANCE, SINGULAR_INERTIA
from liedyn.mechanics.dynamics.state import Terms
from liedyn.mechanics.dynamics.svd import RowSpace, tangent_accelerations
from liedyn.mechanics.dynamics.terms import terms_kernel, velocity_level_rows
from liedyn.model.calls.boundary import states

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike

NO_FORCES = np.empty(0)


@kernel
def unified_kernel(terms, tau, sigma, ranking, a, lam):
    """Accelerations a (n) and minimum-norm multipliers lam (m); returns (status, rank).

    `terms` are those of `terms_kernel`.
    """
    G, (m, n) = terms.G, terms.G.shape
    B, V, s = np.empty((n, m)), np.empty((n, n)), np.empty(n)
    rank = independent_rows(G, ranking)[0]
    row_space(G, 0.0, B, V, s)
    wanted = np.empty(m)
    velocity_level_rows(terms.psi, terms.gamma, sigma, wanted)
    if tangent_accelerations(Terms(terms.M, terms.h, G, wanted), tau, RowSpace(B, V, s, rank), a, lam):
        return OK, rank
    return SINGULAR_INERTIA, rank


@kernel
def unified_velocity_kernel(G, residual, psi, sigma, ranking, v):
    """Replace v by the nearest velocity with A v = b - sigma C; psi belongs to the old v, and is not updated."""
    m, n = G.shape
    B, V, s = np.empty((n, m)), np.empty((n, n)), np.empty(n)
    rank = independent_rows(G, ranking)[0]
    row_space(G, 0.0, B, V, s)
    excess, change = np.empty(m), np.empty(n)
    for k in range(m):
        excess[k] = psi[k] + sigma * residual[k]
    shortest_solution(B, V, s, rank, excess, change)
    for i in range(n):
        v[i] -= change[i]


def solve(problem, sigma=0.0):
    """`unified_kernel` on every state."""
    a, lam, rank = of_each_state(problem, unified_kernel, non_negative("sigma", sigma))
    values = np.linalg.svd(problem.G, compute_uv=False)
    return Solution(a, lam, rank, spread(values, rank), problem.dependent)


def unified_velocity(robot: Robot, q: ArrayLike, v: ArrayLike, sigma: float,
                     rank_tolerance: float = RANK_TOLERANCE) -> Array:
    """Velocity nearest to v from which violated constraints decay like exp(-sigma t).

    Parameters
    ----------
    robot : Robot
        At the time of ``robot.at(t)``, if constraints move.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)]; it need not satisfy the constraints.
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s]; it need not satisfy the constraints.
    sigma : float
        Rate [1/s] of ``dC/dt = -sigma C``.
    rank_tolerance : float
        Singular values of the constraint rows below this fraction of the largest one count as zero.

    Returns
    -------
    v : ndarray, shape (..., nv)
        With ``A v = b - sigma C``, in the least-squares sense if the rows contradict each other.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a quaternion is not of unit length, or sigma is negative.

    Notes
    -----
    Yun and Sarkar 1998, eq. 36 and step 3 of section IV-B, without a basis: ``v - A^+ (A v - b + sigma C)``.

    Examples
    --------
    >>> import liedyn as ld
    >>> five_bar = ld.load("five_bar")
    >>> q = five_bar.home + [0.01, 0, 0, 0]
    >>> v = ld.dynamics.unified_velocity(five_bar, q, [0.0] * 4, sigma=5.0)
    >>> G, g = ld.constraint_jacobian(five_bar, q), ld.closure_error(five_bar, q)
    >>> bool(abs(G @ v + 5.0 * g).max() < 1e-12)
    True
    """
    sigma = non_negative("sigma", sigma)
    lead, q, v = states(robot, q=q, v=v)
    out, rank_tolerance = v.copy(), non_negative("rank_tolerance", rank_tolerance)
    for b in range(len(q)):
        _, _, G, residual, psi, _ = terms_kernel(robot.packed, q[b], v[b], NO_FORCES)
        raise_errors(robot.functions)
        with of_the_batch(lead, b):
            require_rows(robot, (), G[None], psi[None])
        unified_velocity_kernel(G, residual, psi, sigma, ranking(robot, rank_tolerance), out[b])
    return out.reshape(lead + out.shape[1:])
