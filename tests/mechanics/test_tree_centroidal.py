"""The centroidal momentum matrix and its rate: Pinocchio, momentum, differences, the laws of Newton and Euler."""
import numpy as np
import pytest
from pinocchio_models import against_pinocchio, pin_model
from test_energy import rate, springy_tree, unwound
from tree_cases import TREES, off

import liedyn as ld
from liedyn import centroidal_momentum_matrix, centroidal_momentum_matrix_dot


@pytest.fixture(params=list(TREES))
def tree(request):
    return TREES[request.param]()


@against_pinocchio("centroidal momentum matrix and its rate")
def test_against_pinocchio(tree):
    oracle, rng = pin_model(tree), np.random.default_rng(1)
    for _ in range(5):
        q, v = ld.random_configuration(tree, rng), rng.normal(size=tree.nv)
        A, A_dot = oracle.centroidal_maps(q, v)
        assert off(centroidal_momentum_matrix(tree, q), A) < 1e-13
        assert off(centroidal_momentum_matrix_dot(tree, q, v), A_dot) < 1e-13


def test_it_gives_the_momentum(tree):
    rng = np.random.default_rng(2)
    q, v = ld.random_configuration(tree, rng, 11), rng.normal(size=(11, tree.nv))
    A = centroidal_momentum_matrix(tree, q)
    assert A.shape == (11, 6, tree.nv)
    assert off(np.einsum("sij,sj->si", A, v), ld.momentum(tree, q, v)) < 1e-13


def test_the_rate_is_that_along_the_motion(tree):
    """Central differences, in batches and at one state."""
    rng = np.random.default_rng(3)
    q, v = unwound(tree, rng), rng.normal(size=tree.nv)
    v /= np.abs(v).max()
    A_dot = centroidal_momentum_matrix_dot(tree, q, v)
    # as in test_energy: the ninth derivative of the sines of a chain of joints, by h^8 / 630 = 1.6e-19
    assert off(A_dot, rate(lambda t: centroidal_momentum_matrix(tree, ld.integrate(tree, q, t * v)))) < 1e-10
    assert off(centroidal_momentum_matrix_dot(tree, np.tile(q, (3, 1)), v)[2], A_dot) < 1e-13


@pytest.mark.parametrize("forced", [False, True])
def test_external_wrenches_alone_change_the_momentum(forced):
    """d/dt (A_G v) is the wrench of gravity, (0, m g), and of what acts on the bodies, about the centre of mass."""
    floating, rng = springy_tree(4, first="free"), np.random.default_rng(4)
    base = [floating.velocity_index(f"joint0{suffix}") for suffix in (".rx", ".ry", ".rz", ".x", ".y", ".z")]
    for _ in range(5):
        q, v, tau = ld.random_configuration(floating, rng), *rng.normal(size=(2, floating.nv))
        tau[base] = 0.0
        f_ext = rng.normal(size=(floating.nbodies, 6)) * forced
        a = ld.aba(floating, q, v, tau, f_ext)
        change = centroidal_momentum_matrix(floating, q) @ a + centroidal_momentum_matrix_dot(floating, q, v) @ v
        total = np.append(np.zeros(3), ld.total_mass(floating) * np.array(floating.gravity))
        com = ld.center_of_mass(floating, q)
        for T, (moment, force) in zip(ld.forward_kinematics(floating, q), f_ext.reshape(-1, 2, 3)):
            force = T[:3, :3] @ force
            total += np.append(T[:3, :3] @ moment + np.cross(T[:3, 3] - com, force), force)
        # accelerations of a dozen bodies, the condition of M among their digits
        assert abs(change - total).max() < 1e-11 * max(abs(ld.crba(floating, q) @ a).max(), 1.0)


def test_nothing_is_lost_far_away():
    floating, rng = springy_tree(4, first="free"), np.random.default_rng(5)
    q, v = ld.random_configuration(floating, rng), rng.normal(size=floating.nv)
    far = q.copy()
    far[[floating.coordinate_index(f"joint0.{axis}") for axis in "xyz"]] += 1e6
    # positions are rounded to 1e-10 m there; about the world's origin the angular part would lose ten digits
    assert off(centroidal_momentum_matrix(floating, far), centroidal_momentum_matrix(floating, q)) < 1e-8
    assert off(centroidal_momentum_matrix_dot(floating, far, v), centroidal_momentum_matrix_dot(floating, q, v)) < 1e-8
