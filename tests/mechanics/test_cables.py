"""Cables through points and round cylinders and spheres: lengths in closed form and of MuJoCo, energy; tensions."""
import math

import numpy as np
import pytest
from closed_chains import difference
from comparison import off
from mechanisms import random_pose
from tree_cases import TREES

import liedyn as ld
from liedyn.machine.errors import InputError, ModelError, SingularConfigurationError

UPRIGHT = ld.placement((0.0, 0.0, 0.0), rpy=(math.pi / 2, 0.0, 0.0))  # a wheel in the plane of x and z


def slack(robot, q, v, name):
    length, rate, force = ld.element_states(robot, q, v)[name]
    return float(length), float(rate), float(force)


def strung(seed=5):
    """A floating tree of all joints with cables of every kind, elastic, of a law and driven."""
    rng = np.random.default_rng(seed)
    b = ld.Builder.of(TREES["floating, springs"]())
    bodies = [body.name for body in b._bodies]

    def point(k):
        return (bodies[k], 3.0 * rng.normal(size=3))

    def wrap(k, shape, **more):
        return ld.Pulley(bodies[k], random_pose(rng), 0.2, shape=shape, **more)

    b.cable("points", [point(0), point(3), point(4), ("ground", (0.1, 0.2, 5.0))], stiffness=20.0, damping=1.0)
    b.cable("wheel", [point(1), wrap(2, "cylinder"), point(5)], length=0.3, stiffness=30.0, damping=0.5)
    b.cable("left", [point(1), wrap(6, "cylinder", turn=1), point(2), wrap(0, "cylinder", turn=-1),
                     ("ground", (3, 2, 1))], stiffness=10.0)
    b.cable("ball", [point(7), wrap(1, "sphere"), point(0)], stiffness=15.0, damping=0.3, pushes=True)
    b.cable("beside", [point(4), wrap(3, "sphere", side=(0.0, 0.4, 0.0)), point(6)],
            law=ld.PolynomialSpring(5.0, 1.0, 0.2, 0.3, 0.0, 0.1))
    b.cable("round", [point(2), wrap(5, "cylinder", side=(0.4, 0.1, 0.0)), point(1)], stiffness=12.0)
    b.winch("winch", [point(3), wrap(4, "sphere"), point(2)], gear=2.0)
    return b.build()


def test_rates_and_forces_are_derivatives_of_lengths():
    robot, rng = strung(), np.random.default_rng(1)
    n = robot.nv
    for _ in range(3):
        q = ld.integrate(robot, robot.neutral, rng.uniform(-1, 1, n))
        v = rng.normal(size=n)
        for name in robot.element_names:
            rate = difference(lambda s, name=name, q=q, v=v: slack(robot, ld.integrate(robot, q, s * v), v, name)[0])
            assert abs(slack(robot, q, v, name)[1] - rate) < 1e-8 * max(1.0, abs(rate)), name
        power = ld.element_forces(robot, q, v) @ v
        taken = sum(-slack(robot, q, v, name)[1] * slack(robot, q, v, name)[2] for name in robot.element_names)
        assert abs(power - taken) < 1e-10 * max(1.0, abs(taken))


def test_a_linear_model_is_that_of_differences():
    robot, rng = strung(), np.random.default_rng(2)
    n = robot.nv
    q, v, u = ld.integrate(robot, robot.neutral, rng.uniform(-1, 1, n)), rng.normal(size=n), np.array([3.0])

    def a(q, v, u):
        return ld.forward_dynamics(robot, q, v, ld.actuator_matrix(robot, q) @ u).a

    ss = ld.linearize(robot, q, v, u=u)
    columns = [difference(lambda s, e=e: a(ld.integrate(robot, q, s * e), v, u)) for e in np.eye(n)]
    columns += [difference(lambda s, e=e: a(q, v + s * e, u)) for e in np.eye(n)]
    columns += [difference(lambda s: a(q, v, u + s), 1.0)]
    assert off(np.hstack([ss.A, ss.B])[n:], np.stack(columns, axis=-1)) < 1e-7


