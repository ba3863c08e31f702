"""Actuators that are wrenches at frames: Jacobians, wrenches in the bodies' frames, differences, MuJoCo; flight."""
import tempfile

import numpy as np
import pytest
from closed_chains import difference
from comparison import off
from mechanisms import random_pose
from perturbed_models import perturbed
from tree_cases import TREES

import liedyn as ld
from liedyn.machine.errors import InputError, ModelError


def quadrotor(arm=0.2, drag=0.016):
    """Four propellers that turn in turns, thrusts in newtons."""
    b = ld.Builder("quadrotor", gravity=(0.0, 0.0, -9.81))
    b.body("hull", mass=0.8, inertia=(6e-3, 6e-3, 1.1e-2))
    b.joint("flight", "free", "ground", "hull", driven=False)
    for k, (x, y) in enumerate(((arm, 0.0), (0.0, arm), (-arm, 0.0), (0.0, -arm))):
        b.thruster(f"propeller{k}", "hull", (x, y, 0.02), torque=(0.0, 0.0, drag * (-1) ** k))
    return b.build()


def decorated(seed=3):
    """A floating tree of all joints with thrusters of both kinds on bodies and on a frame, a motor and a cylinder."""
    rng = np.random.default_rng(seed)
    b = ld.Builder.of(TREES["floating, springs"]())
    bodies = [body.name for body in b._bodies]
    b.frame("nozzle", bodies[4], random_pose(rng))
    b.actuator("motor", "joint1")
    b.thruster("jet", bodies[2], random_pose(rng), force=rng.normal(size=3), torque=rng.normal(size=3))
    b.thruster("hook", "nozzle", random_pose(rng), force=rng.normal(size=3), torque=rng.normal(size=3), axes="world")
    b.cylinder("ram", bodies[0], bodies[3], (0.1, 0.2, 0.3), gear=2.0)
    return b.build()


def wrench_at(robot, q, each):
    """J^T (torque, force) of a unit input, by the Jacobian of the body and the pose of the frame."""
    X, J = each.measure.child_placement, ld.body_jacobian(robot, q, each.measure.child)
    moment, force = np.split(np.array(each.wrench), 2)
    R = X[:3, :3] if each.axes == "body" else ld.pose(robot, q, each.measure.child)[:3, :3].T
    moment, force = R @ moment, R @ force
    return J.T @ np.concatenate([moment + np.cross(X[:3, 3], force), force])


def test_they_push_at_their_frames():
    robot, rng = decorated(), np.random.default_rng(1)
    assert robot.actuator_names == ("motor", "jet", "hook", "ram")
    q = ld.random_configuration(robot, rng, 5)
    S = ld.actuator_matrix(robot, q)
    for b in range(5):
        for k in (1, 2):
            assert off(S[b, :, k], wrench_at(robot, q[b], robot.model.actuators[k])) < 1e-13
    with pytest.raises(InputError, match="depends on the configuration: take liedyn.actuator_matrix"):
        _ = robot.actuator_matrix


@pytest.mark.parametrize("turn", [0.3, np.pi - 1e-9, np.pi, 5.0])
def test_at_any_attitude(turn):
    """Also after half a turn, where the rotation vector jumps."""
    robot = quadrotor()
    q = ld.integrate(robot, robot.neutral, turn * np.array([0.6, 0.0, 0.8, 0.0, 0.0, 0.0]))
    q[4:] = 1.0, -2.0, 3.0
    S = ld.actuator_matrix(robot, q)
    for k, each in enumerate(robot.model.actuators):
        assert off(S[:, k], wrench_at(robot, q, each)) < 1e-12
    ss = ld.linearize(robot, q, np.full(6, 0.1), u=[1.0, 2.0, 3.0, 4.0])
    assert off(ss.a, ld.forward_dynamics(robot, q, np.full(6, 0.1), S @ [1.0, 2.0, 3.0, 4.0]).a) < 1e-12
    # thrust and drag are fixed in the body, so that only gravity varies with the attitude
    assert off(ss.B[6:], np.linalg.solve(ld.crba(robot, q), S)) < 1e-12


def test_a_linear_model_is_that_of_differences():
    robot, rng = decorated(), np.random.default_rng(2)
    q = ld.integrate(robot, robot.neutral, rng.uniform(-1, 1, robot.nv))
    v, u, n = rng.normal(size=robot.nv), np.array([1.0, -2.0, 3.0, 0.5]), robot.nv

    def a(q, v, u):
        return ld.forward_dynamics(robot, q, v, ld.actuator_matrix(robot, q) @ u).a

    ss = ld.linearize(robot, q, v, u=u)
    columns = [difference(lambda s, e=e: a(ld.integrate(robot, q, s * e), v, u)) for e in np.eye(n)]
    columns += [difference(lambda s, e=e: a(q, v + s * e, u)) for e in np.eye(n)]
    columns += [difference(lambda s, e=e: a(q, v, u + s * e), 1.0) for e in np.eye(4)]
    assert off(np.hstack([ss.A, ss.B])[n:], np.stack(columns, axis=-1)) < 1e-7


