"""Inverse dynamics of constrained mechanisms, and what actuators can do: every kind of constraint, all machines."""

import numpy as np
import pytest
from closed_chains import closed_mechanism, difference, moving_state, off
from scipy.linalg import null_space
from test_constraint_rows import PARAMETERS, constrained, drive, swing
from tree_cases import bundled, wrenches

import liedyn as ld
from benchmarks.robots import moving_states
from liedyn import kernels
from liedyn.control.constrained import controllability, inverse_dynamics
from liedyn.machine.errors import ControllabilityError, InputError
from liedyn.mechanics.constraints import constraint_jacobian, velocity_error, virtual_jacobian
from liedyn.mechanics.constraints.independent import choose
from liedyn.mechanics.dynamics import forward_dynamics, passive_joint_map, projector
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.mechanics.tree.configuration import integrate
from liedyn.model import Builder
from liedyn.model.kinds import LOOP_KINDS

# rounding of forces of up to 1e4, times condition numbers of up to 1e3
TOLERANCE = 1e-9
MACHINES = {  # actuated coordinates (None: as declared); the loader's two cylinders sit in a chain of 15 rows
    "five_bar": ("q1", "q4"), "four_bar": ("crank",), "loader": None, "parallel_four_bar": ("q1", "q2"),
    "stewart": None, "slider_crank": ("rod",), "arm_on_circle": None,
}


def state_of(name, seed=0):
    robot = bundled(name)
    v, _ = moving_state(robot, robot.home, seed)
    return robot, robot.home, v


def agrees(robot, q, v, r, f_ext=None):
    """The forces satisfy the full equations of motion: forward dynamics gives back accelerations and multipliers."""
    back = forward_dynamics(robot, q, v, r.tau, independent="auto", f_ext=f_ext)
    size = max(1.0, np.abs(r.a).max(), np.abs(r.tau).max())
    assert np.abs(back.a - r.a).max() < TOLERANCE * size
    assert np.abs(back.lam - r.lam).max(initial=0.0) < TOLERANCE * max(size, np.abs(r.lam).max(initial=0.0))


@pytest.mark.parametrize("kind", [*LOOP_KINDS, *PARAMETERS, "coupling"])
def test_every_constraint_moving_or_not(kind):
    """Rheonomic, nonholonomic, of any rank; any configuration, and a velocity that all rows agree on."""
    robot, q, v, *_ = constrained(kind, drive if kind == "coupling" else swing)
    v = v - np.linalg.pinv(constraint_jacobian(robot, q)) @ velocity_error(robot, q, v)
    rng = np.random.default_rng(1)
    p = robot.nv - np.linalg.matrix_rank(constraint_jacobian(robot, q), tol=1e-9)
    w_dot, f_ext = rng.normal(size=p), wrenches(robot, rng)
    chosen = choose(robot, q, "auto", RANK_TOLERANCE)
    r = inverse_dynamics(robot, q, v, w_dot, independent="auto", f_ext=f_ext)
    assert off(chosen.matrix(virtual_jacobian(robot, q)) @ r.a, w_dot) < TOLERANCE
    agrees(robot, q, v, r, f_ext)
    # of all forces that do: none of it loads the constraints alone
    K = null_space(constraint_jacobian(robot, q))
    assert off(K @ K.T @ r.tau, r.tau) < TOLERANCE
    free = inverse_dynamics(robot.switched(tie=False), q, v, rng.normal(size=robot.nv), independent="auto")
    agrees(robot.switched(tie=False), q, v, free)
    assert not free.lam.any()


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("weighted", [False, True])
def test_shortest_forces_of_the_actuators(name, weighted):
    """Against least squares in the actuators' inputs: K^T B u = K^T (M a + h), tau^T W^-1 tau as small as can be."""
    robot, q, v = state_of(name)
    rng = np.random.default_rng(2)
    L = np.tril(rng.normal(size=(robot.nv, robot.nv)), -1) * 0.3 + np.diag(rng.uniform(0.5, 2.0, robot.nv))
    W = L @ L.T if weighted else np.eye(robot.nv)
    active = MACHINES[name]
    B = robot.actuator_matrix if active is None else np.eye(robot.nv)[:, [robot.velocity_index(k) for k in active]]
    K = null_space(constraint_jacobian(robot, q), rcond=1e-9)
    w_dot = rng.normal(size=K.shape[1])
    r = inverse_dynamics(robot, q, v, w_dot, active=active, metric=W)
    agrees(robot, q, v, r)
    assert off(B @ r.u, r.tau) < 1e-12
    M, h, *_ = terms_kernel(robot.packed, q, v, np.empty(0))
    # u = S x makes tau^T W^-1 tau = |x|^2, and least squares finds the smallest x
    root = np.linalg.cholesky(np.linalg.inv(W))
    Q, S = np.linalg.qr(root.T @ B)
    x = np.linalg.lstsq(K.T @ B @ np.linalg.inv(S), K.T @ (M @ r.a + h), rcond=1e-9)[0]
    assert off(B @ np.linalg.solve(S, x), r.tau) < TOLERANCE


