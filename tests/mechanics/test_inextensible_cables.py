"""Cables that do not stretch, as one-sided constraints: slack and taut, against closed forms; derivatives; files."""
import json
import math
import pickle

import numpy as np
import pytest
from comparison import off
from mechanisms import random_pose
from tree_cases import TREES

import liedyn as ld
from liedyn.look.cli.linearize_command import central_differences
from liedyn.machine.errors import InputError, ModelError, SingularConfigurationError

G, L, M = 9.81, 0.8, 0.3
UPRIGHT = ld.placement((0.0, 0.0, 0.0), rpy=(math.pi / 2, 0.0, 0.0))  # a wheel in the plane of x and z


def wheel(body, place, radius, turn):
    frame = UPRIGHT.copy()
    frame[:3, 3] = place
    return ld.Pulley(body, frame, radius, turn)


def bob():
    """A mass on a string, in the plane of x and y."""
    b = ld.Builder("bob on a string", gravity=(0.0, -G, 0.0))
    b.body("bob", mass=M)
    b.joint("motion", "translational", "ground", "bob", driven=False)
    b.cable("string", [("ground", (0, 0, 0)), ("bob", (0, 0, 0))], length=L, stiffness=math.inf)
    return b.build()


def weights(masses, paths, gravity=G):
    """Masses on vertical guides, and ropes of given paths that are taut at home."""
    b = ld.Builder("weights", gravity=(0.0, 0.0, -gravity))
    for name, (mass, place) in masses.items():
        b.body(name, mass, (0, 0, 0), (0.1, 0.1, 0.1))
        b.joint(f"{name} guide", "prismatic", "ground", name, place, axis=(0, 0, 1), driven=False)
    for name, path in paths.items():
        b.cable(name, path, length=100.0, stiffness=math.inf)
    robot = b.build()
    for name, length in ld.cable_lengths(robot, robot.home).items():
        b.change("constraint", name, length=float(length))
    return b


def strung(seed=5):
    """A floating tree of all joints with cables of every kind, as long as they are."""
    rng = np.random.default_rng(seed)
    b = ld.Builder.of(TREES["floating, springs"]())
    bodies = [body.name for body in b._bodies]

    def point(k):
        return (bodies[k], 3.0 * rng.normal(size=3))

    def wrap(k, shape, **more):
        return ld.Pulley(bodies[k], random_pose(rng), 0.2, shape=shape, **more)

    paths = {
        "points": [point(0), point(3), point(4), ("ground", (0.1, 0.2, 5.0))],
        "wheel": [point(1), wrap(2, "cylinder"), point(5)],
        "left": [point(1), wrap(6, "cylinder", turn=1), point(2), wrap(0, "cylinder", turn=-1), ("ground", (3, 2, 1))],
        "ball": [point(7), wrap(1, "sphere"), point(0)],
        "beside": [point(4), wrap(3, "sphere", side=(0.0, 0.4, 0.0)), point(6)],
        "round": [point(2), wrap(5, "cylinder", side=(0.4, 0.1, 0.0)), point(1)]}
    for name, path in paths.items():
        b.cable(name, path, length=1.0, stiffness=math.inf, active="sticking")
    robot = b.build()
    q = ld.integrate(robot, robot.neutral, rng.uniform(-1, 1, robot.nv))
    for name, length in ld.cable_lengths(robot, q).items():
        b.change("constraint", name, length=float(length))
    return b, q


def test_rows_and_derivatives_are_those_of_differences():
    (b, q), rng = strung(), np.random.default_rng(1)
    robot = b.build()
    assert np.abs(ld.closure_error(robot, q)).max() < 1e-12
    for _ in range(2):
        v = rng.normal(size=robot.nv)
        for name in robot.constraint_names:
            found = ld.check_constraint(robot, name, q, v)
            assert found.ok, (name, found)
        q = ld.integrate(robot, robot.neutral, rng.uniform(-1, 1, robot.nv))


