"""Batches of linearizations and accelerations: the same as one state at a time, and errors that say where."""
from dataclasses import fields, replace

import numpy as np
import pytest

import liedyn as ld
from liedyn.machine.compiled import jit
from liedyn.machine.errors import (
    ClosureError, ConditionWarning, InputError, LiedynError, SingularConfigurationError,
)

ROBOTS = ("five_bar", "loader", "stewart", "solo12", "rolling_disk", "shopping_cart", "spherical_wrist", "delta")


def moving(robot, count, seed=0):
    """States on the manifold near home, moving, with forces."""
    rng = np.random.default_rng(seed)
    q, v, tau = np.empty((count, robot.nq)), np.empty((count, robot.nv)), rng.normal(size=(count, robot.nv))
    for b in range(count):
        near = ld.integrate(robot, robot.home, 0.02 * rng.normal(size=robot.nv))
        q[b] = ld.close(robot, near) if robot.row_names else near
        G = ld.constraint_jacobian(robot, q[b])
        v[b] = 0.3 * rng.normal(size=robot.nv)
        v[b] -= np.linalg.pinv(G, rcond=1e-9) @ (G @ v[b])
    return q, v, tau


def arrays(result):
    found = {f.name: getattr(result, f.name) for f in fields(result)}
    return {name: value for name, value in found.items() if value is not None and not isinstance(value, tuple)}


def assert_batch_is_its_states(robot, state, together, apart, tolerance=1e-11):
    for name, whole in arrays(together).items():
        for b, one in enumerate(apart):
            alone = np.asarray(getattr(one, name))
            off, scale = np.reshape(whole, (len(apart), *alone.shape))[b] - alone, 1.0 + np.abs(alone).max(initial=0.0)
            assert np.abs(off).max(initial=0.0) < tolerance * scale, name
    for name in ("states", "inputs", "outputs"):
        assert getattr(together, name) == getattr(apart[0], name)


@pytest.mark.parametrize("name", ROBOTS)
def test_a_batch_is_its_states(name):
    robot = ld.load(name)
    q, v, tau = moving(robot, 5)
    first = ld.linearize(robot, q[0], v[0], tau[0])
    chosen = dict(independent=first.states[:first.K.shape[1]],
                  speeds=[s.removeprefix("velocity:") for s in first.states[first.K.shape[1]:]])
    together = ld.linearize(robot, q, v, tau, **chosen)
    assert_batch_is_its_states(
        robot, (q, v, tau), together, [ld.linearize(robot, *each, **chosen) for each in zip(q, v, tau)])


@pytest.mark.parametrize("name", ["five_bar", "spherical_wrist", "stewart"])
def test_every_tangent_space_of_a_batch(name):
    robot = ld.load(name)
    q, v, tau = moving(robot, 4)
    together = ld.linearize(robot, q, v, tau, independent="tangent")
    apart = [ld.linearize(robot, *each, independent="tangent") for each in zip(q, v, tau)]
    assert_batch_is_its_states(robot, (q, v, tau), together, apart, 1e-9)


@pytest.mark.parametrize("outputs", [
    ("q2", "velocity:q1", "acceleration:q4"), ("velocity:q3",), ("q1", "pose:link3", "acceleration:q2"),
    ("wrench:pin",),
], ids=repr)
def test_outputs_of_a_batch(outputs):
    robot = ld.load("five_bar")
    outputs = tuple(name.replace("link3", robot.body_names[2]) for name in outputs)
    q, v, tau = moving(robot, 6)
    together = ld.linearize(robot, *(x.reshape(2, 3, -1) for x in (q, v, tau)), outputs=outputs)
    apart = [ld.linearize(robot, *each, outputs=outputs) for each in zip(q, v, tau)]
    assert_batch_is_its_states(robot, (q, v, tau), together, apart)
    assert together.C.shape == (2, 3, len(together.outputs), 4)


RATES = {"position": 0, "velocity": 1, "acceleration": 2}


