"""FMUs as simulation tools use them, beside liedyn."""
import re
import shutil
import subprocess
import zipfile

import numpy as np
import pytest

fmpy = pytest.importorskip("fmpy")

from fmpy.build import build_platform_binary  # noqa: E402
from fmpy.validation import validate_fmu  # noqa: E402
from fmu_users import Used, driven_floating, floating, held  # noqa: E402
from sprung_robots import sprung  # noqa: E402
from tree_cases import bundled  # noqa: E402

import liedyn as ld  # noqa: E402
from liedyn.model import Builder  # noqa: E402

pytestmark = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler")

OF_FIVE_BAR = ("q1", "pin", "velocity:q3", "velocity:pin", "acceleration:q4", "acceleration:pin", "pose:link3",
               "twist:link2", "twist_rate:link4", "wrench:pin")
ROBOTS = {
    "five_bar": (lambda: held("five_bar", 300.0, 30.0), OF_FIVE_BAR),
    "loader": (lambda: held("loader", 2e6, 4e5, ("lift_rod", "tilt_rod")), None),
    "panda": (lambda: held("panda", 40.0, 1.5), ("pose:panda_hand_tcp", "twist:panda_hand_tcp")),
    "whipple_bicycle": (lambda: bundled("whipple_bicycle"), ("lean", "steer", "pose:frame")),
    "floating": (floating, ("pose:arm", "twist_rate:wheel", "velocity:ball", "turn", "acceleration:base.x")),
}


def moving(robot, seed=0, size=0.3):
    """A start that moves, near home."""
    rng = np.random.default_rng(seed)
    q = ld.close(robot, ld.integrate(robot, robot.home, 0.1 * size * rng.normal(size=robot.nv)))
    v = size * rng.normal(size=robot.nv)
    if robot.name == "whipple_bicycle":
        q = ld.close(robot, robot.home)
        return q, ld.complete_velocity(robot, q, {"lean": 0.1, "steer": 0.0, "rear_wheel": -4.6 / 0.3})
    G = ld.constraint_jacobian(robot, q)
    return q, v - np.linalg.pinv(G, rcond=1e-8) @ (G @ v)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """FMUs by name of the robot and version, made once: robot, start, file."""
    made, folder = {}, tmp_path_factory.mktemp("fmus")

    def get(name, version="3.0"):
        if (name, version) not in made:
            build, outputs = ROBOTS[name]
            robot = build()
            q, v = moving(robot)
            file = ld.export_fmu(robot, folder / f"{name}{version}.fmu", outputs=outputs, q=q, v=v, version=version)
            made[name, version] = robot, (q, v), file
        return made[name, version]
    return get


@pytest.mark.parametrize("version", ["3.0", "2.0"])
@pytest.mark.parametrize("name", ROBOTS)
def test_valid(exported, name, version):
    if (name, version) in (("whipple_bicycle", "2.0"), ("panda", "2.0")):
        pytest.skip("as the others, and long to compile")
    assert validate_fmu(exported(name, version)[2]) == []


@pytest.mark.parametrize("name", ["five_bar", "loader", "panda", "whipple_bicycle"])
def test_co_simulation_is_simulate(exported, name):
    """Ten seconds of the same method with the same step."""
    robot, (q, v), file = exported(name)
    found = fmpy.simulate_fmu(file, stop_time=10.0, output_interval=0.1, fmi_type="CoSimulation",
                              output=list(states_of(file)))
    run = ld.simulate(robot, q, v, 10.0, dt=1e-3)
    assert abs(of_run(robot, run, states_of(file), 100) - table(found)).max() < 1e-8


