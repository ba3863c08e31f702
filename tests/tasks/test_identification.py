"""Identification: right parameters from noisy forces, as surely as it says; bodies that can exist; what fails."""
import sys

import numpy as np
import pytest
from comparison import off
from mechanisms import loader_without_strokes
from scipy.stats import chi2

import liedyn as ld
from liedyn.tasks.identification.physical import parameters_of, pseudo_inertia
from liedyn.tasks.identification.base import random_states

pytest.importorskip("cvxpy")


def arm():
    """Two links in a vertical plane, with rotors and friction."""
    b = ld.Builder("2R", gravity=(0.0, -9.81, 0.0))
    for name, parent, place in (("one", "ground", (0.0, 0.0, 0.0)), ("two", "one", (0.7, 0.0, 0.0))):
        b.body(name, 2.0, (0.3, 0.05, 0.0), (0.02, 0.08, 0.08))
        b.joint(f"q_{name}", "revolute", parent, name, place, armature=0.05, damping=0.4)
    b.friction("rub", "q_two", coulomb=0.8)
    return b.build()


def driven(robot, states, seed=0, noise=0.0):
    """A motion, and the forces of all coordinates that are needed for it, disturbed."""
    rng = np.random.default_rng(seed)
    q, v, a = random_states(robot, states, rng)
    if robot.row_names:
        tau = np.zeros((states, robot.nv))
        names = list(robot.independent)
        rates = a[:, [robot.velocity_index(name) for name in names]]
        tau = np.array([ld.inverse_dynamics(robot, *state, names, active=names).tau for state in zip(q, v, rates)])
    else:
        tau = ld.rnea(robot, q, v, a) - (ld.element_forces(robot, q, v) if robot.elements else 0.0)
    scale = noise * np.sqrt((tau ** 2).mean(axis=0))
    return q, v, a, tau + scale * rng.normal(size=tau.shape)


def drawn(robot, seed=1, size=0.2):
    """The robot with bodies of other masses, places and inertias, as drawings are wrong."""
    rng, pi = np.random.default_rng(seed), ld.inertial_parameters(robot)
    for k, P in enumerate(pseudo_inertia(pi)):
        D = np.eye(4) + size * np.triu(rng.normal(size=(4, 4)))
        pi[k] = parameters_of(D @ P @ D.T)
    return ld.with_inertial_parameters(robot, pi)


def right(found, robot, include=()):
    return found.base.coefficients @ list(ld.dynamic_parameters(robot, include).values())


@pytest.mark.parametrize("name", ["scara", "five_bar", "loader", "spherical_wrist"])
def test_exact_forces_give_exact_parameters(name):
    """And a robot that moves as the right one does, from another one."""
    robot = loader_without_strokes() if name == "loader" else ld.load(name)
    q, v, a, tau = driven(robot, 80)
    found = ld.identify(drawn(robot), q, v, a, tau, consistent=False, noise=1.0)
    # conditions of the scaled regressor up to 1e3, forces to 1e-13
    assert found.condition < 1e3
    assert abs(found.estimate - right(found, robot)).max() < 1e-9 * abs(found.estimate).max()
    assert abs(found.consistent - found.estimate).max() < 1e-9 * abs(found.estimate).max()
    consistent = ld.identify(drawn(robot), q, v, a, tau)
    q, v, a = random_states(robot, 20, np.random.default_rng(9))
    exact = ld.regressor(robot, q, v, a) @ list(ld.dynamic_parameters(robot).values())
    other = ld.regressor(robot, q, v, a) @ list(ld.dynamic_parameters(consistent.robot).values())
    # noise is not taken to be below 1e-6 of the forces
    assert abs(other - exact).max() < 1e-4 * abs(exact).max()


@pytest.mark.parametrize("robot, include", [(ld.load("five_bar"), ()), (arm(), ["armature", "damping", "coulomb"]),
                                            (ld.load("scara"), ["offset"])], ids=["five_bar", "2R", "scara"])
def test_errors_are_as_large_as_it_says(robot, include):
    """Sixty disturbances of 5 percent: of 95 percent intervals as many hold, but for four standard deviations."""
    q, v, a, tau = driven(robot, 60)
    inside, _ = disturbed(robot, q, v, a, tau, 0.05 * np.sqrt((tau ** 2).mean(axis=0)), 60, include)
    # parameters of one run are correlated: their number counts as that of the runs
    assert abs(inside.mean() - 0.95) < 4.0 * np.sqrt(0.95 * 0.05 / 60)