def test_the_papers_projectors_make_the_same_forces():
    """(I + H) P^T (M a + h), with the public P and H (eq. 43, 58-60)."""
    robot, q, v = state_of("five_bar")
    for metric in (None, [1.0, 4.0, 0.25, 2.0]):
        r = inverse_dynamics(robot, q, v, [1.0, -2.0], active=["q1", "q4"], metric=metric)
        M, h, *_ = terms_kernel(robot.packed, q, v, np.empty(0))
        H, controllable = passive_joint_map(robot, q, active=["q1", "q4"], metric=metric)
        assert controllable
        assert off((np.eye(4) + H) @ projector(robot, q, metric=metric).T @ (M @ r.a + h), r.tau) < 1e-10


def test_virtual_coordinates():
    """A wanted second derivative of the angle at a cut pin is what that angle gets."""
    robot, q = closed_mechanism("cylindrical")
    v, _ = moving_state(robot, q)
    names = [*robot.virtual_names]
    chosen = choose(robot, q, "auto", RANK_TOLERANCE)
    for name in chosen.names:  # fill up with coordinates of the tree that keep the choice regular
        rows = np.vstack([constraint_jacobian(robot, q),
                          choose(robot, q, [*names, name], 1e-9).matrix(virtual_jacobian(robot, q))])
        if len(rows) <= robot.nv and np.linalg.svd(rows, compute_uv=False)[-1] > 0.03:
            names.append(name)
    wanted = np.arange(1.0, len(names) + 1.0)
    r = inverse_dynamics(robot, q, v, dict(zip(names, wanted)))
    agrees(robot, q, v, r)
    rate = difference(lambda s: virtual_jacobian(robot, integrate(robot, q, s * v)) @ (v + s * r.a))
    assert off(rate, wanted[:len(robot.virtual_names)]) < 1e-8


# ---- forces in the constraints


def test_redundant_rows_share_a_wanted_force():
    """A planar loop closed by five rows of rank two: the force that the wanted multipliers make is what counts."""
    robot, q, v = state_of("five_bar")
    G = constraint_jacobian(robot, q)
    wanted = np.array([3.0, -1.0, 20.0, -50.0, 7.0])
    r = inverse_dynamics(robot, q, v, [1.0, 2.0], multipliers={"pin": wanted})
    agrees(robot, q, v, r)
    assert off(G.T @ r.lam, G.T @ wanted) < TOLERANCE
    one = inverse_dynamics(robot, q, v, [1.0, 2.0], multipliers={"pin.vx": 4.0})
    agrees(robot, q, v, one)
    assert abs(one.lam[robot.row_names.index("pin.vx")] - 4.0) < TOLERANCE
    # and no force is spent on the other row: no shorter one does it
    free = null_space(np.vstack([null_space(G, rcond=1e-9).T, np.linalg.pinv(G.T)[robot.row_names.index("pin.vx")]]))
    assert np.abs(free.T @ one.tau).max() < TOLERANCE * np.abs(one.tau).max()


