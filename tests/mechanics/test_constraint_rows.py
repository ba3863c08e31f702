"""Rows of every kind of constraint, moving targets included, and all their derivatives, against differences."""
import numpy as np
import pytest
from closed_chains import difference, frame_motion, off, two_branches
from mechanisms import random_axes, random_pose, random_q
from users import kept

import liedyn as ld
from liedyn.mechanics.constraints.loops import (
    all_derivatives, closure_error, constraint_bias, constraint_jacobian, velocity_error,
)
from liedyn.model.kinds import CONSTRAINT_KINDS, LOOP_KINDS

PARAMETERS = {
    "distance": {"length": 0.7},
    "on_plane": {"axis": (0.3, -0.2, 0.9)},
    "on_cylinder": {"radius": 0.4, "axis": (0.1, 1.0, 0.2)},
    "on_circle": {"radius": 0.4, "axis": (1.0, 0.5, 0.2)},
    "knife_edge": {"child_axis": (0.2, 1.0, -0.3)},
    "disk_on_plane": {"radius": 0.3, "axis": (0.1, 0.2, 1.0), "child_axis": (0.3, 1.0, 0.4)},
    "sphere_on_plane": {"radius": 0.3},
    "sphere_on_sphere": {"radius": 0.2, "parent_radius": 0.5},
}
# differences of sixth order on functions of size one to 1e3 and the step of 1e-3: rounding 1e-13 * size / step
AGREES = 1e-8


@kept
def swing(t):
    """A frame that turns about a slanted axis while it moves on a curve, with exact twist and rate."""
    w = np.array([0.3, -0.5, 0.8])
    angle = np.sqrt(w @ w) * t
    n = w / np.sqrt(w @ w)
    K = np.array([[0.0, -n[2], n[1]], [n[2], 0.0, -n[0]], [-n[1], n[0], 0.0]])
    R = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)
    pose = np.eye(4)
    pose[:3, :3] = R
    pose[:3, 3] = np.array([np.sin(t), t * t, 0.2 * t])
    velocity, acceleration = np.array([np.cos(t), 2.0 * t, 0.2]), np.array([-np.sin(t), 2.0, 0.0])
    twist, rate = np.zeros(6), np.zeros(6)
    twist[:3] = w
    twist[3:] = R.T @ velocity
    rate[3:] = R.T @ acceleration - np.cross(w, R.T @ velocity)
    return pose, twist, rate


@kept
def drive(t):
    return 0.3 + np.sin(2.0 * t), 2.0 * np.cos(2.0 * t), -4.0 * np.sin(2.0 * t)


def constrained(kind, target=None, **more):
    """A tree of two branches, joined by one constraint that is not satisfied, and its state at time 0.4."""
    rng = np.random.default_rng([3, len(kind)])
    builder, (a, b) = two_branches(rng)
    if kind in ("spherical", "inline"):  # exact also where they are open
        builder.loop("tie", kind, a, b, random_pose(rng), random_pose(rng), target=target)
    elif kind in LOOP_KINDS:
        axes = random_axes(rng, kind)
        pitch = {"pitch": 0.4} if kind == "helical" else {}
        # closed at t = 0.4 with a consistent velocity: off the manifold the frames of these cuts are a convention only
        open_robot = builder.build()
        start = random_q(rng, open_robot)
        placement = random_pose(rng)
        unit = [np.asarray(x) / np.linalg.norm(x) for x in axes.values()]
        poses = dict(zip(open_robot.body_names, ld.forward_kinematics(open_robot, start)))
        joined = target(0.4)[0] @ frame_motion(rng, kind, unit, pitch.get("pitch"))
        builder.loop("tie", kind, a, b, placement, np.linalg.inv(poses[b]) @ poses[a] @ placement @ joined,
                     target=target, **axes, **pitch)
        robot = builder.build().at(0.4)
        v = rng.normal(size=robot.nv)
        v -= np.linalg.pinv(constraint_jacobian(robot, start)) @ velocity_error(robot, start, v)
        assert off(velocity_error(robot, start, v), 0 * velocity_error(robot, start, v)) < 1e-12
        return robot, start, v, rng.normal(size=robot.nv), rng.normal(size=len(robot.row_names))
    elif kind == "cable":
        path = [("ground", rng.normal(size=3)), (a, rng.normal(size=3)), (b, rng.normal(size=3))]
        builder.cable("tie", path, length=1.0, stiffness=np.inf)
    elif kind == "coupling":
        builder.constraint("tie", kind, coefficients={"j_trunk": 1.5, "j_b0": -0.4}, offset=0.2, target=target)
    else:
        builder.constraint("tie", kind, a, b, random_pose(rng), random_pose(rng), target=target,
                           **PARAMETERS[kind], **more)
    robot = builder.build().at(0.4)
    q, v, acc = random_q(rng, robot), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    return robot, q, v, acc, rng.normal(size=len(robot.row_names))


