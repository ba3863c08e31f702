"""Robots from MJCF files against MuJoCo itself: its inertia matrix, bias forces and constraint rows."""
from pathlib import Path

import numpy as np
import pytest
from mujoco_oracle import Oracle, close_to, mass_matrix_and_bias, rows_of_mujoco

import liedyn as ld
from liedyn.machine.errors import LiedynError, ModelError, ModelWarning


def write(folder, body, name="robot", before=""):
    """An MJCF file of one world body."""
    path = folder / f"{name}.xml"
    path.write_text(f"<mujoco model='{name}'><compiler angle='radian' autolimits='true'/>{before}"
                    f"<worldbody>{body}</worldbody></mujoco>")
    return path


def inertial(mass=1.0, pos="0.1 0.02 -0.03", diag="0.02 0.03 0.04", quat="0.9 0.1 -0.3 0.2"):
    return f"<inertial mass='{mass}' pos='{pos}' diaginertia='{diag}' quat='{quat}'/>"


JOINTS = {
    "hinge": "<joint name='a' type='hinge' axis='0.2 0.3 1' pos='0.1 0.2 -0.1' ref='0.4' damping='0.3' "
             "stiffness='2' springref='0.7' armature='0.05'/>",
    "slide": "<joint name='a' type='slide' axis='1 0.3 0' ref='-0.2' stiffness='3' springref='0.1'/>",
    "ball": "<joint name='a' type='ball' pos='0.05 0.1 0.2' damping='0.1' stiffness='1.5'/>",
    "free": "<freejoint name='a'/>",
    "several": "<joint name='a' type='slide' axis='1 0 0'/><joint name='b' axis='0 1 0' pos='0 0 0.1'/>"
               "<joint name='c' axis='0 0 1' pos='0.2 0 0' ref='0.3'/>",
}


@pytest.mark.parametrize("kind", JOINTS)
def test_joints_are_those_of_mujoco(tmp_path, kind):
    """Every kind of joint, its springs, dampers and rotors, with a second body behind it."""
    second = ("<body name='tip' pos='0.3 0.1 0.2' euler='0.3 -0.2 0.9'><joint name='z' axis='0 1 0.4' pos='0 0 0.1'/>"
              f"{inertial(0.5)}</body>")
    path = write(tmp_path, f"<body name='arm' pos='0.1 0.2 0.3' euler='0.5 0.1 -0.7'>{JOINTS[kind]}{inertial()}"
                           f"{second}</body>")
    robot, rng = ld.load(path), np.random.default_rng(3)
    oracle = Oracle(path, robot)
    for _ in range(5):
        q, v = ld.random_configuration(robot, rng=rng), rng.normal(size=robot.nv)
        M, h = oracle.dynamics(q, v)
        found = mass_matrix_and_bias(robot, q, v)
        assert close_to(found[0], M) and close_to(found[1], h)


def test_several_joints_make_massless_bodies(tmp_path):
    path = write(tmp_path, f"<body name='arm'>{JOINTS['several']}{inertial()}</body>")
    robot = ld.load(path)
    assert robot.coordinate_names == ("a", "b", "c")
    assert robot.model.bodies[0].name == "arm" and [body.mass for body in robot.model.bodies[1:]] == [0.0] * 3


def test_the_home_is_a_keyframe(tmp_path):
    body = f"<body name='arm'><joint name='a' axis='0 0 1'/>{inertial()}</body>"
    keys = "<keyframe><key name='up' qpos='0.7'/><key name='home' qpos='0.2'/></keyframe>"
    path = write(tmp_path, body, before=keys)
    assert ld.load(path).home == 0.2
    assert ld.load(path, keyframe="up").home == 0.7
    with pytest.raises(ModelError, match="no keyframe 'upp'.*did you mean 'up'"):
        ld.load(path, keyframe="upp")


FOUR_BAR = f"""
<body name='crank' pos='0 0 0'><joint name='crank' axis='0 1 0'/>{inertial(1.0, '0 0 0.1')}
 <body name='rod' pos='0 0 0.2'><joint name='rod' axis='0 1 0'/>{inertial(2.0, '0.2 0 0')}
  <site name='rod_end' pos='0.4 0 0'/></body></body>
<body name='rocker' pos='0.4 0 0'><joint name='rocker' axis='0 1 0'/>{inertial(1.5, '0 0 0.1')}
  <site name='rocker_end' pos='0 0 0.2'/></body>"""
CLOSINGS = {
    "connect by bodies": "<connect name='pin' body1='rod' body2='rocker' anchor='0.4 0 0'/>",
    "connect by sites": "<connect name='pin' site1='rod_end' site2='rocker_end'/>",
    # rows of a turn that are multiplied by zero
    "weld by bodies": "<weld name='pin' body1='rod' body2='rocker' anchor='0 0 0.2' torquescale='0'/>",
    "weld by sites": "<weld name='pin' site1='rod_end' site2='rocker_end' torquescale='0'/>",
}


