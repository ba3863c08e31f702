"""Wrenches of joints of the tree: sums over free bodies, MuJoCo's sensors, other cuts of the same loop, differences."""
import re

import numpy as np
import pytest
from closed_chains import closed_mechanism, difference, differences, moving_state, off, walker
from mechanisms import random_pose
from tree_cases import TREES, wrenches

import liedyn as ld
from liedyn.machine.errors import InputError
from liedyn.model.packed import DOF_ARMATURE, DOF_DAMPING, dofs_of

ORACLE, ROBOTS = "Wrenches of joints by sums over free bodies", "trees of all joints, closed chains"


def moved(X, F):
    """The wrench (moment, force) at a frame with pose X, in world axes about the world's origin."""
    moment, force = X[:3, :3] @ F[:3], X[:3, :3] @ F[3:]
    return np.concatenate([moment + np.cross(X[:3, 3], force), force])


def pose_of(robot, q, name):
    return np.eye(4) if name == "ground" else ld.pose(robot, q, name)


def carried(robot, child):
    """The bodies that a joint carries."""
    found = {child}
    for _ in robot.model.joints:
        found |= {joint.child for joint in robot.model.joints if joint.parent in found}
    return found


def held(robot, q, v, tau, f_ext):
    """By joint, in world axes about the origin: rates of momenta of the bodies carried, minus all that acts on them."""
    found = ld.forward_dynamics(robot, q, v, tau, f_ext=f_ext)
    on_body = {}
    for body in robot.model.bodies:
        X, name = ld.pose(robot, q, body.name), body.name
        twist = ld.body_jacobian(robot, q, name) @ v
        rate = ld.body_jacobian(robot, q, name) @ found.a + ld.body_jacobian_dot(robot, q, v, name) @ v
        w, u_, dw, du = twist[:3], twist[3:], rate[:3], rate[3:]
        acc = du + np.cross(w, u_) + np.cross(dw, body.com) + np.cross(w, np.cross(w, body.com))
        force = body.mass * (acc - X[:3, :3].T @ robot.gravity)
        moment = body.inertia @ dw + np.cross(w, body.inertia @ w) + np.cross(body.com, force)
        given = np.asarray((f_ext or {}).get(name, [0.0] * 6))
        on_body[name] = moved(X, np.concatenate([moment, force]) - given)
    loops = ld.world_constraint_wrenches(robot, q, found.lam)
    for each in (*robot.model.loops, *robot.model.constraints):
        if each.parent is None:
            continue
        at = np.eye(4)
        at[:3, 3] = (pose_of(robot, q, each.child) @ each.child_placement)[:3, 3]
        F = moved(at, loops[each.name])
        for body, sign in ((each.child, -1.0), (each.parent, 1.0)):
            if body != "ground":
                on_body[body] = on_body[body] + sign * F
    return {joint.name: sum(on_body[name] for name in carried(robot, joint.child)) for joint in robot.model.joints}


def assert_held(robot, q, v, tau, f_ext=None, allowed=1e-11):
    found, expected = ld.joint_wrenches(robot, q, v, tau, f_ext), held(robot, q, v, tau, f_ext)
    assert list(found) == [joint.name for joint in robot.model.joints]
    size = max(np.abs(F).max() for F in expected.values())
    for joint in robot.model.joints:
        X = pose_of(robot, q, joint.parent) @ joint.placement
        assert np.abs(moved(X, found[joint.name]) - expected[joint.name]).max() < allowed * size, joint.name
    world = ld.world_joint_wrenches(robot, q, found)
    for joint in robot.model.joints:
        R = (pose_of(robot, q, joint.parent) @ joint.placement)[:3, :3]
        turned = found[joint.name].reshape(2, 3) @ R.T
        assert np.allclose(world[joint.name].reshape(2, 3), turned, rtol=1e-12, atol=1e-12 * size)
    return found


