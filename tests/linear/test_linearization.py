"""The local state space against differences of the reduced dynamics, for every cut joint and coordinate choice."""

import numpy as np
import pytest
from closed_chains import STEP, closed_mechanism, difference, differences, moving_state, off, reader, walker
from tree_cases import bundled as robot_named
from users import kept

from liedyn import kernels
from liedyn.linear import linearize, underlying
from liedyn.machine.errors import ClosureError, ConditionWarning, InputError, SingularConfigurationError
from liedyn.mechanics.constraints import close, complete_velocity, constraint_jacobian, virtual_coordinates
from liedyn.mechanics.constraints.independent import choose
from liedyn.mechanics.dynamics import forward_dynamics
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree import configuration
from liedyn.model.kinds import LOOP_KINDS

# sixth-order differences with a step of 1e-3: rounding leaves 1e-12 / step of the largest entry, times the
# condition of the chain; a wrong or missing term shows at 1e-3 and above
TOLERANCE = 2e-8


def lower_rows(robot, q, v, tau, independent):
    """Differences of the independent accelerations, [A21 A22 B2]."""
    chosen = choose(robot, q, independent, RANK_TOLERANCE)
    return differences(robot, q, v, tau, chosen, lambda *state: acceleration(robot, *state, chosen))


def acceleration(robot, q, v, tau, chosen):
    """d/dt of R v along the motion: R a, and for virtual velocities the change of their readers, by differences."""
    a = forward_dynamics(robot, q, v, tau).a
    rate = difference(lambda s: reader(robot, configuration.integrate(robot, q, s * v), chosen) @ v, 1e-3)
    return reader(robot, q, chosen) @ a + rate


@pytest.mark.parametrize("kind", LOOP_KINDS)
@pytest.mark.parametrize("independent", ["auto", "tangent"])
def test_every_cut_joint(kind, independent):
    robot, q = closed_mechanism(kind)
    v, tau = moving_state(robot, q)
    p = robot.nv - len(robot.row_names)
    ss = linearize(robot, q, v, tau, independent=independent)
    chosen = choose(robot, q, independent, RANK_TOLERANCE)
    expected = lower_rows(robot, q, v, tau, chosen)
    assert off(np.hstack([ss.A, ss.B])[p:], expected) < TOLERANCE
    assert np.abs(constraint_jacobian(robot, q) @ ss.K).max() < 1e-12
    assert np.abs(reader(robot, q, chosen) @ ss.K - np.eye(p)).max() < 1e-11


def with_virtual(robot, q):
    """A coordinate choice that takes in every virtual coordinate of the cut."""
    chosen = list(robot.virtual_names)
    G_rows = [constraint_jacobian(robot, q), reader(robot, q, choose(robot, q, chosen, RANK_TOLERANCE))]
    for name in robot.velocity_names:
        row = np.zeros((1, robot.nv))
        row[0, robot.velocity_index(name)] = 1.0
        if np.linalg.svd(np.vstack([*G_rows, row]), compute_uv=False)[-1] > 0.03 and len(np.vstack(G_rows)) < robot.nv:
            chosen.append(name)
            G_rows.append(row)
    return tuple(chosen)


@pytest.mark.parametrize("kind", [kind for kind in LOOP_KINDS if kind != "fixed"])
def test_virtual_coordinates_can_be_independent(kind):
    robot, q = closed_mechanism(kind, seed=1)
    v, tau = moving_state(robot, q)
    names = with_virtual(robot, q)
    p = robot.nv - len(robot.row_names)
    assert len(names) == p
    ss = linearize(robot, q, v, tau, independent=names)
    assert off(np.hstack([ss.A, ss.B])[p:], lower_rows(robot, q, v, tau, names)) < TOLERANCE
    # f0 holds the rates of the virtual coordinates along the motion
    if kind != "spherical":
        rates = difference(lambda s: virtual_coordinates(robot, configuration.integrate(robot, q, s * v)), 1e-3)
        assert off(ss.f0[:len(rates)], rates) < 1e-8


@pytest.mark.parametrize("damping", [0.0, 0.1])
def test_legs_beside_each_other(damping):
    """Directions of different legs share columns, and those of a floating base that nothing ties down need none."""
    robot, q = walker(damping)
    v, tau = moving_state(robot, q)
    ss = linearize(robot, q, v, tau, independent="auto")
    p = len(ss.states) // 2
    assert p == robot.nv - 10
    expected = lower_rows(robot, q, v, tau, "auto")
    actual = np.hstack([ss.A, ss.B])[p:]
    for block in (slice(0, p), slice(p, 2 * p), slice(2 * p, None)):  # A21, A22, B2
        assert off(actual[:, block], expected[:, block]) < TOLERANCE


