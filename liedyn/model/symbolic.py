"""Constraints, and laws of force elements, from SymPy expressions: rows and all derivatives are generated and compiled.

    >>> import liedyn as ld, sympy as sp
    >>> from liedyn import symbolic
    >>> b = ld.Builder.of(ld.load("five_bar"))
    >>> q1, q4 = symbolic.coordinates("q1", "q4")
    >>> symbolic.constraint(b, "cam", sp.sin(q1) - q4 ** 2 / 2)
    >>> b.build().active
    ('pin', 'cam')

Symbols are the names of coordinates of one degree of freedom, `t` is time; `velocities` gives the symbols of rates.
Needs SymPy: the extra ``symbolic``.
"""
# mypy: ignore-errors

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.compiled.translation import compiled
from liedyn.machine.errors import InputError, LiedynError, shown, suggestion
from liedyn.model import validation
from liedyn.model.kinds import JOINT_KINDS
from liedyn.model.links import link_tree

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.builder import Builder

__all__ = ["constraint", "coordinates", "time", "velocities"]


def _sympy():
    try:
        import sympy
    except ImportError:
        raise LiedynError("symbolic constraints and laws need SymPy: pip install 'liedyn[symbolic]'") from None
    return sympy


def coordinates(*names: str) -> tuple[Any, ...]:
    """Symbols of coordinates.

    Parameters
    ----------
    *names : str
        Names of coordinates, as in ``robot.coordinate_names``.

    Returns
    -------
    symbols : tuple of sympy.Symbol
        Real symbols with these names, in the order of the arguments [rad, m].

    Raises
    ------
    LiedynError
        SymPy is not installed.

    Examples
    --------
    >>> from liedyn import symbolic
    >>> symbolic.coordinates("base.x", "base.y")
    (base.x, base.y)
    """
    return tuple(_sympy().Symbol(name, real=True) for name in names)


def velocities(*names: str) -> tuple[Any, ...]:
    """Symbols of the rates of coordinates, for constraints on velocities.

    Parameters
    ----------
    *names : str
        Names of coordinates, as in ``robot.velocity_names``.

    Returns
    -------
    symbols : tuple of sympy.Symbol
        Real symbols with ``d`` before these names, in the order of the arguments [rad/s, m/s].

    Raises
    ------
    LiedynError
        SymPy is not installed.

    Examples
    --------
    >>> from liedyn import symbolic
    >>> symbolic.velocities("base.x")
    (d base.x,)
    """
    return coordinates(*(f"d {name}" for name in names))


def time() -> Any:
    """The symbol of time.

    Returns
    -------
    t : sympy.Symbol
        [s]

    Raises
    ------
    LiedynError
        SymPy is not installed.

    Examples
    --------
    >>> from liedyn import symbolic
    >>> symbolic.time()
    t
    """
    return _sympy().Symbol("t", real=True)


