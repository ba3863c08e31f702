"""A and B of one integrator step against differences of the step, made anew from the assembly and forward dynamics."""
import importlib

import numpy as np
import pytest
from closed_chains import difference, moving_state, off, onto_manifold, reader, velocity
from numba import njit
from tree_cases import bundled

import liedyn as ld
from benchmarks.robots import moving_states
from liedyn.machine.errors import ClosureError, InputError
from liedyn.mechanics.constraints.independent import choose
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE

H = 0.02
TOLERANCE = 1e-8  # sixth-order differences with a step of 1e-3: rounding 1e-13 / step


def step_of(robot, q, tau, names, speeds):
    """x1(x0) of one classical Runge-Kutta step in one-dof coordinates, from close() and forward_dynamics().

    tau is constant, or a feedback (f, df), of which f acts at every stage.
    """
    places = [robot.velocity_names.index(name) for name in names]
    at_q = [robot.coordinate_names.index(name) for name in names]
    picks = [robot.velocity_names.index(name) for name in speeds]

    def state(y, w, t):
        now = robot.at(t) if robot.functions else robot
        near = ld.close(now, q, dict(zip(names, y)))
        return now, near, ld.complete_velocity(now, near, dict(zip(speeds, w)))

    def rate(x, u, t):
        now, near, v = state(x[:len(places)], x[len(places):], t)
        forces = tau[0](t, near, v) if isinstance(tau, tuple) else tau
        a = ld.forward_dynamics(now, near, v, forces + robot.actuator_matrix @ u).a
        return np.concatenate([v[places], a[picks]])

    def step(x, u):
        t = robot.t
        k1 = rate(x, u, t)
        k2 = rate(x + 0.5 * H * k1, u, t + 0.5 * H)
        k3 = rate(x + 0.5 * H * k2, u, t + 0.5 * H)
        k4 = rate(x + H * k3, u, t + H)
        return x + H / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    return step, at_q, picks


def check(robot, q, v, tau, names, speeds):
    ds = ld.discretize(robot, q, v, tau, H, independent=names, speeds=speeds)
    step, at_q, picks = step_of(robot, q, tau, names, speeds)
    x = np.concatenate([q[at_q], v[picks]])
    nothing = np.zeros(len(robot.actuator_names))
    assert off(np.concatenate([ds.q_next[at_q], ds.v_next[picks]]), step(x, nothing)) < 1e-11
    expected = np.stack([difference(lambda s, e=e: step(x + s * e, nothing)) for e in np.eye(len(x))], axis=-1)
    assert off(ds.A, expected) < TOLERANCE
    size = max(1.0, np.abs(ds.tau).max())
    expected = np.stack([difference(lambda s, e=e: step(x, s * e), size) for e in np.eye(len(nothing))], axis=-1)
    assert off(ds.B, expected) < TOLERANCE
    # not the exponential of one A
    assert off(ds.A, ld.linearize(robot, q, v, tau, independent=names, speeds=speeds).discretize(H).A) > 1e-6
    return ds


@pytest.mark.parametrize("name", ["five_bar", "loader", "parallel_four_bar"])
def test_machines(name):
    robot = bundled(name)
    v, tau = moving_state(robot, robot.home)
    ds = check(robot, robot.home, v, tau, robot.independent, robot.independent)
    assert np.abs(ld.closure_error(robot, ds.q_next)).max() < 1e-12
    assert ds.states[0] == robot.independent[0] and ds.eigenvalues().shape == (len(ds.A),)


def test_nonholonomic():
    robot = bundled("shopping_cart")
    q = np.array([0.1, -0.2, 0.3, 0.4])
    v = ld.complete_velocity(robot, q, {"cart.x": 0.7, "cart.angle": 0.5})
    check(robot, q, v, np.array([1.0, 0.5, -0.3, 0.2]), robot.velocity_names, ("cart.x", "cart.angle"))


def test_moving_constraint():
    def swing(t):
        s, c = np.sin(3.0 * t), np.cos(3.0 * t)
        return [0.1 * s, 0.02 * t, 0.0], [0.3 * c, 0.02, 0.0], [-0.9 * s, 0.0, 0.0]

    robot = bundled("five_bar").with_target("pin", swing).at(0.3)
    q = ld.close(robot, robot.home, {"q1": robot.home[0]})
    v = ld.complete_velocity(robot, q, {"q1": 0.5, "q4": -0.4})
    check(robot, q, v, np.array([1.0, 0.0, 0.0, -2.0]), ("q1", "q4"), ("q1", "q4"))


