"""Second derivatives of linear models: against fifty digits, and as laws on random mechanisms."""
import pickle
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from comparison import off, relative
from exact_robots import DIGITS, ExactRobot
from hypothesis import given
from random_mechanisms import built, laws, moving, plans

import liedyn as ld
from liedyn.linear.second import second_in_lanes
from liedyn.machine.errors import ConditionWarning, LiedynError
from liedyn.mechanics.constraints.independent import choose_positions, choose_speeds


def closed_near(robot, q, rows, dy):
    """The configuration whose chosen coordinates differ by dy from those of q."""
    found, holonomic = q, robot.holonomic
    for _ in range(8):
        left = np.concatenate([ld.closure_error(robot, found)[holonomic], rows @ ld.difference(robot, q, found) - dy])
        Z = np.vstack([ld.constraint_jacobian(robot, found)[holonomic], rows])
        found = ld.integrate(robot, found, -np.linalg.lstsq(Z, left, rcond=1e-9)[0])
    return found


def velocity_with(robot, q, rows, rates):
    G = ld.constraint_jacobian(robot, q)
    b = -ld.constraints.velocity_error(robot, q, np.zeros(robot.nv))
    return np.linalg.lstsq(np.vstack([G, rows]), np.concatenate([b, rates]), rcond=1e-9)[0]


def random_state(robot, seed=0, spread=0.1):
    """Coordinates and velocities that describe a state off home, and this state (q, v, u)."""
    rng = np.random.default_rng(seed)
    y, q = choose_positions(robot, robot.home, None, 1e-9), robot.home
    step, parts = spread * rng.normal(size=len(y.names)), 1 if spread <= 0.1 else 5
    for _ in range(parts):
        q = closed_near(robot, q, y.rows, step / parts)
    w = choose_speeds(robot, q, y, None, 1e-9)
    v = velocity_with(robot, q, w.rows, rng.normal(size=len(w.names)))
    return y, w, (q, v, rng.normal(size=len(robot.actuator_names)))


def closed_states(robot, count, seed, spread):
    """The first so many random states at which the loops close."""
    found = []
    while len(found) < count:
        assert seed < 100
        state, seed = random_state(robot, seed, spread), seed + 1
        if np.abs(ld.closure_error(robot, state[2][0])).max() < 1e-11:
            found.append(state)
    return found


def exact_second(robot, state, y, w, direction):
    """Second derivatives of (f, a, lam) along a direction of (y, w, u), in fifty digits."""
    q, v, u = state
    p, r = len(y.names), len(w.names)
    tau, du = robot.tree_actuators @ u, robot.tree_actuators @ direction[p + r:]
    with mpmath.workdps(DIGITS):
        h = mpmath.mpf(10) ** -12
        exact = ExactRobot(robot, {}, y.names, w.names)
        sides = [exact.at(q, v, tau, *(np.array([c * h * mpmath.mpf(float(x)) for x in part], object)
                                       for part in (direction[:p], direction[p:p + r], du))) for c in (-1, 0, 1)]
        found = ((sides[0] - 2 * sides[1] + sides[2]) / (h * h)).astype(float)
    return np.split(found, [p + r, p + r + robot.nv])


@pytest.mark.validation("second derivatives of rates, accelerations and multipliers of mechanisms",
                        robots="four_bar, five_bar, loader, shopping_cart, arm_on_circle",
                        oracle="Newton and Euler in mpmath, 50 digits")
@pytest.mark.parametrize(("name", "tolerance"), [
    ("four_bar", 1e-11), ("five_bar", 1e-11), ("loader", 1e-10), ("shopping_cart", 1e-10), ("arm_on_circle", 1e-10)])
def test_second_derivatives_agree_with_fifty_digits(name, tolerance):
    robot = ld.load(name)
    y, w, (q, v, u) = random_state(robot)
    ss = ld.linearize(robot, q, v, u=u, independent=y.names, speeds=w.names, second=True)
    columns, rng = len(ss.states) + len(u), np.random.default_rng(1)
    for direction in rng.normal(size=(2, columns)):
        exact = exact_second(robot, (q, v, u), y, w, direction)
        for part, expected in zip((ss.second.f, ss.second.a, ss.second.lam), exact):
            found = np.einsum("ijk,j,k->i", part, direction, direction)
            assert relative(found, expected) < tolerance


