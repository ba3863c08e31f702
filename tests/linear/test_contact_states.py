"""Functions of a state with one-sided constraints: forward dynamics and linearization decide what each contact does.

The oracle solves the equations of motion afresh in NumPy, sliding friction by fixed-point iteration on the normal
forces of least norm, and is differentiated by central differences along the constraints.
"""
import pickle

import numpy as np
import pytest
from tree_cases import gradient, off

import liedyn as ld
from liedyn.machine.errors import InputError, SingularConfigurationError

ORACLE, ROBOTS = "Contact with friction by iteration in NumPy", "a ball, a bead, a table, three legs"
DIFFERENCES = 1e-9  # relative to the largest entry: what `gradient` leaves, of order 8


def box(mu, slope=0.0, feet=((0.0, 0.0),), height=0.0, mass=2.0):
    """A free body on a plane, whose x axis points down the slope."""
    b = ld.Builder("box", gravity=(9.81 * np.sin(slope), 0.0, -9.81 * np.cos(slope)))
    b.body("box", mass=mass, inertia=(0.05, 0.06, 0.08))
    b.joint("j", "free", "ground", "box")
    for k, (x, y) in enumerate(feet):
        b.constraint(f"foot{k}", "on_plane", "ground", "box", child_placement=(x, y, -height), unilateral=True,
                     friction=mu)
    return b.build()


def at_height(robot, z, v):
    q = robot.neutral.copy()
    q[6] = z
    return q, np.array(v, dtype=float), np.zeros(6)


def keeping(robot, q, v, **held):
    """The nearest velocity that the contacts allow."""
    G = ld.constraint_jacobian(robot.switched(**held), q)
    return v - np.linalg.pinv(G) @ (G @ v)


def ball():
    """A sphere that spins and slides on a plane, its center of mass aside."""
    b = ld.Builder("ball", gravity=(1.0, 0.5, -9.0))
    b.body("ball", mass=1.5, com=(0.02, 0.01, -0.03), inertia=(0.02, 0.03, 0.04))
    b.joint("j", "free", "ground", "ball")
    b.constraint("floor", "sphere_on_plane", "ground", "ball", radius=0.2, unilateral=True, friction=0.3)
    robot = b.build()
    q = ld.integrate(robot, robot.neutral, [0.3, -0.2, 0.5, 0.0, 0.0, 0.0])
    q[4:] = 0.1, -0.4, 0.2
    v = keeping(robot, q, [1.0, -2.0, 0.5, 0.6, 0.3, 0.1], floor="sliding")
    return robot, q, v, [0.1, 0.2, -0.1, 0.5, -0.3, 0.2]


def bead(friction=0.25):
    """A bead that slides on the outside of a cylinder, on springs."""
    b = ld.Builder("bead", gravity=(0.0, 0.0, -9.81))
    for name, axis, parent in (("x", (1, 0, 0), "ground"), ("y", (0, 1, 0), "x"), ("z", (0, 0, 1), "y")):
        b.body(name, mass=0.3, inertia=(0.01, 0.01, 0.01))
        b.joint(f"j{name}", "prismatic", parent, name, axis=axis, stiffness=3.0, damping=0.4)
    b.constraint("skin", "on_cylinder", "ground", "z", radius=0.5, axis=(0, 1, 0), unilateral=True,
                 friction=friction)
    robot = b.build()
    q = np.array([0.3, 0.2, 0.4])
    return robot, q, keeping(robot, q, [0.8, 0.5, -0.6], skin="sliding"), [0.2, 0.1, -6.0]


def table():
    """Four feet that slide, one redundant."""
    robot = box(0.4, 0.2, ((0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2)), 0.25)
    return robot, at_height(robot, 0.25, ())[0], [0.0, 0.0, 0.7, 0.9, -0.4, 0.0], [0.3, -0.2, 0.4, 1.0, 2.0, -3.0]