@pytest.mark.parametrize("name", ["five_bar", "loader", "panda", "whipple_bicycle"])
def test_model_exchange_is_simulate(exported, name):
    """Ten seconds of a variable-step method, with tolerances at which neither integrator is what differs."""
    robot, (q, v), file = exported(name)
    found = fmpy.simulate_fmu(file, stop_time=10.0, output_interval=0.01, fmi_type="ModelExchange",
                              relative_tolerance=1e-12, output=list(states_of(file)))
    run = ld.simulate(robot, q, v, 10.0, dt=1e-4, record=100)
    assert abs(of_run(robot, run, states_of(file), 1) - table(found)).max() < 1e-8


def test_force_elements(tmp_path):
    """A five-bar with an element of each law: a run, and the directional derivatives at its end."""
    robot, file = sprung(inputs=False), tmp_path / "sprung.fmu"
    q, v = moving(robot)
    ld.export_fmu(robot, file, outputs=("q1", "acceleration:q3"), q=q, v=v)
    found = fmpy.simulate_fmu(file, stop_time=0.5, output_interval=0.1, fmi_type="CoSimulation",
                              output=list(states_of(file)))
    run = ld.simulate(robot, q, v, 0.5, dt=1e-3)
    assert abs(of_run(robot, run, states_of(file), 100) - table(found)).max() < 1e-8
    assert abs(run.q[-1] - ld.simulate(bundled("five_bar"), q, v, 0.5, dt=1e-3).q[-1]).max() > 1e-2


def pulled_arm():
    """A tree with more inputs than degrees of freedom, of every kind that acts as a force element does."""
    b = Builder("pulled", gravity=(0.0, 0.0, -9.81))
    b.body("upper", 1.0, (0.3, 0.0, 0.0), (0.01, 0.05, 0.05))
    b.joint("shoulder", "revolute", "ground", "upper", axis=(0, 1, 0), damping=0.3)
    b.body("lower", 0.7, (0.2, 0.0, 0.1), (0.01, 0.03, 0.03))
    b.joint("elbow", "revolute", "upper", "lower", (0.6, 0.0, 0.0), axis=(0, 1, 0), damping=0.3)
    b.cylinder("ram", "ground", "upper", (0.0, 0.1, 0.4), (0.3, 0.0, 0.05), gear=1.5)
    b.winch("winch", [("ground", (0.0, 0.0, 1.0)), ("upper", (0.5, 0.0, 0.1)), ("lower", (0.3, 0.0, 0.1))], gear=2.0)
    b.thruster("jet", "lower", (0.4, 0.0, 0.0), force=(0.0, 0.1, 1.0), torque=(0.0, 0.1, 0.0))
    b.thruster("hook", "upper", (0.4, 0.1, 0.0), force=(1.0, 0.5, 0.0), axes="world")
    b.actuator("motor", "elbow")
    return b.build()


def motor_at_cut():
    b = Builder.of(held("five_bar", 300.0, 30.0))
    b.actuator("second_motor", "pin", gear=2.0)
    return b.build()


DRIVEN = {"sprung": sprung, "pulled": pulled_arm, "cut": motor_at_cut}