@pytest.mark.validation("standard deviations of identified parameters, noise on all forces of loops",
                        robots="five_bar, loader, stewart, delta", oracle="Monte Carlo with known parameters")
@pytest.mark.parametrize("name, states, runs", [("five_bar", 60, 100), ("loader", 80, 60), ("stewart", 80, 30),
                                                ("delta", 80, 60)])
def test_noise_on_all_forces_of_loops(name, states, runs):
    """As many noisy forces as coordinates, few equations for each parameter; one state of five_bar is next to singular.

    Scatter over the runs beside what each says: its square times n is distributed as chi-squared with n - 1 degrees of
    freedom, for which n (1 + z (2 / n)^1/2) is too symmetric an approximation with 30 runs.
    """
    robot = loader_without_strokes() if name == "loader" else ld.load(name)
    q, v, a = random_states(robot, states, np.random.default_rng(0))
    w = list(robot.independent) or list(ld.linearize(robot, q[0], v[0], tau=np.zeros(robot.nv)).independent)
    rates = a[:, [robot.velocity_index(name) for name in w]]
    tau = np.array([ld.inverse_dynamics(robot, *state, w, active=robot.velocity_names).tau
                    for state in zip(q, v, rates)])
    inside, ratio = disturbed(robot, q, v, a, tau, np.full(robot.nv, 0.05 * np.sqrt((tau ** 2).mean())), runs)
    assert abs(inside.mean() - 0.95) < 0.02  # of a few thousand intervals
    assert off(np.median(ratio), 1.0) < (2.0 * runs) ** -0.5
    # one parameter in a million is farther off, and there are at most 61; differences of rounding change the draw
    low, high = chi2.ppf([1e-6, 1.0 - 1e-6], runs - 1) / runs
    assert low < ratio.min() ** 2 and ratio.max() ** 2 < high


def disturbed(robot, q, v, a, tau, noise, runs, include=()):
    """Which 95 percent intervals hold in each run; scatter of each parameter over the runs by what they say it is."""
    inside, errors, deviations = [], [], []
    for seed in range(runs):
        disturbance = noise * np.random.default_rng(seed).normal(size=tau.shape)
        found = ld.identify(robot, q, v, a, tau + disturbance, include=include, consistent=False)
        errors.append(found.estimate - right(found, robot, include))
        deviations.append(found.deviation)
        inside.append(abs(errors[-1]) < found.interval(0.95))
    return np.array(inside), np.std(errors, axis=0) / np.sqrt(np.mean(np.square(deviations), axis=0))


def test_friction_and_rotors_are_found_and_are_those_of_the_robot():
    robot = arm()
    q, v, a, tau = driven(robot, 300, noise=0.01)
    tau[:, 0] += 0.7  # a sensor that is off
    b = ld.Builder.of(drawn(robot))
    b.remove("element", "rub")
    for name in ("q_one", "q_two"):
        b.change("joint", name, damping=None)
    include = {"damping": ["q_one", "q_two"], "coulomb": ["q_one", "q_two"], "offset": ["q_one"], "armature": ["q_two"]}
    found = ld.identify(b.build(), q, v, a, tau, include=include)
    for name, value in {"q_one.damping": 0.4, "q_two.damping": 0.4, "q_two.coulomb": 0.8, "q_one.coulomb": 0.0,
                        "q_one.offset": 0.7}.items():
        k = found.base.names.index(name)
        assert abs(found.estimate[k] - value) < found.interval(0.9999)[k] < 0.5
        assert abs(found.parameters[name] - value) < 2.0 * found.interval(0.9999)[k]
    again = ld.dynamic_parameters(found.robot, include)
    assert all(abs(again[name] - x) < 1e-9 for name, x in found.parameters.items() if "offset" not in name)
    # what it predicts is what a simulation of the robot needs, and the offset
    still = ld.rnea(found.robot, q, v, a) - ld.element_forces(found.robot, q, v)
    still[:, 0] += found.parameters["q_one.offset"]
    assert abs(found.predict(q, v, a) - still).max() < 1e-10 * abs(tau).max()
    assert abs(tau - still - found.residual).max() < 1e-10 * abs(tau).max()


