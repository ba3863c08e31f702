"""What MJCF files say is taken, or told: every field of MuJoCo's models, its switches, springs, dampers and rotors."""
import re
import warnings

import numpy as np
import pytest
from mujoco_oracle import Oracle, close_to, mass_matrix_and_bias, mujoco

import liedyn as ld
from liedyn.files.mjcf import fields
from liedyn.machine.errors import ModelError, ModelWarning

INERTIAL = "<inertial mass='0.8' pos='0.05 -0.1 0.02' diaginertia='0.03 0.05 0.04' quat='0.8 0.2 -0.5 0.1'/>"
ARM = (f"<site name='wall' pos='0.9 0.2 -0.3'/><body name='upper' euler='0.2 0.1 0.7'><joint name='s' axis='0.3 1 0' "
       f"ref='0.1' {{first}}/>{INERTIAL}<body name='lower' pos='0.1 0 0.4' {{lower}}><joint name='e' {{second}}/>"
       f"{INERTIAL}<site name='tip' pos='0 0.1 0.3'/></body></body>")


def write(folder, body, rest="", before="", name="robot"):
    path = folder / f"{name}.xml"
    path.write_text(f"<mujoco model='{name}'><compiler angle='radian' autolimits='true'/>{before}"
                    f"<worldbody>{body}</worldbody>{rest}</mujoco>")
    return path


def arm(folder, rest="", before="", first="", second="axis='1 0 0.2'", lower=""):
    return write(folder, ARM.format(first=first, second=second, lower=lower), rest, before)


def told(path):
    """The robot of a file, and all that its warnings say."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        robot = ld.load(path)
    return robot, " | ".join(str(each.message) for each in found if issubclass(each.category, ModelWarning))


def agrees(path, robot, seed=2, with_inputs=False):
    """Is what MuJoCo and the robot say of M, of all forces, and of what inputs do, the same at random states?"""
    oracle, rng = Oracle(path, robot), np.random.default_rng(seed)
    oracle.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    for _ in range(3):
        q, v = ld.random_configuration(robot, rng=rng), rng.normal(size=robot.nv)
        u = rng.normal(size=oracle.model.nu) if with_inputs else None
        M, h = oracle.dynamics(q, v, u)
        found = mass_matrix_and_bias(robot, q, v)
        driven = ld.actuator_matrix(robot, q) @ u if with_inputs else 0.0
        if not (close_to(found[0], M) and close_to(found[1] - driven, h)):
            return False
    return True


def same(a, b, seed=3):
    """Have two robots the same coordinates and dynamics?"""
    rng = np.random.default_rng(seed)
    q, v = ld.random_configuration(a, rng=rng), rng.normal(size=a.nv)
    return a.coordinate_names == b.coordinate_names and np.array_equal(a.home, b.home) and all(
        close_to(x, y) for x, y in zip(mass_matrix_and_bias(a, q, v), mass_matrix_and_bias(b, q, v)))


# ---- the table

def test_every_field_of_mujoco_stands_in_the_table_once():
    """MuJoCo's next field fails here: decide whether the reader takes it, tells it, or needs it not."""
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    version = f"MuJoCo {mujoco.__version__}"
    assert not sorted(fields.fields_of(model) - fields.known()), f"{version} has fields that the tables lack"
    tables = [set(names.split()) for table in (fields.TAKEN, fields.IRRELEVANT) for names in table.values()]
    assert sum(map(len, tables)) + len(fields.TOLD) == len(fields.known())


def test_every_switch_and_kind_of_mujoco_is_known():
    """MuJoCo's next switch, transmission or joint fails here."""
    for enum, prefix, field in (("mjtDisableBit", "mjDSBL_", "disableflags"),
                                ("mjtEnableBit", "mjENBL_", "enableflags")):
        names = {name for name in getattr(mujoco, enum).__members__ if name.startswith(prefix)}
        kinds = " ".join(fields.SWITCHES[field].values()).split()
        assert not names - {prefix + each for each in kinds}, f"MuJoCo {mujoco.__version__}"
    known = {"mjtJoint": 4, "mjtEq": 8, "mjtWrap": 6, "mjtTrn": 8, "mjtGain": 7, "mjtBias": 6, "mjtDyn": 8}
    assert {enum: len(getattr(mujoco, enum).__members__) for enum in known} == known, f"MuJoCo {mujoco.__version__}"


def test_defaults_of_the_table_are_those_of_mujoco(tmp_path):
    """A file that says nothing beyond them is read without a word."""
    rest = ("<tendon><fixed name='t'><joint joint='s' coef='1'/></fixed></tendon><equality><joint joint1='e' "
            "active='false'/></equality><actuator><motor joint='s'/></actuator>")
    assert told(arm(tmp_path, rest, first="range='-1 1'", lower=""))[1] == ""