@pytest.mark.parametrize("name", ["springs", "floating, springs", "mixed", "solo12"])
def test_trees(name):
    tree, rng = TREES[name](), np.random.default_rng(1)
    q, v, tau = ld.random_configuration(tree, rng), *rng.normal(size=(2, tree.nv))
    assert_held(tree, q, v, tau, wrenches(tree, rng))


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "universal", "spherical", "planar"])
def test_closed_chains(kind):
    robot, q = closed_mechanism(kind, seed=3)
    v, tau = moving_state(robot, q)
    assert_held(robot, q, v, tau, {"a0": np.arange(6.0)}, 1e-9)


def test_a_walker_and_rows_of_states():
    robot, q = walker()
    v, tau = moving_state(robot, q)
    one = assert_held(robot, q, v, tau, allowed=1e-9)
    rows = ld.joint_wrenches(robot, [q, q], [v, 0 * v], [tau, tau])
    again = ld.joint_wrenches(robot, q, 0 * v, tau)
    for name, F in rows.items():
        size = np.abs(F).max()
        assert F.shape == (2, 6) and np.abs(F - [one[name], again[name]]).max() < 1e-10 * size


def test_the_component_along_the_joint_is_its_drive():
    tree, rng = TREES["springs"](), np.random.default_rng(2)
    q, v, tau = ld.random_configuration(tree, rng), *rng.normal(size=(2, tree.nv))
    a, F = ld.aba(tree, q, v, tau), ld.joint_wrenches(tree, q, v, tau)
    numbers = dofs_of(tree.packed)[1]
    for joint in tree.model.joints:
        if joint.kind in ("revolute", "prismatic"):
            j, at = tree.velocity_index(joint.name), 3 * (joint.kind == "prismatic")
            along = F[joint.name][at:at + 3] @ joint.axes[0]
            x = q[tree.coordinate_index(joint.name)] - joint.rest[0]
            drive = tau[j] - numbers[j, DOF_DAMPING] * v[j] - joint.stiffness[0] * x - numbers[j, DOF_ARMATURE] * a[j]
            assert abs(along - drive) < 1e-10 * max(1.0, np.abs(F[joint.name]).max())


def spatial_four_bar(cut):
    """A crank, a coupler on a ball and a cross, and a rocker, cut open at one of its joints: no row is redundant."""
    b = ld.Builder("rssr", gravity=(0.0, 0.0, -9.81))
    ball, cross, far = (0.2, 0.0, 0.0), (0.6, 0.3, 0.2), (0.9, 0.1, -0.1)
    # the rocker's frame stands at the joint that is not cut
    middle = np.subtract((0.7, 0.3, 0.0), cross if cut == "far" else far)
    for name, com in (("crank", (0.1, 0, 0)), ("coupler", (0.3, 0.1, 0.1)), ("rocker", middle)):
        b.body(name, 1.5, com, (0.01, 0.02, 0.025))
    b.joint("pivot", "revolute", "ground", "crank", axis=(0.0, 0.6, 0.8), damping=0.2)
    b.joint("ball", "spherical", "crank", "coupler", ball)
    there = np.subtract(far, cross)
    if cut == "far":
        b.joint("cross", "universal", "coupler", "rocker", np.subtract(cross, ball))
        b.loop("far", "revolute", "ground", "rocker", parent_placement=far, child_placement=there, axis=(1.0, 0.0, 0.0))
    else:
        b.joint("far", "revolute", "ground", "rocker", far, axis=(1.0, 0.0, 0.0))
        b.loop("cross", "universal", "coupler", "rocker", parent_placement=np.subtract(cross, ball),
               child_placement=-there)
    return b.build()


