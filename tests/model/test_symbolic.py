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


RUN = "__import__('pathlib').Path({!r}).touch() or 0"


@pytest.mark.parametrize("make", [
    lambda evil, x: evil,
    lambda evil, x: f"base.x + {evil}",
    lambda evil, x: [evil],
    lambda evil, x: evil.encode(),
    lambda evil, x: np.str_(evil),
    lambda evil, x: sp.Symbol(evil, real=True) + x,
    lambda evil, x: sp.Function(f"f\n{evil}\n")(x),
    lambda evil, x: sp.Sum(x ** sp.Symbol("k"), (sp.Symbol("k"), 1, sp.Symbol(evil))),
    lambda evil, x: sp.Sum(x ** sp.Symbol(f"k for k in [{evil}]"), (sp.Symbol(f"k for k in [{evil}]"), 1, 2)),
    lambda evil, x: sp.MatrixSymbol(evil, 2, 2)[0, 0] * x,
    lambda evil, x: sp.IndexedBase(evil)[0] * x,
    lambda evil, x: sp.Derivative(sp.Function(evil)(x), x),
    lambda evil, x: sp.Eq(x, 1),
    lambda evil, x: sp.Matrix([x, sp.Symbol(evil)]),
    lambda evil, x: None,
])
def test_text_is_neither_evaluated_nor_written_into_programs(make, tmp_path):
    evil = RUN.format(str(tmp_path / "ran"))
    b = mechanism()
    with pytest.raises(ld.InputError, match="constraint 'bad': (expected an expression of SymPy|unknown)"):
        symbolic.constraint(b, "bad", make(evil, symbolic.coordinates("slide.x")[0]))
    law = make(evil, sp.Symbol("x"))
    if law is not None and not callable(law):
        with pytest.raises(ld.LiedynError):
            b.spring("s", "ground", b._model().bodies[0].name, law=law)
            b.build()
    assert not (tmp_path / "ran").exists()


def test_names_of_coordinates_are_only_text():
    """A joint that is called like a program: its symbol is never printed into one."""
    names = ["__import__('os').abort()", 'a"""b', "new\nline", "{x}", "%s", "$q_1$", "lambda", "out_0"]
    b = ld.Builder("r")
    for k, name in enumerate(names):
        b.body(f"b{k}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(name, "revolute", f"b{k - 1}" if k else "ground", f"b{k}")
    q = symbolic.coordinates(*names)
    symbolic.constraint(b, "cam", sum(sp.sin(x) * (k + 1) for k, x in enumerate(q)))
    robot, values = b.build(), np.linspace(0.1, 0.8, len(names))
    assert ld.closure_error(robot, values)[0] == pytest.approx(np.sin(values) @ np.arange(1, len(names) + 1))