def hoist(turn=1, place=(0.1, 0.0, 0.0)):
    """A load that hangs on a rope over a wheel."""
    b = ld.Builder("hoist", gravity=(0.0, 0.0, -9.81))
    b.body("load", 2.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("lift", "prismatic", "ground", "load", place, axis=(0, 0, 1))
    wheel = UPRIGHT.copy()
    wheel[2, 3] = 1.0
    over = ld.Pulley("ground", wheel, radius=0.1, turn=turn)
    b.cable("rope", [("load", (0, 0, 0)), over, ("ground", (-0.1, 0.0, 0.3))], length=1.9, stiffness=1e3)
    return b.build()


def test_over_a_wheel():
    turn = 1
    x, rate, force = slack(hoist(turn), [-0.2], [0.5], "rope")
    assert abs(x - (1.2 + 0.7 + 0.1 * math.pi - 1.9)) < 1e-12
    assert abs(rate + 0.5) < 1e-12 and abs(force - 1e3 * x) < 1e-9
    assert slack(hoist(turn), [0.4], [0.0], "rope")[2] == 0.0  # slack: it does not push
    # the other way, below the wheel, it is not in the way
    assert abs(slack(hoist(0), [-0.2], [0.0], "rope")[0] - (math.hypot(0.2, 0.5) - 1.9)) < 1e-12
    found = ld.trim(hoist(turn), [-0.1], free=["lift"])
    assert abs(ld.element_states(hoist(turn), found.q, [0.0])["rope"][2] - 2.0 * 9.81) < 1e-8


def test_it_lifts_off():
    """The rope over the wheel goes straight where it would have to go round by less than nothing."""
    b = ld.Builder("swing")
    b.body("arm", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("turn", "revolute", "ground", "arm", axis=(0, 0, 1))
    b.cable("rope", [("ground", (-1.0, 0.0, 0.3)), ld.Pulley("ground", radius=0.2, turn=1), ("arm", (1.0, 0.0, -0.3))],
            stiffness=1.0)
    robot = b.build()
    alpha = math.acos(0.2)
    for angle in (-1.5, -0.3, 0.0, 0.3, 1.0):
        arc = math.pi + angle + math.pi - 2.0 * alpha - math.pi  # from pi to 2 pi + angle
        flat = 2.0 * math.sqrt(1.0 - 0.04) + 0.2 * arc
        expected = math.hypot(flat, 0.6) if arc > 0.0 else math.hypot(2.0 * math.cos(angle / 2), 0.6)
        assert abs(slack(robot, [angle], [0.0], "rope")[0] - expected) < 1e-12
    # no jump of length and force where it lifts off
    at = 2.0 * alpha - math.pi
    near = [slack(robot, [at + h], [1.0], "rope") for h in (-1e-6, 1e-6)]
    assert abs(near[1][0] - near[0][0]) < 1e-5 and abs(near[1][1] - near[0][1]) < 1e-5


def test_energy_stays():
    """A load on an elastic rope over a wheel on a swinging arm."""
    b = ld.Builder("crane", gravity=(0.0, 0.0, -9.81))
    b.body("arm", 3.0, (0.5, 0, 0), (0.1, 0.3, 0.3))
    b.joint("swing", "revolute", "ground", "arm", axis=(0, 1, 0), stiffness=80.0)
    b.body("load", 1.0, (0, 0, 0), (0.01, 0.01, 0.01))
    b.joint("free", "free", "ground", "load", driven=False)
    tip = UPRIGHT.copy()
    tip[:3, 3] = 1.0, 0.0, 0.05
    b.cable("rope", [("ground", (0.0, 0.0, 0.3)), ld.Pulley("arm", tip, 0.1), ("load", (0.02, 0, 0.05))], length=1.7,
            stiffness=500.0)
    robot = b.build()
    q = ld.integrate(robot, robot.neutral, [0, 0, 0, 0, 0, 0, 0])
    q[robot.coordinate_index("free.x")], q[robot.coordinate_index("free.z")] = 1.25, -0.7
    v = np.zeros(robot.nv)
    v[robot.velocity_index("free.y")] = 0.3
    tr = ld.simulate(robot, q, v, 0.3, dt=5e-4)
    assert np.abs(tr.energy_drift).max() < 1e-7 * np.abs(tr.energy).max()
    assert np.ptp(tr.kinetic) > 1.0


def test_lengths_are_those_of_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    from mujoco_oracle import Oracle

    path = tmp_path / "finger.xml"
    path.write_text("""<mujoco><option gravity="0 0 -9.81"/><worldbody>
      <site name="w" pos="-0.5 0.05 0.3"/><geom name="post" type="cylinder" size="0.08 0.5" pos="0.1 0.3 0"
        euler="10 5 0" contype="0" conaffinity="0"/><site name="by" pos="0.1 0.5 0"/>
      <body name="one"><joint name="a" axis="0 1 0"/><inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
        <site name="p" pos="0.2 0.02 0.1"/><geom name="ball" type="sphere" size="0.07" pos="0.45 0 0" contype="0"
        conaffinity="0"/><site name="s" pos="0.45 0 0.2"/>
        <body name="two" pos="0.45 0 0"><joint name="b" axis="0 1 0"/><joint name="c" axis="0 0 1"/>
          <inertial pos="0.2 0 0" mass="0.5" diaginertia="0.01 0.02 0.02"/><site name="t" pos="0.25 0.01 0.12"/>
          <site name="r" pos="0.3 -0.4 0.1"/></body>
        <site name="above" pos="0.45 0.02 0.3"/><site name="below" pos="0.45 0 -0.2"/></body>
      <site name="left" pos="-0.3 0.3 0"/></worldbody>
      <tendon><spatial name="many" stiffness="30" damping="1" springlength="0.2"><site site="w"/><site site="p"/>
        <site site="t"/></spatial>
      <spatial name="over" stiffness="20" springlength="0.1"><site site="p"/><geom geom="ball"/><site site="t"/>
        </spatial>
      <spatial name="beside" stiffness="25" springlength="0 0.3"><site site="p"/><geom geom="ball"/>
        <site site="t"/></spatial>
      <spatial name="post" stiffness="15"><site site="w"/><geom geom="post"/><site site="r"/></spatial>
      <spatial name="far" stiffness="10"><site site="w"/><geom geom="post"/><site site="p"/><site site="r"/></spatial>
      <spatial name="up" stiffness="12"><site site="p"/><geom geom="ball" sidesite="above"/><site site="t"/></spatial>
      <spatial name="down" stiffness="14"><site site="p"/><geom geom="ball" sidesite="below"/><site site="t"/></spatial>
      <spatial name="round" stiffness="9"><site site="w"/><geom geom="post" sidesite="left"/><site site="r"/></spatial>
      </tendon><actuator><motor name="u" tendon="over" gear="-3"/><position name="x" tendon="post" kp="5"/></actuator>
      </mujoco>""")
    robot, rng = ld.load(path), np.random.default_rng(3)
    oracle = Oracle(path, robot)
    assert robot.element_names == ("many", "over", "beside", "post", "far", "up", "down", "round", "x servo")
    wrapped = 0
    for _ in range(12):
        q, v, u = rng.uniform(-1.2, 1.2, 3), rng.normal(size=3), rng.normal(size=2)
        M, h = oracle.dynamics(q, v, u)
        own = ld.rnea(robot, q, v, 0 * v) - ld.element_forces(robot, q, v) - ld.actuator_matrix(robot, q) @ u
        assert off(own, h) < 1e-8
        wrapped += int((oracle.data.ten_wrapnum > 2).sum())
    assert wrapped > 12 and mujoco
    b = ld.Builder.of(robot)
    b.remove("element", "x servo")
    ld.save(b.build(), tmp_path / "again.xml")
    again = ld.load(tmp_path / "again.xml")
    assert off(ld.element_forces(again, q, v), ld.element_forces(b.build(), q, v)) < 1e-8
    assert off(ld.actuator_matrix(again, q), ld.actuator_matrix(robot, q)) < 1e-8


def test_files_and_edits(tmp_path):
    robot, rng = strung(), np.random.default_rng(4)
    q, v = ld.random_configuration(robot, rng), rng.normal(size=robot.nv)
    ld.save(robot, tmp_path / "strung.toml")
    again = ld.load(tmp_path / "strung.toml")
    assert off(ld.element_forces(again, q, v), ld.element_forces(robot, q, v)) < 1e-10
    assert off(ld.actuator_matrix(again, q), ld.actuator_matrix(robot, q)) < 1e-10
    b = ld.Builder.of(ld.load("panda"))
    b.attach(hoist(), to="panda_hand", prefix="crane_")
    robot = b.build()
    assert robot.element_names == ("crane_rope",)
    b = ld.Builder.of(hoist())
    b.change("element", "rope", stiffness=5.0)
    assert b.build().model.elements[0].numbers == (5.0, 0.0)
    b.remove("body", "load")
    assert b.build().element_names == ()


def test_what_is_refused():
    b = ld.Builder.of(hoist())
    wheel = ld.Pulley("ground", radius=0.1)
    one, two, small = ("load", (0, 0, 0)), ("ground", (1, 0, 0)), ld.Pulley("ground", radius=-1.0)
    for path, said in (([one], "begins and ends at a point"), ([wheel, one], "begins and ends"),
                       ([one, wheel, wheel, two], "cylinders with turn=1"), ("load", "expected points"),
                       ([one, small, two], "radius: must be positive"), ([one, (1.0, 2.0)], "body")):
        with pytest.raises(ModelError, match=said):
            b.cable("x", path)
    b.cable("x", [("lod", (0, 0, 0)), ("ground", (1, 0, 0))])
    with pytest.raises(ModelError, match="cable 'x', path: unknown 'lod', did you mean 'load'"):
        b.build()
    with pytest.raises(SingularConfigurationError, match="lies within what a cable goes round"):
        ld.element_forces(hoist(place=(0.0, 0.0, 1.0)), [0.0], [0.0])
    b = ld.Builder.of(hoist())
    b.body("hook", 0.1, (0, 0, 0), (0.01, 0.01, 0.01))
    b.joint("weld", "fixed", "load", "hook", (0.0, 0.0, -0.1))
    b.cable("sling", [("hook", (0.1, 0.0, 0.0)), ("ground", (0.5, 0.0, 0.0))])
    with pytest.raises(InputError, match="'placement.x:weld' would displace points of cable 'sling' on their link"):
        ld.sensitivities(b.build(), [-0.1], [0.0], tau=[0.0], parameters=["mass:load", "placement.x:weld"])


def on_eight(low=1.0):
    """A body in a frame of two metres, on eight cables."""
    b = ld.Builder("cable robot", gravity=(0.0, 0.0, -9.81))
    b.body("platform", 5.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("motion", "free", "ground", "platform", driven=False)
    for k in range(8):
        x, y, z = (1 if k & 1 else -1), (1 if k & 2 else -1), (1 if k & 4 else -1)
        b.winch(f"winch{k}", [("ground", (x, y, z)), ("platform", (0.15 * x * z, -0.15 * y * z, -0.1 * z))])
    return b.build()


def test_eight_cables():
    robot, rng = on_eight(), np.random.default_rng(6)
    q = ld.integrate(robot, robot.neutral, [0.1, -0.05, 0.1, 0.2, 0.1, -0.2])
    u = ld.tensions(robot, q, low=1.0, high=200.0)
    S = ld.actuator_matrix(robot, q)
    assert u.min() > 1.0 - 1e-9 and u.max() < 200.0 + 1e-9
    assert np.abs(S @ u - ld.rnea(robot, q, np.zeros(6), np.zeros(6))).max() < 1e-9
    # of least norm: no admissible change within the null space makes it shorter
    null = np.linalg.svd(S)[2][6:]
    for _ in range(200):
        other = u + null.T @ rng.normal(size=2) * rng.uniform(0, 10)
        if other.min() >= 1.0 and other.max() <= 200.0:
            assert other @ other >= u @ u - 1e-9
    free = ld.tensions(robot, q, low=-np.inf)
    assert off(free, np.linalg.pinv(S) @ ld.rnea(robot, q, np.zeros(6), np.zeros(6))) < 1e-10
    rows = ld.tensions(robot, [q, q], np.zeros((2, 6)), a=[np.zeros(6), [0, 0, 0, 0, 0, 1.0]], low=1.0, high=200.0)
    assert off(rows[0], u) < 1e-9 and rows.shape == (2, 8)
    with pytest.raises(InputError, match="no tensions between 1 and 5"):
        ld.tensions(robot, q, low=1.0, high=5.0)
    held = ld.forward_dynamics(robot, q, np.zeros(6), S @ u)
    assert np.abs(held.a).max() < 1e-9


def test_joints_carry_what_cables_pull():
    """A rope aslant pulls its load into the guide; the winch's pull is balanced where its wheel is held."""
    rope = ld.joint_wrenches(hoist(place=(0.3, 0.0, 0.0)), [-0.1], [0.0], [0.0])["lift"]
    x, _, tension = slack(hoist(place=(0.3, 0.0, 0.0)), [-0.1], [0.0], "rope")
    G = difference(lambda s: slack(hoist(place=(0.3, 0.0, 0.0)), [-0.1 + s], [0.0], "rope")[0])
    assert abs(rope[5]) < 1e-9  # nothing drives the load along its guide
    assert abs(rope[3] - tension * math.sqrt(1.0 - G * G)) < 1e-8 * tension and x > 0.0