def constraint(builder: Builder, name: str, *expressions: Any, velocity: bool = False, active: bool = True) -> None:
    """Declare constraints that are SymPy expressions, zero where they are satisfied.

    Parameters
    ----------
    builder : Builder
        All joints must have been declared.
    name : str
    *expressions : sympy.Expr
        One for each row, in the symbols of `coordinates` and `time`; with `velocity` also in those of `velocities`, in
        which they must be linear, ``A(q, t) v - b(q, t)``. Text is refused, because SymPy would execute it as Python.
    velocity : bool
        The expressions constrain velocities, not positions (nonholonomic, unless they can be integrated).
    active : bool
        Whether they are initially switched on.

    Raises
    ------
    InputError
        Text or anything else that is not an expression, an unknown symbol or function, an expression that is not linear
        in the velocities, or one without smooth derivatives.
    LiedynError
        SymPy is not installed.

    Notes
    -----
    From the velocity psi = G v + drift follow G = dpsi/dv, phi_0 = dpsi/dq v + dpsi/dt and the derivatives of psi,
    of phi = G a + phi_0 and of G^T lambda (Spencer 2004, 2.3 and 4.2; Yun and Sarkar 1998, eq. 4 to 6). Common
    subexpressions are computed once; the functions are compiled when the robot is built.

    Examples
    --------
    >>> import liedyn as ld
    >>> from liedyn import symbolic
    >>> b = ld.Builder("skate")
    >>> b.body("skate", mass=1.0, inertia=(0.1, 0.1, 0.1))
    >>> b.joint("base", "planar", "ground", "skate")
    >>> import sympy as sp
    >>> angle, = symbolic.coordinates("base.angle")
    >>> dx, dy = symbolic.velocities("base.x", "base.y")
    >>> symbolic.constraint(b, "blade", sp.cos(angle) * dy - sp.sin(angle) * dx, velocity=True)
    >>> ld.constraint_jacobian(b.build(), [0.0, 0.0, sp.pi / 2]).round(12) + 0.0
    array([[-1.,  0.,  0.]])
    """
    sympy = _sympy()
    names, places = _single(builder)
    t = time()
    q, v = sympy.Matrix(coordinates(*names)), sympy.Matrix(velocities(*names))
    a = sympy.Matrix([sympy.Symbol(f"dd {each}", real=True) for each in names])
    known = {t, *q, *(v if velocity else ())}
    given = sympy.Matrix([_expression(f"constraint {shown(name)}", each) for each in expressions])
    for symbol in _symbols_of(given):
        if symbol not in known:
            what = sorted(map(str, known))
            raise InputError(f"constraint {shown(name)}: unknown symbol {shown(str(symbol))}, "
                             f"{suggestion(str(symbol), what)} (take symbols from liedyn.symbolic)")
    psi = given if velocity else given.jacobian(q) * v + given.diff(t)
    G = psi.jacobian(v)
    if any(symbol in G.free_symbols for symbol in v):
        raise InputError(f"constraint {shown(name)}: not linear in the velocities: {shown(list(expressions), 300)}")
    drift = psi.subs({each: 0 for each in v})
    phi_0 = psi.jacobian(q) * v + psi.diff(t)
    lam = sympy.Matrix(sympy.symbols(f"lambda_:{len(given)}", real=True))
    phi = G * a + phi_0
    parts = {
        "residual": None if velocity else ((t, q), [given]),
        "jacobian": ((t, q), [G]),
        "drift": ((t, q), [drift]) if any(drift) else None,
        "bias": ((t, q, v), [phi_0]),
        "derivatives": ((t, q, v, a), [psi.jacobian(q), phi.jacobian(q), phi.jacobian(v)]),
        "force_derivative": ((t, q, lam), [(G.T * lam).jacobian(q)]),
    }
    try:
        functions = {key: _function(key, *part, places) for key, part in parts.items() if part is not None}
    except NotImplementedError as error:
        raise InputError(f"constraint {shown(name)}: a derivative of {shown(list(expressions), 300)} has no code: "
                         f"{_first_line(error)}") from None
    builder.custom(name, rows=len(given), active=active, **functions)


def _expression(owner, given):
    """An expression, or a number, as a SymPy object. Text is refused, because SymPy would execute it as Python."""
    sympy = _sympy()
    try:
        expression = sympy.sympify(given, strict=True)
    except (sympy.SympifyError, TypeError, ValueError):
        expression = None
    if not isinstance(expression, sympy.Expr):
        raise InputError(f"{owner}: expected an expression of SymPy, got {shown(given)}")
    for each in sympy.preorder_traversal(expression):
        if isinstance(each, sympy.core.function.AppliedUndef):
            raise InputError(f"{owner}: unknown function {shown(each.func.__name__)} in {shown(expression)}")
    return expression


def _symbols_of(expression):
    """All symbols of an expression by name, also bound ones such as the index of a sum, as all get printed as code."""
    found = {each for each in _sympy().preorder_traversal(expression) if getattr(each, "is_symbol", False)}
    return sorted(found, key=str)


def _first_line(error):
    return shown(str(error).splitlines()[0], 200)