def test_a_linear_model_of_taut_cables_is_that_of_differences():
    (b, q), rng = strung(), np.random.default_rng(2)
    for name in ("ball", "beside", "round"):
        b.remove("constraint", name)
    robot, n = b.build(), b.build().nv
    G_rows = ld.constraint_jacobian(robot, q)
    null = np.linalg.svd(G_rows)[2][len(G_rows):].T
    v, tau = null @ rng.normal(size=null.shape[1]), rng.normal(size=n)
    ss, lam = ld.linearize(robot, q, v, tau), ld.forward_dynamics(robot, q, v, tau).lam
    assert ss.A.shape == (2 * (n - 3), 2 * (n - 3)) and off(
        ld.rnea(robot, q, v, ld.forward_dynamics(robot, q, v, tau).a) - ld.element_forces(robot, q, v),
        tau - G_rows.T @ lam) < 1e-10
    A, B = central_differences(robot, ss, ss.states[:n - 3])
    assert off(ss.A, A) < 1e-8 and off(ss.B, B) < 1e-8


def test_a_pendulum_swings_on_its_string():
    robot = bob()
    lowest = ld.linearize(robot, [0, -L, 0], np.zeros(3), np.zeros(3))
    assert off(np.sort(lowest.eigenvalues().imag), np.sqrt(G / L) * np.array([-1, -1, 1, 1])) < 1e-12
    found = ld.forward_dynamics(robot, [0, -L, 0], [2.0, 0, 0], np.zeros(3))
    assert found.lam[0] == pytest.approx(M * (G + 4.0 / L), rel=1e-12) and found.contacts["string"] != "open"
    assert ld.forward_dynamics(robot, [0, -0.9 * L, 0], [2.0, 0, 0], np.zeros(3)).contacts == {"string": "open"}
    with pytest.raises(InputError, match="impact is due: cable 'string'"):
        ld.forward_dynamics(robot, [0, -L, 0], [0, -1.0, 0], np.zeros(3))
    with pytest.raises(InputError, match="the path of cable 'string' is 0.2 longer than the cable"):
        ld.forward_dynamics(robot, [0, -L - 0.2, 0], [0, 0, 0], np.zeros(3))
    with pytest.raises(ld.SimulationError, match="the path of cable 'string' is 0.2 longer than the cable"):
        ld.simulate(robot, [0, -L - 0.2, 0], [0, 0, 0], 0.1, progress=False)


def test_a_string_becomes_slack_and_taut_again():
    """From below with v0 the bob leaves the circle where sin(phi) = (v0^2 / (g L) - 2) / 3, flies, and is caught."""
    robot, v0 = bob(), math.sqrt(3.5 * G * L)
    sine = (v0**2 / (G * L) - 2.0) / 3.0
    tr = ld.simulate(robot, [0, -L, 0], [v0, 0, 0], 1.3, dt=1e-3, progress=False)
    slack = tr.events[0]
    k = np.searchsorted(tr.t, slack.t)
    assert slack.name.endswith("string") and tr.q[k, 1] / L == pytest.approx(sine, abs=1e-9)
    assert np.ptp(tr.energy[:k]) < 1e-9 and tr["string.tension"][:k].min() > -1e-9
    # a parabola from there: |q + v t + g t^2 / 2| = L again
    q, v, g = tr.q[k], tr.v[k], np.array([0, -G, 0])
    roots = np.roots([0.25 * g @ g, v @ g, v @ v + q @ g, 2.0 * q @ v, 0.0])
    flight = min(x.real for x in roots if abs(x.imag) < 1e-9 and x.real > 1e-3)
    caught = tr.events[1]
    assert caught.t - slack.t == pytest.approx(flight, abs=1e-6)
    place, speed = q + v * flight + 0.5 * g * flight**2, v + g * flight
    outward = speed @ place / L
    assert caught.energy_loss == pytest.approx(0.5 * M * outward**2, rel=1e-5)
    after = tr.t > caught.t
    assert np.ptp(tr.energy[after]) < 1e-8
    assert np.linalg.norm(tr.q, axis=1).max() < L + 1e-9
    tension = tr["string.tension"]
    assert (np.abs(tension[(tr.t > slack.t) & (tr.t < caught.t)]) < 1e-12).all()


