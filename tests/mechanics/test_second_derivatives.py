"""Second derivatives of inverse and forward dynamics: sixty digits, and the laws they obey."""
import numpy as np
import pytest
from mechanisms import random_tree
from test_energy import springy_tree
from tree_cases import bundled, chain, off

import liedyn as ld
from liedyn import kernels
from liedyn.machine.simd.lanes import SCALAR
from tests.exact_trees import ExactTree

TREES = {
    "springs": lambda: springy_tree(1),
    "floating, springs": lambda: springy_tree(2, first="free"),
    "branches": lambda: random_tree(np.random.default_rng(5), ["spherical", "free", *["revolute"] * 7, "helical"],
                                    gravity=(0.5, -1.0, -9.81)).build(),
    "chain": lambda: chain(11),
    "panda": lambda: bundled("panda"),
}


@pytest.fixture(scope="module", params=TREES)
def robot(request):
    return TREES[request.param]()


@pytest.fixture
def rng():
    return np.random.default_rng(91)


def state(robot, rng, lead=()):
    """Balls turned by less than sqrt(3), away from the kink of their springs' potential at half a turn."""
    q = ld.integrate(robot, ld.neutral(robot), rng.uniform(-1.0, 1.0, size=(*lead, robot.nv)))
    return q, *rng.normal(size=(2, *lead, robot.nv))


def wrenches(robot, rng, lead=()):
    return 10.0 * rng.normal(size=(*lead, robot.nbodies, 6))


def brackets(robot):
    """C with C[:, k, j] = ad(e_k) e_j in the tangent space: zero but within balls and free joints."""
    C, j = np.zeros((robot.nv,) * 3), 0
    joints = {joint.name: joint for joint in robot.model.joints}
    for joint in map(joints.get, robot.joint_names):
        n = len(joint.armature)
        if joint.kind in ("spherical", "free"):
            for c, d in np.ndindex(n, n):
                (w, u), (x, y) = np.eye(6)[c].reshape(2, 3), np.eye(6)[d].reshape(2, 3)
                C[j:j + n, j + c, j + d] = np.concatenate([np.cross(w, x), np.cross(w, y) + np.cross(u, x)])[:n]
        j += n
    return C


@pytest.mark.validation("second derivatives of inverse dynamics",
                        robots="trees of all joint kinds with springs and wrenches, panda",
                        oracle="Newton and Euler in 60 digits")
def test_against_sixty_digits(robot, rng):
    q, v, a = state(robot, rng)
    F = wrenches(robot, rng)
    tensors = ld.rnea_second_derivatives(robot, q, v, a, F)
    exact = ExactTree(robot)
    f_ext = dict(zip(robot.body_names, F))
    tau = exact.forces(*map(exact.number, (q, v, a)), f_ext)
    assert off(ld.rnea(robot, q, v, a, F), tau.astype(float)) < 1e-13  # the oracle means the same
    for _ in range(3):
        d, e = rng.normal(size=(2, robot.nv))
        for tensor, right in zip(tensors, exact.second_derivatives(q, v, a, f_ext, d, e)):
            # of the largest entry, which is smaller than what it adds up to
            assert abs(np.einsum("ijk,j,k", tensor, d, e) - right).max() < 1e-12 * abs(tensor).max()
            off(np.einsum("ijk,j,k", tensor, d, e), right)


@pytest.mark.validation("second derivatives of inverse and forward dynamics, whole and contracted, at other states",
                        robots="a tree of every joint kind, panda, solo12", oracle="Newton and Euler in 60 digits")
@pytest.mark.parametrize("name", ["every kind", "panda", "solo12"])
def test_other_states_against_sixty_digits(name):
    robot, rng = springy_tree(77) if name == "every kind" else ld.load(name), np.random.default_rng(101)
    q = ld.integrate(robot, robot.neutral, rng.uniform(-1.2, 1.2, size=robot.nv))
    (v, a), F, weights = 2.0 * rng.normal(size=(2, robot.nv)), wrenches(robot, rng), rng.normal(size=robot.nv)
    (d, e), exact, f_ext = rng.normal(size=(2, robot.nv)), ExactTree(robot), dict(zip(robot.body_names, F))
    tau = 100.0 * rng.normal(size=robot.nv)
    cases = [(ld.rnea_second_derivatives, a, exact.second_derivatives(q, v, a, f_ext, d, e), 1e-12)]
    if name != "every kind":
        cases.append((ld.aba_second_derivatives, tau,
                      exact.second_derivatives_of_accelerations(q, v, tau, f_ext, d, e), 1e-10))
    for function, x, expected, tolerance in cases:
        whole, weighted = function(robot, q, v, x, F), function(robot, q, v, x, F, weights)
        for tensor, matrix, right in zip(whole, weighted, expected):
            assert abs(np.einsum("ijk,j,k", tensor, d, e) - right).max() < tolerance * abs(tensor).max()
            assert abs(d @ matrix @ e - weights @ right) < tolerance * abs(matrix).max() * robot.nv
            off(np.einsum("ijk,j,k", tensor, d, e), right)


