"""Functions for JAX against the library's own numbers, under all transformations."""
import subprocess
import sys

import numpy as np
import pytest
from comparison import off
from mechanisms import MOVING_KINDS, random_tree

import liedyn as ld

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
jax.config.update("jax_enable_x64", True)

from jax.test_util import check_grads  # noqa: E402

import liedyn.jax as bridge  # noqa: E402
from liedyn.bridges.differentiable import operations  # noqa: E402

PANDA = ld.load("panda")
FIVE_BAR = ld.load("five_bar")
TREE = random_tree(np.random.default_rng(3), MOVING_KINDS).build()
WAYS = {"eager": lambda f: f, "jit": jax.jit, "vmap": jax.vmap, "jit, vmap": lambda f: jax.jit(jax.vmap(f))}


def states(robot, count=5, seed=0):
    rng = np.random.default_rng(seed)
    return ld.random_configuration(robot, rng, count), *rng.normal(size=(2, count, robot.nv))


def five_bars(count):
    """States on the constraints, and forces."""
    rng = np.random.default_rng(7)
    q = ld.close(FIVE_BAR, FIVE_BAR.home, q1=FIVE_BAR.home[0] + rng.uniform(-0.2, 0.2, count))
    return q, ld.complete_velocity(FIVE_BAR, q, {"q1": rng.normal(size=count), "q2": 0.3}), rng.normal(size=(count, 4))


@pytest.mark.parametrize("way", WAYS)
def test_values(way):
    q, v, x = states(PANDA)
    for function, expected in (
            (lambda q, v, x: bridge.rnea(PANDA, q, v, x), ld.rnea(PANDA, q, v, x)),
            (lambda q, v, x: bridge.forward_dynamics(PANDA, q, v, x).a, ld.aba(PANDA, q, v, x)),
            (lambda q, v, x: bridge.forward_kinematics(PANDA, q), ld.forward_kinematics(PANDA, q)),
            (lambda q, v, x: bridge.pose(PANDA, q, "panda_hand"), ld.pose(PANDA, q, "panda_hand"))):
        assert off(WAYS[way](function)(q, v, x), expected) < 1e-14


@pytest.mark.parametrize("way", ["eager", "jit", "jit, vmap"])
@pytest.mark.parametrize("direction", [jax.jacfwd, jax.jacrev], ids=["forward", "reverse"])
def test_jacobians_are_the_librarys(direction, way):
    q, v, x = states(PANDA)
    if "vmap" not in way:
        q, v, x = q[0], v[0], x[0]
    for function, expected in (
            (lambda *x: bridge.rnea(PANDA, *x), ld.rnea_derivatives(PANDA, q, v, x)),
            (lambda *x: bridge.forward_dynamics(PANDA, *x).a, ld.aba_derivatives(PANDA, q, v, x))):
        found = WAYS[way](direction(function, argnums=(0, 1, 2)))(q, v, x)
        for actual, each in zip(found, expected):
            assert off(actual, each) < 1e-12


def test_quaternions_in_both_directions():
    """Derivatives by the numbers of q are those that the operation has, which tests of its own check by differences."""
    q, v, x = (each[0] for each in states(TREE))
    q = 1.3 * q  # joints move on, quaternions stay what they are
    expected = operations.forward_dynamics(TREE).differentiate(q, v, x)[1][0]
    for direction in (jax.jacfwd, jax.jacrev):
        assert off(direction(lambda q: bridge.forward_dynamics(TREE, q, v, x).a)(q), expected) < 1e-14
    check_grads(lambda q: bridge.forward_kinematics(TREE, q), (q,), order=1)
    check_grads(lambda q: bridge.pose(TREE, q, TREE.body_names[-1]), (q,), order=1)