def legs():
    """A trunk on two legs in the plane: one foot sticks, one slides, one is in the air."""
    b = ld.Builder("legs", gravity=(0.0, 0.0, -9.81))
    b.body("trunk", mass=3.0, inertia=(0.1, 0.1, 0.1))
    b.joint("base", "free", "ground", "trunk")
    for k, x in enumerate((-0.3, 0.3, 0.0)):
        b.body(f"thigh{k}", mass=0.5, com=(0.0, 0.0, -0.15), inertia=(0.01, 0.01, 0.01))
        b.joint(f"hip{k}", "revolute", "trunk", f"thigh{k}", axis=(0, 1, 0), placement=(x, 0.1 * (k - 1), 0.0),
                damping=0.1)
        b.body(f"shin{k}", mass=0.4, com=(0.0, 0.0, -0.15), inertia=(0.01, 0.01, 0.01))
        b.joint(f"knee{k}", "revolute", f"thigh{k}", f"shin{k}", axis=(0, 1, 0), placement=(0, 0, -0.3), stiffness=1.0)
        b.constraint(f"foot{k}", "on_plane", "ground", f"shin{k}", child_placement=(0, 0, -0.3), unilateral=True,
                     friction=(5.0, 0.2, 0.5)[k])
    robot = b.build()
    q = robot.neutral.copy()
    for k in range(3):
        q[robot.coordinate_index(f"hip{k}")], q[robot.coordinate_index(f"knee{k}")] = (
            (0.4, -0.8) if k < 2 else (0.9, -1.4))
    q[6] = 0.6 * np.cos(0.4)
    v = np.array([0.1, 0.2, -0.1, 0.1, 0.05, -0.1, 0.5, 0.3, -1.0, 0.7, 0.3, 0.2])
    return robot, q, keeping(robot, q, v, foot0="sticking", foot1="sliding"), 0.1 * np.arange(12.0)


CASES = {"ball": ball, "bead": bead, "table": table, "legs": legs}
STATUS = {"ball": ["sliding"], "bead": ["sliding"], "table": ["sliding"] * 4, "legs": ["sticking", "sliding", "open"]}


def oracle(robot, names, q, v, tau):
    """(a, lam) with contacts that do what `names` says; lam = mu N s in the tangential rows of those that slide."""
    model = {c.name: c for c in robot.model.constraints}
    closed = {name: how if how in ("sliding", "sticking") else False for name, how in names.items()}
    G = ld.constraint_jacobian(robot.switched(closed), q)
    every = robot.switched({name: "sticking" if how else False for name, how in closed.items()})
    G_all, psi = ld.constraint_jacobian(every, q), ld.constraints.velocity_error(every, q, v)
    gamma = ld.constraints.constraint_bias(robot.switched(closed), q, v)
    M, h, plus = ld.crba(robot, q), ld.rnea(robot, q, v, np.zeros(robot.nv)), np.linalg.pinv(G, rcond=1e-9)
    K = np.linalg.svd(G)[2][np.linalg.matrix_rank(G, tol=1e-9):].T
    friction = np.zeros(len(psi))
    for _ in range(200):
        f = tau - h - G_all.T @ friction
        a = plus @ gamma
        a = a + K @ np.linalg.solve(K.T @ M @ K, K.T @ (f - M @ a))
        lam = plus.T @ (f - M @ a)
        before = friction.copy()
        for name, how in names.items():
            rows = np.flatnonzero(np.array(robot.row_owners) == name)
            if how == "sliding" and len(rows) > 1:
                slip = psi[rows[1:]]
                friction[rows[1:]] = model[name].friction * abs(lam[rows[0]]) * slip / np.linalg.norm(slip)
        if np.abs(friction - before).max() < 1e-15:
            break
    return a, lam + friction


@pytest.mark.validation("accelerations and forces, contacts open, sliding, sticking", robots=ROBOTS, oracle=ORACLE)
@pytest.mark.parametrize("case", CASES)
def test_forward_dynamics_against_the_oracle_by_every_method(case):
    robot, q, v, tau = CASES[case]()
    found = ld.forward_dynamics(robot, q, v, tau)
    assert list(found.contacts.values()) == STATUS[case]
    a, lam = oracle(robot, found.contacts, q, np.array(v), np.array(tau))
    assert off(found.a, a) < 1e-11 and off(found.lam, lam) < 1e-11
    for method in ("multiplier", "svd", "projection", "udwadia_kalaba", "kane", "unified"):
        other = ld.forward_dynamics(robot, q, v, tau, method=method)
        assert off(other.a, a) < 1e-9 and off(other.lam, lam) < 1e-9