def test_a_run_is_that_of_the_wrench_in_the_body():
    """Constant inputs of thrusters in the body are a constant external wrench in its own frame."""
    robot = quadrotor()
    u = np.array([2.0, 2.3, 1.8, 1.9])
    v = np.array([1.0, -0.5, 3.0, 0.2, 0.1, 0.4])
    total = ld.actuator_matrix(robot, robot.home) @ u
    tr = ld.simulate(robot, robot.home, v, 0.05, u=u)
    other = ld.simulate(robot, robot.home, v, 0.05, f_ext={"hull": total})
    assert off(tr.q, other.q) < 1e-9 and off(tr.v, other.v) < 1e-9
    assert abs(tr.energy_drift).max() < 1e-6  # the work of the inputs is counted


def test_files(tmp_path):
    robot, rng = decorated(), np.random.default_rng(4)
    q = ld.random_configuration(robot, rng)
    ld.save(robot, tmp_path / "robot.toml")
    assert '[thrusters.hook]\nbody = "nozzle"' in (tmp_path / "robot.toml").read_text()
    again = ld.load(tmp_path / "robot.toml")
    order = [again.actuator_names.index(name) for name in robot.actuator_names]  # files have them kind by kind
    assert off(ld.actuator_matrix(again, q)[:, order], ld.actuator_matrix(robot, q)) < 1e-12


def test_motors_of_sites_are_those_of_mujoco(tmp_path):
    pytest.importorskip("mujoco")
    from mujoco_oracle import Oracle

    path = tmp_path / "drone.xml"
    path.write_text("""<mujoco><option gravity="0 0 -9.81"/><worldbody><site name="w" euler="10 20 30"/>
      <body name="hull" pos="0 0 1"><freejoint name="flight"/>
      <inertial pos="0.01 0 0" mass="1" diaginertia="0.1 0.2 0.25"/>
      <site name="p" pos="0.1 0.2 0.03" euler="5 50 5"/><body name="arm" pos="0.3 0 0"><joint name="a" axis="0 1 0"/>
      <inertial pos="0.1 0 0" mass="0.3" diaginertia="0.01 0.02 0.02"/><site name="r" pos="0.2 0 0"/></body></body>
      </worldbody>
      <actuator><motor name="one" site="p" gear="1 2 3 0.1 0.2 0.3"/>
      <general name="two" site="r" refsite="w" gear="0.5 -1 2 0.3 0.1 -0.2" gainprm="3"/>
      <general name="three" site="r" gear="0 0 1 0 0 0.1" gainprm="2" biastype="affine" biasprm="0.7 0 0"/></actuator>
      </mujoco>""")
    robot, rng = ld.load(path), np.random.default_rng(5)
    oracle = Oracle(path, robot)
    assert [type(each).__name__ for each in robot.model.actuators] == ["Thruster"] * 3
    for _ in range(3):
        q, v, u = ld.random_configuration(robot, rng), rng.normal(size=7), rng.normal(size=3)
        M, h = oracle.dynamics(q, v, u)
        own = ld.rnea(robot, q, v, 0 * v) - ld.element_forces(robot, q, v) - ld.actuator_matrix(robot, q) @ u
        assert off(own, h) < 1e-9 and off(ld.crba(robot, q), M) < 1e-9
    b = ld.Builder.of(robot)
    b.remove("element", "three bias")
    ld.save(b.build(), tmp_path / "again.xml")
    again = ld.load(tmp_path / "again.xml")
    assert again.actuator_names == robot.actuator_names
    assert off(ld.actuator_matrix(again, q), ld.actuator_matrix(robot, q)) < 1e-9


def test_it_hovers_and_answers_inputs():
    robot = quadrotor()
    found = ld.trim(robot, robot.home, free=list(robot.actuator_names))
    assert np.allclose(found.u, 0.8 * 9.81 / 4, rtol=1e-12)
    held = ld.inverse_dynamics(robot, robot.home, np.zeros(6), np.zeros(6))
    assert np.allclose(held.u, found.u, rtol=1e-9)


def test_what_is_refused():
    b = ld.Builder.of(quadrotor())
    with pytest.raises(ModelError, match="actuator 'x', body: nothing moves the ground"):
        b.thruster("x", "ground")
    with pytest.raises(ModelError, match="give a force or a torque"):
        b.thruster("x", "hull", force=(0, 0, 0))
    with pytest.raises(ModelError, match="axes: unknown 'bodies', did you mean 'body'"):
        b.thruster("x", "hull", axes="bodies")
    b.thruster("x", "hul")
    with pytest.raises(ModelError, match="unknown 'hul', did you mean 'hull'"):
        b.build()