@pytest.mark.validation("second derivatives of rates, accelerations and multipliers far from home",
                        robots="five_bar, loader, stewart, cassie_like",
                        oracle="Newton and Euler in mpmath, 50 digits; differences of A and B with Richardson's "
                               "extrapolation for stewart and cassie_like")
@pytest.mark.parametrize(("name", "tolerance"), [
    ("five_bar", 1e-11), ("loader", 1e-9), ("stewart", 1e-9), ("cassie_like", 1e-9)])
def test_second_derivatives_far_from_home(name, tolerance):
    robot = ld.load(name)
    (y, w, (q, v, u)), = closed_states(robot, 1, 11, 0.5 if name != "stewart" else 0.15)
    ss = ld.linearize(robot, q, v, u=u, independent=y.names, speeds=w.names, second=True)
    rng, p, x = np.random.default_rng(12), len(y.names), len(ss.states)
    direction = rng.normal(size=x + len(u))
    if name in ("five_bar", "loader"):
        found = (ss.second.f, ss.second.a, ss.second.lam)
        for part, expected in zip(found, exact_second(robot, (q, v, u), y, w, direction)):
            assert relative(np.einsum("ijk,j,k->i", part, direction, direction), expected) < tolerance
        return
    rows_w = w.rows

    def slopes(h):
        """A and B along the direction, in the chart at q: coordinates of joints with one degree of freedom."""
        dy, dw, du = np.split(h * direction, [p, x])
        there = closed_near(robot, q, y.rows, dy)
        rates = velocity_with(robot, there, rows_w, rows_w @ v + dw)
        model = ld.linearize(robot, there, rates, u=u + du, independent=y.names, speeds=w.names)
        return np.hstack([model.A, model.B])

    levels = [[(slopes(h) - slopes(-h)) / (2.0 * h)] for h in (8e-3, 4e-3, 2e-3, 1e-3)]
    for k in range(1, 4):
        for fine, coarse in zip(levels[k:], levels[k - 1:-1]):
            fine.append(fine[k - 1] + (fine[k - 1] - coarse[k - 1]) / (4.0**k - 1.0))
    found = ss.second.f @ direction
    scale = np.abs(found).max()
    assert np.abs(found - levels[3][3]).max() < tolerance * scale
    relative(found, levels[3][3])


@pytest.mark.parametrize("name", ["five_bar", "loader", "stewart", "cassie_like"])
@pytest.mark.parametrize("independent", [None, "tangent"])
def test_states_in_lanes_are_those_one_after_the_other(name, independent):
    robot, rng = ld.load(name), np.random.default_rng(21)
    states = [each[2] for each in closed_states(robot, 9, 0, 0.05)]
    q, v, u = (np.array(each) for each in zip(*states))
    tau = u @ robot.tree_actuators.T
    batch = ld.linearize(robot, q, v, tau, independent=independent, second=True).second
    weights = rng.normal(size=(9, batch.f.shape[1]))
    weighted = ld.linearize(robot, q, v, tau, independent=independent, second=weights).second.f
    for b in (0, 3, 8):
        one = ld.linearize(robot, q[b], v[b], tau[b], independent=independent, second=True).second
        assert off(batch.f[b], one.f) < 1e-10 and off(batch.a[b], one.a) < 1e-10
        assert off(weighted[b], np.einsum("i,ijk", weights[b], one.f)) < 1e-10


def test_lanes_serve_whole_batches():
    """`second_registers` computes all states of mechanisms of cut joints, and leaves what it cannot to one state."""
    robot = ld.load("five_bar")
    states = [random_state(robot, seed)[2] for seed in range(16)]
    q, v, u = (np.array(each) for each in zip(*states))
    done, registers = [], second_in_lanes.second_registers

    def seen(count, many, *arguments):
        registers.on(count, many, *arguments)
        done.append(arguments[-1].done.copy())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(second_in_lanes, "second_registers", SimpleNamespace(on=seen))
        ld.linearize(robot, q, v, u=u, second=True)
        v[3] += 1.0  # this velocity opens the loop: lanes refuse such states, as the linearization itself does
        with pytest.raises(ld.LiedynError):
            ld.linearize(robot, q, v, u=u, second=True)
    assert len(done) == 1 and done[0].all()


