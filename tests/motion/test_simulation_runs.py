"""Inputs, results, errors, and what a long run costs."""
import gc
import json
import re
import resource
import sys
import time

import numpy as np
import pytest
from numba import njit
from tree_cases import bundled
from users import kept

import liedyn as ld
from liedyn.machine.compiled import jit


@pytest.fixture(scope="module")
def five_bar():
    return bundled("five_bar")


def pendulum(damping=0.0):
    builder = ld.Builder("pendulum")
    builder.body("bob", 1.0, com=(0.0, 0.0, -1.0))
    builder.joint("angle", "revolute", "ground", "bob", axis=(0, 1, 0), damping=damping)
    builder.constraint("brake", "coupling", coefficients={"angle": 1.0}, offset=0.5, active=False)
    return builder.build()


def compilations():
    return sum(len(kernel.overloads) for kernel in jit.KERNELS)


@kept
def torque(t, q, v):
    return np.array([3.0 * np.sin(5 * t), 0.0, -v[2], 0.0])


@kept
def other_torque(t, q, v):
    return np.array([2.0 * np.cos(5 * t), 0.0, -v[1], 0.0])


@kept
def steer(t, q, v):
    """A push along the cart, and a moment that turns it to and fro."""
    return np.array([12.0 * np.cos(q[2]), 12.0 * np.sin(q[2]), 3.0 * np.sin(20.0 * t), 0.0])


# ---- inputs


def test_inputs_of_every_form(five_bar):
    q, rest = five_bar.home, [0.0] * 4
    constant = ld.simulate(five_bar, q, rest, 0.1, tau=[1.0, 0.0, 0.0, 0.0])
    for tau in (np.tile([1.0, 0, 0, 0], (100, 1)), np.tile([1.0, 0, 0, 0], (101, 1)),
                lambda t, q, v: [1.0, 0.0, 0.0, 0.0], njit(lambda t, q, v: np.array([1.0, 0.0, 0.0, 0.0]))):
        tr = ld.simulate(five_bar, q, rest, 0.1, tau=tau)
        np.testing.assert_allclose(tr.q, constant.q, rtol=0, atol=1e-15)
    python = ld.simulate(five_bar, q, rest, 0.1, tau=torque.py_func)
    compiled = ld.simulate(five_bar, q, rest, 0.1, tau=torque)
    np.testing.assert_allclose(compiled.q, python.q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(compiled.tau[:, 0], 3.0 * np.sin(5 * compiled.t), atol=1e-14)


@pytest.mark.parametrize("method", ["rk4", "DOP853"])
def test_a_table_is_held_over_each_step(method):
    """Piecewise constant force on a mass: piecewise parabolas."""
    builder = ld.Builder("mass", gravity=(0, 0, 0))
    builder.body("mass", 2.0)
    builder.joint("x", "prismatic", "ground", "mass")
    forces = np.array([[1.0], [-3.0], [0.0], [5.0]])
    tr = ld.simulate(builder.build(), [0.0], [0.0], 0.4, tau=forces, dt=0.1, method=method)
    v = np.append(0.0, np.cumsum(forces[:, 0] / 2.0 * 0.1))
    np.testing.assert_allclose(tr.v[:, 0], v, atol=1e-13)
    np.testing.assert_allclose(tr.q[-1, 0], np.sum(0.1 * (v[1:] + v[:-1]) / 2), atol=1e-13)
    np.testing.assert_allclose(tr.input_work[-1], 0.5 * 2.0 * v[-1] ** 2, atol=1e-13)


def test_actuators():
    loader = bundled("loader")
    u = np.array([100.0, -50.0])
    by_u = ld.simulate(loader, loader.home, [0.0] * 8, 0.02, u=u)
    by_tau = ld.simulate(loader, loader.home, [0.0] * 8, 0.02, tau=loader.actuator_matrix @ u)
    np.testing.assert_allclose(by_u.q, by_tau.q, atol=1e-14)


@pytest.mark.parametrize("options, text", [
    (dict(tau=[1.0]), r"tau must have shape \(\.\.\., 4\)"),
    (dict(tau=np.zeros((7, 4))), r"over the time grid must have shape \(100, 4\)"),
    (dict(tau=[np.nan, 0, 0, 0]), "tau is not finite"),
    (dict(tau=[[0.0, 0, 0, 0]] * 99 + [[0, 0, 1e200, 0]]), r"tau is too large, .*: tau\[99, 2\] = 1e\+200"),
    (dict(tau=lambda t, q, v: [1.0]), "tau: must return 4 numbers, got 1"),
    (dict(tau=lambda t, q, v: 1 / 0), "tau: fails with ZeroDivisionError"),
    (dict(tau=[0.0] * 4, u=[0.0] * 4), "tau or u, not both"),
    (dict(dt=0.0), "dt must be positive"), (dict(dt=np.nan), "dt must be finite"), (dict(t0=1.0), "t_final must come"),
    (dict(method="rk5"), "unknown method 'rk5', did you mean 'rk4'"),
    (dict(formulation="kanes"), "unknown formulation"), (dict(stabilisation="projected"), "unknown stabilisation"),
    (dict(energy=True, stabilisation="none"), "energy=True is part of the projection"),
    (dict(method="implicit", stabilisation="baumgarte"), "keeps the constraints itself"),
    (dict(record=0), "record must be"),
    (dict(start="as-given"), "unknown start 'as-given', did you mean 'as given'"),
    (dict(events=[1]), "events must be of class Event"), (dict(unilateral={"pin": 2}), "sign must be 1 or -1"),
])
def test_bad_input(five_bar, options, text):
    with pytest.raises(ld.InputError, match=text):
        ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.1, **options)


