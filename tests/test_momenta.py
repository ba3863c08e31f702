"""Canonical momenta: what they are, how they change, and steps in them."""
import numpy as np
import pytest
from closed_chains import closed_mechanism, difference, moving_state, walker
from mechanisms import random_q
from scipy.spatial.transform import Rotation
from test_constraint_rows import CASES, constrained, swing
from tree_cases import TREES, bundled, off, wrenches

import liedyn as ld
from liedyn.dynamics.momenta import row_rates_kernel
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


# ---- steps


def end(robot, exact, tr):
    return np.abs(np.append(ld.difference(robot, exact.q[-1], tr.q[-1]), tr.v[-1] - exact.v[-1])).max()


RUNS = ["panda", "solo12", "five_bar", "loader", "stewart", "arm_on_circle", "shopping_cart", "whipple_bicycle"]


@pytest.mark.parametrize("stabilisation", ["projection", "none", "minimal"])
@pytest.mark.parametrize("name", RUNS)
def test_order_of_steps(name, stabilisation):
    """Fourth order against the velocity form by DOP853, velocities consistent to rounding at every row."""
    robot = bundled(name)
    q, rng = robot.home, np.random.default_rng(11)
    v = moving_state(robot, q, 11)[0]
    tau = 0.1 * rng.normal(size=robot.nv) * (ld.crba(robot, q) @ np.ones(robot.nv))
    exact = ld.simulate(robot, q, v, 0.02, tau=tau, method=ld.Adaptive("DOP853", 1e-13, 1e-13))
    errors = []
    for steps in (5, 10):
        tr = ld.simulate(robot, q, v, 0.02, tau=tau, dt=0.02 / steps, formulation="momenta",
                         stabilisation=stabilisation)
        errors.append(end(robot, exact, tr))
        assert tr.velocity_residual.max() < 1e-12 and tr.formulation == "momenta"
    # the reference itself is good to 1e-12 or so
    assert errors[1] < 1e-11 or np.log2(errors[0] / errors[1]) > 3.6, errors


def test_works_of_inputs_wrenches_and_targets():
    """The energy account closes in momenta as well: a pushed and damped mechanism, and one whose guide moves."""
    robot, q = walker(damping=0.1)
    v, rng = moving_state(robot, q, 12)[0], np.random.default_rng(12)
    tau = rng.normal(size=robot.nv)
    tr = ld.simulate(robot, q, v, 0.05, tau=tau, f_ext=wrenches(robot, rng), formulation="momenta")
    # rounding of the momenta at every step, ten units of that of the energy
    assert np.abs(tr.energy_drift).max() < 1e-12 * abs(tr.energy[0])
    robot, q, v, _, _ = constrained("revolute", swing)
    one, other = (ld.simulate(robot, q, v, robot.t + 0.02, t0=robot.t, dt=1e-4, formulation=name)
                  for name in ("momenta", "nullspace"))
    assert off(one.q[-1], other.q[-1]) < 1e-11 and off(one.v[-1], other.v[-1]) < 1e-10
    assert np.abs(one.energy_drift).max() < 1e-8 * np.abs(one.energy).max()


def floating():
    """An arm on a free base in empty space, far from home."""
    builder = ld.Builder("satellite", gravity=(0.0, 0.0, 0.0))
    builder.body("base", 4.0, (0.1, 0.0, 0.2), (1.0, 2.0, 1.5))
    builder.joint("free", "free", "ground", "base")
    for k, (kind, parent) in enumerate((("revolute", "base"), ("spherical", "link0"), ("prismatic", "link1"))):
        builder.body(f"link{k}", 1.0, (0.3, 0.1, 0.0), (0.1, 0.2, 0.15))
        axis = {} if kind == "spherical" else {"axis": (0.2, 1.0, 0.3)}
        builder.joint(f"joint{k}", kind, parent, f"link{k}", placement=(0.5, 0.0, 0.1), **axis)
    robot, rng = builder.build(), np.random.default_rng(13)
    q = random_q(rng, robot)
    return robot, q, rng.normal(size=robot.nv)


def spatial_momentum(robot, q, v):
    """About the world's origin, which stands still: the centre of mass itself moves as q does, with its errors."""
    P, c = ld.momentum(robot, q, v), ld.center_of_mass(robot, q)
    return np.concatenate([P[..., :3] + np.cross(c, P[..., 3:]), P[..., 3:]], axis=-1)


def test_momentum_of_floating_robots():
    """Linear and angular momentum stay to rounding at steps that are far too long; in velocities they drift."""
    robot, q, v = floating()
    drifts = {}
    for formulation in ("momenta", "nullspace"):
        tr = ld.simulate(robot, q, v, 10.0, dt=0.02, formulation=formulation)
        P = spatial_momentum(robot, tr.q, tr.v)
        size = np.abs(P[0]).max() * (1.0 + np.abs(tr.q[:, 4:7]).max())  # the momentum, and its moment about the origin
        drifts[formulation] = np.abs(P - P[0]).max() / size
    # 500 steps, each with a few roundings of M v and of the solution for v
    assert drifts["momenta"] < 500 * 5e-15 and drifts["nullspace"] > 1e-6, drifts


