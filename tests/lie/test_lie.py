"""SE(3) and SO(3): their laws, and every map against its definition in 50-digit arithmetic.

Accuracy is claimed in units of rounding, EPS = 2^-52, relative to the largest entry of the result.
"""

import mpmath as mp
import numpy as np
import pytest
from numba import njit
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from liedyn import lie
from liedyn.lie import (
    Ad, Ad_dual, ad, ad_dual, compose, exp, exponential, hat, inverse, left_jacobian, log, right_jacobian, so3_exp,
    so3_hat, so3_left_jacobian, so3_log, spatial_inertia, transform_inertia, vee,
)

EPS = 2.0**-52
# Zero, tiny, both sides of the switch from series to closed form (1 rad), near half a turn, beyond.
ANGLES = [0.0, 1e-160, 1e-12, 1e-9, 1e-4, 0.1, 0.999, 1.001, 2.0, 3.0, np.pi - 1e-3, np.pi - 1e-9]
LARGE_ANGLES = [np.pi, 4.0, 5.5, 20.0]


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(20240711)


def twist_of_angle(rng, angle):
    w = rng.normal(size=3)
    return np.concatenate([angle * w / np.linalg.norm(w), rng.normal(size=3)])


def random_poses(rng, *lead):
    poses = np.zeros((*lead, 4, 4))
    poses[..., :3, :3] = Rotation.random(int(np.prod(lead)), random_state=rng).as_matrix().reshape(*lead, 3, 3)
    poses[..., :3, 3] = rng.normal(size=(*lead, 3))
    poses[..., 3, 3] = 1.0
    return poses


# ---- the definitions, in 50 digits


def exact(x):
    return mp.matrix(np.atleast_2d(x).tolist())


def exact_skew(w):
    return mp.matrix([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def exact_hat(V):
    out = mp.zeros(4)
    out[:3, :3] = exact_skew(V[:3])
    out[:3, 3] = mp.matrix(V[3:])
    return out


def exact_ad(V):
    out = mp.zeros(6)
    out[:3, :3] = out[3:, 3:] = exact_skew(V[:3])
    out[3:, :3] = exact_skew(V[3:])
    return out


def exact_exp(matrix):
    return mp.expm(matrix, method="taylor")


def exact_left_jacobian(bracket):
    """The sum of bracket^k / (k + 1)!, out of the exponential of a block matrix."""
    n = bracket.rows
    block = mp.zeros(2 * n)
    block[:n, :n] = bracket
    block[:n, n:] = mp.eye(n)
    return exact_exp(block)[:n, n:]


def error(computed, reference):
    """Largest error in units of rounding of the largest entry."""
    worst = max(abs(c - mp.mpf(r)) for c, r in zip(exact(computed), reference))
    return float(worst / max(abs(mp.mpf(r)) for r in reference) / EPS)


# ---- group and algebra


def test_poses_are_a_group(rng):
    A, B, C = random_poses(rng, 3, 50)
    # each entry of a product is a sum of four terms of order one to ten
    assert abs(compose(compose(A, B), C) - compose(A, compose(B, C))).max() < 200 * EPS
    assert abs(compose(A, inverse(A)) - np.eye(4)).max() < 50 * EPS
    assert abs(compose(inverse(A), A) - np.eye(4)).max() < 50 * EPS
    assert np.array_equal(compose(A, np.eye(4)), A)
    assert abs(compose(A, B) - A @ B).max() < 50 * EPS
    x = rng.normal(size=(50, 3))
    assert abs(lie.act(compose(A, B), x) - lie.act(A, lie.act(B, x))).max() < 100 * EPS


def test_bracket_is_a_lie_bracket(rng):
    x, y, z = rng.normal(size=(3, 6))
    assert abs(ad(x) @ y + ad(y) @ x).max() < 20 * EPS
    jacobi = ad(x) @ ad(y) @ z + ad(z) @ ad(x) @ y + ad(y) @ ad(z) @ x
    assert abs(jacobi).max() < 200 * EPS
    bracket = hat(x) @ hat(y) - hat(y) @ hat(x)
    assert abs(vee(bracket) - ad(x) @ y).max() < 20 * EPS


def test_hat_and_vee_are_inverse_and_place_entries(rng):
    V = rng.normal(size=6)
    assert np.array_equal(vee(hat(V)), V)
    assert np.array_equal(lie.so3_vee(so3_hat(V[:3])), V[:3])
    assert abs(so3_hat(V[:3]) @ V[3:] - np.cross(V[:3], V[3:])).max() < 10 * EPS
    assert np.array_equal(hat(V)[:3, 3], V[3:]) and not hat(V)[3].any()


def test_adjoint_identities(rng):
    G, H = random_poses(rng, 2)
    x, y, F = rng.normal(size=(3, 6))
    assert abs(hat(Ad(G) @ x) - G @ hat(x) @ inverse(G)).max() < 100 * EPS
    assert abs(Ad(compose(G, H)) - Ad(G) @ Ad(H)).max() < 100 * EPS
    assert abs(Ad(inverse(G)) @ Ad(G) - np.eye(6)).max() < 100 * EPS
    assert abs(Ad(G) @ ad(x) @ y - ad(Ad(G) @ x) @ Ad(G) @ y).max() < 500 * EPS
    assert np.array_equal(Ad_dual(G), Ad(G).T) and np.array_equal(ad_dual(x), ad(x).T)
    # the power of a wrench on a twist does not depend on the frame
    assert abs((Ad_dual(G) @ F) @ x - F @ (Ad(G) @ x)) < 100 * EPS


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, 3.0, np.pi])
def test_adjoint_of_exponential_is_exponential_of_bracket(rng, angle):
    V = twist_of_angle(rng, angle)
    assert error(Ad(exp(V)), exact_exp(exact_ad(V.tolist()))) < 20


