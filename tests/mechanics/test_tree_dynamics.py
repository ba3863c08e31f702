"""Kinematics, RNEA, CRBA and ABA: Pinocchio on trees of every joint kind, and the laws that tie them together."""

import numpy as np
import pytest
from pinocchio_models import against_pinocchio, pin_model
from tree_cases import TREES, bundled, chain, off, rate, wrenches

from liedyn.machine.errors import SingularConfigurationError
from liedyn.mechanics.tree.aba import aba
from liedyn.mechanics.tree.configuration import integrate, neutral, random_configuration
from liedyn.mechanics.tree.crba import crba
from liedyn.mechanics.tree.forward_kinematics import forward_kinematics, pose
from liedyn.mechanics.tree.jacobians import body_jacobian
from liedyn.mechanics.tree.rnea import rnea
from liedyn.model import Builder

STATES = 20


@pytest.fixture(scope="module", params=TREES)
def robot(request):
    return TREES[request.param]()


@pytest.fixture
def rng():
    return np.random.default_rng(21)


def random_states(robot, rng, size=STATES):
    return random_configuration(robot, rng, size), *rng.normal(size=(2, *np.atleast_1d(size), robot.nv))


@pytest.mark.validation("poses",
                        robots="random trees of all joint kinds, panda, ur5, solo12, talos",
                        oracle="Pinocchio, from the declaration of the robot alone")
@against_pinocchio("poses")
def test_poses_against_pinocchio(robot, rng):
    oracle, q = pin_model(robot), random_configuration(robot, rng, STATES)
    poses = forward_kinematics(robot, q)
    for k in range(STATES):
        # positions of up to some ten metres, products of up to a dozen poses
        assert off(poses[k], oracle.forward_kinematics(q[k])) < 1e-14
    for name in robot.body_names:
        # the same products from the body to the ground: rounded in another order
        assert off(pose(robot, q, name), poses[:, robot.body_index(name)]) < 1e-14


@pytest.mark.validation("inverse dynamics, inertia matrix, forward dynamics; with and without wrenches",
                        robots="random trees of all joint kinds, panda, ur5, solo12, talos",
                        oracle="Pinocchio, from the declaration of the robot alone")
@against_pinocchio("inverse dynamics, inertia matrix, forward dynamics")
@pytest.mark.parametrize("pushed", [False, True], ids=["free", "pushed"])
def test_dynamics_against_pinocchio(robot, rng, pushed):
    oracle = pin_model(robot)
    q, v, a = random_states(robot, rng)
    f_ext = wrenches(robot, rng) if pushed else None
    tau, M = rnea(robot, q, v, a, f_ext), crba(robot, q)
    found = aba(robot, q, v, tau, f_ext)
    for k in range(STATES):
        assert off(tau[k], oracle.rnea(q[k], v[k], a[k], f_ext)) < 1e-13
        assert off(M[k], oracle.crba(q[k])) < 1e-13
        # wrenches of 10 N m on links of 1e-5 kg m^2 alone would give 1e6 rad/s^2, which tau takes back
        exact = 1e-11 if pushed else 1e-12
        assert off(found[k], oracle.aba(q[k], v[k], tau[k], f_ext)) < exact
        assert off(found[k], a[k]) < exact


def inertia_alone(robot, q):
    """M of one state, into a place between numbers that must not change."""
    room = np.full(robot.nv ** 2 + 32, np.pi)
    inside = room[16:-16]
    M = crba(robot, q, out=inside.reshape(robot.nv, robot.nv))
    inside = inside.copy()
    room[16:-16] = np.pi
    assert (room == np.pi).all()
    return inside.reshape(M.shape)


def assert_inertia_gives_inverse_dynamics(robot):
    q, rest = random_configuration(robot, np.random.default_rng(robot.nv)), np.zeros(robot.nv)
    columns = [rnea(robot, q, rest, unit) - rnea(robot, q, rest, rest) for unit in np.eye(robot.nv)]
    M = inertia_alone(robot, q)
    assert off(M, np.transpose(columns)) < 1e-12  # gravity is taken off again
    assert np.array_equal(M, M.T)