@pytest.mark.validation("A, B, C and D, contacts open, sliding, sticking: differences", robots=ROBOTS, oracle=ORACLE)
@pytest.mark.parametrize("case", CASES)
def test_linearize_against_differences_of_the_oracle(case):
    robot, q, v, tau = CASES[case]()
    v, tau = np.array(v), np.array(tau)
    names = ld.forward_dynamics(robot, q, v, tau).contacts
    held = robot.switched({name: how if how in ("sliding", "sticking") else False for name, how in names.items()})
    coordinates = tuple(f"acceleration:{name}" for name in robot.velocity_names)
    wrenches = tuple(f"wrench:{name}" for name in names)
    ss = ld.linearize(robot, q, v, tau, outputs=coordinates + wrenches)
    p_y, p_w, n = ss.K.shape[1], ss.S.shape[1], robot.nv
    rows_w = np.array([robot.velocity_index(name.removeprefix("velocity:")) for name in ss.states[p_y:]])
    rows_y = np.array([robot.velocity_index(name) for name in ss.states[:p_y]])

    def a_at(dy, dw, du):
        q_new = ld.integrate(robot, q, ss.K @ dy)
        for _ in range(20):  # back to the manifold, the independent coordinates kept
            g = ld.closure_error(held, q_new)
            G = ld.constraint_jacobian(held, q_new)[held.holonomic]
            kept = np.eye(n)[rows_y] @ ld.difference(robot, q_new, ld.integrate(robot, q, np.eye(n)[rows_y].T @ dy))
            q_new = ld.integrate(robot, q_new, np.linalg.lstsq(
                np.vstack([G, np.eye(n)[rows_y]]), np.concatenate([-g[held.holonomic], kept]), rcond=1e-10)[0])
        Z = np.vstack([ld.constraint_jacobian(held, q_new), np.eye(n)[rows_w]])
        right = np.concatenate([-ld.constraints.velocity_error(held, q_new, np.zeros(n)), v[rows_w] + dw])
        v_new = np.linalg.lstsq(Z, right, rcond=1e-10)[0]
        a, lam = oracle(robot, names, q_new, v_new, tau + robot.actuator_matrix @ du)
        return np.concatenate([a, *ld.constraints.constraint_wrenches(robot, q_new, lam).values()])

    x, nu = p_y + p_w, len(ss.inputs)
    def a_of(e):
        return a_at(e[:p_y], e[p_y:x], e[x:])

    expected = gradient(lambda e: a_of(0.2 * e), x + nu) / 0.2
    found = np.hstack([ss.C, ss.D])
    assert off(found[:n], expected[:n]) < DIFFERENCES and off(found[n:], expected[n:]) < DIFFERENCES
    assert ss.outputs[n:n + 6] == tuple(f"{wrenches[0]}.{axis}" for axis in ("mx", "my", "mz", "fx", "fy", "fz"))
    only = ld.linearize(robot, q, v, tau, outputs=wrenches[:1])
    assert np.array_equal(only.C, ss.C[n:n + 6]) and np.array_equal(only.D, ss.D[n:n + 6])
    assert off(np.hstack([ss.A, ss.B])[p_y:], expected[rows_w]) < DIFFERENCES
    assert off(ss.lam, oracle(robot, names, q, v, tau)[1]) < 1e-11


def test_block_that_slides_down_a_slope():
    mu, slope, m, g = 0.3, 0.7, 2.0, 9.81
    robot = box(mu, slope)
    q, v, tau = at_height(robot, 0.0, [0.0, 0.0, 0.0, 0.8, 0.6, 0.0])
    s, speed, N = np.array([0.8, 0.6]), 1.0, m * g * np.cos(slope)
    r = ld.forward_dynamics(robot, q, v, tau)
    assert r.contacts == {"foot0": "sliding"}
    assert off(r.a[3:5], [g * np.sin(slope), 0.0] - mu * N / m * s) < 1e-14
    assert off(r.multipliers["foot0"], np.array([-N, *(mu * N * s)])) < 1e-14
    assert off(r.constraint_wrenches["foot0"][3:], np.array([*(-mu * N * s), N])) < 1e-14
    ss = ld.linearize(robot, q, v, tau)
    A = -mu * N / m / speed * (np.eye(2) - np.outer(s, s))
    assert off(ss.A[8:, 8:], A) < 1e-14
    assert off(ss.B[8:, 3:], np.column_stack([np.eye(2) / m, mu * s / m])) < 1e-14