def test_one_state_is_the_same_by_either_way():
    """With tau one state takes direct calls, with u the general way."""
    for name in ("five_bar", "stewart", "panda"):
        robot = ld.load(name)
        if name == "panda":
            q, v, u = robot.home, np.linspace(-1.0, 1.0, 7), np.ones(7)
        else:
            q, v, u = random_state(robot)[2]
        tau, rng = robot.tree_actuators @ u, np.random.default_rng(3)
        direct, general = (ld.linearize(robot, q, v, second=True, **given) for given in ({"tau": tau}, {"u": u}))
        for part in ("f", "a", "q"):
            assert off(getattr(direct.second, part), getattr(general.second, part)) < 1e-12
        weights = rng.normal(size=len(direct.states))
        weighted = [ld.linearize(robot, q, v, second=weights, **given).second for given in ({"tau": tau}, {"u": u})]
        assert weighted[0].f.shape == weighted[1].f.shape and off(weighted[0].f, weighted[1].f) < 1e-12
        assert off(weighted[0].a, weighted[1].a) < 1e-12  # not weighted: whole
        listed = ld.linearize(robot, q, v, tau, second=list(weights)).second.f
        assert off(listed, weighted[0].f) < 1e-12


def test_hessians_of_weighted_sums_are_sums_of_the_tensors():
    robot = ld.load("loader")
    y, w, (q, v, u) = random_state(robot)
    rng = np.random.default_rng(2)
    whole = ld.linearize(robot, q, v, u=u, second=True).second
    weights = {"f": rng.normal(size=whole.f.shape[0]), "a": rng.normal(size=robot.nv), "lam": rng.normal(size=15)}
    for given_weights in (weights["f"], weights):
        found = ld.linearize(robot, q, v, u=u, second=given_weights).second
        for part in ("f", "a", "lam") if isinstance(given_weights, dict) else ("f",):
            tensor = getattr(whole, part)
            expected = np.einsum("i,ijk", weights[part], tensor)
            assert np.abs(getattr(found, part) - expected).max() < 1e-12 * np.abs(tensor).max()
    for tensor in (whole.f, whole.a, whole.lam):
        assert np.array_equal(tensor, tensor.swapaxes(1, 2)) and not tensor[:, 4:, 4:].any()


@given(plans(bodies=4))
@laws(10)
def test_taylor_remainders_fall_with_the_third_power(plan):
    robot, q, rng = built(plan)
    v, tau = moving(robot, q, rng)
    try:
        ss = ld.linearize(robot, q, v, tau, independent="tangent", second=True)
    except (LiedynError, ConditionWarning):
        return
    p, x = ss.K.shape[1], len(ss.states)
    direction = rng.normal(size=x + robot.nv)
    direction /= np.abs(direction).max() * max(1.0, np.abs(ss.A).max(initial=0.0)) ** 0.5
    rows_y, rows_w = np.linalg.pinv(ss.K), np.linalg.pinv(ss.S)

    def acceleration(h):
        dy, dw, du = np.split(h * direction, [p, x])
        there = closed_near(robot, q, rows_y, dy)
        return ld.forward_dynamics(robot, there, velocity_with(robot, there, rows_w, rows_w @ v + dw), tau + du).a

    expected = np.einsum("ijk,j,k->i", ss.second.a, direction, direction)
    here, errors = acceleration(0.0), []
    for h in (2e-2, 1e-2, 5e-3):
        even = (acceleration(h) + acceleration(-h) - 2.0 * here) / (h * h)
        errors.append(np.abs(even - expected).max())
    scale = max(1.0, np.abs(expected).max(), np.abs(ss.a).max())
    assert errors[2] < 1e-5 * scale or errors[2] < 0.35 * errors[1] < 0.12 * errors[0], (errors, scale)


def test_rates_of_a_floating_base_are_of_second_order_in_its_own_tangent():
    robot, rng = ld.load("solo12"), np.random.default_rng(3)
    q, v = ld.random_configuration(robot, rng), rng.normal(size=robot.nv)
    ss = ld.linearize(robot, q, v, np.zeros(robot.nv), second=True)
    dx = rng.normal(size=2 * robot.nv)
    d, dv = np.split(dx, 2)
    bracket = np.concatenate([np.cross(d[:3], dv[:3]), np.cross(d[:3], dv[3:6]) + np.cross(d[3:6], dv[:3])])
    found = np.einsum("ijk,j,k->i", ss.second.f[:robot.nv, :36, :36], dx, dx)
    np.testing.assert_allclose(found[:6], bracket, rtol=0, atol=1e-12 * np.abs(bracket).max())
    assert np.abs(found[6:]).max() == 0.0