MACHINES = [
    "four_bar",
    "parallel_four_bar",
    "five_bar",
    "loader",
    "stewart",
    "parallel_five_bar",
    "delta",
    "cassie_like",
]


@pytest.mark.parametrize("name", MACHINES)
def test_bundled_machines_at_moving_states(name):
    robot = robot_named(name)
    v, tau = moving_state(robot, robot.home)
    ss = linearize(robot, robot.home, v, tau)
    p = len(ss.states) // 2
    expected = lower_rows(robot, robot.home, v, tau, None)
    actual = np.hstack([ss.A, ss.B])[p:]
    for block in (slice(0, p), slice(p, 2 * p), slice(2 * p, None)):  # A21, A22, B2
        assert np.abs(actual[:, block] - expected[:, block]).max() < 1e-7 * np.abs(expected[:, block]).max()
    assert ss.closure_residual < 1e-12
    assert np.abs(constraint_jacobian(robot, robot.home) @ ss.K).max() < 1e-12


@pytest.mark.parametrize("name", ["solo12", "stewart"])
def test_tangents_that_turn(name):
    """The upper rows, A11 = -R ad_v N and A12 = 1, against the flow of two neighbouring motions."""
    robot = robot_named(name)
    q = robot.home
    v, tau = moving_state(robot, q)
    independent = robot.velocity_names if name == "solo12" else ("platform",)
    chosen = choose(robot, q, independent, RANK_TOLERANCE)
    ss = linearize(robot, q, v, tau, independent=independent)
    R, p = chosen.rows, len(chosen.names)

    def upper(q_near, v_near):
        def apart(t):
            now, then = (configuration.integrate(robot, x, t * y) for x, y in ((q, v), (q_near, v_near)))
            return R @ configuration.difference(robot, now, then)
        return difference(apart, 1e-3)

    K = ss.K
    full = np.linalg.pinv(np.vstack([constraint_jacobian(robot, q), R]), rcond=1e-9)[:, -p:]
    for k in range(p):
        by_w = difference(lambda s, k=k: upper(q, v + s * full[:, k]), 1e-2)
        assert off(by_w, ss.A[:p, p + k]) < 1e-8

        def by_y(s, k=k):
            near = configuration.integrate(robot, q, s * K[:, k])
            return upper(near, np.linalg.lstsq(np.vstack([constraint_jacobian(robot, near), R]), np.concatenate(
                [np.zeros(len(robot.row_names)), R @ v]), rcond=1e-9)[0])
        # off the manifold in second order, which is even in s and cancels
        assert off(difference(by_y, 1e-3), ss.A[:p, k]) < 1e-7


OUTPUTS = (
    "velocity:cut",
    "acceleration:cut",
    "pose:b1",
    "twist:b1",
    "twist_rate:b1",
    "wrench:cut",
    "acceleration:j_trunk",
)


@pytest.mark.parametrize("kind", ["revolute", "universal", "helical", "planar", "spherical", "inline", "fixed"])
def test_outputs(kind):
    from liedyn.mechanics.tree.jacobians import body_jacobian, body_jacobian_dot

    robot, q = closed_mechanism(kind, seed=2)
    v, tau = moving_state(robot, q)
    names = OUTPUTS if robot.virtual_names else OUTPUTS[2:]
    ss = linearize(robot, q, v, tau, independent="auto", outputs=names)
    virtual = choose(robot, q, robot.virtual_names, RANK_TOLERANCE) if robot.virtual_names else None

    def outputs(q, v, tau):
        r = forward_dynamics(robot, q, v, tau, independent="tangent")
        J = body_jacobian(robot, q, "b1")
        twist, rate = J @ v, J @ r.a + body_jacobian_dot(robot, q, v, "b1") @ v
        values = [twist, rate, r.constraint_wrenches["cut"], r.a[[robot.velocity_index("j_trunk")]]]
        if virtual is not None:
            values = [reader(robot, q, virtual) @ v, acceleration(robot, q, v, tau, virtual), *values]
        return np.concatenate(values)

    expected = differences(robot, q, v, tau, "auto", outputs)
    keep = np.array([not label.startswith("pose:") for label in ss.outputs])
    assert off(np.hstack([ss.C, ss.D])[keep], expected) < 1e-7
    poses = body_jacobian(robot, q, "b1") @ ss.K
    assert off(ss.C[~keep][:, :len(ss.K[0])], poses) < 1e-12


