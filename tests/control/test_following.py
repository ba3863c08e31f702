"""Integral action, references with feedforward, and bounds beside them."""
import numpy as np
import pytest
from rolling_robots import balancer

import liedyn as ld
from liedyn.machine.errors import InputError

LOADER = ld.load("loader")
PLAIN = {"boom": 100.0, "bucket": 100.0, "velocity:boom": 1.0, "velocity:bucket": 1.0}
WEIGHTS = PLAIN | {"integral:boom": 300.0, "integral:bucket": 300.0}
BOTH = ("boom", "bucket")
REST = np.zeros(8)


def loaded(mass):
    """The loader with another mass in its bucket."""
    b = ld.Builder.of(LOADER)
    b.change("body", "bucket", mass=mass)
    return b.build()


def run(regulator, robot, t=8.0, **bounds):
    return ld.simulate(robot, LOADER.home, REST, t, dt=5e-3, u=ld.Sampled(
        regulator, period=0.01, initial=regulator.u, **bounds))


@pytest.mark.parametrize("discrete", [False, True])
def test_a_payload_that_the_model_does_not_know(discrete):
    make = (lambda *x, **y: ld.dlqr(x[0], x[1], 0.01, *x[2:], **y)) if discrete else ld.lqr
    heavy, wanted = loaded(2600.0), {"boom": 0.1, "bucket": -0.1}
    plain = make(LOADER, LOADER.home, PLAIN, 1e-9, reference=wanted)
    regulator = make(LOADER, LOADER.home, WEIGHTS, 1e-9, integrate=BOTH, reference=wanted)
    assert regulator.states == (*plain.states, "integral:boom", "integral:bucket") and regulator.K.shape == (2, 6)
    assert "integrating boom, bucket" in repr(regulator)
    off, none = ([tr["boom"][-1] - 0.1, tr["bucket"][-1] + 0.1] for tr in (run(plain, heavy), run(regulator, heavy)))
    assert np.abs(none).max() < 1e-5 < 0.03 < np.abs(off).max()
    # the robot of the design needs none: the feedforward is that of another equilibrium, to second order
    own = run(plain, LOADER)
    assert np.abs([own["boom"][-1] - 0.1, own["bucket"][-1] + 0.1]).max() < 2e-4


def test_the_loop_has_the_eigenvalues_of_the_design():
    """The integral as a state of the closed loop: against the eigenvalues of steps of the robot itself."""
    regulator = ld.dlqr(LOADER, LOADER.home, 0.01, WEIGHTS, 1e-9, integrate=BOTH)
    assert (np.abs(regulator.eigenvalues) < 1.0).all()
    x = np.array([1e-4, -2e-4, 1e-3, 5e-4])
    q, v = regulator._deviation.state_at(x)
    z, A, B = np.zeros(2), *regulator._following.extended(regulator.model)
    tr = ld.simulate(LOADER, q, v, 0.5, dt=1e-3, u=ld.Sampled(regulator, 0.01))
    # the first sample begins the integral, by the trapezoidal rule
    state = np.append(x, z)
    for _ in range(50):
        state = A @ state + B @ (-regulator.K @ state)
    assert np.allclose(regulator.deviation(tr.q[-1], tr.v[-1]), state[:4], rtol=0.0, atol=1e-6)  # of second order in x


def test_runs_begin_anew_and_go_back():
    regulator = ld.lqr(LOADER, LOADER.home, WEIGHTS, 1e-9, integrate=BOTH)
    q = ld.close(LOADER, LOADER.home, boom=0.02)
    first = [regulator(t, q, REST) for t in (0.0, 0.1, 0.2)]
    again = [regulator(t, q, REST) for t in (0.0, 0.1, 0.2)]
    assert np.array_equal(first, again) and not np.allclose(first[0], first[2])
    fine = ld.simulate(LOADER, q, REST, 1.0, dt=2e-3, u=regulator)  # stages of Runge-Kutta, continuous in time
    sampled = ld.simulate(LOADER, q, REST, 1.0, dt=2e-3, u=ld.Sampled(regulator, 2e-3))
    assert np.allclose(fine.q[-1], sampled.q[-1], atol=1e-3)
    regulator.reset()
    assert np.array_equal(regulator(5.0, q, REST), first[0])


def test_references_that_move():
    t_end = 6.0

    def wave(t):
        return 0.1 * np.sin(t), 0.1 * np.cos(t), -0.1 * np.sin(t)

    errors = []
    for reference in (wave, lambda t: wave(t)[0]):  # with rates and without
        regulator = ld.lqr(LOADER, LOADER.home, PLAIN, 1e-9, reference={"boom": reference})
        tr = run(regulator, LOADER, t_end)
        errors.append(np.abs(tr["boom"] - 0.1 * np.sin(tr.t))[400:].max())
        assert np.abs(tr["bucket"]).max() < 0.02  # what has no reference stays
    assert errors[0] < 3e-3 < 10.0 * errors[0] < errors[1]
    # the same as a motion: with its inputs exact, from its start
    q = np.array([ld.close(LOADER, LOADER.home, boom=wave(t)[0]) for t in np.linspace(0.0, t_end, 301)])
    t, held = np.linspace(0.0, t_end, 301), LOADER.home
    v = ld.complete_velocity(LOADER, q, np.stack([0.1 * np.cos(t), 0.0 * t], axis=-1))
    found = ld.inverse_dynamics(LOADER, q, v, np.stack([-0.1 * np.sin(t), 0.0 * t], axis=-1))

    class Motion:
        u = found.u

    Motion.t, Motion.q, Motion.v = t, q, v
    regulator = ld.lqr(LOADER, held, WEIGHTS, 1e-9, integrate=BOTH, reference=Motion)
    tr = ld.simulate(LOADER, q[0], v[0], t_end, dt=5e-3, u=ld.Sampled(regulator, 5e-3, initial=found.u[0]))
    assert np.abs(tr["boom"] - 0.1 * np.sin(tr.t)).max() < 1e-4
    # a trajectory is such a motion
    again = ld.lqr(LOADER, held, PLAIN, 1e-9, reference=tr)
    assert np.allclose(again(1.0, tr.q[200], tr.v[200]), tr.u[200], rtol=1e-6)
    assert ld.check_feedback(LOADER, again.feedback, q[7], v[7], t=1.0).ok