def test_bodies_can_exist_where_least_squares_alone_is_wrong():
    """Few samples and large noise: plain least squares gives bodies that no matter can have."""
    robot = ld.load("panda")
    q, v, a, tau = driven(robot, 15, noise=0.1)
    plain = ld.identify(robot, q, v, a, tau, consistent=False)
    moments = np.linalg.eigvalsh(pseudo_inertia(inertias(plain, robot)))
    assert moments.min() < -1e-3
    for distance in ("entropic", "quadratic"):
        found = ld.identify(drawn(robot), q, v, a, tau, distance=distance)
        moving = inertias(found, robot)[[body.mass > 0.0 for body in robot.model.bodies]]
        assert np.linalg.eigvalsh(pseudo_inertia(moving)).min() > 0.0
        assert np.linalg.eigvalsh(ld.crba(found.robot, q)).min() > 0.0
        # nearer to the truth in other motions than the drawings are
        q2, v2, a2 = random_states(robot, 50, np.random.default_rng(5))
        exact = ld.rnea(robot, q2, v2, a2)
        left = [np.std(exact - ld.regressor(robot, q2, v2, a2) @ list(pi.values()))
                for pi in (found.parameters, found.prior)]
        assert left[0] < 0.5 * left[1]


def inertias(found, robot):
    return np.array(list(found.parameters.values()))[:10 * robot.nbodies].reshape(-1, 10)


def test_where_nothing_is_measured_the_prior_stays():
    """Base parameters are measured; what only their combinations tell stays as near to the drawings as it can."""
    robot = ld.load("five_bar")
    q, v, a, tau = driven(robot, 100, noise=1e-3)
    found = ld.identify(robot, q, v, a, tau)
    for name in found.base.unidentifiable:
        # noise of what is measured goes where it costs least; a body twice as large would cost one sample
        assert abs(found.parameters[name] - found.prior[name]) < 0.05 * max(abs(found.prior[name]), 1.0)
    robot = ld.load("ur5")
    q, v, a, tau = driven(robot, 100, noise=1e-3)
    held = ld.identify(drawn(robot), q, v, a, tau, prior_deviation=1e-6)
    # the solver's gap of 1e-7 is the square of a relative change of 3e-4, and a few of these
    assert np.allclose(list(held.parameters.values()), list(held.prior.values()), rtol=5e-3, atol=2e-3)
    assert held.parameters["base_link.m"] == held.prior["base_link.m"]


def test_a_load_in_the_hand():
    """One body alone, all ten numbers of which are seen; the others are what they are."""
    b = ld.Builder.of(ld.load("panda"))
    b.change("body", "panda_hand", mass=2.0, com=(0.05, 0.02, 0.1), inertia=(0.02, 0.015, 0.01))
    loaded, robot = b.build(), ld.load("panda")
    q, v, a, tau = driven(loaded, 200, noise=0.01)
    found = ld.identify(robot, q, v, a, tau, bodies=["panda_hand"], prior_deviation=10.0)
    assert len(found.base) == 10 and set(found.base.names) == {x for x in found.prior if x.startswith("panda_hand.")}
    assert (abs(found.estimate - right(found, loaded)) < 4.0 * found.deviation).all()
    assert abs(found.parameters["panda_hand.m"] - 2.0) < 0.02
    assert found.parameters["panda_link4.m"] == found.prior["panda_link4.m"]


def test_inputs_of_actuators_and_springs_that_are_known():
    """Cylinders drive the loader through its loops; a spring stands by and is no parameter."""
    b = ld.Builder.of(ld.load("loader"))
    b.coordinate_force("return", {"boom": 1.0}, stiffness=500.0)
    robot = b.build()
    q, v, a = random_states(robot, 60, np.random.default_rng(0))
    rates = a[:, [robot.velocity_index(name) for name in robot.independent]]
    u = np.array([ld.inverse_dynamics(robot, *state, robot.independent).u for state in zip(q, v, rates)])
    found = ld.identify(robot, q, v, a, u=u, consistent=False)
    assert found.equations == robot.independent
    assert abs(found.estimate - right(found, robot)).max() < 1e-9 * abs(found.estimate).max()
    assert abs(found.residual).max() < 1e-9 * abs(u).max()


