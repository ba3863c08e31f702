"""The Coriolis matrix: forces of velocity by Newton and Euler, dM/dt by Jacobians of bodies, Christoffel's symbols."""
import numpy as np
import pytest
from tree_cases import TREES, off

import liedyn as ld
from liedyn.model.packed import DOF_DAMPING, dofs_of


@pytest.fixture(params=list(TREES))
def tree(request):
    return TREES[request.param]()


def states(robot, seed, size):
    rng = np.random.default_rng(seed)
    return ld.random_configuration(robot, rng, size), rng.normal(size=(size, robot.nv))


def test_it_gives_the_forces_of_velocity(tree):
    q, v = states(tree, 1, 11)
    still, damping = np.zeros_like(v), dofs_of(tree.packed)[1][:, DOF_DAMPING]
    expected = ld.rnea(tree, q, v, still) - ld.rnea(tree, q, still, still) - damping * v
    found = np.einsum("bij,bj->bi", ld.coriolis_matrix(tree, q, v), v)
    # the differences lose what gravity and springs have in common
    assert abs(found - expected).max() < 1e-12 * abs(ld.rnea(tree, q, v, still)).max()


def test_the_rate_of_the_inertia_matrix_is_twice_its_symmetric_part(tree):
    """dM/dt = sum of J_dot^T I J + J^T I J_dot over all bodies, whose inertias are constant in their own axes."""
    q, v = states(tree, 2, 3)
    C, M_dot = ld.coriolis_matrix(tree, q, v), np.zeros((3, tree.nv, tree.nv))
    for body in tree.model.bodies:
        m, c = body.mass, np.cross(np.eye(3), body.com)  # c x
        I = np.block([[body.inertia + m * c @ c.T, m * c], [m * c.T, m * np.eye(3)]])
        J, J_dot = ld.body_jacobian(tree, q, body.name), ld.body_jacobian_dot(tree, q, v, body.name)
        half = J_dot.swapaxes(1, 2) @ I @ J
        M_dot += half + half.swapaxes(1, 2)
    assert off(C + C.swapaxes(1, 2), M_dot) < 1e-13


@pytest.mark.parametrize("name", ["panda", "ur5"])
def test_it_is_that_of_christoffel(name):
    """Then C is linear and symmetric in the velocities, so that the forces C v have the derivative 2 C by v."""
    robot = TREES[name]()
    q, v = states(robot, 3, 5)
    by_v = ld.rnea_derivatives(robot, q, v, 0 * v)[1] - np.diag(dofs_of(robot.packed)[1][:, DOF_DAMPING])
    assert off(2 * ld.coriolis_matrix(robot, q, v), by_v) < 1e-13


def test_one_state_and_rows_in_lanes_agree(tree):
    q, v = states(tree, 4, 7)
    together = ld.coriolis_matrix(tree, q, v)
    assert together.shape == (7, tree.nv, tree.nv)
    for k in range(7):
        assert off(ld.coriolis_matrix(tree, q[k], v[k]), together[k]) < 1e-14


def test_a_reference_velocity_keeps_passivity(tree):
    """s . (dM/dt s / 2 - C s) = 0 for any s, not only for v, as the regulator of Slotine and Li needs it."""
    q, v = states(tree, 5, 4)
    s = np.random.default_rng(6).normal(size=v.shape)
    C = ld.coriolis_matrix(tree, q, v)
    rate = sum(c * (ld.crba(tree, ld.integrate(tree, q, h * v)) - ld.crba(tree, ld.integrate(tree, q, -h * v))) / 0.01
               for h, c in ((0.01, 4 / 5), (0.02, -1 / 5), (0.03, 4 / 105), (0.04, -1 / 280)))
    work = np.einsum("bi,bij,bj->b", s, rate / 2 - C, s)
    # differences of order 8: as in test_energy
    assert abs(work).max() < 1e-8 * abs(np.einsum("bi,bij,bj->b", s, rate, s)).max()