def test_steps_go_through_it():
    robot, v0 = bob(), math.sqrt(3.5 * G * L)
    exact = ld.simulate(robot, [0, -L, 0], [v0, 0, 0], 1.3, dt=1e-3, progress=False)
    moreau = ld.simulate(robot, [0, -L, 0], [v0, 0, 0], 1.3, dt=2e-4, method="moreau", progress=False)
    assert off(moreau.q[-1], exact.q[-1]) < 5e-3
    stepper = ld.Stepper(robot, [0, -L, 0], [v0, 0, 0], dt=2e-4, method="moreau")
    stepper.advance(6500)
    assert off(stepper.q, moreau.q[-1]) < 1e-9 and np.linalg.norm(stepper.q) < L + 1e-9


def test_atwoods_machine():
    one, two, R = 2.0, 3.0, 0.1
    b = weights({"one": (one, (-R, 0, 0)), "two": (two, (R, 0, 0))},
                {"rope": [("one", (0, 0, 0)), wheel("ground", (0, 0, 1.0), R, -1), ("two", (0, 0, 0))]})
    robot = b.build()
    a = G * (two - one) / (one + two)
    found = ld.forward_dynamics(robot, [0, 0], [0.5, -0.5], [0, 0])
    assert off(found.a, [a, -a]) < 1e-12 and found.lam[0] == pytest.approx(2 * G * one * two / (one + two), rel=1e-12)
    tr = ld.simulate(robot, [0, 0], [0, 0], 0.5, dt=1e-2, progress=False)
    assert tr.q[-1, 0] == pytest.approx(0.5 * a * 0.25, abs=1e-10)
    # the rope turns a wheel with inertia, without slip
    inertia = 0.02
    b.body("wheel", 1.0, (0, 0, 0), (inertia, inertia, inertia))
    b.joint("axle", "revolute", "ground", "wheel", (0, 0, 1.0), axis=(0, 1, 0), driven=False)
    b.constraint("grip", "coupling", coefficients={"one guide": 1.0, "axle": -R})
    a = G * (two - one) / (one + two + inertia / R**2)
    found = ld.forward_dynamics(b.build(), [0, 0, 0], [0, 0, 0], [0, 0, 0])
    assert off(found.a, [a, -a, a / R]) < 1e-12
    assert found.lam[0] == pytest.approx(two * (G - a), rel=1e-12)


def test_a_tackle_multiplies_the_pull():
    """Four strands carry the load: two pulleys on the load, two above, and a counterweight at the end."""
    r = 0.05
    strands = [("ground", (-3 * r, 0, 2.0)), wheel("load", (-2 * r, 0, 0), r, 1), ("ground", (-r, 0, 1.9)),
               wheel("ground", (0, 0, 2.0), r, -1), ("ground", (r, 0, 1.9)), wheel("load", (2 * r, 0, 0), r, 1),
               ("ground", (3 * r, 0, 1.9)), wheel("ground", (4 * r, 0, 2.0), r, -1), ("counter", (0, 0, 0))]
    load = 8.0
    for counter in (2.0, 3.0, 2.5):
        b = weights({"load": (load, (0, 0, 0)), "counter": (counter, (5 * r, 0, 1.0))}, {"rope": strands})
        robot = b.build()
        found = ld.forward_dynamics(robot, [0, 0], [0, 0], [0, 0])
        a = G * (4 * counter - load) / (load + 16 * counter)
        assert off(found.a, [a, -4 * a]) < 1e-12 * max(1.0, a)
        assert found.lam[0] == pytest.approx(counter * (G - 4 * a), rel=1e-12)


