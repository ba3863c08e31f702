"""Derivatives of RNEA and ABA: Pinocchio's, central differences of Pinocchio's dynamics, and the laws they obey."""

import numpy as np
import pytest
from pinocchio_models import against_pinocchio, pin_model
from tree_cases import TREES, chain, gradient, off, wrenches

from liedyn.machine.errors import SingularConfigurationError
from liedyn.mechanics.tree.aba import aba
from liedyn.mechanics.tree.aba_derivatives import aba_derivatives
from liedyn.mechanics.tree.configuration import integrate, neutral, random_configuration
from liedyn.mechanics.tree.crba import crba
from liedyn.mechanics.tree.rnea import rnea
from liedyn.mechanics.tree.rnea_derivatives import rnea_derivatives
from liedyn.model import Builder

STATES = 10


@pytest.fixture(scope="module", params=TREES)
def robot(request):
    return TREES[request.param]()


@pytest.fixture(scope="module")
def oracle(robot):
    return pin_model(robot)


@pytest.fixture
def rng():
    return np.random.default_rng(41)


def random_states(robot, rng, size=STATES):
    return random_configuration(robot, rng, size), *rng.normal(size=(2, *np.atleast_1d(size), robot.nv))


def unwound(robot, rng):
    """Balls turned by less than sqrt(3), away from the kink of their springs' potential at half a turn."""
    return integrate(robot, neutral(robot), rng.uniform(-1.0, 1.0, size=robot.nv))


@pytest.mark.validation("derivatives of inverse dynamics",
                        robots="random trees of all joint kinds, panda, ur5, solo12, talos",
                        oracle="Pinocchio, from the declaration of the robot alone")
@against_pinocchio("derivatives of inverse dynamics")
def test_rnea_derivatives_against_pinocchio(robot, oracle, rng):
    q, v, a = random_states(robot, rng)
    results = rnea_derivatives(robot, q, v, a)
    for k in range(STATES):
        for actual, expected in zip(results, oracle.rnea_derivatives(q[k], v[k], a[k])):
            assert off(actual[k], expected) < 1e-12
    assert off(results[2], crba(robot, q)) < 1e-14


@pytest.mark.validation("derivatives of forward dynamics",
                        robots="random trees of all joint kinds, panda, ur5, solo12, talos",
                        oracle="Pinocchio, from the declaration of the robot alone")
@against_pinocchio("derivatives of forward dynamics")
def test_aba_derivatives_against_pinocchio(robot, oracle, rng):
    q, v, tau = random_states(robot, rng)
    results = aba_derivatives(robot, q, v, tau)
    for k in range(STATES):
        for actual, expected in zip(results, oracle.aba_derivatives(q[k], v[k], tau[k])):
            # the condition of M comes in: 1e5 for the legged robots
            assert off(actual[k], expected) < 1e-10


@against_pinocchio("derivatives of inverse dynamics, with wrenches: differences")
@pytest.mark.parametrize("pushed", [False, True], ids=["free", "pushed"])
def test_rnea_derivatives_against_differences_of_pinocchio(robot, oracle, rng, pushed):
    """Wrenches stay constant in the frame of the body they push."""
    q, (v, a) = unwound(robot, rng), rng.normal(size=(2, robot.nv))
    f_ext = wrenches(robot, rng) if pushed else None
    by_q, by_v, _ = rnea_derivatives(robot, q, v, a, f_ext)
    # along one coordinate forces are sines of it and of twice it: rounding of tau, EPS / h = 2e-14 times it, is all
    moved = gradient(lambda d: oracle.rnea(oracle.integrate(q, d), v, a, f_ext), robot.nv)
    assert off(by_q, moved) < 1e-11
    assert off(by_v, gradient(lambda d: oracle.rnea(q, v + d, a, f_ext), robot.nv)) < 1e-11


@against_pinocchio("derivatives of forward dynamics, with wrenches: differences")
def test_aba_derivatives_against_differences_of_pinocchio(robot, oracle, rng):
    q, (v, a) = unwound(robot, rng), rng.normal(size=(2, robot.nv))
    f_ext = wrenches(robot, rng)
    tau = rnea(robot, q, v, a, f_ext)
    by_q, by_v, by_tau = aba_derivatives(robot, q, v, tau, f_ext)
    # rounding of accelerations, 1e-11 where small links are pushed hard, over h = 0.01
    moved = gradient(lambda d: oracle.aba(oracle.integrate(q, d), v, tau, f_ext), robot.nv)
    assert off(by_q, moved) < 1e-8
    assert off(by_v, gradient(lambda d: oracle.aba(q, v + d, tau, f_ext), robot.nv)) < 1e-8
    assert off(by_tau, gradient(lambda d: oracle.aba(q, v, tau + d, f_ext), robot.nv)) < 1e-8


def test_inverse_of_the_inertia_matrix(robot, rng):
    q, v, tau = random_states(robot, rng)
    Minv, M = aba_derivatives(robot, q, v, tau)[2], crba(robot, q)
    assert np.array_equal(Minv, np.swapaxes(Minv, -1, -2))
    # EPS times the condition of M
    exact = 10 * 2.0**-52 * np.linalg.cond(M)
    assert (abs(Minv @ M - np.eye(robot.nv)).max(axis=(-1, -2)) < exact).all()
    free = aba(robot, q, v, tau)
    for j, e in enumerate(np.eye(robot.nv)):
        assert abs(aba(robot, q, v, tau + e) - free - Minv[..., j]).max() < 1e-11 * (abs(free).max() + abs(Minv).max())