def spinning():
    """A shaft that spins, with an arm, a slider and a rod between them in a loop; the spin is cyclic."""
    builder, y = ld.Builder("governor"), (0.0, 1.0, 0.0)
    for name, kind, parent, place, axis in (
            ("shaft", "revolute", "ground", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
            ("slider", "prismatic", "shaft", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
            ("arm", "revolute", "shaft", (0.05, 0.0, 1.0), y), ("rod", "revolute", "arm", (0.5, 0.0, 0.0), y)):
        builder.body(name, 1.0, (0.25, 0.0, 0.0), (0.02, 0.03, 0.04))
        builder.joint(name, kind, parent, name, place, axis=axis)
    builder.loop("pin", "revolute", "rod", "slider", (0.5, 0.0, 0.0), (0.05, 0.0, 0.0), axis=y)
    robot = builder.build()
    return robot, ld.close(robot, [0.3, 0.2, 0.8, 1.5])


def test_momentum_of_cyclic_coordinates():
    """The momentum of the spin stays to rounding, with projection, without it, and in minimal coordinates."""
    robot, q = spinning()
    v = ld.complete_velocity(robot, q, {"shaft": 6.0, "slider": 0.5})
    for stabilisation in ("projection", "none", "minimal"):
        tr = ld.simulate(robot, q, v, 2.0, dt=2e-3, formulation="momenta", stabilisation=stabilisation)
        p = ld.canonical_momenta(robot, tr.q, tr.v, ("shaft", "slider"))[:, 0]
        assert np.abs(p - p[0]).max() < 1000 * 1e-15 * abs(p[0])
        assert np.abs(tr.v[:, 0] - 6.0).max() > 1.0  # the spin itself does not


def test_energy_of_a_spinning_top():
    """A top on a ball joint without weight: momenta in axes of the parent are constant, and only q has an error."""
    builder = ld.Builder("top", gravity=(0.0, 0.0, 0.0))
    builder.body("top", 2.0, com=(0.0, 0.0, 0.3), inertia=(0.3, 0.5, 0.2))
    builder.joint("ball", "spherical", "ground", "top")
    robot = builder.build()
    tr = ld.simulate(robot, [0.0, 0.0, 0.0, 1.0], [2.0, -3.0, 5.0], 10.0, dt=0.01, formulation="momenta")
    L = Rotation.from_quat(tr.q).apply(np.einsum("bij,bj->bi", ld.crba(robot, tr.q), tr.v))
    assert np.abs(L - L[0]).max() < 1000 * 1e-15 * np.abs(L[0]).max()


def test_events_and_one_sided_constraints():
    """Bounces without friction: events, impacts and resting in momenta as in velocities."""
    builder = ld.Builder("ball")
    builder.body("ball", 1.0, inertia=(0.4, 0.4, 0.4))
    builder.joint("free", "free", "ground", "ball")
    builder.constraint("floor", "sphere_on_plane", "ground", "ball", radius=0.1, unilateral=True, friction=0.0,
                       restitution=0.5)
    robot = builder.build()
    q, v = robot.neutral.copy(), np.array([0.3, 0.0, 0.0, 1.0, 0.0, 0.0])
    q[6] = 0.6
    one, other = (ld.simulate(robot, q, v, 0.6, formulation=name) for name in ("momenta", "nullspace"))
    assert [event.name for event in one.events] == [event.name for event in other.events]
    assert off(one.q[-1], other.q[-1]) < 1e-9


def test_step_and_stepper():
    robot, q, v, tau = moving("five_bar")
    tr = ld.simulate(robot, q, v, 2e-3, tau=tau, formulation="momenta")
    stepper = ld.Stepper(robot, q, v, formulation="momenta")
    stepper.advance(2, tau)
    assert off(stepper.q, tr.q[-1]) < 1e-14 and off(stepper.v, tr.v[-1]) < 1e-13
    one = ld.step(robot, q, v, tau, formulation="momenta")
    assert off(one[1], tr.v[1]) < 1e-13


@pytest.mark.parametrize("options, text", [
    ({"method": "implicit"}, "Runge-Kutta methods with fixed steps, 'rk4', 'rkmk' or 'gauss4', not by 'implicit'"),
    ({"method": "RK45"}, "not by 'RK45'"),
    ({"stabilisation": "baumgarte"}, "no stabilisation 'baumgarte'"),
])
def test_what_does_not_go_together(options, text):
    robot = bundled("five_bar")
    with pytest.raises(ld.InputError, match=text):
        ld.simulate(robot, robot.home, [0.0] * 4, 0.1, formulation="momenta", **options)


def test_friction_needs_normal_forces():
    builder = ld.Builder("ball")
    builder.body("ball", 1.0, inertia=(0.4, 0.4, 0.4))
    builder.joint("free", "free", "ground", "ball")
    builder.constraint("floor", "sphere_on_plane", "ground", "ball", radius=0.1, unilateral=True, friction=0.5)
    robot = builder.build()
    with pytest.raises(ld.InputError, match="friction needs the normal forces.*'floor'"):
        ld.simulate(robot, robot.neutral + [0, 0, 0, 0, 0, 0, 1], np.zeros(6), 0.1, formulation="momenta")
