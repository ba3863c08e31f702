"""Clusters of constraints: which there are, and that solving them apart changes nothing."""
import numpy as np
import pytest
from mechanisms import Unpacked
from tree_cases import bundled

import liedyn as ld
from liedyn.mechanics.dynamics.nullspace import OK, RANK_TOLERANCE, acceleration_kernel, acceleration_size
from liedyn.model import Builder


def small_loops(count, branching=1, tied=False):
    """Parallelograms, each on the coupler of an earlier one; `tied` by a coupling of the cranks that is off."""
    builder = Builder("small_loops", gravity=(0.3, -9.81, 0.0))
    for k in range(count):
        base, at = ("ground", 0.0) if k == 0 else (f"coupler{(k - 1) // branching}", 0.3 + 0.2 * (k % branching))
        for name, mass in (("crank", 1.0), ("coupler", 2.0), ("rocker", 1.5)):
            builder.body(f"{name}{k}", mass + 0.1 * k, (0.25, 0.01, 0.02), (0.02, 0.03, 0.04))
        builder.joint(f"a{k}", "revolute", base, f"crank{k}", (at, 0.0, 0.0), damping=0.1)
        builder.joint(f"b{k}", "revolute", f"crank{k}", f"coupler{k}", (0.5, 0.0, 0.0), stiffness=2.0)
        builder.joint(f"c{k}", "revolute", base, f"rocker{k}", (at + 0.6, 0.0, 0.0))
        builder.loop(f"pin{k}", "revolute", f"coupler{k}", f"rocker{k}", (0.6, 0.0, 0.0), (0.5, 0.0, 0.0))
    if tied:
        builder.constraint("tie", "coupling", coefficients={f"a{k}": 1.0 for k in range(count)}, active=False)
    return builder.build()


def closed_state(robot, seed=0):
    """Parallelograms are closed where crank and rocker make the same angle, and the coupler turns back by it."""
    rng = np.random.default_rng(seed)
    q, v = np.empty(robot.nv), np.empty(robot.nv)
    for k in range(robot.nv // 3):
        angle, speed = rng.uniform(0.5, 1.2), rng.normal()
        for name, sign in (("a", 1.0), ("b", -1.0), ("c", 1.0)):
            j = robot.velocity_index(f"{name}{k}")
            q[j], v[j] = sign * angle, sign * speed
    return q, v, ld.rnea(robot, q, v, rng.normal(size=robot.nv))


def accelerations(robot, q, v, tau):
    work = np.full(acceleration_size(robot.packed), 1e300)
    a, lam = np.empty(robot.nv), np.empty(len(robot.row_names))
    status, rank, ratio = acceleration_kernel(robot.packed, q, v, tau, np.empty(0), RANK_TOLERANCE, work, a, lam)
    assert status == OK and 0.0 < ratio <= 1.0
    return a, lam, rank


def off(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("name, sizes", [
    ("panda", [(0, 7)]), ("five_bar", [(5, 4), (0, 0)]), ("stewart", [(18, 24), (0, 0)]),
    ("cassie_like", [(6, 8), (6, 8), (0, 3)]), ("shopping_cart", [(3, 4), (0, 0)])])
def test_clusters_of_robots(name, sizes):
    assert [tuple(record[:2]) for record in Unpacked(bundled(name)).clusters] == sizes


def test_records_are_a_partition():
    robot = small_loops(7, branching=2)
    rows, dofs = [], []
    for n_rows, n_dofs, at_rows, at_dofs in Unpacked(robot).clusters:
        rows.append(robot.packed.ints[at_rows:at_rows + n_rows])
        dofs.append(robot.packed.ints[at_dofs:at_dofs + n_dofs])
    assert len(rows) == 8 and sorted(np.concatenate(rows)) == list(range(35))
    assert sorted(np.concatenate(dofs)) == list(range(21)) and len(dofs[-1]) == 0
    G = ld.constraint_jacobian(robot, closed_state(robot)[0])
    for of_rows, of_dofs in zip(rows, dofs):
        assert not G[np.ix_(of_rows, np.setdiff1d(np.arange(21), of_dofs))].any()


@pytest.mark.parametrize("count, branching", [(1, 1), (2, 1), (9, 1), (24, 1), (10, 3)])
def test_small_loops(count, branching):
    """One cluster or many: the same accelerations, multipliers and matrices. Redundant rows are those of each loop."""
    robot, tied = small_loops(count, branching), small_loops(count, branching, tied=True)
    assert tied.packed.ints[16] == 2 and robot.packed.ints[16] == count + 1
    q, v, tau = closed_state(robot)
    (a, lam, rank), (a_tied, lam_tied, rank_tied) = accelerations(robot, q, v, tau), accelerations(tied, q, v, tau)
    assert rank == rank_tied == 2 * count
    assert off(a, a_tied) < 1e-12 and off(lam, lam_tied[:-1]) < 1e-12 and lam_tied[-1] == 0.0
    names = [f"a{k}" for k in range(count - 1, -1, -1)]
    ss, of_tied = ld.linearize(robot, q, v, tau, independent=names), ld.linearize(tied, q, v, tau, independent=names)
    for mine, other in ((ss.A, of_tied.A), (ss.B, of_tied.B), (ss.f0, of_tied.f0), (ss.K, of_tied.K)):
        assert off(mine, other) < 1e-12
    assert off(ss.condition, of_tied.condition) < 1e-12
    assert off(ss.a, a) < 1e-11  # solved in other coordinates
    left = ld.crba(robot, q) @ a + ld.rnea(robot, q, v, 0 * v) - tau + ld.constraint_jacobian(robot, q).T @ lam
    assert np.abs(left).max() < 1e-11 * np.abs(tau).max()


def test_couplings_of_joints_with_dots_in_their_names():
    """A coupling takes its coordinates by their whole names; of a joint of several, those that it names."""
    builder = Builder("dots")
    for name in "abc":
        builder.body(name, 1.0, inertia=(1.0, 1.0, 1.0))
        builder.joint(f"leg.{name}", "cylindrical" if name == "c" else "revolute", "ground", name)
    builder.constraint("gear", "coupling", coefficients={"leg.a": 1.0, "leg.b": -2.0})
    builder.constraint("screw", "coupling", coefficients={"leg.c.angle": 1.0, "leg.c.slide": -1.0})
    robot = builder.build()
    assert [tuple(record[:2]) for record in Unpacked(robot).clusters] == [(1, 2), (1, 2), (0, 0)]
    a = ld.forward_dynamics(robot, np.zeros(4), np.zeros(4), [1.0, 0.0, 3.0, 9.81]).a
    np.testing.assert_allclose(a, [0.8, 0.4, 1.5, 1.5], rtol=1e-14)
