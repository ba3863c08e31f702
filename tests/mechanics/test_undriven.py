"""Nothing drives a free joint that a reader adds or that a file has, until an actuator is declared."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.machine.errors import InputError, ModelError

INERTIAL = '<inertial><mass value="2"/><inertia ixx="0.2" ixy="0" ixz="0" iyy="0.3" iyz="0" izz="0.25"/></inertial>'
DRONE = f"""<robot name="drone"><link name="hull">{INERTIAL}</link><link name="arm">{INERTIAL}</link>
  <link name="load">{INERTIAL}</link>
  <joint name="gimbal" type="revolute"><parent link="hull"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="3" velocity="2"/></joint>
  <joint name="tether" type="floating"><parent link="arm"/><child link="load"/></joint></robot>"""
BRICK = f'<robot name="brick"><link name="brick">{INERTIAL}</link></robot>'
BOX = """<sdf version="1.8"><model name="m"><link name="box"/><link name="flap"/>
  <joint name="hinge" type="revolute"><parent>box</parent><child>flap</child><axis><xyz>1 0 0</xyz></axis></joint>
  </model></sdf>"""


def load(tmp_path, text, name, **options):
    (tmp_path / name).write_text(text)
    return ld.load(tmp_path / name, **options)


def test_floating_urdf(tmp_path):
    robot = load(tmp_path, DRONE, "drone.urdf", floating_base=True, base_name="root_joint")
    assert robot.nv == 13 and robot.actuator_names == ("gimbal",)
    assert np.array_equal(ld.actuator_matrix(robot, robot.home), np.eye(13)[:, [6]])
    assert load(tmp_path, DRONE, "drone.urdf").actuator_names == ("gimbal",)
    q, v = robot.home, np.zeros(13)
    ss = ld.linearize(robot, q, v, u=[0.3])
    assert ss.B.shape == (26, 1) and ss.inputs == ("gimbal",)
    b = ld.Builder.of(robot)
    b.actuator("thruster", "root_joint.z")
    assert b.build().actuator_names == ("thruster",)  # as soon as one is declared, there are no others


def test_what_has_free_joints_alone_has_no_inputs(tmp_path):
    robot = load(tmp_path, BRICK, "brick.urdf", floating_base=True)
    assert robot.actuator_names == () and robot.tree_actuators.shape == (6, 0)
    ss = ld.linearize(robot, robot.home, np.zeros(6), np.zeros(6))
    assert ss.B.shape == (12, 0)
    run = ld.simulate(robot, robot.home, np.zeros(6), 0.1)
    assert run.v[-1, 5] == pytest.approx(-0.981)
    with pytest.raises(InputError, match="actuators"):
        ld.ddp(robot, robot.home, np.zeros(6), ld.Cost(Q=1.0, R=1.0), steps=10, h=0.01)
    with pytest.raises(InputError, match="unknown 'force:base.z'"):
        ld.trim(robot, robot.home, free=["force:base.z"])


def test_free_links_of_sdf(tmp_path):
    with pytest.warns(ld.ModelWarning, match="1 kg"):
        robot = load(tmp_path, BOX, "box.sdf")
    assert robot.nv == 7 and robot.actuator_names == ("hinge",)


def test_free_flyers_of_pinocchio():
    pin = pytest.importorskip("pinocchio")
    model = pin.Model()
    root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")
    model.appendBodyToJoint(root, pin.Inertia.FromSphere(1.0, 0.1), pin.SE3.Identity())
    arm = model.addJoint(root, pin.JointModelRX(), pin.SE3.Identity(), "arm")
    model.appendBodyToJoint(arm, pin.Inertia.FromSphere(1.0, 0.1), pin.SE3.Identity())
    assert ld.from_pinocchio(model).actuator_names == ("arm",)


def test_what_is_not_driven_is_kept_by_files_and_builders(tmp_path):
    robot = load(tmp_path, DRONE, "drone.urdf", floating_base=True)
    ld.save(robot, tmp_path / "drone.toml")
    for again in (ld.load(tmp_path / "drone.toml"), ld.Builder.of(robot).build()):
        assert again.actuator_names == ("gimbal",) and again.velocity_names == robot.velocity_names
    b = ld.Builder.of(ld.load("five_bar"))
    b.attach(robot, "ground", prefix="load_")
    assert "load_gimbal" in b.build().actuator_names and "load_base.z" not in b.build().actuator_names
    b = ld.Builder("plain")
    b.body("hull", 1.0, (0, 0, 0), (1, 1, 1))
    b.joint("base", "free", "ground", "hull")
    assert b.build().actuator_names == b.build().velocity_names  # a builder's joints are driven but where it says no
    with pytest.raises(ModelError, match="driven: expected true or false"):
        b.joint("other", "revolute", "hull", "hull", driven="no")
