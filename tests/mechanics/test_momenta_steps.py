"""Steps of simulations in canonical momenta, and by Gauss's method."""
import numpy as np
import pytest
from closed_chains import difference, moving_state, walker
from mechanisms import random_q
from scipy.spatial.transform import Rotation
from test_constraint_rows import constrained, swing
from test_momenta import moving
from tree_cases import bundled, off, wrenches

import liedyn as ld


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


def pendulum():
    """Two links that swing widely, without friction."""
    builder = ld.Builder("pendulum")
    for name, parent, at in (("upper", "ground", 0.0), ("lower", "upper", 1.0)):
        builder.body(name, 1.0, (0.5, 0.0, 0.0), (0.01, 0.09, 0.09))
        builder.joint(name, "revolute", parent, name, (at, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
    return builder.build(), np.array([0.3, 0.4]), np.array([0.5, -0.2])


def symplecticity(robot, q, v, formulation):
    """J^T W J - W of a long step (q, p) -> (q', p')."""
    def step(x):
        velocity = np.linalg.solve(ld.crba(robot, x[:2]), x[2:])
        q, velocity = ld.step(robot, x[:2], velocity, [0.0, 0.0], 0.05, method="gauss4", formulation=formulation)
        return np.concatenate([q, ld.crba(robot, q) @ velocity])

    start = np.concatenate([q, ld.crba(robot, q) @ v])
    J = np.stack([difference(lambda s, e=e: step(start + s * e)) for e in np.eye(4)], axis=-1)
    W = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    return np.abs(J.T @ W @ J - W).max()


def test_gauss_is_symplectic_in_momenta():
    """Areas of phase space are kept, however long the step is, to the accuracy of differences; in velocities not."""
    robot, q, v = pendulum()
    assert symplecticity(robot, q, v, "momenta") < 1e-10 < 1e-8 < symplecticity(robot, q, v, "nullspace")


@pytest.mark.parametrize("formulation", ["momenta", "nullspace"])
@pytest.mark.parametrize("name", ["solo12", "five_bar", "stewart", "shopping_cart"])
def test_gauss_is_of_fourth_order_and_symmetric(name, formulation):
    robot = bundled(name)
    q, v = robot.home, moving_state(robot, robot.home, 15)[0]
    exact = ld.simulate(robot, q, v, 0.04, method=ld.Adaptive("DOP853", 1e-13, 1e-13))
    runs = [ld.simulate(robot, q, v, 0.04, dt=0.04 / steps, method="gauss4", formulation=formulation)
            for steps in (5, 10)]
    errors = [end(robot, exact, tr) for tr in runs]
    assert errors[1] < 1e-11 or np.log2(errors[0] / errors[1]) > 3.6, errors
    if not robot.row_names:  # projection is no part of the symmetric method
        back = ld.simulate(robot, runs[0].q[-1], -runs[0].v[-1], 0.04, dt=0.008, method="gauss4",
                           formulation=formulation)
        assert np.abs(ld.difference(robot, q, back.q[-1])).max() < 1e-7


def test_long_motions():
    """Energy over 10,000 steps: it swings, and does not drift, by Gauss; by explicit steps it drifts.

    With a loop, in momenta, that holds without any projection.
    """
    robot, q, v = pendulum()
    ends = {}
    for method in ("gauss4", "rk4"):
        drift = ld.simulate(robot, q, v, 100.0, dt=0.01, method=method, formulation="momenta", record=10).energy_drift
        ends[method] = np.abs(drift[:100]).max(), np.abs(drift[-100:]).max()
    assert ends["gauss4"][1] < 3.0 * ends["gauss4"][0] and ends["rk4"][1] > 3.0 * ends["rk4"][0], ends
    assert ends["gauss4"][1] < 0.1 * ends["rk4"][1], ends
    robot, q = spinning()
    v = ld.complete_velocity(robot, q, {"shaft": 6.0, "slider": 0.5})
    drift = {formulation: np.abs(ld.simulate(robot, q, v, 50.0, dt=0.01, method="gauss4", formulation=formulation,
                                             stabilisation="none").energy_drift).max()
             for formulation in ("momenta", "nullspace")}
    assert drift["momenta"] < 1e-4 and drift["nullspace"] > 1e-3, drift


def test_steps_that_do_not_converge():
    """A spring that is too stiff for the step: the iteration says so."""
    builder = ld.Builder("stiff")
    builder.body("mass", 1.0)
    builder.joint("x", "prismatic", "ground", "mass", stiffness=1e8)
    robot = builder.build()
    with pytest.raises(ld.SimulationError, match="the iteration of the implicit step does not converge"):
        ld.simulate(robot, [0.1], [0.0], 0.1, dt=1e-2, method="gauss4", formulation="momenta")


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