def test_forward_and_inverse_derivatives_undo_each_other(robot, rng):
    """M da/dq + dtau/dq = 0 at the acceleration of the motion."""
    q, v, tau = random_states(robot, rng)
    f_ext = wrenches(robot, rng)
    da_dq, da_dv, _ = aba_derivatives(robot, q, v, tau, f_ext)
    a = aba(robot, q, v, tau, f_ext)
    dtau_dq, dtau_dv, M = rnea_derivatives(robot, q, v, a, f_ext)
    # a backward stable solution: its residual is small whatever the condition of M
    assert off(-M @ da_dq, dtau_dq) < 1e-12
    assert off(-M @ da_dv, dtau_dv) < 1e-12


def test_branches_that_meet_at_the_ground_only_do_not_interact():
    robot = TREES["mixed"]()
    rng = np.random.default_rng(1)
    joints = {joint.child: joint for joint in robot.model.joints}

    def root(joint):
        while joint.parent != "ground":
            joint = joints[joint.parent]
        return joint.name

    roots = {joint.name: root(joint) for joint in robot.model.joints}
    owner = [roots.get(name) or roots[name.rpartition(".")[0]] for name in robot.velocity_names]
    apart = np.array([[a != b for b in owner] for a in owner])
    assert apart.any()
    states = [x[0] for x in random_states(robot, rng, 1)]
    for matrix in (*rnea_derivatives(robot, *states), *aba_derivatives(robot, *states)):
        assert not matrix[apart].any()


@pytest.mark.parametrize("function", [rnea_derivatives, aba_derivatives])
def test_batches_and_shapes(robot, rng, function):
    for lead in ((19,), (2, 3)):
        q, v, x = random_states(robot, rng, lead)
        F = rng.normal(size=(*lead, robot.nbodies, 6))
        together = function(robot, q, v, x, F)
        for k in np.ndindex(lead):
            for many, one in zip(together, function(robot, q[k], v[k], x[k], F[k])):
                assert many.shape == lead + (robot.nv, robot.nv)
                # lanes may fuse other products and sums; the condition of M magnifies that
                assert off(many[k], one) < (1e-13 if function is rnea_derivatives else 1e-12)
        assert all(empty.shape == (0, *many.shape[1:])
                   for empty, many in zip(function(robot, q[:0], v[:0], x[:0]), together))


@pytest.mark.parametrize("function", [rnea_derivatives, aba_derivatives])
def test_no_bodies(function):
    nothing = Builder("nothing").build()
    for lead in ((), (9,)):
        assert all(matrix.shape == lead + (0, 0) for matrix in function(nothing, *np.empty((3, *lead, 0))))


def test_one_body():
    """A pendulum with spring and damper, against pen and paper."""
    b = Builder("pendulum")
    b.body("bob", 2.0, (0.5, 0, 0), (0.1, 0.2, 0.3))
    b.joint("pin", "revolute", "ground", "bob", axis=(0, -1, 0), armature=0.01, damping=0.2, stiffness=3.0)
    bob = b.build()
    M, by_q = 0.2 + 2.0 * 0.5**2 + 0.01, 3.0 - 2.0 * 9.81 * 0.5 * np.sin(0.4)
    results = [float(x[0, 0]) for x in rnea_derivatives(bob, [0.4], [0.7], [-1.0])]
    assert results == pytest.approx([by_q, 0.2, M], rel=1e-14)
    results = [float(x[0, 0]) for x in aba_derivatives(bob, [0.4], [0.7], [-1.0])]
    assert results == pytest.approx([-by_q / M, -0.2 / M, 1 / M], rel=1e-14)


@pytest.mark.parametrize("kind, count", [("revolute", 200), ("spherical", 60)])
def test_long_chains(kind, count, rng):
    long = chain(count, kind)
    oracle = pin_model(long)
    q, v, a = random_states(long, rng, 9)
    tau = rnea(long, q, v, a)
    inverse, forward = rnea_derivatives(long, q, v, a), aba_derivatives(long, q, v, tau)
    M = inverse[2]
    for k in (0, 8):  # one in lanes, one alone
        for actual, expected in zip(inverse, oracle.rnea_derivatives(q[k], v[k], a[k])):
            assert off(actual[k], expected) < 1e-12
        # M has a condition of 1e9 or so: compare what it makes of the results, da/dq at the slightly other acceleration
        assert off(-M[k] @ forward[0][k], inverse[0][k]) < 1e-10
        assert off(-M[k] @ forward[1][k], inverse[1][k]) < 1e-12
        assert off(M[k] @ forward[2][k], np.eye(long.nv)) < 1e-8


def test_a_massless_body_that_only_a_loop_holds():
    b = Builder("ghost")
    b.body("ghost")
    b.joint("pin", "revolute", "ground", "ghost")
    b.loop("tie", "spherical", "ghost", "ground")
    ghost = b.build()
    assert not any(matrix.any() for matrix in rnea_derivatives(ghost, [0.1], [0.2], [0.3]))
    with pytest.raises(SingularConfigurationError, match="ghost"):
        aba_derivatives(ghost, [0.1], [0.2], [0.3])