def test_too_few_actuators_for_a_wanted_force():
    robot, q, v = state_of("five_bar")
    three = inverse_dynamics(robot, q, v, [1.0, 2.0], active=["q1", "q2", "q4"], multipliers={"pin.vx": 4.0})
    agrees(robot, q, v, three)
    assert three.tau[2] == 0.0 and three.controllability.internal == 1
    with pytest.raises(ControllabilityError, match="pin.vx, pin.vy cannot be had .* in 1 independent ways"):
        inverse_dynamics(robot, q, v, [1.0, 2.0], active=["q1", "q2", "q4"], multipliers={"pin.vx": 4.0, "pin.vy": 3.0})
    with pytest.raises(ControllabilityError, match="q1, q4 can load the constraints in 0 independent ways"):
        inverse_dynamics(robot, q, v, [1.0, 2.0], active=["q1", "q4"], multipliers={"pin.vx": 4.0})


# ---- controllability


@pytest.mark.parametrize("name", ["five_bar", "stewart", "loader", "delta", "shopping_cart"])
def test_controllability_is_the_rank_of_what_actuators_do(name):
    robot = bundled(name)
    K = null_space(constraint_jacobian(robot, robot.home), rcond=1e-9)
    rng = np.random.default_rng(3)
    cases = [(None, robot.actuator_matrix)]
    for count in rng.integers(0, robot.nv + 1, size=8):
        names = rng.permutation(robot.velocity_names)[:count]
        cases.append((list(names), np.eye(robot.nv)[:, [robot.velocity_index(k) for k in names]]))
    answers = set()
    for active, B in cases:
        answer = controllability(robot, robot.home, active=active)
        U = np.linalg.svd(B, full_matrices=False)[0][:, :np.linalg.matrix_rank(B)]
        cosines = np.linalg.svd(K.T @ U, compute_uv=False)
        rank = int((cosines > 1e-8).sum())
        assert (answer.freedom, answer.driven) == (K.shape[1], rank)
        assert bool(answer) == (rank == K.shape[1])
        assert answer.internal == U.shape[1] - rank
        np.testing.assert_allclose(answer.cosines[:rank], cosines[:rank], atol=1e-12)
        assert len(answer.undriven) == K.shape[1] - rank
        for motion in answer.undriven:  # admissible, and no actuator does work on it
            v = np.zeros(robot.nv)
            v[[robot.velocity_index(k) for k in motion]] = list(motion.values())
            assert 1.0 in motion.values()
            assert np.abs(constraint_jacobian(robot, robot.home) @ v).max() < 1e-5  # small parts are not named
            assert np.abs(B.T @ v).max(initial=0.0) < 1e-5
        answers.add(bool(answer))
        assert ("no actuator drives" in str(answer)) == (not answer)
    assert answers == {True, False} or name in ("delta", "shopping_cart")


def test_a_motion_that_needs_no_drive():
    """What no actuator drives may still be asked for, if it happens by itself."""
    b = Builder("cart and pole", gravity=(0.0, 0.0, -9.81))
    b.body("cart", 2.0)
    b.body("pole", 1.0, com=(0.0, 0.0, 0.5), inertia=(0.1, 0.1, 0.1))
    b.joint("slide", "prismatic", "ground", "cart", axis=(1, 0, 0))
    b.joint("hinge", "revolute", "cart", "pole", axis=(0, 1, 0))
    robot = b.build()
    free = forward_dynamics(robot, [0.0, 0.4], [0.3, 1.0], [5.0, 0.0]).a
    r = inverse_dynamics(robot, [0.0, 0.4], [0.3, 1.0], free, independent=["slide", "hinge"], active="slide")
    np.testing.assert_allclose(r.tau, [5.0, 0.0], atol=1e-12)
    assert not r.controllability
    with pytest.raises(ControllabilityError, match="slide drives 1 of 2 degrees of freedom") as error:
        wanted = free + [0.0, 1e-3]
        inverse_dynamics(robot, [0.0, 0.4], [0.3, 1.0], wanted, independent=["slide", "hinge"], active="slide")
    assert error.value.controllability.undriven == ({"hinge": 1.0},)