def group_step(robot, q, v, tau, h):
    """One Runge-Kutta-Munthe-Kaas step of an open tree; the inverse of dexp is the derivative of the log."""
    def local(u, w):
        base = ld.integrate(robot, q, u)
        return difference(lambda s: ld.difference(robot, q, ld.integrate(robot, base, s * w)))

    def rate(u, w):
        return local(u, w), ld.aba(robot, ld.integrate(robot, q, u), w, tau)

    k = [(v, ld.aba(robot, q, v, tau))]
    for c in (0.5, 0.5, 1.0):
        k.append(rate(c * h * k[-1][0], v + c * h * k[-1][1]))
    U, W = (h / 6.0 * (k[0][i] + 2.0 * k[1][i] + 2.0 * k[2][i] + k[3][i]) for i in range(2))
    return ld.integrate(robot, q, U), v + W


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_tangents_of_groups(kind):
    from mechanisms import random_axes, random_inertia, random_pose, random_q

    rng = np.random.default_rng(4)
    builder = ld.Builder("group", gravity=(0.3, -9.0, 1.0))
    builder.body("a", 1.0, rng.normal(size=3), random_inertia(rng))
    builder.body("b", 1.5, rng.normal(size=3), random_inertia(rng))
    builder.joint("one", kind, "ground", "a", placement=random_pose(rng))
    builder.joint("two", "revolute", "a", "b", placement=random_pose(rng), **random_axes(rng, "revolute"))
    robot = builder.build()
    q, v, tau, n = random_q(rng, robot), rng.normal(size=robot.nv), rng.normal(size=robot.nv), robot.nv
    h = 0.05
    ds = ld.discretize(robot, q, v, tau, h)
    q1, v1 = group_step(robot, q, v, tau, h)
    assert off(ld.difference(robot, q1, ds.q_next), np.zeros(n)) < 1e-10 and off(ds.v_next, v1) < 1e-10

    def end(dq, dv, du):
        q2, v2 = group_step(robot, ld.integrate(robot, q, dq), v + dv, tau + du, h)
        return np.concatenate([ld.difference(robot, q1, q2), v2])

    # differences of differences lose more: 1e-13 / step twice
    for k, e in enumerate(np.eye(3 * n)):
        column = difference(lambda s, e=e: end(*(s * e).reshape(3, n)), 1e-2)
        assert off(column, np.hstack([ds.A, ds.B])[:, k]) < 1e-7


def columns_of_steps(robot, q, v, tau, independent, read, states):
    """A by differences of neighbouring steps, which begin at states(s, k), for a reader of (q, v)."""
    def end(s, k):
        near_q, near_v = states(s, k)
        ds = ld.discretize(robot, near_q, near_v, tau, 0.01, independent=independent)
        return read(ds.q_next, ds.v_next)
    count = 2 * len(ld.linearize(robot, q, v, tau, independent=independent).K[0])
    return np.stack([difference(lambda s, k=k: end(s, k)) for k in range(count)], axis=-1)


@pytest.mark.parametrize("name, independent", [("stewart", ("platform",)), ("five_bar", ("pin", "q1"))])
def test_group_and_virtual_coordinates_of_loops(name, independent):
    robot = bundled(name)
    q = robot.home
    v, tau = moving_state(robot, q)
    chosen = choose(robot, q, independent, RANK_TOLERANCE)
    ds = ld.discretize(robot, q, v, tau, 0.01, independent=independent)
    K = ld.linearize(robot, q, v, tau, independent=independent).K
    w, p = reader(robot, q, chosen) @ v, K.shape[1]
    reads = chosen.virtual >= 0

    def read(q1, v1):
        y = chosen.rows @ ld.difference(robot, ds.q_next, q1)
        moved = ld.virtual_coordinates(robot, q1) - ld.virtual_coordinates(robot, ds.q_next)
        y[reads] += moved[chosen.virtual[reads]]
        return np.concatenate([y, reader(robot, q1, chosen) @ v1])

    def states(s, k):
        if k >= p:
            return q, velocity(robot, q, chosen, w + s * np.eye(p)[k - p])
        near = onto_manifold(robot, ld.integrate(robot, q, s * K[:, k]))
        return near, velocity(robot, near, chosen, w)

    # neighbours leave the tangent in second order only, which is even in s and cancels
    assert off(ds.A, columns_of_steps(robot, q, v, tau, independent, read, states)) < 1e-7


