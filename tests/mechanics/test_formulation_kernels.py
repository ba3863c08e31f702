"""The kernels of the formulations on dense terms, as a simulation calls them, against 40-digit solutions."""
import numpy as np
import pytest
from closed_chains import closed_mechanism, moving_state
from constrained_oracle import solve
from tree_cases import bundled

from liedyn.machine.linalg.ranks import Ranking
from liedyn.machine.linalg.row_space import row_space
from liedyn.mechanics.dynamics.multiplier import SINGULAR_MASS, multiplier_kernel
from liedyn.mechanics.dynamics.nullspace import OK, SINGULAR_INERTIA
from liedyn.mechanics.dynamics.state import StateTerms
from liedyn.mechanics.dynamics.svd import svd_kernel
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.mechanics.dynamics.unified import unified_kernel, unified_velocity_kernel
from liedyn.model.kinds import LOOP_KINDS

MACHINES = ["four_bar", "parallel_four_bar", "five_bar", "loader", "stewart", "parallel_five_bar", "delta",
            "cassie_like"]
NO_FORCES = np.empty(0)
TOLERANCE = 1e-8


def moving(name):
    """Terms and forces of a machine or of a mechanism with a cut of one kind, closed and moving."""
    if name in LOOP_KINDS:
        robot, q = closed_mechanism(name)
    else:
        robot = bundled(name)
        q = robot.home.copy()  # for arrays that cannot be written kernels would be compiled again
    v, tau = moving_state(robot, q)
    return terms_kernel(robot.packed, q, v, NO_FORCES), tau


def random_terms(rng, n, m, rank):
    """A well-conditioned M, and m rows of a rank that are nowhere near satisfied."""
    root = rng.normal(size=(n, n))
    G = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    residual, psi, gamma = rng.normal(size=(3, n)) @ G.T
    return StateTerms(root @ root.T + np.eye(n), rng.normal(size=n), G, residual, psi, gamma), rng.normal(size=n)


def plain(G):
    """Ranks of rows and columns that have no units."""
    return Ranking(TOLERANCE, np.ones(G.shape[0]), np.ones(G.shape[1]))


def run(kernel, terms, tau, option):
    m, n = terms[2].shape
    a, lam = np.full(n, np.nan), np.full(m, np.nan)
    more = [np.full((2, m), np.nan)] if kernel is svd_kernel else []
    status, rank = kernel(terms, tau, option, plain(terms[2]), a, lam, *more)
    assert status == OK
    return a, lam, rank, *(row for sizes in more for row in sizes)


def close(actual, expected, tolerance):
    assert np.abs(actual - expected).max(initial=0.0) <= tolerance * max(1.0, np.abs(expected).max(initial=0.0))


CASES = [(multiplier_kernel, (0.0, 0.0)), (svd_kernel, (0.0, 0.0)), (unified_kernel, 0.0)]


@pytest.mark.parametrize("kernel, option", CASES, ids=["multiplier", "svd", "unified"])
@pytest.mark.parametrize("name", MACHINES + list(LOOP_KINDS))
def test_moving_mechanisms(name, kernel, option):
    terms, tau = moving(name)
    M, h, G, _, _, gamma = terms
    a, lam, *_ = run(kernel, terms, tau, option)
    a_exact, lam_exact = solve(M, h, G, gamma, tau)
    # the worst is delta, whose rods have 1e-11 of the inertia of its platform: rounding there is 1e-16 / 1e-11
    # of a force, taken down by what little of it reaches them
    close(a, a_exact, 1e-9)
    close(lam, lam_exact, 1e-9)


