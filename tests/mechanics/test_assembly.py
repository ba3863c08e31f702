"""Closing loops, rows of G, virtual coordinates: laws of the manifold, and the branch of the guess.

Tolerances. Two exact results of one mechanism differ by rounding times the condition of its rows (up to 1e3 here):
1e-11, and 1e-9 for multipliers, which see it squared. Differences of sixth order with a step of 1e-2 leave 1e-12 / step
and their own truncation: 1e-9 for first, 1e-8 for second derivatives. A wrong or missing term shows at 1e-3 and above.
"""
import numpy as np
import pytest
from closed_chains import closed_mechanism, difference, moving_state, off, onto_manifold
from scipy.spatial.transform import Rotation
from tree_cases import bundled

import liedyn as ld
from liedyn.lie import inverse, log
from liedyn.linear import linearize
from liedyn.machine.errors import ClosureError, InputError, SingularConfigurationError
from liedyn.mechanics.constraints import (
    close, closure_error, complete_velocity, constraint_bias, constraint_jacobian, virtual_coordinates,
    virtual_jacobian,
)
from liedyn.mechanics.dynamics import forward_dynamics
from liedyn.mechanics.tree.configuration import integrate
from liedyn.mechanics.tree.forward_kinematics import forward_kinematics
from liedyn.mechanics.tree.jacobians import body_jacobian
from liedyn.mechanics.tree.rnea import rnea
from liedyn.model import Builder
from liedyn.model.kinds import LOOP_KINDS


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_rows_are_derivatives_of_the_residual(kind):
    robot, q = closed_mechanism(kind, seed=3)
    assert np.abs(closure_error(robot, q)).max() < 1e-13
    columns = [
        difference(lambda s, e=e: closure_error(robot, integrate(robot, q, s * e)), 1e-2) for e in np.eye(robot.nv)
    ]
    assert off(constraint_jacobian(robot, q), np.stack(columns, axis=-1)) < 1e-9
    v, _ = moving_state(robot, q)
    rate = difference(lambda s: constraint_jacobian(robot, integrate(robot, q, s * v)) @ v, 1e-2)
    assert off(constraint_bias(robot, q, v), -rate) < 1e-8


@pytest.mark.parametrize("kind", [kind for kind in LOOP_KINDS if kind != "fixed"])
def test_virtual_velocities_are_rates_of_virtual_coordinates(kind):
    robot, q = closed_mechanism(kind, seed=3)
    v, _ = moving_state(robot, q)

    def along(s):  # on the manifold: off it a virtual coordinate is only defined up to what is left open
        return onto_manifold(robot, integrate(robot, q, s * v))

    if kind == "spherical":
        base = Rotation.from_rotvec(virtual_coordinates(robot, q))
        rate = difference(
            lambda s: (base.inv() * Rotation.from_rotvec(virtual_coordinates(robot, along(s)))).as_rotvec(), 1e-2
        )
    else:
        rate = difference(lambda s: virtual_coordinates(robot, along(s)), 1e-2)
    assert off(virtual_jacobian(robot, q) @ v, rate) < 1e-8


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_constraint_forces_do_no_work_and_keep_the_loop_closed(kind):
    robot, q = closed_mechanism(kind, seed=4)
    v, tau = moving_state(robot, q)
    r = forward_dynamics(robot, q, v, tau)
    G = constraint_jacobian(robot, q)
    assert off(G @ r.a, constraint_bias(robot, q, v)) < 1e-11
    # the wrench of the cut on its child and its reaction on the parent, as body wrenches, balance the open tree
    loop = robot.model.loops[0]
    poses = dict(zip(robot.body_names, forward_kinematics(robot, q)))
    force = tau - rnea(robot, q, v, r.a)
    assert off(G.T @ r.lam, force) < 1e-9
    if kind in ("universal", "planar", "inline"):
        return  # their cut frames are not the parent's
    W = r.constraint_wrenches["cut"]
    A, X = loop.parent_placement, np.linalg.inv(poses[loop.parent]) @ poses[loop.child]
    on_parent = carry(A, -W)
    on_child = carry(np.linalg.inv(X), -on_parent)
    balanced = rnea(robot, q, v, r.a, {loop.parent: on_parent, loop.child: on_child})
    assert off(balanced, tau) < 1e-9