def test_weights_contract_the_forces(robot, rng):
    q, v, a = state(robot, rng)
    F, weights = wrenches(robot, rng), rng.normal(size=robot.nv)
    whole = ld.rnea_second_derivatives(robot, q, v, a, F)
    for tensor, matrix in zip(whole, ld.rnea_second_derivatives(robot, q, v, a, F, weights)):
        assert off(matrix, np.einsum("i,ijk", weights, tensor)) < 1e-14 * robot.nv


def test_symmetries(robot, rng):
    q, v, a = state(robot, rng)
    qq, vv, qv, qa = ld.rnea_second_derivatives(robot, q, v, a, wrenches(robot, rng))
    assert np.array_equal(qq, qq.swapaxes(1, 2))
    assert off(vv, vv.swapaxes(1, 2)) < 1e-14
    assert off(qa, qa.transpose(2, 1, 0)) < 1e-14  # those of the inertia matrix
    # what velocities add to the forces has the power v . dM/dt v / 2, so that energy is kept
    power = np.einsum("i,ijk,j,k", v, vv, v, v)
    assert abs(power - np.einsum("ijk,i,j,k", qa, v, v, v)) < 1e-13 * abs(qa).max() * (v @ v) ** 1.5


def test_remainders_of_third_order(rng):
    """tau less its Taylor polynomial of degree two falls with the third power of the step, on mechanisms at random."""
    for seed in range(4):
        robot = springy_tree(10 + seed, first=("free", None, "spherical", None)[seed])
        (q, v, a), F = state(robot, rng), wrenches(robot, rng)
        d, e, b = rng.normal(size=(3, robot.nv))
        T_q, T_v, M = ld.rnea_derivatives(robot, q, v, a, F)
        qq, vv, qv, qa = ld.rnea_second_derivatives(robot, q, v, a, F)
        slope = T_q @ d + T_v @ e + M @ b
        bend = qq @ d @ d / 2 + vv @ e @ e / 2 + qv @ e @ d + qa @ b @ d
        left = [ld.rnea(robot, ld.integrate(robot, q, h * d), v + h * e, a + h * b, F)
                - ld.rnea(robot, q, v, a, F) - h * slope - h * h * bend for h in (2e-2, 1e-2, 5e-3)]
        sizes = np.linalg.norm(left, axis=1)
        assert 7.0 < sizes[0] / sizes[1] < 9.0 and 7.5 < sizes[1] / sizes[2] < 8.5


def test_one_derivative_after_the_other(robot, rng):
    """L_jk = qq_jk + T_q ad(e_k) e_j / 2 is what central differences of the first derivatives give."""
    (q, v, a), F, h = state(robot, rng), wrenches(robot, rng), 1e-4
    qq = ld.rnea_second_derivatives(robot, q, v, a, F)[0]
    T_q = ld.rnea_derivatives(robot, q, v, a, F)[0]
    sides = [ld.rnea_derivatives(robot, ld.integrate(robot, q, s * h * np.eye(robot.nv)), v, a, F)[0] for s in (1, -1)]
    L = np.moveaxis((sides[0] - sides[1]) / (2 * h), 0, -1)
    assert off(qq + np.einsum("ia,akj->ijk", T_q, brackets(robot)) / 2, L) < 1e-6  # h^2 and EPS / h


@pytest.mark.parametrize("lead", [(19,), (2, 3)], ids=repr)
def test_batches(robot, rng, lead):
    (q, v, a), F, weights = state(robot, rng, lead), wrenches(robot, rng, lead), rng.normal(size=(*lead, robot.nv))
    for given, shape in ((None, (robot.nv,) * 3), (weights, (robot.nv,) * 2)):
        together = ld.rnea_second_derivatives(robot, q, v, a, F, given)
        for k in np.ndindex(lead):
            one = ld.rnea_second_derivatives(robot, q[k], v[k], a[k], F[k], None if given is None else given[k])
            for x, y in zip(together, one):
                assert x.shape == lead + shape
                assert off(x[k], y) < 1e-13  # lanes may fuse other products and sums
    first = (0,) * len(lead)
    for x, y in zip(ld.rnea_second_derivatives(robot, q, v, a),
                    ld.rnea_second_derivatives(robot, q[first], v[first], a[first])):
        assert off(x[first], y) < 1e-13


def test_weights_may_be_the_same_for_all_states(rng):
    robot = TREES["chain"]()
    q, v, a = state(robot, rng, (5,))
    weights = rng.normal(size=robot.nv)
    for x, y in zip(ld.rnea_second_derivatives(robot, q, v, a, weights=weights),
                    ld.rnea_second_derivatives(robot, q, v, a, weights=np.tile(weights, (5, 1)))):
        assert np.array_equal(x, y)
    with pytest.raises(ld.InputError, match=r"weights must have shape \(..., 11\)"):
        ld.rnea_second_derivatives(robot, q, v, a, weights=weights[:3])


