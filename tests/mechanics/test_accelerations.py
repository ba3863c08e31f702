"""Constrained accelerations in place against the general null-space kernel and a dense solution of the KKT system."""

import numpy as np
import pytest
from closed_chains import closed_mechanism, moving_state
from tree_cases import bundled as robot_named

from liedyn.mechanics.constraints import close, constraint_bias, constraint_jacobian
from liedyn.mechanics.constraints.independent import choose
from liedyn.mechanics.dynamics.nullspace import (
    OK, RANK_TOLERANCE, SINGULAR_INERTIA, acceleration_kernel, acceleration_size, nullspace_kernel, solve_accelerations,
    solve_multipliers, solve_size,
)
from liedyn.mechanics.dynamics.state import Terms
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.mechanics.tree import crba, rnea
from liedyn.model import Builder
from liedyn.model.calls.boundary import wrenches
from liedyn.model.kinds import LOOP_KINDS

MACHINES = ["four_bar", "parallel_four_bar", "five_bar", "loader", "stewart", "parallel_five_bar", "delta",
            "cassie_like", "panda", "talos"]
NONE = np.empty(0)


def accelerations(robot, q, v, tau, f_ext=NONE):
    """a, lam, rank and ratio; the workspace holds rubbish before, and ends in a guard."""
    size = acceleration_size(robot.packed)
    work = np.full(size + 64, np.pi)
    a, lam = np.full(robot.nv, np.nan), np.full(len(robot.row_names), np.nan)
    status, rank, ratio = acceleration_kernel(robot.packed, q, v, tau, f_ext, RANK_TOLERANCE, work, a, lam)
    assert status == OK and (work[size:] == np.pi).all()
    return a, lam, rank, ratio


def kkt(M, h, G, gamma, tau):
    """a and the shortest lambda by the singular value decomposition of the whole system."""
    n, m = len(M), len(G)
    scale = np.linalg.norm(M)
    whole = np.block([[M / scale, G.T], [G, np.zeros((m, m))]])
    x = np.linalg.lstsq(whole, np.concatenate([(tau - h) / scale, gamma]), rcond=1e-12)[0]
    return x[:n], scale * x[n:]


def agree(robot, q, tolerance, f_ext=None):
    v, tau = moving_state(robot, q)
    f_ext = wrenches(robot, f_ext, ())[0]
    a, lam, rank, ratio = accelerations(robot, q, v, tau, f_ext)
    chosen = choose(robot, q, "tangent", RANK_TOLERANCE)
    general = nullspace_kernel(robot.packed, q, v, tau, f_ext, chosen.rows, chosen.virtual, RANK_TOLERANCE)
    assert rank == general[1] and 0.0 < ratio <= 1.0
    assert np.abs(a - general[3]).max() < tolerance * np.abs(a).max()
    assert np.abs(lam - general[4]).max(initial=0.0) < tolerance * np.abs(lam).max(initial=1.0)
    return v, tau, a, lam


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_every_cut_joint(kind):
    robot, q = closed_mechanism(kind)
    v, tau, a, lam = agree(robot, q, 1e-11, {"a0": [1.0, -2.0, 3.0, 4.0, 5.0, -6.0]})
    v, tau, a, lam = agree(robot, q, 1e-11)
    M, h, G = crba.crba(robot, q), rnea.rnea(robot, q, v, 0 * v), constraint_jacobian(robot, q)
    by_kkt = kkt(M, h, G, constraint_bias(robot, q, v), tau)
    assert np.abs(a - by_kkt[0]).max() < 1e-10 * np.abs(a).max()
    assert np.abs(lam - by_kkt[1]).max() < 1e-10 * np.abs(lam).max()


@pytest.mark.parametrize("name", MACHINES)
def test_bundled_machines(name):
    """Some have bodies of 1e-11 kg m^2 beside bodies of 1 kg m^2, and forces balance to rounding in the latter."""
    robot = robot_named(name)
    v, tau, a, lam = agree(robot, robot.home.copy(), 1e-9)
    M, h = crba.crba(robot, robot.home), rnea.rnea(robot, robot.home, v, 0 * v)
    left = M @ a + h + constraint_jacobian(robot, robot.home).T @ lam - tau
    assert np.abs(left).max() < 1e-12 * max(np.abs(tau).max(), np.abs(M).max() * np.abs(a).max())