@pytest.mark.parametrize("name", DRIVEN)
def test_inputs_that_act_as_force_elements(tmp_path, name):
    """Cylinders, thrusters, winches and motors at cuts: a run, values, and partial derivatives beside `linearize`."""
    robot, file = DRIVEN[name](), tmp_path / "driven.fmu"
    q, v = moving(robot)
    coordinate = robot.velocity_names[0]
    ld.export_fmu(robot, file, outputs=(f"acceleration:{coordinate}",), q=q, v=v,
                  version="2.0" if name == "cut" else "3.0")
    assert validate_fmu(file) == []
    units = {x.name: x.unit for x in fmpy.read_model_description(file).modelVariables if x.causality == "input"}
    of_lengths = {"ram", "winch"} & set(units)
    assert all(units[x] == "N" for x in of_lengths) and all(units[x] != "N" for x in set(units) - of_lengths)
    u = np.random.default_rng(3).normal(size=len(robot.actuator_names))
    of = Used(file)
    try:
        for seed in range(3):
            q_1, v_1 = moving(robot, 10 + seed, 1.0)
            of.put(states_at(robot, of.states, q_1, v_1))
            of.set(dict(zip(of.inputs, u)))
            a = ld.forward_dynamics(robot, q_1, v_1, ld.actuator_matrix(robot, q_1) @ u).a
            places = [k for k, each in enumerate(of.states) if each.startswith("velocity:")]
            expected = [a[robot.velocity_index(of.states[k].removeprefix("velocity:"))] for k in places]
            scale = max(1.0, abs(a).max())
            np.testing.assert_allclose(of.rates()[places], expected, atol=1e-11 * scale)
            assert of.get(of.outputs)[0] == pytest.approx(a[0], abs=1e-11 * scale)
            ss = ld.linearize(robot, q_1, v_1, u=u, independent=of.states[:len(places)],
                              outputs=(f"acceleration:{coordinate}",))
            whole = np.block([[ss.A, ss.B], [ss.C, ss.D]])
            np.testing.assert_allclose(of.partials(), whole, atol=1e-11 * abs(whole).max())
    finally:
        of.close()
    given = np.array([(0.0, *u), (1.0, *u)], [(x, float) for x in ("time", *of.inputs)])
    found = fmpy.simulate_fmu(file, stop_time=0.5, output_interval=0.1, fmi_type="CoSimulation", input=given,
                              output=list(states_of(file)))
    run = ld.simulate(robot, q, v, 0.5, dt=1e-3, u=u)
    assert abs(of_run(robot, run, states_of(file), 100) - table(found)).max() < 1e-9
    assert abs(run.q[-1] - ld.simulate(robot, q, v, 0.5, dt=1e-3).q[-1]).max() > 1e-4


def states_of(file):
    return [each.variable.derivative.name for each in fmpy.read_model_description(file).derivatives]


def table(found):
    return np.array([list(row)[1:] for row in found.tolist()])


def of_run(robot, run, names, every):
    """The states of an FMU in a run."""
    return np.array([
        run.v[::every, robot.velocity_index(name.removeprefix("velocity:"))] if name.startswith("velocity:")
        else run.q[::every, robot.coordinate_index(name)] for name in names]).T


def test_inputs_over_time(exported, tmp_path):
    """Inputs are held for a communication step, as those of `simulate` for a step."""
    robot, (q, v), file = exported("loader")
    t = np.arange(1001) * 1e-3
    u = np.array([5e4 * np.sin(7.0 * t), 2e4 * np.cos(5.0 * t)]).T
    given = np.array([(x, *y) for x, y in zip(t, u)], [(n, float) for n in ("time", *robot.actuator_names)])
    found = fmpy.simulate_fmu(file, stop_time=1.0, output_interval=1e-3, fmi_type="CoSimulation", input=given,
                              output=states_of(file))
    run = ld.simulate(robot, q, v, 1.0, dt=1e-3, u=u)
    assert abs(of_run(robot, run, states_of(file), 1) - table(found)).max() < 1e-9


@pytest.mark.parametrize("name", ["five_bar", "floating"])
def test_values_and_partial_derivatives(exported, name):
    """Derivatives and outputs beside liedyn's, their partial derivatives beside differences, at other states."""
    robot, (q, v), file = exported(name)
    of = Used(file)
    try:
        for seed in range(3):
            q, v = moving(robot, 10 + seed, 1.0)
            x = states_at(robot, of.states, q, v)
            u = np.random.default_rng(seed).normal(size=len(of.inputs))
            of.put(x)
            of.set(dict(zip(of.inputs, u)))
            a = ld.forward_dynamics(robot, q, v, robot.tree_actuators @ u).a
            places = [k for k, each in enumerate(of.states) if each.startswith("velocity:")]
            expected = [a[robot.velocity_index(of.states[k].removeprefix("velocity:"))] for k in places]
            np.testing.assert_allclose(of.rates()[places], expected, atol=1e-9)
            compare_outputs(robot, of, q, v, a)
            J, differences = of.partials(), differences_of(of, x, u)
            np.testing.assert_allclose(J, differences, atol=2e-7 * np.abs(differences).max())
            declared = structure(of)
            assert not J[~declared].any() and declared.mean() < 1.0
    finally:
        of.close()