@pytest.mark.parametrize("how", CLOSINGS)
def test_a_four_bar_closed_at_a_point(tmp_path, how):
    path = write(tmp_path, FOUR_BAR, before=f"<equality>{CLOSINGS[how]}</equality>")
    robot = ld.load(path)
    assert robot.loop_names == ("pin",) and robot.frame_names == ("rod_end", "rocker_end")
    q = ld.close(robot, robot.home, {"crank": 0.3})
    K = np.linalg.svd(ld.constraint_jacobian(robot, q))[2][2:]
    v = K[0] / np.abs(K[0]).max()
    found = ld.forward_dynamics(robot, q, v, np.zeros(3))
    assert found.rank == 2
    oracle = Oracle(path, robot)
    oracle.set(q, v)
    G, gamma = rows_of_mujoco(oracle, q, v)
    assert close_to(found.a, oracle.accelerations(q, v, G, gamma))


def test_welds_are_fixed_loops(tmp_path):
    """Two halves of an arch, welded at the top: no degree of freedom is left of two, and six rows depend on others."""
    body = (f"<body name='a' pos='0 0 0'><joint name='a' axis='0 1 0'/>{inertial()}</body>"
            f"<body name='b' pos='1 0 0'><joint name='b' axis='0 1 0'/>{inertial()}</body>")
    path = write(tmp_path, body, before="<equality><weld name='top' body1='a' body2='b'/></equality>")
    robot = ld.load(path)
    found = ld.forward_dynamics(robot, robot.home, [0.0, 0.0], [0.0, 0.0])
    assert found.rank == 2 and np.abs(found.a).max() < 1e-12
    assert np.abs(ld.closure_error(robot, robot.home)).max() < 1e-12


TWO_HINGES = (f"<body name='a'><joint name='a' axis='0 1 0' ref='0.1'/>{inertial()}</body>"
              f"<body name='b' pos='1 0 0'><joint name='b' axis='0 1 0'/>{inertial()}</body>")


@pytest.mark.parametrize("polynomial", ["0.2 0.5 0 0 0", "0.2 0.5 0.3 -0.2 0.1"])
def test_polynomials_of_joints(tmp_path, polynomial):
    path = write(tmp_path, TWO_HINGES,
                 before=f"<equality><joint name='gear' joint1='b' joint2='a' polycoef='{polynomial}'/></equality>")
    robot = ld.load(path)
    assert robot.constraint_names == ("gear",)
    coefficients = list(map(float, polynomial.split()))
    p = np.polynomial.Polynomial(coefficients)
    x = 0.9  # of joint a, which is 0.1 where the file draws it
    q = np.array([x, p(x - 0.1)])
    v = np.array([2.0, 2.0 * p.deriv()(x - 0.1)])
    found = ld.forward_dynamics(robot, q, v, [0.0, 0.0])
    oracle = Oracle(path, robot)
    G = np.array([[-p.deriv()(x - 0.1), 1.0]])
    assert close_to(found.a, oracle.accelerations(q, v, G, np.array([p.deriv(2)(x - 0.1) * 4.0])))
    if any(coefficients[2:]):
        assert ld.constraints.check_constraint(robot, "gear", q, v).ok


def test_fixed_tendons_couple_and_drive(tmp_path):
    tendons = ("<tendon><fixed name='sum'><joint joint='a' coef='2'/><joint joint='b' coef='-1'/></fixed></tendon>"
               "<actuator><motor name='winch' tendon='sum' gear='3'/></actuator>")
    path = write(tmp_path, TWO_HINGES, before=tendons)
    robot = ld.load(path)
    assert np.array_equal(robot.actuator_matrix[:, 0], [6.0, -3.0])
    path = write(tmp_path, TWO_HINGES, "held", tendons + "<equality><tendon name='hold' tendon1='sum'/></equality>")
    robot = ld.load(path)
    assert ld.forward_dynamics(robot, robot.home, [0.0, 0.0], [0.0, 0.0]).rank == 1
    assert np.allclose(ld.constraint_jacobian(robot, robot.home), [[2.0, -1.0]])


TENDONS = {
    "fixed": "<fixed name='t' stiffness='3' damping='0.4' springlength='0.2'><joint joint='a' coef='2'/>"
             "<joint joint='b' coef='-1'/></fixed>",
    "spatial": "<spatial name='t' stiffness='30' damping='2' springlength='0.5'><site site='p'/><site site='r'/>"
               "</spatial>",
    "slack": "<spatial name='t' stiffness='30' springlength='0 0.6'><site site='p'/><site site='r'/></spatial>",
    "stretched": "<spatial name='t' stiffness='30' springlength='0 2.5'><site site='p'/><site site='r'/></spatial>",
}