def test_editing_keeps_them():
    b = ld.Builder.of(decorated())
    b.change("actuator", "jet", force=(0.0, 0.0, 2.0))
    robot = b.build()
    assert robot.model.actuators[1].wrench[3:] == (0.0, 0.0, 2.0)
    c = ld.Builder.of(ld.load("panda"))
    c.attach(quadrotor(), to="panda_hand", prefix="drone_")
    assert c.build().actuator_names[-4:] == tuple(f"drone_propeller{k}" for k in range(4))
    b.remove("frame", "nozzle")
    assert b.build().actuator_names == ("motor", "jet", "ram")
    with tempfile.TemporaryDirectory() as folder:
        ld.save(robot, f"{folder}/r.toml")
        assert ld.load(f"{folder}/r.toml").model.actuators[1].wrench == robot.model.actuators[1].wrench


@pytest.mark.parametrize("name", ["mass:body3", "com.x:body4", "placement.ry:joint2"])
def test_derivatives_by_parameters(name):
    """The wrenches turn with their bodies and move with them; so do the inputs' columns of B."""
    robot, rng = decorated(), np.random.default_rng(6)
    q = ld.integrate(robot, robot.neutral, rng.uniform(-1, 1, robot.nv))
    v, u = rng.normal(size=robot.nv), np.array([1.0, -2.0, 3.0, 0.5])
    found = ld.sensitivities(robot, q, v, u=u, parameters=[name])

    def models(h):
        ss = ld.linearize(perturbed(robot, name, h), q, v, u=u)
        return np.hstack([ss.A, ss.B])

    assert off(np.concatenate([found.A[..., 0], found.B[..., 0]], axis=1), difference(models)) < 1e-7


def test_it_flies_home_from_upside_down():
    robot = quadrotor()
    hover = ld.trim(robot, robot.home, free=list(robot.actuator_names)).u
    weights = {f"flight.{axis}": 1.0 for axis in ("x", "y", "z", "rx", "ry", "rz")}
    weights |= {f"velocity:flight.{axis}": 0.3 for axis in "xyz"} | {f"velocity:flight.r{axis}": 0.1 for axis in "xyz"}
    regulator = ld.lqr(robot, robot.home, weights, 0.1, u=hover)
    for turn in (np.pi - 0.05, 2.5):
        tr = ld.simulate(robot, ld.integrate(robot, robot.home, [turn, 0, 0, 0, 0, 0]), np.zeros(6), 6.0, dt=2e-3,
                         u=regulator)
        assert np.abs(ld.difference(robot, robot.home, tr.q[-1])).max() < 1e-3


def test_it_flips():
    """A turn by two pi within a second, with thrusts of either sign excluded; the plan is a regulator of the run."""
    robot, steps, h, hover = quadrotor(), 80, 0.0125, np.full(4, 0.8 * 9.81 / 4)
    angle = 2.0 * np.pi * np.clip((np.arange(steps + 1) - 10) / (steps - 30), 0.0, 1.0)
    turn = np.array([ld.integrate(robot, robot.home, [0.0, a, 0.0, 0.0, 0.0, 0.0]) for a in angle])
    speed = np.zeros((steps + 1, 6))
    speed[:, 1] = np.gradient(angle, h)
    held = np.tile(hover, (steps, 1))
    guess = held.copy()
    guess[8:14, [0, 2]], guess[57:63, [0, 2]] = [0.0, 3.9], [3.9, 0.0]
    Q = {f"flight.{axis}": 2.0 for axis in "xyz"} | {f"flight.r{axis}": 3.0 for axis in "xyz"}
    Q |= {f"velocity:flight.{axis}": 0.02 for axis in ("x", "y", "z", "rx", "ry", "rz")}
    cost = ld.Cost(Q=Q, R=1e-2, q=turn, v=speed, u=held, terminal_Q={name: 100.0 * x for name, x in Q.items()})
    plan = ld.ddp(robot, robot.home, np.zeros(6), cost, steps, h, limits=ld.Limits(inputs=(0.0, 6.0)), start=guess)
    tr = ld.simulate(robot, robot.home, np.zeros(6), 1.0, dt=h / 5, u=ld.Sampled(plan, h))
    for q in (plan.q, tr.q):
        up = ld.pose(robot, q, "hull")[:, 2, 2]
        assert up.min() < -0.999 and up[-1] > 0.999
        assert np.abs(ld.difference(robot, robot.home, q[-1])).max() < 0.1
    assert plan.u.min() >= 0.0 and plan.u.max() <= 6.0