# ---- forms of input, and mistakes


def test_names_numbers_and_batches():
    robot, q, v = state_of("five_bar")
    r = inverse_dynamics(robot, q, v, [1.0, 2.0])
    by_name = inverse_dynamics(robot, q, v, {"q2": 2.0, "q1": 1.0})
    assert by_name.independent == ("q2", "q1")
    np.testing.assert_allclose(by_name.tau, r.tau, rtol=1e-12)
    np.testing.assert_allclose(
        inverse_dynamics(robot, q, v, {"q2": 2.0, "q1": 1.0}, independent=["q1", "q2"]).tau, r.tau, rtol=1e-13)
    speeds = np.stack([0.0 * v, v, 2.0 * v])
    batch = inverse_dynamics(robot, q, speeds, [1.0, 2.0], multipliers={"pin.vx": [1.0, 2.0, 3.0]})
    assert batch.tau.shape == (3, 4) and batch.lam.shape == (3, 5) and batch.constraint_wrenches["pin"].shape == (3, 6)
    for k in range(3):
        single = inverse_dynamics(robot, q, speeds[k], [1.0, 2.0], multipliers={"pin.vx": k + 1.0})
        np.testing.assert_array_equal(batch.tau[k], single.tau)


@pytest.mark.parametrize("arguments, options, text", [
    (([1.0],), {}, r"accelerations must have shape \(..., 2\), one for each of q1, q2"),
    (([1.0, np.nan],), {}, "accelerations is not finite"),
    (({"q1": 1.0},), {}, "2 degrees of freedom here .* but 1 independent"),
    (({"q1": 1.0, "q7": 1.0},), {}, "q7"),
    (({"q1": 1.0},), {"independent": ["q1", "q2"]}, "no acceleration given for 'q2'"),
    (({"q1": 1.0, "q2": 1.0, "q3": 1.0},), {"independent": ["q1", "q2"]}, "accelerations of 'q3' are given"),
    (([1.0, 2.0],), {"active": ["q1", "qq"]}, "unknown active joint 'qq'"),
    (([1.0, 2.0],), {"metric": [1.0, 2.0]}, r"metric must have shape \(4,\) or \(4, 4\)"),
    (([1.0, 2.0],), {"metric": [1.0, 2.0, 3.0, -1.0]}, "positive definite"),
    (([1.0, 2.0],), {"multipliers": {"pim": 1.0}}, "did you mean 'pin'"),
    (([1.0, 2.0],), {"multipliers": {"pin": 1.0}}, r"multipliers of 'pin' must have shape \(..., 5\)"),
    (([1.0, 2.0],), {"multipliers": {"pin.vx": np.inf}}, "not finite"),
    (([1.0, 2.0],), {"multipliers": {"pin": np.ones(5), "pin.vx": 1.0}}, "name a row twice"),
])
def test_mistakes_are_named(arguments, options, text):
    robot, q, v = state_of("five_bar")
    with pytest.raises(InputError, match=text):
        inverse_dynamics(robot, q, v, *arguments, **options)