@pytest.mark.parametrize("kind", TENDONS)
def test_tendons_are_springs(tmp_path, kind):
    sites = "<site name='{}' pos='{}'/>"
    body = TWO_HINGES.replace("<inertial", sites.format("p", "0.1 0.2 0.3") + "<inertial", 1)
    body = sites.format("r", "0.6 -0.7 0.2") + body
    path = write(tmp_path, body, before=f"<tendon>{TENDONS[kind]}</tendon>")
    robot = ld.load(path)
    oracle, rng = Oracle(path, robot), np.random.default_rng(4)
    for _ in range(3):
        q, v = rng.normal(size=2), rng.normal(size=2)
        M, h = oracle.dynamics(q, v)
        found = mass_matrix_and_bias(robot, q, v)
        assert close_to(found[0], M) and close_to(found[1], h)
    assert ld.element_forces(robot, q, v).any() == (kind != "stretched")


def test_a_servo_on_a_tendon(tmp_path):
    """Its spring couples two joints: a force element."""
    before = ("<tendon><fixed name='t'><joint joint='a' coef='2'/><joint joint='b' coef='-1'/></fixed></tendon>"
              "<actuator><general name='u' tendon='t' gainprm='4' biastype='affine' biasprm='0.5 -6 -0.7' gear='1.5'/>"
              "</actuator>")
    path = write(tmp_path, TWO_HINGES, before=before)
    robot = ld.load(path)
    oracle, rng = Oracle(path, robot), np.random.default_rng(5)
    q, v, u = rng.normal(size=2), rng.normal(size=2), rng.normal(size=1)
    assert close_to(mass_matrix_and_bias(robot, q, v)[1] - robot.actuator_matrix @ u, oracle.dynamics(q, v, u)[1])
    assert robot.element_names == ("u servo",)


def test_cylinders_are_tendons_between_two_sites(tmp_path):
    """An actuator with a servo between two points: read as MuJoCo has it, written, and read again."""
    sites = "<site name='{}' pos='{}'/>"
    body = TWO_HINGES.replace("<inertial", sites.format("p", "0.1 0.2 0.3") + "<inertial", 1)
    path = write(tmp_path, sites.format("r", "0.6 -0.7 0.2") + body, before=(
        "<tendon><spatial name='t'><site site='p'/><site site='r'/></spatial></tendon><actuator>"
        "<general name='u' tendon='t' gainprm='4' biastype='affine' biasprm='0.5 -6 -0.7' gear='1.5'/></actuator>"))
    robot = ld.load(path)
    oracle, rng = Oracle(path, robot), np.random.default_rng(5)
    q, v, u = rng.normal(size=2), rng.normal(size=2), rng.normal(size=1)
    driven = ld.actuator_matrix(robot, q) @ u
    assert close_to(mass_matrix_and_bias(robot, q, v)[1] - driven, oracle.dynamics(q, v, u)[1])
    b = ld.Builder.of(robot)
    b.remove("element", "u servo")  # it pushes at no length: MuJoCo's tendons have no spring of that kind
    ld.save(b.build(), tmp_path / "again.xml")
    assert close_to(ld.actuator_matrix(ld.load(tmp_path / "again.xml"), q) @ u, driven)


@pytest.mark.parametrize("actuator", [
    "<motor name='u' joint='a' gear='5'/>", "<position name='u' joint='a' kp='20' gear='2'/>",
    "<velocity name='u' joint='a' kv='3'/>",
    "<general name='u' joint='a' gainprm='4' biastype='affine' biasprm='0.5 -6 -0.7' gear='1.5'/>",
])
def test_actuators_are_those_of_mujoco(tmp_path, actuator):
    path = write(tmp_path, TWO_HINGES, before=f"<actuator>{actuator}</actuator>")
    robot = ld.load(path)
    oracle, rng = Oracle(path, robot), np.random.default_rng(4)
    q, v, u = rng.normal(size=2), rng.normal(size=2), rng.normal(size=1)
    M, h = oracle.dynamics(q, v, u)
    found = mass_matrix_and_bias(robot, q, v)
    assert close_to(found[0], M) and close_to(found[1] - robot.actuator_matrix @ u, h)


def test_what_is_left_out_is_named(tmp_path):
    body = TWO_HINGES.replace("ref='0.1'", "frictionloss='0.1'")
    with pytest.warns(ModelWarning, match="left out the dry friction of joints: 'a'"):
        ld.load(write(tmp_path, body))
    muscle = "<actuator><muscle name='m' joint='a'/></actuator>"
    with pytest.warns(ModelWarning, match="left out actuators with a state.*'m'"):
        ld.load(write(tmp_path, TWO_HINGES, before=muscle))