def test_a_motion_that_does_not_excite_is_named():
    """Only joint two moves: what joint one bears tells its first moment from nothing that it has not told."""
    robot = ld.Builder.of(arm())
    robot.remove("element", "rub")
    robot = robot.build()
    t = np.linspace(0.0, 6.0, 100)[:, None]
    q, v, a = [0.4, 0.2] + np.sin(t) * [0, 1], np.cos(t) * [0, 1], -np.sin(t) * [0, 1]
    tau = ld.rnea(robot, q, v, a) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    with pytest.warns(ld.IdentificationWarning, match=r"'2R' does not excite one\.\w+") as caught:
        found = ld.identify(robot, q, v, a, tau, consistent=False)
    assert len(caught) == len(found.unexcited) == 2
    lost = {name for name, x in zip(found.base.names, found.deviation) if np.isinf(x)}
    assert lost == {"one.Jzz", "one.mx", "one.my"}
    known = ~np.isinf(found.deviation)
    assert (abs(found.estimate - right(found, robot))[known] < 4.0 * found.deviation[known]).all()
    # along the named combination forces do not change
    before = np.array(list(found.prior.values()))
    Y = ld.regressor(robot, q, v, a)
    assert abs(Y @ (np.array(list(found.parameters.values())) - before)).max() < 0.1


def test_bounds_hold_and_are_checked():
    robot = arm()
    q, v, a, tau = driven(robot, 50, noise=0.01)
    found = ld.identify(robot, q, v, a, tau, bounds={"one.m": (2.5, 2.6), "two.mx": (-np.inf, 0.5)})
    assert 2.5 - 1e-6 < found.parameters["one.m"] < 2.6 + 1e-6 and found.parameters["two.mx"] < 0.5 + 1e-6
    with pytest.raises(ld.IdentificationError, match="infeasible.*bounds contradict") as caught:
        ld.identify(robot, q, v, a, tau, bounds={"one.m": (-3.0, -2.0)})
    assert "infeasible" in caught.value.status
    for options, what in (({"bounds": {"one.mass": (0.0, 1.0)}}, "unknown parameter 'one.mass'"),
                          ({"bounds": {"one.m": (1.0, 0.0)}}, "lowest and the highest"),
                          ({"bounds": {"one.m": (0.0, 1.0)}, "consistent": False}, "consistent=True only"),
                          ({"bodies": ["three"]}, "unknown body 'three'"), ({"noise": [1.0]}, r"shape \(2,\)"),
                          ({"u": tau}, "either tau"), ({"distance": "far"}, "unknown distance 'far'")):
        with pytest.raises(ld.InputError, match=what):
            ld.identify(robot, q, v, a, tau, **options)
    with pytest.raises(ld.InputError, match="6 equations do not determine"):
        ld.identify(robot, q[:3], v[:3], a[:3], tau[:3])


def test_states_that_the_loops_do_not_allow_are_refused():
    """By the regressor, base parameters of a motion, identification and prediction; and forces of wrong shapes."""
    robot = ld.load("loader")
    q, v, a = random_states(robot, 30, np.random.default_rng(0))
    u = np.ones((30, 2))
    found = ld.identify(robot, q, v, a, u=u, consistent=False)
    bad = {name: (x + (np.arange(30) == 7)[:, None] * 1e-3 * np.arange(8)) for name, x in zip("qva", (q, v, a))}
    for name, error, what in (("q", ld.ClosureError, r"'loader' is open by .*close\(\) \(state 7 of the batch"),
                              ("v", ld.InputError, r"v opens the loops .*complete_velocity\(\) \(state 7"),
                              ("a", ld.InputError, r"a opens constraint .*measured_motion\(\).* \(state 7")):
        motion = {"q": q, "v": v, "a": a, name: bad[name]}
        for call in (lambda **x: ld.regressor(robot, **x), lambda **x: ld.base_parameters(robot, **x),
                     lambda **x: ld.identify(robot, **x, u=u), found.predict):
            with pytest.raises(error, match=what):
                call(**motion)
    for forces, what in (({"u": u[:, :1]}, r"u must have shape \(..., 2\), got \(30, 1\)"),
                         ({"tau": u}, r"tau must have shape \(..., 8\), got \(30, 2\)")):
        with pytest.raises(ld.InputError, match=what):
            ld.identify(robot, q, v, a, **forces)