CASES = [(kind, None, {}) for kind in CONSTRAINT_KINDS if kind not in ("custom", "dry_friction")]
CASES += [(kind, swing, {}) for kind in (*LOOP_KINDS, *PARAMETERS)]
CASES += [("coupling", drive, {}), ("sphere_on_sphere", None, {"inside": True}),
          ("disk_on_plane", None, {"rolling": False})]


@pytest.mark.parametrize("kind, target, more", CASES)
def test_rows_and_derivatives(kind, target, more):
    robot, q, v, a, lam = constrained(kind, target, **more)
    G, t = constraint_jacobian(robot, q), robot.t
    psi = velocity_error(robot, q, v)
    drift = velocity_error(robot, q, np.zeros(robot.nv))
    np.testing.assert_allclose(psi, G @ v + drift, atol=1e-12)
    assert (np.abs(drift).max() > 1e-3) == (target is not None)

    def moved(s):
        return robot.at(t + s), ld.integrate(robot, q, s * v)

    holonomic = np.array([name.split(".")[-1] in ("gap", "height", "sum") or kind in LOOP_KINDS
                          for name in robot.row_names])
    rate = difference(lambda s: closure_error(*moved(s)))
    assert off(rate[holonomic], psi[holonomic]) < AGREES
    assert not closure_error(robot, q)[~holonomic].any()

    bias = -constraint_bias(robot, q, v)
    assert off(difference(lambda s: velocity_error(*moved(s), v)), bias) < AGREES

    def acceleration(q, v):
        return constraint_jacobian(robot, q) @ a - constraint_bias(robot, q, v)

    psi_q, phi_q, phi_v, force_q = all_derivatives(robot.packed, q, v, a, lam)
    for j, e in enumerate(np.eye(robot.nv)):
        def along(s, e=e):
            return ld.integrate(robot, q, s * e)
        assert off(difference(lambda s, along=along: velocity_error(robot, along(s), v)), psi_q[:, j]) < AGREES
        assert off(difference(lambda s, along=along: acceleration(along(s), v)), phi_q[:, j]) < AGREES
        assert off(difference(lambda s, e=e: acceleration(q, v + s * e)), phi_v[:, j]) < AGREES
        assert off(difference(lambda s, along=along: constraint_jacobian(robot, along(s)).T @ lam),
                   force_q[:, j]) < AGREES


@pytest.mark.parametrize("kind", ["revolute", "distance", "coupling"])
def test_rows_that_are_switched_off_are_zero(kind):
    robot, q, v, a, lam = constrained(kind, None if kind == "coupling" else swing)
    off_robot = robot.switched(tie=False)
    assert off_robot.active == () and robot.active == ("tie",)
    assert off_robot.row_names == robot.row_names
    for value in (closure_error(off_robot, q), velocity_error(off_robot, q, v), constraint_jacobian(off_robot, q),
                  constraint_bias(off_robot, q, v), *all_derivatives(off_robot.packed, q, v, a, lam)):
        assert not value.any()
    assert constraint_jacobian(off_robot.switched(tie=True), q).any()


@pytest.mark.parametrize("kind", PARAMETERS)
def test_the_wrench_of_a_contact_does_the_work_of_its_multipliers(kind):
    """Moment times relative rotation plus force times relative velocity of B's origin, in A's axes, is -lam . psi."""
    robot, q, v, _, lam = constrained(kind)
    each = robot.model.constraints[0]

    def relative(s):
        poses = dict(zip(robot.body_names, ld.forward_kinematics(robot, ld.integrate(robot, q, s * v))))
        return np.linalg.inv(poses[each.parent] @ each.parent_placement) @ poses[each.child] @ each.child_placement

    rate = difference(relative)
    turning = rate[:3, :3] @ relative(0.0)[:3, :3].T
    F = ld.constraint_wrenches(robot, q, lam)["tie"]
    power = F[:3] @ [turning[2, 1], turning[0, 2], turning[1, 0]] + F[3:] @ rate[:3, 3]
    np.testing.assert_allclose(power, -lam @ velocity_error(robot, q, v), rtol=1e-9)