def law_of(owner, expression):
    """The compiled function of a force element's law, from an expression in x and w.

    InputError for another symbol, something else than an expression, or an expression without derivatives.
    """
    sympy = _sympy()
    expression, (x, w) = _expression(f"{owner}, law", expression), sympy.symbols("x w", real=True)
    if expression.is_Matrix:
        raise InputError(f"{owner}, law: expected an expression, got {shown(expression)}")
    known = {"x": x, "w": w}
    for each in _symbols_of(expression):
        if not (isinstance(each, sympy.Symbol) and each.name in known):
            raise InputError(f"{owner}, law: unknown symbol {shown(str(each))}, expected x, the length, and w, its "
                             "rate")
    expression = expression.xreplace({each: known[each.name] for each in expression.free_symbols})
    parts, printed = [expression, expression.diff(x), expression.diff(w)], sympy.printing.pycode
    shared, found = sympy.cse(parts, symbols=sympy.numbered_symbols("x_"))
    try:
        body = [f"{symbol} = {printed(each)}" for symbol, each in shared]
        result = ", ".join(f"1.0 * ({printed(each)})" for each in found)
    except NotImplementedError as error:
        raise InputError(f"{owner}, law: a derivative of {shown(expression)} has no code: "
                         f"{_first_line(error)}") from None
    scope = {"math": math}
    exec("def law(x, w):\n    " + "\n    ".join([*body, f"return {result}\n"]), scope)
    return compiled(scope["law"], error_model="numpy")


def _single(builder):
    """Names of all coordinates of one degree of freedom, their indices in q and in v, and the size of v."""
    model = builder._model()
    validation.tree(model)  # only the tree: building the robot would compile the functions declared so far
    tree = link_tree(model)
    names, in_q, in_v, q, v = [], [], [], 0, 0
    for joint in tree.joints:
        kind = JOINT_KINDS[joint.kind]
        if kind.nq == kind.nv:
            names += [joint.name + suffix for suffix in kind.velocities]
            in_q += range(q, q + kind.nq)
            in_v += range(v, v + kind.nv)
        q, v = q + kind.nq, v + kind.nv
    return names, (in_q, in_v, v)


def _function(key, arguments, matrices, places):
    """A compiled function that fills arrays with expressions; columns of other coordinates are zero."""
    sympy = _sympy()
    in_q, in_v, nv = places
    letters = ("t", "q", "lam") if key == "force_derivative" else ("t", "q", "v", "a")[:len(arguments)]
    plain, lines = {}, []
    for letter, argument in zip(letters[1:], arguments[1:]):
        where = {"q": in_q, "v": in_v, "a": in_v, "lam": range(len(argument))}[letter]
        for k, symbol in zip(where, argument):
            plain[symbol] = sympy.Symbol(f"{letter}_{k}")
            lines.append((plain[symbol], f"{letter}[{k}]"))
    shared, reduced = sympy.cse([matrix.xreplace(plain) for matrix in matrices], symbols=sympy.numbered_symbols("x_"))
    used = set().union(*(e.free_symbols for _, e in shared), *(m.free_symbols for m in reduced))
    body = [f"{symbol} = {source}" for symbol, source in lines if symbol in used]
    printed = sympy.printing.pycode
    body += [f"{symbol} = {printed(expression)}" for symbol, expression in shared]
    square = key == "force_derivative"
    for k, matrix in enumerate(reduced):
        wide = key in ("jacobian", "derivatives", "force_derivative")
        shape = (nv, nv) if square else (matrix.rows, nv) if wide else (matrix.rows,)
        body.append(f"out_{k} = np.zeros({shape})")
        for row in range(matrix.rows):
            for column in range(matrix.cols):
                if matrix[row, column] != 0:
                    place = f"{in_v[row] if square else row}, {in_v[column]}" if wide else f"{row}"
                    body.append(f"out_{k}[{place}] = {printed(matrix[row, column])}")
    result = ", ".join(f"out_{k}" for k in range(len(reduced)))
    source = f"def {key}({', '.join(letters)}):\n    " + "\n    ".join(body) + f"\n    return {result}\n"
    scope = {"np": np, "math": math}
    exec(source, scope)
    return compiled(scope[key], error_model="numpy")