def test_block_that_sticks_is_the_switched_robot():
    robot = box(0.3, 0.2)
    q, v, tau = at_height(robot, 0.0, np.zeros(6))
    held = robot.switched(foot0="sticking")
    assert ld.forward_dynamics(robot, q, v, tau).contacts == {"foot0": "sticking"}
    for function in (ld.linearize, ld.underlying):
        found, expected = function(robot, q, v, tau), function(held, q, v, tau)
        assert np.array_equal(getattr(found, "A", found), getattr(expected, "A", expected))


def test_sliding_without_friction_is_the_switched_robot():
    robot, q, v, tau = bead(friction=0.0)
    held = robot.switched(skin="sliding")
    assert ld.forward_dynamics(robot, q, v, tau).contacts == {"skin": "sliding"}
    for function in (ld.linearize, ld.underlying, lambda *state: ld.discretize(*state, 1e-2)):
        found, expected = function(robot, q, v, tau), function(held, q, v, tau)
        assert np.array_equal(getattr(found, "A", found), getattr(expected, "A", expected))


def test_open_contacts_do_not_count():
    robot = box(0.3)
    q, v, tau = at_height(robot, 0.1, [0.1, 0.2, 0.3, 0.4, 0.5, -0.6])
    free = robot.switched(foot0=False)
    assert ld.forward_dynamics(robot, q, v, tau).contacts == {"foot0": "open"}
    assert np.array_equal(ld.linearize(robot, q, v, tau).A, ld.linearize(free, q, v, tau).A)
    assert np.array_equal(ld.linearize(robot, q, v, tau).A, ld.linearize(robot, [q, q], v, tau).A[1])


def test_table_at_rest_carries_least_norm():
    robot = box(0.4, 0.0, ((0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2)), 0.25)
    q, v, tau = at_height(robot, 0.25, np.zeros(6))
    r = ld.forward_dynamics(robot, q, v, tau)
    assert set(r.contacts.values()) == {"sticking"} and r.rank == 6
    assert off(r.lam.reshape(4, 3)[:, 0], np.full(4, -2.0 * 9.81 / 4)) < 1e-13
    assert ld.linearize(robot, q, v, tau).rank == 6


def test_table_that_sticks_although_least_norm_would_slip():
    # uphill feet carry less, and least norm shares the friction equally
    feet, tangent = ((0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2)), 0.4
    for slope, what in (
            (0.3, "sticking"), (0.999 * np.arctan(tangent), "sticking"), (1.001 * np.arctan(tangent), None)):
        robot = box(tangent, slope, feet, 0.25)
        q, v, tau = at_height(robot, 0.25, np.zeros(6))
        r = ld.forward_dynamics(robot, q, v, tau)
        if what is None:
            excess = 9.81 * (np.sin(slope) - tangent * np.cos(slope))
            assert set(r.contacts.values()) == {"sliding"} and off(r.a[3:], [excess, 0.0, 0.0]) < 1e-9
            with pytest.raises(InputError, match="is just beginning to slip"):
                ld.linearize(robot, q, v, tau)
        else:
            rubbed = np.linalg.norm(r.lam.reshape(4, 3)[:, 1:], axis=1)
            assert set(r.contacts.values()) == {what} and (rubbed <= -tangent * r.lam[::3] + 1e-9).all()
            held = robot.switched({f"foot{k}": what for k in range(4)})
            assert off(ld.linearize(robot, q, v, tau).A, ld.linearize(held, q, v, tau).A) < 1e-13