def test_a_swinging_crane_keeps_its_energy():
    """A load on a rope over a wheel at the tip of a jib that swings."""
    b = ld.Builder("crane", gravity=(0.0, 0.0, -G))
    b.body("jib", 3.0, (0.5, 0, 0), (0.1, 0.3, 0.3))
    b.joint("swing", "revolute", "ground", "jib", axis=(0, 1, 0), stiffness=80.0, driven=False)
    b.body("load", 1.0, (0, 0, 0), (0.01, 0.01, 0.01))
    b.joint("free", "free", "ground", "load", driven=False)
    b.cable("rope", [("ground", (0.0, 0.0, 0.3)), wheel("jib", (1.0, 0, 0.05), 0.1, 0), ("load", (0.02, 0, 0.05))],
            length=1.8, stiffness=math.inf)
    robot = b.build()
    q = robot.home.copy()
    q[robot.coordinate_index("free.x")], q[robot.coordinate_index("free.z")] = 1.25, -0.6
    v = np.zeros(robot.nv)
    v[robot.velocity_index("free.y")] = 0.3
    slack = ld.cable_lengths(robot, q)["rope"]
    assert slack < 1.8
    tr = ld.simulate(robot, q, v, 1.0, dt=1e-3, progress=False)
    taut = next(event for event in tr.events if event.name == "contact rope")
    before, after = tr.t < taut.t, tr.t > taut.t
    assert np.ptp(tr.energy[before]) < 1e-8 and taut.energy_loss > 0.0
    lost = tr.energy[before][-1] - tr.energy[after]
    assert lost.min() > 0.0
    assert max(ld.cable_lengths(robot, tr.q)["rope"]) < 1.8 + 1e-9
    # what joints transmit balances: the wheel's share of the tension is in the swing's bearing
    k = np.searchsorted(tr.t, taut.t) + 20
    wrench = ld.joint_wrenches(robot, tr.q[k], tr.v[k], np.zeros(robot.nv))
    assert np.abs(wrench["free"]).max() < 1e-8
    assert tr["rope.tension"][k] > 0.0


def test_files_edits_and_what_is_refused(tmp_path):
    (b, q), rng = strung(), np.random.default_rng(4)
    robot = b.build()
    ld.save(robot, tmp_path / "strung.toml")
    again = ld.load(tmp_path / "strung.toml")
    assert again.constraint_names == robot.constraint_names and again.row_names[0] == "points.tension"
    v = rng.normal(size=robot.nv)
    assert off(ld.constraint_bias(again, q, v), ld.constraint_bias(robot, q, v)) < 1e-10
    panda = ld.Builder.of(ld.load("panda"))
    panda.attach(bob(), to="panda_hand", prefix="toy_")
    held = panda.build()
    assert held.constraint_names == ("toy_string",)
    assert ld.cable_lengths(held, held.home)["toy_string"] < 1e-12
    b = ld.Builder.of(bob())
    b.remove("body", "bob")
    b.body("other", mass=1.0)
    b.joint("motion", "translational", "ground", "other")
    assert b.build().constraint_names == ()
    path = [("ground", (0, 0, 0)), ("other", (0, 0, 0))]
    for more, said in (({}, "length: an inextensible cable has one"), ({"length": 1.0, "damping": 2.0}, "no damping"),
                       ({"length": 1.0, "pushes": True}, "cannot push"),
                       ({"length": 1.0, "preload": 1.0}, "no damping"),
                       ({"length": 1.0, "active": 3}, "active")):
        with pytest.raises(ModelError, match=said):
            b.cable("x", path, stiffness=math.inf, **more)
    with pytest.raises(ModelError, match="stiffness=math.inf"):
        b.cable("x", path, stiffness=3.0, active=False)
    b.cable("x", [("ground", (0, 0, 0)), ("othr", (0, 0, 0))], length=1.0, stiffness=math.inf)
    with pytest.raises(ModelError, match="cable 'x', path: unknown 'othr', did you mean 'other'"):
        b.build()
    robot = bob()
    with pytest.raises(SingularConfigurationError, match="its points coincide"):
        ld.forward_dynamics(robot.switched(string="sticking"), np.zeros(3), np.zeros(3), np.zeros(3))