def test_it_does_not_matter_where_the_loop_is_cut():
    """The mechanism cut at its rocker's bearing, and at the cross: each once a cut joint, once one of the tree."""
    one, other = spatial_four_bar("far"), spatial_four_bar("cross")
    q1 = one.neutral
    v1 = ld.complete_velocity(one, q1, {"pivot": 2.0})
    q2 = other.neutral
    v2 = ld.complete_velocity(other, q2, {"pivot": 2.0})
    tau1, tau2 = np.zeros(one.nv), np.zeros(other.nv)
    tau1[one.velocity_index("pivot")] = tau2[other.velocity_index("pivot")] = 3.0
    F1, F2 = ld.joint_wrenches(one, q1, v1, tau1), ld.joint_wrenches(other, q2, v2, tau2)
    size = np.abs(F1["pivot"]).max()
    for name in ("pivot", "ball"):
        assert np.abs(F1[name] - F2[name]).max() < 1e-10 * size
    cut = ld.forward_dynamics(one, q1, v1, tau1).constraint_wrenches["far"]
    assert np.abs(cut - F2["far"]).max() < 1e-10 * size
    cut = ld.forward_dynamics(other, q2, v2, tau2).constraint_wrenches["cross"]
    assert np.abs(cut - F1["cross"]).max() < 1e-10 * size