def test_batches_have_the_second_derivatives_of_their_states(tmp_path):
    robot, rng = ld.load("five_bar"), np.random.default_rng(5)
    states = [random_state(robot, seed)[2] for seed in range(3)]
    q, v, u = (np.array(each) for each in zip(*states))
    batch = ld.linearize(robot, q, v, u=u, independent=("q1", "q2"), second=True)
    weights = rng.normal(size=(3, 4))
    weighted = ld.linearize(robot, q, v, u=u, independent=("q1", "q2"), second=weights)
    for b in range(3):
        one = ld.linearize(robot, q[b], v[b], u=u[b], independent=("q1", "q2"), second=True)
        np.testing.assert_allclose(batch.second.f[b], one.second.f, rtol=0, atol=1e-12)
        np.testing.assert_allclose(batch[b].second.a, one.second.a, rtol=0, atol=1e-12)
        expected = np.einsum("i,ijk", weights[b], one.second.f)
        np.testing.assert_allclose(weighted.second.f[b], expected, rtol=0, atol=1e-11)
    again = pickle.loads(pickle.dumps(batch))
    assert np.array_equal(again.second.f, batch.second.f)
    with np.load(batch.save(tmp_path / "models")) as saved:
        assert np.array_equal(saved["second_a"], batch.second.a)


def test_taylor_is_the_linear_model_without_second_derivatives():
    robot = ld.load("five_bar")
    _, _, (q, v, u) = random_state(robot)
    dx, du = np.random.default_rng(7).normal(size=(2, 3, 4))
    first = ld.linearize(robot, q, v, u=u)
    second = ld.linearize(robot, q, v, u=u, second=True)
    linear = first.f0 + dx @ first.A.T + du @ first.B.T
    np.testing.assert_allclose(first.taylor(dx, du), linear, rtol=0, atol=1e-12)
    both = np.hstack([dx, du])
    quadratic = np.einsum("ijk,bj,bk->bi", second.second.f, both, both) / 2
    np.testing.assert_allclose(second.taylor(dx, du), linear + quadratic, rtol=0, atol=1e-11)


def test_what_has_no_second_derivatives_is_named():
    robot = ld.load("five_bar")
    q, v = robot.home, np.zeros(4)
    with pytest.raises(ld.InputError, match="there are weights of 'f', 'a', 'lam', 'q'"):
        ld.linearize(robot, q, v, v, second={"g": v})
    with pytest.raises(ld.InputError, match="second weights of f must have shape"):
        ld.linearize(robot, q, v, v, second=np.ones(3))
    with pytest.raises(ld.InputError, match="weighted sum"):
        ld.linearize(robot, q, v, v, second=np.ones(4)).taylor(np.zeros(4))


def moved_loop():
    """A spatial chain whose end follows a frame that a function of time moves, by a ball."""
    builder, rng, parent = ld.Builder("moved", gravity=(0.0, 1.0, -9.81)), np.random.default_rng(0), "ground"

    def target(t):
        c, s, T = np.cos(t), np.sin(t), np.eye(4)
        T[:2, :2], T[:3, 3] = [[c, -s], [s, c]], [0.1 * np.sin(2.0 * t), 0.2 * t, 0.05 * t * t]
        v = T[:3, :3].T @ [0.2 * np.cos(2.0 * t), 0.2, 0.1 * t]
        rate = T[:3, :3].T @ [-0.4 * np.sin(2.0 * t), 0.0, 0.1] - np.cross([0.0, 0.0, 1.0], v)
        return T, np.array([0.0, 0.0, 1.0, *v]), np.array([0.0, 0.0, 0.0, *rate])

    place = np.eye(4)
    place[:3, 3] = 0.3, 0.1, 0.2
    for k, kind in enumerate(("spherical", "revolute", "universal", "prismatic")):
        builder.body(f"body{k}", 1.0, 0.2 * rng.normal(size=3), np.diag([0.3, 0.4, 0.5]))
        builder.joint(f"joint{k}", kind, parent, f"body{k}", placement=place)
        parent = f"body{k}"
    tree = builder.build()
    q = ld.random_configuration(tree, 1)
    ends = ld.forward_kinematics(tree, q)[-1]
    builder.loop("follows", "spherical", "ground", parent, parent_placement=ends, target=target)
    return builder.build(), q