def test_table_whose_least_norm_would_pull():
    b = ld.Builder("table")
    b.body("box", mass=2.0, inertia=(0.05, 0.06, 0.08), com=(0.18, 0.12, 0.0))
    b.joint("j", "free", "ground", "box")
    for k, (x, y) in enumerate(((0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2))):
        b.constraint(f"foot{k}", "on_plane", "ground", "box", child_placement=(x, y, 0), unilateral=True,
                     friction=0.4)
    robot = b.build()
    q, v, tau = at_height(robot, 0.0, np.zeros(6))
    r, held = ld.forward_dynamics(robot, q, v, tau), robot.switched({f"foot{k}": "sticking" for k in range(4)})
    assert np.abs(r.a).max() < 1e-13 and r.lam[::3].max() < 0.0 and set(r.contacts.values()) == {"sticking"}
    assert off(ld.constraint_jacobian(held, q).T @ r.lam, -ld.rnea(robot, q, v, v)) < 1e-12
    ss = ld.linearize(robot, q, v, tau)
    assert off(ss.A, ld.linearize(held, q, v, tau).A) < 1e-13 and off(ss.lam, r.lam) < 1e-13
    with pytest.raises(InputError, match="their wrenches have no derivative"):
        ld.linearize(robot, q, v, tau, outputs=["wrench:foot0"])
    with pytest.raises(InputError, match="'foot0', 'foot1', 'foot2', 'foot3' share the load is not determined"):
        ld.linearize(robot, q, [0.0, 0.0, 0.1, 0.5, 0.2, 0.0], tau)


@pytest.mark.parametrize("change, error, what", [
    (dict(z=-1e-5), InputError, "contact 'foot0' is 1e-05 deep"),
    (dict(v=(0, 0, 0, 0, 0, -0.5)), InputError, "impact is due: contact 'foot0' .* 0.5"),
])
def test_states_that_are_none(change, error, what):
    robot = box(0.3)
    q, v, tau = at_height(robot, change.get("z", 0.0), change.get("v", np.zeros(6)))
    for function in (ld.forward_dynamics, ld.linearize):
        with pytest.raises(error, match=what):
            function(robot, q, v, tau)


@pytest.mark.parametrize("v, force, what", [
    ((0, 0, 0, 0, 0, 0), (0, 0, 2 * 9.81), "'foot0' is about to open"),
    ((0, 0, 0, 0, 0, 0), (0, 0, 30.0), "'foot0' is about to open"),
    ((0, 0, 0, 0, 0, 1.0), (0, 0, 0), "'foot0' is about to open"),
    ((0, 0, 0, 0, 0, 0), (0.3 * 2 * 9.81, 0, 0), "'foot0' is about to slip"),
    ((0, 0, 0, 0, 0, 0), (10.0, 0, 0), "'foot0' is just beginning to slip"),
])
def test_no_derivative_at_a_transition(v, force, what):
    robot = box(0.3)
    q, v, _ = at_height(robot, 0.0, v)
    tau = [0, 0, 0, *force]
    ld.forward_dynamics(robot, q, v, tau)
    for function in (ld.linearize, ld.underlying, lambda *state: ld.discretize(*state, 1e-3)):
        with pytest.raises(InputError, match=what):
            function(robot, q, v, tau)


def test_what_there_is_not_while_contacts_slide():
    robot, q, v, tau = ball()
    for function in (ld.underlying, lambda *state: ld.discretize(*state, 1e-3)):
        with pytest.raises(InputError, match="not available while contacts slide with friction, as 'floor'"):
            function(robot, q, v, tau)
    u = ld.integrate(robot, q, [0, 0, 0, 0, 0, 0.3])
    with pytest.raises(InputError, match="linearize such states apart"):
        ld.linearize(robot, [q, u], [v, np.zeros(6)], tau)


def test_batches_of_states_with_different_contacts():
    robot, q, v, tau = legs()
    lifted = ld.integrate(robot, q, [0, 0, 0, 0, 0, 0.1] + [0] * 6)
    Q, V = np.array([[q, lifted], [lifted, q]]), np.array([[v, v], [0 * v, v]])
    f_ext = {"trunk": np.array([0.0, 0.1, 0.0, 1.0, 0.0, -2.0])}
    r = ld.forward_dynamics(robot, Q, V, tau, f_ext=f_ext)
    for b in np.ndindex(2, 2):
        one = ld.forward_dynamics(robot, Q[b], V[b], tau, f_ext=f_ext)
        for name in ("a", "lam", "rank", "constraint_force"):
            assert off(np.array(getattr(r, name)[b]), np.array(getattr(one, name))) < 1e-13
        assert {name: how[b] for name, how in r.contacts.items()} == one.contacts
        assert all(off(r.constraint_wrenches[name][b], F) < 1e-13 for name, F in one.constraint_wrenches.items())


