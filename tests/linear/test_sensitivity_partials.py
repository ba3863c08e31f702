"""Partial derivatives of the equations of motion by parameters, against differences of robots that were built anew."""
import mpmath
import numpy as np
import pytest
from numba import njit

import liedyn as ld
from liedyn.lie import exponential
from liedyn.linear.sensitivity.model_parameters import all_changes, chosen
from liedyn.linear.sensitivity.partials import partial_derivatives
from liedyn.machine.errors import InputError
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.model.kinds import LOOP_KINDS
from tests.perturbed_models import perturbed

STEP = 1e-4


def equations(robot, q, v, a, lam):
    """ID + G^T lambda, G a + Gdot v - bdot, G v - b, and the residual."""
    _, _, G, residual, psi, gamma = terms_kernel(robot.packed, q, v, np.empty(0))
    return ld.rnea(robot, q, v, a) + G.T @ lam, G @ a - gamma, psi, residual


def differences(robot, name, *state):
    """Fourth order: its error is of the order STEP^4, 1e-16 times large derivatives, and rounding, 1e-12."""
    h = 1e-2 * STEP if name.startswith("armature") else STEP  # some are smaller than that
    sides = [equations(perturbed(robot, name, k * h), *state) for k in (-2, -1, 1, 2)]
    return [(a - 8 * b + 8 * c - d) / (12 * h) for a, b, c, d in zip(*sides)]


def free_body():
    """A free body that carries a frame, a fixed body and a ball, tied to the ground by rods and a coupling."""
    b = ld.Builder("tied")
    b.body("hull", mass=2.0, com=(0.1, -0.2, 0.05), inertia=np.diag([0.3, 0.4, 0.5]))
    b.body("fin", mass=0.7, com=(0.0, 0.1, 0.2), inertia=np.diag([0.02, 0.03, 0.04]))
    b.body("bob", mass=0.5, com=(0.0, 0.0, -0.3), inertia=np.diag([0.01, 0.02, 0.02]))
    b.body("slide", mass=0.4, inertia=np.diag([0.01, 0.01, 0.01]))
    b.joint("floating", "free", "ground", "hull")
    b.joint("weld", "fixed", "hull", "fin", placement=ld.placement((0.3, 0.1, 0.0), rpy=(0.2, 0.1, -0.3)))
    b.joint("ball", "spherical", "fin", "bob", placement=ld.placement((0.0, 0.2, 0.1), rpy=(0.1, 0.0, 0.4)))
    b.joint("slider", "cylindrical", "bob", "slide", axis=(0.0, 1.0, 0.0), stiffness=(3.0, 4.0), damping=(0.1, 0.2))
    b.constraint("rod", "distance", "ground", "fin", child_placement=(0.1, 0.0, 0.2), length=0.6)
    b.constraint("bowl", "sphere_on_sphere", "ground", "slide", radius=0.1, parent_radius=0.9, rolling=True)
    b.loop("hook", "inline", "hull", "slide", axis=(1.0, 2.0, 0.0), parent_placement=(0.2, 0.0, 0.0))
    b.constraint("gear", "coupling", coefficients={"slider.angle": 1.0, "slider.slide": 0.3}, offset=0.1)
    return b.build()


def make(name):
    return free_body() if name == "free_body" else ld.load(name)


