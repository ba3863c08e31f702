"""Energies, centre of mass and momentum: balance laws along the motion, and Pinocchio, on trees of every joint kind."""

import numpy as np
import pytest
from mechanisms import MOVING_KINDS, random_axes, random_inertia, random_pose
from pinocchio_models import pin_model

from liedyn.machine.errors import InputError
from liedyn.mechanics.tree.centroidal import centroidal_momentum_matrix, centroidal_momentum_matrix_dot
from liedyn.mechanics.tree.configuration import integrate, neutral, random_configuration
from liedyn.mechanics.tree.crba import crba
from liedyn.mechanics.tree.energy import center_of_mass, kinetic_energy, momentum, potential_energy, total_mass
from liedyn.mechanics.tree.rnea import rnea
from liedyn.model import Builder

# Central difference of order 8: its error is about h^8 f^(9) / 630, that of rounding EPS |f| / h.
STENCIL = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
STEP = 0.01


def rate(function):
    """df/dt at t = 0."""
    return sum(c * (function(k * STEP) - function(-k * STEP)) for k, c in STENCIL.items()) / STEP


def springy_tree(seed, first=None, gravity=(1.0, -2.0, -9.81)):
    """A tree of one joint of each kind, with springs, dampers, armatures; `first`, bare, stands alone on the ground."""
    rng = np.random.default_rng(seed)
    builder = Builder("tree", gravity=gravity)
    bodies = ["ground"]
    kinds = [first] * bool(first) + [kind for kind in MOVING_KINDS if kind != first]
    for k, kind in enumerate(kinds):
        builder.body(f"body{k}", rng.uniform(0.5, 2.0), rng.normal(size=3), random_inertia(rng))
        parent = bodies[rng.integers(min(k, 1) if first else 0, k + 1)]
        bodies.append(f"body{k}")
        stiffness, damping, armature = rng.uniform(0.1, 1.0, size=3) * (kind != first)
        builder.joint(
            f"joint{k}", kind, parent, f"body{k}", random_pose(rng), **random_axes(rng, kind),
            pitch=0.3 if kind == "helical" else None, stiffness=stiffness, damping=damping, armature=armature,
        )
    return builder.build()


def unwound(robot, rng):
    """A configuration with balls turned by less than sqrt(3): at half a turn the potential of a spring has a kink."""
    return integrate(robot, neutral(robot), rng.uniform(-1.0, 1.0, size=robot.nv))


@pytest.fixture(scope="module", params=[1, 2])
def tree(request):
    return springy_tree(request.param)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def test_against_pinocchio(tree, rng):
    oracle = pin_model(tree)
    q, v = random_configuration(tree, rng, 10), rng.normal(size=(10, tree.nv))
    energy, potential = kinetic_energy(tree, q, v), potential_energy(tree, q)
    com, h = center_of_mass(tree, q), momentum(tree, q, v)
    for k in range(10):
        # sums of a dozen bodies, metres apart: a few hundred roundings of terms up to ten times the result
        assert energy[k] == pytest.approx(oracle.kinetic_energy(q[k], v[k]), rel=1e-13)
        assert potential[k] == pytest.approx(oracle.potential_energy(q[k]), rel=1e-12)
        assert abs(com[k] - oracle.center_of_mass(q[k])).max() < 1e-13
        about_origin = h[k, :3] + np.cross(com[k], h[k, 3:])
        expected = oracle.momentum(q[k], v[k])
        assert abs(np.append(about_origin, h[k, 3:]) - expected).max() < 1e-13 * abs(expected).max()


def test_energy_rate_is_power(tree, rng):
    """d(T + V)/dt = tau . v - v . D v, for any acceleration, with tau from inverse dynamics."""
    damping = pin_model(tree).damping
    for _ in range(5):
        q, v, a = unwound(tree, rng), rng.normal(size=tree.nv), rng.normal(size=tree.nv)

        def energy(t, q=q, v=v, a=a):
            q = integrate(tree, q, t * v)
            return kinetic_energy(tree, q, v + t * a) + potential_energy(tree, q)

        power = rnea(tree, q, v, a) @ v - v @ (damping * v)
        # h^8 / 630 = 1.6e-19 times the ninth derivative, up to 5^9 times the energy; rounding EPS / h = 2e-14 times it
        assert rate(energy) == pytest.approx(power, abs=1e-11 * kinetic_energy(tree, q, v))


def test_gradient_of_potential_is_inverse_dynamics_at_rest(tree, rng):
    q, rest = unwound(tree, rng), np.zeros(tree.nv)
    gradient = [rate(lambda t, e=e: potential_energy(tree, integrate(tree, q, t * e))) for e in np.eye(tree.nv)]
    expected = rnea(tree, q, rest, rest)
    # along one coordinate the potential is a sine and a square: only rounding is left, EPS / h times its value
    assert abs(gradient - expected).max() < 1e-11 * abs(expected).max()