TWICE = {"hessian": lambda f: jax.hessian(f), "reverse twice": lambda f: jax.jacrev(jax.jacrev(f)),
         "forward twice": lambda f: jax.jacfwd(jax.jacfwd(f)), "jit": lambda f: jax.jit(jax.hessian(f)),
         "vmap": lambda f: lambda q: jax.vmap(jax.hessian(f))(jnp.stack([q, q]))[1],
         "jit, vmap": lambda f: lambda q: jax.jit(jax.vmap(jax.jacfwd(jax.jacrev(f))))(jnp.stack([q, q]))[0]}


@pytest.mark.parametrize("way", TWICE)
def test_second_derivatives(way):
    q, v, x = (each[0] for each in states(PANDA))
    for function, expected in (
            (lambda q: bridge.rnea(PANDA, q, v, x), ld.rnea_second_derivatives(PANDA, q, v, x)[0]),
            (lambda q: bridge.forward_dynamics(PANDA, q, v, x).a, ld.aba_second_derivatives(PANDA, q, v, x)[0])):
        assert off(TWICE[way](function)(q), expected) < 1e-11
    mixed = jax.jacfwd(jax.jacrev(bridge.rnea, argnums=2), argnums=3)(PANDA, q, v, x)
    assert np.abs(mixed).max() == 0.0  # inverse dynamics has no term with v and a
    mixed = jax.jacrev(jax.jacfwd(bridge.rnea, argnums=1), argnums=3)(PANDA, q, v, x)
    assert off(mixed, ld.rnea_second_derivatives(PANDA, q, v, x)[3]) < 1e-11


def test_newtons_method_on_a_balance_of_effort_and_place():
    """jax.hessian of a cost in q alone converges quadratically."""
    point = ld.pose(PANDA, PANDA.home, "panda_hand")[:3, 3] + 0.03

    def cost(q):
        miss = bridge.pose(PANDA, q, "panda_hand")[:3, 3] - point
        effort = bridge.rnea(PANDA, q, [0.0] * 7, [0.0] * 7)
        return 10.0 * miss @ miss + 1e-4 * effort @ effort + ((q - PANDA.home) ** 2).sum()

    q, sizes = jnp.array(PANDA.home), []
    for _ in range(7):
        slope = jax.grad(cost)(q)
        sizes.append(float(jnp.abs(slope).max()))
        q = q - jnp.linalg.solve(jax.hessian(cost)(q), slope)
    assert sizes[-1] < 1e-9 * sizes[0]


def test_vmap_over_some_arguments_only():
    q, v, x = states(PANDA)
    found = jax.jit(jax.vmap(lambda q, x: bridge.rnea(PANDA, q, v[0], x), in_axes=(0, 1)))(q, x.T)
    assert off(found, ld.rnea(PANDA, q, v[0], x)) < 1e-14
    gradient = jax.vmap(jax.grad(lambda q, x: bridge.rnea(PANDA, q, v[0], x).sum()), in_axes=(0, None))(q, x[0])
    assert off(gradient, ld.rnea_derivatives(PANDA, q, v[0], x[0])[0].sum(axis=1)) < 1e-12


def test_a_batch_is_one_call(monkeypatch):
    q, v, x = states(PANDA, 100)
    calls, original = [], operations.Rnea.evaluate
    monkeypatch.setattr(operations.Rnea, "evaluate", lambda *given: calls.append(1) or original(*given))
    robot = PANDA.at(0.0)  # with operations of its own
    jax.jit(jax.vmap(lambda q, v, x: bridge.rnea(robot, q, v, x)))(q, v, x).block_until_ready()
    assert len(calls) == 1