def differences_of(of, x, u):
    """The partial derivatives by differences."""
    found = np.empty((len(x) + len(of.outputs), len(x) + len(u)))
    for k in range(len(x) + len(u)):
        both = []
        for h in (1e-5, -1e-5):
            given = np.concatenate([x, u])
            given[k] += h
            of.put(given[:len(x)])
            of.set(dict(zip(of.inputs, given[len(x):])))
            both.append(np.concatenate([of.rates(), of.get(of.outputs)]))
        found[:, k] = (both[0] - both[1]) / 2e-5
    return found


def states_at(robot, names, q, v):
    return np.array([v[robot.velocity_index(name.removeprefix("velocity:"))] if name.startswith("velocity:")
                     else q[robot.coordinate_index(name)] for name in names])


def structure(of):
    """A mask of the partial derivatives that the model description declares."""
    rows = [*of.description.derivatives, *of.description.outputs]
    knowns = of.states + of.inputs
    return np.array([[name in {x.name for x in row.dependencies} for name in knowns] for row in rows])


def compare_outputs(robot, of, q, v, a):
    found = dict(zip(of.outputs, of.get(of.outputs)))
    for name in {x.rpartition(".")[0] for x in found if x.startswith("pose:")}:
        T = ld.pose(robot, q, name.removeprefix("pose:"))
        np.testing.assert_allclose([found[f"{name}.{c}"] for c in "xyz"], T[:3, 3], atol=1e-12)
        np.testing.assert_allclose([[found[f"{name}.R{i}{j}"] for j in "123"] for i in "123"], T[:3, :3], atol=1e-12)
    for name, x in found.items():
        if name in robot.virtual_names:
            assert x == pytest.approx(ld.virtual_coordinates(robot, q)[robot.virtual_index(name)], abs=1e-11)
        kind, _, what = name.partition(":")
        if kind in ("velocity", "acceleration") and what in robot.velocity_names:
            assert x == pytest.approx((v if kind == "velocity" else a)[robot.velocity_index(what)], abs=1e-9)


def test_partial_derivatives_are_those_of_linearize(exported):
    robot, (q, v), file = exported("loader")
    of = Used(file)
    try:
        ss, x = ld.linearize(robot, q, v, np.zeros(robot.nv)), len(of.states)
        A, B = of.partials()[:x, :x], of.partials()[:x, x:]
        np.testing.assert_allclose(A, ss.A, atol=1e-9 * abs(ss.A).max())
        np.testing.assert_allclose(B, ss.B, atol=1e-9 * abs(ss.B).max())
        rows = {name: of.partials()[x + k] for k, name in enumerate(of.outputs)}
        np.testing.assert_allclose([rows[name][:x] for name in ss.outputs], ss.C, atol=1e-10)
        unknowns, knowns = [of.places["der(velocity:boom)"]], [of.places[name] for name in of.states]
        adjoint = of.fmu.getAdjointDerivative(unknowns, knowns, [2.0], len(knowns))
        np.testing.assert_allclose(adjoint, 2.0 * A[list(of.states).index("velocity:boom")])
    finally:
        of.close()


def with_cylinder():
    b = Builder.of(bundled("five_bar"))
    b.actuator("motor", "q1")
    b.cylinder("ram", "ground", "link2", (1.0, 0.2, 0.4), (0.05, 0.0, 0.0), gear=1.5)
    return b.build()


@pytest.mark.parametrize("build", [lambda: bundled("five_bar"), driven_floating, with_cylinder],
                         ids=["five_bar", "floating", "cylinder"])