def test_against_sensors_of_mujoco():
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><option gravity="1 2 -9"/><worldbody><body name="one" pos="0.1 0.2 0.3">
      <joint name="a" axis="0 0.6 0.8" damping="0.3"/><inertial pos="0.1 0 0.05" mass="2" diaginertia="0.1 0.2 0.25"/>
      <site name="sa"/><body name="two" pos="0.5 0 0" euler="20 30 0"><joint name="b" type="slide" axis="1 0 0"/>
      <inertial pos="0 0.2 0" mass="1" diaginertia="0.1 0.1 0.15"/><site name="sb"/>
      <body name="three" pos="0 0.3 0.1"><inertial pos="0 0 0.2" mass="0.7" diaginertia="0.02 0.03 0.04"/>
      <site name="sc"/></body></body></body></worldbody><sensor>""" + "".join(
          f'<torque site="s{k}"/><force site="s{k}"/>' for k in "abc") + "</sensor></mujoco>"
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.qfrc_applied[:] = [0.7, 0.3], [1.0, -2.0], [0.5, 0.2]
    mujoco.mj_forward(m, d)
    b = ld.Builder("arm", gravity=(1.0, 2.0, -9.0))
    b.body("one", 2.0, (0.1, 0, 0.05), (0.1, 0.2, 0.25))
    b.body("two", 1.0, (0, 0.2, 0), (0.1, 0.1, 0.15))
    b.body("three", 0.7, (0, 0, 0.2), (0.02, 0.03, 0.04))
    turned = np.eye(4)
    turned[:3, :3], turned[:3, 3] = _euler(20, 30), (0.5, 0, 0)
    b.joint("a", "revolute", "ground", "one", (0.1, 0.2, 0.3), axis=(0, 0.6, 0.8), damping=0.3)
    b.joint("b", "prismatic", "one", "two", turned, axis=(1, 0, 0))
    b.joint("weld", "fixed", "two", "three", (0, 0.3, 0.1))
    arm = b.build()
    F = ld.joint_wrenches(arm, d.qpos, d.qvel, d.qfrc_applied)
    joints = {joint.name: joint for joint in arm.model.joints}
    for k, name in enumerate(("a", "b", "weld")):
        joint, reading = joints[name], d.sensordata[6 * k:6 * k + 6]
        # a sensor stands in the child, at its origin, in its axes, and measures what the child exerts on the parent
        at = moved(pose_of(arm, d.qpos, joint.parent) @ joint.placement, F[name])
        assert np.allclose(moved(ld.pose(arm, d.qpos, joint.child), reading), at, rtol=1e-9, atol=1e-9), name


def _euler(x, y):
    from scipy.spatial.transform import Rotation

    return Rotation.from_euler("XYZ", [x, y, 0], degrees=True).as_matrix()


def joint_outputs(robot):
    """Names of all wrenches, and the function of the state whose derivatives their rows are."""
    names = [joint.name for joint in robot.model.joints]
    return [f"wrench:{name}" for name in names], lambda q, v, tau: np.concatenate(
        list(ld.joint_wrenches(robot, q, v, tau).values()))


@pytest.mark.parametrize("kind", ["revolute", "spherical", "inline"])
def test_rows_of_a_linear_model(kind):
    robot, q = closed_mechanism(kind, seed=4)
    v, tau = moving_state(robot, q)
    names, function = joint_outputs(robot)
    ss = ld.linearize(robot, q, v, tau, independent="auto", outputs=["j_trunk", *names, "velocity:j_trunk"])
    assert ss.outputs[1:7] == tuple(f"wrench:j_trunk.{axis}" for axis in ("mx", "my", "mz", "fx", "fy", "fz"))
    assert off(np.hstack([ss.C, ss.D])[1:-1], differences(robot, q, v, tau, "auto", function)) < 1e-7
    batch = ld.linearize(robot, [q, q], [v, v], [tau, tau], independent="auto", outputs=["j_trunk", *names])
    assert off(batch.C[1], ss.C[:-1]) < 1e-10


def test_rows_where_loops_are_redundant():
    robot = ld.load("loader")
    v, tau = moving_state(robot, robot.home)
    names, function = joint_outputs(robot)
    ss = ld.linearize(robot, robot.home, v, tau, outputs=names)
    expected, p = differences(robot, robot.home, v, tau, None, function), len(ss.states) // 2
    rounding = 1e-14 * np.abs(function(robot.home, v, tau)).max() / 1e-3
    for block in (slice(0, p), slice(p, 2 * p), slice(2 * p, None)):
        wrong = np.abs(np.hstack([ss.C, ss.D])[:, block] - expected[:, block]).max()
        assert wrong < 1e-7 * np.abs(expected[:, block]).max() + rounding


def sprung():
    """A tree with springs between bodies, a bushing, a drag force, a cylinder and a motor, loose in space."""
    rng = np.random.default_rng(8)
    b = ld.Builder.of(TREES["springs"]())
    bodies = [body.name for body in b._bodies]
    b.spring("pull", bodies[0], bodies[3], random_pose(rng), random_pose(rng), length=0.3, stiffness=20.0, damping=1.0)
    b.bushing("mount", bodies[1], bodies[2], stiffness=3.0, damping=0.4)
    b.cylinder("ram", "ground", bodies[4], (0.3, 0.2, 1.0), random_pose(rng), gear=2.0)
    b.actuator("motor", "joint0")
    b.applied_force("wind", bodies[2], (0.1, 0.0, 0.2), force=(1.0, 2.0, 3.0))
    return b.build()


def test_forces_between_bodies():
    """Those of the elements as wrenches on their bodies, summed as external ones."""
    robot, rng = sprung(), np.random.default_rng(9)
    bare = ld.Builder.of(robot)
    for name in robot.element_names:
        bare.remove("element", name)
    bare.remove("actuator", "ram")
    bare = bare.build()
    q, v, u = ld.random_configuration(robot, rng), rng.normal(size=robot.nv), np.array([3.0, -2.0])
    f_ext = {name: np.zeros(6) for name in robot.body_names}

    def push(body, placement, force, moment=(0.0, 0.0, 0.0)):
        if body != "ground":
            X = ld.pose(robot, q, body)
            at, R = placement[:3, 3], X[:3, :3]
            force = R.T @ force
            f_ext[body] += np.concatenate([R.T @ np.asarray(moment) + np.cross(at, force), force])

    found = ld.element_states(robot, q, v)
    elements = {each.name: each.measure for each in robot.model.elements}
    ram = robot.model.actuators[0].measure
    for each, size in ((elements["pull"], found["pull"][2]), (ram, -2.0 * u[0])):
        ends = [(pose_of(robot, q, body) @ X)[:3, 3] for body, X in (
            (each.parent, each.parent_placement), (each.child, each.child_placement))]
        along = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
        push(each.parent, each.parent_placement, size * along)
        push(each.child, each.child_placement, -size * along)
    push(elements["wind"].child, elements["wind"].child_placement, np.array([1.0, 2.0, 3.0]))
    mount, R = elements["mount"], ld.pose(robot, q, elements["mount"].parent)[:3, :3]
    moment, force = (R @ x for x in np.split(-found["mount"][2], 2))
    push(mount.child, mount.child_placement, force, moment)
    lever = ld.pose(robot, q, mount.child)[:3, 3] - ld.pose(robot, q, mount.parent)[:3, 3]
    push(mount.parent, mount.parent_placement, -force, -moment - np.cross(lever, force))
    tau = np.zeros(robot.nv)
    tau[robot.velocity_index("joint0")] = u[1]
    one, other = ld.joint_wrenches(robot, q, v, u=u), ld.joint_wrenches(bare, q, v, tau, f_ext)
    size = max(np.abs(F).max() for F in other.values())
    assert max(np.abs(one[name] - other[name]).max() for name in other) < 1e-10 * size


def test_rows_with_forces_between_bodies():
    robot, rng = sprung(), np.random.default_rng(10)
    q = ld.integrate(robot, robot.neutral, rng.uniform(-1, 1, robot.nv))
    v, u = rng.normal(size=robot.nv), np.array([3.0, -2.0])
    names, _ = joint_outputs(robot)
    ss = ld.linearize(robot, q, v, u=u, outputs=names)

    def function(q, v, u):
        return np.concatenate(list(ld.joint_wrenches(robot, q, v, u=u).values()))

    columns = [difference(lambda s, e=e: function(ld.integrate(robot, q, s * e), v, u)) for e in np.eye(robot.nv)]
    columns += [difference(lambda s, e=e: function(q, v + s * e, u)) for e in np.eye(robot.nv)]
    columns += [difference(lambda s, e=e: function(q, v, u + s * e), 1.0) for e in np.eye(2)]
    assert ss.states[0] == robot.velocity_names[0]
    assert off(np.hstack([ss.C, ss.D]), np.stack(columns, axis=-1)) < 1e-7
    # the same with the inputs as a feedback of the state
    K = rng.normal(size=(2, robot.nv))
    closed = ld.linearize(robot, q, v, u=(lambda t, x, w: u + K @ (w - v), lambda t, x, w: (0 * K, K)), outputs=names)
    C = np.stack(columns, axis=-1)[:, :2 * robot.nv].copy()
    C[:, robot.nv:] += np.stack(columns, axis=-1)[:, 2 * robot.nv:] @ K
    assert off(closed.C, C) < 1e-7


def test_a_box_that_slides():
    """Friction varies with the load, and what stands on the box is carried by a joint of the tree."""
    b = ld.Builder("sledge", gravity=(1.0, 0.0, -9.81))
    b.body("box", 2.0, inertia=(0.05, 0.06, 0.08))
    b.body("mast", 0.5, (0, 0, 0.3), (0.01, 0.01, 0.01))
    b.joint("j", "free", "ground", "box")
    b.joint("hinge", "revolute", "box", "mast", (0.1, 0.05, 0.1), axis=(0, 1, 0), stiffness=5.0, damping=0.1)
    for k, (x, y) in enumerate(((0.3, 0.2), (0.3, -0.2), (-0.3, 0.0))):
        b.constraint(f"foot{k}", "on_plane", "ground", "box", child_placement=(x, y, -0.2), unilateral=True,
                     friction=0.3)
    robot = b.build()
    q, v = robot.neutral.copy(), np.zeros(7)
    q[6] = 0.2
    v[robot.velocity_index("j.x")], v[robot.velocity_index("j.y")] = 0.8, 0.3
    tau = np.zeros(7)
    F = ld.joint_wrenches(robot, q, v, tau)
    assert np.abs(F["j"]).max() < 1e-10  # nothing holds the box but its feet
    names, function = joint_outputs(robot)
    ss = ld.linearize(robot, q, v, tau, independent=("j.x", "j.y", "j.rz", "hinge"), outputs=names)
    free = [robot.velocity_index(name) for name in ("j.x", "j.y", "j.rz", "hinge")]
    columns = [difference(lambda s, e=e: function(ld.integrate(robot, q, s * e), v, tau)) for e in ss.K.T]
    columns += [difference(lambda s, e=e: function(q, v + s * e, tau)) for e in ss.S.T]
    columns += [difference(lambda s, e=e: function(q, v, tau + s * e)) for e in np.eye(7)]
    assert len(free) == ss.K.shape[1]
    assert np.abs(np.hstack([ss.C, ss.D]) - np.stack(columns, axis=-1)).max() < 1e-7


def test_columns_of_a_run():
    robot = ld.load("five_bar")
    v = ld.complete_velocity(robot, robot.home, {"q1": 1.0, "q2": 0.0})
    tr = ld.simulate(robot, robot.home, v, 0.05, f_ext={"link2": [0, 0, 0.1, 1.0, 0, 0]})
    F = ld.joint_wrenches(robot, tr.q, tr.v, tr.tau, {"link2": [0, 0, 0.1, 1.0, 0, 0]})
    for joint in robot.model.joints:
        assert off(tr[f"wrench:{joint.name}"], F[joint.name]) < 1e-9
    assert np.array_equal(tr["wrench:pin"], tr.constraint_wrenches["pin"])
    assert np.array_equal(tr["wrench:q2.fy"], tr["wrench:q2"][:, 4])
    with pytest.raises(InputError, match="unknown joint, loop or constraint 'q22', did you mean 'q2'"):
        tr["wrench:q22"]


def test_a_run_with_moving_target_and_inputs_between_points():
    b = ld.Builder.of(ld.load("five_bar"))
    b.cylinder("ram", "ground", "link2", (0.0, 0.4, 0.0), (0.1, 0.0, 0.0))
    robot = b.build().with_target("pin", lambda t: ([0.1 * t, 0, 0], [0.1, 0, 0], [0, 0, 0]))
    tr = ld.simulate(robot, robot.home, ld.complete_velocity(robot, robot.home, {"q1": 0.3, "q2": 0.0}), 0.02, u=[4.0])
    for k in (0, 7, 20):
        F = ld.joint_wrenches(robot.at(tr.t[k]), tr.q[k], tr.v[k], u=[4.0])
        assert off(tr["wrench:q3"][k], F["q3"]) < 1e-8


def test_what_is_refused():
    panda = ld.load("panda")
    still = np.zeros(7)
    with pytest.raises(InputError, match="give tau, the forces of all coordinates, or u"):
        ld.joint_wrenches(panda, panda.home, still)
    with pytest.raises(InputError, match="unknown joint, loop or constraint 'panda_joint9', did you mean"):
        ld.linearize(panda, panda.home, still, still, outputs=["wrench:panda_joint9"])
    with pytest.raises(InputError, match="unknown joint 'x'"):
        ld.world_joint_wrenches(panda, panda.home, {"x": np.zeros(6)})
    with pytest.raises(InputError, match=re.escape("sensitivities has no output 'wrench:panda_joint1'")):
        ld.sensitivities(panda, panda.home, still, still, ["mass:panda_link3"], outputs=["wrench:panda_joint1"])


def test_a_filter_measures_them():
    panda = ld.load("panda")
    from liedyn.control.estimation.measurement import Measurement

    hold = ld.rnea(panda, panda.home, 0 * panda.home, 0 * panda.home)
    reading = Measurement(panda, ["wrench:panda_joint3", "panda_joint1"])(panda, panda.home, np.zeros(7), hold)
    F = ld.joint_wrenches(panda, panda.home, np.zeros(7), hold)["panda_joint3"]
    assert np.allclose(reading[:6], F, rtol=1e-12)
