"""Editing what has been declared: what changes, what stays, and what goes with what is removed."""

from dataclasses import replace

import numpy as np
import pytest
from comparison import relative as off
from mechanisms import MOVING_KINDS, assert_declared_alike, random_joint, random_pose
from random_mechanisms import satisfied
from tree_cases import mixed_tree

import liedyn as ld
from liedyn.machine.errors import ModelError
from liedyn.model.kinds import CONSTRAINT_KINDS, JOINT_KINDS, LOOP_KINDS


@pytest.fixture
def rng():
    return np.random.default_rng(61)


def refuse(message):
    return pytest.raises(ModelError, match=message)


def everything(robot):
    """All that is declared, by kind and name."""
    kinds = {"body": "bodies"} | {x: f"{x}s" for x in ("frame", "joint", "loop", "constraint", "actuator")}
    return {(kind, each.name): each for kind, section in kinds.items() for each in getattr(robot.model, section)}


def machine():
    """One of everything: four kinds of joints, a frame, a loop, constraints of several kinds, actuators, a home."""
    b = ld.Builder("machine", home={"lift": 0.2, "ball": [0.0, 0.0, 0.6, 0.8]}, independent=("lift", "arm", "wrist"),
                   outputs=("pose:tool", "velocity:arm", "wrench:pin", "wrist"), description="one of everything")
    for name, kind, parent in (("sled", "prismatic", "ground"), ("upper", "revolute", "sled"),
                               ("hand", "revolute", "upper"), ("pendulum", "spherical", "sled"),
                               ("nut", "helical", "hand")):
        b.body(name, 1.0, (0.1, 0.2, 0.0), (0.5, 0.6, 0.7))
        joint = {"sled": "lift", "upper": "arm", "hand": "wrist", "pendulum": "ball", "nut": "thread"}[name]
        b.joint(joint, kind, parent, name, (0.3, 0.0, 0.1), pitch=0.1 if kind == "helical" else None,
                axis=None if kind == "spherical" else (1.0, 0.0, 1.0), damping=0.1, limits=None if kind == "spherical"
                else (-1.0, 2.0), effort_limit=5.0, stiffness=2.0, armature=0.01)
    b.frame("tool", "hand", ld.placement((0.1, 0.0, 0.0), (0.1, 0.2, 0.3)))
    b.frame("eye", "tool", (0.0, 0.0, 0.05))
    b.loop("pin", "inline", "eye", "pendulum", (0.1, 0.0, 0.0), (0.0, 0.3, 0.0), axis=(0, 1, 0), active=False)
    b.constraint("rod", "distance", "ground", "pendulum", length=0.7)
    b.constraint("floor", "sphere_on_plane", "ground", "hand", radius=0.1, unilateral=True, friction=0.3,
                 axis=(0, 1, 1), restitution=0.2, active=False)
    b.constraint("gear", "coupling", coefficients={"thread": 2.0, "wrist": -1.0}, offset=0.3)
    b.stops(["arm"])
    b.actuator("motor", "arm", 3.0)
    b.actuator("drive", "thread")
    return b


# ---- change


def test_what_is_set_would_change_nothing():
    b = machine()
    with refuse("builder: cannot set 'gravity'; .*change"):
        b.gravity = (0, 0, 0)
    with refuse("unknown kind of thing 'gravity', known: 'body', .*'robot'"):
        b.change("gravity", (0, 0, 0))


def test_a_change_that_changes_nothing():
    """What is declared again is what was declared, of everything."""
    robot, again = machine().build(), machine()
    for what, name in everything(robot):
        again.change(what, name)
    again.change("robot")
    assert_declared_alike(again.build().model, robot.model)


@pytest.mark.parametrize("kind", [*MOVING_KINDS, "fixed"])
def test_joints_of_all_kinds_are_declared_again(kind, rng):
    b = ld.Builder("one")
    b.body("block", 1.0, inertia=(1.0, 1.0, 1.0))
    form = JOINT_KINDS[kind]
    lengths = {} if form.has_quaternion or kind == "fixed" else {"limits": [(-1.0, 1.0 + k) for k in range(form.nq)],
                                              "stiffness": rng.uniform(size=form.nv), "rest": rng.normal(size=form.nq)}
    b.joint("hold", kind, "ground", "block", **random_joint(rng, kind), **lengths, damping=rng.uniform(size=form.nv),
            velocity_limit=rng.uniform(size=form.nv))
    before = b.build()
    b.change("joint", "hold")
    assert_declared_alike(b.build().model, before.model)


@pytest.mark.parametrize("kind", [
    *LOOP_KINDS, *(k for k in CONSTRAINT_KINDS if k not in ("coupling", "custom", "dry_friction", "cable"))])
