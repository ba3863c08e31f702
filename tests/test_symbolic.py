"""Constraints from SymPy expressions, checked with high-order differences; what they refuse."""
import numpy as np
import pytest
import sympy as sp

import liedyn as ld
from liedyn import symbolic


def mechanism():
    """A planar body on a ball-jointed base: coordinates that may be used, behind some that may not."""
    b = ld.Builder("mechanism")
    for name in ("base", "body"):
        b.body(name, mass=1.0, inertia=(0.1, 0.2, 0.25))
    b.joint("ball", "spherical", "ground", "base")
    b.joint("slide", "planar", "base", "body", placement=(1, 0, 0))
    return b


def test_all_derivatives_of_generated_rows():
    b, t = mechanism(), symbolic.time()
    x, y, angle = symbolic.coordinates("slide.x", "slide.y", "slide.angle")
    dx, dy = symbolic.velocities("slide.x", "slide.y")
    symbolic.constraint(b, "cam", x ** 2 * sp.cos(angle) - y * t, sp.sqrt(1 + x ** 2) * sp.exp(-y) + angle ** 3)
    symbolic.constraint(b, "blade", sp.cos(angle) * dy - t * sp.sin(angle) * dx - sp.atan2(x, y) * t, velocity=True,
                        active=False)
    robot = b.build().at(0.3)
    assert robot.row_names == ("cam.row1", "cam.row2", "blade.row1") and robot.active == ("cam",)
    assert robot.holonomic.tolist() == [True, True, False]
    q, v = ld.random_configuration(robot, rng=1), np.random.default_rng(0).normal(size=robot.nv)
    check = ld.check_constraint(robot, "cam", q, v)
    assert check.ok and "residual rate" in check.deviations and "WRONG" not in str(check), check
    with pytest.raises(ld.InputError, match="'blade' is switched off"):
        ld.check_constraint(robot, "blade", q, v)
    check = ld.check_constraint(robot.switched(blade=True), "blade", q, v)
    assert check.ok and "residual rate" not in check.deviations, check
    # the columns of the ball are none of their business
    G = ld.constraint_jacobian(robot, q)
    assert not G[:, :3].any() and G[:2, 3:].all()


def test_a_wrong_derivative_is_found():
    b = mechanism()
    x, = symbolic.coordinates("slide.x")
    symbolic.constraint(b, "cam", sp.sin(x))
    parts = b._constraints[-1].functions
    wrong = {**parts, "bias": lambda t, q, v: 2.0 * parts["bias"](t, q, v)}
    b._constraints.clear()
    b.custom("cam", **wrong)
    robot = b.build()
    check = ld.check_constraint(robot, "cam", ld.random_configuration(robot, rng=1), np.ones(robot.nv))
    assert not check.ok and "WRONG  bias" in str(check)
    assert check.deviations["velocity by q"] < check.tolerance < check.deviations["bias"]


@pytest.mark.parametrize("expression, velocity, message", [
    (sp.Symbol("slide.z", real=True), False, "unknown symbol 'slide.z', did you mean 'slide"),
    (sp.Symbol("slide.x"), False, "take symbols from liedyn.symbolic"),
    (symbolic.coordinates("ball.rx")[0], False, "unknown symbol 'ball.rx'"),
    (symbolic.velocities("slide.x")[0] ** 2, True, "not linear in the velocities"),
    (symbolic.velocities("slide.x")[0], False, "unknown symbol 'd slide.x'"),
    (sp.Abs(symbolic.coordinates("slide.x")[0]), False, "a derivative of .* has no code"),
])
def test_what_is_refused(expression, velocity, message):
    with pytest.raises(ld.InputError, match=message):
        symbolic.constraint(mechanism(), "bad", expression, velocity=velocity)