def test_meshes_may_be_missing(tmp_path):
    """Where inertias are given; else the error says which mesh is missing, and what to do."""
    asset = "<asset><mesh name='skin' file='skin.stl'/></asset>"
    geom = "<geom type='mesh' mesh='skin'/>"
    body = f"<body name='a'><joint name='a' axis='0 1 0'/>{geom}{inertial()}</body>"
    assert ld.load(write(tmp_path, body, before=asset)).nv == 1
    with pytest.raises(ModelError, match="mesh 'skin': no file 'skin.stl'.*<inertial>"):
        ld.load(write(tmp_path, body.replace(inertial(), ""), before=asset))


def test_inertias_come_from_shapes(tmp_path):
    path = write(tmp_path, "<body name='a'><joint name='a' axis='0 1 0'/>"
                           "<geom type='capsule' fromto='0 0 0 0 0 0.5' size='0.05'/></body>")
    robot = ld.load(path)
    M, _ = Oracle(path, robot).dynamics(robot.home, np.zeros(1))
    assert M[0, 0] > 0.1 and close_to(ld.crba(robot, robot.home), M)


@pytest.mark.parametrize("text, said", [
    ("<mujoco><worldbody><body>", "MuJoCo cannot read it"),
    ("<?xml version='1.0'?><!-- an arm --><robot name='x'/>", "this is a URDF"),
    ("<mujoco><worldbody><body><joint type='hinj'/></body></worldbody></mujoco>", "MuJoCo cannot read it"),
])
def test_files_that_are_no_mjcf(tmp_path, text, said):
    path = tmp_path / "bad.xml"
    path.write_text(text)
    with pytest.raises(ModelError, match=f"bad.xml.*{said}"):
        ld.load(path)


def test_without_mujoco(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mujoco", None)
    with pytest.raises(LiedynError, match=r"pip install 'liedyn\[mjcf\]'"):
        ld.load(write(tmp_path, TWO_HINGES))


# ---- robots of MuJoCo Menagerie

FILES = Path(__file__).parents[1] / "reference" / "mjcf"


@pytest.mark.parametrize("name", ["cassie", "xarm_hand", "shadow_hand", "panda_with_hand"])
@pytest.mark.filterwarnings("ignore::liedyn.machine.errors.ModelWarning")
def test_trees_of_menagerie(name):
    """M, and all forces without constraints, at random states."""
    robot, rng = ld.load(FILES / f"{name}.xml"), np.random.default_rng(7)
    oracle = Oracle(FILES / f"{name}.xml", robot)
    for _ in range(3):
        q, v = ld.random_configuration(robot, rng=rng), rng.normal(size=robot.nv)
        M, h = oracle.dynamics(q, v)
        found = mass_matrix_and_bias(robot, q, v)
        assert close_to(found[0], M) and close_to(found[1], h)


@pytest.mark.filterwarnings("ignore::liedyn.machine.errors.ModelWarning")
def test_cassie():
    """32 coordinates, 4 loops of rank 10 in all, 22 degrees of freedom; accelerations with hard constraints."""
    robot, rng = ld.load(FILES / "cassie.xml"), np.random.default_rng(11)
    assert (robot.nv, len(robot.loop_names), len(robot.actuator_names)) == (32, 4, 10)
    q = ld.close(robot, robot.home)
    rank = ld.forward_dynamics(robot, q, np.zeros(32), np.zeros(32)).rank
    assert rank == 10
    K = np.linalg.svd(ld.constraint_jacobian(robot, q))[2][rank:]
    v = 0.3 * rng.normal(size=22) @ K
    oracle = Oracle(FILES / "cassie.xml", robot)
    G, gamma = rows_of_mujoco(oracle, q, v)
    found, expected = ld.forward_dynamics(robot, q, v, np.zeros(32)).a, oracle.accelerations(q, v, G, gamma)
    assert close_to(found, expected)
    model = ld.linearize(robot, q, v, np.zeros(32))
    assert model.A.shape == (44, 44) and model.B.shape == (44, 10)


@pytest.mark.filterwarnings("ignore::liedyn.machine.errors.ModelWarning")
def test_a_hand_with_loops():
    """Two parallelograms, and both halves coupled: one degree of freedom, driven by a tendon's servo."""
    robot = ld.load(FILES / "xarm_hand.xml")
    q = ld.close(robot, robot.home)
    v = np.linalg.svd(ld.constraint_jacobian(robot, q))[2][-1]
    oracle = Oracle(FILES / "xarm_hand.xml", robot)
    G, gamma = rows_of_mujoco(oracle, q, v)
    found = ld.forward_dynamics(robot, q, v, np.zeros(robot.nv))
    assert found.rank == robot.nv - 1 == 5
    assert close_to(found.a, oracle.accelerations(q, v, G, gamma))
