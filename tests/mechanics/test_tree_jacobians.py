"""Body Jacobians, their rates and derivatives: Pinocchio, differences of Pinocchio's, and what they mean."""

import numpy as np
import pytest
from pinocchio_models import against_pinocchio, pin_model
from tree_cases import TREES, bundled, chain, gradient, off, rate

from liedyn.lie import Ad, inverse, log
from liedyn.mechanics.tree.configuration import integrate, random_configuration
from liedyn.mechanics.tree.forward_kinematics import pose
from liedyn.mechanics.tree.jacobians import body_jacobian, body_jacobian_ddot, body_jacobian_dot, body_jacobian_dq
from liedyn.model import Builder
from liedyn.model.packed import DOFS_AT, DOF_I

STATES = 10


@pytest.fixture(scope="module", params=TREES)
def robot(request):
    return TREES[request.param]()


@pytest.fixture(scope="module")
def oracle(robot):
    return pin_model(robot)


@pytest.fixture
def rng():
    return np.random.default_rng(31)


def random_states(robot, rng, size=STATES):
    return random_configuration(robot, rng, size), *rng.normal(size=(2, *np.atleast_1d(size), robot.nv))


def some_bodies(robot):
    """Every fourth, and the last."""
    return {*robot.body_names[::4], robot.body_names[-1]}


@pytest.mark.validation("Jacobians of bodies",
                        robots="random trees of all joint kinds, panda, ur5, solo12, talos",
                        oracle="Pinocchio, from the declaration of the robot alone")
@against_pinocchio("Jacobians of bodies")
def test_jacobians_against_pinocchio(robot, oracle, rng):
    q, v, _ = random_states(robot, rng)
    for body in robot.body_names:
        J, J_dot = body_jacobian(robot, q, body), body_jacobian_dot(robot, q, v, body)
        for k in range(STATES):
            # Pinocchio's go by way of the world, ten metres off
            expected = oracle.body_jacobian(q[k], body)
            assert off(J[k], expected) < 1e-13
            assert abs(J_dot[k] - oracle.body_jacobian_dot(q[k], v[k], body)).max() < 1e-13 * abs(v).max() * (
                1 + abs(expected).max()) ** 2


def test_jacobian_is_the_rate_of_the_pose(robot, rng):
    """J e_k = d log(T(q)^-1 T(q exp(e_k t))) / dt."""
    q = random_configuration(robot, rng)
    for body in some_bodies(robot):
        start = inverse(pose(robot, q, body))
        moved = gradient(
            lambda d, body=body, start=start: log(start @ pose(robot, integrate(robot, q, d), body)), robot.nv)
        # rounding of positions of 10 m, EPS / h = 2e-14 times that
        assert off(moved, body_jacobian(robot, q, body)) < 1e-11


def test_acceleration_of_a_body(robot, oracle, rng):
    """J a + J_dot v = d(twist)/dt."""
    q, v, a = random_states(robot, rng)
    for body in some_bodies(robot):
        J, J_dot = body_jacobian(robot, q, body), body_jacobian_dot(robot, q, v, body)
        acceleration = np.einsum("bij,bj->bi", J, a) + np.einsum("bij,bj->bi", J_dot, v)
        twist = np.einsum("bij,bj->bi", J, v)
        change = rate(lambda t, body=body: np.einsum(
            "bij,bj->bi", body_jacobian(robot, integrate(robot, q, t * v), body), v + t * a))
        scale = abs(acceleration).max() + abs(twist).max()
        # h^8 / 630 = 1.6e-19 times the ninth derivative, of frequencies up to |v| times the depth, 30 rad/s
        assert abs(change - acceleration).max() <= 1e-8 * scale
        for k in range(STATES):
            assert off(twist[k], oracle.body_twist(q[k], v[k], body)) < 1e-12
            assert abs(acceleration[k] - oracle.body_acceleration(q[k], v[k], a[k], body)).max() <= 1e-12 * scale


