"""Names of signals: models, regulators, filters and plants of one robot join in python-control without renaming."""
import numpy as np
import pytest

import liedyn as ld

control = pytest.importorskip("control")
LOADER = ld.load("loader")
WEIGHTS = {"boom": 100.0, "bucket": 100.0, "velocity:boom": 1.0, "velocity:bucket": 1.0}
REGULATOR = ld.lqr(LOADER, LOADER.home, WEIGHTS, 1e-9)


def poles(system):
    return np.sort_complex(system.poles())


def test_a_model_with_its_regulator():
    model = ld.linearize(LOADER, LOADER.home, np.zeros(8), u=REGULATOR.u, outputs=REGULATOR.model.states)
    closed = control.interconnect([model.to_control(), REGULATOR.to_control(estimated=False)],
                                  inputs=["force_lift_cylinder"],
                                  outputs=["boom"])
    assert np.allclose(poles(closed), REGULATOR.eigenvalues, rtol=1e-9)


def test_a_plant_with_its_regulator():
    plant = ld.to_control(LOADER, outputs=REGULATOR.model.states)
    both = control.interconnect([plant, REGULATOR.to_control(absolute=True, estimated=False)], inputs=[],
                                outputs=["boom", "bucket"])
    assert np.allclose(both.dynamics(0.0, np.zeros(4), []), 0.0, atol=1e-9)  # the equilibrium
    x = np.array([0.05, 0.0, 0.0, 0.0])
    q, v = plant.updfcn.__self__.zero.state_at(x)
    a = ld.forward_dynamics(LOADER, q, v, u=REGULATOR(0.0, q, v)).a
    rates = [a[LOADER.velocity_index(name)] for name in ("boom", "bucket")]
    assert np.allclose(both.dynamics(0.0, x, [])[2:], rates, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("discrete", [False, True])
def test_a_model_a_filter_and_a_regulator(discrete):
    """Separation: the poles of the whole are those of the regulator and those of the filter."""
    seen = ["boom", "bucket"]
    if discrete:
        regulator = ld.dlqr(LOADER, LOADER.home, 0.01, WEIGHTS, 1e-9)
        observer = ld.dkalman(LOADER, LOADER.home, 0.01, 1e6, 1e-6, outputs=seen)
        whole = ld.linearize(LOADER, LOADER.home, np.zeros(8), u=regulator.u, outputs=seen)
        sampled = ld.discretize(LOADER, LOADER.home, np.zeros(8), None, 0.01, u=regulator.u)
        model = control.ss(sampled.A, sampled.B, whole.C, whole.D, 0.01, name="plant", outputs=seen,
                           inputs=whole.to_control().input_labels)
    else:
        regulator, observer = REGULATOR, ld.kalman(LOADER, LOADER.home, 1e6, 1e-6, outputs=seen)
        model = ld.linearize(LOADER, LOADER.home, np.zeros(8), u=regulator.u, outputs=seen).to_control()
    whole = control.interconnect([model, observer.to_control(), regulator.to_control()],
                                 inputs=["force_lift_cylinder"], outputs=["boom"])
    found = np.sort_complex(np.concatenate([regulator.eigenvalues, observer.eigenvalues]))
    assert np.allclose(poles(whole), found, rtol=1e-6, atol=1e-8)


def test_a_discretized_model_has_the_same_names():
    arm = ld.load("five_bar")
    rest = np.zeros(4)
    held = ld.trim(arm, arm.home, free=["force:q1", "force:q4"])
    q, v, tau = held.q, 0.0 * held.v, held.tau
    ss = ld.linearize(arm, q, v, tau)
    own, of_steps = ss.discretize(1e-3), ld.discretize(arm, q, v, tau, 1e-3)
    assert type(own) is type(of_steps)
    assert (own.states, own.inputs, own.h) == (of_steps.states, of_steps.inputs, of_steps.h)
    assert np.allclose(own.A, of_steps.A, atol=1e-8) and np.allclose(own.B, of_steps.B, atol=1e-8)
    assert np.allclose(own.q_next, q, atol=1e-9)  # at an equilibrium
    # where the robot moves, the step ends where the linear model does, up to the square of the step
    fast = ld.complete_velocity(arm, arm.home, [0.5, -0.2])
    moving = ld.linearize(arm, arm.home, fast, rest)
    for h, bound in ((1e-2, 2e-2), (1e-3, 2e-4)):
        linear, exact = moving.discretize(h), ld.discretize(arm, arm.home, fast, rest, h)
        assert np.abs(linear.v_next - exact.v_next).max() < bound and np.abs(linear.q_next - exact.q_next).max() < bound
    batch = ld.linearize(arm, [arm.home, arm.home], [fast, rest], rest)
    assert np.allclose(batch.discretize(1e-3)[0].q_next, moving.discretize(1e-3).q_next, atol=1e-14)
    assert np.allclose(batch[0].discretize(1e-3).A, moving.discretize(1e-3).A)
    # quaternions turn
    b = ld.Builder("top", gravity=(0.0, 0.0, 0.0))
    b.body("top", 2.0, (0.0, 0.0, 0.3), (0.05, 0.06, 0.02))
    b.joint("ball", "spherical", "ground", "top")
    top = b.build()
    spin = np.array([0.0, 0.0, 3.0])
    turned = ld.linearize(top, top.home, spin, np.zeros(3)).discretize(0.1)
    assert np.allclose(turned.q_next, ld.integrate(top, top.home, 0.1 * spin), atol=1e-12)