# ---- exponential and logarithm


@pytest.mark.parametrize("angle", ANGLES + LARGE_ANGLES)
def test_exponential(rng, angle):
    for _ in range(3):
        V = twist_of_angle(rng, angle)
        # the angle itself is rounded once: half an EPS of it
        bound = 6 + angle
        assert error(exp(V), exact_exp(exact_hat(V.tolist()))) < bound
        assert error(so3_exp(V[:3]), exact_exp(exact_skew(V[:3].tolist()))) < bound


def test_exponential_against_scipy(rng):
    """A second opinion; SciPy's general algorithm is good to some tens of EPS."""
    V = rng.normal(size=(20, 6))
    assert abs(exp(V) - expm(hat(V))).max() < 200 * EPS
    assert abs(so3_exp(V[:, :3]) - Rotation.from_rotvec(V[:, :3]).as_matrix()).max() < 10 * EPS


@pytest.mark.parametrize("angle", ANGLES)
def test_logarithm(rng, angle):
    for _ in range(3):
        V = twist_of_angle(rng, angle)
        T = np.array(exact_exp(exact_hat(V.tolist())).tolist(), dtype=float)  # right to the last digit
        # the rounding of T alone moves the twist by as much
        assert error(log(T), V.tolist()) < 6
        if angle > 1e-150:
            assert error(so3_log(T[:3, :3]), V[:3].tolist()) < 6


def test_round_trips_of_random_twists(rng):
    V = np.array([twist_of_angle(rng, angle) for angle in rng.uniform(0.0, 3.14, size=300)])
    assert abs(log(exp(V)) - V).max() < 50 * EPS
    T = random_poses(rng, 300)
    assert abs(exp(log(T)) - T).max() < 50 * EPS


def test_logarithm_at_half_a_turn(rng):
    """Exactly half a turn about coordinate axes, planes and any axis: each sense is right, and the pose comes back."""
    in_planes = [[0.6, 0.8, 0.0], [0.0, -0.6, 0.8], [-0.8, 0.0, 0.6]]
    axes = np.concatenate([np.eye(3), -np.eye(3), in_planes, rng.normal(size=(50, 3))])
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    T = np.tile(np.eye(4), (len(axes), 1, 1))
    T[:, :3, :3] = 2.0 * axes[:, :, None] * axes[:, None, :] - np.eye(3)
    T[:, :3, 3] = rng.normal(size=(len(axes), 3))
    V = log(T)
    assert abs(np.linalg.norm(V[:, :3], axis=1) - np.pi).max() < 4 * EPS
    assert abs(abs(np.sum(V[:, :3] * axes, axis=1)) - np.pi).max() < 10 * EPS
    assert abs(exp(V) - T).max() < 50 * EPS


