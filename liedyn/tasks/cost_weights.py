"""Weights of quadratic costs from the user's arguments: numbers, diagonals, matrices, or numbers by name."""
import numpy as np

from liedyn.machine.arguments import floats
from liedyn.machine.errors import InputError, shown, suggestion


def weight(name, value, labels, definite):
    """A symmetric matrix, positive definite or semidefinite, with a row for each label.

    Raises InputError if a shape does not fit, a label is unknown, or the matrix is not symmetric or not (semi)definite.
    """
    if isinstance(value, dict):
        for each in value:
            if each not in labels:
                raise InputError(f"{name}: unknown {shown(each)}, {suggestion(shown(each), labels)}")
        value = [value.get(each, 0.0) for each in labels]
    x, size = floats(name, value), len(labels)
    if not np.isfinite(x).all():
        raise InputError(f"{name} must be finite, got {shown(value)}")
    matrix = np.eye(size) * x if x.ndim < 2 and x.shape in ((), (size,)) else x
    if matrix.shape != (size, size):
        raise InputError(f"{name} must be a number, {size} numbers, a matrix ({size}, {size}) or numbers by name, one "
                         f"for each of {', '.join(labels)}; got shape {x.shape}")
    least = np.abs(matrix).max(initial=0.0)
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-12 * least:
        raise InputError(f"{name} must be symmetric")
    smallest = np.linalg.eigvalsh(matrix).min(initial=np.inf)
    # eigenvalues of a semidefinite matrix are zero up to rounding
    if smallest < -1e-12 * least or definite and not smallest > 0.0:
        raise InputError(f"{name} must be positive {'definite' if definite else 'semidefinite'}, its smallest "
                         f"eigenvalue is {smallest:.3g}")
    return 0.5 * (matrix + matrix.T)