def test_bounds_and_integrals():
    """With bounds that bind for a second, an integral that goes on overshoots; one that is held back does not."""
    regulator = ld.lqr(LOADER, LOADER.home, WEIGHTS, 1e-9, integrate=BOTH, reference={"boom": 0.3})
    bounds = dict(lower=regulator.u - 2.5e4, upper=regulator.u + 2.5e4)

    class Deaf:
        def __call__(self, t, q, v):
            return regulator(t, q, v)

        u = regulator.u

    tr = run(regulator, LOADER, 12.0, **bounds)
    regulator.reset()
    wound = run(Deaf(), LOADER, 12.0, **bounds)
    over, over_wound = tr["boom"].max() - 0.3, wound["boom"].max() - 0.3
    assert (np.abs(tr.u - regulator.u).max(axis=1) > 2.49e4).sum() > 100  # they bind
    assert abs(tr["boom"][-1] - 0.3) < 1e-3 and over < 0.5 * over_wound
    # within output feedback as well
    observer = ld.dkalman(LOADER, LOADER.home, 0.01, 1e6, 1e-6, outputs=BOTH)
    feedback = ld.OutputFeedback(regulator, observer, initial=regulator.u, **bounds)
    seen = ld.simulate(LOADER, LOADER.home, REST, 12.0, dt=5e-3, u=feedback.sampled)
    assert seen["boom"].max() - 0.3 < 0.7 * over_wound


def test_a_balancer_that_is_told_its_speed():
    """Steered by references of its wheels' speeds; its payload leans, which the integrals find out."""
    robot = balancer("planar")
    wheels = ("velocity:left_wheel", "velocity:right_wheel")
    weights = {"pitch": 10.0} | dict.fromkeys(wheels, 1.0) | {f"integral:{name}": 1.0 for name in wheels}
    regulator = ld.lqr(robot, robot.home, weights, 1.0, states=("pitch", *wheels), integrate=wheels,
                       reference={wheels[0]: 5.0, wheels[1]: lambda t: 5.0 if t < 6.0 else 8.0})
    b = ld.Builder.of(robot)
    b.change("body", "rod", com=(0.02, 0.0, 0.35))
    tr = ld.simulate(b.build(), robot.home, np.zeros(6), 14.0, dt=5e-3, u=ld.Sampled(regulator, 5e-3))
    k = np.searchsorted(tr.t, 5.9)
    assert np.allclose([tr[name][k] for name in wheels], 5.0, atol=0.05)
    assert np.allclose([tr[name][-1] for name in wheels], [5.0, 8.0], atol=0.05)
    assert abs(tr["pitch"][-1] + np.arctan2(0.02, 0.35)) < 2e-3 and abs(tr["base.angle"][-1]) > 3.0


def test_what_cannot_be_followed():
    for given, message in (
            (dict(reference={"acceleration:boom": 0.0}), "acceleration:boom depends on the inputs at once"),
            (dict(reference={"velocity:boom": 0.1}), "no inputs keep what is regulated steady with velocity:boom held"),
            (dict(reference=[1.0, 2.0]), "reference must be a dict"),
            (dict(reference={"pose:bucket": 0.1}), "'pose:bucket' is 6 numbers"),
            (dict(reference={"boom": [1.0, 2.0]}), "must be a number, or value, rate and acceleration"),
            (dict(reference={"boom": lambda t: "x"}), "reference of 'boom'"),
            (dict(integrate=("velocity:boom",)), "integral:velocity:boom with the eigenvalue"),
            (dict(integrate=("bom",)), "bom")):
        with pytest.raises(InputError, match=message):
            ld.lqr(LOADER, LOADER.home, 100.0, 1e-9, **given)
    robot = balancer("planar")
    with pytest.raises(InputError, match="base.angle depends on base.angle, which is left out"):
        ld.lqr(robot, robot.home, 1.0, 1.0, states=("pitch", "velocity:left_wheel", "velocity:right_wheel"),
               integrate=("base.angle",))


def test_integrals_in_python_control():
    control = pytest.importorskip("control")
    for regulator in (ld.lqr(LOADER, LOADER.home, WEIGHTS, 1e-9, integrate=BOTH),
                      ld.dlqr(LOADER, LOADER.home, 0.01, WEIGHTS, 1e-9, integrate=BOTH)):
        model = regulator.model
        plant = control.ss(model.A, model.B, np.eye(4), np.zeros((4, 2)), getattr(model, "h", 0), name="plant", inputs=[
            "force_lift_cylinder", "force_tilt_cylinder"], outputs=[name.replace(":", "_") for name in model.states])
        closed = control.interconnect([plant, regulator.to_control(estimated=False)], inputs=["force_lift_cylinder"],
                                      outputs=["boom"])
        assert np.allclose(np.sort_complex(closed.poles()), regulator.eigenvalues, rtol=1e-6)
        with pytest.raises(InputError, match="gives deviations only"):
            regulator.to_control(absolute=True)