@pytest.mark.parametrize("name", ["five_bar", "panda", "stewart", "whipple_bicycle", "rolling_spheres", "free_body"])
def test_partial_derivatives_are_those_of_robots_built_anew(name):
    robot, rng = make(name), np.random.default_rng(3)
    q = ld.random_configuration(robot, rng) if name == "free_body" else robot.home
    v, a, lam = (rng.normal(size=n) for n in (robot.nv, robot.nv, len(robot.row_names)))
    known = list(all_changes(robot))
    names = known if name == "free_body" else [known[k] for k in rng.permutation(len(known))[:40]]
    found = partial_derivatives(robot, names, q, v, a, lam)
    assert name != "free_body" or len(names) > 90
    for k, parameter in enumerate(names):
        for mine, other in zip(found, differences(robot, parameter, q, v, a, lam)):
            error = np.abs(mine[:, k] - other).max(initial=0.0)
            assert error < 1e-7 * max(1.0, np.abs(other).max(initial=0.0)), parameter


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_partial_derivatives_at_every_kind_of_cut_joint(kind):
    """At closed loops, where frames that follow both sides do so as the rows take it."""
    b, form = ld.Builder("hung"), LOOP_KINDS[kind]
    b.body("hull", mass=2.0, com=(0.1, -0.2, 0.05), inertia=np.diag([0.3, 0.4, 0.5]))
    b.joint("floating", "free", "ground", "hull", placement=ld.placement((0.3, 0.1, 0.0), rpy=(0.2, 0.1, -0.3)))
    axes = dict(zip(("axis", "axis2"), [(0.6, 0.0, 0.8), (0.0, 1.0, 0.0)][:len(form.axes)]))
    b.loop("cut", kind, "ground", "hull", parent_placement=ld.placement((0.2, 0.0, 0.1), rpy=(0.3, -0.2, 0.1)),
           child_placement=(0.1, 0.3, 0.0), **axes, **({"pitch": 0.2} if form.has_pitch else {}))
    robot, rng = b.build(), np.random.default_rng(4)
    q = ld.close(robot, ld.integrate(robot, robot.home, 0.3 * rng.normal(size=6)))
    v, a, lam = rng.normal(size=6), rng.normal(size=6), rng.normal(size=len(robot.row_names))
    names = chosen(robot, ["floating", "cut"])
    found = partial_derivatives(robot, names, q, v, a, lam)
    for k, parameter in enumerate(names):
        for mine, other in zip(found, differences(robot, parameter, q, v, a, lam)):
            assert np.abs(mine[:, k] - other).max() < 1e-8 * max(1.0, np.abs(other).max()), parameter


def test_a_batch_is_its_states():
    robot, rng = ld.load("loader"), np.random.default_rng(5)
    q, v, a = np.repeat(robot.home[None], 3, 0), *rng.normal(size=(2, 3, robot.nv))
    lam = rng.normal(size=(3, len(robot.row_names)))
    names = chosen(robot, ["*:boom", "mass:*"])
    together = partial_derivatives(robot, names, q, v, a, lam)
    for b in range(3):
        for x, y in zip(together, partial_derivatives(robot, names, q[b:b + 1], v[b:b + 1], a[b:b + 1], lam[b:b + 1])):
            assert np.array_equal(x[b:b + 1], y)


def test_names_are_patterns_or_owners():
    robot = ld.load("five_bar")
    assert chosen(robot, "mass:*") == tuple(f"mass:{name}" for name in robot.body_names)
    assert set(chosen(robot, ["pin"])) == {
        f"{side}_placement.{entry}:pin" for side in ("parent", "child") for entry in ("x", "y", "z", "rx", "ry", "rz")}
    assert chosen(robot, ["mass:link1", "mass:*"])[0] == "mass:link1"
    with pytest.raises(InputError, match="mass:link9"):
        chosen(robot, ["mass:link9"])
    with pytest.raises(InputError, match="parameters must be"):
        chosen(robot, 3)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.1, 0.999, 1.001, 2.0, 3.0, 3.14])
def test_rates_of_the_coefficient_of_inverse_jacobians(angle):
    """d = (1 - (t / 2) cot(t / 2)) / t^2 by its power series in t^2, and f' = (df/dt) / t twice."""
    with mpmath.workdps(50):
        s = mpmath.mpf(angle) ** 2
        terms = [abs(mpmath.bernoulli(2 * k)) / mpmath.factorial(2 * k) for k in range(1, 150)]
        exact = [sum(c * s ** k for k, c in enumerate(terms)),
                 sum(2 * k * c * s ** (k - 1) for k, c in enumerate(terms) if k),
                 sum(4 * k * (k - 1) * c * s ** (k - 2) for k, c in enumerate(terms) if k > 1)]
    # they stand beside one in the Jacobian; each rate divides by t^2 what rounding leaves of the one before
    for mine, other, most in zip(rates_of_d(angle ** 2), exact, (1, 8, 64)):
        assert abs(mine - other) < most * np.finfo(float).eps


@njit
def rates_of_d(square):
    d = exponential.coefficient_d(square)
    rate = exponential.rate_d(square, d)
    return d, rate, exponential.second_rate_d(square, d, rate)


def test_without_force_elements_nothing_of_them_changes():
    """Their changes would be written behind the end of a workspace that has no room for them."""
    for name in ("five_bar", "panda", "stewart"):
        assert not any(of_elements for _, of_elements in all_changes(ld.load(name)).values())