def test_with_its_regulator(tmp_path, build):
    """The regulated robot: as `simulate` with the regulator, closed-loop derivatives, and inputs that are added."""
    robot = build()
    regulator = ld.lqr(robot, robot.home, Q=10.0, R=0.1)
    q, v = moving(robot, 1, 0.5)
    file = ld.export_fmu(robot, tmp_path / "regulated.fmu", q=q, v=v, regulator=regulator)
    assert validate_fmu(file) == []
    found = fmpy.simulate_fmu(file, stop_time=1.0, output_interval=0.1, fmi_type="CoSimulation", output=states_of(file))
    run = ld.simulate(robot, q, v, 1.0, dt=1e-3, u=regulator)
    assert abs(of_run(robot, run, states_of(file), 100) - table(found)).max() < 1e-10
    of, (q, v) = Used(file), moving(robot, 2, 0.7)
    try:
        x, u = states_at(robot, of.states, q, v), np.random.default_rng(0).normal(size=len(of.inputs))
        of.put(x)
        of.set(dict(zip(of.inputs, u)))
        a = ld.forward_dynamics(robot, q, v, ld.actuator_matrix(robot, q) @ (u + regulator(0.0, q, v))).a
        places = [k for k, each in enumerate(of.states) if each.startswith("velocity:")]
        expected = [a[robot.velocity_index(of.states[k].removeprefix("velocity:"))] for k in places]
        np.testing.assert_allclose(of.rates()[places], expected, atol=1e-9 * abs(a).max())
        J, differences = of.partials(), differences_of(of, x, u)
        np.testing.assert_allclose(J, differences, atol=2e-7 * np.abs(differences).max())
    finally:
        of.close()


