"""Modes of linear models, against closed forms, and laws of eigenvectors and projectors."""
from types import SimpleNamespace

import numpy as np
import pytest

import liedyn as ld


def chain(n, stiffness, mass=2.0, damping=0.0, wall=True):
    """n equal masses on a line, springs between them, and between the first one and a wall."""
    b = ld.Builder("chain")
    for k in range(n):
        b.body(f"m{k}", mass=mass, inertia=(1.0, 1.0, 1.0))
        b.joint(f"x{k}", "prismatic", "ground", f"m{k}", axis=(1, 0, 0))
        if k or wall:
            b.coordinate_force(f"s{k}", {f"x{k}": 1.0} | ({f"x{k - 1}": -1.0} if k else {}), stiffness=stiffness,
                               damping=damping)
    robot = b.build()
    return ld.linearize(robot, robot.home, np.zeros(n), np.zeros(n))


def of_matrices(M, D, K):
    """The model of M a + D v + K y = 0."""
    n = len(M)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
    return SimpleNamespace(A=A, K=np.eye(n), lead=(), states=tuple(f"s{k}" for k in range(2 * n)))


def laws(ss, m):
    """What eigenvectors and participation obey; the participation of all modes of a state is one."""
    size = np.abs(ss.A).max()
    assert np.abs(ss.A @ m.vectors.T - m.vectors.T * m.eigenvalues).max() < 1e-8 * size * np.abs(m.vectors).max()
    np.testing.assert_allclose(m.participation.sum(axis=1), 1.0, atol=1e-8)
    weight = np.where(m.eigenvalues.imag > 0.0, 2.0, 1.0)
    weight[m.rigid] = (len(ss.A) - weight[~m.rigid].sum()) / max(1, m.rigid.sum())
    np.testing.assert_allclose(weight @ m.participation, 1.0, atol=1e-8)
    np.testing.assert_allclose(np.abs(m.shapes).max(axis=1), 1.0)


def test_a_chain_of_masses_has_the_frequencies_of_the_textbook():
    n, stiffness, mass = 5, 300.0, 2.0
    ss = chain(n, stiffness, mass)
    m = ld.modes(ss)
    # one end held, the other free: x_j = sin((2 k - 1) j pi / (2 n + 1))
    angle = (2 * np.arange(1, n + 1) - 1) * np.pi / (2 * n + 1)
    np.testing.assert_allclose(m.omega, 2.0 * np.sqrt(stiffness / mass) * np.sin(0.5 * angle), rtol=1e-12)
    np.testing.assert_allclose(m.frequencies, m.omega / (2.0 * np.pi))
    np.testing.assert_allclose(m.damping, 0.0, atol=1e-12)
    shapes = np.sin(np.outer(angle, np.arange(1, n + 1)))
    shapes /= shapes[np.arange(n), np.abs(m.shapes).argmax(axis=1)][:, None]
    np.testing.assert_allclose(m.shapes, shapes, atol=1e-11)
    gram = m.shapes @ m.shapes.T  # equal masses: orthogonal as they are
    np.testing.assert_allclose(gram - np.diag(np.diag(gram)), 0.0, atol=1e-10)
    np.testing.assert_allclose(m.participation[:, :n], m.participation[:, n:], atol=1e-10)  # half of it is velocity
    np.testing.assert_allclose(2.0 * m.participation[:, :n], shapes**2 / (shapes**2).sum(axis=1)[:, None], atol=1e-10)
    laws(ss, m)


def test_damping_that_goes_with_stiffness():
    ss = chain(4, 300.0, damping=0.6)
    m = ld.modes(ss)
    np.testing.assert_allclose(m.damping, 0.5 * m.omega * 0.6 / 300.0, rtol=1e-10)
    np.testing.assert_allclose(m.damped, m.omega * np.sqrt(1.0 - m.damping**2), rtol=1e-10)
    laws(ss, m)


@pytest.mark.parametrize("stiffness", [3.0, 3e8])
def test_a_chain_without_a_wall_has_one_rigid_mode(stiffness):
    ss = chain(4, stiffness, wall=False)
    m = ld.modes(ss)
    assert m.rigid.tolist() == [True, False, False, False]
    assert m.eigenvalues[0] == 0.0 and m.frequencies[0] == 0.0
    np.testing.assert_allclose(m.shapes[0], 1.0, atol=1e-12)
    angle = np.arange(1, 4) * np.pi / 4
    np.testing.assert_allclose(m.omega[1:], 2.0 * np.sqrt(stiffness / 2.0) * np.sin(0.5 * angle), rtol=1e-12)
    laws(ss, m)


def test_a_damper_against_the_ground_leaves_one_rigid_mode_and_one_decay():
    ss = of_matrices(np.diag([2.0]), np.diag([0.5]), np.zeros((1, 1)))
    m = ld.modes(ss)
    np.testing.assert_allclose(m.eigenvalues, [0.0, -0.25])
    np.testing.assert_allclose(m.damping, [0.0, 1.0])
    laws(ss, m)


