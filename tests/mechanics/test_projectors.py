"""Aghili's matrices by their laws: projectors, inertias, cross-coupling, and forces for passive joints."""
import numpy as np
import pytest
from closed_chains import moving_state, off
from test_formulations import everything, massless_tree
from tree_cases import bundled

import liedyn as ld
from liedyn.mechanics.dynamics import constraint_inertia, cross_coupling, is_decoupled, passive_joint_map, projector

MACHINES = ["four_bar", "five_bar", "loader", "stewart", "parallel_five_bar", "cassie_like"]
FORMS = ["M_c", "M_c'", "M_c''"]


def robots():
    for name in MACHINES:
        robot = bundled(name)
        yield pytest.param(robot, robot.home, id=name)
    robot, q, _, _ = everything()
    yield pytest.param(robot, q, id="every constraint")


each_robot = pytest.mark.parametrize("robot, q", list(robots()))


def metrics(robot):
    rng = np.random.default_rng(robot.nv)
    root = rng.normal(size=(robot.nv, robot.nv))
    return [None, rng.uniform(0.5, 2.0, robot.nv), root @ root.T + np.eye(robot.nv), "inertia"]


def tensor(robot, q, metric):
    if metric is None:
        return np.eye(robot.nv)
    if isinstance(metric, str):
        return ld.crba(robot, q)
    return np.diag(metric) if np.ndim(metric) == 1 else metric


@each_robot
def test_projector(robot, q):
    G = ld.constraint_jacobian(robot, q)
    for metric in metrics(robot):
        P, W = projector(robot, q, metric), tensor(robot, q, metric)
        size = np.abs(P).max()
        assert np.abs(P @ P - P).max() < 1e-10 * size ** 2
        assert np.abs(G @ P).max() < 1e-10 * size
        assert off(W @ P, (W @ P).T) < 1e-9
        assert abs(P.trace() - (robot.nv - np.linalg.matrix_rank(G, tol=1e-8 * np.linalg.norm(G, 2)))) < 1e-9
    P = projector(robot, q)
    assert off(P, np.eye(robot.nv) - np.linalg.pinv(G, rcond=1e-8) @ G) < 1e-11


@each_robot
def test_units_do_not_matter(robot, q):
    """Metres or millimetres: with the metric that goes along, the same projection (Aghili, section II-A)."""
    metric = metrics(robot)[1]
    scale = np.random.default_rng(3).uniform(0.1, 10.0, robot.nv)  # v' = scale v, W' = W / scale^2, A' = A / scale
    P, G = projector(robot, q, metric), ld.constraint_jacobian(robot, q)
    A = G / scale
    root = np.sqrt(metric) / scale
    A_W = A / root
    P_W = np.eye(robot.nv) - np.linalg.pinv(A_W, rcond=1e-8) @ A_W
    assert off(scale[:, None] * P / scale, P_W * root / root[:, None]) < 1e-8


@each_robot
def test_constraint_inertia(robot, q):
    M, v = ld.crba(robot, q), moving_state(robot, q)[0]
    for metric in metrics(robot):
        for form in FORMS:
            M_c, P = constraint_inertia(robot, q, form, metric), projector(robot, q, metric)
            # P M_c P = P M P: the kinetic energy of admissible motions (Remark 3)
            assert off(P.T @ M_c @ P, P.T @ M @ P) < 1e-9
            if form != "M_c''":
                assert np.linalg.eigvalsh(M_c + M_c.T)[0] > 0.0  # Theorem 2, Proposition 1
                assert abs(v @ M_c @ v - v @ M @ v) < 1e-9 * (v @ M @ v)
            if form == "M_c'":
                assert off(M_c, M_c.T) < 1e-12
            if form == "M_c" and metric is None:
                assert off(M_c - M, (M - M_c).T) < 1e-12  # what is added makes no energy
    twice, once = (constraint_inertia(robot, q, "M_c''", scale=s) for s in (2.0, 1.0))
    assert off(twice - once, np.eye(robot.nv) - projector(robot, q)) < 1e-10


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "loader", "stewart"])
@pytest.mark.parametrize("form", FORMS)
def test_input_output_form(name, form):
    """Fig. 1: a from f_parallel alone, and the constraint force by (32)."""
    robot = bundled(name)
    q = robot.home
    v, tau = moving_state(robot, q)
    rng = np.random.default_rng(4)
    for metric in metrics(robot)[:3]:
        P, df = projector(robot, q, metric), rng.normal(size=robot.nv)
        passive = (np.eye(robot.nv) - P).T
        r, pushed, leant = (ld.forward_dynamics(robot, q, v, f, method="projection", inertia=form, metric=metric)
                            for f in (tau, tau + df, tau + passive @ df))
        assert off(leant.a, r.a) < 1e-9  # a passive force moves nothing
        assert off(leant.constraint_force - r.constraint_force, passive @ df) < 1e-9
        # differences of (22) and (32) at two forces: C v drops out
        M_c, mu = constraint_inertia(robot, q, form, metric), cross_coupling(robot, q, form, metric)
        assert off(M_c @ (pushed.a - r.a), P.T @ df) < 1e-9
        assert off(pushed.constraint_force - r.constraint_force, passive @ df - mu @ (P.T @ df)) < 1e-9