def test_bad_start(five_bar):
    with pytest.raises(ld.ClosureError, match="inconsistent start: constraint 'pin'.*open by"):
        ld.simulate(five_bar, [0.1, 0.2, 0.3, 0.4], [0.0] * 4, 0.1)
    with pytest.raises(ld.InputError, match="inconsistent start: v0 violates pin"):
        ld.simulate(five_bar, five_bar.home, [1.0, 0, 0, 0], 0.1)
    with pytest.raises(ld.InputError, match="q0 is not finite"):
        ld.simulate(five_bar, [np.nan, 0, 0, 0], [0.0] * 4, 0.1)


# ---- stops


def stopped(match, *arguments, **options):
    with pytest.raises(ld.SimulationError, match=match) as caught:
        ld.simulate(*arguments, **options)
    error = caught.value
    assert len(error.trajectory) > 1 and error.trajectory.t[-1] == error.state[0]
    assert (error.trajectory.q[-1] == error.state[1]).all() and np.isfinite(error.trajectory.v).all()
    return error


@pytest.mark.parametrize("number", [np.nan, -np.inf, 1e200])
@pytest.mark.parametrize("method", ["rk4", "rkmk", "implicit", "generalized_alpha", "moreau", "RK45", "Radau"])
def test_forces_that_are_no_forces(five_bar, method, number):
    """They are named, and no singular configuration is."""
    def broken(t, q, v):
        return [0.0, number if t > 0.05 else 0.0, 0.0, 0.0]

    error = stopped(rf"stopped at t = .* s: .*\btau\b.* {re.escape(str(number))}", five_bar, five_bar.home, [0.0] * 4,
                    0.1, tau=broken, method=method, dt=1e-3)
    assert "singular" not in str(error)
    # adaptive steps reach ahead
    assert 0.02 < error.state[0] < 0.06


def test_errors_in_users_functions(five_bar):
    def broken(t, q, v):
        if t > 0.05:
            raise ValueError("sensor lost")
        return [0.0] * 4

    error = stopped("ValueError: sensor lost", five_bar, five_bar.home, [0.0] * 4, 0.1, tau=broken)
    assert isinstance(error.__cause__, ValueError) and 0.04 < error.state[0] < 0.051


def test_out_of_reach(five_bar):
    """A pin that is carried away until the linkage is stretched out, and further."""
    away = five_bar.with_target("pin", lambda t: ([5.0 * t, 0, 0], [5.0, 0, 0], [0, 0, 0]))
    for method in ("rk4", "DOP853"):
        error = stopped("stopped at t = 0.[78]", away, away.home, [0.0] * 4, 2.0, start="project", method=method,
                        dt=1e-3)
        assert error.trajectory.position_residual.max() < 1e-9


def test_divergence():
    stopped("diverged", pendulum(), [0.1], [0.0], 1.0, tau=lambda t, q, v: [1e3 * v[0] + 1.0], largest_speed=1e6)


def test_interrupt_keeps_what_there_is(five_bar):
    def impatient(t, q, v):
        if t > 0.05:
            raise KeyboardInterrupt
        return [0.0] * 4

    with pytest.raises(KeyboardInterrupt) as caught:
        ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.1, tau=impatient)
    assert len(caught.value.trajectory) > 10


# ---- results


def test_save_and_load(tmp_path):
    catch = ld.Event("catch", lambda t, q, v: q[0] - 0.5, direction=1, on="brake")
    tr = ld.simulate(pendulum(0.1), [0.0], [3.0], 1.0, events=catch)
    assert len(tr.events) == 1 and tr.other_work[-1] < 0.0
    again = ld.Trajectory.load(tr.save(tmp_path / "run"))
    for name, value in vars(tr).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(again, name), value)
        elif name not in ("events", "constraint_wrenches", "_robot"):
            assert getattr(again, name) == value
    for one, two in zip(tr.events, again.events):
        assert json.dumps(vars(one), default=np.ndarray.tolist) == json.dumps(vars(two), default=np.ndarray.tolist)
    np.savez(tmp_path / "other", x=1.0)
    with pytest.raises(ld.InputError, match="was not written by Trajectory.save"):
        ld.Trajectory.load(tmp_path / "other.npz")