def test_a_four_bar_swings_like_a_pendulum():
    """A parallelogram hanging down: its coupler moves without turning, mass and inertia as in Lagrange's equation."""
    b, l, g = ld.Builder("hanging"), 0.7, 9.81
    for name, mass in (("left", 0.8), ("right", 0.8), ("bar", 3.0)):
        b.body(name, mass=mass, com=(0.0, 0.0, -l / 2) if name != "bar" else (0.5, 0.0, 0.0), inertia=(0.1, 0.05, 0.06))
    b.joint("a", "revolute", "ground", "left", axis=(0, 1, 0))
    b.joint("b", "revolute", "left", "bar", (0.0, 0.0, -l), axis=(0, 1, 0))
    b.joint("c", "revolute", "ground", "right", (1.0, 0.0, 0.0), axis=(0, 1, 0))
    b.loop("pin", "revolute", "right", "bar", (0.0, 0.0, -l), (1.0, 0.0, 0.0), axis=(0, 1, 0))
    robot = b.build()
    ss = ld.linearize(robot, robot.home, np.zeros(3), np.zeros(3), independent=["a"])
    m = ld.modes(ss)
    inertia, weight = 2 * (0.05 + 0.8 * l**2 / 4) + 3.0 * l**2, (2 * 0.8 * l / 2 + 3.0 * l) * g
    np.testing.assert_allclose(m.omega, [np.sqrt(weight / inertia)], rtol=1e-12)
    np.testing.assert_allclose(m.shapes, [[1.0, -1.0, 1.0]], atol=1e-12)  # all coordinates: the bar turns back
    laws(ss, m)


def test_equal_modes_stand_and_share():
    """Two equal pendulums, and a third one: the pair has real displacements, and halves of what they have together."""
    b = ld.Builder("pendulums")
    for k, mass in enumerate((1.0, 1.0, 2.0)):
        b.body(f"p{k}", mass=mass, com=(0.0, 0.0, -0.5), inertia=(0.1, 0.1, 0.1))
        b.joint(f"q{k}", "revolute", "ground", f"p{k}", axis=(0, 1, 0))
    robot = b.build()
    ss = ld.linearize(robot, robot.home, np.zeros(3), np.zeros(3))
    m = ld.modes(ss)
    alike = np.sqrt(0.5 * 9.81 / (0.1 + 0.25))
    np.testing.assert_allclose(m.omega, sorted([alike, alike, np.sqrt(9.81 / 0.6)]), rtol=1e-12)
    pair = np.flatnonzero(np.abs(m.omega - alike) < 1e-9)
    np.testing.assert_allclose(np.sort(m.shapes[pair], axis=0), [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(m.participation[pair], [[0.25, 0.25, 0.0] * 2] * 2, atol=1e-12)
    laws(ss, m)


def test_a_critically_damped_one_is_a_chain():
    ss = of_matrices(np.diag([1.0, 1.0]), np.diag([4.0, 0.1]), np.diag([4.0, 9.0]))
    m = ld.modes(ss)
    twice = np.abs(m.eigenvalues + 2.0) < 1e-6
    assert np.isfinite(m.shapes).all() and len(m) in (2, 3)  # rounding makes of the double one a pair, or two
    np.testing.assert_allclose(m.participation[twice], [[0.5, 0.0, 0.5, 0.0]] * twice.sum(), atol=1e-7)
    np.testing.assert_allclose(m.participation.sum(axis=1), 1.0, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_laws_of_random_systems(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 7)
    L, D, K = rng.normal(size=(3, n, n))
    ss = of_matrices(L @ L.T + np.eye(n), D, K + K.T)
    m = ld.modes(ss)
    laws(ss, m)
    both = np.concatenate([m.eigenvalues, m.eigenvalues[m.eigenvalues.imag > 0].conj()])
    np.testing.assert_allclose(np.sort_complex(both), np.sort_complex(np.linalg.eigvals(ss.A)), atol=1e-9)


def test_shapes_keep_loops_closed():
    robot = ld.load("cassie_like")
    q = ld.close(robot, robot.home)
    ss = ld.linearize(robot, q, np.zeros(robot.nv), np.zeros(robot.nv))
    m = ld.modes(ss)
    G = ld.constraint_jacobian(robot, q)
    assert m.shapes.shape == (len(m), robot.nv) and np.abs(m.shapes @ G.T).max() < 1e-9


def test_what_falls_is_at_rest_within_itself():
    """Legs feel no gravity in free fall; where it is and where it heads makes no difference either."""
    robot = ld.load("solo12")
    ss = ld.linearize(robot, robot.home, np.zeros(robot.nv), np.zeros(robot.nv))
    m = ld.modes(ss)
    assert m.rigid.sum() == 12 + 3 + 1 and len(m) == 16
    laws(ss, m)


def test_what_has_no_modes_is_refused():
    robot = ld.load("five_bar")
    batch = ld.linearize(robot, np.tile(robot.home, (2, 1)), np.zeros((2, 4)), np.zeros((2, 4)))
    with pytest.raises(ld.InputError, match=r"batch \(2,\): take ss\[k\]"):
        ld.modes(batch)
    with pytest.raises(ld.InputError, match="not of 3"):
        ld.modes(3)
    assert len(ld.modes(batch[1])) == len(ld.modes(batch[0])) == 4


def test_how_they_print():
    m = ld.modes(chain(2, 8.0, wall=False))
    assert repr(m) == "Modes(2 of 4 states, 1 rigid)"
    lines = str(m).splitlines()
    assert lines[1].split()[:3] == ["mode", "Hz", "rad/s"] and "rigid" in lines[2] and "x0" in lines[3]
    assert m._repr_html_().count("<tr>") == 3


def test_a_picture():
    pytest.importorskip("matplotlib").use("Agg")
    loader = ld.load("loader")
    m = ld.modes(ld.linearize(loader, loader.home, [0.0] * 8, [0.0] * 8))
    plane, bars = m.plot()
    assert plane.get_xlim()[1] > 0.1 and len(bars.patches) == len(m) * len(m.states)  # rounding is no abscissa
    assert np.allclose(sum(patch.get_width() for patch in bars.patches), len(m))
