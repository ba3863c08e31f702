"""Users' own rows and targets: compiled and plain Python functions give what the built-in kinds give."""
import numpy as np
import pytest
from numba import njit
from users import kept

import liedyn as ld
from liedyn.machine.compiled.jit import KERNELS
from liedyn.mechanics.constraints.loops import all_derivatives

LENGTH = 0.8


def cart():
    """A point mass on two slides and a turntable it does not touch."""
    b = ld.Builder("cart", gravity=(0, -9.81, 0))
    b.body("frame")
    b.body("mass", mass=1.3)
    b.joint("x", "prismatic", "ground", "frame", axis=(1, 0, 0))
    b.joint("y", "prismatic", "frame", "mass", axis=(0, 1, 0))
    return b


@kept
def residual(t, q):
    return np.array([np.sqrt(q[0] ** 2 + q[1] ** 2) - LENGTH])


@kept
def jacobian(t, q):
    return (q / np.sqrt(q[0] ** 2 + q[1] ** 2)).reshape(1, 2)


@kept
def bias(t, q, v):
    r = np.sqrt(q[0] ** 2 + q[1] ** 2)
    return np.array([(v[0] ** 2 + v[1] ** 2) / r - (q[0] * v[0] + q[1] * v[1]) ** 2 / r ** 3])


@kept
def curvature(q):
    """Second derivatives of |q|."""
    r = np.sqrt(q[0] ** 2 + q[1] ** 2)
    return (np.eye(2) - np.outer(q, q) / r ** 2) / r


@kept
def derivatives(t, q, v, a):
    r = np.sqrt(q[0] ** 2 + q[1] ** 2)
    H, s = curvature(q), q[0] * v[0] + q[1] * v[1]
    v2 = v[0] ** 2 + v[1] ** 2
    phi_q = H @ a - v2 * q / r ** 3 - 2 * s * v / r ** 3 + 3 * s ** 2 * q / r ** 5
    phi_v = 2 * v / r - 2 * s * q / r ** 3
    return (H @ v).reshape(1, 2), phi_q.reshape(1, 2), phi_v.reshape(1, 2)


@kept
def force_derivative(t, q, lam):
    return lam[0] * curvature(q)


PARTS = {"residual": residual, "jacobian": jacobian, "bias": bias, "derivatives": derivatives,
         "force_derivative": force_derivative}


def both(parts):
    own, built_in = cart(), cart()
    for b in (own, built_in):
        b._home.update(x=0.48, y=0.64)
    own.custom("rod", **parts)
    built_in.constraint("rod", "distance", "ground", "mass", length=LENGTH)
    return own.build(), built_in.build()


@pytest.fixture(scope="module")
def compiled():
    return both(PARTS)


@pytest.mark.parametrize("parts", [PARTS, {name: f.py_func for name, f in PARTS.items() if name != "x"}],
                         ids=["compiled", "python"])
def test_custom_rows_equal_the_built_in_ones(parts, compiled):
    own, built_in = compiled
    if parts is not PARTS:
        own, built_in = both({**parts, "derivatives": lambda t, q, v, a: tuple(derivatives(t, q, v, a))})
    assert own.row_names == ("rod.row1",)
    rng = np.random.default_rng(1)
    q, v, a, lam = *rng.normal(size=(3, 2)), rng.normal(size=1)
    for function in (ld.closure_error, ld.constraint_jacobian):
        np.testing.assert_allclose(function(own, q), function(built_in, q), rtol=1e-13)
    for function in (ld.constraint_bias, ld.constraints.velocity_error):
        np.testing.assert_allclose(function(own, q, v), function(built_in, q, v), rtol=1e-13)
    for mine, theirs in zip(all_derivatives(own.packed, q, v, a, lam), all_derivatives(built_in.packed, q, v, a, lam)):
        np.testing.assert_allclose(mine, theirs, atol=1e-13)
    q = np.array([0.48, 0.64])
    v = np.array([0.64, -0.48])
    np.testing.assert_allclose(ld.forward_dynamics(own, q, v, [0, 0]).a, ld.forward_dynamics(built_in, q, v, [0, 0]).a,
                               rtol=1e-13)
    mine, theirs = (ld.linearize(robot, q, v, [0.0, 0.0], independent="auto") for robot in (own, built_in))
    np.testing.assert_allclose(mine.A, theirs.A, atol=1e-12)


def test_a_new_function_compiles_no_kernel(compiled):
    robot = compiled[0]
    ld.constraint_jacobian(robot, robot.home)
    before = sum(len(kernel.signatures) for kernel in KERNELS)
    other = njit(lambda t, q: 2.0 * q.reshape(1, 2))
    robot = both({**PARTS, "jacobian": other})[0]
    np.testing.assert_array_equal(ld.constraint_jacobian(robot, robot.home), [2.0 * robot.home])
    assert sum(len(kernel.signatures) for kernel in KERNELS) == before


@pytest.mark.parametrize("key, function, message", [
    ("jacobian", lambda t, q: np.zeros((1, 3)), "jacobian of constraint 'rod': must return 2 numbers, got 3"),
    ("bias", lambda t, q: 0.0, "bias of constraint 'rod': fails with TypeError"),
    ("residual", 3.0, "residual: expected a function"),
])
def test_a_function_that_does_not_fit_is_named(key, function, message):
    with pytest.raises(ValueError, match=message):
        both({**PARTS, key: function})


def test_an_error_in_a_target_is_named(compiled):
    b = cart()
    b.constraint("rod", "distance", "ground", "mass", length=LENGTH)

    def target(t):
        if t > 1.0:
            raise KeyError("no data beyond one second")
        return [t, 0, 0], [1, 0, 0], [0, 0, 0]

    robot = b.build().with_target("rod", target)
    assert ld.closure_error(robot.at(0.5), [0.5 + LENGTH, 0.0])[0] == pytest.approx(0.0, abs=1e-15)
    with pytest.raises(ld.InputError, match="target of constraint 'rod': fails with KeyError: .*second' at t = 1.5"
                       ) as caught:
        robot.at(1.5)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ld.InputError, match="functions of its own"):
        compiled[0].with_target("rod", target)
    with pytest.raises(ld.InputError, match="unknown constraint 'rad'"):
        robot.with_target("rad", target)
    with pytest.raises(ld.InputError, match="9 or 28 numbers, got 6"):
        robot.with_target("rod", lambda t: ([0, 0, 0], [0, 0, 0]))
