"""Users' functions that fail inside kernels: every public function says which, where and why."""
import copy
import pickle

import numpy as np
import pytest
from numba import njit
from users import kept

import liedyn as ld

Q, REST = np.zeros(7), np.zeros(7)
AWAY = np.array([1.0, 0, 0, 0, 0, 0, 0])
COMPILED = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "python"])
BAR = ld.load("five_bar")


FINE = {"residual": lambda t, q: np.array([q.sum()]), "drift": lambda t, q: np.zeros(1),
        "jacobian": lambda t, q: np.ones((1, 7)), "bias": lambda t, q, v: np.zeros(1),
        "derivatives": lambda t, q, v, a: (np.zeros((1, 7)), np.zeros((1, 7)), np.zeros((1, 7))),
        "force_derivative": lambda t, q, lam: np.zeros((7, 7))}
"""Rows of a sum of coordinates: v_1 + ... + v_7 = 0."""
FINE_COMPILED = {key: njit(function) for key, function in FINE.items()}


def raises(x):
    if x > 0.5:
        raise ValueError("out of range")
    return 1.0


def is_nan(x):
    return np.nan if x > 0.5 else 1.0


FAILING = {
    "residual": lambda f: lambda t, q: np.array([f(q[0]) * q.sum()]),
    "drift": lambda f: lambda t, q: f(q[0]) * np.zeros(1),
    "jacobian": lambda f: lambda t, q: f(q[0]) * np.ones((1, 7)),
    "bias": lambda f: lambda t, q, v: f(q[0]) * np.zeros(1),
    "derivatives": lambda f: lambda t, q, v, a: (f(q[0]) * np.zeros((1, 7)), np.zeros((1, 7)), np.zeros((1, 7))),
    "force_derivative": lambda f: lambda t, q, lam: f(q[0]) * np.zeros((7, 7)),
}


def arm(compiled=True, fine=None, **other):
    """A panda with these rows, some functions replaced by others."""
    b = ld.Builder.of(ld.load("panda"))
    b.custom("sum", **(fine or (FINE_COMPILED if compiled else FINE)) | {
        name: njit(f) if compiled else f for name, f in other.items()})
    return b.build()


def failing_arm(compiled, key, failure, fine=None):
    return arm(compiled, fine, **{key: FAILING[key](njit(failure) if compiled else failure)})


CALLS = {
    "residual": [ld.closure_error, lambda r, q: ld.linearize(r, q, 0 * q, 0 * q), lambda r, q: ld.close(r, q),
                 lambda r, q: ld.forward_dynamics(r, q, 0 * q, 0 * q, method="svd", baumgarte=(1.0, 1.0)),
                 lambda r, q: ld.simulate(r, q, 0 * q, 0.01)],
    "drift": [lambda r, q: ld.velocity_error(r, q, 0 * q), lambda r, q: ld.linearize(r, q, 0 * q, 0 * q),
              lambda r, q: ld.complete_velocity(r, q, {name: 0.0 for name in r.velocity_names[1:]})],
    "jacobian": [ld.constraint_jacobian, lambda r, q: ld.forward_dynamics(r, q, 0 * q, 0 * q),
                 lambda r, q: ld.forward_dynamics(r, q, 0 * q, 0 * q, independent=r.velocity_names[1:]),
                 lambda r, q: ld.forward_dynamics(r, q, 0 * q, 0 * q, method="kane"),
                 lambda r, q: ld.velocity_error(r, q, 0 * q), ld.controllability,
                 lambda r, q: ld.linearize(r, q, 0 * q, 0 * q),
                 lambda r, q: ld.linearize(r, q, 0 * q, 0 * q, independent=r.velocity_names[1:]),
                 lambda r, q: ld.inverse_dynamics(r, q, 0 * q, np.zeros(6)),
                 lambda r, q: ld.simulate(r, q, 0 * q, 0.01, start="as given")],
    "bias": [lambda r, q: ld.constraint_bias(r, q, 0 * q), lambda r, q: ld.forward_dynamics(r, q, 0 * q, 0 * q),
             lambda r, q: ld.forward_dynamics(r, q, 0 * q, 0 * q, method="udwadia_kalaba")],
    "derivatives": [lambda r, q: ld.linearize(r, q, 0 * q, 0 * q), lambda r, q: ld.underlying(r, q, 0 * q, 0 * q),
                    lambda r, q: ld.linearize(r, q, 0 * q, 0 * q, independent=r.velocity_names[1:]),
                    lambda r, q: ld.discretize(r, q, 0 * q, 0 * q, 1e-3),
                    lambda r, q: ld.check_constraint(r, "sum", q, 0 * q)],
    "force_derivative": [lambda r, q: ld.linearize(r, q, 0 * q, 0 * q)],
}