def test_columns_by_name(five_bar):
    tr = ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.05, tau=[1.0, 0, 0, 0])
    assert (tr["q3"] == tr.q[:, 2]).all() and (tr["velocity:q3"] == tr.v[:, 2]).all()
    assert (tr["acceleration:q3"] == tr.a[:, 2]).all() and (tr["force:q1"] == 1.0).all()
    assert (tr["pin.vx"] == tr.lam[:, five_bar.row_names.index("pin.vx")]).all()
    with pytest.raises(ld.InputError, match="nothing called 'q9' in the trajectory"):
        tr["q9"]


def test_rows_agree_with_forward_dynamics(five_bar):
    tr = ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.3, tau=torque)
    r = ld.forward_dynamics(five_bar, tr.q, tr.v, tr.tau)
    np.testing.assert_allclose(tr.a, r.a, atol=1e-9)
    np.testing.assert_allclose(tr.lam, r.lam, atol=1e-8)
    np.testing.assert_allclose(tr.kinetic, ld.kinetic_energy(five_bar, tr.q, tr.v), rtol=1e-12, atol=1e-14)


def test_every_tenth_state(five_bar):
    full = ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.105)
    some = ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.105, record=10)
    assert len(full) == 106 and len(some) == 12
    np.testing.assert_array_equal(some.q[:-1], full.q[:-1:10])
    np.testing.assert_array_equal(some.q[-1], full.q[-1])


def test_progress(five_bar, capsys, monkeypatch):
    ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.05, progress=True)
    assert "0.05/0.05 s" in capsys.readouterr().err
    ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.05)
    assert capsys.readouterr().err == ""
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ld.InputError, match="progress=True needs tqdm"):
        ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.05, progress=True)
    assert len(ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.05)) == 51


# ---- cost


def test_new_functions_compile_no_kernel(five_bar):
    ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.01, tau=torque)
    before = compilations()
    ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.01, tau=other_torque, stabilisation="baumgarte")
    ld.simulate(five_bar, five_bar.home, [0.0] * 4, 0.01, tau=[1.0] * 4, stabilisation="minimal", method="rkmk")
    assert compilations() == before


@kept
def evaluations(model, q, v, tau, count, work, a, lam):
    none = np.empty(0)
    for _ in range(count):
        ld.kernels.forward_dynamics(model, q, v, tau, none, ld.kernels.RANK_TOLERANCE, work, a, lam)


def test_a_step_costs_little_more_than_its_four_evaluations(five_bar):
    """Of forward dynamics, in processor time, the two in turns. With projection and records it is three times as much,
    which makes 100,000 steps per second; here it may be six times, as other work on the machine gets in between."""
    state = five_bar.packed, five_bar.home, *np.zeros((2, five_bar.nv))
    room = ld.kernels.workspace(five_bar), np.empty(five_bar.nv), np.empty(len(five_bar.row_names))

    def processor_time(function, *arguments, **options):
        start = time.process_time()
        function(*arguments, **options)
        return time.process_time() - start

    times = [(processor_time(ld.simulate, five_bar, five_bar.home, [0.0] * 4, 0.6, progress=False),
              processor_time(evaluations, *state, 4 * 600, *room)) for _ in range(11)]
    steps, alone = map(min, zip(*times[1:]))  # the first compile
    assert steps < 6.0 * alone


def test_a_thousand_switches():
    """Issue: they leak no memory, compile nothing, and leave closure below the tolerance."""
    cart = bundled("shopping_cart")
    rate = 2 * np.pi / 2e-3
    events = [ld.Event("sticks", lambda t, q, v: np.sin(rate * t + 1.0), direction=1, on="stick"),
              ld.Event("loose", lambda t, q, v: np.sin(rate * t + 1.0), direction=-1, off="stick")]

    def run(end):
        return ld.simulate(cart, [0.0, 0.0, 0.1, 0.6], [0.0] * 4, end, tau=steer, events=events, record=100)

    compiled, memory = [], []
    for _ in range(3):
        tr = run(1.0)
        gc.collect()
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        compiled.append(compilations())
    assert len(tr.events) > 950 and tr.velocity_residual.max() < 1e-10
    assert np.abs(tr.energy_drift).max() < 1e-6 and sum(event.energy_loss for event in tr.events) > 1e-3
    assert compiled[2] == compiled[0]  # the first run compiles what it needs once, and fills the allocator's pools
    assert memory[2] - memory[1] < 2048, memory  # kB


@pytest.mark.parametrize("t0", [-1e5, 1e6, 1.76e9])
def test_times_of_a_clock_are_as_good_as_zero(five_bar, t0):
    """Every step is made once, wherever time is counted from."""
    rest = np.zeros(4)
    near = ld.simulate(five_bar, five_bar.home, rest, 0.1, progress=False)
    far = ld.simulate(five_bar, five_bar.home, rest, t0 + 0.1, t0=t0, progress=False)
    assert len(far) == len(near) and (np.diff(far.t) > 0.0).all()
    assert abs(far.q - near.q).max() < 1e-5  # times are rounded to 2e-7 s at most
    with pytest.raises(ld.InputError, match="dt = 1e-08 is too short for times around 1.76e"):
        ld.simulate(five_bar, five_bar.home, rest, 1.76e9 + 0.1, t0=1.76e9, dt=1e-8)