def carry(pose, wrench):
    """A wrench of the frame at `pose` in the coordinates that see it there."""
    R, p = pose[:3, :3], pose[:3, 3]
    force = R @ wrench[3:]
    return np.concatenate([R @ wrench[:3] + np.cross(p, force), force])


# ---- one mechanism, many descriptions


def pinned_linkage(cut, kind):
    """A four-bar whose loop is cut at one of its pins, by one kind of closure; coordinates are always the crank's."""
    lengths, base = {"crank": 0.4, "coupler": 1.0, "rocker": 0.8}, 1.1
    builder = Builder("linkage", gravity=(0.0, -9.81, 0.0))
    for name, length in lengths.items():
        builder.body(name, 3.0 * length, (length / 2, 0.02, 0.0), (0.01, 0.02, 0.03 * length))
    chain = ["ground", "crank", "coupler", "rocker"]
    ends = {"ground": 0.0, **lengths}
    pins = [(a, b) for a, b in zip(chain, chain[1:])]
    at = len(pins) if cut == "rocker-ground" else 2
    for parent, child in pins[:at]:
        builder.joint(child, "revolute", parent, child, (ends[parent], 0.0, 0.0), damping=0.05)
    if at == 2:  # the rocker hangs on the ground, and the pin between coupler and rocker is cut
        builder.joint("rocker", "revolute", "ground", "rocker", (base, 0.0, 0.0), damping=0.05)
        joined = ("coupler", "rocker", (1.0, 0.0, 0.0), (0.8, 0.0, 0.0))
    else:
        joined = ("ground", "rocker", (base, 0.0, 0.0), (0.8, 0.0, 0.0))
    parent, child, xa, xb = joined
    if kind == "explicit":  # six rows: the pin becomes a massless body on a virtual revolute joint, welded on
        builder.body("virtual")
        builder.joint("virtual", "revolute", child, "virtual", xb)
        builder.loop("pin", "fixed", parent, "virtual", parent_placement=xa)
    else:
        builder.loop("pin", kind, parent, child, parent_placement=xa, child_placement=xb)
    return builder.build()


def crank_model(robot, angle, speed, torque):
    guess = robot.neutral.copy()
    named = dict(zip(robot.velocity_names, range(robot.nv)))
    guess[named["crank"]] = angle
    if "virtual" in named or robot.model.loops[0].parent == "ground":
        guess[named["coupler"]], guess[named["rocker"]] = (
            -0.9,
            (-1.2 if robot.model.loops[0].parent == "ground" else 1.9),
        )
    q = close(robot, guess, crank=angle)
    v = complete_velocity(robot, q, {"crank": speed})
    tau = np.zeros(robot.nv)
    tau[named["crank"]] = torque
    return linearize(robot, q, v, tau, independent=("crank",), outputs=("crank", "acceleration:crank"))


def test_cuts_and_rows_do_not_matter_without_damping_at_the_cut():
    """Two planar rows, five revolute rows, six rows with a virtual joint: the same A."""
    models = [
        crank_model(pinned_linkage("rocker-ground", kind), 0.9, 1.7, 2.0) for kind in ("inline", "revolute", "explicit")
    ]
    for model in models[1:]:
        assert off(model.A, models[0].A) < 1e-11
        assert off(model.f0, models[0].f0) < 1e-11
        assert off(model.B[:, 0], models[0].B[:, 0]) < 1e-11