def test_sliding_with_feedback_is_the_closed_loop():
    robot, q, v, tau = ball()
    K, D = np.diag([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 0.1 * np.ones((6, 6))
    loop = (lambda t, x, y: tau + D @ (y - v), lambda t, x, y: (K, D))
    open_loop, closed = ld.linearize(robot, q, v, tau), ld.linearize(robot, q, v, loop)
    X = ld.linearize(robot, q, v, tau, outputs=[f"velocity:{name}" for name in robot.velocity_names]).C
    F = D @ X
    F[:, :open_loop.K.shape[1]] += K @ open_loop.K
    assert off(closed.A, open_loop.A + open_loop.B @ F) < 1e-12
    assert off(closed.B, open_loop.B) < 1e-12


def test_contradictory_accelerations_are_an_error():
    # Painleve: a rod that slides on a rough plane, 1 + 3 cos(a)^2 < 3 mu sin(a) cos(a), and pushes itself into it
    angle, length = 0.9, 1.0
    b = ld.Builder("rod", gravity=(0.0, 0.0, -9.81))
    b.body("rod", mass=1.0, inertia=(1e-3, 1.0 / 12.0, 1.0 / 12.0))
    b.joint("j", "free", "ground", "rod")
    b.constraint("tip", "on_plane", "ground", "rod", child_placement=(-0.5 * length, 0, 0), unilateral=True,
                 friction=3.0)
    robot = b.build()
    q = ld.integrate(robot, robot.neutral, [0.0, -angle, 0.0, 0.0, 0.0, 0.0])
    q[6] = 0.5 * length * np.sin(angle)
    seen = set()
    for speed in (1.0, -1.0):
        v = keeping(robot, q, np.array([0, 0, 0, speed * np.cos(angle), 0, -speed * np.sin(angle)]), tip="sliding")
        try:
            seen.add(ld.forward_dynamics(robot, q, v, np.zeros(6)).contacts["tip"])
        except SingularConfigurationError as error:
            assert "'tip' contradict each other" in str(error)
            seen.add("contradiction")
    assert seen == {"sliding", "contradiction"}


def test_perturbed_runs_follow_the_linear_model():
    robot, q, v, tau = bead()
    ss = ld.linearize(robot, q, v, tau, independent=("jx", "jy"))
    h = 1e-4

    def velocities(T, e):
        held = robot.switched(skin="sliding")
        x = ld.close(held, q + ss.K @ e[:2], jx=q[0] + e[0], jy=q[1] + e[1])
        G = ld.constraint_jacobian(held, x)[0]
        w = v[:2] + e[2:]
        start = np.array([*w, -(G[:2] @ w) / G[2]])
        return ld.simulate(robot, x, start, T, tau=tau, method="rk4", dt=T / 4).v[-1][:2]

    for k, e in enumerate(np.eye(4)):
        # (1 + A T) e and the next order: Richardson leaves T^2 |A|^3
        rates = [((velocities(T, h * e) - velocities(T, -h * e)) / (2 * h) - e[2:]) / T for T in (2e-3, 1e-3)]
        assert np.abs(2.0 * rates[1] - rates[0] - ss.A[2:, k]).max() < 2e-4 * np.abs(ss.A).max()


@pytest.mark.parametrize("method", ["nullspace", "svd"])
def test_what_is_read_late_is_that_of_the_closed_contacts(method):
    """A box slides on the floor, away from a wall: rows of the wall are not redundant but open; also after pickling."""
    b = ld.Builder("slider")
    b.body("box", 1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    b.joint("j", "free", "ground", "box")
    b.constraint("floor", "on_plane", "ground", "box", unilateral=True, friction=0.3)
    b.constraint("wall", "on_plane", "ground", "box", unilateral=True, parent_placement=(0.0, 0.0, -1.0))
    robot = b.build()
    v = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    for found in (ld.forward_dynamics(robot, robot.home, v, np.zeros(6), method=method),
                  pickle.loads(pickle.dumps(ld.forward_dynamics(robot, robot.home, v, np.zeros(6), method=method)))):
        assert found.redundant_rows == ("floor.x", "floor.y") and found.contacts == {"floor": "sliding", "wall": "open"}
        assert found.independent == (tuple(robot.velocity_names[:5]) if method == "nullspace" else ())
        assert abs(found.a - [0.0, 0.0, 0.0, -0.3 * 9.81, 0.0, 0.0]).max() < 1e-12