def test_under_scan_and_checkpoint():
    """Explicit Euler in a loop, and its gradient: against the same loop in NumPy with the library's matrices."""
    h, steps, n = 0.01, 20, 7
    q, v, tau = (each[0] for each in states(PANDA))

    def end(q, v, tau):
        def step(state, _):
            q, v = state
            return (q + h * v, v + h * bridge.forward_dynamics(PANDA, q, v, tau).a), None
        return jax.lax.scan(jax.checkpoint(step), (q, v), None, steps)[0][0]

    sensitivity, at = np.zeros((2 * n, 3 * n)), (q, v)
    sensitivity[:, :2 * n] = np.eye(2 * n)
    for _ in range(steps):
        by_q, by_v, by_tau = ld.aba_derivatives(PANDA, *at, tau)
        A = np.block([[np.eye(n), h * np.eye(n)], [h * by_q, np.eye(n) + h * by_v]])
        sensitivity = A @ sensitivity
        sensitivity[n:, 2 * n:] += h * by_tau
        at = at[0] + h * at[1], at[1] + h * ld.aba(PANDA, *at, tau)
    found = jax.jit(jax.jacrev(end, argnums=(0, 1, 2)))(q, v, tau)
    assert off(np.hstack(found), sensitivity[:n]) < 1e-12
    assert off(end(q, v, tau), at[0]) < 1e-13


def test_closed_loops():
    """Accelerations and multipliers, one state and a batch, in both directions."""
    q, v, tau = five_bars(4)
    expected = ld.forward_dynamics_derivatives(FIVE_BAR, q, v, tau)
    found = jax.jit(lambda *x: bridge.forward_dynamics(FIVE_BAR, *x))(q, v, tau)
    assert off(found.a, expected.a) < 1e-14 and off(found.lam, expected.lam) < 1e-14
    for direction in (jax.jacfwd, jax.jacrev):
        for way in (lambda f: [f(*x) for x in zip(q, v, tau)], lambda f: jax.jit(jax.vmap(f))(q, v, tau)):
            of = way(direction(lambda *x: bridge.forward_dynamics(FIVE_BAR, *x), argnums=(0, 1, 2)))
            of = jax.tree.map(lambda *rows: np.stack(rows), *of) if isinstance(of, list) else of
            for actual, name in zip((*of.a, *of.lam), ("a_q", "a_v", "a_tau", "lam_q", "lam_v", "lam_tau")):
                assert off(actual, getattr(expected, name)) < 1e-12


@pytest.mark.parametrize("way", [
    lambda f: jax.jacrev(jax.jacrev(f, argnums=(0, 1, 2)), argnums=(0, 1, 2)),
    lambda f: jax.jit(jax.hessian(f, argnums=(0, 1, 2)))], ids=["reverse twice", "jit, hessian"])
@pytest.mark.parametrize("part", ["a", "lam"])
def test_second_derivatives_of_a_closed_loop(way, part):
    """Along a path of the mechanism: sixth-order differences of the library's first derivatives."""
    q, v, tau = (x[0] for x in five_bars(1))
    push = np.random.default_rng(5).normal(size=4)

    def at(h):
        there = ld.close(FIVE_BAR, q, q1=q[0] + 0.7 * h, q2=q[1] - 0.4 * h)
        speeds = {"q1": v[0] - 1.1 * h, "q2": v[1] + 0.5 * h}
        return there, ld.complete_velocity(FIVE_BAR, there, speeds), tau + h * push

    def slopes(h):
        found = ld.forward_dynamics_derivatives(FIVE_BAR, *at(h))
        return [getattr(found, f"{part}_{by}") for by in ("q", "v", "tau")]

    h = 1e-3
    stencil = ((k, c) for n, c in ((1, 0.75), (2, -0.15), (3, 1.0 / 60.0)) for k, c in ((n, c / h), (-n, -c / h)))
    sides = [(c, at(k * h), slopes(k * h)) for k, c in stencil]
    along = [sum(c * each[i] for c, each, _ in sides) for i in range(3)]
    H = way(lambda *x: getattr(bridge.forward_dynamics(FIVE_BAR, *x), part))(q, v, tau)
    for i in range(3):
        found = sum(np.asarray(H[i][j]) @ along[j] for j in range(3))
        assert off(found, sum(c * each[i] for c, _, each in sides)) < 1e-8


def cost(q, v, tau):
    return jnp.sum((q[-1] - 1.0) ** 2) + jnp.sum(v ** 2) / 10 + jnp.sum(tau ** 2) / 100