def test_terms_are_those_of_the_recursions():
    robot, q = closed_mechanism("universal")
    v, _ = moving_state(robot, q)
    f_ext = wrenches(robot, {"b1": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}, ())[0]
    M, h, G, residual, psi, gamma = terms_kernel(robot.packed, q, v, f_ext)
    assert np.abs(M - crba.crba(robot, q)).max() < 1e-13 * np.abs(M).max()
    expected = rnea.rnea(robot, q, v, 0 * v, {"b1": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    assert np.abs(h - expected).max() < 1e-12 * np.abs(expected).max()
    assert np.abs(residual).max() < 1e-12 and np.abs(psi).max() < 1e-12
    # world poses come link by link there and by columns here: other products and sums fuse
    assert np.abs(G - constraint_jacobian(robot, q)).max() < 1e-14 * np.abs(G).max()
    assert np.abs(gamma - constraint_bias(robot, q, v)).max() < 1e-12 * np.abs(gamma).max()


def solved(robot, M, h, G, gamma, tau):
    work, a, lam = np.full(solve_size(robot.packed) + 8 * G.size + 1000, np.nan), np.empty(len(h)), np.empty(len(gamma))
    status, rank, _ = solve_accelerations(robot.packed, Terms(M, h, G, gamma), tau, RANK_TOLERANCE, work, a)
    solve_multipliers(robot.packed, work, lam)
    return status, rank, a, lam


def test_zero_and_repeated_rows():
    """Rows of constraints that are switched off are zero, and so are their multipliers; repeated rows share theirs."""
    robot = robot_named("stewart")
    v, tau = moving_state(robot, robot.home)
    M, h, G, _, _, gamma = terms_kernel(robot.packed, robot.home.copy(), v, NONE)
    off = slice(3, 9)
    G[off], gamma[off] = 0.0, 0.0
    G[12], gamma[12] = 2.0 * G[0], 2.0 * gamma[0]
    status, rank, a, lam = solved(robot, M, h, G, gamma, tau)
    assert status == OK and rank == 11 and (lam[off] == 0.0).all()
    assert lam[12] == pytest.approx(2.0 * lam[0], rel=1e-12)
    by_kkt = kkt(M, h, G, gamma, tau)
    assert np.abs(a - by_kkt[0]).max() < 1e-10 * np.abs(a).max()
    assert np.abs(lam - by_kkt[1]).max() < 1e-10 * np.abs(lam).max()
    status, rank, a, lam = solved(robot, M, h, 0.0 * G, 0.0 * gamma, tau)
    assert status == OK and rank == 0 and (lam == 0.0).all()
    assert np.abs(M @ a + h - tau).max() < 1e-12 * np.abs(tau).max()


def corrected(robot, q, gamma_shift):
    v, tau = moving_state(robot, q)
    M, h, G, _, _, gamma = terms_kernel(robot.packed, q, v, NONE)
    status, _, a, _ = solved(robot, M, h, G, gamma + gamma_shift, tau)
    assert status == OK
    return G @ a - gamma


def test_corrected_right_hand_sides():
    """Baumgarte's correction is whatever the caller adds to gamma."""
    robot, q = closed_mechanism("revolute")
    shift = np.array([1.0, -2.0, 3.0, 0.5, 0.0])
    assert np.abs(corrected(robot, q, shift) - shift).max() < 1e-12


def massless_link():
    """A crank and a rocker on a coupler without mass: M is singular, K^T M K is not."""
    builder = Builder("massless coupler")
    for body, mass in (("crank", 1.0), ("coupler", 0.0), ("rocker", 1.0)):
        builder.body(body, mass, [0.5, 0.0, 0.0], mass * np.diag([0.0, 0.1, 0.1]))
    builder.joint("q1", "revolute", "ground", "crank", axis=[0, 1, 0])
    builder.joint("q2", "revolute", "crank", "coupler", placement=[1.0, 0.0, 0.0], axis=[0, 1, 0])
    builder.joint("q3", "revolute", "ground", "rocker", placement=[2.0, 0.0, 0.0], axis=[0, 1, 0])
    builder.loop("pin", "revolute", "coupler", "rocker", parent_placement=[2.0, 0.0, 0.0],
                 child_placement=[1.0, 0.0, 0.0], axis=[0, 1, 0])
    return builder


def test_massless_bodies_that_constraints_hold():
    robot = massless_link().build()
    q = np.array([-1.0, 1.0, -1.0])
    assert np.linalg.matrix_rank(crba.crba(robot, q)) == 2
    agree(robot, q, 1e-11)


def test_motion_without_mass_is_reported():
    robot = robot_named("five_bar")
    v, tau = moving_state(robot, robot.home)
    M, h, G, _, _, gamma = terms_kernel(robot.packed, robot.home.copy(), v, NONE)
    assert solved(robot, 0.0 * M, h, G, gamma, tau)[0] == SINGULAR_INERTIA
    assert solved(robot, 0.0 * M, h, 0.0 * G, gamma, tau)[0] == SINGULAR_INERTIA


def test_ratio_falls_towards_a_singular_configuration():
    """The five-bar of the thesis (example 1) with all links on one line, in relative angles as in the errata."""
    robot = robot_named("five_bar")
    flat, nothing = np.array([np.pi, -np.pi, 0.0, np.pi]), np.zeros(4)
    assert accelerations(robot, flat, nothing, nothing)[2] == 1
    ratios = []
    for turn in (1e-1, 1e-2, 1e-3):
        q = close(robot, flat + np.array([0.0, 1.0, -1.0, 1.0]) * turn, q1=np.pi - turn)
        _, _, rank, ratio = accelerations(robot, q, nothing, nothing)
        assert rank == 2
        ratios.append(ratio)
    assert ratios == pytest.approx([0.06, 0.006, 0.0006], rel=0.02)