def test_inertia_of_one_state_against_pinocchio(robot, rng):
    """One state is seen from its roots, and written in squares; lanes in the world, pair by pair."""
    oracle, q = pin_model(robot), random_configuration(robot, rng, STATES)
    for k in range(STATES):
        M = inertia_alone(robot, q[k])
        assert off(M, oracle.crba(q[k])) < 1e-13
        assert np.array_equal(M, M.T)


@pytest.mark.parametrize("kind", ["revolute", "helical", "spherical"])
@pytest.mark.parametrize("count", range(1, 10))
def test_squares_end_anywhere(count, kind):
    """Sizes around whole squares; inverse dynamics knows nothing of squares."""
    assert_inertia_gives_inverse_dynamics(chain(count, kind, **({"pitch": 0.3} if kind == "helical" else {})))


@pytest.mark.parametrize(("trees", "count"), [(1, 0), (1, 1), (1, 70), (2, 0), (2, 3), (9, 5)])
def test_rows_of_free_bases(trees, count):
    """Those of the first one are written apart from the squares, also where other trees follow, or more than a band."""
    builder = Builder("several")
    for t in range(trees):
        parent = "ground"
        for k in range(count + 1):
            builder.body(f"body{t}_{k}", 1.0, (0.05, 0.02, 0.01), (1e-3, 2e-3, 2e-3))
            builder.joint(f"joint{t}_{k}", "revolute" if k else "free", parent, f"body{t}_{k}", (0.1, 0.02, 0.0))
            parent = f"body{t}_{k}"
    assert_inertia_gives_inverse_dynamics(builder.build())


def test_columns_of_inertia_are_inverse_dynamics(robot, rng):
    q, v, _ = random_states(robot, rng)
    M, bias = crba(robot, q), rnea(robot, q, v, 0 * v)
    for j, e in enumerate(np.eye(robot.nv)):
        # the bias cancels: gravity and velocity products weigh more than the column
        assert abs(rnea(robot, q, v, e) - bias - M[..., j]).max() < 1e-13 * (abs(bias).max() + abs(M).max())
    assert np.array_equal(M, np.swapaxes(M, -1, -2))
    assert np.linalg.eigvalsh(M).min() > 0.0


def test_forward_dynamics_is_the_inverse_of_inertia(robot, rng):
    q, v, tau = random_states(robot, rng)
    M, bias = crba(robot, q), rnea(robot, q, v, 0 * v)
    assert off(aba(robot, q, v, tau), np.linalg.solve(M, (tau - bias)[..., np.newaxis])[..., 0]) < 1e-11


def test_wrenches_act_through_jacobians(robot, rng):
    q, v, a = random_states(robot, rng)
    f_ext = wrenches(robot, rng)
    work = sum(np.swapaxes(body_jacobian(robot, q, body), -1, -2) @ F for body, F in f_ext.items())
    assert off(rnea(robot, q, v, a) - rnea(robot, q, v, a, f_ext), work) < 1e-12


def test_inertia_and_bias_conserve_energy(robot, rng):
    """v . (dM/dt v / 2 - c) = 0: what Coriolis terms take from one joint they give to another."""
    q, v, _ = random_states(robot, rng)
    M_dot = rate(lambda t: crba(robot, integrate(robot, q, t * v)))
    velocity_product = rnea(robot, q, v, 0 * v) - rnea(robot, q, 0 * v, 0 * v)
    damping = pin_model(robot).damping
    power = np.einsum("bi,bij,bj->b", v, M_dot, v) / 2 - np.sum(v * (velocity_product - damping * v), axis=-1)
    assert abs(power).max() < 1e-11 * np.einsum("bi,bij,bj->b", v, crba(robot, q), v).max()


def test_wrenches_by_name_or_by_body(robot, rng):
    q, v, a = random_states(robot, rng, (2, 3))
    named = {name: rng.normal(size=(3, 6)) for name in robot.body_names[::2]}  # broadcast over the first axis
    array = np.zeros((2, 3, robot.nbodies, 6))
    for name, F in named.items():
        array[..., robot.body_index(name), :] = F
    assert np.array_equal(rnea(robot, q, v, a, named), rnea(robot, q, v, a, array))
    assert np.array_equal(aba(robot, q, v, a, named), aba(robot, q, v, a, array))


