"""Moving-horizon estimation: the filter where all is linear, derivatives, consistency, outliers, what is refused."""
import numpy as np
import pytest
from test_estimation import SEEN, five_bar, flier

import liedyn as ld
from liedyn.machine.errors import ClosureError, InputError


def readings(robot, filter_, there, samples, u, Q, R, rng):
    """(reading, inputs, true state) of each sample of a run with disturbances and noise."""
    for k in range(samples):
        y = filter_.disturbed(filter_.measure(*there), np.sqrt(R) * rng.normal(size=len(filter_.outputs)))
        yield y, u(k), there
        there = ld.step(robot, *there, u=u(k) + np.sqrt(Q) * rng.normal(size=len(u(k))), dt=filter_.h)


def run(robot, outputs, samples, seed, Q=2.0, P=1e-3, R=1e-6, horizon=8, spoiled=(), **options):
    """Errors of the filter and of the estimator, and both, along a run of 10 ms steps."""
    rng, given = np.random.default_rng(seed), (robot, robot.home, np.zeros(robot.nv), 0.01, P, Q, R, outputs)
    filter_, estimator = ld.ExtendedKalmanFilter(*given), ld.moving_horizon(*given, horizon=horizon, **options)
    d = filter_._deviation
    hold = ld.inverse_dynamics(robot, robot.home, np.zeros(robot.nv), np.zeros(len(d.w.names))).u
    there, errors = d.state_at(np.sqrt(P) * rng.normal(size=len(filter_.states))), []
    for k, (y, u, state) in enumerate(readings(robot, filter_, there, samples, lambda k: hold + np.sin(0.2 * k), Q, R,
                                               rng)):
        y = y + 0.05 * (k in spoiled)
        for each in (filter_, estimator):
            each.update(y)
        errors.append([np.linalg.norm(filter_.deviation(*state)), np.linalg.norm(estimator._deviation(*state))])
        for each in (filter_, estimator):
            each.predict(u)
    return np.array(errors), filter_, estimator


def test_it_is_the_filter_where_all_is_linear():
    """Next to rest, with small disturbances: differences are of second order in them."""
    errors, filter_, estimator = run(five_bar(), SEEN, 14, seed=1, Q=1e-4, P=1e-8, R=1e-10, horizon=5)
    assert np.abs(filter_.deviation(estimator.q, estimator.v)).max() < 1e-3 * errors.max()
    assert estimator.t == pytest.approx(filter_.t) and estimator.disturbances.shape == (5, 4)


@pytest.mark.parametrize("make, outputs", [(five_bar, SEEN), (flier, ("pose:hull", "elbow")),
                                           (flier, ("base", "elbow"))])
def test_derivatives_of_residuals(make, outputs):
    """Against central differences, free joints included, away from the estimate."""
    robot, rng = make(), np.random.default_rng(3)
    size = len(ld.linearize(robot, robot.home, np.zeros(robot.nv), np.zeros(robot.nv)).states)
    estimator = ld.moving_horizon(robot, robot.home, np.zeros(robot.nv), 0.02, 1e-2, 1e-3, 1e-4, outputs)
    for _ in range(3):
        estimator.update(estimator.measure() + 0.02 * rng.normal(size=len(estimator.outputs)))
        estimator.predict(rng.normal(size=len(robot.actuator_names)))
    z, eps = rng.normal(size=len(estimator._z)), 1e-5
    r, J = estimator._along(z)[:2]
    assert size == len(estimator._begin.P) and J.shape == (len(r), len(z))
    found = [(estimator._along(z + e)[0] - estimator._along(z - e)[0]) / (2.0 * eps) for e in eps * np.eye(len(z))]
    # of second order in eps, and rounding over it
    assert np.abs(np.transpose(found) - J).max() < 1e-7 * np.abs(J).max()


def test_errors_beside_the_filter():
    """From a start that is far off the window finds back where a filter has linearised at the wrong place."""
    several = [run(five_bar(), SEEN, 12, seed, Q=5.0, P=1e-2)[0] for seed in range(4)]
    filter_, estimator = np.sqrt((np.array(several) ** 2).mean(axis=(0, 1)))
    assert estimator < 1.05 * filter_


def test_an_outlier():
    """A reading that is fifty standard deviations off hardly moves an estimate with a loss of Cauchy's."""
    plain, robust = (run(five_bar(), SEEN, 10, seed=2, spoiled=(8,), loss=loss)[0] for loss in ("linear", "cauchy"))
    assert robust[8, 1] < 0.2 * plain[8, 1]


def test_loops_stay_closed_and_what_is_missing_is_predicted():
    _, _, estimator = run(five_bar(), SEEN, 3, seed=4)
    estimator.update([np.nan, np.nan])
    assert np.abs(ld.closure_error(five_bar(), estimator.q)).max() < 1e-11
    estimator.reset()
    assert estimator.t == 0.0 and np.array_equal(estimator.q, five_bar().home)
    assert estimator.disturbances.shape == (0, 4)


def test_an_error_leaves_all_as_it_was(monkeypatch):
    """In the window and in the filter before it: the next calls give what they would have given."""
    _, _, estimator = run(five_bar(), SEEN, 5, seed=6, horizon=3)
    y = estimator.measure() + 1e-3
    kept = estimator.q, estimator.t, estimator._z.copy(), len(estimator._window), estimator._begin.t
    with monkeypatch.context() as patch:
        patch.setattr("liedyn.control.estimation.extended.ExtendedKalmanFilter.predict", failing)
        with pytest.raises(ClosureError):
            estimator.predict(np.zeros(4))
        patch.setattr("liedyn.control.estimation.extended.ExtendedKalmanFilter._displaced", failing)
        with pytest.raises(ClosureError):
            estimator.update(y)
    left = estimator.q, estimator.t, estimator._z, len(estimator._window), estimator._begin.t
    assert all(map(np.array_equal, kept, left)) and estimator._window[-1].y is None
    estimator.update(y)
    estimator.predict(np.zeros(4))
    assert estimator.t == pytest.approx(kept[1] + 0.01)


def failing(*given):
    raise ClosureError("not here", 1.0, "pin")


def test_feedback_of_its_estimates():
    """A regulator takes it in the place of the filter, and the mechanism comes as near to rest."""
    arm, h, ends = five_bar(), 0.02, []
    regulator = ld.dlqr(arm, arm.home, h, Q=100.0, R=0.1)
    given = arm, arm.home, np.zeros(4), h, 1e-2, 0.1, 1e-8, SEEN
    start = ld.close(arm, arm.home, q1=arm.home[0] + 0.05)
    for observer in (ld.ExtendedKalmanFilter(*given), ld.moving_horizon(*given, horizon=4)):
        tr = ld.simulate(arm, start, np.zeros(4), 0.4, dt=5e-3, u=ld.OutputFeedback(regulator, observer).sampled)
        ends.append(regulator.deviation(tr.q[-1], tr.v[-1]))
    assert np.abs(ends[1] - ends[0]).max() < 0.05 * np.abs(ends[0]).max()


@pytest.mark.parametrize("options, message", [
    ({"horizon": 0}, "horizon"), ({"noise": "states"}, "inputs only"),
    ({"loss": "hubert"}, "unknown loss 'hubert'.*huber"), ({"outputs": ["q9"]}, "q9"),
])
def test_what_is_refused(options, message):
    arm = five_bar()
    with pytest.raises(InputError, match=message):
        ld.moving_horizon(**{"robot": arm, "q": arm.home, "v": np.zeros(4), "h": 0.01, "P": 1.0, "Q": 1.0, "R": 1.0,
                             "outputs": SEEN} | options)