def test_decoupling():
    """Proposition 3: M a number times 1; and in the metric of the kinetic energy, everything."""
    for name in MACHINES:
        robot = bundled(name)
        assert is_decoupled(robot, robot.home, metric="inertia", tolerance=1e-8)
        decoupled = is_decoupled(robot, robot.home)
        P, M = projector(robot, robot.home), ld.crba(robot, robot.home)
        assert decoupled == (np.abs(M @ P - P @ M).max() < 1e-9 * np.abs(M).max())
        if decoupled:
            assert np.abs(cross_coupling(robot, robot.home) @ P).max() < 1e-8
    five_bar = bundled("five_bar")
    assert np.array_equal(is_decoupled(five_bar, np.stack([five_bar.home] * 3)), [False] * 3)


@pytest.mark.parametrize("name, active", [("five_bar", ("q1", "q4")), ("five_bar", ("q1", "q2", "q3")),
                                          ("loader", None), ("stewart", None)])
def test_passive_joints(name, active):
    """The active joints alone make the same motion (Aghili, eq. 60)."""
    robot = bundled(name)
    q, nv = robot.home, robot.nv
    v, _ = moving_state(robot, q)
    wanted = np.random.default_rng(6).normal(size=nv)
    drives = robot.actuator_matrix if active is None else np.eye(nv)[:, [robot.velocity_index(n) for n in active]]
    for metric in metrics(robot)[:3]:
        H, controllable = passive_joint_map(robot, q, active, metric)
        assert controllable
        P = projector(robot, q, metric)
        f = (np.eye(nv) + H) @ P.T @ wanted
        left = f - drives @ np.linalg.lstsq(drives, f)[0]
        assert np.abs(left).max() < 1e-9 * np.abs(f).max()
        a, b = (ld.forward_dynamics(robot, q, v, x).a for x in (wanted, f))
        assert off(a, b) < 1e-9


def test_too_few_active_joints():
    robot = bundled("five_bar")
    q = np.stack([robot.home, robot.home])
    H, controllable = passive_joint_map(robot, q, active="q1")
    assert H.shape == (2, 4, 4) and np.array_equal(controllable, [False, False])
    free = robot.switched(pin=False)
    assert not passive_joint_map(free, robot.home, active=("q1", "q2", "q3"))[1]
    assert passive_joint_map(free, robot.home)[1]


def test_massless_bodies():
    """No kinetic-energy metric without inertia; M_c'' alone is regular there."""
    robot = massless_tree()
    q = ld.close(robot, [0.7, -1.1, 2.5], crank=0.7)
    for function in (projector, constraint_inertia, cross_coupling, is_decoupled, passive_joint_map):
        with pytest.raises(ld.SingularConfigurationError, match="'inertia' inverts .* rod.*use another metric"):
            function(robot, q, metric="inertia")
    assert np.linalg.cond(constraint_inertia(robot, q, "M_c''")) < 1e4
    P, mu = projector(robot, q), cross_coupling(robot, q, "M_c''")
    assert np.isfinite(mu).all() and np.abs(P @ mu).max() < 1e-12


@pytest.mark.parametrize("call, message", [
    (lambda robot, q: projector(robot, q, metric=np.ones(3)), r"metric must have shape \(4,\) or \(4, 4\)"),
    (lambda robot, q: projector(robot, q[:3]), r"q must have shape \(..., 4\)"),
    (lambda robot, q: constraint_inertia(robot, q, "M"), "unknown constraint inertia matrix 'M', did you mean"),
    (lambda robot, q: constraint_inertia(robot, q, "M_c''", scale=-1.0), "scale must be positive and finite"),
    (lambda robot, q: cross_coupling(robot, q, metric=np.diag([1, 1, 1, 0])), "metric must be symmetric and positive"),
    (lambda robot, q: is_decoupled(robot, q, metric="euclid"), "unknown metric 'euclid'"),
    (lambda robot, q: passive_joint_map(robot, q, active=["q9"]), "unknown velocity coordinate 'q9'|unknown .*'q9'"),
])
def test_bad_input(call, message):
    robot = bundled("five_bar")
    with pytest.raises(ld.InputError, match=message):
        call(robot, robot.home)