def test_a_field_that_no_table_knows_is_told(tmp_path, monkeypatch):
    monkeypatch.delitem(fields.TOLD, "opt.viscosity")
    path = arm(tmp_path, before="<option viscosity='0.3'/>")
    assert "what is new in MuJoCo" in told(path)[1] and "opt.viscosity" in told(path)[1]


LEFT_OUT = {
    "ball": (dict(second="type='ball' range='0 0.9'"), r"the ranges of balls: 'e \(0.9\)'"),
    "inputs": (dict(rest="<actuator><position name='p' joint='s' kp='2' ctrlrange='-2 3'/></actuator>"),
               "ranges of inputs of actuators other than motors that drive a joint alone: 'p'"),
    "force": (dict(rest="<actuator><position name='p' joint='s' kp='2' forcerange='-2 2'/></actuator>"),
              "force limits of actuators other than motors that drive a joint alone: 'p'"),
    "one-sided input": (dict(rest="<actuator><motor name='m' joint='s' ctrlrange='-2 3'/></actuator>"),
                        r"otherwise to one side: 'm \(-2 3\)'"),
    "second input": (dict(rest="<actuator><pid name='p' joint='s' kp='2' kv='1'/><motor name='m' joint='s' "
                               "ctrlrange='-2 3'/></actuator>"), "ranges of inputs.*: 'm'"),
    "one-sided": (dict(first="actuatorfrcrange='-3 5'"), r"otherwise to one side: 's \(-3 5\)'"),
    "tendon force": (dict(rest="<tendon><fixed name='t' actuatorfrcrange='-1 1'><joint joint='s' coef='1'/></fixed>"
                               "</tendon>"), "force limits of tendons: 't'"),
    "rotor": (dict(rest="<tendon><spatial name='t' armature='0.3'><site site='wall'/><site site='tip'/></spatial>"
                        "</tendon>"), r"the armature of tendons that are not over one joint: 't \(0.3\)'"),
    "geared rotor": (dict(rest="<tendon><fixed name='t'><joint joint='s' coef='1'/><joint joint='e' coef='1'/></fixed>"
                               "</tendon><actuator><motor tendon='t' gear='2' armature='0.5'/></actuator>"),
                     r"'t \(2\)'"),
    "yield": (dict(first="stiffness='2' springyield='0.4'"), "the yielding of springs: 's'"),
    "ball spring": (dict(second="type='ball' stiffness='2 1'"), r"balls and free joints: 'e \(stiffness 2 1 0\)'"),
    "softness": (dict(rest="<equality><joint name='q' joint1='e' solref='0.1 1'/></equality>"), "equalities.*'q'"),
    "soft limit": (dict(first="range='-1 1' margin='0.1'"), "the softness of joints' limits: 's'"),
    "wind": (dict(before="<option density='1.2' wind='1 0 0'/>"), "the medium: 'density 1.2', 'wind 1 0 0'"),
    "sleep": (dict(before="<option><flag sleep='enable'/></option>"), "switches: 'sleep'"),
    "delay": (dict(rest="<actuator><motor name='m' joint='s' delay='0.1' nsample='3'/></actuator>"), "delay.*'m'"),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_is_not_at_its_default_is_told(tmp_path, case):
    given, said = LEFT_OUT[case]
    assert re.search(said, told(arm(tmp_path, **given))[1])


@pytest.mark.parametrize("motors, limit", [
    ("<motor joint='s' gear='3' forcerange='-2 2'/>", 6.0), ("<motor joint='s' gear='-3' ctrlrange='-2 2'/>", 6.0),
    ("<general joint='s' gear='3' gainprm='5' ctrlrange='-1 1' forcerange='-4 4'/>", 12.0),
    ("<general joint='s' gear='3' gainprm='5' ctrlrange='-0.5 0.5' forcerange='-4 4'/>", 7.5),
    ("<motor joint='s' gear='3' forcerange='-20 20'/>", 50.0), ("<motor joint='s'/>", 50.0)])
def test_limits_of_motors_are_those_of_their_joints(tmp_path, motors, limit):
    """As MuJoCo clamps: the largest force on the joint, whatever the input."""
    path = arm(tmp_path, f"<actuator>{motors}</actuator>", first="actuatorfrcrange='-50 50'")
    robot, said = told(path)
    assert robot.effort_limit.tolist() == [limit, np.inf] and not said
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.ctrl[0] = 1e3
    mujoco.mj_forward(model, data)
    assert abs(data.qfrc_actuator[0]) == limit


def test_two_motors_of_one_joint_have_no_limit_of_their_own(tmp_path):
    pair = "<motor name='m' joint='s' forcerange='-2 2'/><motor name='n' joint='s'/>"
    robot, said = told(arm(tmp_path, f"<actuator>{pair}</actuator>"))
    assert np.isinf(robot.effort_limit).all() and "drive a joint alone: 'm'" in said


def test_contacts_of_the_file_are_told(tmp_path):
    path = write(tmp_path, f"<geom name='floor' type='plane' size='1 1 1'/><body><freejoint/>{INERTIAL}"
                           "<geom name='ball' size='0.1' friction='0.7'/></body>",
                 "<contact><pair name='both' geom1='floor' geom2='ball'/></contact>")
    assert "contacts of shapes" in told(path)[1] and "'ball'" in told(path)[1] and "pairs: 'both'" in told(path)[1]


# ---- switches

SWITCHED = ("<tendon><fixed name='t' stiffness='3' damping='0.2' range='0 0.1'><joint joint='s' coef='1'/><joint "
            "joint='e' coef='0.5'/></fixed></tendon><equality><joint name='q' joint1='e'/></equality><actuator>"
            "<position name='p' joint='s' kp='3' kv='0.2' ctrlrange='-1 1' damping='0.4 0.3' armature='0.1' group='2'/>"
            "<motor name='m' joint='e' group='3'/></actuator>")


@pytest.mark.parametrize("option", [
    *(f"<flag {name}='disable'/>" for name in (
        "gravity", "spring", "damper", "actuation", "limit", "constraint", "equality", "frictionloss", "clampctrl")),
    "<flag spring='disable' damper='disable'/>"])
def test_switches(tmp_path, option):
    path = arm(tmp_path, SWITCHED, f"<option gravity='1 2 -9'>{option}</option>",
               "stiffness='2 1 3' damping='0.3 0.2' frictionloss='0.1' range='-0.2 0.3'", lower="gravcomp='0.6'")
    robot, said = told(path)
    assert agrees(path, robot, with_inputs="actuation" not in option)
    assert ("switches off: 'p', 'm'" in said) == ("actuation" in option)
    assert ("ranges of inputs" in said) == ("clampctrl" not in option and "actuation" not in option)
    assert ("dry friction" in said) == (not {"frictionloss", "constraint"} & set(option.replace("=", " ").split()))
    free = "limit=" in option or "constraint" in option
    assert ("limits of tendons" in said) == (not free) and np.isinf(robot.model.joints[0].limits).all() == free
    assert robot.model.constraints[0].active == ("constraint" not in option and "equality" not in option)


def test_groups_of_actuators_are_switched_off(tmp_path):
    """Their dampers and rotors stay, as in MuJoCo, servos do not pull."""
    path = arm(tmp_path, SWITCHED, "<option actuatorgroupdisable='2'/>")
    robot, said = told(path)
    assert robot.actuator_names == ("m",) and "switches off: 'p'" in said and agrees(path, robot)


# ---- springs, dampers and rotors

PASSIVE = {
    "polynomials": dict(first="stiffness='2 1 5' damping='0.3 0.2 0.1' springref='0.4'",
                        second="type='slide' stiffness='0 0 4' damping='0 0.2'"),
    "negative": dict(first="stiffness='-2' damping='-0.3 1'"),
    "ball": dict(second="type='ball' stiffness='2' damping='0.3' armature='0.4'"),
    "gravcomp": dict(lower="gravcomp='1.4'", second="axis='1 0 0' pos='0 0.1 0'"),
    "tendons": dict(rest="<tendon><fixed name='f' stiffness='2 -1 5' damping='1 2 3' springlength='-0.3'><joint "
                         "joint='s' coef='2'/><joint joint='e' coef='-1'/></fixed><spatial name='x' stiffness='0 3' "
                         "damping='0 1' springlength='0 0.5'><site site='wall'/><site site='tip'/></spatial></tendon>"),
    "rotor of a tendon": dict(rest="<tendon><fixed armature='0.3'><joint joint='e' coef='-2'/></fixed></tendon>"),
    "motor": dict(rest="<actuator><motor joint='s' gear='3' damping='1 2 3' armature='0.5'/></actuator>"),
    "servo": dict(rest="<actuator><position joint='s' kp='4' kv='0.3' gear='3' damping='1' armature='0.5'/>"
                       "</actuator>"),
    "two motors": dict(rest="<actuator><motor joint='e' gear='3' damping='1'/><motor joint='e' damping='0 2' "
                            "armature='0.5'/></actuator>"),
    "geared": dict(rest="<tendon><fixed name='f'><joint joint='s' coef='2'/><joint joint='e' coef='-1'/></fixed>"
                        "</tendon><actuator><position tendon='f' kp='2' gear='2' damping='1 0.2 0.3'/></actuator>"),
    "spatial": dict(rest="<tendon><spatial name='x'><site site='wall'/><site site='tip'/></spatial></tendon><actuator>"
                         "<motor tendon='x' gear='-2' damping='1 0.2 0.3'/></actuator>"),
}


@pytest.mark.parametrize("case", PASSIVE)
def test_springs_dampers_and_rotors(tmp_path, case):
    """As read they are MuJoCo's, and they are the same from a TOML file and from an MJCF file of ours."""
    path = arm(tmp_path, **PASSIVE[case])
    robot, said = told(path)
    assert said == "" and agrees(path, robot, with_inputs=bool(robot.model.actuators))
    ld.save(robot, tmp_path / "again.toml")
    assert same(robot, ld.load(tmp_path / "again.toml"))
    robot_again, said = told(saved(robot, tmp_path / "again.xml"))
    assert same(robot, robot_again) and said == ""


def saved(robot, path):
    ld.save(robot, path)
    return path


def test_rotors_of_actuators_that_are_left_out_stay(tmp_path):
    path = arm(tmp_path, "<actuator><muscle name='m' joint='s' gear='2' armature='0.2'/></actuator>")
    robot, said = told(path)
    M, _ = Oracle(path, robot).dynamics(robot.home, np.zeros(2))
    assert "'m'" in said and close_to(ld.crba(robot, robot.home), M)


@pytest.mark.parametrize("gravity", ["0 0 -9.81", "1 2 3", "0 0 0"])
def test_free_joints(tmp_path, gravity):
    """Springs rest where the file draws the body, and the armature of translations goes along the world's axes."""
    path = write(tmp_path, "<body name='hull' pos='0.3 0.1 -0.2' euler='0.5 -0.3 0.2'><joint name='float' type='free' "
                           f"stiffness='3' damping='0.4' armature='0.7'/>{INERTIAL}<body name='fin' gravcomp='1'>"
                           f"<joint name='hinge'/>{INERTIAL}</body></body>", "", f"<option gravity='{gravity}'/>")
    robot, said = told(path)
    assert said == "" and robot.body_names and agrees(path, robot)
    for name in ("again.toml", "again.xml"):
        again, said = told(saved(robot, tmp_path / name))
        assert said == "" and same(robot, again)
    assert agrees(tmp_path / "again.xml", again)


def test_free_joints_of_ours_are_written_as_slides_and_a_ball(tmp_path):
    """Where turns and slides have other numbers; an armature that turns with the body is refused."""
    b = ld.Builder("block")
    b.body("block", mass=2.0, com=(0.1, 0.0, 0.2), inertia=(0.05, 0.06, 0.07))
    b.joint("float", "free", "ground", "block", stiffness=[2.0] * 3 + [30.0] * 3, damping=[0.1] * 3 + [4.0] * 3,
            rest=[0.0, 0.0, 0.0, 1.0, 0.3, 0.2, 0.1])
    robot = b.build()
    again, rng = ld.load(saved(robot, tmp_path / "again.xml")), np.random.default_rng(1)
    q = ld.random_configuration(robot, rng=rng)
    found = ld.forward_dynamics(again, [*q[4:], *q[:4]], np.zeros(6), np.zeros(6)).a
    expected = ld.forward_dynamics(robot, q, np.zeros(6), np.zeros(6)).a
    R = ld.pose(robot, q, "block")[:3, :3]
    assert close_to(found, [*(R @ expected[3:]), *expected[:3]])
    b.change("joint", "float", armature=0.3)
    with pytest.raises(ModelError, match="'float', armature: MuJoCo's goes along the axes of the world"):
        ld.save(b.build(), tmp_path / "never.xml")


def test_free_joints_are_driven_by_actuators_of_the_file_alone(tmp_path):
    body = f"<body><freejoint name='float'/>{INERTIAL}<body name='fin'><joint name='hinge'/>{INERTIAL}</body></body>"
    path = write(tmp_path, body, "<actuator><motor name='m' joint='hinge'/><motor name='wheel' joint='float' "
                                 "gear='0 0 0 0.2 0 3'/></actuator>")
    robot, said = told(path)
    assert robot.actuator_names == ("m", "wheel") and said == "" and agrees(path, robot, with_inputs=True)
    assert not robot.actuator_matrix[3:6].any()
    assert ld.load(write(tmp_path, body)).actuator_names == ("hinge",)  # a file without any: all other joints


def test_equalities_that_are_off_are_written_so(tmp_path):
    path = arm(tmp_path, "<equality><joint name='q' joint1='e' active='false'/></equality>")
    again = ld.load(saved(ld.load(path), tmp_path / "again.xml"))
    assert again.constraint_names == ("q",) and not again.model.constraints[0].active