def mass(name, place):
    builder = Builder(name, gravity=(0.0, 0.0, 0.0))
    builder.body("mass", 1.0 + place, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.joint("x", "prismatic", "ground", "mass", axis=(1, 0, 0), damping=0.1)
    builder.actuator("force", "x")
    return builder.build()


def test_two_that_are_coupled_are_one(tmp_path):
    """Two masses with a spring between them, as two FMUs that exchange force and position, and as one robot."""
    from scipy.integrate import solve_ivp

    builder = Builder("both", gravity=(0.0, 0.0, 0.0))
    builder.body("one", 1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.body("two", 2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.joint("x", "prismatic", "ground", "one", axis=(1, 0, 0), damping=0.1)
    builder.joint("far", "prismatic", "one", "two", axis=(1, 0, 0), stiffness=30.0, rest=0.5)
    robot = builder.build()
    # the second half of the robot has no damper to the ground
    halves = [mass("first", 0.0), Builder.of(mass("second", 1.0))]
    halves[1].change("joint", "x", damping=0.0)
    used = [Used(ld.export_fmu(half, tmp_path / f"{k}.fmu", outputs=("x",), version=version))
            for k, (half, version) in enumerate(zip((halves[0], halves[1].build()), ("3.0", "2.0")))]
    try:
        def rates(t, x):
            for of, own in zip(used, (x[:2], x[2:])):
                of.put(own)
            pull = 30.0 * (used[1].get(["x"])[0] - used[0].get(["x"])[0] - 0.5)
            for of, force in zip(used, (pull, -pull)):
                of.set({"force": force})
            return np.concatenate([of.rates() for of in used])

        found = solve_ivp(rates, (0.0, 2.0), [0.0, 1.0, 0.8, 0.0], "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
        run = ld.simulate(robot, [0.0, 0.8], [1.0, -1.0], 2.0, dt=5e-4)
        (x, far), (v, v_far) = run.q[-1], run.v[-1]
        np.testing.assert_allclose(found, [x, v, x + far, v + v_far], atol=1e-9)
    finally:
        for of in used:
            of.close()


def test_states_are_kept_and_restored(exported):
    for version in ("3.0", "2.0"):
        robot, _, file = exported("five_bar", version)
        of = Used(file, "cs")
        try:
            three = version == "3.0"
            take, put = ((of.fmu.getFMUState, of.fmu.setFMUState) if three
                         else (of.fmu.getFMUState, of.fmu.setFMUState))
            of.fmu.doStep(0.0, 0.3)
            kept = take()
            of.fmu.doStep(0.3, 0.2)
            once = of.get(of.states)
            put(kept)
            of.fmu.doStep(0.3, 0.2)
            assert (of.get(of.states) == once).all()
            bytes_of = of.fmu.serializeFMUState(kept)
            again = of.fmu.deserializeFMUState(bytes_of)
            put(again)
            of.fmu.doStep(0.3, 0.2)
            assert (of.get(of.states) == once).all()
            with pytest.raises(fmpy.fmi1.FMICallException):
                of.fmu.doStep(0.1, 0.2)
            assert "A step begins where" in of.messages[-1]
        finally:
            of.close()


def test_no_wrong_number(exported, tmp_path):
    """Where there is no configuration, or a decision is in doubt: an error, with a message; afterwards all is well."""
    for version in ("3.0", "2.0"):
        robot, (q, v), file = exported("five_bar", version)
        of = Used(file)
        try:
            good = of.get(of.states)
            before = of.rates()
            for k, x in ((0, np.nan), (0, np.inf), (1, good[1] + 2.4), (2, 1e60)):
                bad = good.copy()
                bad[k] = x
                of.put(bad)
                with pytest.raises(fmpy.fmi1.FMICallException, match="status 2"):
                    of.rates()
                assert re.search("not a finite|cannot be closed|needs other decisions", of.messages[-1])
            of.put(good)
            assert (of.rates() == before).all()
            with pytest.raises(fmpy.fmi1.FMICallException, match="status 3"):
                of.set({"q1": 1.0})
            with pytest.raises(fmpy.fmi1.FMICallException, match="status 3"):
                (of.fmu.getFloat64 if version == "3.0" else of.fmu.getReal)([10000])
        finally:
            of.close()


def test_up_to_a_singular_configuration(tmp_path):
    """The five-bar falls into its stretched position: the FMU follows, and stops there."""
    robot = bundled("five_bar")
    file = ld.export_fmu(robot, tmp_path / "x.fmu", version="2.0")
    of = Used(file, "cs")
    run = ld.simulate(robot, robot.home, np.zeros(4), 0.6)
    try:
        for k in range(60):
            of.fmu.doStep(0.01 * k, 0.01)
        np.testing.assert_allclose(of.get(["q1", "q2"]), run.q[-1, :2], atol=1e-9)
        with pytest.raises(fmpy.fmi1.FMICallException):
            of.fmu.doStep(0.6, 0.1)
        assert "near a singular configuration" in of.messages[-1]
        assert 0.6 < of.fmu.getRealStatus(2) < 0.7
    finally:
        of.close()


def test_far_from_the_start(tmp_path):
    """The loader falls, and swings for ten seconds: pivots of the start become zero on the way."""
    robot = bundled("loader")
    file = ld.export_fmu(robot, tmp_path / "x.fmu", version="2.0")
    found = fmpy.simulate_fmu(file, stop_time=5.0, output_interval=0.1, fmi_type="CoSimulation", output=states_of(file))
    run = ld.simulate(robot, robot.home, np.zeros(8), 5.0, dt=1e-3)
    assert abs(of_run(robot, run, states_of(file), 100) - table(found)).max() < 1e-8
    with pytest.raises(fmpy.fmi1.FMICallException):
        one = ld.export_fmu(robot, tmp_path / "one.fmu", version="2.0", at=robot.home)
        fmpy.simulate_fmu(one, stop_time=5.0, fmi_type="CoSimulation")


def test_start_values(exported):
    """The importing tool chooses the start; dependent coordinates follow, on the same branch."""
    robot, (q, v), file = exported("five_bar")
    of = Used(file, start={"q1": 2.3, "q2": -1.4, "velocity:q1": 0.2, "velocity:q2": 0.0})
    try:
        there = ld.close(robot, robot.home, q1=2.3, q2=-1.4)
        v = ld.complete_velocity(robot, there, {"q1": 0.2, "q2": 0.0})
        assert of.get(["pin"])[0] == pytest.approx(ld.virtual_coordinates(robot, there)[0], abs=1e-11)
        a = ld.forward_dynamics(robot, there, v, np.zeros(4)).a
        np.testing.assert_allclose(of.rates(), [*v[:2], *a[:2]], atol=1e-10)
    finally:
        of.close()


NAMES = ['"; system("touch ran"); /*', "*/ int x; /*", "a\nb\t\x01c", "<&>'\"", "back\\", "%s%n", "int",
         "Ü 機械 \ufffe", " x ", "../../etc"]


def test_names_are_escaped(tmp_path):
    """In XML they are texts, and in C they are nothing."""
    builder = Builder(NAMES[0], gravity=(0.0, 0.0, -9.81))
    for k, name in enumerate(NAMES):
        builder.body(f"body {name}", 1.0, (0.1, 0.2, 0.0), (0.1, 0.1, 0.1))
        builder.joint(name, "revolute", f"body {NAMES[k - 1]}" if k else "ground", f"body {name}", axis=(0, 0, 1))
        builder.actuator(f"motor {name}", name)
    robot = builder.build()
    for version in ("3.0", "2.0"):
        file = ld.export_fmu(robot, tmp_path / "hostile.fmu", version=version, outputs=(f"pose:body {NAMES[1]}",))
        assert validate_fmu(file) == []
        found = {each.name for each in fmpy.read_model_description(file).modelVariables}
        assert {NAMES[0], NAMES[1], "<&>'\"", "a%0Ab%09%01c", "Ü 機械 %FFFE", f"motor {NAMES[4]}"} <= found
        archive = zipfile.ZipFile(file)
        for name in archive.namelist():
            assert re.fullmatch(r"[\w./-]+", name) and ".." not in name
            if name.endswith((".c", ".h")):
                text = archive.read(name).decode("ascii")
                assert "system(" not in re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        of = Used(file)
        assert np.isfinite(of.rates()).all()
        of.close()


@pytest.mark.parametrize("version", ["3.0", "2.0"])
def test_sources(exported, tmp_path, version):
    """They compile without a warning, with a prefix too; two exports are the same bytes."""
    robot, (q, v), file = exported("five_bar", version)
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-DFMI{version[0]}_FUNCTION_PREFIX=one_"]
    subprocess.run([shutil.which("cc") or "gcc", *flags, "-c", f"fmi{version[0]}.c", "-o", "x.o"],
                   cwd=tmp_path / "sources", check=True)
    again = ld.export_fmu(robot, tmp_path / "again.fmu", OF_FIVE_BAR, q=q, v=v, version=version)
    with zipfile.ZipFile(file) as one, zipfile.ZipFile(again) as two:
        assert one.namelist() == two.namelist()
        assert all(one.read(name) == two.read(name) for name in one.namelist() if not name.startswith("binaries"))


def test_without_a_compiler(tmp_path, monkeypatch):
    """The error says what to do, and a source-code FMU is built by the importing tool."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    robot = bundled("four_bar")
    with pytest.raises(ld.LiedynError, match="binary=False"):
        ld.export_fmu(robot, tmp_path / "x.fmu")
    monkeypatch.setenv("CC", "no such compiler")
    with pytest.raises(ld.LiedynError, match="no program"):
        ld.export_fmu(robot, tmp_path / "x.fmu")
    assert list(tmp_path.iterdir()) == []
    file = ld.export_fmu(robot, tmp_path / "x.fmu", binary=False)
    assert not [name for name in zipfile.ZipFile(file).namelist() if name.startswith("binaries")]
    assert validate_fmu(file) == []
    monkeypatch.undo()
    if shutil.which("cmake"):
        build_platform_binary(fmpy.extract(file, tmp_path / "unpacked"))
        found = fmpy.simulate_fmu(str(tmp_path / "unpacked"), stop_time=0.1)
        assert np.isfinite(table(found)).all()


def ball():
    builder = Builder("ball")
    for k, parent in enumerate(("ground", "rod 0")):
        builder.body(f"rod {k}", 1.0, (0.5, 0.0, 0.1), (0.1, 0.2, 0.15))
        builder.joint(f"ball {k}", "spherical", parent, f"rod {k}", (k, 0.0, 0.0))
    builder.loop("end", "spherical", "ground", "rod 1", (1.2, 0.8, 0.1), (0.9, 0.0, 0.0))
    return builder.build()


def test_refused(tmp_path):
    file, five_bar = tmp_path / "x.fmu", bundled("five_bar")
    regulator = ld.lqr(five_bar, five_bar.home, Q=1.0, R=1.0)
    for error, build, options, says in (
            (ld.InputError, lambda: one_sided(), {}, "open and close"),
            (ld.InputError, lambda: with_function(), {}, "functions of users"),
            (ld.InputError, lambda: ball(), {}, "name all or none"),
            (ld.InputError, lambda: floating(), dict(outputs=("ball",)), "without a value"),
            (ld.InputError, lambda: five_bar, dict(independent=("pin", "q1")), "'pin' is not"),
            (ld.InputError, lambda: five_bar, dict(outputs=("q1", "position:q1")), "named twice"),
            (ld.InputError, lambda: five_bar, dict(outputs=("q9",)), "'q9'"),
            (ld.InputError, lambda: five_bar, dict(version="1.0"), "'1.0'"),
            (ld.InputError, lambda: five_bar, dict(step=0.0), "step must be positive"),
            (ld.InputError, lambda: five_bar, dict(v=np.ones(4)), "v opens the loops"),
            (ld.InputError, lambda: five_bar, dict(regulator=np.eye(4)), "must be a Regulator of lqr"),
            (ld.InputError, lambda: five_bar, dict(regulator=ld.dlqr(five_bar, five_bar.home, 1e-3, Q=1.0, R=1.0)),
             "holds its inputs for a step"),
            (ld.InputError, lambda: bundled("four_bar"), dict(regulator=regulator), "of the robot 'five_bar'"),
            (ld.InputError, lambda: five_bar, dict(regulator=regulator, independent=("q1", "q4")),
             "the regulator's state 'q2' is none of the FMU"),
            (ld.InputError, lambda: five_bar, dict(independent=("q1",)), "2 degrees of freedom"),
            (ld.InputError, lambda: five_bar, dict(independent=("q1", "q1")), "named twice"),
            (ld.InputError, lambda: five_bar, dict(q=[np.pi, -np.pi, 0.0, np.pi]), "3 degrees of freedom here"),
            (ld.SingularConfigurationError, lambda: bundled("slider_crank"), dict(
                independent=("rod",), q=[0.0, np.pi]), "do not determine")):
        with pytest.raises(error, match=says):
            ld.export_fmu(build(), file, binary=False, **options)
    assert list(tmp_path.iterdir()) == []


def one_sided():
    builder = Builder("bouncing")
    builder.body("ball", 1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.joint("z", "prismatic", "ground", "ball", axis=(0, 0, 1), placement=(0.0, 0.0, 1.0))
    builder.constraint("floor", "on_plane", "ground", "ball", axis=(0, 0, 1), unilateral=True)
    return builder.build()


def with_function():
    return bundled("five_bar").with_target("pin", lambda t: ([0.1 * t, 0, 0], [0.1, 0, 0], [0, 0, 0]))
