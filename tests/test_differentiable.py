"""What the bridges to JAX, PyTorch and CasADi share: functions of plain numbers, and their Jacobians."""
import copy
import pickle

import numpy as np
import pytest
from comparison import off
from mechanisms import MOVING_KINDS, random_tree
from test_energy import STENCIL

import liedyn as ld
from liedyn.differentiable import operations
from liedyn.differentiable.quaternions import rates, rotations, tangent, with_unit_quaternions

STEP = 0.01  # differences of order 8: truncation 1e-16 f^(9), rounding 1e-14 f
BALLS = ["revolute", "free", "spherical", "prismatic", "planar", "universal"]


def tree():
    """All kinds of joints, balls and free ones among them."""
    return random_tree(np.random.default_rng(3), MOVING_KINDS).build()


ROBOTS = {"panda": lambda: ld.load("panda"), "all joints": tree}
OPERATIONS = {"rnea": operations.inverse_dynamics, "forward_dynamics": operations.forward_dynamics,
              "forward_kinematics": operations.poses,
              "pose": lambda robot: operations.poses(robot, robot.body_names[-1])}


def arguments(operation, rng, count=3):
    """States at random, with quaternions of any length."""
    robot = operation.robot
    q = ld.random_configuration(robot, rng, count)
    for k, _, _ in rotations(robot):
        q[:, k:k + 4] *= rng.uniform(0.5, 2.0, size=(count, 1))
    return q, *(rng.normal(size=(count, *shape)) for name, shape in operation.arguments.items() if name != "q")


def differences(operation, x, i):
    """For each result its derivatives by the numbers of argument i, by central differences of order 8."""
    columns = []
    for c in range(operations.size(x[i].shape[1:])):
        unit = np.zeros(x[i][0].size)
        unit[c] = STEP
        unit, sides = unit.reshape(x[i].shape[1:]), {**STENCIL, **{-k: -w for k, w in STENCIL.items()}}
        results = [operation.evaluate(*x[:i], x[i] + k * unit, *x[i + 1:]) for k in sides]
        columns.append([sum(w * y for w, y in zip(sides.values(), each)) / STEP for each in zip(*results)])
    return [np.stack([np.reshape(y, (len(y), -1)) for y in each], axis=-1) for each in zip(*columns)]


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("robot", ROBOTS)
def test_derivatives_by_numbers_are_those_of_differences(robot, name):
    operation = OPERATIONS[name](ROBOTS[robot]())
    x = arguments(operation, np.random.default_rng(1))
    found, matrices = operation.differentiate(*x)
    for actual, expected in zip(found, operation.evaluate(*x)):
        assert np.array_equal(actual, expected)
    for i in range(len(x)):
        for actual, expected in zip(matrices[i::len(x)], differences(operation, x, i)):
            assert off(actual, expected) < 1e-9


def test_quaternions_of_any_length_are_rotations():
    """f(Q) = f(Q / |Q|), and the derivative along Q is zero."""
    operation = operations.forward_dynamics(tree())
    rng = np.random.default_rng(2)
    q, v, tau = arguments(operation, rng)
    unit, lengths = with_unit_quaternions(operation.robot, q)
    assert lengths.shape == (3, len(rotations(operation.robot))) and (abs(lengths - 1.0) > 1e-3).any()
    assert off(operation.evaluate(q, v, tau)[0], ld.aba(operation.robot, unit, v, tau)) < 1e-14
    slopes = operation.differentiate(q, v, tau)[1][0]
    for k, _, _ in rotations(operation.robot):
        along = np.zeros_like(q)
        along[:, k:k + 4] = q[:, k:k + 4]
        assert np.abs(slopes @ along[..., None]).max() < 1e-13 * np.abs(slopes).max()


def test_rates_of_numbers():
    """Q theta is the rate of q exp(t theta), and W its left inverse that is zero along quaternions."""
    robot, rng = tree(), np.random.default_rng(3)
    q, theta = ld.random_configuration(robot, rng), rng.normal(size=robot.nv)
    moved = sum(w * (ld.integrate(robot, q, k * STEP * theta) - ld.integrate(robot, q, -k * STEP * theta))
                for k, w in STENCIL.items()) / STEP
    Q = rates(robot, q)
    assert off(Q @ theta, moved) < 1e-11  # truncation of |theta| = 3
    W = tangent(robot, q, np.ones(len(rotations(robot))))
    assert off(W @ Q, np.eye(robot.nv)) < 1e-14
    assert np.linalg.matrix_rank(W) == robot.nv and np.abs(W @ (np.eye(robot.nq) - Q @ W)).max() < 1e-14


def test_a_quaternion_of_length_zero():
    robot = ld.load("solo12")
    q = robot.home.copy()
    q[:4] = 0.0
    with pytest.raises(ld.InputError, match="quaternion of joint .* is zero"):
        operations.forward_dynamics(robot).evaluate(q, np.zeros(robot.nv), np.zeros(robot.nv))


def test_operations_are_kept_with_the_robot_and_travel_with_it():
    robot = ld.load("panda")
    operation = operations.forward_dynamics(robot)
    operation.memo["of a framework"] = lambda: None  # cannot be pickled
    assert operations.forward_dynamics(robot) is operation
    for other in (pickle.loads(pickle.dumps(robot)), copy.deepcopy(robot)):
        x = robot.home, np.zeros(7), np.ones(7)
        assert np.array_equal(operations.forward_dynamics(other).evaluate(*x)[0], operation.evaluate(*x)[0])


def test_unknown_bodies():
    with pytest.raises(ld.InputError, match="unknown body 'hnd'"):
        operations.poses(ld.load("panda"), "hnd")
