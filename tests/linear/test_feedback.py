"""Feedback with its derivative: closed loops against differences of the closed-loop dynamics; what is refused."""
import numpy as np
import pytest
from closed_chains import closed_mechanism, difference, differences, moving_state, off
from test_discretization import check
from test_linearization import acceleration
from tree_cases import bundled
from users import kept

import liedyn as ld
from liedyn.machine.errors import InputError
from liedyn.mechanics.constraints.independent import choose
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE

TOLERANCE = 2e-8  # as in test_linearization: rounding 1e-12 by a step of 1e-3, times the condition of the chain


def feedback(robot, size, seed=0, scale=1.0):
    """A smooth feedback of that many forces, nonlinear in the numbers of q, in v and in t, and its derivative."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(size, robot.nq)), 0.3 * rng.normal(size=(size, robot.nv))

    def f(t, q, v):
        return scale * (np.sin(A @ q + t) - B @ v - 0.2 * (B @ v) ** 2)

    def df(t, q, v):
        moved = np.stack([difference(lambda s, e=e: ld.integrate(robot, q, s * e)) for e in np.eye(robot.nv)], -1)
        return (scale * np.cos(A @ q + t)[:, None] * (A @ moved),
                scale * (-1.0 - 0.4 * (B @ v))[:, None] * B)

    return f, df


def closed_loop(robot, q, v, name, pair, outputs=(), evaluate=None):
    """Lower rows of [A B], and [C D] if there are outputs, with their differences."""
    S = np.eye(robot.nv) if name == "tau" else robot.actuator_matrix
    chosen = choose(robot, q, "auto", RANK_TOLERANCE)

    def along(function):
        return differences(robot, q, v, np.zeros(robot.nv), chosen, lambda q, v, extra: function(
            robot, q, v, S @ pair[0](robot.t, q, v) + extra))

    ss = ld.linearize(robot, q, v, independent="auto", outputs=outputs, **{name: pair})
    assert off(ss.tau, S @ pair[0](robot.t, q, v)) < 1e-15
    found = [np.hstack([ss.A, ss.B])[len(ss.K[0]):], np.hstack([ss.C, ss.D])]
    expected = [along(lambda *state: acceleration(*state, chosen)), along(evaluate) if evaluate else found[1]]
    return found, expected


@pytest.mark.parametrize("name, inputs", [
    ("five_bar", "tau"), ("loader", "tau"), ("loader", "u"), ("panda", "tau"), ("stewart", "u"), ("solo12", "u")])
def test_machines(name, inputs):
    robot = bundled(name)
    q = ld.close(robot, robot.home) if robot.loop_names else robot.home
    v, _ = moving_state(robot, q) if robot.loop_names else (np.linspace(-0.5, 0.5, robot.nv), None)
    pair = feedback(robot, robot.nv if inputs == "tau" else len(robot.actuator_names), scale=3.0)
    assert ld.check_feedback(robot, pair, q, v).ok
    if robot.loop_names:
        (lower, _), (expected, _) = closed_loop(robot, q, v, inputs, pair)
        assert off(lower, expected) < TOLERANCE
        return
    S, n = np.eye(robot.nv) if inputs == "tau" else robot.actuator_matrix, robot.nv
    ss = ld.linearize(robot, q, v, **{inputs: pair})

    def rate(q, v):
        return ld.aba(robot, q, v, S @ pair[0](0.0, q, v))

    by_q = [difference(lambda s, e=e: rate(ld.integrate(robot, q, s * e), v)) for e in np.eye(n)]
    by_v = [difference(lambda s, e=e: rate(q, v + s * e)) for e in np.eye(n)]
    assert off(ss.A[n:], np.stack(by_q + by_v, -1)) < TOLERANCE


@pytest.mark.parametrize("kind", ["revolute", "spherical", "planar"])
def test_outputs_of_every_rate(kind):
    """Universal and ball joints in the branches; accelerations and wrenches depend on the feedback at once."""
    robot, q = closed_mechanism(kind, seed=2)
    v, _ = moving_state(robot, q)
    outputs = ("twist:b1", "wrench:cut", "acceleration:j_trunk")

    def evaluate(robot, q, v, tau):
        r = ld.forward_dynamics(robot, q, v, tau, independent="tangent")
        return np.concatenate([ld.body_jacobian(robot, q, "b1") @ v, r.constraint_wrenches["cut"],
                               r.a[[robot.velocity_index("j_trunk")]]])

    found, expected = closed_loop(robot, q, v, "tau", feedback(robot, robot.nv), outputs, evaluate)
    assert off(found[0], expected[0]) < TOLERANCE and off(found[1], expected[1]) < 1e-7


def test_steps():
    """`discretize`: one-dof coordinates, rolling, a moving pin; the feedback acts at every stage, also by its time."""
    robot = bundled("loader")
    v, _ = moving_state(robot, robot.home)
    check(robot, robot.home, v, feedback(robot, robot.nv, scale=500.0), robot.independent, robot.independent)
    robot = bundled("shopping_cart")
    q = np.array([0.1, -0.2, 0.3, 0.4])
    v = ld.complete_velocity(robot, q, {"cart.x": 0.7, "cart.angle": 0.5})
    check(robot, q, v, feedback(robot, 4), robot.velocity_names, ("cart.x", "cart.angle"))
    robot = bundled("five_bar").with_target("pin", lambda t: ([0.1 * t, 0, 0], [0.1, 0, 0], [0, 0, 0])).at(0.3)
    q = ld.close(robot, robot.home, {"q1": robot.home[0]})
    v = ld.complete_velocity(robot, q, {"q1": 0.5, "q4": -0.4})
    check(robot, q, v, feedback(robot, 4), ("q1", "q4"), ("q1", "q4"))


def test_batches_and_constant_inputs():
    robot, rng = bundled("loader"), np.random.default_rng(1)
    q = ld.close(robot, robot.home, boom=0.3)
    v = np.array([ld.complete_velocity(robot, q, {"boom": x, "bucket": y}) for x, y in rng.normal(size=(6, 2))])
    for name, size in (("tau", robot.nv), ("u", 2)):
        for outputs in (None, (), ("wrench:" + robot.loop_names[0], "velocity:boom")):
            pair = feedback(robot, size)
            many = ld.linearize(robot, q, v.reshape(2, 3, -1), outputs=outputs, **{name: pair})
            for k, each in enumerate(v):
                one = ld.linearize(robot, q, each, outputs=outputs, **{name: pair})
                for part in "ABCD":
                    assert off(getattr(many, part)[k // 3, k % 3], getattr(one, part)) < 1e-11, part
            u = rng.normal(size=(6, size))
            S = np.eye(robot.nv) if name == "tau" else robot.actuator_matrix
            ones, zeros = np.ones(size), np.zeros((2, size, robot.nv)).tolist()
            constant = (lambda t, q, v, ones=ones: ones), (lambda t, q, v, zeros=zeros: zeros)
            held = ld.linearize(robot, q, v, outputs=outputs, **{name: np.ones(size)})
            assert off(held.A, ld.linearize(robot, q, v, outputs=outputs, **{name: constant}).A) < 1e-11
            assert off(ld.linearize(robot, q, v, **{name: u}).tau, u @ S.T) < 1e-15


@kept
def stiff(t, q, v):
    return -100.0 * (q - 0.1 * np.sin(t)) - 10.0 * v * (1.0 + v * v)


@kept
def stiff_derivatives(t, q, v):
    return -100.0 * np.eye(q.size), np.diag(-10.0 * (1.0 + 3.0 * v * v))


@pytest.mark.parametrize("method", ["implicit", "generalized_alpha", "Radau", "BDF", "LSODA"])
def test_motion_in_python_and_compiled(method):
    robot = bundled("panda")
    assert ld.check_feedback(robot, (stiff, stiff_derivatives), robot.home, np.ones(7)).ok
    options = dict(method=method, dt=1e-2)
    tr = ld.simulate(robot, np.zeros(7), np.zeros(7), 0.3, tau=(stiff, stiff_derivatives), **options)
    same = ld.simulate(robot, np.zeros(7), np.zeros(7), 0.3, tau=(stiff.py_func, stiff_derivatives.py_func), **options)
    assert off(tr.q, same.q) < 1e-10
    exact = ld.simulate(robot, np.zeros(7), np.zeros(7), 0.3, tau=(stiff, stiff_derivatives), method="DOP853")
    # 1e-8 is asked of the adaptive ones; orders four and two at steps of 1e-2
    assert np.abs(tr.q[-1] - exact.q[-1]).max() < {"implicit": 1e-5, "generalized_alpha": 1e-3}.get(method, 1e-6)


def fails(t, q, v):
    if t > 0.05:
        raise ZeroDivisionError("nothing left")
    return np.zeros((4, 4)), -1e4 * np.eye(4)


def f(t, q, v):
    return -v


def df(t, q, v):
    return np.zeros((4, 4)), -np.eye(4)


@pytest.mark.parametrize("given, message", [
    ((f, 3.0), "tau as feedback must be"), ((f, df, df), "tau as feedback must be"),
    ((f, lambda t, q, v: np.eye(4)), r"df of tau = \(f, df\) must return \(by_q, by_v\)"),
    ((f, lambda t, q, v: (np.eye(4), np.eye(3))), r"by_v of df of tau = \(f, df\) must have shape \(4, 4\), got \(3"),
    ((f, lambda t, q, v: (np.full((4, 4), np.inf), np.eye(4))), r"by_q of df of tau = \(f, df\) is not finite"),
    ((f, lambda t, q, v: 1 / 0), r"df of tau = \(f, df\) fails with ZeroDivisionError"),
])
def test_errors_name_what_is_wrong(given, message):
    robot = bundled("five_bar")
    for call in (lambda: ld.simulate(robot, robot.home, np.zeros(4), 0.1, tau=given),
                 lambda: ld.linearize(robot, robot.home, np.zeros(4), given),
                 lambda: ld.discretize(robot, robot.home, np.zeros(4), given, 1e-3)):
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.parametrize("method", ["implicit", "generalized_alpha", "Radau", "BDF", "LSODA"])
def test_an_error_in_the_derivative_stops_the_run(method):
    robot, tau = bundled("five_bar"), ((lambda t, q, v: -1e4 * v), fails)  # stiff: LSODA asks for no Jacobian otherwise
    with pytest.raises(ld.SimulationError, match="ZeroDivisionError: nothing left") as caught:
        ld.simulate(robot, robot.home, np.zeros(4), 20.0, tau=tau, method=method, dt=1e-2)
    assert caught.value.trajectory.t[-1] > 0.02


def test_more_errors():
    robot, rest = bundled("five_bar"), np.zeros(4)
    for given in (dict(), dict(tau=rest, u=rest)):
        with pytest.raises(InputError, match="give tau"):
            ld.linearize(robot, robot.home, rest, **given)
    with pytest.raises(InputError, match="tau is a function without its derivative"):
        ld.linearize(robot, robot.home, rest, f)
    with pytest.raises(InputError, match=r"f of u = \(f, df\) must have shape \(4,\), got \(2,\)"):
        ld.linearize(robot, robot.home, rest, u=(lambda t, q, v: np.ones(2), df))
    assert not ld.check_feedback(robot, (f, lambda t, q, v: (np.zeros((4, 4)), np.eye(4))), robot.home, rest).ok
    # explicit methods have no use for it
    assert ld.simulate(robot, robot.home, rest, 0.2, tau=(f, fails)).t[-1] == 0.2