def test_batches_equal_single_states(robot, rng):
    """Nineteen states fill the lanes once or more and leave some over, which go one by one."""
    q, v, a = random_states(robot, rng, 19)
    F = rng.normal(size=(19, robot.nbodies, 6))
    calls = (rnea, (q, v, a, F)), (crba, (q,)), (aba, (q, v, a, F)), (forward_kinematics, (q,))
    for function, args in calls:
        together = function(robot, *args)
        single = np.array([function(robot, *(x[k] for x in args)) for k in range(19)])
        # lanes may fuse other products and sums; in accelerations the condition of M magnifies that
        assert off(together, single) < (1e-12 if function is aba else 1e-14)


def test_leading_axes(robot, rng):
    q, v, a = random_states(robot, rng, (2, 3))
    for function, args in ((rnea, (q, v, a)), (aba, (q, v, a)), (crba, (q,)), (forward_kinematics, (q,))):
        result = function(robot, *args)
        assert result.shape[:2] == (2, 3)
        for k in np.ndindex(2, 3):
            single = function(robot, *(x[k] for x in args))
            # alone, M comes row by row and poses by columns, in lanes number by number: other products and sums fuse
            fused = function in (crba, forward_kinematics)
            assert np.array_equal(result[k], single) or fused and off(result[k], single) < 1e-14
        assert function(robot, *(x[:0] for x in args)).shape == (0, *result.shape[1:])
    # one velocity for all configurations
    assert np.array_equal(rnea(robot, q, v[0, 0], a)[1, 2], rnea(robot, q[1, 2], v[0, 0], a[1, 2]))


def test_any_memory_layout(robot, rng):
    q, v, a = random_states(robot, rng, 5)
    expected = rnea(robot, q, v, a)
    frozen = q.copy()
    frozen.setflags(write=False)
    for other in (np.asfortranarray(q), np.repeat(q, 2, axis=0)[::2], q.tolist(), frozen):
        assert np.array_equal(rnea(robot, other, v, a), expected)
    whole = np.ones(robot.nv, dtype=np.float32)
    assert np.array_equal(rnea(robot, q, whole, whole), rnea(robot, q, np.ones(robot.nv), np.ones(robot.nv)))


def test_one_body():
    """A pendulum of mass m at distance l from a horizontal axis, against pen and paper."""
    m, l, J = 2.0, 0.5, 0.3
    b = Builder("pendulum")
    b.body("bob", m, (l, 0, 0), (0.1, 0.2, J))
    b.joint("pin", "revolute", "ground", "bob", axis=(0, -1, 0), armature=0.01, damping=0.2, stiffness=3.0)
    bob = b.build()
    # the axis -y turns x towards z; the inertia about it is that about y
    M = 0.2 + m * l**2 + 0.01
    for q, v, a in ((0.3, -0.7, 1.9), (2.0, 0.4, -3.0)):
        tau = M * a + m * 9.81 * l * np.cos(q) + 0.2 * v + 3.0 * q
        assert rnea(bob, [q], [v], [a])[0] == pytest.approx(tau, rel=1e-14)
        assert aba(bob, [q], [v], [tau])[0] == pytest.approx(a, rel=1e-13)
        assert crba(bob, [q])[0, 0] == pytest.approx(M, rel=1e-15)
        expected = [[np.cos(q), 0, -np.sin(q), 0], [0, 1, 0, 0], [np.sin(q), 0, np.cos(q), 0], [0, 0, 0, 1]]
        assert abs(pose(bob, [q], "bob") - expected).max() < 1e-15


def test_no_bodies():
    nothing = Builder("nothing").build()
    none = np.empty(0)
    assert rnea(nothing, none, none, none).shape == aba(nothing, none, none, none).shape == (0,)
    assert crba(nothing, none).shape == (0, 0) and forward_kinematics(nothing, none).shape == (0, 4, 4)
    assert rnea(nothing, *np.empty((3, 9, 0))).shape == (9, 0) and crba(nothing, np.empty((9, 0))).shape == (9, 0, 0)