@pytest.mark.parametrize("name", ["loader", "delta", "parallel_five_bar"])
def test_wrenches_of_redundant_loops(name):
    """Minimum-norm multipliers keep their minimum norm as the mechanism moves."""
    robot = robot_named(name)
    v, tau = moving_state(robot, robot.home)
    outputs = [f"wrench:{loop}" for loop in robot.loop_names]
    ss = linearize(robot, robot.home, v, tau, outputs=outputs)

    def wrenches(*state):
        return np.concatenate(list(forward_dynamics(robot, *state).constraint_wrenches.values()))

    expected = differences(robot, robot.home, v, tau, None, wrenches)
    actual = np.hstack([ss.C, ss.D])
    # differences lose the last digits of the wrench itself (5e5 N beside derivatives of order one) to the step
    rounding = 1e-14 * np.abs(wrenches(robot.home, v, tau)).max() / STEP
    p = len(ss.states) // 2
    for block in (slice(0, p), slice(p, 2 * p), slice(2 * p, None)):
        allowed = 1e-7 * np.abs(expected[:, block]).max() + rounding
        assert np.abs(actual[:, block] - expected[:, block]).max() < allowed


@pytest.mark.parametrize("name", ["five_bar", "loader", "stewart"])
def test_underlying_ode_shares_the_spectrum_at_an_equilibrium(name):
    """Theorem 4.1.2: eigenvalues of A are those of A_hat and zeros."""
    robot = robot_named(name)
    q, v = robot.home, np.zeros(robot.nv)
    from liedyn.mechanics.tree.rnea import rnea
    tau = rnea(robot, q, v, v)  # holds the mechanism at rest
    A_hat = linearize(robot, q, v, tau).A
    A = underlying(robot, q, v, tau)
    assert np.linalg.matrix_rank(A, tol=1e-8 * np.abs(A).max()) == len(A_hat)
    whole, local = np.linalg.eigvals(A), np.linalg.eigvals(A_hat)
    whole = whole[np.argsort(-np.abs(whole))]
    assert np.abs(whole[len(local):]).max() < 1e-6 * np.abs(local).max()  # zeros of defective blocks split by sqrt(eps)
    for x in local:
        assert np.abs(whole[:len(local)] - x).min() < 1e-9 * np.abs(local).max()


def test_underlying_ode_away_from_equilibrium():
    """[Df] P by differences: perturb all coordinates, project onto the manifold, and differentiate (v, a)."""
    robot = robot_named("five_bar")
    q = robot.home
    v, tau = moving_state(robot, q)
    A = underlying(robot, q, v, tau, independent=("q1", "q4"))
    F = differences(robot, q, v, tau, ("q1", "q4"),
                    lambda q, v, tau: np.concatenate([v, forward_dynamics(robot, q, v, tau).a]))[:, :4]
    R = np.zeros((4, 8))
    R[[0, 1, 2, 3], [0, 3, 4, 7]] = 1.0
    assert off(A, F @ R) < TOLERANCE


def test_open_trees_are_the_special_case_without_loops():
    from liedyn.mechanics.tree.aba_derivatives import aba_derivatives

    robot = robot_named("panda")
    rng = np.random.default_rng(0)
    q, v, tau = (rng.normal(size=7) for _ in range(3))
    ss = linearize(robot, q, v, tau)
    da_dq, da_dv, Minv = aba_derivatives(robot, q, v, tau)
    assert off(ss.A, np.block([[np.zeros((7, 7)), np.eye(7)], [da_dq, da_dv]])) < 1e-12
    assert off(ss.B[7:], Minv @ robot.actuator_matrix) < 1e-12


def test_batches():
    robot = robot_named("five_bar")
    q = np.array([robot.home] * 3)
    v = np.array([s * moving_state(robot, robot.home)[0] for s in (0.0, 1.0, 2.0)])
    ss = linearize(robot, q, v, np.zeros((3, 4)))
    assert ss.A.shape == (3, 4, 4) and ss.C.shape == (3, 2, 4) and ss.eigenvalues().shape == (3, 4)
    for k in range(3):
        assert np.array_equal(ss.A[k], linearize(robot, q[k], v[k], np.zeros(4)).A)


