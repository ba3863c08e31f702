"""Derivatives of constrained accelerations and multipliers in all coordinates, also off the constraints."""
import numpy as np
import pytest
from comparison import relative
from closed_chains import difference
from complex_five_bar import ComplexFiveBar

import liedyn as ld

ARM = ld.load("five_bar")
STEP = 1e-30


@pytest.mark.validation("derivatives of accelerations by all coordinates", robots="five_bar",
                        oracle="Complex-step derivatives of an independent program")
@pytest.mark.parametrize("off", [0.0, 1e-9])
def test_complex_step(off):
    rng, plain = np.random.default_rng(0), ComplexFiveBar()
    q, v, tau = ARM.home + off * rng.normal(size=4), rng.normal(size=4), rng.normal(size=4)  # speeds that open the loop
    a_q, a_v, a_tau = np.empty((3, 4, 4))
    for k, e in enumerate(np.eye(4) * 1j * STEP):
        a_q[:, k] = plain.accelerations(q + e, v.astype(complex), tau).imag / STEP
        a_v[:, k] = plain.accelerations(q.astype(complex), v + e, tau).imag / STEP
        a_tau[:, k] = plain.accelerations(q.astype(complex), v.astype(complex), tau + e).imag / STEP
    found = ld.forward_dynamics_derivatives(ARM, q, v, tau)
    for x, wanted in ((found.a_q, a_q), (found.a_v, a_v), (found.a_tau, a_tau)):
        assert relative(x, wanted) < 1e-11


ROBOTS = ["loader", "panda", "stewart", "solo12", "whipple_bicycle", "arm_on_circle", "diagonal_spring", "bricard",
          "cassie_like", "rolling_disk"]


@pytest.mark.parametrize("name", ROBOTS)
def test_minimal_model(name):
    """Along the constraints they are the rows of the minimal model."""
    robot, rng = ld.load(name), np.random.default_rng(1)
    q, rest = ld.neutral(robot) if robot.home is None else robot.home, np.zeros(robot.nv)
    S = ld.linearize(robot, q, rest, rest).S
    v, tau = 0.3 * S @ rng.normal(size=S.shape[1]), rng.normal(size=robot.nv)
    ss = ld.linearize(robot, q, v, tau)
    found = ld.forward_dynamics_derivatives(robot, q, v, tau)
    p = ss.K.shape[1]
    R = np.array([np.eye(robot.nv)[int(np.flatnonzero((ss.S == e).all(axis=1))[0])] for e in np.eye(ss.S.shape[1])])
    np.testing.assert_allclose(found.a, ld.forward_dynamics(robot, q, v, tau).a, rtol=1e-12)
    G = ld.constraint_jacobian(robot, q)
    # forces that constraints take up move nothing, and no force opens a loop
    assert np.abs(found.a_tau @ G.T).max(initial=0.0) < 1e-9 * np.abs(found.a_tau).max()
    assert np.abs(G @ found.a_tau).max(initial=0.0) < 1e-9 * np.abs(found.a_tau).max()
    np.testing.assert_allclose(R @ found.a_tau @ ld.actuator_matrix(robot, q), ss.B[p:], rtol=0,
                               atol=1e-9 * max(1.0, np.abs(ss.B).max()))
    np.testing.assert_allclose(R @ found.a_v @ ss.S, ss.A[p:, p:], rtol=0, atol=1e-8 * max(1.0, np.abs(ss.A).max()))


@pytest.mark.parametrize("name", ["loader", "stewart", "bricard", "arm_on_circle", "diagonal_spring"])
def test_multipliers(name):
    """By differences along the constraints, where redundant rows stay redundant (Bricard's mechanism)."""
    robot, rng = ld.load(name), np.random.default_rng(2)
    rest = np.zeros(robot.nv)
    ss = ld.linearize(robot, robot.home, rest, rest)
    w = rng.normal(size=ss.S.shape[1])
    v, tau = 0.3 * ss.S @ w, rng.normal(size=robot.nv)
    found = ld.forward_dynamics_derivatives(robot, robot.home, v, tau)

    def at(e):
        q = ld.close(robot, ld.integrate(robot, robot.home, e * ss.K[:, 0]))
        return q, ld.forward_dynamics(robot, q, v, tau).lam

    dq = difference(lambda e: ld.difference(robot, robot.home, at(e)[0]), 1e-3)
    wanted = difference(lambda e: at(e)[1], 1e-3)
    np.testing.assert_allclose(found.lam_q @ dq, wanted, rtol=0, atol=1e-7 * np.abs(wanted).max())
    for x, f in ((found.lam_v @ v, lambda e: ld.forward_dynamics(robot, robot.home, (1 + e) * v, tau).lam),
                 (found.lam_tau @ tau, lambda e: ld.forward_dynamics(robot, robot.home, v, (1 + e) * tau).lam)):
        wanted = difference(f, 1e-2)
        np.testing.assert_allclose(x, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())


def test_trees_and_batches():
    panda, rng = ld.load("panda"), np.random.default_rng(3)
    q, v, tau = (rng.normal(size=(2, 3, 7)) for _ in range(3))
    found = ld.forward_dynamics_derivatives(panda, q, v, tau)
    for x, wanted in zip((found.a_q, found.a_v, found.a_tau), ld.aba_derivatives(panda, q, v, tau)):
        np.testing.assert_allclose(x, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())
    assert found.lam_q.shape == (2, 3, 0, 7)
    one = ld.forward_dynamics_derivatives(panda, q[1, 2], v[1, 2], tau[1, 2])
    np.testing.assert_array_equal(one.a_q, found.a_q[1, 2])


def test_contacts_are_refused():
    b = ld.Builder("ball")
    b.body("ball", mass=2.0)
    b.joint("z", "prismatic", "ground", "ball")
    b.constraint("floor", "on_plane", "ground", "ball", unilateral=True)
    with pytest.raises(ld.InputError, match="'ball' has one-sided constraints: take linearize"):
        ld.forward_dynamics_derivatives(b.build(), [1.0], [0.0], [0.0])
