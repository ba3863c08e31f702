"""Least squares with equations and bounds by solvers of quadratic programs, which are optional packages."""
# mypy: ignore-errors

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.machine.errors import InputError, LiedynError, shown, suggestion

RANK = 1e-9
"""Singular values of the equations below this part of the largest one count as zero."""
CONTRADICTION = 1e-7
"""Residual of redundant equations, relative to their largest number or 1, that is admitted (solvers: 1e-8)."""
ACCURACY = 1e-10


class InfeasibleError(LiedynError):
    """No velocity satisfies loops, limits and inequalities at once.

    Attributes
    ----------
    left : float
        Residual of the nearest one, if it is known, else NaN.
    """

    left: float

    def __init__(self, text: str, left: float = np.nan) -> None:
        super().__init__(text)
        self.left = left


class Quadratic(NamedTuple):
    """The x that minimises x^T P x / 2 + c^T x with A x = b, c_low <= C x <= c_up and bounds = (low, up)."""

    P: np.ndarray
    c: np.ndarray
    A: np.ndarray | None
    b: np.ndarray | None
    C: np.ndarray | None
    c_low: np.ndarray | None
    c_up: np.ndarray | None
    low: np.ndarray
    up: np.ndarray


def solve(J, goal, damping, equations, bounds, inequalities, solver):
    """The x that minimises |J x - goal|^2 + damping |x|^2 with [A | b] = `equations` and bounds = (low, up).

    Raises InfeasibleError if there is no solution. Raises LiedynError if the solver is not installed.
    """
    A, b = independent(equations)
    P, c = J.T @ J + damping * np.eye(J.shape[1]), -J.T @ goal
    program = Quadratic(P, c, A, b, *(inequalities or (None, None, None)), *bounds)
    x = (_piqp if solver == "piqp" else _qpsolvers)(program, solver)
    if x is None:
        raise InfeasibleError(f"{solver} finds no velocity that satisfies loops, limits and inequalities")
    return x


def independent(equations):
    """Independent equations A x = b that are equivalent to [A | b] with redundant rows."""
    A, b = equations[:, :-1], equations[:, -1]
    if not len(A):
        return None, None
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    keep = s > RANK * s.max(initial=0.0)
    along = U[:, keep].T @ b
    left = np.abs(b - U[:, keep] @ along).max(initial=0.0)
    if left > CONTRADICTION * max(1.0, np.abs(b).max()):
        raise InfeasibleError(f"the loops contradict each other: {left:.3g} of their velocities is left", left)
    return (Vt[keep], along / s[keep]) if keep.any() else (None, None)


def _piqp(program, solver):
    try:
        import piqp
    except ImportError:
        raise LiedynError("solver 'piqp' needs PIQP: pip install 'liedyn[ik]'") from None
    found = piqp.DenseSolver()
    found.settings.eps_abs = found.settings.eps_rel = ACCURACY
    given = [None if x is None else np.asfortranarray(x) for x in program]
    found.setup(*given)
    return np.array(found.result.x) if found.solve() == piqp.PIQP_SOLVED else None


def _qpsolvers(program, solver):
    try:
        import qpsolvers
    except ImportError:
        raise LiedynError(f"solver {shown(solver)} needs qpsolvers: pip install 'liedyn[ik]'") from None
    known = qpsolvers.available_solvers
    if solver not in known:
        raise InputError(f"unknown or missing solver {shown(solver)}, {suggestion(solver, known)}")
    sides = None
    if program.C is not None:
        rows, bounds = np.vstack([program.C, -program.C]), np.concatenate([program.c_up, -program.c_low])
        kept = np.isfinite(bounds)
        sides = (rows[kept], bounds[kept]) if kept.any() else None
    G, h = sides or (None, None)
    return qpsolvers.solve_qp(program.P, program.c, G, h, *program[2:4], *program[-2:], solver=solver)