@COMPILED
@pytest.mark.parametrize("failure, reason", [(raises, "fails with ValueError: out of range"), (is_nan, "not finite")])
@pytest.mark.parametrize("key", CALLS)
def test_functions_of_custom_rows(key, failure, reason, compiled):
    robot = failing_arm(compiled, key, failure, FINE)  # those that do not fail take a second to compile
    away = AWAY - np.r_[np.zeros(6), 1.0]  # on the constraint
    for call in CALLS[key]:
        for q in (away, AWAY):
            text = rf"{key} of constraint 'sum': {reason} at t = .*q = array\(\["
            with pytest.raises(ld.LiedynError, match=text) as e:
                call(robot, q)
            assert isinstance(e.value, ld.InputError | ld.SimulationError)
            assert failure is is_nan or type(e.value.__cause__) is ValueError
    # nothing is left of it
    assert abs(ld.forward_dynamics(robot, Q, REST, REST).a.sum()) < 1e-9


@COMPILED
@pytest.mark.parametrize("count", [3, 3000])
def test_batches(compiled, count):
    robot, q = failing_arm(compiled, "jacobian", raises), np.zeros((count, 7))
    q[count // 2] = AWAY
    for call in (ld.constraint_jacobian, lambda r, q: ld.forward_dynamics(r, q, REST, REST),
                 lambda r, q: ld.linearize(r, q, REST, REST, independent=r.velocity_names[1:])):
        with pytest.raises(ld.InputError, match="jacobian of constraint 'sum': fails with ValueError"):
            call(robot, q)


def test_what_is_undefined_aside_says_nothing():
    """The rank next to a state is looked at where a function may not be defined."""
    def jacobian(t, q):
        if 0.02 < np.abs(q).max() < 0.06:
            raise ValueError("undefined")
        return np.ones((1, 7))

    robot = arm(jacobian=jacobian)
    assert abs(ld.forward_dynamics(robot, Q, REST, REST).a.sum()) < 1e-9
    assert abs(ld.forward_dynamics(robot, Q, REST, REST, method="svd").a.sum()) < 1e-9


def pose(scale=1.0, last=1.0):
    def target(t):
        T = np.eye(4)
        if t > 0.5:
            T[0, 0], T[3, 3] = scale, last
        return T, np.zeros(6), np.zeros(6)
    return target


TARGETS = [
    (lambda t: (np.array([0.0 / (t < 0.5), 0, 0]), np.zeros(3), np.zeros(3)), "fails with ZeroDivisionError"),
    (lambda t: (np.array([np.nan if t > 0.5 else 0.0, 0, 0]), np.zeros(3), np.zeros(3)), "not finite"),
    (lambda t: (np.zeros(3 if t < 0.5 else 2), np.zeros(3), np.zeros(3)), "must return 9 numbers, got 8"),
    (pose(2.0), "not a pose"), (pose(-1.0), "not a pose"), (pose(1.0, 2.0), "not a pose"), (pose(np.inf), "not finite"),
]


@COMPILED
@pytest.mark.parametrize("target, reason", TARGETS)
def test_targets(target, reason, compiled):
    robot = BAR.with_target("pin", njit(target) if compiled else target)
    assert robot.at(0.25).t == 0.25
    with pytest.raises(ld.InputError, match=rf"target of constraint 'pin': {reason}.* at t = 1.0"):
        robot.at(1.0)
    with pytest.raises(ld.SimulationError, match=f"target of constraint 'pin': {reason}") as caught:
        ld.simulate(robot, BAR.home, np.zeros(4), 0.6, t0=0.4)
    tr = caught.value.trajectory
    assert 0.498 < tr.t[-1] < 0.5001 and np.isfinite(tr.q).all() and robot.at(0.1).t == 0.1


@pytest.mark.parametrize("returned, message", [
    ((2 * np.eye(4), np.zeros(6), np.zeros(6)), "not a pose"), ((np.zeros(3), np.zeros(3), np.zeros(2)), "9 or 28 num"),
    ((np.zeros((2, 2)), np.zeros(3), np.zeros(2)), "must return arrays of shapes"), (None, "must be numbers, got None"),
    ((np.zeros(3, complex), np.zeros(3), np.zeros(3)), "must be numbers, and real"),
    ("abc", "must be numbers, got 'abc'"),
    (([0, 0, 0], [0, 0, None], [0, 0, 0]), "must be numbers"), (({}, {}, {}), "must be numbers, got {}"),
])
def test_what_is_no_target(returned, message):
    with pytest.raises(ld.InputError, match=f"target of constraint 'pin': .*{message}"):
        BAR.with_target("pin", lambda t: returned)


def test_what_cannot_be_compiled():
    for function in (lambda t: ([0.0] * 3, [0.0] * 3, [0.0] * 3), lambda t: {}["a"], lambda: 0.0):
        with pytest.raises(ld.InputError, match="target of constraint 'pin': "):
            BAR.with_target("pin", njit(function))


def test_compiled_for_given_types():
    """Functions with explicit signatures, for arrays of any layout too."""
    for kind in ("float64[:]", "float64[::1]"):
        signature = f"{kind}(float64, {kind}, {kind})"
        tau = njit(signature)(lambda t, q, v: -1.0 * v)
        same = ld.simulate(BAR, BAR.home, np.zeros(4), 0.01, tau=tau).q
        np.testing.assert_allclose(same, ld.simulate(BAR, BAR.home, np.zeros(4), 0.01, tau=tau.py_func).q, atol=1e-14)


METHODS = ["rk4", "rkmk", "implicit", "generalized_alpha", "RK45", "Radau", "LSODA"]


def torque(t, q, v):
    if t > 0.05:
        raise ValueError("no torque")
    return np.full(4, 1.0)


TORQUE_COMPILED = kept(torque)


@COMPILED
@pytest.mark.parametrize("method", METHODS)
def test_a_run_keeps_all_before_the_failure(method, compiled):
    tau = TORQUE_COMPILED if compiled else torque
    with pytest.raises(ld.SimulationError, match="tau: fails with ValueError: no torque at t = 0.05") as caught:
        ld.simulate(BAR, BAR.home, np.zeros(4), 0.2, tau=tau, method=method, dt=1e-3)
    tr = caught.value.trajectory
    assert 0.03 < tr.t[-1] <= 0.05 and (tr.tau == 1.0).all() and isinstance(caught.value.__cause__, ValueError)


@COMPILED
def test_a_run_on_rows_that_fail_unnoticed(compiled):
    """A Jacobian that is NaN leaves accelerations finite: what has been computed with it is not kept."""
    def jacobian(t, q):
        return np.ones((1, 7)) if t < 0.05 else np.full((1, 7), np.nan)

    robot = arm(compiled, jacobian=jacobian)
    for options in (dict(), dict(stabilisation="none"), dict(method="DOP853", dt=1e-3)):
        with pytest.raises(ld.SimulationError, match="jacobian of constraint 'sum': not finite at t = 0.05") as caught:
            ld.simulate(robot, Q, REST, 0.2, **options)
        tr = caught.value.trajectory
        assert 0.03 < tr.t[-1] < 0.05 and np.abs(tr.a.sum(axis=1)).max() < 1e-6


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_passes(stop):
    def tau(t, q, v):
        if t > 0.05:
            raise stop
        return np.zeros(4)

    with pytest.raises(stop) as caught:
        ld.simulate(BAR, BAR.home, np.zeros(4), 0.2, tau=tau)
    assert 0.048 < caught.value.trajectory.t[-1] <= 0.0501
    calls = []

    def bias(t, q, v):
        calls.append(t)
        if len(calls) > 1:
            raise stop
        return np.zeros(1)

    with pytest.raises(stop):
        ld.forward_dynamics(arm(False, bias=bias), Q, REST, REST)


def broken(*given):
    raise KeyError("broken")


@pytest.mark.parametrize("event, message", [
    (dict(guard=broken), "guard of event 'e': fails with KeyError: 'broken' at t = 0"),
    (dict(guard=lambda t, q, v: None), "what guard of event 'e' returns must be numbers, got None"),
    (dict(guard=lambda t, q, v: q), r"guard of event 'e' must return a number, got an array of shape \(4,\)"),
    (dict(guard=lambda t, q, v: 1j), "must be numbers, and real"),
    (dict(guard=lambda t, q, v: t - 0.005, action=broken), "action of event 'e': fails with KeyError"),
    (dict(guard=lambda t, q, v: t - 0.005, action=lambda t, q, v: 3), r"must return \(q, v\) or None, got 3"),
    (dict(guard=lambda t, q, v: t - 0.005, action=lambda t, q, v: (q, "a")), "action of event 'e': v must be numbers"),
    (dict(guard=lambda t, q, v: t - 0.005, action=lambda t, q, v: (q, v[:2])), "event 'e': v must have shape"),
])
def test_events(event, message):
    with pytest.raises(ld.SimulationError, match=message) as caught:
        ld.simulate(BAR, BAR.home, np.zeros(4), 0.01, events=ld.Event("e", **event))
    assert caught.value.trajectory is not None


@pytest.mark.parametrize("trajectory", [broken, lambda t: None, lambda t: ("a", "b", "c"), lambda t: (np.zeros(2),) * 2,
                                        lambda t: (np.full(2, np.nan),) * 3, lambda t: (np.zeros(2, complex),) * 3])
def test_trajectories_of_controllers(trajectory):
    with pytest.raises(ld.InputError, match="trajectory"):
        ld.PIDC(BAR, trajectory, G_P=25.0, G_D=10.0, independent=("q1", "q2"))


def test_copies_share_functions():
    robot = arm(False)
    same = copy.deepcopy(robot)
    found = [ld.forward_dynamics(each, Q, REST, REST).a for each in (robot, same)]
    np.testing.assert_array_equal(*found)
    with pytest.raises(ld.InputError, match="jacobian of constraint 'sum': .* cannot be pickled"):
        pickle.dumps(robot.functions["jacobian of constraint 'sum'"])
