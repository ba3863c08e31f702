"""Algebraic Riccati equations of regulators and filters, and the reason if one has no stabilising solution.

A motion that does not decay by itself, and that is not controllable or not observable in the cost, keeps its eigenvalue
in the closed loop, on or beyond the stability boundary. Solvers nevertheless return numbers then, 1e6 to 1e16.
Therefore the closed loop must be stable by a margin: relative to the eigenvalue itself, and relative to rounding in
its matrix. Slow loops are far from that margin: a time constant of 1e4 s beside one of 1e-4 s still exceeds it 1e5
times.
"""
# mypy: ignore-errors
from typing import NamedTuple

import numpy as np

from liedyn.machine.errors import InputError

MARGIN, ROUNDING = 1e-9, 1e3 * np.finfo(float).eps
"""Margin of stability of an eigenvalue: the part of its size, and the part of the norm of the closed loop."""
UNREACHED = 1e-9
"""Smallest singular value of [A - s B], with columns of size 1, of a mode that inputs affect."""


class Riccati(NamedTuple):
    """The numbers of a Riccati equation; for a filter with A^T in place of A and C^T in place of B."""

    A: np.ndarray
    B: np.ndarray
    Q: np.ndarray
    R: np.ndarray
    N: np.ndarray | None = None


class Unsolved(NamedTuple):
    """Words of the error message: what does not exist, that B does not reach a motion, or Q does not contain it, and
    what can be done."""

    what: str
    undriven: str
    unweighted: str
    advice: str


def undamped(A, h):
    """exp(h s) for all motions of a continuous-time A that do not decay: nearly the eigenvalues of a step."""
    return np.exp(h * _unstable(np.linalg.eigvals(A), A, False))


def solved(solve, equation, states, still, words):
    """The stabilising solution of a Riccati equation.

    Parameters
    ----------
    solve : callable
        ``solve_continuous_are`` or ``solve_discrete_are`` of SciPy.
    equation : Riccati
    states : tuple of str
    still : ndarray or None
        In discrete time the result of `undamped`: a step of an integrator may add a little damping to motions that do
        not decay, but if the closed loop does not change their eigenvalues they are not stabilised. None in continuous
        time.
    words : Unsolved

    Raises
    ------
    InputError
        No stabilising solution; the message names an unstable mode.
    """
    A, B, Q, R, N = equation
    if not len(A):
        raise InputError(f"no {words.what}: there is no state, as nothing can move")
    own, sampled = np.linalg.eigvals(A), still is not None
    still = _nearest(own, still) if sampled else own[:0]
    try:
        P = solve(A, B, Q, R, s=N)
        trouble = "" if np.isfinite(P).all() else "the cost is not finite"
    except (np.linalg.LinAlgError, ValueError) as error:
        trouble = str(error)
    if trouble:
        modes = np.concatenate([_unstable(own, A, sampled), still])
        raise InputError(f"no {words.what}: {_reason(A, B, Q, states, modes, words) or trouble}")
    loop = _closed(A, B, P, R, N, sampled)
    found = np.linalg.eigvals(loop)
    apart, margin = np.abs(found - still[:, None]).min(axis=1, initial=np.inf), _margin(still, loop, sampled)
    left = np.concatenate([_unstable(found, loop, sampled), still[apart <= margin]])
    if len(left):
        modes = _nearest(own, left)  # modes that are not reached keep their eigenvalues
        raise InputError(f"no {words.what}: " + (_reason(A, B, Q, states, modes, words) or (
            f"to rounding its closed loop is not stable, with the eigenvalue {left[0]:.4g}: weights, or rates of "
            "motions, are too far apart")))
    return P


def _closed(A, B, P, R, N, sampled):
    """The closed loop, A - B K."""
    by_state, by_input = (B.T @ P @ A, R + B.T @ P @ B) if sampled else (B.T @ P, R)
    return A - B @ np.linalg.lstsq(by_input, by_state if N is None else by_state + N.T, rcond=None)[0]


def _nearest(own, others):
    """For each of `others` the nearest one of the eigenvalues `own`."""
    return own[np.abs(own[:, None] - others).argmin(axis=0)] if len(own) else own


def _unstable(eigenvalues, A, sampled):
    """The eigenvalues of a matrix A that are not stable by the margin."""
    return eigenvalues[_rates(eigenvalues, sampled).real >= -_margin(eigenvalues, A, sampled)]


def _rates(eigenvalues, sampled):
    """s, in discrete time h s, of the eigenvalues z = exp(h s)."""
    least = np.finfo(float).tiny
    return np.log(np.where(np.abs(eigenvalues) > least, eigenvalues, least).astype(complex)) if sampled else eigenvalues


def _margin(eigenvalues, A, sampled):
    """The margin by which eigenvalues of a matrix have to be stable."""
    size = np.linalg.norm(_balanced(A)[0])
    return MARGIN * np.abs(_rates(eigenvalues, sampled)) + ROUNDING * (max(size, 1.0) if sampled else size)


def _balanced(A):
    """A with states scaled so that rows and columns have similar sizes, and the scale factors."""
    from scipy.linalg import matrix_balance

    if not A.size:
        return A, np.ones(0)
    balanced, (scale, _) = matrix_balance(A, permute=False, separate=True)
    return balanced, scale


def _reason(A, B, Q, states, modes, words):
    """Why one of these modes of A cannot be stabilised, None if all can (Popov, Belevitch, Hautus)."""
    A, scale = _balanced(A)
    B, Q = _unit_columns(B / scale[:, None]), _unit_columns(Q * scale)
    least, found = UNREACHED, None
    for s in modes:
        one = s * np.eye(len(A)) - A
        one = one / max(np.linalg.norm(A), abs(s), np.finfo(float).tiny)
        for rows, trouble in ((np.hstack([one, B]).conj().T, words.undriven), (np.vstack([one, Q]), words.unweighted)):
            _, sizes, motions = np.linalg.svd(rows)
            if sizes.min() < least:
                name = states[int(np.abs(motions[-1]).argmax())].removeprefix("velocity:")
                least = sizes.min()
                found = f"the motion of {name} with the eigenvalue {s:.4g} does not decay, and {trouble}{words.advice}"
    return found


def _unit_columns(X):
    """Columns scaled to length 1; zero columns are not changed."""
    lengths = np.linalg.norm(X, axis=0)
    return X / np.where(lengths > 0.0, lengths, 1.0)