def every_output(robot):
    """Of each kind: coordinates of tree and cuts, bodies near the ground and far from it, all loops."""
    bodies = {robot.body_names[0], robot.body_names[len(robot.body_names) // 2], robot.body_names[-1]}
    return (*(f"{kind}:{name}" for kind in RATES for name in robot.velocity_names[-2:] + robot.virtual_names),
            *(f"{kind}:{name}" for kind in ("pose", "twist", "twist_rate") for name in sorted(bodies)),
            *(f"wrench:{name}" for name in robot.loop_names))


@pytest.mark.parametrize("name", [*ROBOTS, "panda", "parallel_five_bar"])
def test_every_output_of_a_batch(name):
    """As alone, to rounding, whatever stands beside it."""
    robot = ld.load(name)
    q, v, tau = moving(robot, 3)
    names = every_output(robot)
    first = ld.linearize(robot, q[0], v[0], tau[0])
    p = first.K.shape[1]
    chosen = dict(independent=first.states[:p], speeds=[s.removeprefix("velocity:") for s in first.states[p:]])
    together = ld.linearize(robot, q, v, tau, outputs=names, **chosen)
    assert together.C.shape[1] == together.D.shape[1] == len(together.outputs)
    for b in range(3):
        one = ld.linearize(robot, q[b], v[b], tau[b], outputs=names[::-1], **chosen)
        order = [one.outputs.index(label) for label in together.outputs]
        for batch, alone in ((together.C[b], one.C[order]), (together.D[b], one.D[order])):
            np.testing.assert_allclose(batch, alone, rtol=1e-13, atol=1e-13 * (1.0 + np.abs(alone).max(initial=0.0)))


@pytest.mark.parametrize("name", ["stewart", "loader", "solo12"])
def test_outputs_read_the_kinematics(name):
    """Displacements and velocities of bodies and cuts are those of their Jacobians along K, S and the upper rows."""
    robot = ld.load(name)
    q, v, tau = (x[0] for x in moving(robot, 1))
    body = robot.body_names[-1]
    ss = ld.linearize(robot, q, v, tau, outputs=[
        f"pose:{body}", f"twist:{body}", *robot.virtual_names, *(f"velocity:{z}" for z in robot.virtual_names)])
    J, p, k = ld.body_jacobian(robot, q, body), ss.K.shape[1], len(robot.virtual_names)
    np.testing.assert_allclose(ss.C[:6], np.hstack([J @ ss.K, 0.0 * J @ ss.S]), atol=1e-12)
    np.testing.assert_allclose(ss.C[6:12, p:], J @ ss.S, atol=1e-12)
    E = ld.constraints.loops.virtual_jacobian(robot, q)
    np.testing.assert_allclose(ss.C[12:12 + k], np.hstack([E @ ss.K, 0.0 * E @ ss.S]), atol=1e-12)
    np.testing.assert_allclose(ss.C[12 + k:, p:], E @ ss.S, atol=1e-12)
    assert not ss.D.any()


def test_outputs_of_a_robot_that_is_moved():
    """A moving target adds velocity and acceleration of its own; derivatives by differences along the coordinates."""
    target = lambda t: ([0.01 * np.sin(t), 0, 0], [0.01 * np.cos(t), 0, 0], [-0.01 * np.sin(t), 0, 0])  # noqa: E731
    robot = ld.load("five_bar").with_target("pin", target).at(0.3)
    body = robot.body_names[1]
    q = ld.close(robot, robot.home)
    at = ld.virtual_coordinates(robot, q)

    def outputs(y, w):
        q_near = ld.close(robot, robot.home, q1=y[0], q2=y[1])
        v = ld.complete_velocity(robot, q_near, {"q1": w[0], "q2": w[1]})
        r = ld.forward_dynamics(robot, q_near, v, np.zeros(4))
        J, J_dot = ld.body_jacobian(robot, q_near, body), ld.body_jacobian_dot(robot, q_near, v, body)
        return np.concatenate([ld.virtual_coordinates(robot, q_near) - at, J @ v, J @ r.a + J_dot @ v,
                               r.constraint_wrenches["pin"]])

    y, w, h = q[:2], np.array([0.3, -0.5]), 1e-3
    v = ld.complete_velocity(robot, q, {"q1": w[0], "q2": w[1]})
    ss = ld.linearize(robot, q, v, np.zeros(4), independent=("q1", "q2"),
                      outputs=("pin", f"twist:{body}", f"twist_rate:{body}", "wrench:pin"))
    for k in range(4):
        step = np.eye(4)[k]

        def along(s, step=step):
            return outputs(y + s * step[:2], w + s * step[2:])

        slope = sum(c * (along(i * h) - along(-i * h)) for i, c in ((1, 0.75), (2, -0.15), (3, 1 / 60))) / h
        # sixth order: what is left is rounding of the assembly, 1e-12 / h
        np.testing.assert_allclose(ss.C[:, k], slope, rtol=1e-7, atol=1e-7 * np.abs(slope).max())


def test_many_states_in_threads():
    """Enough to be shared among threads: every state is the one it should be."""
    robot = ld.load("five_bar")
    q, v, tau = (np.repeat(x, 700, axis=0) for x in moving(robot, 5))
    together = ld.linearize(robot, q, v, tau)
    for b in (0, 699, 700, 1749, 1750, 3499):
        one = ld.linearize(robot, q[b], v[b], tau[b])
        np.testing.assert_allclose(together.A[b], one.A, rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(together.drift[b], one.drift, rtol=1e-12, atol=1e-12)
    assert not together.C.strides[0]  # the coordinates themselves: not copied for each state
    names = every_output(robot)
    together = ld.linearize(robot, q, v, tau, outputs=names)
    for b in (0, 1749, 1750, 3499):
        one = ld.linearize(robot, q[b], v[b], tau[b], outputs=names)
        np.testing.assert_allclose(together.C[b], one.C, rtol=1e-13, atol=1e-13 * np.abs(one.C).max())
        np.testing.assert_allclose(together.D[b], one.D, rtol=1e-13, atol=1e-13 * np.abs(one.D).max())


def test_moving_targets_in_threads():
    """They use scratch space in the packed model: each block of states has one of its own."""
    target = lambda t: ([0.01 * np.sin(t), 0, 0], [0.01 * np.cos(t), 0, 0], [-0.01 * np.sin(t), 0, 0])  # noqa: E731
    robot = ld.load("five_bar").with_target("pin", target).at(0.3)
    q = ld.close(robot, robot.home)
    v = ld.complete_velocity(robot, q, {"q1": 0.1, "q2": -0.2})
    state = [np.repeat(x[None], 2000, axis=0) for x in (q, v, 0.0 * v)]
    together, one = ld.linearize(robot, *state), ld.linearize(robot, q, v, 0.0 * v)
    np.testing.assert_allclose(together.A, np.broadcast_to(one.A, together.A.shape), rtol=1e-12, atol=1e-12)
    assert np.abs(one.drift).max() > 1e-4


@pytest.mark.parametrize("lead, where, text", [
    ((9,), 4, "state 4 of"), ((3, 3), 4, r"state \(1, 1\) of"), ((), 0, None),
])
def test_the_first_bad_state_is_named(lead, where, text):
    robot = ld.load("five_bar")
    q, v, tau = moving(robot, max(1, int(np.prod(lead))))
    good = q.copy(), v.copy()

    def raises(error, pattern):
        with pytest.raises(error, match=pattern) as caught:
            ld.linearize(robot, *(x.reshape(*lead, -1) for x in (q, v, tau)))
        assert (text is None and "of the batch" not in str(caught.value)) or caught.match(text)
        q[:], v[:] = good

    q[where:] += 0.1
    raises(ClosureError, "loop 'pin' of 'five_bar' is open")
    v[where] += 1.0
    raises(InputError, "v opens the loops")
    q[where], v[where] = ld.close(robot, robot.home, q4=0.0), 0.0
    raises(SingularConfigurationError, "do not determine")
    q[where, 1] = np.nan
    raises(InputError, r"q is not finite: q\[1\] = nan")


def test_a_bad_state_among_many():
    robot = ld.load("five_bar")
    q, v, tau = (np.repeat(x, 2000, axis=0) for x in moving(robot, 2))
    q[[3900, 1999, 2500]] += 0.1
    with pytest.raises(ClosureError, match="state 1999 of the batch"):
        ld.linearize(robot, q, v, tau)


def test_poor_coordinates_anywhere_in_a_batch():
    robot = ld.load("five_bar")
    q, v, tau = moving(robot, 3)
    q[1], v[1] = ld.close(robot, robot.home, q4=3e-8), 0.0
    with pytest.warns(ConditionWarning, match="q1, q2 are poorly conditioned"):
        ld.linearize(robot, q, v, tau)


def test_results_are_not_the_arguments():
    robot = ld.load("five_bar")
    for state in (moving(robot, 3), [x[0] for x in moving(robot, 1)]):
        ss = ld.linearize(robot, *state)
        for name, x in zip(("q", "v", "tau"), state):
            assert not np.may_share_memory(getattr(ss, name), x)
    again = ld.linearize(robot, *state)
    ss.C[:], ss.D[:] = 5.0, 5.0  # of one state they are the caller's own
    np.testing.assert_array_equal(again.C, np.eye(2, 4))
    np.testing.assert_array_equal(ld.linearize(robot, *state).D, 0.0)


def test_nothing_is_compiled_twice():
    robot = ld.load("five_bar")
    q, v, tau = moving(robot, 3)
    ld.linearize(robot, q, v, tau), ld.linearize(robot, q[0], v[0], tau[0])

    def signatures():
        return {(kernel.py_func.__name__, s) for kernel in jit.KERNELS for s in kernel.overloads}

    before = signatures()
    for change in (np.ndarray.tolist, np.asfortranarray, lambda x: np.repeat(x, 2, 1)[:, ::2], lambda x: x[::-1],
                   lambda x: np.frombuffer(x.tobytes()).reshape(x.shape), lambda x: x.astype(np.longdouble)):
        state = [change(x) for x in (q, v, tau)]
        ld.linearize(robot, *state)
        ld.linearize(robot, *(x[0] for x in state))
        ld.linearize(robot, q, v, state[2][0], outputs=["q2", "velocity:q1"])
        ld.linearize(robot, *(x[0] for x in state), outputs=every_output(robot))
    assert signatures() == before


# ---- forward dynamics


def same_dynamics(together, apart, tolerance=1e-10):
    for name in ("a", "lam", "rank", "condition", "constraint_force"):
        for b, one in enumerate(apart):
            alone = np.asarray(getattr(one, name))
            whole = np.reshape(getattr(together, name), (len(apart), *alone.shape))[b]
            scale = 1.0 + np.abs(alone).max(initial=0.0)
            assert np.abs(whole - alone).max(initial=0.0) < tolerance * scale, name
    for name, F in apart[-1].constraint_wrenches.items():
        np.testing.assert_allclose(together.constraint_wrenches[name][-1], F, rtol=1e-9, atol=1e-9)
    assert together.independent == apart[-1].independent and together.redundant_rows == apart[-1].redundant_rows


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("independent", [None, "auto", "tangent"])
def test_forward_dynamics_of_a_batch(name, independent):
    """And by Lagrange multipliers, which know no coordinates, the same."""
    robot = ld.load(name)
    q, v, tau = moving(robot, 5)
    together = ld.forward_dynamics(robot, q, v, tau, independent=independent)
    apart = [ld.forward_dynamics(robot, *each, independent=independent) for each in zip(q, v, tau)]
    if independent == "auto":  # lanes share a choice
        together = replace(together, condition=np.array([each.condition for each in apart]))
    same_dynamics(together, apart)
    if not robot.singular_tree:
        other = ld.forward_dynamics(robot, q, v, tau, method="multiplier")
        np.testing.assert_allclose(together.a, other.a, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(together.lam, other.lam, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(together.constraint_force, other.constraint_force, rtol=1e-6, atol=1e-6)


def test_pivoting_where_the_declared_coordinates_do_not_fit():
    """Switched off, the loop leaves four motions where two are declared; in line, q1 and q2 say too little."""
    robot = ld.load("five_bar")
    q, v, tau = moving(robot, 3)
    free = robot.switched(pin=False)
    r = ld.forward_dynamics(free, q, v, tau)
    assert r.independent == free.velocity_names and (r.rank == 0).all()
    np.testing.assert_allclose(r.a, ld.aba(free, q, v, tau), rtol=1e-9, atol=1e-9)
    q[2], v[2] = ld.close(robot, robot.home, q4=0.0), 0.0
    r = ld.forward_dynamics(robot, q, v, tau)
    assert r.independent != ("q1", "q2") and len(r.independent) == 2
    same_dynamics(r, [ld.forward_dynamics(robot, *each) for each in zip(q, v, tau)])


def test_the_first_state_without_accelerations_is_named():
    robot = ld.load("five_bar")
    q, v, tau = (np.repeat(x, 2000, axis=0) for x in moving(robot, 2))
    q[[3900, 1999, 2500]], v[:] = ld.close(robot, robot.home, q4=0.0), 0.0
    with pytest.raises(SingularConfigurationError, match="q1, q2 do not determine.*state 1999 of the batch"):
        ld.forward_dynamics(robot, q, v, tau, independent=("q1", "q2"))
    with pytest.raises(InputError, match=r"2 degrees of freedom(?!.*batch)"):
        ld.forward_dynamics(robot, q[0], v[0], tau[0], independent=("q1",))


def test_many_accelerations_in_threads():
    robot = ld.load("loader")
    q, v, tau = (np.repeat(x, 700, axis=0) for x in moving(robot, 5))
    together = ld.forward_dynamics(robot, q, v, tau)
    for b in (0, 699, 700, 1749, 1750, 3499):
        one = ld.forward_dynamics(robot, q[b], v[b], tau[b])
        np.testing.assert_allclose(together.a[b], one.a, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(together.lam[b], one.lam, rtol=1e-10, atol=1e-9)


def test_poor_coordinates_of_forward_dynamics():
    robot = ld.load("five_bar")
    q, v, tau = moving(robot, 3)
    q[1], v[1] = ld.close(robot, robot.home, q4=3e-8), 0.0
    with pytest.warns(ConditionWarning, match="q1, q2 are poorly conditioned"):
        ld.forward_dynamics(robot, q, v, tau)


def test_models_of_a_batch_without_inputs_or_constraints():
    """Arrays without entries have rows for each state too."""
    b = ld.Builder("pendulum")
    b.body("bob", 1.0, (0.0, 0.0, -1.0))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), driven=False)
    states = np.full((2, 3, 1), 0.1), np.ones((2, 3, 1)), np.zeros((2, 3, 0))
    models = ld.linearize(b.build(), *states[:2], u=states[2], second=True)
    for index, lead in (((1, 2), ()), (1, (3,)), (slice(0, 0), (0, 3))):
        model = models[index]
        shapes = {name: getattr(model, name).shape for name in ("A", "B", "C", "D", "a", "lam")}
        of_one = {"A": (2, 2), "B": (2, 0), "C": (1, 2), "D": (1, 0), "a": (1,), "lam": (0,)}
        assert shapes == {name: lead + shape for name, shape in of_one.items()}
        assert model.second.f.shape == (*lead, 2, 2, 2) and model.second.lam.shape == (*lead, 0, 2, 2)


@pytest.mark.parametrize("function", [
    lambda robot, q: ld.curvature(robot, q), lambda robot, q: ld.linearize(robot, q, 0 * q, 0 * q),
    lambda robot, q: ld.forward_dynamics(robot, q, 0 * q, 0 * q, independent=("q1", "q2")),
    lambda robot, q: ld.complete_velocity(robot, q, {"q1": 1.0, "q2": 0.0}),
], ids=["curvature", "linearize", "forward_dynamics", "complete_velocity"])
def test_errors_name_a_state_of_a_batch_and_none_of_a_single_one(function):
    robot = ld.load("five_bar")
    missing, singular = robot.home.copy(), ld.close(robot, robot.home, q4=0.0)
    missing[1] = np.nan
    for q in (missing, singular):
        with pytest.raises(LiedynError) as alone:
            function(robot, q)
        with pytest.raises(LiedynError) as among:
            function(robot, np.array([robot.home, robot.home, q]))
        assert "of the batch" not in str(alone.value) and str(among.value).endswith("(state 2 of the batch)")
