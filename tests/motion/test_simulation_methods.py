"""Orders of convergence, quaternions, stiffness, minimal coordinates."""
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tree_cases import bundled

import liedyn as ld

Q0 = np.array([0.1, 0.2, -0.3, 0.9]) / np.linalg.norm([0.1, 0.2, -0.3, 0.9])


def top():
    """A heavy top on a ball joint, spinning."""
    builder = ld.Builder("top")
    builder.body("top", 2.0, com=(0.0, 0.0, 0.3), inertia=(0.3, 0.5, 0.2))
    builder.joint("ball", "spherical", "ground", "top")
    return builder.build(), Q0, np.array([2.0, -3.0, 5.0])


def tethered():
    """A free body on a rod."""
    builder = ld.Builder("tethered")
    builder.body("body", 2.0, com=(0.1, 0.0, 0.3), inertia=(0.3, 0.5, 0.2))
    builder.joint("free", "free", "ground", "body")
    builder.constraint("rod", "distance", "ground", "body", length=1.0, child_placement=(0.2, 0.0, 0.0))
    robot = builder.build()
    q = np.append(Q0, [0.0, 0.0, -1.0] - Rotation.from_quat(Q0).apply([0.2, 0.0, 0.0]))
    G, v = ld.constraint_jacobian(robot, q), np.array([2.0, -3.0, 5.0, 1.0, 1.0, 0.5])
    return robot, q, v - np.linalg.pinv(G) @ (G @ v)


@pytest.fixture(scope="module", params=[top, tethered], ids=["ball", "free"])
def spinning(request):
    robot, q, v = request.param()
    exact = ld.simulate(robot, q, v, 0.5, method=ld.Adaptive("DOP853", 1e-13, 1e-13))
    return robot, q, v, exact


@pytest.mark.parametrize("method, order, steps", [
    ("rk4", 4, (100, 200)), ("rkmk", 4, (100, 200)), ("implicit", 4, (100, 200)), ("generalized_alpha", 2, (100, 200)),
])
def test_order(spinning, method, order, steps):
    robot, q, v, exact = spinning
    errors = []
    for n in steps:
        tr = ld.simulate(robot, q, v, 0.5, dt=0.5 / n, method=method)
        errors.append(np.abs(np.append(ld.difference(robot, exact.q[-1], tr.q[-1]), tr.v[-1] - exact.v[-1])).max())
        assert np.abs(np.linalg.norm(tr.q[:, :4], axis=1) - 1.0).max() < 1e-14
        assert tr.position_residual.max() < 1e-10
    # the larger step is not yet all in the limit
    assert np.log2(errors[0] / errors[1]) > order - 0.4, errors
    assert errors[1] < {4: 1e-6, 2: 1e-3}[order]


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"])
def test_adaptive_through_full_turns(method):
    """Ten turns and more: the centre of the local coordinates moves on, and energy and length stay."""
    robot, q, v = top()
    tr = ld.simulate(robot, q, 4.0 * v, 2.0, method=ld.Adaptive(method, 1e-9, 1e-10), dt=0.1)
    reference = ld.simulate(robot, q, 4.0 * v, 2.0, method="rkmk", dt=2e-4)
    assert len(tr) == 21 and tr.t[-1] == 2.0
    assert np.abs(ld.difference(robot, reference.q[-1], tr.q[-1])).max() < {"RK23": 1e-4, "BDF": 1e-4}.get(method, 1e-5)
    assert np.abs(tr.energy_drift).max() < 1e-3


@pytest.mark.parametrize("rho", [0.0, 0.8, 1.0])
def test_generalized_alpha_solves_the_positions(rho):
    robot, q, v = tethered()
    tr = ld.simulate(robot, q, v, 0.5, dt=1e-2, method=ld.GeneralizedAlpha(rho), stabilisation="none")
    assert tr.position_residual.max() < 1e-10 and 1e-6 < tr.velocity_residual.max() < 1e-1


