"""Robots from parts of robots: what is attached, split off, or locked."""

import numpy as np
import pinocchio as pin
import pytest
import scipy.linalg
from closed_chains import closed_mechanism
from comparison import relative as off
from constrained_oracle import solve
from mechanisms import random_pose, random_q
from pinocchio_models import pin_model
from test_editing import everything, machine, refuse
from tree_cases import TREES

import liedyn as ld
from liedyn.machine.errors import InputError
from liedyn.model.kinds import JOINT_KINDS, LOOP_KINDS


@pytest.fixture
def rng():
    return np.random.default_rng(61)


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
    with pytest.raises(InputError, match="got 'panda'"):
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