def test_the_gradient_of_a_run():
    """By its start and its forces: against the adjoint of the library's own run."""
    q, v, _ = (x[0] for x in five_bars(1))
    tau = np.random.default_rng(1).normal(size=(20, 4))

    def total(q, v, tau):
        run = bridge.rollout(FIVE_BAR, q, v, tau, 0.01)
        return cost(run.q, run.v, tau)

    value, gradient = jax.jit(jax.value_and_grad(total, argnums=(0, 1, 2)))(q, v, tau)
    run = ld.differentiate_run(FIVE_BAR, q, v, 0.2, tau=tau, dt=0.01)
    path = run.trajectory
    assert off(value, float(cost(path.q, path.v, tau))) < 1e-14
    weights = np.zeros_like(path.q)
    weights[-1] = 2 * (path.q[-1] - 1.0)
    expected = run.adjoint(weights, path.v / 5)
    for actual, each in zip(gradient, (expected.q0, expected.v0, expected.inputs + tau / 50)):
        assert off(actual, each) < 1e-12
    along = jax.jvp(total, (q, v, tau), (q, v, tau))[1]
    assert off(along, sum(np.sum(x * dx) for x, dx in zip(gradient, (q, v, tau)))) < 1e-12


def test_steps_in_a_scan_are_a_run():
    q, v, tau = five_bars(3)
    tau = np.random.default_rng(2).normal(size=(3, 8, 4))

    def end(q, v, tau):
        return jax.lax.scan(lambda x, u: (tuple(bridge.step(FIVE_BAR, *x, u, 0.01)), None), (q, v), tau)[0][0]

    def same(q, v, tau):
        return bridge.rollout(FIVE_BAR, q, v, tau, 0.01).q[-1]

    for way in (lambda f: f, lambda f: jax.jacrev(f, argnums=(0, 1, 2)), lambda f: jax.jacfwd(f, argnums=2)):
        actual, expected = (jax.jit(jax.vmap(way(f)))(q, v, tau) for f in (end, same))
        for x, y in zip(jax.tree.leaves(actual), jax.tree.leaves(expected)):
            assert off(x, y) < 1e-12


def test_floating_robots_step():
    """In numbers of quaternions: forwards and in reverse are transposes of one matrix, which differences confirm."""
    robot = random_tree(np.random.default_rng(5), ["free", "revolute", "spherical"]).build()
    q, v, x = (each[0] for each in states(robot))
    check_grads(lambda *x: tuple(bridge.step(robot, *x, 0.01)), (q, v, x), order=1)
    check_grads(lambda *x: tuple(bridge.rollout(robot, *x, 0.01)), (q, v, np.tile(x, (3, 1))), order=1)


def test_forces_of_least_cost():
    """Gradient descent on the forces of a closed loop's run: every step lowers the cost, gradients go to zero."""
    q, v, _ = (x[0] for x in five_bars(1))

    @jax.jit
    @jax.value_and_grad
    def total(tau):
        return cost(*bridge.rollout(FIVE_BAR, q, v, tau, 0.02), tau)

    tau, values = jnp.zeros((10, 4)), []
    for _ in range(40):
        value, gradient = total(tau)
        values.append(float(value))
        tau = tau - 5.0 * gradient
    assert (np.diff(values) < 0.0).all() and np.abs(gradient).max() < 0.1 * np.abs(total(jnp.zeros((10, 4)))[1]).max()


