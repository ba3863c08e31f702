"""The regressor of the inertial parameters: Y pi is inverse dynamics, its columns are Pinocchio's; other parameters."""
import numpy as np
import pinocchio as pin
import pytest
from pinocchio_models import against_pinocchio, pin_model
from tree_cases import TREES, off

import liedyn as ld
from liedyn.model.packed import dofs_of

PIN_ORDER = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]  # Pinocchio: xx, xy, yy, xz, yz, zz
BUNDLED = [name for name in ld.bundled() if ld.load(name).nv]


@pytest.fixture(params=list(TREES))
def tree(request):
    return TREES[request.param]()


def state(robot, seed, *size):
    rng = np.random.default_rng(seed)
    q = ld.random_configuration(robot, rng, *size)
    return q, *rng.normal(size=(2, *size, robot.nv))


def inverse_dynamics(robot, q, v, a):
    """What masses alone need: no springs, dampers and armatures."""
    still = ld.rnea(robot, q, 0 * v, 0 * a) - ld.rnea(without_springs(robot), q, 0 * v, 0 * a)
    armature, damping, _ = dofs_of(robot.packed)[1][:, :3].T
    return ld.rnea(robot, q, v, a) - still - armature * a - damping * v


def without_springs(robot):
    b = ld.Builder.of(robot)
    for joint in robot.model.joints:
        b.change("joint", joint.name, stiffness=None)
    return b.build()


def torques(Y, pi):
    return np.einsum("...jbk,bk->...j", Y, pi)


def pseudo_inertia(pi):
    """Sum of m (r, 1) (r, 1)^T (Wensing, Kim and Slotine 2018)."""
    m, h, J = pi[0], pi[1:4], np.zeros((3, 3))
    J[np.triu_indices(3)] = pi[4:]
    J = J + np.triu(J, 1).T
    return np.block([[np.trace(J) / 2 * np.eye(3) - J, h[:, None]], [h[None], np.array([[m]])]])


def parameters_of(P):
    J = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
    return np.concatenate([[P[3, 3]], P[:3, 3], J[np.triu_indices(3)]])


@pytest.mark.parametrize("name", BUNDLED)
def test_inverse_dynamics_of_every_robot(name):
    """Floating bases, balls and loops (cut open) too; 11 states fill lanes and a rest."""
    robot = ld.load(name)
    q, v, a = state(robot, 1, 11)
    Y, tau = ld.inertial_regressor(robot, q, v, a), inverse_dynamics(robot, q, v, a)
    assert Y.shape == (11, robot.nv, robot.nbodies, 10)
    # rounding of sums of a few hundred products, relative to the largest torque
    assert off(torques(Y, ld.inertial_parameters(robot)), tau) < 1e-13
    assert off(ld.inertial_regressor(robot, q[4], v[4], a[4]), Y[4]) < 1e-13


def test_inverse_dynamics_of_trees_of_all_joints(tree):
    q, v, a = state(tree, 2, 9)
    Y = ld.inertial_regressor(tree, q, v, a)
    assert off(torques(Y, ld.inertial_parameters(tree)), inverse_dynamics(tree, q, v, a)) < 1e-13


def test_it_is_that_of_any_bodies(tree):
    """Bodies of five random particles each in the place of the old ones; the regressor does not know them."""
    rng, (q, v, a) = np.random.default_rng(3), state(tree, 3)
    r = np.concatenate([rng.normal(size=(tree.nbodies, 5, 3)), np.ones((tree.nbodies, 5, 1))], axis=2)
    moments = np.einsum("bp,bpi,bpj->bij", rng.uniform(size=(tree.nbodies, 5)), r, r)
    pi = np.array([parameters_of(P) for P in moments])
    other = ld.with_inertial_parameters(tree, pi)
    assert off(torques(ld.inertial_regressor(tree, q, v, a), pi), inverse_dynamics(other, q, v, a)) < 1e-13


@against_pinocchio("regressor of inertial parameters")
def test_against_pinocchio(tree):
    """Columns of its joints, taken to the frames of the bodies; floating bases and balls in its own order."""
    oracle = pin_model(tree)
    for seed in range(5):
        q, v, a = state(tree, seed)
        theirs = pin.computeJointTorqueRegressor(oracle.model, oracle.data, *oracle.to_pin(q, v, a))
        rows = np.zeros_like(theirs)
        rows[oracle.v_order] = theirs
        Y = ld.inertial_regressor(tree, q, v, a)
        for b, name in enumerate(tree.body_names):
            frame = oracle.model.frames[oracle.frames[name]]
            expected = np.zeros((tree.nv, 10))
            if frame.parentJoint > 0:
                X = frame.placement.homogeneous
                move = np.stack([parameters_of(X @ pseudo_inertia(unit) @ X.T) for unit in np.eye(10)], axis=1)
                k = 10 * (frame.parentJoint - 1)
                expected = rows[:, k:k + 10][:, PIN_ORDER] @ move
            assert off(Y[:, b], expected) < 1e-12 or abs(Y[:, b] - expected).max() < 1e-13


def test_a_result_of_ones_own_is_filled():
    panda = ld.load("panda")
    q, v, a = state(panda, 4, 5)
    out = np.full((5, panda.nv, panda.nbodies, 10), np.nan)
    assert ld.inertial_regressor(panda, q, v, a, out=out) is out
    assert off(out, ld.inertial_regressor(panda, q, v, a)) == 0.0
    assert off(ld.inertial_regressor(panda, q[1], v[1], a[1], out=np.full(out.shape[1:], np.nan)), out[1]) < 1e-14


def test_parameters_there_and_back(tree):
    changed = ld.with_inertial_parameters(tree, ld.inertial_parameters(tree).ravel())
    for old, new in zip(tree.model.bodies, changed.model.bodies):
        assert old.mass == new.mass and off(new.com, old.com) < 1e-14
        # J - m (|c|^2 1 - c c^T) + m (|c|^2 1 - c c^T)
        size = abs(old.inertia).max() + old.mass * old.com @ old.com
        assert abs(new.inertia - old.inertia).max() <= 1e-14 * size


def test_what_else_a_robot_has_stays():
    loader = ld.load("loader").at(0.5)
    changed = ld.with_inertial_parameters(loader, 2.0 * ld.inertial_parameters(loader))
    assert changed.t == 0.5 and changed.active == loader.active and changed.independent == loader.independent
    assert ld.total_mass(changed) == pytest.approx(2.0 * ld.total_mass(loader), rel=1e-15)


def test_bodies_that_cannot_be_are_refused():
    robot = ld.load("slider_crank")
    pi = ld.inertial_parameters(robot)
    for k, value, what in ((0, -1.0, "mass: must not be negative"), (0, 0.0, "no mass, but the first moment"),
                           (9, -1.0, "negative principal moment")):
        wrong = pi.copy()
        wrong[0, k] = value
        with pytest.raises(ld.ModelError, match=f"'{robot.body_names[0]}'.*{what}"):
            ld.with_inertial_parameters(robot, wrong)
    with pytest.raises(ld.InputError, match=r"shape \(\d+, 10\)"):
        ld.with_inertial_parameters(robot, pi[:, :9])