def belt_drive(turn, **more):
    """A belt from a wheel on the ground to one on a slider that may tilt, and round an idler on an arm."""
    b = ld.Builder("belt drive")
    b.body("slider", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("slide", "prismatic", "ground", "slider", axis=(1, 0, 0))
    b.body("wheel", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("axle", "revolute", "slider", "wheel", (0.5, 0.0, 0.0), axis=(0, 0, 1))
    b.body("arm", 0.2, (0.1, 0, 0), (0.01, 0.01, 0.01))
    b.joint("swing", "revolute", "slider", "arm", (0.25, 0.15, 0.0), axis=(0, 0, 1))
    one, two = ld.Pulley("ground", (0.0, 0.0, 0.0), 0.05, 1), ld.Pulley("wheel", (0.0, 0.0, 0.0), 0.1, turn)
    idler = ld.Pulley("arm", (0.15, 0.0, 0.0), 0.03, -1)
    b.cable("belt", [one, two, one], length=1.0, stiffness=math.inf, **more)
    b.cable("tight", [one, two, idler, one], length=1.0, stiffness=math.inf, **more)
    b.cable("rope", [("ground", (0.0, -0.3, 0.0)), one, two, idler, ("slider", (0.2, 0.6, 0.0))], length=1.0,
            stiffness=math.inf, **more)
    return b


@pytest.mark.parametrize("turn", [1, -1])
def test_belts(turn):
    """Open and crossed: lengths in closed form, and rows of differences."""
    robot, rng = belt_drive(turn, active="sticking").build(), np.random.default_rng(7)
    for _ in range(3):
        q, v = rng.uniform(-0.1, 0.1, 3), rng.normal(size=3)
        q[2] -= 2.0
        d, R, r = 0.5 + q[0], 0.1, 0.05
        closed = 2 * math.sqrt(d**2 - (R - turn * r)**2) + (
            math.pi * (R + r) + 2 * (R - turn * r) * math.asin((R - turn * r) / d))
        assert ld.cable_lengths(robot, q)["belt"] == pytest.approx(closed, abs=1e-13)
        for name in robot.constraint_names:
            found = ld.check_constraint(robot, name, q, v, tolerance=1e-6)
            assert found.ok, (name, found)
        # a wheel that turns under a belt without friction does not feel it
        assert np.abs(ld.constraint_jacobian(robot, q)[:, 1]).max() < 1e-15
    if turn == 1:  # the idler is just above its strand
        with pytest.raises(SingularConfigurationError, match="lifts off"):
            ld.cable_lengths(robot, [0.0, 0.0, -0.15])


def test_what_belts_refuse():
    b = belt_drive(1)
    one, two = ld.Pulley("ground", radius=0.05, turn=1), ld.Pulley("wheel", radius=0.1)
    for path, said in (([one, two, one], "turn=1 or turn=-1"), ([one, one], "ends at the pulley where it begins"),
                       ([one, ("arm", (0, 0, 0)), one], "ends at the pulley where it begins")):
        with pytest.raises(ModelError, match=said):
            b.cable("x", path, length=1.0)
    for other, said in ((ld.placement((0.5, 0, 0), rpy=(0.1, 0, 0)), "parallel axes.* 'ground' are"),
                        ((0.5, 0, 0.01), "one plane.* 0.01 m apart")):
        with pytest.raises(ModelError, match=said):
            b.cable("x", [one, ld.Pulley("ground", other, 0.1, 1), one], length=1.0)
    tilted = ld.Pulley("wheel", ld.placement((0, 0, 0.0), rpy=(0.1, 0, 0)), 0.1, 1)
    for name, path in (("tilted", [one, tilted, one]), ("beside", [one, ld.Pulley("wheel", (0, 0, 0.1), 0.1, 1), one])):
        b.cable(name, path, length=1.0, stiffness=math.inf)
        with pytest.raises(SingularConfigurationError, match="plane of its pulleys, whose axes have to be parallel"):
            ld.cable_lengths(b.build(), [0.0, 0.0, -2.0])
        b.remove("constraint", name)


TENDONS = """<mujoco><option gravity="0 0 -9.81" timestep="2e-4"/><worldbody><site name="top"/>
  <body name="bob" pos="0 0 -0.8"><joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
    <geom type="sphere" size="0.03" mass="0.3" contype="0" conaffinity="0"/><site name="hook"/></body></worldbody>
  <tendon><spatial name="string" range="{}"><site site="top"/><site site="hook"/></spatial></tendon></mujoco>"""


def test_limits_of_tendons_are_inextensible_cables(tmp_path):
    """MuJoCo's limit is soft: near, not equal."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "bob.xml"
    path.write_text(TENDONS.format("0 0.8"))
    robot = ld.load(path)
    assert robot.row_names == ("string.tension",) and robot.model.constraints[0].length == 0.8
    tr = ld.simulate(robot, robot.home, [2.0, 0.0], 0.4, dt=1e-3, progress=False)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qvel[:] = 2.0, 0.0
    for _ in range(2000):
        mujoco.mj_step(model, data)
    assert np.abs(tr.q[-1] - data.qpos).max() < 0.02
    ld.save(robot, tmp_path / "again.xml")
    again = ld.load(tmp_path / "again.xml")
    assert again.row_names == robot.row_names
    assert off(ld.forward_dynamics(again, again.home, [2.0, 0.0], [0, 0]).a,
               ld.forward_dynamics(robot, robot.home, [2.0, 0.0], [0, 0]).a) < 1e-12
    for limits in ("0.2 0.9", "0 0.7"):  # a lower limit, and one that is exceeded in the drawing
        path.write_text(TENDONS.format(limits))
        with pytest.warns(ld.ModelWarning, match="limits of tendons, except upper ones .*: 'string'"):
            assert len(ld.load(path).constraint_names) == (limits == "0.2 0.9")


def test_modes_and_events_are_shown_in_words_of_cables_and_compared_as_those_of_contacts():
    robot, rest = bob(), np.zeros(3)
    (mode,) = ld.forward_dynamics(robot, [0, -L, 0], rest, rest).contacts.values()
    assert mode == "sliding" and repr(mode) == "<taut: 'sliding'>" and json.dumps(mode) == '"sliding"'
    assert repr(pickle.loads(pickle.dumps(mode))) == repr(mode) and np.array([mode]) == "sliding"
    modes = ld.forward_dynamics(robot, [[0, -L, 0], [0, -0.5 * L, 0]], [rest] * 2, [rest] * 2).contacts["string"]
    assert (modes == ["sliding", "open"]).all() and "slack" in repr(modes)
    assert "held taut" in repr(robot.switched(string="sticking").contacts)
    with pytest.raises(InputError, match="cable 'string' is taut and gets longer with 1;"):
        ld.forward_dynamics(robot, [0, -L, 0], [0, -1.0, 0], rest)
    with pytest.raises(InputError, match="cable 'string' is about to become slack:"):
        ld.linearize(robot, [0, L, 0], rest, u=None, tau=[0, M * G, 0])
    for method in ("rk4", "moreau"):
        tr = ld.simulate(robot, [0, -L, 0], [math.sqrt(3.5 * G * L), 0, 0], 0.5, method=method, dt=1e-3)
        assert tr.events[0].name == "release string" and "<string goes slack:" in repr(tr.events[0])