def test_without_the_solver_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    q, v, a, tau = driven(arm(), 20)
    with pytest.raises(ld.LiedynError, match=r"pip install 'liedyn\[identification\]'"):
        ld.identify(arm(), q, v, a, tau)
    assert len(ld.identify(arm(), q, v, a, tau, consistent=False).base) == 6


def test_motions_from_encoders():
    """Signals of five-bar's two motors with the noise of encoders: closed, smooth, and as the right motion is."""
    robot, period = ld.load("five_bar"), 1e-3
    t = np.arange(3000) * period
    clean = {"q1": 2.1 + 0.2 * np.sin(3.0 * t), "q2": -1.25 + 0.15 * np.sin(5.0 * t)}
    q, v, a = ld.measured_motion(robot, clean, period)
    rates = np.stack([-1.8 * np.sin(3.0 * t), -3.75 * np.sin(5.0 * t)], axis=1)
    assert abs(ld.closure_error(robot, q)).max() < 1e-12 and abs(ld.velocity_error(robot, q, v)).max() < 1e-12
    # a spline of fifth degree, h^4 of its derivative beside h^6: 1e-8 of the interior, more at its ends
    assert abs(a[20:-20, :2] - rates[20:-20]).max() < 1e-5
    assert abs(np.gradient(v[:, 3], period)[20:-20] - a[20:-20, 3]).max() < 1e-3
    rng = np.random.default_rng(0)
    noisy = {name: x + 1e-4 * rng.normal(size=x.shape) for name, x in clean.items()}
    q, v, a = ld.measured_motion(robot, noisy, period, cutoff=10.0)
    assert abs(a[200:-200, :2] - rates[200:-200]).max() < 0.05 * abs(rates).max()
    with pytest.raises(ld.InputError, match="no coordinate 'q9'"):
        ld.measured_motion(robot, {"q9": t}, period)
    with pytest.raises(ld.InputError, match="half the sampling rate"):
        ld.low_pass(t, period, 600.0)


def test_both_sides_through_one_filter():
    """Samples of encoders and torque sensors: friction that changes its sign is not smeared into other parameters."""
    robot, period, rng = arm(), 2e-3, np.random.default_rng(0)
    motion = ld.excitation(robot, 8.0, harmonics=4, limits={"q_one": (-1.5, 1.5), "q_two": (-1.5, 1.5)}, speed=3.0)
    t = np.arange(0.0, 8.0, period)
    q, v, a = motion.at(t)
    tau = ld.rnea(robot, q, v, a) - ld.element_forces(robot, q, v) + 0.1 * rng.normal(size=v.shape)
    encoders = {name: q[:, k] + 1e-5 * rng.normal(size=len(t)) for k, name in enumerate(robot.velocity_names)}
    q, v, a = ld.measured_motion(robot, encoders, period, cutoff=25.0)
    include = ["armature", "damping", "coulomb"]
    found = ld.identify(robot, q, v, a, tau, include=include, consistent=False, parallel=(period, 10.0))
    assert found.degrees + len(found.base) == 2 * 156  # 8 s less two tenths, 20 samples a second
    assert (abs(found.estimate - right(found, robot, include)) < 4.0 * found.deviation).all()
    assert found.deviation[found.base.names.index("q_two.coulomb")] < 0.02
    for parallel, what in ((3.0, "a period and a cutoff"), ((period, 0.2), "three periods"), ((period, 400.0), "half")):
        with pytest.raises(ld.InputError, match=what):
            ld.identify(robot, q, v, a, tau, include=include, parallel=parallel)


def test_results_print():
    robot = arm()
    q, v, a, tau = driven(robot, 50, noise=0.01)
    found = ld.identify(robot, q, v, a, tau, include=["damping"], consistent=False)
    assert repr(found).startswith("Identification(8 base parameters from 100 equations, condition ")
    assert str(found).splitlines()[0].split() == ["prior", "measured", "+-", "95", "%", "consistent"]
    assert len(str(found).splitlines()) == 9
