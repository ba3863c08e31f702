"""Laws of SE(3) on inputs that hypothesis looks for, and a closed linkage against Lagrange's equations from SymPy."""
import numpy as np
import pytest
import sympy as sp
from comparison import relative
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tree_cases import bundled

from liedyn.lie import Ad, ad, compose, exp, inverse, log
from liedyn.linear import linearize
from liedyn.mechanics.constraints import close, complete_velocity
from liedyn.mechanics.dynamics import forward_dynamics

# one rounding in each of a dozen sums of numbers up to 10 * 10
ROUNDING = 1e-12

numbers = st.floats(-3.0, 3.0, allow_subnormal=True)
twists = st.lists(numbers, min_size=6, max_size=6).map(np.array)
# the first call compiles, and no machine is too slow
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(twists, twists, twists)
def test_group_axioms(a, b, c):
    X, Y, Z = exp(a), exp(b), exp(c)
    assert np.abs(compose(compose(X, Y), Z) - compose(X, compose(Y, Z))).max() < ROUNDING
    assert np.abs(compose(X, inverse(X)) - np.eye(4)).max() < ROUNDING


@quick
@given(twists, twists)
def test_adjoint_is_a_homomorphism(a, b):
    assert np.abs(Ad(compose(exp(a), exp(b))) - Ad(exp(a)) @ Ad(exp(b))).max() < 100 * ROUNDING
    assert np.abs(Ad(exp(a)) @ ad(b) @ Ad(inverse(exp(a))) - ad(Ad(exp(a)) @ b)).max() < 1000 * ROUNDING


@quick
@given(twists)
def test_log_finds_a_twist_of_the_same_pose(a):
    assert np.abs(exp(log(exp(a))) - exp(a)).max() < ROUNDING


def lagrange_four_bar(robot):
    """Energies and pin of the bundled four-bar, in relative angles, from the numbers of its file alone."""
    q, v = sp.symbols("q0:3", real=True), sp.symbols("v0:3", real=True)
    T = V = 0
    x = y = sp.Integer(0)
    for k, body in enumerate(robot.model.bodies):
        angle, rate = sum(q[: k + 1]), sum(v[: k + 1])
        cx, cy = (sp.Rational(str(c)) for c in body.com[:2])
        px, py = x + sp.cos(angle) * cx - sp.sin(angle) * cy, y + sp.sin(angle) * cx + sp.cos(angle) * cy
        vx, vy = (sum(sp.diff(p, s) * r for s, r in zip(q, v)) for p in (px, py))
        T += body.mass * (vx**2 + vy**2) / 2 + body.inertia[2, 2] * rate**2 / 2
        V += -body.mass * (robot.gravity[0] * px + robot.gravity[1] * py)
        length = robot.model.joints[k + 1].placement[0, 3] if k < 2 else robot.model.loops[0].child_placement[0, 3]
        x, y = x + length * sp.cos(angle), y + length * sp.sin(angle)
    base = robot.model.loops[0].parent_placement[0, 3]
    return q, v, T, V, sp.Matrix([x - base, y])


@pytest.mark.validation("accelerations, A", robots="four_bar", oracle="Lagrange's equations by SymPy, in 40 digits")
def test_four_bar_against_sympy():
    """Accelerations from symbolic Lagrange equations with multipliers, and A by 40-digit differences of those."""
    robot = bundled("four_bar")
    q, v, T, V, g = lagrange_four_bar(robot)
    M = sp.hessian(T, v)
    momentum = sp.Matrix([sp.diff(T, s) for s in v])
    h = momentum.jacobian(q) * sp.Matrix(v) - sp.Matrix([sp.diff(T - V, s) for s in q])
    G = g.jacobian(q)
    bias = (G * sp.Matrix(v)).jacobian(q) * sp.Matrix(v)
    numbers = sp.lambdify((q, v), (M, h, G, bias, g), "mpmath")

    import mpmath as mp
    with mp.workdps(40):
        def closed(angle, guess):
            """Angles that put the pin in its place, to 40 digits, for one of the crank."""
            x = mp.matrix([mp.mpf(float(y)) for y in guess])
            for _ in range(8):
                *_, G, _, g = numbers([angle, x[0], x[1]], [0, 0, 0])
                x -= mp.lu_solve(G[:, 1:], g)
            return [angle, x[0], x[1]]

        def acceleration(angle, speed, guess):
            q = closed(angle, guess)
            G = numbers(q, [0, 0, 0])[2]
            slave = -mp.lu_solve(G[:, 1:], G[:, 0]) * speed
            M, h, G, bias, _ = numbers(q, [speed, slave[0], slave[1]])
            K = mp.matrix(5, 5)
            for i in range(3):
                for j in range(3):
                    K[i, j] = M[i, j]
                for j in range(2):
                    K[i, 3 + j] = K[3 + j, i] = G[j, i]
            right = mp.matrix([-h[0], -h[1], -h[2], -bias[0], -bias[1]])
            return mp.lu_solve(K, right)

        y, w, step = mp.mpf("0.9"), mp.mpf("1.7"), mp.mpf(10) ** -12
        q_ours = close(robot, robot.home, crank=0.9)
        v_ours = complete_velocity(robot, q_ours, {"crank": 1.7})
        exact = acceleration(y, w, q_ours[1:])
        by_y = (acceleration(y + step, w, q_ours[1:])[0] - acceleration(y - step, w, q_ours[1:])[0]) / (2 * step)
        by_w = (acceleration(y, w + step, q_ours[1:])[0] - acceleration(y, w - step, q_ours[1:])[0]) / (2 * step)
    r = forward_dynamics(robot, q_ours, v_ours, np.zeros(3))
    assert relative(r.a, [float(x) for x in exact[:3]]) < 1e-12
    ss = linearize(robot, q_ours, v_ours, np.zeros(3), independent=("crank",))
    assert relative(ss.A[1], [float(by_y), float(by_w)]) < 1e-12