def test_a_mass_is_identified():
    """From a run of a five-bar, whose second link is heavier than thought: by Gauss and Newton, both ways."""
    q, v, _ = (x[0] for x in five_bars(1))
    tau, nominal = np.random.default_rng(3).normal(size=(20, 4)), ld.inertial_parameters(FIVE_BAR)
    true = nominal.copy()
    true[1] *= 1.3
    measured = ld.simulate(ld.with_inertial_parameters(FIVE_BAR, true), q, v, 0.2, tau=tau, dt=0.01).q

    @jax.jit
    def residual(factor):
        pi = jnp.asarray(nominal).at[1].multiply(factor)
        return (bridge.rollout(FIVE_BAR, q, v, tau, 0.01, pi).q - measured).ravel()

    factor = 1.0
    for _ in range(6):
        slope, r = jax.jacfwd(residual)(factor), residual(factor)
        assert off(jax.grad(lambda x: residual(x) @ residual(x))(factor), 2 * slope @ r) < 1e-12
        factor -= slope @ r / (slope @ slope)
    assert abs(factor - 1.3) < 1e-10
    with pytest.raises(ld.ModelError, match="mass"):
        bridge.rnea(FIVE_BAR, q, v, tau[0], -nominal)


def test_single_precision_arguments_are_converted():
    q = jnp.asarray(PANDA.home, jnp.float32)
    found = bridge.rnea(PANDA, q, [0] * 7, jnp.zeros(7, int))
    assert found.dtype == np.float64
    assert off(found, ld.rnea(PANDA, np.asarray(q, float), np.zeros(7), np.zeros(7))) < 1e-14
    assert jax.grad(lambda q: bridge.rnea(PANDA, q, [0] * 7, [0] * 7).sum())(q).dtype == np.float32


def test_what_is_wrong_is_said():
    q, rest = PANDA.home, np.zeros(7)
    for given, said in (((q[:6], rest, rest), r"q must have shape \(..., 7\), got \(6,\)"),
                        ((q, "rest", rest), "v must be numbers"), ((q, rest, 1j * jnp.ones(7)), "a must be numbers"),
                        ((np.tile(q, (3, 1)), np.zeros((2, 7)), rest), "do not broadcast"),
                        ((np.nan * q, rest, rest), "q is not finite")):
        with pytest.raises(ld.InputError, match=said):
            bridge.rnea(PANDA, *given)
    with pytest.raises(ld.InputError, match="expected a Robot"):
        bridge.rnea("panda", q, rest, rest)
    with pytest.raises(ld.InputError, match="unknown body"):
        bridge.pose(PANDA, q, "hnd")
    with pytest.raises(jax.errors.JaxRuntimeError, match="q is not finite"):
        jax.block_until_ready(jax.jit(lambda q: bridge.rnea(PANDA, q, rest, rest))(np.nan * q))
    with pytest.raises(ld.LiedynError, match="no third derivatives: Rnea"):
        jax.jacfwd(jax.hessian(lambda q: bridge.rnea(PANDA, q, rest, rest)[0]))(q)
    with pytest.raises(ld.LiedynError, match="no second derivatives"):
        jax.hessian(lambda tau: bridge.step(PANDA, q, rest, tau, 0.01).v[0])(rest)


@pytest.mark.parametrize("program, said", [
    ("import liedyn.jax as j, liedyn as ld; j.rnea(ld.load('panda'), *[[0] * 7] * 3)", "set to single precision"),
    ("import sys; sys.modules['jax'] = None; import liedyn.jax", "pip install 'liedyn[jax]'")])
def test_what_has_to_be_set_up(program, said):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode and "LiedynError" in done.stderr and said in done.stderr


# ---- springs and dampers as arguments


def sprung():
    """A five-bar with a spring across it, and springs and dampers in its joints."""
    b = ld.Builder.of(FIVE_BAR)
    b.spring("strut", "link1", "link4", stiffness=30.0, length=0.2, damping=0.7)
    b.coordinate_force("coil", {"q1": 1.0, "q2": -0.5}, stiffness=2.0, damping=0.1, preload=0.3)
    b.change("joint", "q2", stiffness=1.5, damping=0.2)
    return b.build()


SPRUNG = sprung()
VALUES = {"stiffness:strut": 40.0, "damping:strut": 1.1, "length:strut": 0.25, "preload:coil": 0.1, "stiffness:q2": 2.5,
          "damping:q2": 0.4, "mass:link2": 1.3}