def test_centre_of_mass_is_the_gradient_of_potential_in_gravity(rng):
    weightless = springy_tree(3, gravity=(0.0, 0.0, 0.0))
    q = random_configuration(weightless, rng, 10)
    mass = total_mass(weightless)
    assert mass == pytest.approx(sum(body.mass for body in weightless.model.bodies), rel=1e-15)
    for axis in range(3):
        heavy = springy_tree(3, gravity=np.eye(3)[axis])
        lifted = potential_energy(heavy, q) - potential_energy(weightless, q)
        # springs of up to some hundred J cancel
        assert abs(lifted + mass * center_of_mass(heavy, q)[:, axis]).max() < 1e-11


def test_linear_momentum_is_mass_times_velocity_of_the_centre_of_mass(tree, rng):
    q, v = unwound(tree, rng), rng.normal(size=tree.nv)
    velocity = rate(lambda t: center_of_mass(tree, integrate(tree, q, t * v)))
    linear = momentum(tree, q, v)[3:]
    assert abs(total_mass(tree) * velocity - linear).max() < 1e-11 * abs(linear).max()


def test_momentum_of_a_free_tree_changes_by_its_weight_only(rng):
    """Whatever springs, dampers and motors inside do: the angular momentum about the centre of mass stays."""
    floating = springy_tree(4, first="free")
    base = [floating.velocity_index(f"joint0{suffix}") for suffix in (".rx", ".ry", ".rz", ".x", ".y", ".z")]
    for _ in range(3):
        q, v = random_configuration(floating, rng), rng.normal(size=floating.nv)
        tau = rng.normal(size=floating.nv)
        tau[base] = 0.0
        a = np.linalg.solve(crba(floating, q), tau - rnea(floating, q, v, 0 * v))
        change = rate(lambda t, q=q, v=v, a=a: momentum(floating, integrate(floating, q, t * v), v + t * a))
        weight = total_mass(floating) * np.array(floating.gravity)
        h = momentum(floating, q, v)
        # as for the power
        assert abs(change - np.append(np.zeros(3), weight)).max() < 1e-11 * abs(h).max()


def test_nothing_is_lost_far_away(rng):
    floating = springy_tree(4, first="free")
    q, v = random_configuration(floating, rng), rng.normal(size=floating.nv)
    far = q.copy()
    far[[floating.coordinate_index(f"joint0.{axis}") for axis in "xyz"]] += 1e6
    assert kinetic_energy(floating, far, v) == kinetic_energy(floating, q, v)
    # positions are rounded to 1e-10 m there; about the world's origin the angular part would lose ten digits
    h = momentum(floating, q, v)
    assert abs(momentum(floating, far, v) - h).max() < 1e-8 * abs(h).max()


def test_batches_equal_single_states(tree, rng):
    """Rows beyond the last full set of lanes go one by one."""
    q, v = random_configuration(tree, rng, (19, 1)), rng.normal(size=(19, 1, tree.nv))
    calls = (kinetic_energy, (q, v)), (potential_energy, (q,)), (center_of_mass, (q,)), (momentum, (q, v))
    for function, args in calls:
        together = function(tree, *args)
        single = np.array([[function(tree, *(x[k, 0] for x in args))] for k in range(19)])
        assert together.shape == single.shape
        # lanes may fuse other products and sums
        assert abs(together - single).max() < 1e-13 * abs(single).max()
    assert isinstance(kinetic_energy(tree, q[0, 0], v[0, 0]), float)


def test_bodies_fixed_to_the_ground_do_not_count():
    b = Builder("post and arm")
    b.body("post", 100.0, (0, 0, 5.0), (1, 1, 1))
    b.joint("bolt", "fixed", "ground", "post")
    b.body("arm", 2.0, (1.0, 0, 0), (1, 1, 1))
    b.joint("pin", "revolute", "post", "arm", placement=(0, 0, 3.0))
    robot = b.build()
    assert total_mass(robot) == 2.0
    assert abs(center_of_mass(robot, [0.0]) - [1.0, 0.0, 3.0]).max() < 1e-15
    assert potential_energy(robot, [0.0]) == pytest.approx(2.0 * 9.81 * 3.0, rel=1e-15)
    # two kilograms a metre from the axis
    assert kinetic_energy(robot, [0.0], [2.0]) == pytest.approx(0.5 * (1.0 + 2.0) * 4.0, rel=1e-15)
    assert abs(momentum(robot, [0.0], [2.0]) - [0, 0, 2.0, 0, 4.0, 0]).max() < 1e-15


def test_without_mass_there_is_no_centre():
    b = Builder("ghost")
    b.body("ghost")
    b.body("weight", 1.0)
    b.joint("weld", "fixed", "ground", "weight")
    b.joint("pin", "revolute", "ground", "ghost")
    b.loop("tie", "spherical", "ghost", "ground")
    robot = b.build()
    assert kinetic_energy(robot, [0.0], [1.0]) == potential_energy(robot, [0.0]) == total_mass(robot) == 0.0
    for call in (lambda: center_of_mass(robot, [0.0]), lambda: momentum(robot, [0.0], [1.0]),
                 lambda: centroidal_momentum_matrix(robot, [0.0]),
                 lambda: centroidal_momentum_matrix_dot(robot, [[0.0]], [1.0])):
        with pytest.raises(InputError, match="'ghost' has no moving mass"):
            call()