def ring(cut):
    """A spatial chain ground - R - one - U - two - S - three - C - ground, cut at joint number `cut`."""
    axis = np.array([0.2, -0.3, 1.0])
    tips = {"one": (0.9, 0.1, 0.2), "two": (1.1, -0.3, 0.1), "three": (0.7, 0.2, -0.4)}
    joints = [  # parent, child, kind, place on the parent, place on the child
        ("ground", "one", "revolute", (0, 0, 0), (0, 0, 0)),
        ("one", "two", "universal", tips["one"], (0, 0, 0)),
        ("two", "three", "spherical", tips["two"], (0, 0, 0)),
        ("three", "ground", "cylindrical", tips["three"], (1.2, 0.5, 0.1)),
    ]
    axes = {"revolute": {"axis": axis}, "cylindrical": {"axis": axis}}
    builder = Builder("ring", gravity=(0.0, 0.0, -9.81))
    for k, (name, tip) in enumerate(tips.items()):
        builder.body(name, 1.0 + 0.3 * k, np.array(tip) / 2, (0.05, 0.06, 0.07))
    for parent, child, kind, at, _ in joints[:cut]:
        builder.joint(child, kind, parent, child, at, **axes.get(kind, {}))
    for parent, child, kind, at_parent, at_child in reversed(joints[cut + 1:]):  # walked backwards, from the far end
        back = {"axis": -axis} if kind in axes else {}
        builder.body(f"tip of {parent}")
        builder.joint(parent, kind, child, f"tip of {parent}", at_child, **back)
        builder.joint(f"weld {parent}", "fixed", f"tip of {parent}", parent, -np.asarray(at_parent, float))
    parent, child, kind, at_parent, at_child = joints[cut]
    builder.loop("cut", kind, parent, child, parent_placement=at_parent, child_placement=at_child, **axes.get(kind, {}))
    return builder.build()


def test_the_same_model_for_another_cut():
    """Cut at the cylinder, at the ball or at the cross: the same A about the same moving state."""
    whole = ring(3)
    q = close(whole, whole.home, one=0.4)
    v = complete_velocity(whole, q, {"one": 0.8, "cut.angle": -0.6})
    poses = dict(zip(whole.body_names, forward_kinematics(whole, q)))
    expected = linearize(whole, q, v, np.zeros(whole.nv), independent=("one", "cut.angle"))
    for cut in (2, 1):
        robot = ring(cut)
        q_cut = match_poses(robot, poses)
        v_cut = complete_velocity(robot, q_cut, {"one": 0.8, "three.angle": -0.6})
        ss = linearize(robot, q_cut, v_cut, np.zeros(robot.nv), independent=("one", "three.angle"))
        assert off(ss.A, expected.A) < 1e-11
        assert off(ss.f0, expected.f0) < 1e-11


def match_poses(robot, poses):
    """The configuration with given body poses, by Gauss-Newton on their logs."""
    q = robot.neutral.copy()
    for _ in range(200):
        now = dict(zip(robot.body_names, forward_kinematics(robot, q)))
        error = np.concatenate([log(inverse(now[name]) @ pose) for name, pose in poses.items()])
        step = np.linalg.lstsq(np.vstack([body_jacobian(robot, q, name) for name in poses]), error, rcond=1e-9)[0]
        q = integrate(robot, q, step * min(1.0, 0.3 / np.abs(step).max()))
        if np.abs(error).max() < 1e-14:
            break
    assert np.abs(error).max() < 1e-12
    return q


# ---- close


@pytest.mark.parametrize(
    "name", ["four_bar", "five_bar", "loader", "stewart", "parallel_five_bar", "delta", "cassie_like"]
)
def test_close_returns_to_the_manifold(name):
    robot = bundled(name)
    rng = np.random.default_rng(0)
    size = 1e-3 if name == "delta" else 0.03  # the delta's parallelograms are 15 degrees from flat, in mm
    q = close(robot, integrate(robot, robot.home, size * rng.normal(size=robot.nv)))
    assert np.abs(closure_error(robot, q)).max() < 1e-12


def test_held_coordinates_and_the_branch_of_the_guess():
    robot = bundled("loader")
    q = close(robot, robot.home, boom=0.3, bucket=-0.2)
    assert q[robot.coordinate_index("boom")] == 0.3 and q[robot.coordinate_index("bucket")] == -0.2
    back = close(robot, q, boom=0.0, bucket=0.0)
    assert np.abs(back - robot.home).max() < 1e-11
    five = bundled("five_bar")
    up = close(five, five.home, q1=1.2, q2=-0.3)
    mirrored = close(five, [1.2, -0.3, 2.0, -2.0], {"q1": 1.2, "q2": -0.3})
    assert abs(up[2] - mirrored[2]) > 0.5  # two assemblies of the same cranks
    assert np.abs(closure_error(five, mirrored)).max() < 1e-12


def test_virtual_coordinates_can_be_held():
    robot = bundled("five_bar")
    target = virtual_coordinates(robot, robot.home)[0] + 0.4
    q = close(robot, robot.home, {"pin": target, "q1": 2.0})
    assert abs(virtual_coordinates(robot, q)[0] - target) < 1e-12 and q[0] == 2.0


