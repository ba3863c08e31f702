"""Elimination of sparse symmetric matrices of which a few rows and columns are full, such as those of the duration.

Pivots that are chosen for their size spread a full row over the factors. So full ones are left to the end,

    [K  C] [x]   [b]        S = D - C^T K^-1 C,  z = S^-1 (c - C^T K^-1 b),  x = K^-1 b - K^-1 C z
    [C' D] [z] = [c]

and only K is factored. Only columns of unknowns are left out: [[B, A^T], [A, 0]] stays regular without them where B is
positive along the constraints A, but not without constraints.
"""
import numpy as np
from scipy.sparse.linalg import splu

FULL = 0.25
"""Columns with a larger part of all rows are full."""


class Bordered:
    """Factors of a matrix, sparse by columns, whose first rows and columns are those of so many unknowns.

    Raises
    ------
    RuntimeError
        It is singular, as for `scipy.sparse.linalg.splu`.
    """

    def __init__(self, M, unknowns):
        full = np.diff(M.indptr) > FULL * M.shape[0]
        full[unknowns:] = False
        self._last, self._first = np.flatnonzero(full), np.flatnonzero(~full)
        columns = M[:, self._last].toarray()
        self._C = columns[self._first]
        self._K = splu(M[self._first][:, self._first] if full.any() else M, permc_spec="MMD_AT_PLUS_A")
        self._KC = self._K.solve(self._C) if full.any() else self._C
        try:
            self._S_inverse = np.linalg.inv(columns[self._last] - self._C.T @ self._KC)
        except np.linalg.LinAlgError:
            raise RuntimeError("the matrix is singular in its full columns") from None

    def solve(self, b):
        """x with M x = b (n,)."""
        x = np.empty(len(b))
        x[self._first] = self._K.solve(b[self._first])
        if len(self._last):
            x[self._last] = self._S_inverse @ (b[self._last] - self._C.T @ x[self._first])
            x[self._first] -= self._KC @ x[self._last]
        return x