def test_zeros_and_guards(rng):
    """A kernel for tensors that hold zeros already leaves the same; both stay within their arrays and workspaces."""
    robot = TREES["branches"]()
    (q, v, a), n, F = state(robot, rng), robot.nv, np.empty(0)
    size, weights = len(kernels.workspace(robot)), v[::-1].copy()
    work = np.full(size + 64, np.pi)
    for name, given, shape in (("rnea_second_derivatives", (), n**3), ("rnea_hessian", (weights,), n**2)):
        every, nonzero = np.full((4, shape + 32), np.e), np.full((4, shape + 32), np.e)
        every[:, :shape], nonzero[:, :shape] = np.nan, 0.0
        getattr(kernels, name)(SCALAR, robot.packed, q, v, a, *given, F, work, *every)
        getattr(kernels, f"{name}_nonzeros")(SCALAR, robot.packed, q, v, a, *given, F, work, *nonzero)
        assert np.array_equal(every, nonzero) and (every[:, shape:] == np.e).all() and (work[size:] == np.pi).all()
        right = ld.rnea_second_derivatives(robot, q, v, a, weights=given[0] if given else None)
        assert all(off(x[:shape], np.ravel(y)) < 1e-13 for x, y in zip(every, right))  # that may have been interpreted


# ---- forward dynamics


@pytest.mark.validation("second derivatives of forward dynamics", robots="a tree of branches, panda",
                        oracle="Newton and Euler in 60 digits")
@pytest.mark.parametrize("name", ["branches", "panda"])
def test_forward_dynamics_against_sixty_digits(name, rng):
    robot = TREES[name]()
    (q, v, tau), F = state(robot, rng), wrenches(robot, rng)
    tensors, exact = ld.aba_second_derivatives(robot, q, v, tau, F), ExactTree(robot)
    d, e = rng.normal(size=(2, robot.nv))
    right = exact.second_derivatives_of_accelerations(q, v, tau, dict(zip(robot.body_names, F)), d, e)
    for tensor, x in zip(tensors, right):
        # the condition of M comes in
        assert abs(np.einsum("ijk,j,k", tensor, d, e) - x).max() < 1e-10 * abs(tensor).max()
        off(np.einsum("ijk,j,k", tensor, d, e), x)


def test_forward_and_inverse_dynamics_undo_each_other(robot, rng):
    """tau(q, v, a(q, v, tau)) = tau, differentiated twice; and weights contract accelerations."""
    (q, v, tau), F, weights = state(robot, rng), wrenches(robot, rng), rng.normal(size=robot.nv)
    qq, vv, qv, qtau = tensors = ld.aba_second_derivatives(robot, q, v, tau, F)
    a = ld.aba(robot, q, v, tau, F)
    by_q, by_v, Minv = ld.aba_derivatives(robot, q, v, tau, F)
    M = ld.crba(robot, q)
    id_qq, id_vv, id_qv, id_qa = ld.rnea_second_derivatives(robot, q, v, a, F)
    carried = id_qa @ by_q
    assert off(-np.tensordot(M, qq, 1), id_qq + carried + carried.swapaxes(1, 2)) < 1e-11
    assert off(-np.tensordot(M, vv, 1), id_vv) < 1e-11
    assert off(-np.tensordot(M, qv, 1), id_qv + id_qa @ by_v) < 1e-11
    assert off(-np.tensordot(M, qtau, 1), id_qa @ Minv) < 1e-11
    for tensor, matrix in zip(tensors, ld.aba_second_derivatives(robot, q, v, tau, F, weights)):
        # both are as exact as M^-1
        assert abs(matrix - np.einsum("i,ijk", weights, tensor)).max() < 1e-11 * abs(tensor).max() * robot.nv


def test_remainders_of_accelerations(rng):
    for seed in (10, 11):
        robot = springy_tree(seed, first="free")
        (q, v, tau), F = state(robot, rng), wrenches(robot, rng)
        d, e, b = rng.normal(size=(3, robot.nv))
        a_q, a_v, Minv = ld.aba_derivatives(robot, q, v, tau, F)
        qq, vv, qv, qtau = ld.aba_second_derivatives(robot, q, v, tau, F)
        slope = a_q @ d + a_v @ e + Minv @ b
        bend = qq @ d @ d / 2 + vv @ e @ e / 2 + qv @ e @ d + qtau @ b @ d
        left = [ld.aba(robot, ld.integrate(robot, q, h * d), v + h * e, tau + h * b, F)
                - ld.aba(robot, q, v, tau, F) - h * slope - h * h * bend for h in (2e-3, 1e-3)]
        sizes = np.linalg.norm(left, axis=1)
        assert 7.0 < sizes[0] / sizes[1] < 9.0


def test_batches_of_accelerations(robot, rng):
    (q, v, tau), F, weights = state(robot, rng, (9,)), wrenches(robot, rng, (9,)), rng.normal(size=(9, robot.nv))
    for given in (None, weights):
        together = ld.aba_second_derivatives(robot, q, v, tau, F, given)
        for k in (0, 4, 8):
            one = ld.aba_second_derivatives(robot, q[k], v[k], tau[k], F[k], None if given is None else given[k])
            for x, y in zip(together, one):
                assert off(x[k], y) < 1e-11  # the condition of M magnifies rounding