@pytest.mark.parametrize("method", ["implicit", ld.GeneralizedAlpha(0.0)])
def test_stiff(method):
    """A damper with a time constant of 1e-6 s at steps of 1e-2 s: explicit methods explode, these creep."""
    builder = ld.Builder("stiff", gravity=(0, 0, 0))
    builder.body("mass", 1.0)
    builder.joint("x", "prismatic", "ground", "mass", damping=1e6, stiffness=1e6)
    robot = builder.build()
    tr = ld.simulate(robot, [1.0], [-1.0], 1.0, dt=1e-2, method=method)
    assert tr.q[-1, 0] == pytest.approx(np.exp(-1.0), rel=1e-4)
    with pytest.raises(ld.SimulationError, match="diverged"):
        ld.simulate(robot, [1.0], [-1.0], 1.0, dt=1e-2)


@pytest.mark.parametrize("name", ["shopping_cart", "rolling_spheres", "stewart", "loader", "arm_on_circle"])
def test_all_methods_agree(name):
    """Rolling, ball joints and a free platform, redundant loops, from a moving start; 1e-5 is what second order leaves
    at 1 ms."""
    robot = bundled(name)
    q = ld.close(robot, robot.home)
    G, v = ld.constraint_jacobian(robot, q), 0.5 * np.random.default_rng(0).normal(size=robot.nv)
    v -= np.linalg.pinv(G, rcond=1e-9) @ (G @ v)
    exact = ld.simulate(robot, q, v, 0.1, method=ld.Adaptive("DOP853", 1e-10, 1e-11))
    for method, stabilisation, dt, error in (
            ("rk4", "projection", 1e-3, 1e-9), ("rk4", "minimal", 1e-3, 1e-9), ("rkmk", "none", 1e-3, 1e-9),
            ("implicit", "projection", 2e-3, 1e-8), ("generalized_alpha", "projection", 1e-3, 1e-5),
            ("generalized_alpha", "none", 1e-3, 1e-5), ("LSODA", "minimal", None, 1e-6)):
        tr = ld.simulate(robot, q, v, 0.1, method=method, stabilisation=stabilisation, dt=dt)
        off = np.append(ld.difference(robot, exact.q[-1], tr.q[-1]), tr.v[-1] - exact.v[-1])
        assert np.abs(off).max() < error, (method, stabilisation, np.abs(off).max())


def test_minimal_coordinates_choose_again():
    """A crank that turns all the way round: no coordinate serves for all of it."""
    robot = bundled("slider_crank")
    q = np.array([2.0, 2 * np.pi - 4.0])
    v = np.array([-4.0, 8.0])
    tr = ld.simulate(robot, q, v, 0.1, stabilisation="minimal")
    other = ld.simulate(robot, q, v, 0.1)
    assert np.abs(tr.q[-1] - other.q[-1]).max() < 1e-9
    four_bar = bundled("four_bar")
    q = ld.close(four_bar, four_bar.home)
    G = ld.constraint_jacobian(four_bar, q)
    v = np.linalg.svd(G)[2][-1]
    tr = ld.simulate(four_bar, q, 12.0 * v, 3.0, stabilisation="minimal", dt=5e-4)
    assert np.abs(tr.energy_drift).max() < 1e-4 and tr.position_residual.max() < 1e-10


def test_projection_keeps_the_work_of_inputs_and_dampers():
    """Energy projection aims at E_0 + work: with forces and dampers it is no invariant, and must not be held."""
    robot = bundled("five_bar")
    builder = ld.Builder.of(robot)
    q = robot.home
    tau = lambda t, q, v: [3.0 * np.sin(5 * t), 0.0, -v[2], 0.0]  # noqa: E731
    free = ld.simulate(builder.build(), q, [0.0] * 4, 0.5, tau=tau)
    kept = ld.simulate(builder.build(), q, [0.0] * 4, 0.5, tau=tau, energy=True)
    assert np.abs(free.input_work).max() > 0.1
    np.testing.assert_allclose(kept.q, free.q, atol=1e-9)
    assert np.abs(kept.energy_drift).max() < 1e-10 and np.abs(free.energy_drift).max() < 1e-8
