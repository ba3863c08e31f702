"""Targets of inverse kinematics: errors and their Jacobians, targets of one's own, what is refused."""
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.machine.errors import InputError
from test_inverse_kinematics import HAND, PANDA, plane_arm

def all_targets(robot, rng):
    """One of each kind, relative to the ground and to another body."""
    bodies = rng.choice(robot.body_names, 4)
    poses = [ld.pose(robot, ld.random_configuration(robot, rng), body) for body in bodies]
    x = rng.normal(size=(8, 3))
    for other in (None, str(rng.choice(robot.body_names))):
        yield ld.PoseTarget(bodies[0], poses[0], other)
        yield ld.OrientationTarget(bodies[1], poses[1][:3, :3], other)
        yield ld.PointTarget(bodies[2], x[0], x[1], other)
        yield ld.DirectionTarget(bodies[3], x[2], x[3], other)
        yield ld.CenterOfMassTarget(x[4], other)


@pytest.mark.parametrize("name", ["panda", "talos", "solo12", "cassie_like", "loader", "arm_on_circle"])
def test_errors_and_jacobians_of_targets(name):
    robot, rng = ld.load(name), np.random.default_rng(5)
    q = ld.random_configuration(robot, rng)
    for target in all_targets(robot, rng):
        error, J = target.error(robot, q), target.jacobian(robot, q)
        np.testing.assert_allclose(error, expected_error(robot, target, q), rtol=0.0, atol=1e-10, err_msg=str(target))
        for j, way in enumerate(np.eye(robot.nv)):
            # differences of sixth order: steps of 0.01 leave 1e-13, and rounding by 0.01 about 1e-13
            f = [target.error(robot, ld.integrate(robot, q, 0.01 * k * way)) for k in (-3, -2, -1, 1, 2, 3)]
            rate = (f[5] - f[0] - 9.0 * (f[4] - f[1]) + 45.0 * (f[3] - f[2])) / 0.6
            np.testing.assert_allclose(J[:, j], rate, rtol=0.0, atol=1e-8 * max(1.0, np.abs(rate).max()))


def expected_error(robot, target, q):
    """By SciPy's rotations, from poses."""
    B = np.eye(4) if target.relative_to is None else ld.pose(robot, q, target.relative_to)
    X = np.linalg.inv(B) @ ld.pose(robot, q, target.body) if target.body else np.linalg.inv(B)
    turn = getattr(target, "rotation", None)
    if isinstance(target, ld.PoseTarget):
        turn = target.pose[:3, :3]
        return np.append(Rotation.from_matrix(X[:3, :3] @ turn.T).as_rotvec(), X[:3, 3] - target.pose[:3, 3])
    if isinstance(target, ld.OrientationTarget):
        return Rotation.from_matrix(X[:3, :3] @ turn.T).as_rotvec()
    if isinstance(target, ld.PointTarget):
        return X[:3, :3] @ target.point + X[:3, 3] - target.position
    if isinstance(target, ld.CenterOfMassTarget):
        return X[:3, :3] @ ld.center_of_mass(robot, q) + X[:3, 3] - target.position
    u = X[:3, :3] @ target.axis / np.linalg.norm(target.axis)
    d = target.direction / np.linalg.norm(target.direction)
    w = np.cross(d, u)
    return w / np.linalg.norm(w) * np.arctan2(np.linalg.norm(w), d @ u)


def test_directions_near_and_against_the_goal():
    robot, q = plane_arm(1), np.array([0.3])
    for angle in (0.0, 1e-12, 1e-6, 1e-3, 3.0, np.pi - 1e-6, np.pi):
        goal = (np.cos(0.3 - angle), np.sin(0.3 - angle), 0.0)
        error = ld.DirectionTarget("tip", (1.0, 0.0, 0.0), goal).error(robot, q)
        assert np.linalg.norm(error) == pytest.approx(angle, abs=1e-15)
    found = ld.inverse_kinematics(robot, ld.DirectionTarget("tip", (1.0, 0.0, 0.0), (-1.0, 0.0, 0.0)), q0=[0.0])
    assert abs(found.q[0]) == pytest.approx(np.pi, abs=1e-6)  # from the exact opposite


# ---- targets of one's own


class Height(ld.Target):
    """The height of the hand, made by hand."""

    name, tolerance = "height", 1e-9

    def __init__(self, height):
        self.height = height

    def error(self, robot, q):
        return np.array([ld.pose(robot, q, HAND)[2, 3] - self.height])

    def jacobian(self, robot, q):
        return ld.world_jacobian(robot, q, HAND)[5:]


def test_targets_of_ones_own():
    found = ld.inverse_kinematics(PANDA, [Height(0.5), ld.PointTarget(HAND, (0.4, 0.2, 0.0), weight=(1, 1, 0))])
    assert found.reached and np.allclose(ld.pose(PANDA, found.q, HAND)[:3, 3], (0.4, 0.2, 0.5), atol=1e-6)
    assert abs(found.errors["height"][0]) < 1e-9
    many = ld.inverse_kinematics(PANDA, Height(0.5), q0=ld.random_configuration(PANDA, 0, 100))
    assert many.reached.all()

    class Broken(Height):
        def error(self, robot, q):
            if not np.array_equal(q, robot.home):
                raise ValueError("out of order")
            return super().error(robot, q)

    with pytest.raises(InputError, match="error of target 'height'.*out of order"):
        ld.inverse_kinematics(PANDA, Broken(0.5))
    with pytest.raises(InputError, match="needs the methods"):
        ld.inverse_kinematics(PANDA, ld.Target())


# ---- what is refused


@pytest.mark.parametrize("make, said", [
    (lambda: ld.PoseTarget("nobody", np.eye(4)), "unknown body 'nobody'"),
    (lambda: ld.PoseTarget(HAND, np.eye(4), relative_to="nowhere"), "unknown body 'nowhere'"),
    (lambda: ld.PoseTarget(HAND, np.eye(3)), r"shape \(..., 4, 4\), got \(3, 3\)"),
    (lambda: ld.PoseTarget(HAND, 2.0 * np.eye(4)), "no rotation"),
    (lambda: ld.OrientationTarget(HAND, np.diag([1.0, 1.0, -1.0])), "no rotation"),
    (lambda: ld.PointTarget(HAND, (0.0, np.nan, 0.0)), "position is not finite"),
    (lambda: ld.PointTarget(HAND, (0.0, 0.0)), r"position of a target must have shape"),
    (lambda: ld.PointTarget(HAND, (0.0, 0.0, 0.0), weight=-1.0), "weight of a target"),
    (lambda: ld.DirectionTarget(HAND, (0, 0, 0), (0, 0, 1)), "axis of a target must not be zero"),
    (lambda: ld.PointTarget(HAND, (0.0, 0.0, 0.0), priority=0.5), "priority of a target"),
    (lambda: ld.PointTarget(HAND, (0.0, 0.0, 0.0), tolerance=0.0), "tolerance of a target"),
    (lambda: "hand", "targets must be one or several"), (lambda: [], "targets must be one or several"),
    (lambda: [ld.PointTarget(HAND, (0.3, 0.3, 0.3), name="a")] * 2, "two targets are called 'a'"),
    (lambda: [ld.PointTarget(HAND, np.zeros((2, 3))), ld.PointTarget(HAND, np.zeros((3, 3)))], "do not broadcast"),
])
def test_what_is_wrong_is_named(make, said):
    with pytest.raises(InputError, match=said):
        ld.inverse_kinematics(PANDA, make())
