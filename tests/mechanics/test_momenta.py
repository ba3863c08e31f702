"""Canonical momenta: what they are, and how they change."""
import numpy as np
import pytest
from closed_chains import closed_mechanism, difference, moving_state
from mechanisms import random_q
from test_constraint_rows import CASES, constrained, swing
from tree_cases import TREES, bundled, off, wrenches

import liedyn as ld
from liedyn.mechanics.dynamics.generalized_momenta import row_rates_kernel
from liedyn.model.kinds import LOOP_KINDS

# differences of sixth order on functions of size one to 1e3 and the step of 1e-3: rounding 1e-13 * size / step
AGREES = 1e-8


def on_the_way(robot, q, v, a):
    """Time s -> (robot, q, v) of the motion that begins so, exact to second order, with odd errors beyond."""
    return lambda s: (robot.at(robot.t + s), ld.integrate(robot, q, s * v + 0.5 * s * s * a), v + s * a)


# ---- open trees


@pytest.mark.parametrize("name", TREES)
def test_momentum_terms(name):
    """pdot = tau + forces, with pdot = M a + d(M v)/dq v of the derivatives of inverse dynamics: exact, no differences.

    d(M v)/dq is what accelerations v add to dtau/dq at rest.
    """
    robot, rng = TREES[name](), np.random.default_rng(5)
    q, v, tau = random_q(rng, robot), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    F, rest = wrenches(robot, rng), np.zeros(robot.nv)
    p, forces = ld.momentum_terms(robot, q, v, F)
    M, a = ld.crba(robot, q), ld.aba(robot, q, v, tau, F)
    slope = ld.rnea_derivatives(robot, q, rest, v)[0] - ld.rnea_derivatives(robot, q, rest, rest)[0]
    assert off(p, M @ v) < 1e-13
    # accelerations of small bodies are large: what M a rounds to is what counts
    assert off(tau + forces, M @ a + slope @ v) < 1e-11


def test_momentum_terms_of_batches():
    """In lanes as one by one, and into arrays that are given."""
    robot, rng = bundled("solo12"), np.random.default_rng(6)
    q, v = ld.random_configuration(robot, rng=6, size=37), rng.normal(size=(37, robot.nv))
    p, forces = ld.momentum_terms(robot, q, v)
    for k in (0, 17, 36):
        one = ld.momentum_terms(robot, q[k], v[k])
        assert off(p[k], one[0]) < 1e-13 and off(forces[k], one[1]) < 1e-12
    out = np.empty_like(p), np.empty_like(p)
    assert ld.momentum_terms(robot, q, v, out=out)[0] is out[0] and np.array_equal(out[1], forces)


def test_a_free_body_keeps_its_momentum():
    """Nothing acts: the body-fixed momenta turn as the axes do, pdot = -V x* p."""
    builder = ld.Builder("body", gravity=(0.0, 0.0, 0.0))
    builder.body("body", 2.0, (0.1, 0.2, 0.3), (0.3, 0.5, 0.4))
    builder.joint("free", "free", "ground", "body")
    robot, rng = builder.build(), np.random.default_rng(7)
    q, v = random_q(rng, robot), rng.normal(size=6)
    p, forces = ld.momentum_terms(robot, q, v)
    moment = np.cross(p[:3], v[:3]) + np.cross(p[3:], v[3:])
    assert off(forces, np.concatenate([moment, np.cross(p[3:], v[:3])])) < 1e-14


# ---- constraints


@pytest.mark.parametrize("kind, target, more", CASES)
def test_rates_of_rows(kind, target, more):
    """Gdot of every kind of constraint, moving ones too, and of the readers of virtual velocities."""
    robot, q, v, a, lam = constrained(kind, target, **more)
    G_dot, E_dot = row_rates_kernel(robot.packed, q, v)

    def moved(s):
        return robot.at(robot.t + s), ld.integrate(robot, q, s * v)

    assert off(difference(lambda s: ld.constraint_jacobian(*moved(s))), G_dot) < AGREES
    assert off(difference(lambda s: ld.virtual_jacobian(*moved(s))), E_dot) < AGREES


MACHINES = ["panda", "solo12", "five_bar", "loader", "stewart", "arm_on_circle", "shopping_cart", "rolling_spheres",
            "whipple_bicycle"]


def moving(name):
    if name in LOOP_KINDS:
        robot, q = closed_mechanism(name)
    else:
        robot = bundled(name)
        q = robot.home
    return robot, q, *moving_state(robot, q)