@pytest.mark.parametrize("n, m, rank", [(4, 2, 2), (6, 4, 2), (5, 7, 5), (3, 0, 0), (1, 1, 1), (6, 3, 0)])
def test_stabilized_right_sides(n, m, rank):
    """Off the constraints, with every kind of redundancy: locked, redundant, none, all rows zero."""
    terms, tau = random_terms(np.random.default_rng(n + 10 * m), n, m, rank)
    M, h, G, residual, psi, gamma = terms
    wanted = gamma - 2 * 3.0 * psi - 5.0 ** 2 * residual
    for kernel in (multiplier_kernel, svd_kernel):
        a, lam, found, *_ = run(kernel, terms, tau, (3.0, 5.0))
        exact = solve(M, h, G, wanted, tau)
        assert found == rank
        # condition numbers of M and of random rows stay below 1e4
        close(a, exact[0], 1e-11)
        close(lam, exact[1], 1e-10)
    a, lam, *_ = run(unified_kernel, terms, tau, 7.0)
    exact = solve(M, h, G, gamma - 7.0 * psi, tau)
    close(a, exact[0], 1e-11)
    close(lam, exact[1], 1e-10)


@pytest.mark.parametrize("n, m, rank", [(4, 2, 2), (6, 4, 2), (5, 7, 5), (30, 20, 12), (3, 0, 0), (6, 3, 0)])
def test_row_space(n, m, rank):
    rng = np.random.default_rng(n + m)
    G = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    B, V, s = np.empty((n, m)), np.empty((n, n)), np.empty(n)
    assert row_space(G, TOLERANCE, B, V, s) == rank
    expected = np.linalg.svd(G, compute_uv=False)
    close(s[:len(expected)], expected, 1e-13)
    assert (np.diff(s) <= 0).all()
    close(V @ V.T, np.eye(n), 1e-13)
    close(V.T @ B, G.T, 1e-13)
    close(G @ V[rank:].T, np.zeros((m, n - rank)), 1e-13)


def test_unified_velocity():
    """The nearest velocity with A v = b - sigma C; in a rank-deficient set, too."""
    terms, _ = random_terms(np.random.default_rng(5), 6, 4, 2)
    _, _, G, residual, psi, _ = terms
    v = np.random.default_rng(6).normal(size=6)
    fitted = v.copy()
    unified_velocity_kernel(G, residual, psi, 4.0, plain(G), fitted)
    close(psi + G @ (fitted - v), -4.0 * residual, 1e-12)
    close(fitted - v, np.linalg.pinv(G) @ (G @ (fitted - v)), 1e-12)


def test_massless_tree():
    """M singular, K^T M K regular: only the formulation that inverts M refuses; no inertia at all: all refuse."""
    M, G = np.diag([1.0, 0.0]), np.array([[1.0, -1.0]])
    terms, tau = StateTerms(M, np.zeros(2), G, np.zeros(1), np.zeros(1), np.zeros(1)), np.array([1.0, 2.0])
    a, lam = np.empty(2), np.empty(1)
    assert multiplier_kernel(terms, tau, (0.0, 0.0), plain(G), a, lam)[0] == SINGULAR_MASS
    for kernel, option in CASES[1:]:
        a, lam, *_ = run(kernel, terms, tau, option)
        close(a, np.array([3.0, 3.0]), 1e-14)
        close(lam, np.array([-2.0]), 1e-14)
    nothing = terms._replace(M=0.0 * M)
    found = svd_kernel(nothing, tau, (0.0, 0.0), plain(G), np.empty(2), np.empty(1), np.empty((2, 1)))
    assert found[0] == SINGULAR_INERTIA
    assert unified_kernel(nothing, tau, 0.0, plain(G), np.empty(2), np.empty(1))[0] == SINGULAR_INERTIA


def test_indicator():
    """|u_i . Gdot v| by LAPACK, and where a row is lost what of Gdot v the rows left cannot reach."""
    rng = np.random.default_rng(8)
    terms, tau = random_terms(rng, 5, 3, 3)
    U, s, _ = np.linalg.svd(terms[2])
    *_, singular_values, indicator = run(svd_kernel, terms, tau, (0.0, 0.0))
    close(singular_values, s, 1e-13)
    close(indicator, np.abs(U.T @ terms[5]), 1e-12)
    singular = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]])
    terms = StateTerms(np.eye(3), np.zeros(3), singular, np.zeros(2), np.zeros(2), np.array([2.0, -1.0]))
    *_, singular_values, indicator = run(svd_kernel, terms, np.ones(3), (0.0, 0.0))
    close(singular_values, np.array([5.0, 0.0]), 1e-14)
    close(indicator, np.array([0.0, np.sqrt(5.0)]), 1e-14)