def test_bodies_fixed_to_the_ground():
    b = Builder("post")
    b.body("post", 1.0)
    b.joint("bolt", "fixed", "ground", "post", placement=(1.0, 2.0, 3.0))
    post = b.build()
    none = np.empty(0)
    assert np.array_equal(pose(post, none, "post")[:3, 3], (1.0, 2.0, 3.0))
    assert rnea(post, none, none, none, {"post": np.ones(6)}).shape == (0,)


@pytest.mark.parametrize("kind, count", [("revolute", 200), ("spherical", 60)])
def test_long_chains(kind, count, rng):
    long = chain(count, kind)
    oracle = pin_model(long)
    q, v, a = random_states(long, rng, 9)
    tau, M, poses = rnea(long, q, v, a), crba(long, q), forward_kinematics(long, q)
    found = aba(long, q, v, tau)
    for k in (0, 8):  # one in lanes, one alone
        assert off(tau[k], oracle.rnea(q[k], v[k], a[k])) < 1e-12
        assert off(M[k], oracle.crba(q[k])) < 1e-12
        assert off(poses[k], oracle.forward_kinematics(q[k])) < 1e-12
        assert off(rnea(long, q[k], v[k], found[k]), tau[k]) < 1e-12
        # M has a condition of 1e9 or so
        assert off(found[k], a[k]) < 1e-8


def test_angles_of_many_turns(rng):
    """Angles up to 1e7 rad are reduced as exactly as small ones."""
    arm = chain(8)
    oracle = pin_model(arm)
    v, a = rng.normal(size=(2, 9, arm.nv))
    for size in (1e3, 0.99e6, 1.01e6, 1e7, 1e15):
        q = size * rng.uniform(-1.0, 1.0, size=(9, arm.nv))
        tau, poses = rnea(arm, q, v, a), forward_kinematics(arm, q)
        for k in (0, 8):
            assert off(tau[k], oracle.rnea(q[k], v[k], a[k])) < 1e-13
            assert off(poses[k], oracle.forward_kinematics(q[k])) < 1e-14


def test_far_from_the_origin(rng):
    """What a free robot does is the same a thousand kilometres away."""
    dog = bundled("solo12")
    q, v, a = random_states(dog, rng)
    base = next(name for name in dog.coordinate_names if name.endswith(".qx")).removesuffix(".qx")
    far = q.copy()
    far[:, [dog.coordinate_index(f"{base}.{axis}") for axis in "xyz"]] += 1e6
    assert off(rnea(dog, far, v, a), rnea(dog, q, v, a)) < 1e-14
    assert off(aba(dog, far, v, a), aba(dog, q, v, a)) < 1e-14
    near, there = forward_kinematics(dog, q), forward_kinematics(dog, far)
    assert np.array_equal(near[..., :3, :3], there[..., :3, :3])


def test_a_massless_body_that_only_a_loop_holds(rng):
    b = Builder("ghost")
    b.body("ghost")
    b.joint("pin", "revolute", "ground", "ghost")
    b.loop("tie", "spherical", "ghost", "ground")
    ghost = b.build()
    assert rnea(ghost, [0.1], [0.2], [0.3])[0] == 0.0 and crba(ghost, [0.1])[0, 0] == 0.0
    with pytest.raises(SingularConfigurationError, match="ghost"):
        aba(ghost, [0.1], [0.2], [0.3])


def test_neutral_is_where_frames_coincide():
    b = Builder("stack")
    for k, name in enumerate("abc"):
        b.body(name, 1.0, inertia=(1, 1, 1))
        b.joint(name, ("free", "spherical", "universal")[k], "ground" if k == 0 else "abc"[k - 1], name, (0, 0, 1.0))
    stack = b.build()
    for k, name in enumerate("abc"):
        T = np.eye(4)
        T[2, 3] = k + 1.0
        assert abs(pose(stack, neutral(stack), name) - T).max() < 1e-15