def test_bad_input_is_named():
    robot = robot_named("five_bar")
    q, v, tau = robot.home, np.zeros(4), np.zeros(4)
    with pytest.raises(ClosureError, match="loop 'pin'") as error:
        linearize(robot, q + 0.1, v, tau)
    assert error.value.residual > 0.01 and error.value.loop == "pin"
    with pytest.raises(InputError, match="v opens the loops"):
        linearize(robot, q, v + 1.0, tau)
    with pytest.raises(InputError, match="2 degrees of freedom"):
        linearize(robot, q, v, tau, independent=("q1",))
    with pytest.raises(InputError, match="did you mean"):
        linearize(robot, q, v, tau, independent=("q1", "q44"))
    with pytest.raises(InputError, match="unknown kind of output 'speed'"):
        linearize(robot, q, v, tau, outputs=("speed:q1",))
    with pytest.raises(InputError, match="not finite"):
        linearize(robot, q, v * np.nan, tau)
    # the last two links in line: q1 and q2 no longer tell where the joint between them goes
    singular = close(robot, q, q4=0.0)
    with pytest.raises(SingularConfigurationError, match="q1, q2 do not determine") as error:
        linearize(robot, singular, v, tau, independent=("q1", "q2"))
    assert error.value.singular_values[-1] < 1e-12
    with pytest.warns(ConditionWarning, match="poorly conditioned"):
        linearize(robot, close(robot, q, q4=3e-8), v, tau, independent=("q1", "q2"))


@kept
def spectral_abscissa_along(model, q, v, tau, R, virtual, actuators, tolerance):
    """A user's loop: the rightmost pole at each state of a trajectory."""
    none = np.empty(0)
    rightmost = np.empty(len(q))
    for t in range(len(q)):
        _, _, local = kernels.linearize(model, q[t], v[t], tau[t], none, R, virtual, R, virtual, actuators, tolerance)
        rightmost[t] = np.linalg.eigvals(local.A.astype(np.complex128)).real.max()
    return rightmost


def test_linearize_inside_njit():
    robot = robot_named("five_bar")
    chosen = choose(robot, robot.home, ("q1", "q2"), RANK_TOLERANCE)
    q = np.array([robot.home] * 3)
    v = np.array([s * moving_state(robot, robot.home)[0] for s in (0.0, 1.0, 2.0)])
    ours = spectral_abscissa_along(robot.packed, q, v, 0 * v, chosen.rows, chosen.virtual,
                                   robot.actuator_matrix.copy(), RANK_TOLERANCE)
    public = linearize(robot, q, v, 0 * v, independent=("q1", "q2")).eigenvalues().real.max(axis=1)
    assert np.abs(ours - public).max() < 1e-7 * np.abs(public).max()


def test_a_state_of_another_time_is_told_how_to_be_reached():
    """A loop that a function of time moves is closed at t = 1, and open at t = 0, for which the model is asked."""
    def shifted(t):
        pose = np.eye(4)
        pose[0, 3] = 0.05 * t
        return pose, np.array([0.0, 0.0, 0.0, 0.05, 0.0, 0.0]), np.zeros(6)

    robot = robot_named("five_bar")
    robot = robot.with_target(robot.loop_names[0], shifted)
    later = robot.at(1.0)
    q = close(later, robot.home)
    v = complete_velocity(later, q, {"q1": 0.1, "q2": 0.0})
    with pytest.raises(ClosureError, match=r"prescribed motions are taken at t = 0, use robot.at\(t\)"):
        linearize(robot, q, v, np.zeros(4))
    assert linearize(later, q, v, np.zeros(4)).A.shape == (4, 4)


def test_results_of_large_batches_keep_their_states():
    """They are copied by all threads; what is read late is that of the states that were given."""
    robot, count = robot_named("five_bar"), 12_600
    q = np.tile(robot.home, (count, 1))
    v, tau = np.zeros((count, 4)), np.zeros((count, 4))
    ss, found = linearize(robot, q, v, tau), forward_dynamics(robot, q, v, tau)
    for x in (q, v, tau):
        x[:] = 7.0
    assert np.array_equal(ss.q, np.tile(robot.home, (count, 1))) and not ss.v.any() and not ss.tau.any()
    alone = forward_dynamics(robot, robot.home, np.zeros(4), np.zeros(4))
    for name, wrench in found.constraint_wrenches.items():
        assert abs(wrench[-1] - alone.constraint_wrenches[name]).max() < 1e-12