def test_a_constraint_that_is_off_carries_no_force():
    robot, q, v = state_of("five_bar")
    opened = robot.switched(pin=False)
    with pytest.raises(InputError, match="'pin' is switched off"):
        inverse_dynamics(opened, q, v, np.ones(4), independent="auto", multipliers={"pin.vx": 1.0})
    r = inverse_dynamics(opened, q, v, np.ones(4), independent="auto", multipliers={"pin.vx": 0.0})
    np.testing.assert_allclose(r.a, np.ones(4), atol=1e-12)


# ---- one state in compiled code


@pytest.mark.parametrize("name", ("five_bar", "loader", "slider_crank", "stewart", "panda", "four_bar"))
def test_compiled_is_general(name):
    """What `inverse_dynamics` of one state finds in independent coordinates is what projections find."""
    robot = ld.load(name)
    q, v, _ = moving_states(robot, 3, np.random.default_rng(3), 0.02)
    for k in range(3):
        w_dot = np.random.default_rng(k).normal(size=len(robot.independent or robot.velocity_names))
        names = robot.independent or robot.velocity_names
        found = inverse_dynamics(robot, q[k], v[k], w_dot, independent=names)
        wanted = inverse_dynamics(robot, q[k][None], v[k][None], w_dot[None], independent=names)
        for each in ("tau", "u", "a", "lam"):
            x, y = getattr(found, each), getattr(wanted, each)[0]
            assert abs(x - y).max(initial=0.0) < 1e-9 * max(1.0, abs(y).max(initial=0.0)), each
        assert bool(found.controllability) == bool(wanted.controllability)
        for loop, wrench in found.constraint_wrenches.items():
            np.testing.assert_allclose(wrench, wanted.constraint_wrenches[loop][0], atol=1e-8 * abs(found.lam).max())
        back = ld.forward_dynamics(robot, q[k], v[k], found.tau)
        assert abs(back.a - found.a).max() < 1e-8 * max(1.0, abs(found.a).max())


def test_what_cannot_be_driven_is_said_as_before():
    robot = ld.load("parallel_five_bar")
    with pytest.raises(ld.ControllabilityError, match="cannot make this motion"):
        inverse_dynamics(robot, robot.home, np.zeros(robot.nv), np.ones(3),
                         independent=ld.forward_dynamics(robot, robot.home, *np.zeros((2, robot.nv))).independent)


def test_kernel_in_compiled_code():
    robot = ld.load("loader")
    q, v, _ = moving_states(robot, 1, np.random.default_rng(3), 0.02)
    R, T, work = kernels.driving(robot)
    tau, a, lam = np.empty(robot.nv), np.empty(robot.nv), np.empty(len(robot.row_names))
    status, condition = kernels.inverse_dynamics(
        robot.packed, q[0], v[0], np.array([0.3, -0.2]), np.empty(0), R, T, 1e-8, work, tau, a, lam)
    wanted = inverse_dynamics(robot, q, v, [[0.3, -0.2]])
    assert status == kernels.OK and 1.0 <= condition < 1e3
    for x, y in ((tau, wanted.tau[0]), (a, wanted.a[0]), (lam, wanted.lam[0])):
        assert abs(x - y).max() < 1e-10 * abs(y).max()
    with pytest.raises(InputError, match="is not compiled"):
        kernels.driving(robot, independent=robot.virtual_names[:2])


@pytest.mark.parametrize("wrong", [np.array([1.0 + 1.0j, 0.0]), np.array(["1", "0"]), [True, False],
                                   np.ma.array([1.0, 2.0], mask=[True, False])],
                         ids=["complex", "text", "truth", "masked"])
def test_accelerations_are_real_numbers(wrong):
    """Of the usual call too, which must not drop imaginary parts or read text."""
    arm = bundled("five_bar")
    for given in (wrong, {"q1": wrong[0], "q2": wrong[1]}):
        if isinstance(given, dict) and isinstance(wrong, np.ma.MaskedArray):
            continue
        with pytest.raises(ld.InputError, match="accelerations|q1"):
            ld.inverse_dynamics(arm, arm.home, np.zeros(4), given)
