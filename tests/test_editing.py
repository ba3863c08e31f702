"""Editing: what changes and what stays; parts that go, come and stand alone; locked joints."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
import scipy.linalg
from closed_chains import closed_mechanism
from comparison import relative as off
from constrained_oracle import solve
from mechanisms import MOVING_KINDS, assert_declared_alike, random_joint, random_pose, random_q
from pinocchio_models import pin_model
from random_mechanisms import satisfied
from tree_cases import TREES, mixed_tree

import liedyn as ld
from liedyn.errors import InputError, ModelError
from liedyn.model.kinds import CONSTRAINT_KINDS, JOINT_KINDS, LOOP_KINDS


@pytest.fixture
def rng():
    return np.random.default_rng(61)


def refuse(message, error=ModelError):
    return pytest.raises(error, match=message)


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


@pytest.mark.parametrize("kind", [*LOOP_KINDS, *[k for k in CONSTRAINT_KINDS if k not in ("coupling", "custom")]])
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
            ("actuator", "motor"): {"gear": 4.0}}.get(key, {})
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
    (lambda b: b.change("robot", "machine", gravity=(0, 0, 0)), "unknown kind of thing 'robot'"),
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


# ---- attach, subtree


@pytest.mark.parametrize("name", ["mixed", "panda", "solo12"])
def test_what_is_split_off_and_attached_again(name, rng):
    """The robot is what it was: the same dynamics, coordinate by coordinate."""
    robot = TREES[name]()
    split = next(joint for joint in robot.model.joints if joint.parent != "ground" and joint.kind != "fixed"
                 and any(other.parent == joint.child for other in robot.model.joints))
    part, b = ld.subtree(robot, split.child), ld.Builder.of(robot)
    b.remove("body", split.child)
    left = b.build()
    options = {key: axis for key, axis in zip(("axis", "axis2"), split.axes)}
    b.attach(part, split.parent, "new ", split.placement, split.kind, **options, armature=split.armature,
             damping=split.damping, stiffness=split.stiffness, rest=split.rest,
             **({"pitch": split.pitch} if split.kind == "helical" else {}))
    again = b.build()
    assert left.nbodies + part.nbodies == robot.nbodies and again.nv == robot.nv
    assert part.nv + left.nv + JOINT_KINDS[split.kind].nv == robot.nv

    def old(names, known):
        held = {f"new ground{suffix}": split.name + suffix for suffix in (
            *JOINT_KINDS[split.kind].coordinates, *JOINT_KINDS[split.kind].velocities)}
        return [known.index(held.get(x, x.removeprefix("new "))) for x in names]

    of_q, of_v = (old(again.coordinate_names, robot.coordinate_names), old(again.velocity_names, robot.velocity_names))
    q = random_q(rng, robot)
    v, a = rng.normal(size=(2, robot.nv))
    assert off(ld.rnea(again, q[of_q], v[of_v], a[of_v]), ld.rnea(robot, q, v, a)[of_v]) < 1e-12


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_a_closed_part_on_a_moving_joint(kind, rng):
    """A mechanism with a loop attached to an arm: closure as on its own, energy as of the two together."""
    gadget, q = closed_mechanism(kind)
    b = ld.Builder.of(ld.load("panda"))
    b.attach(gadget, "panda_hand", "g/", random_pose(rng), "revolute", axis=(0, 1, 1))
    robot = b.build()
    names = ["g/" + name for name in gadget.coordinate_names]
    whole = ld.random_configuration(robot, rng)
    whole[[robot.coordinate_index(name) for name in names]] = q
    assert abs(ld.closure_error(robot, whole)).max() < 1e-12
    G, own = ld.constraint_jacobian(robot, whole), ld.constraint_jacobian(gadget, q)
    columns = [robot.velocity_index("g/" + name) for name in gadget.velocity_names]
    assert off(G[:, columns], own) < 1e-11 and abs(np.delete(G, columns, axis=1)).max() < 1e-11
    v = np.zeros(robot.nv)
    v[columns] = rng.normal(size=gadget.nv)
    assert off(ld.kinetic_energy(robot, whole, v), ld.kinetic_energy(gadget, q, v[columns])) < 1e-12
    assert off(ld.total_mass(robot), ld.total_mass(gadget) + ld.total_mass(ld.load("panda"))) < 1e-14


def test_names_of_what_is_attached():
    b = ld.Builder.of(ld.load("five_bar"))
    b.attach(machine().build(), "link1", "m_", (0.0, 0.1, 0.0))
    robot, alone, bar = b.build(), machine().build(), ld.load("five_bar")
    own = everything(bar)
    assert set(everything(robot)) - set(own) == {
        (what, f"m_{name}") for what, name in everything(alone)} | {("frame", "m_ground")} | {
        ("actuator", name) for name in bar.velocity_names if not bar.model.actuators}
    assert robot.home[robot.coordinate_index("m_lift")] == 0.2
    assert robot.outputs == (*bar.outputs, "pose:m_tool", "velocity:m_arm", "wrench:m_pin", "m_wrist")
    assert robot.independent == (*bar.independent, "m_lift", "m_arm", "m_wrist")
    assert robot.actuator_names[-2:] == ("m_motor", "m_drive")
    assert np.array_equal(robot.gravity, bar.gravity)
    assert off(robot.actuator_matrix.sum(axis=0), [*[1.0] * bar.nv, 3.0, 1.0]) == 0.0


def test_two_without_choices_have_none():
    """Actuators stay those of all coordinates; independent ones of a tree are all of it, where the other has some."""
    b = ld.Builder.of(ld.load("panda"))
    b.attach(ld.load("ur5"), "panda_hand", "u_")
    robot = b.build()
    assert robot.actuator_names == robot.velocity_names and robot.independent == ()
    b = ld.Builder.of(ld.load("panda"))
    b.attach(machine().build(), "panda_hand", "m_", joint="cylindrical")
    moves = tuple(f"panda_joint{k + 1}" for k in range(7))
    held = ("m_ground.angle", "m_ground.slide")
    assert b.build().independent == (*moves, *held, "m_lift", "m_arm", "m_wrist")
    b.remove("constraint", "m_rod")
    assert b.build().actuator_names == (*moves, "m_motor", "m_drive")


def test_a_subtree_of_everything():
    part = ld.subtree(machine().build(), "upper")
    assert set(everything(part)) == {
        *(("body", x) for x in ("upper", "hand", "nut")), ("frame", "tool"), ("frame", "eye"),
        *(("joint", x) for x in ("arm", "wrist", "thread")), ("constraint", "gear"), ("actuator", "drive")}
    assert part.velocity_names == ("wrist", "thread") and part.outputs == ("pose:tool", "wrist")
    assert part.independent == ("wrist",)
    floating = ld.subtree(machine().build(), "upper", joint="free")
    assert floating.nv == 8 and off(ld.pose(floating, floating.neutral, "upper"), np.eye(4)) == 0.0
    with refuse("unknown 'uper', did you mean 'upper'"):
        ld.subtree(machine().build(), "uper")
    with refuse("got 'panda'", InputError):
        ld.subtree("panda", "panda_hand")


def test_rows_of_ones_own_do_not_move_house():
    b = ld.Builder.of(ld.load("five_bar"))
    b.custom("hold", lambda t, q: np.eye(1, 4), lambda t, q, v: np.zeros(1), lambda t, q, v, a: (np.zeros((1, 4)),) * 3,
             lambda t, q, lam: np.zeros((4, 4)))
    robot = b.build()
    for move in (lambda: ld.subtree(robot, "link1"), lambda: ld.reduced(robot, {"q1": 0.0}),
                 lambda: ld.Builder.of(ld.load("panda")).attach(robot, "panda_hand", "x_")):
        with refuse("constraint 'hold': its functions take the coordinates of 'five_bar', and no others"):
            move()


# ---- reduced


def held(robot, locked, rng):
    """A configuration with the locked joints at their values, and which of the coordinates and velocities stay free."""
    q = random_q(rng, robot)
    free_q, free_v = np.ones(robot.nq, bool), np.ones(robot.nv, bool)
    for joint in robot.model.joints:
        if joint.name in locked:
            at = [robot.coordinate_index(joint.name + x) for x in JOINT_KINDS[joint.kind].coordinates]
            q[at], free_q[at] = locked[joint.name], False
            free_v[[robot.velocity_index(joint.name + x) for x in JOINT_KINDS[joint.kind].velocities]] = False
    return q, free_q, free_v


@pytest.mark.parametrize("name", TREES)
def test_locked_trees(name, rng):
    """M is a block of the M of all; forces are those that the free joints feel while the others are held."""
    robot = TREES[name]()
    q = random_q(rng, robot)
    locked = {joint.name: [q[robot.coordinate_index(joint.name + x)] for x in JOINT_KINDS[joint.kind].coordinates]
              for joint in robot.model.joints[::2] if joint.kind != "fixed"}
    q, free_q, free_v = held(robot, locked, rng)
    less = ld.reduced(robot, locked)
    assert less.nv == free_v.sum() < robot.nv and less.body_names == robot.body_names
    assert less.velocity_names == tuple(np.array(robot.velocity_names)[free_v])
    v, a = rng.normal(size=(2, robot.nv)) * free_v
    assert off(ld.crba(less, q[free_q]), ld.crba(robot, q)[np.ix_(free_v, free_v)]) < 1e-12
    assert off(ld.rnea(less, q[free_q], v[free_v], a[free_v]), ld.rnea(robot, q, v, a)[free_v]) < 1e-12
    for body in robot.body_names:
        assert off(ld.pose(less, q[free_q], body), ld.pose(robot, q, body)) < 1e-13


@pytest.mark.parametrize("name", ["panda", "ur5", "solo12", "talos"])
def test_locked_trees_against_pinocchio(name, rng):
    robot = TREES[name]()
    oracle = pin_model(robot)
    chosen = [joint for joint in robot.model.joints if joint.kind == "revolute"][1::2]
    locked = {joint.name: rng.uniform(-2.0, 2.0) for joint in chosen}
    q, free_q, free_v = held(robot, locked, rng)
    model = pin.buildReducedModel(oracle.model, [oracle.model.getJointId(f"{name}/0") for name in locked],
                                  oracle.to_pin(q)[0])
    less = ld.reduced(robot, locked)
    v, a = rng.normal(size=(2, less.nv))
    order = pin_model(less)
    order.model, order.data = model, model.createData()
    assert off(ld.rnea(less, q[free_q], v, a), order.rnea(q[free_q], v, a)) < 1e-12
    assert off(ld.crba(less, q[free_q]), order.crba(q[free_q])) < 1e-12


@pytest.mark.parametrize("kind", [kind for kind in LOOP_KINDS if kind != "fixed"])
def test_locked_joints_of_closed_mechanisms(kind, rng):
    """The accelerations are those of the whole mechanism with the locked joint's acceleration held at zero."""
    robot, q = closed_mechanism(kind)
    joint = next(joint for joint in robot.model.joints if joint.kind in ("revolute", "universal"))
    suffixes = JOINT_KINDS[joint.kind].coordinates
    locked = {joint.name: [q[robot.coordinate_index(joint.name + x)] for x in suffixes]}
    _, free_q, free_v = held(robot, locked, rng)
    less = ld.reduced(robot, locked)
    assert less.row_names == robot.row_names and abs(ld.closure_error(less, q[free_q])).max() < 1e-12
    G = np.vstack([ld.constraint_jacobian(robot, q), np.eye(robot.nv)[~free_v]])
    v = scipy.linalg.null_space(G, rcond=1e-10)
    assert v.shape[1] > 0
    v = v @ rng.normal(size=v.shape[1])
    tau = rng.normal(size=robot.nv)
    gamma = np.append(ld.constraint_bias(robot, q, v), np.zeros((~free_v).sum()))
    a, _ = solve(ld.crba(robot, q), ld.rnea(robot, q, v, 0 * v), G, gamma, tau)
    found = ld.forward_dynamics(less, q[free_q], v[free_v], tau[free_v]).a
    assert off(found, a[free_v]) < 1e-9


