"""Algebraic Riccati equations of regulators and filters, and why one has no solution."""
from typing import NamedTuple

import numpy as np

from liedyn.errors import InputError

UNREACHED = 1e-9
"""Smallest singular value of [A - s B], as a part of the largest one, of a mode that inputs move."""


class Unsolved(NamedTuple):
    """What an error says: what there is none of, and of a motion, that B does not reach it, that Q does not."""

    what: str
    undriven: str
    unweighted: str


def is_unstable(s):
    return s.real >= -UNREACHED * max(1.0, abs(s))


def grows(s):
    return abs(s) >= 1.0 - UNREACHED


def solved(solve, A, B, Q, R, N, states, grows, words):
    """The solution of a Riccati equation, that of a stable loop; of a filter with A^T for A and C^T for B.

    Raises
    ------
    InputError
        There is none; it names a motion that is to blame.
    """
    try:
        P = solve(A, B, Q, R, s=N)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise InputError(f"no {words.what}: {_reason(A, B, Q, states, grows, words) or error}") from None
    if not np.isfinite(P).all():
        raise InputError(f"no {words.what}: {_reason(A, B, Q, states, grows, words) or 'the cost is not finite'}")
    return P


def _reason(A, B, Q, states, grows, words):
    """What keeps a motion that does not decay from being stabilised, None if all is well (Popov, Belevitch, Hautus)."""
    for s in np.linalg.eigvals(A):
        if not grows(s):
            continue
        one, largest = s * np.eye(len(A)) - A, np.linalg.norm(A) + abs(s) + 1.0
        for rows, trouble in ((np.hstack([one, B]).conj().T, words.undriven), (np.vstack([one, Q]), words.unweighted)):
            _, sizes, motions = np.linalg.svd(rows)
            if sizes.min() < UNREACHED * largest:
                name = states[int(np.abs(motions[-1]).argmax())].removeprefix("velocity:")
                return f"the motion of {name} with the eigenvalue {s:.4g} does not decay, and {trouble}"
    return None