def test_second_derivatives_where_a_frame_is_moved():
    robot, q = moved_loop()
    robot = robot.at(0.3)
    q, rng = ld.close(robot, q), np.random.default_rng(2)
    G, v = ld.constraint_jacobian(robot, q), rng.normal(size=robot.nv)
    v = v - np.linalg.pinv(G) @ ld.constraints.velocity_error(robot, q, v)
    tau = rng.normal(size=robot.nv)
    ss = ld.linearize(robot, q, v, tau, independent="tangent", second={"a": np.ones(robot.nv)})
    direction, p = rng.normal(size=len(ss.states)), ss.K.shape[1]

    def total(h):
        dy, dw = np.split(h * direction, [p])
        there = closed_near(robot, q, ss.K.T, dy)
        return ld.forward_dynamics(robot, there, velocity_with(robot, there, ss.S.T, ss.S.T @ v + dw), tau).a.sum()

    found, here = direction @ ss.second.a[:-robot.nv, :-robot.nv] @ direction, total(0.0)
    errors = [abs((total(h) + total(-h) - 2.0 * here) / (h * h) - found) for h in (2e-2, 1e-2, 5e-3)]
    assert errors[2] < 0.3 * errors[1] < 0.09 * errors[0] and errors[2] < 1e-2 * abs(found), (errors, found)
    with pytest.raises(ld.InputError, match="functions of time move 'follows'"):
        ss.second.lam  # noqa: B018
    assert pickle.loads(pickle.dumps(ss)).second.a.shape == ss.second.a.shape


@pytest.mark.parametrize("name", ["five_bar", "loader"])
def test_coordinates_of_cut_joints_describe_the_same_mechanism(name):
    """Accelerations along a path of the mechanism do not depend on the coordinates that describe it."""
    robot, rng = ld.load(name), np.random.default_rng(8)
    y, _, (q, v, u) = random_state(robot)
    own = ld.linearize(robot, q, v, u=u, independent=y.names, second=True)
    cut = (robot.virtual_names[0], y.names[1])
    other = ld.linearize(robot, q, v, u=u, independent=cut, second=True)
    slopes = ld.linearize(robot, q, v, u=u, independent=cut, speeds=cut,
                          outputs=[f"acceleration:{each}" for each in robot.velocity_names]).C

    def read(h):
        """The state in coordinates of the other kind, along the direction in the own ones."""
        there = closed_near(robot, q, y.rows, h * direction[:2])
        rates = velocity_with(robot, there, y.rows, y.rows @ v + h * direction[2:])
        chosen = y.rows[1]
        return np.array([ld.virtual_coordinates(robot, there)[0], chosen @ there,
                         ld.virtual_jacobian(robot, there)[0] @ rates, chosen @ rates])

    direction, h, x = rng.normal(size=4), 1e-3, 4
    sides = [read(k * h) for k in (-2, -1, 0, 1, 2)]
    first = (8.0 * (sides[3] - sides[1]) - (sides[4] - sides[0])) / (12.0 * h)
    bent = (16.0 * (sides[3] + sides[1]) - (sides[4] + sides[0]) - 30.0 * sides[2]) / (12.0 * h * h)
    expected = own.second.a[:, :x, :x] @ direction @ direction
    found = other.second.a[:, :x, :x] @ first @ first + slopes @ bent
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize(("name", "body"), [("loader", "bucket"), ("stewart", "platform")])
def test_motions_with_curvature_stay_closed_to_third_order(name, body):
    robot, rng = ld.load(name), np.random.default_rng(9)
    y, _, (q, _, _) = random_state(robot)
    body = body if body in robot.body_names else robot.body_names[-1]
    found = ld.curvature(robot, q, y.names, body)
    dy, open_by, off = rng.normal(size=len(y.names)), [], []
    for h in (2e-2, 1e-2, 5e-3):
        d = found.first @ (h * dy) + 0.5 * found.second @ (h * dy) @ (h * dy)
        open_by.append(np.abs(ld.closure_error(robot, ld.integrate(robot, q, d))).max())
        there = ld.pose(robot, closed_near(robot, q, y.rows, h * dy), body)
        twist = found.twist @ (h * dy) + 0.5 * found.twist_second @ (h * dy) @ (h * dy)
        off.append(np.abs(ld.pose(robot, q, body) @ ld.lie.exp(twist) - there).max())
    assert open_by[2] < 0.14 * open_by[1] < 0.02 * open_by[0] and off[2] < 0.14 * off[1] < 0.02 * off[0]