@pytest.mark.parametrize("name", [*MACHINES, *LOOP_KINDS])
def test_canonical_equations(name):
    """v and pdot, against velocities that are given and the rate of the momenta along the motion."""
    robot, q, v, tau = moving(name)
    F = {name: 0.01 * x for name, x in wrenches(robot, np.random.default_rng(8)).items()}
    r = ld.forward_dynamics(robot, q, v, tau, f_ext=F)
    chosen = r.independent
    p = ld.canonical_momenta(robot, q, v, chosen)
    assert p.shape == (len(chosen),)
    found, p_dot = ld.canonical_equations(robot, q, p, tau, chosen, f_ext=F)
    assert off(found, v) < 1e-12 and off(ld.velocity_from_momenta(robot, q, p, chosen), v) < 1e-12
    state = on_the_way(robot, q, v, r.a)
    assert off(difference(lambda s: ld.canonical_momenta(*state(s), chosen), 2e-4), p_dot) < 1e-7


def test_moving_constraints():
    """A guide that swings: the momenta are affine in w, and G itself turns with time."""
    robot, q, v, _, _ = constrained("revolute", swing)
    chosen = ld.forward_dynamics(robot, q, v, 0 * v, independent="auto").independent
    p = ld.canonical_momenta(robot, q, v, chosen)
    tau = np.random.default_rng(9).normal(size=robot.nv)
    found, p_dot = ld.canonical_equations(robot, q, p, tau, chosen)
    assert off(found, v) < 1e-12
    state = on_the_way(robot, q, v, ld.forward_dynamics(robot, q, v, tau).a)
    assert off(difference(lambda s: ld.canonical_momenta(*state(s), chosen), 2e-4), p_dot) < 1e-7


@pytest.mark.parametrize("name", ["five_bar", "stewart", "solo12"])
def test_reversal(name):
    """pdot is even in the momenta where nothing damps, and v odd: motions run backwards."""
    robot = bundled(name)
    q, rng = robot.home, np.random.default_rng(10)
    p = rng.normal(size=ld.canonical_momenta(robot, q, np.zeros(robot.nv)).shape)
    tau = rng.normal(size=robot.nv)
    v, p_dot = ld.canonical_equations(robot, q, p, tau)
    back, p_dot_back = ld.canonical_equations(robot, q, -p, tau)
    assert off(p_dot_back, p_dot) < 1e-11 and off(back, -v) < 1e-13


def test_batches_and_elements():
    """A batch as its states one by one; force elements are forces."""
    robot, q, v, tau = moving("five_bar")
    p = ld.canonical_momenta(robot, q, v)
    both = ld.canonical_equations(robot, np.tile(q, (2, 3, 1)), p, tau)
    assert both[0].shape == (2, 3, 4) and both[1].shape == (2, 3, 2)
    one = ld.canonical_equations(robot, q, p, tau)
    assert np.array_equal(both[0][1, 2], one[0]) and np.array_equal(both[1][1, 2], one[1])
    builder = ld.Builder.of(robot)
    builder.coordinate_force("bar", {"q1": 1.0}, stiffness=2.0, damping=0.5)
    sprung = builder.build()
    forces = ld.element_forces(sprung, q, v)
    assert np.array_equal(ld.canonical_equations(sprung, q, p, tau)[1],
                          ld.canonical_equations(robot, q, p, tau + forces)[1])


def test_what_does_not_fit():
    robot, q, v, tau = moving("five_bar")
    with pytest.raises(ld.InputError, match=r"p must have shape \(..., 2\), got \(3,\)"):
        ld.velocity_from_momenta(robot, q, [1.0, 2.0, 3.0])
    with pytest.raises(ld.InputError, match="1 independent coordinates were given: q1"):
        ld.canonical_momenta(robot, q, v, ["q1"])
    with pytest.raises(ld.InputError, match="at least one state"):
        ld.canonical_momenta(robot, np.empty((0, 4)), np.empty((0, 4)))
    with pytest.raises(ld.InputError, match=r"leading axes do not broadcast: q \(3, 4\), p \(2, 2\)"):
        ld.velocity_from_momenta(robot, np.tile(q, (3, 1)), np.zeros((2, 2)))
    builder = ld.Builder("ghost")
    for name, mass in (("ghost", 0.0), ("mass", 1.0)):
        builder.body(name, mass, (0, 0, 0), (0, 0, 0))
        builder.joint(name, "prismatic", "ground", name)
    builder.constraint("tie", "coupling", coefficients={"ghost": 1.0, "mass": -1.0})
    tied = builder.build()
    assert off(ld.velocity_from_momenta(tied, [0.0, 0.0], [3.0]), np.array([3.0, 3.0])) < 1e-15
    with pytest.raises(ld.SingularConfigurationError, match="K\\^T M K is not positive definite"):
        ld.velocity_from_momenta(tied.switched(tie=False), [0.0, 0.0], [1.0, 1.0])
