"""Frequency responses against a run with an oscillating input, closed forms, and SciPy."""
import numpy as np
import pytest
from scipy import signal

import liedyn as ld
from liedyn.machine.errors import InputError


def mass_on_a_spring(damping=0.8):
    b = ld.Builder("mass", gravity=(0.0, 0.0, 0.0))
    b.body("mass", 2.0)
    b.joint("x", "prismatic", "ground", "mass", stiffness=50.0, damping=damping)
    return b.build()


def test_closed_form():
    ss = ld.linearize(mass_on_a_spring(), [0.0], [0.0], [0.0])
    response = ld.frequency_response(ss)
    s = 1j * response.omega
    assert np.allclose(response["x", "x"], 1.0 / (2.0 * s * s + 0.8 * s + 50.0), rtol=1e-11)
    assert response.omega[0] < 0.06 and response.omega[-1] > 490.0


def test_outputs_of_a_closed_chain_and_scipy():
    loader = ld.load("loader")
    ss = ld.linearize(loader, loader.home, np.zeros(8), np.zeros(8), outputs=("pose:bucket", "acceleration:boom"))
    omega = np.geomspace(0.3, 300.0, 20)
    response = ld.frequency_response(ss, omega)
    for k, name in enumerate(ss.inputs):
        _, expected = signal.freqresp(signal.StateSpace(ss.A, ss.B[:, [k]], ss.C[-1:], ss.D[-1:, [k]]), omega)
        found = response["acceleration:boom", name]
        assert np.allclose(found, expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())


def test_a_run_that_oscillates():
    """The nonlinear machine under a small oscillating input, once it has settled."""
    robot = mass_on_a_spring(8.0)
    response = ld.frequency_response(ld.linearize(robot, [0.0], [0.0], [0.0]), [4.0])["x", "x"][0]
    t_final = 6.0 * np.pi
    tr = ld.simulate(robot, [0.0], [0.0], t_final, dt=t_final / 6000, tau=lambda t, q, v: np.array([np.cos(4.0 * t)]))
    period = slice(-1001, -1)  # two periods
    found = 2.0 * np.mean(tr["x"][period] * np.exp(-4.0j * tr.t[period]))
    assert found == pytest.approx(response, rel=1e-6)


def test_models_that_sample_and_batches():
    arm = ld.load("five_bar")
    rest = np.zeros(4)
    ds = ld.discretize(arm, arm.home, rest, rest, 0.01)
    response = ld.frequency_response(ds)
    assert response.omega[-1] <= np.pi / 0.01 * (1.0 + 1e-12) and response.outputs == ds.states
    z = np.exp(0.01j * response.omega[17])
    assert np.allclose(response.values[17], np.linalg.solve(z * np.eye(4) - ds.A, ds.B), rtol=1e-12)
    batch = ld.linearize(arm, np.tile(arm.home, (3, 1)), np.zeros((3, 4)), np.zeros((3, 4)))
    many = ld.frequency_response(batch, [1.0, 2.0])
    one = ld.frequency_response(ld.linearize(arm, arm.home, rest, rest), [1.0, 2.0])
    assert many.values.shape == (3, 2, 2, 4) and np.allclose(many.values[1], one.values, rtol=1e-12)
    axes = many.plot("q1", "q1")
    assert len(axes[0].lines) == 3 and axes[1].get_ylabel() == "phase [deg]"


def test_refused():
    ss = ld.linearize(mass_on_a_spring(0.0), [0.0], [0.0], [0.0])
    with pytest.raises(InputError, match="no response at 5 rad/s: an undamped motion"):
        ld.frequency_response(ss, [1.0, 5.0])
    with pytest.raises(InputError, match="positive frequencies"):
        ld.frequency_response(ss, [0.0])
    with pytest.raises(InputError, match="unknown output 'y'"):
        ld.frequency_response(ss, [1.0])["y", "x"]
    with pytest.raises(InputError, match="takes what linearize or discretize returns"):
        ld.frequency_response(3.0)