def changed(values):
    b = ld.Builder.of(SPRUNG)
    b.change("element", "strut", stiffness=values["stiffness:strut"], damping=values["damping:strut"],
             length=values["length:strut"])
    b.change("element", "coil", preload=values["preload:coil"])
    b.change("joint", "q2", stiffness=values["stiffness:q2"], damping=values["damping:q2"])
    b.change("body", "link2", mass=values["mass:link2"])
    return b.build()


def test_values_with_other_springs():
    q, v, tau = (x[0] for x in five_bars(1))
    other = changed(VALUES)
    found = bridge.forward_dynamics(SPRUNG, q, v, tau, parameters=VALUES)
    expected = ld.forward_dynamics(other, q, v, tau)
    assert off(found.a, expected.a) < 1e-12 and off(found.lam, expected.lam) < 1e-12
    run = bridge.rollout(SPRUNG, q, v, jnp.tile(tau, (5, 1)), 0.01, parameters=VALUES)
    assert off(run.q[-1], ld.simulate(other, q, v, 0.05, dt=0.01, tau=tau).q[-1]) < 1e-12
    # others for each state, and under vmap
    many = jnp.linspace(10.0, 50.0, 3)
    batch = bridge.forward_dynamics(SPRUNG, q, v, tau, parameters={"stiffness:strut": many}).a
    one = jax.vmap(lambda k: bridge.forward_dynamics(SPRUNG, q, v, tau, parameters={"stiffness:strut": k}).a)(many)
    assert batch.shape == (3, 4) and off(batch, one) < 1e-14
    assert off(batch[2], bridge.forward_dynamics(SPRUNG, q, v, tau, parameters={"stiffness:strut": 50.0}).a) < 1e-14


@pytest.mark.parametrize("what", ["dynamics", "step", "run", "rnea"])
def test_derivatives_by_springs(what):
    """Both directions, against differences."""
    q, v, tau = (x[0] for x in five_bars(1))
    names = [name for name in VALUES if what != "rnea" or name.endswith(("q2", "link2"))]

    def function(q, v, tau, x):
        values = dict(zip(names, x))
        if what == "dynamics":
            return bridge.forward_dynamics(SPRUNG, q, v, tau, parameters=values)
        if what == "step":
            return bridge.step(SPRUNG, q, v, tau, 0.01, parameters=values)
        if what == "run":
            return bridge.rollout(SPRUNG, q, v, jnp.tile(tau, (4, 1)), 0.01, parameters=values)
        return bridge.rnea(SPRUNG, q, v, tau, parameters=values)

    x = jnp.array([VALUES[name] for name in names])
    check_grads(lambda x: function(q, v, tau, x), (x,), 1, ["fwd", "rev"], atol=1e-6, rtol=1e-6)
    check_grads(lambda tau: function(q, v, tau, x), (tau,), 1, ["fwd", "rev"], atol=1e-6, rtol=1e-6)
    if what in ("dynamics", "rnea"):  # steps refuse the velocities of differences, which open the loop
        check_grads(lambda v: function(q, v, tau, x), (v,), 1, ["fwd", "rev"], atol=1e-6, rtol=1e-6)


def test_parameters_that_cannot_be_arguments():
    q, v, tau = (x[0] for x in five_bars(1))
    for values, message in (({"stifness:strut": 1.0}, "did you mean"), ({}, "must be a dict"),
                            ({"placement.x:q2": 1.0}, "changes forces alone")):
        with pytest.raises(ld.InputError, match=message):
            bridge.forward_dynamics(SPRUNG, q, v, tau, parameters=values)
    with pytest.raises(ld.InputError, match="not both"):
        bridge.forward_dynamics(SPRUNG, q, v, tau, ld.inertial_parameters(SPRUNG), VALUES)
    with pytest.raises(ld.InputError, match="rnea does not contain force elements, and so not stiffness:strut"):
        jax.jacfwd(lambda k: bridge.rnea(SPRUNG, q, v, tau, parameters={"stiffness:strut": k}))(3.0)