def test_loops_and_constraints_of_all_kinds_are_declared_again(kind, rng):
    options, _ = satisfied(rng, kind)
    b = ld.Builder.of(mixed_tree())
    (b.loop if kind in LOOP_KINDS else b.constraint)(
        "tie", kind, "body1", "body4", random_pose(rng), random_pose(rng), **options)
    before = b.build()
    b.change("loop" if kind in LOOP_KINDS else "constraint", "tie")
    assert_declared_alike(b.build().model, before.model)


def test_what_changes_and_nothing_else():
    b, before = machine(), everything(machine().build())
    b.change("body", "hand", mass=2.5)
    b.change("frame", "tool", placement=(0.0, 0.0, 0.4))
    b.change("joint", "arm", rest=0.3, limits=(-2.0, 2.0), placement=(0.5, 0.0, 0.0))
    b.change("loop", "pin", active=True)
    b.change("constraint", "rod", length=0.9)
    b.change("actuator", "motor", gear=4.0)
    b.change("robot", gravity=(0.0, 0.0, -1.62), home={"arm": 0.1})
    robot = b.build()
    after = everything(robot)
    assert list(after) == list(before)  # in the same order too
    for key, each in before.items():
        expected = {
            ("body", "hand"): {"mass": 2.5},
            ("frame", "tool"): {"placement": ld.placement((0.0, 0.0, 0.4))},
            ("joint", "arm"): {"rest": np.array([0.3]), "limits": np.array([[-2.0, 2.0]]),
                               "placement": ld.placement((0.5, 0.0, 0.0))},
            ("loop", "pin"): {"active": True}, ("constraint", "rod"): {"length": 0.9},
            ("actuator", "motor"): {"gears": {"arm": 4.0}}}.get(key, {})
        assert_declared_alike(after[key], replace(each, **expected))
    assert robot.gravity.tolist() == [0.0, 0.0, -1.62] and robot.home[robot.coordinate_index("arm")] == 0.1
    assert robot.home[robot.coordinate_index("lift")] == 0.0 and robot.independent == ("lift", "arm", "wrist")
    assert robot.model.description == "one of everything"


def test_a_changed_mass_is_felt():
    b = ld.Builder.of(ld.load("panda"))
    b.change("body", "panda_link4", mass=0.0, inertia=None, com=None)
    light, robot = b.build(), ld.load("panda")
    q = robot.home
    body = next(each for each in robot.model.bodies if each.name == "panda_link4")
    J = ld.body_jacobian(robot, q, "panda_link4")
    C = np.array([[0, -body.com[2], body.com[1]], [body.com[2], 0, -body.com[0]], [-body.com[1], body.com[0], 0]])
    at_com = J[3:] - C @ J[:3]
    own = body.mass * at_com.T @ at_com + J[:3].T @ body.inertia @ J[:3]
    assert off(ld.crba(robot, q) - ld.crba(light, q), own) < 1e-12


def test_another_kind_of_joint():
    """Ends, placement and axis stay; limits and springs were of another kind of motion."""
    b = ld.Builder.of(machine().build())
    b.remove("constraint", "arm.lower")
    b.remove("constraint", "arm.upper")
    b.change("joint", "arm", kind="prismatic", damping=0.7)
    [arm] = [joint for joint in b.build().model.joints if joint.name == "arm"]
    [old] = [joint for joint in machine().build().model.joints if joint.name == "arm"]
    assert np.array_equal(arm.placement, old.placement) and off(arm.axes, old.axes) < 1e-15
    assert arm.parent == "sled" and arm.child == "upper"
    assert np.isinf(arm.limits).all() and arm.stiffness == 0.0 and arm.damping == 0.7 and np.isinf(arm.effort_limit)
    b.change("joint", "arm", kind="universal")  # two axes, by default
    b.remove("actuator", "motor")
    b.change("robot", independent=None, outputs=None)
    assert np.array_equal(b.build().model.joints[1].axes, np.eye(3)[:2])
    b = machine()
    b.change("joint", "ball", kind="fixed")
    with refuse("home, name: unknown 'ball'"):
        b.build()
    b.change("robot", home=None)
    b.build()


def test_a_target_and_rows_of_ones_own_stay():
    zeros = (np.zeros(3),) * 3
    b = ld.Builder.of(ld.load("five_bar").with_target("pin", lambda t: zeros))
    b.change("loop", "pin", active=False)
    b.custom("hold", lambda t, q: np.eye(1, 4), lambda t, q, v: np.zeros(1), lambda t, q, v, a: (np.zeros((1, 4)),) * 3,
             lambda t, q, lam: np.zeros((4, 4)))
    b.change("constraint", "hold", active=False)
    robot = b.build()
    assert robot.model.loops[0].target is not None and robot.active == ()
    assert robot.model.constraints[0].functions.keys() == {"jacobian", "bias", "derivatives", "force_derivative"}
    b.change("loop", "pin", target=None)
    assert b.build().model.loops[0].target is None