def test_logarithm_takes_the_shorter_way(rng):
    V = twist_of_angle(rng, 4.0)
    assert np.linalg.norm(log(exp(V))[:3]) == pytest.approx(2 * np.pi - 4.0, rel=1e-14)


def test_quaternions(rng):
    R = Rotation.random(200, random_state=rng)
    quat = R.as_quat(canonical=True)
    assert abs(lie.quaternion_from_rotation(R.as_matrix()) - quat).max() < 10 * EPS
    assert abs(lie.rotation_from_quaternion(quat) - R.as_matrix()).max() < 10 * EPS
    # half turns: w = 0 and each of x, y, z may vanish
    for quat in ([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0.6, 0.8, 0, 0], [0.6, 0, -0.8, 0], [0, 0.6, 0.8, 0]):
        back = lie.quaternion_from_rotation(lie.rotation_from_quaternion(quat))
        assert abs(abs(back @ quat) - 1.0) < 4 * EPS
    # its length does not scale the rotation
    short, long = lie.rotation_from_quaternion([[0.3, 0.4, 0.5, 7.0], [3, 4, 5, 70]])
    assert abs(short - long).max() < 4 * EPS


# ---- Jacobians


@pytest.mark.parametrize("angle", ANGLES + LARGE_ANGLES)
def test_jacobians(rng, angle):
    for _ in range(2):
        V = twist_of_angle(rng, angle)
        J = exact_left_jacobian(exact_ad(V.tolist()))
        J_right = exact_left_jacobian(exact_ad((-V).tolist()))
        bound = 6 + angle
        assert error(left_jacobian(V), J) < bound
        assert error(right_jacobian(V), J_right) < bound
        # 2 pi is a pole: there the rounding of the angle counts 1 / |distance| times
        turn = abs(angle - 2 * np.pi * round(angle / (2 * np.pi))) if angle > np.pi else np.pi
        bound *= 10 / turn
        assert error(lie.left_jacobian_inverse(V), J**-1) < bound
        assert error(lie.right_jacobian_inverse(V), J_right**-1) < bound


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.999, 2.0, np.pi, 5.5])
def test_jacobians_of_rotations(rng, angle):
    w = twist_of_angle(rng, angle)[:3]
    J = exact_left_jacobian(exact_skew(w.tolist()))
    bound = 10 + 10 * angle
    assert error(so3_left_jacobian(w), J) < bound
    assert error(lie.so3_right_jacobian(w), J.T) < bound
    assert error(lie.so3_left_jacobian_inverse(w), J**-1) < bound
    assert error(lie.so3_right_jacobian_inverse(w), (J**-1).T) < bound


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, 3.0, np.pi])
def test_jacobians_are_derivatives_of_the_exponential(rng, angle):
    """The definition: exp(V + h e) exp(V)^-1 and exp(V)^-1 exp(V + h e), differenced with h = 1e-20 in 50 digits."""
    V = twist_of_angle(rng, angle).tolist()
    h = mp.mpf("1e-20")
    T_inverse = exact_exp(-exact_hat(V))
    left, right = mp.zeros(6), mp.zeros(6)
    for k in range(6):
        ahead, behind = (exact_hat([x + s * (i == k) for i, x in enumerate(V)]) for s in (h, -h))
        rate = (exact_exp(ahead) - exact_exp(behind)) / (2 * h)
        for J, g in ((left, rate * T_inverse), (right, T_inverse * rate)):
            J[:, k] = mp.matrix([g[2, 1], g[0, 2], g[1, 0], g[0, 3], g[1, 3], g[2, 3]])
    assert error(left_jacobian(V), left) < 20
    assert error(right_jacobian(V), right) < 20


