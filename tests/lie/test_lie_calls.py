"""SE(3) and SO(3): batches, users' compiled code, lanes, and what is told of wrong arguments."""
import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError
from users import kept

from liedyn import lie
from liedyn.lie import (
    Ad, ad, compose, exp, exponential, hat, inverse, left_jacobian, log, so3_exp, so3_log, spatial_inertia,
    transform_inertia, vee,
)
from liedyn.machine.errors import InputError
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH
from liedyn.model.packed_records import get6, put3, put9, put_pose
from test_lie import EPS, twist_of_angle


@pytest.fixture
def rng():
    return np.random.default_rng(20240711)


def test_batches_equal_single_calls(rng):
    V = rng.normal(size=(2, 5, 6))
    for function in (exp, left_jacobian, ad, hat):
        assert np.array_equal(function(V)[1, 3], function(V[1, 3]))
    T = exp(V)
    for function in (log, inverse, Ad):
        assert np.array_equal(function(T)[1, 3], function(T[1, 3]))
    product = compose(T, T[:, :1])  # broadcast
    assert product.shape == (2, 5, 4, 4) and np.array_equal(product[1, 3], compose(T[1, 3], T[1, 0]))
    inertia = spatial_inertia([1.0, 2.0], np.zeros(3), np.eye(3))
    assert inertia.shape == (2, 6, 6) and inertia[1, 5, 5] == 2.0
    assert exp(np.empty((0, 6))).shape == (0, 4, 4)
    strided = np.asfortranarray(V[0].T).T[::2]
    strided.flags.writeable = False
    assert np.array_equal(exp(strided), exp(V[0, ::2].copy()))
    assert np.array_equal(exp([0, 0, 1, 2, 3, 4]), exp(np.array([0, 0, 1, 2, 3, 4], dtype=np.float32)))
    assert np.array_equal(transform_inertia(I=ad(V[0, 0]), T=T[0, 0]), transform_inertia(T[0, 0], ad(V[0, 0])))


@kept
def every_function(V, mass):
    """Sum of all functions of the layer, in a user's own compiled code."""
    w, W = V[:3], lie.so3_hat(V[:3])
    R, T = lie.so3_exp(w), lie.exp(V)
    vectors = lie.so3_vee(W) + lie.so3_log(R) + lie.act(T, w)
    matrices = (W + R + lie.so3_left_jacobian(w) + lie.so3_right_jacobian(w) + lie.so3_left_jacobian_inverse(w)
                + lie.so3_right_jacobian_inverse(w) + lie.rotation_from_quaternion(lie.quaternion_from_rotation(R)))
    twists = lie.log(T) + lie.vee(lie.hat(V))
    poses = lie.compose(T, lie.inverse(T)) + T
    maps = (lie.Ad(T) + lie.Ad_dual(T) + lie.ad(V) + lie.ad_dual(V) + lie.left_jacobian(V) + lie.right_jacobian(V)
            + lie.left_jacobian_inverse(V) + lie.right_jacobian_inverse(V)
            + lie.transform_inertia(T, lie.spatial_inertia(mass, w, np.eye(3))))
    matrices = matrices + lie.so3_right_jacobian_inverse_slope(w, w) + lie.so3_right_jacobian_inverse_curvature(w, w, w)
    maps = maps + lie.right_jacobian_inverse_slope(V, V) + lie.right_jacobian_inverse_curvature(V, V, V)
    return vectors, matrices, twists, poses, maps


def test_compiled_callers_get_the_same_numbers(rng):
    V = rng.normal(size=6)
    for compiled, interpreted in zip(every_function(V, 1.5), every_function.py_func(V, 1.5)):
        # sums of up to ten terms; the compiler may fuse a product and a sum
        assert abs(compiled - interpreted).max() < 100 * EPS


def test_every_function_is_tried_in_compiled_code():
    used = set(every_function.py_func.__code__.co_names)
    assert set(lie.__all__) <= used


@kept
def tuple_maps(lane, twists, out):
    V = get6(lane, twists, 0)
    put_pose(lane, out, 0, exponential.exp(V))
    for k, (A, Q) in enumerate((exponential.left_jacobian(V), exponential.left_jacobian_inverse(V))):
        put9(lane, out, 12 + 18 * k, A)
        put9(lane, out, 21 + 18 * k, Q)
    x, y, z, w = exponential.quaternion_exp(V[0])
    put3(lane, out, 48, exponential.quaternion_log(x, y, z, w))


def test_formulas_on_lanes(rng):
    """One formula for floats and lanes; angles on both sides of the switch from series to closed form in one call."""
    V = np.array([twist_of_angle(rng, angle) for angle in np.linspace(0.0, 3.0, WIDTH)])
    single, together = np.empty((WIDTH, 51)), np.empty((51, WIDTH))
    for one, numbers in zip(V, single):
        tuple_maps(SCALAR, one, numbers)
    tuple_maps(LANES, V.T.ravel(), together.ravel())
    # fused or not, an operation rounds by half an EPS
    assert abs(together.T - single).max() < 20 * EPS
    assert abs(single[:, 48:] - V[:, :3]).max() < 20 * EPS


def test_compiled_callers_are_told_of_wrong_shapes():
    @njit
    def wrong(x):
        return so3_exp(x)

    with pytest.raises(TypingError, match=r"so3_exp: w must be a vector, an array of shape \(3,\)"):
        wrong(np.eye(3))
    with pytest.raises(InputError, match=r"a vector has shape \(3,\)"):
        wrong(np.ones(4))


@pytest.mark.parametrize("call, message", [
    (lambda: exp([1.0, 2.0]), r"V must be a twist \(omega, v\) of shape \(\.\.\., 6\), got \(2,\)"),
    (lambda: exp("abc"), "V must be numbers"),
    (lambda: log(np.eye(3)), r"T must be a pose of shape \(\.\.\., 4, 4\), got \(3, 3\)"),
    (lambda: log(2 * np.eye(4)), "T is not a pose"),
    (lambda: log(np.diag([1.0, 1.0, -1.0, 1.0])), "T is not a pose"),
    (lambda: log(np.eye(4) + np.eye(4)[[1, 0, 2, 3]] * [0, 0, 0, 1.0]), "T is not a pose"),
    (lambda: so3_log(np.diag([1.0, -1.0, 1.0])), "R is not a rotation"),
    (lambda: so3_log(np.full((3, 3), np.nan)), "R is not finite"),
    (lambda: exp([0.0, 0.0, np.inf, 0.0, 0.0, 0.0]), "V is not finite"),
    (lambda: vee(np.eye(4)), r"is not an element of se\(3\)"),
    (lambda: lie.so3_vee(np.eye(3)), "W is not a skew-symmetric matrix"),
    (lambda: spatial_inertia(1.0, np.zeros(3), np.triu(np.ones((3, 3)))), "inertia is not a symmetric matrix"),
    (lambda: lie.rotation_from_quaternion(np.zeros(4)), "quat is not a quaternion"),
    (lambda: compose(np.tile(np.eye(4), (2, 1, 1)), np.tile(np.eye(4), (3, 1, 1))), "leading axes do not broadcast"),
])
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_wrong_number_of_arguments():
    with pytest.raises(TypeError):
        exp()
    with pytest.raises(TypeError):
        compose(np.eye(4), twist=np.eye(4))