@pytest.mark.parametrize(("edit", "message"), [
    (lambda b: b.change("body", "hnad", mass=1.0), "unknown body 'hnad', did you mean 'hand'"),
    (lambda b: b.change("boddy", "hand", mass=1.0), "unknown kind of thing 'boddy', did you mean 'body'"),
    (lambda b: b.change("body", "hand", mas=1.0), "body 'hand': unknown key 'mas', did you mean 'mass'"),
    (lambda b: b.change("body", "hand", name="x"), "body 'hand': unknown key 'name'"),
    (lambda b: b.change("body", "hand", mass=-1.0), "body 'hand', mass: must not be negative"),
    (lambda b: b.change("joint", "arm", kind="prismatc"), "joint 'arm', kind: unknown 'prismatc', did you mean"),
    (lambda b: b.change("joint", "arm", kind="helical"), "joint 'arm', pitch: a helical joint needs one"),
    (lambda b: b.change("joint", "arm", kind=3), "joint 'arm', kind"),
    (lambda b: b.change("constraint", "rod", radius=0.1), "constraint 'rod', radius: a distance constraint has none"),
    (lambda b: b.change("robot", gravty=(0, 0, 0)), "robot: unknown key 'gravty', did you mean 'gravity'"),
    (lambda b: b.change("robot", gravity=(0, 0)), "gravity: expected 3 numbers"),
    (lambda b: b.change("robot", "machine", gravity=(0, 0, 0)), "robot: there is one only, it takes no name"),
    (lambda b: b.change("body", ["hand"], mass=1.0), "unknown body"),
    (lambda b: b.remove("body", "hnad"), "unknown body 'hnad', did you mean 'hand'"),
    (lambda b: b.remove("joint", "arm"), "joint 'arm': goes with body 'upper'"),
    (lambda b: b.remove("stop", "arm"), "unknown kind of thing 'stop'"),
    (lambda b: b.attach(ld.load("five_bar"), "hand", ""), "attach, prefix"),
    (lambda b: b.attach(ld.load("five_bar"), "hand", "x_", axis=(0, 0, 1)), "attach: unknown key 'axis'"),
    (lambda b: b.attach(ld.load("five_bar"), "hand", "x_", (1, 2)), "frame 'x_ground', placement"),
    (lambda b: (b.attach(ld.load("five_bar"), "hnad", "x_"), b.build()), "body: unknown 'hnad', did you mean 'hand'"),
    (lambda b: (b.attach(ld.load("five_bar"), "hand", "x_"), b.attach(ld.load("five_bar"), "hand", "x_"), b.build()),
     "'x_link1': declared twice"),
])
def test_edits_that_are_refused_leave_all_as_it_was(edit, message):
    b = machine()
    with refuse(message):
        edit(b)
    if "build" not in edit.__code__.co_names:
        assert_declared_alike(b.build().model, machine().build().model)


# ---- remove


def test_what_goes_with_a_body():
    b = machine()
    b.remove("body", "upper")  # the arm, with hand, nut, tool and eye
    robot = b.build()
    assert set(everything(robot)) == {
        ("body", "sled"), ("body", "pendulum"), ("joint", "lift"), ("joint", "ball"), ("constraint", "rod")}
    assert robot.independent == ("lift",) and robot.outputs == ()
    assert robot.model.home == {"lift": 0.2, "ball": [0.0, 0.0, 0.6, 0.8]}
    b.remove("body", "pendulum")
    assert set(everything(b.build())) == {("body", "sled"), ("joint", "lift")} and b.build().model.home == {"lift": 0.2}


def test_what_goes_with_a_frame_and_a_loop():
    b = machine()
    b.remove("frame", "eye")
    robot = b.build()
    assert set(everything(machine().build())) - set(everything(robot)) == {("frame", "eye"), ("loop", "pin")}
    assert robot.outputs == ("pose:tool", "velocity:arm", "wrist")
    b.remove("actuator", "motor")
    b.remove("constraint", "gear")
    assert b.build().actuator_names == ("drive",) and "gear" not in b.build().constraint_names


def test_a_body_and_a_joint_of_the_same_name():
    """Outputs of the body stay when the joint of that name goes with another body."""
    b = ld.Builder("names", outputs=("pose:a", "a", "twist:b", "velocity:b"))
    for name, joint, parent in (("a", "b", "ground"), ("b", "a", "a")):
        b.body(name, 1.0, inertia=(1, 1, 1))
        b.joint(joint, "revolute", parent, name)
    b.remove("body", "b")  # held by joint a
    assert b.build().outputs == ("pose:a", "velocity:b")