@pytest.mark.parametrize("name, names", [
    ("five_bar", None), ("loader", None), ("panda", None), ("delta", None), ("five_bar", "auto"),
    ("five_bar", ("pin", "q1")), ("stewart", ("platform",)), ("solo12", None)])
def test_batches(name, names):
    """Each model of a batch is that of its state alone."""
    robot = bundled(name)
    q, v, tau = moving_states(robot, 6, np.random.default_rng(2), 0.02)
    models = ld.discretize(robot, q.reshape(2, 3, -1), v.reshape(2, 3, -1), tau.reshape(2, 3, -1), 5e-3, names)
    assert models.A.shape[:2] == (2, 3)
    for k in (0, 4):
        model, alone = models[divmod(k, 3)], ld.discretize(robot, q[k], v[k], tau[k], 5e-3, names)
        assert model.states == alone.states and model.inputs == alone.inputs and model.A.shape == alone.A.shape
        for x in ("A", "B", "q", "v", "tau", "q_next", "v_next"):
            found, wanted = getattr(model, x), getattr(alone, x)
            # compiled code closes the independent rows of a machine with redundant ones, Python all in least squares
            assert abs(found - wanted).max(initial=0.0) < 1e-9 * max(1.0, abs(wanted).max(initial=0.0)), x
    with pytest.raises(InputError, match="no model"):
        models[5]
    with pytest.raises(InputError, match="one model"):
        alone[0]


@njit
def fill_memory():
    """Leaves ones in the memory that compiled code allocates next."""
    for size in range(1, 60):
        a, b, c, d, e, f = np.ones(size), np.ones(size), np.ones(size), np.ones(size), np.ones(size), np.ones(size)
        a[0] = b[0] + c[0] + d[0] + e[0] + f[0]


def test_compiled_steps_are_made_whatever_is_in_memory(monkeypatch):
    """Numbers that another call leaves behind, in the padding of arrays, do not make compiled code refuse a step."""
    def refused(*_):
        raise AssertionError("the step is made state by state")

    robot = ld.load("five_bar")
    states = moving_states(robot, 3, np.random.default_rng(2), 0.02)
    monkeypatch.setattr(importlib.import_module("liedyn.motion.discretize"), "_one_state", refused)
    for _ in range(20):
        fill_memory()
        assert np.isfinite(ld.discretize(robot, *states, 1e-3).A).all()


def test_batches_with_feedback():
    robot = bundled("five_bar")
    q, v, _ = moving_states(robot, 3, np.random.default_rng(2), 0.02)
    tau = (lambda t, q, v: -0.1 * v, lambda t, q, v: (np.zeros((4, 4)), -0.1 * np.eye(4)))
    models = ld.discretize(robot, q, v, tau, 5e-3)
    assert np.array_equal(models.A[2], ld.discretize(robot, q[2], v[2], tau, 5e-3).A)


def test_bad_input():
    robot = bundled("five_bar")
    v = np.zeros(4)
    with pytest.raises(InputError, match="must be positive"):
        ld.discretize(robot, robot.home, v, v, 0.0)
    with pytest.raises(InputError, match="must be positive"):
        ld.linearize(robot, robot.home, v, v).discretize(-1.0)
    with pytest.raises(InputError, match="at least one state"):
        ld.discretize(robot, np.empty((0, 4)), v, v, 1e-3)
    with pytest.raises(ClosureError, match="state 1 of the batch"):
        ld.discretize(robot, [robot.home, robot.home + 0.1], v, v, 1e-3)
    fast = ld.complete_velocity(robot, robot.home, {"q1": 300.0, "q4": 300.0})
    with pytest.raises((ClosureError, InputError)):
        ld.discretize(robot, robot.home, fast, v, 0.1)
    solo = bundled("solo12")
    with pytest.raises(InputError, match="shorter step"):
        ld.discretize(solo, solo.home, np.full(solo.nv, 10.0), np.zeros(solo.nv), 0.2)