@pytest.mark.parametrize("angle", [1e-9, 0.999, 1.001, 3.0])
def test_first_and_second_derivatives_of_inverse_jacobians(rng, angle):
    """Of J_r^-1(V) r by V, along two directions x and y, differenced with h = 1e-12 in 50 digits."""
    V, (r, c, x, y), h = twist_of_angle(rng, angle), rng.normal(size=(4, 6)), mp.mpf("1e-12")

    def rate(a, b):
        at = [mp.mpf(s) + h * (a * mp.mpf(p) + b * mp.mpf(q)) for s, p, q in zip(V, x, y)]
        return exact_left_jacobian(-exact_ad(at)) ** -1 * mp.matrix(r.tolist())

    ends = {(a, b): rate(a, b) for a in (-1, 1) for b in (-1, 1)}
    along = (ends[1, 1] + ends[1, -1] - ends[-1, 1] - ends[-1, -1]) / (4 * h)
    mixed = mp.matrix([c.tolist()]) * (ends[1, 1] - ends[1, -1] - ends[-1, 1] + ends[-1, -1]) / (4 * h * h)
    slope, curvature = lie.right_jacobian_inverse_slope(V, r), lie.right_jacobian_inverse_curvature(V, r, c)
    assert abs(slope @ x - np.array(along.tolist(), float)[:, 0]).max() < 20 * EPS * abs(slope).max()
    assert abs(x @ curvature @ y - float(mixed[0])) < 200 * EPS * abs(curvature).max()
    # rotations alone are the blocks on the diagonal, and below
    assert abs(lie.so3_right_jacobian_inverse_slope(V[:3], r[:3]) - slope[:3, :3]).max() < 4 * EPS
    assert abs(lie.so3_right_jacobian_inverse_curvature(V[:3], r[:3], c[3:]) - curvature[3:, :3]).max() < 4 * EPS


# ---- inertia


def test_inertia_gives_the_momentum_and_energy_of_its_particles(rng):
    points, masses = rng.normal(size=(20, 3)), rng.uniform(0.1, 1.0, size=20)
    com = masses @ points / masses.sum()
    about_com = sum(m * ((r @ r) * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, points - com))
    I = spatial_inertia(masses.sum(), com, about_com)
    V = rng.normal(size=6)
    velocities = V[3:] + np.cross(V[:3], points)
    momentum = masses @ np.hstack([np.cross(points, velocities), velocities])
    # sums of twenty terms of order one to ten
    assert abs(I @ V - momentum).max() < 500 * EPS
    assert V @ I @ V == pytest.approx(masses @ np.sum(velocities**2, axis=1), rel=1e-13)
    # seen from a frame in which the body has pose T
    T = random_poses(rng, 1)[0]
    moved = spatial_inertia(masses.sum(), lie.act(T, com), T[:3, :3] @ about_com @ T[:3, :3].T)
    assert abs(transform_inertia(T, I) - moved).max() < 500 * EPS
    assert abs(transform_inertia(inverse(T), moved) - I).max() < 2000 * EPS


def test_change_of_frame_takes_any_matrix_of_twists(rng):
    T, K = random_poses(rng, 1)[0], rng.normal(size=(6, 6))
    B = Ad(inverse(T))
    assert abs(transform_inertia(T, K) - B.T @ K @ B).max() < 200 * EPS


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.1, 0.999, 1.001, 2.0, 3.0, 3.14])
def test_rates_of_the_coefficient_of_inverse_jacobians(angle):
    """d = (1 - (t / 2) cot(t / 2)) / t^2 by its power series in t^2, and f' = (df/dt) / t twice."""
    s = mp.mpf(angle) ** 2
    terms = [abs(mp.bernoulli(2 * k)) / mp.factorial(2 * k) for k in range(1, 150)]
    exact = [sum(c * s ** k for k, c in enumerate(terms)),
             sum(2 * k * c * s ** (k - 1) for k, c in enumerate(terms) if k),
             sum(4 * k * (k - 1) * c * s ** (k - 2) for k, c in enumerate(terms) if k > 1)]
    # they stand beside one in the Jacobian; each rate divides by t^2 what rounding leaves of the one before
    for mine, other, most in zip(rates_of_d(angle ** 2), exact, (1, 8, 64)):
        assert abs(mine - other) < most * EPS


@njit
def rates_of_d(square):
    d = exponential.coefficient_d(square)
    rate = exponential.rate_d(square, d)
    return d, rate, exponential.second_rate_d(square, d, rate)