def test_what_goes_with_a_locked_joint():
    robot = ld.reduced(machine().build(), {"arm": 0.25, "ball": [0.0, 0.6, 0.0, 0.8]})
    assert robot.velocity_names == ("lift", "wrist", "thread") and robot.actuator_names == ("drive",)
    assert robot.model.home == {"lift": 0.2} and robot.outputs == ("pose:tool", "wrench:pin", "wrist")
    assert robot.constraint_names == ("pin", "rod", "floor", "gear")  # without the end stops of the arm
    assert robot.independent == ()  # the ball was not among them
    assert ld.reduced(machine().build(), {"arm": 0.25}).independent == ("lift", "wrist")
    assert ld.reduced(machine().build(), {}).velocity_names == machine().build().velocity_names


def test_couplings_with_locked_coordinates():
    robot = ld.reduced(machine().build(), {"wrist": 0.5})
    [gear] = [each for each in robot.model.constraints if each.name == "gear"]
    assert gear.coefficients == {"thread": 2.0} and gear.offset == pytest.approx(0.8, abs=1e-15)
    q = robot.home.copy()
    q[robot.coordinate_index("thread")] = 0.4
    assert abs(ld.closure_error(robot, q)[list(robot.row_names).index("gear.sum")]) < 1e-15
    both = ld.reduced(machine().build(), {"wrist": 0.5, "thread": 0.4})
    assert "gear" not in both.constraint_names
    with refuse("constraint 'gear': the locked coordinates do not meet it, its sum is off by 0.2"):
        ld.reduced(machine().build(), {"wrist": 0.5, "thread": 0.5})


@pytest.mark.parametrize(("locked", "message"), [
    ({"amr": 0.0}, "locked: unknown 'amr', did you mean 'arm'"), ({"arm": "x"}, "'arm': expected numbers"),
    ({"arm": np.nan}, "'arm': must be finite"), ({"arm": [0.0, 1.0]}, "'arm': expected 1 numbers"),
    ({"ball": [1.0, 1.0, 0.0, 0.0]}, "'ball'.*must have length one"), (["arm"], "locked: expected values by name"),
])
def test_locks_that_are_refused(locked, message):
    with refuse(message):
        ld.reduced(machine().build(), locked)


def test_edits_of_a_long_chain_take_no_time():
    """A thousand changes of a thousand bodies: each looks at the names once."""
    b = ld.Builder("chain")
    parent = "ground"
    for k in range(1000):
        b.body(f"b{k}", 1.0, inertia=(1, 1, 1))
        b.joint(f"j{k}", "revolute", parent, f"b{k}", (0.1, 0, 0))
        parent = f"b{k}"
    for k in range(1000):
        b.change("body", f"b{k}", mass=2.0)
    assert ld.total_mass(b.build()) == 2000.0
    b.remove("body", "b10")
    assert b.build().nv == 10