def test_second_rate_against_differences_of_pinocchio(robot, oracle, rng):
    q, v, a = (x[0] for x in random_states(robot, rng, 1))
    v, a = v / 4, a / 4  # slow, for the differences' sake: h^8 / 630 times frequencies of 8 rad/s to the ninth: 2e-11
    for body in some_bodies(robot):
        change = rate(lambda t, body=body: oracle.body_jacobian_dot(oracle.integrate(q, t * v), v + t * a, body))
        scale = 1 + abs(change).max()
        assert abs(body_jacobian_ddot(robot, q, v, a, body) - change).max() < 1e-10 * scale


def test_derivative_against_differences_of_pinocchio(robot, oracle, rng):
    q = random_configuration(robot, rng)
    for body in some_bodies(robot):
        change = gradient(lambda d, body=body: oracle.body_jacobian(oracle.integrate(q, d), body), robot.nv)
        # a sine in every direction; rounding alone
        assert abs(body_jacobian_dq(robot, q, body) - change).max() < 1e-11 * (1 + abs(change).max())


def test_rates_are_contractions_of_the_derivative(robot, rng):
    q, v, a = random_states(robot, rng)
    for body in some_bodies(robot):
        by_q = body_jacobian_dq(robot, q, body)
        J_dot = body_jacobian_dot(robot, q, v, body)
        J_ddot = body_jacobian_ddot(robot, q, v, a, body)
        assert abs(np.einsum("bijk,bk->bij", by_q, v) - J_dot).max() < 1e-13 * (1 + abs(J_dot).max())
        at_rest = body_jacobian_ddot(robot, q, 0 * v, a, body)
        assert abs(np.einsum("bijk,bk->bij", by_q, a) - at_rest).max() < 1e-13 * (1 + abs(at_rest).max())
        # what velocities add is a quadratic form in them
        twice = body_jacobian_ddot(robot, q, 2 * v, a, body)
        assert abs(twice - at_rest - 4 * (J_ddot - at_rest)).max() < 1e-13 * (1 + abs(twice).max())


def test_derivative_of_a_bracket(robot, rng):
    """dJ_j/dq_k - dJ_k/dq_j = ad(J_j, J_k) for any two degrees of freedom on the way: the Maurer-Cartan equation."""
    q = random_configuration(robot, rng)
    body = robot.body_names[-1]
    J, by_q = body_jacobian(robot, q, body), body_jacobian_dq(robot, q, body)
    w, u = J[:3].T, J[3:].T
    bracket = np.concatenate([
        np.cross(w[:, None], w), np.cross(w[:, None], u) + np.cross(u[:, None], w)], axis=-1).transpose(2, 0, 1)
    links = robot.packed.ints[robot.packed.ints[DOFS_AT]:][:DOF_I * robot.nv].reshape(-1, DOF_I)[:, 0]
    other = links[:, None] != links  # within one joint the tangent space's own bracket comes in
    assert abs(np.where(other, by_q - by_q.transpose(0, 2, 1) - bracket, 0.0)).max() < 1e-13 * (1 + abs(bracket).max())


def test_only_joints_on_the_way_count(robot, rng):
    q, v, a = (x[0] for x in random_states(robot, rng, 1))
    joints = {joint.child: joint for joint in robot.model.joints}
    for body in some_bodies(robot):
        way, at = [], body
        while at != "ground":
            way.append(joints[at].name)
            at = joints[at].parent
        off_way = [j for j, name in enumerate(robot.velocity_names)
                   if name not in way and name.rpartition(".")[0] not in way]
        assert not body_jacobian(robot, q, body)[:, off_way].any()
        assert not body_jacobian_dot(robot, q, v, body)[:, off_way].any()
        assert not body_jacobian_ddot(robot, q, v, a, body)[:, off_way].any()
        by_q = body_jacobian_dq(robot, q, body)
        assert not by_q[:, off_way].any() and not by_q[:, :, off_way].any()


def test_bodies_on_one_link_share_a_twist():
    rng = np.random.default_rng(5)
    robot = TREES["mixed"]()
    q = random_configuration(robot, rng)
    bolted = [joint for joint in robot.model.joints if joint.kind == "fixed" and joint.parent != "ground"]
    assert bolted
    for joint in bolted:
        there = Ad(inverse(joint.placement)) @ body_jacobian(robot, q, joint.parent)
        assert abs(body_jacobian(robot, q, joint.child) - there).max() < 1e-13 * abs(there).max()