def test_what_cannot_be_closed_is_named():
    robot = bundled("four_bar")
    with pytest.raises(ClosureError, match="loop 'pin'") as error:
        close(robot, robot.home, coupler=2.5, crank=0.1)
    assert error.value.residual > 1e-3 and error.value.q.shape == (3,)
    with pytest.raises(InputError, match="did you mean 'crank'"):
        close(robot, robot.home, crnak=0.1)
    with pytest.raises(InputError, match="finite"):
        close(robot, robot.home, crank=np.nan)
    with pytest.raises(SingularConfigurationError, match="contradict"):
        complete_velocity(robot, robot.home, {"crank": 1.0, "rocker": 50.0})
    five = bundled("five_bar")
    with pytest.raises(SingularConfigurationError, match="do not determine"):
        complete_velocity(five, five.home, {"q1": 1.0})


def test_velocities_of_a_batch():
    """Leading axes of configurations and of velocities meet; a joint with several coordinates goes by its own name."""
    loader = bundled("loader")
    q = close(loader, loader.home, boom=np.linspace(0.1, 0.3, 3)[:, None], bucket=np.linspace(-0.2, 0.0, 2))
    v = complete_velocity(loader, q, {"boom": np.array([0.4, 0.5]), "bucket": -0.3})
    assert v.shape == (3, 2, loader.nv)
    for i in np.ndindex(3, 2):
        assert v[i].tolist() == complete_velocity(loader, q[i], {"boom": 0.4 + 0.1 * i[1], "bucket": -0.3}).tolist()
    assert complete_velocity(loader, q[:0], {"boom": 0.4, "bucket": -0.3}).shape == (0, 2, loader.nv)
    with pytest.raises(InputError, match=r"do not broadcast: \(3, 2\), \(3,\), \(\)"):
        complete_velocity(loader, q, {"boom": np.ones(3), "bucket": -0.3})
    with pytest.raises(SingularConfigurationError, match=r"do not determine.*state \(0, 0\) of the batch"):
        complete_velocity(loader, q, {"boom": 0.4})
    solo = bundled("solo12")
    v = complete_velocity(solo, solo.home, {solo.joint_names[0]: np.arange(6.0), **dict.fromkeys(
        solo.velocity_names[6:], 1.0)})
    assert v.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] + [1.0] * 12


def test_velocities_that_are_missing_are_named():
    loader = bundled("loader")
    words = "velocities of boom do not determine .* rank 7 of 8; add '"
    with pytest.raises(SingularConfigurationError, match=words) as error:
        complete_velocity(loader, loader.home, {"boom": 0.4})
    named = str(error.value).split("add '")[1].split("'")[0]
    assert complete_velocity(loader, loader.home, {"boom": 0.4, named: 0.1}).shape == (8,)
    with pytest.raises(SingularConfigurationError, match="no velocities are given, .* rank 6 of 8; add '.*', '"):
        complete_velocity(loader, loader.home, {})


def test_velocities_in_an_array():
    """In the order of the independent coordinates that the robot declares; of a tree all."""
    loader, rng = ld.load("loader"), np.random.default_rng(5)
    w = rng.normal(size=(3, 2))
    named = complete_velocity(loader, loader.home, {"boom": w[:, 0], "bucket": w[:, 1]})
    assert np.array_equal(complete_velocity(loader, loader.home, w), named)
    panda = ld.load("panda")
    assert np.array_equal(complete_velocity(panda, panda.home, np.arange(7.0)), np.arange(7.0))
    bicycle = ld.load("whipple_bicycle")  # as many as velocities are free, of more coordinates
    assert np.array_equal(complete_velocity(bicycle, bicycle.home, [0.1, 0.2, -9.0]), complete_velocity(
        bicycle, bicycle.home, {"lean": 0.1, "steer": 0.2, "rear_wheel": -9.0}))
    with pytest.raises(InputError, match=r"velocities must have shape \(..., 2\)"):
        complete_velocity(loader, loader.home, [1.0])
    squeezer = ld.Builder.of(ld.load("five_bar"))
    squeezer._independent = ()
    with pytest.raises(InputError, match="declares no independent coordinates"):
        complete_velocity(squeezer.build(), ld.load("five_bar").home, [1.0, 2.0])