CALLS = {
    "J": lambda robot, q, v, a, body: body_jacobian(robot, q, body),
    "J_dot": lambda robot, q, v, a, body: body_jacobian_dot(robot, q, v, body),
    "J_ddot": lambda robot, q, v, a, body: body_jacobian_ddot(robot, q, v, a, body),
    "dJ_dq": lambda robot, q, v, a, body: body_jacobian_dq(robot, q, body),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_batches_and_shapes(robot, rng, call):
    body = robot.body_names[-1]
    for lead in ((19,), (2, 3)):
        args = random_states(robot, rng, lead)
        together = call(robot, *args, body)
        assert together.shape == lead + call(robot, *(x[(0,) * len(lead)] for x in args), body).shape
        for k in np.ndindex(lead):
            assert off(together[k], call(robot, *(x[k] for x in args), body)) < 1e-13
        assert call(robot, *(x[:0] for x in args), body).shape == (0, *together.shape[1:])


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_bodies_fixed_to_the_ground_do_not_move(call):
    b = Builder("post and arm")
    b.body("post", 1.0)
    b.joint("bolt", "fixed", "ground", "post")
    b.body("arm", 1.0, inertia=(1, 1, 1))
    b.joint("pin", "revolute", "post", "arm")
    robot = b.build()
    for count in (1, 19):
        args = np.ones((3, count, 1))
        result = call(robot, *args, "post")
        assert result.shape[:3] == (count, 6, 1) and not result.any()
    b = Builder("post")
    b.body("post", 1.0)
    b.joint("bolt", "fixed", "ground", "post")
    assert call(b.build(), *np.empty((3, 0)), "post").shape[:2] == (6, 0)


def test_screw():
    """One helical joint, body frame shifted by 2 m along x: twist (1 about z, 2 m/rad along y, pitch along z)."""
    b = Builder("screw")
    b.body("nut", 1.0, inertia=(1, 1, 1))
    b.joint("thread", "helical", "ground", "nut", pitch=0.3)
    b.body("arm", 1.0, inertia=(1, 1, 1))
    b.joint("weld", "fixed", "nut", "arm", placement=(2.0, 0, 0))
    robot = b.build()
    assert np.array_equal(body_jacobian(robot, [1.7], "nut")[:, 0], [0, 0, 1, 0, 0, 0.3])
    assert abs(body_jacobian(robot, [1.7], "arm")[:, 0] - [0, 0, 1, 0, 2.0, 0.3]).max() < 1e-15


def test_nothing_is_lost_far_away(rng):
    """A free robot's body-fixed Jacobians are the same a thousand kilometres away, bit for bit."""
    dog = bundled("solo12")
    q, v, a = (x[0] for x in random_states(dog, rng, 1))
    base = next(name for name in dog.coordinate_names if name.endswith(".qx")).removesuffix(".qx")
    far = q.copy()
    far[[dog.coordinate_index(f"{base}.{axis}") for axis in "xyz"]] += 1e6
    for call in CALLS.values():
        assert np.array_equal(call(dog, far, v, a, dog.body_names[-1]), call(dog, q, v, a, dog.body_names[-1]))


def test_two_hundred_bodies(rng):
    long = chain(200)
    oracle = pin_model(long)
    q, v, _ = random_states(long, rng, 9)
    J, J_dot = body_jacobian(long, q, "body199"), body_jacobian_dot(long, q, v, "body199")
    for k in (0, 8):
        assert off(J[k], oracle.body_jacobian(q[k], "body199")) < 1e-12
        assert off(J_dot[k], oracle.body_jacobian_dot(q[k], v[k], "body199")) < 1e-12
    by_q = body_jacobian_dq(long, q[0], "body199")
    assert by_q.shape == (6, 200, 200) and off(by_q @ v[0], J_dot[0]) < 1e-12
