"""Elimination of sparse symmetric matrices with a few full rows and columns, such as those of the duration.

Pivoting by size would spread a full row over the factors. Therefore full rows and columns are eliminated last,

    [K  C] [x]   [b]        S = D - C^T K^-1 C,  z = S^-1 (c - C^T K^-1 b),  x = K^-1 b - K^-1 C z
    [C' D] [z] = [c]

and only K is factored. Only columns of unknowns are treated so: [[B, A^T], [A, 0]] stays regular without them if B is
positive along the constraints A, but not without constraints.

Unknowns are coupled to those of their own interval and of the next one, so K has a narrow band in the order of time,
which the algorithm of Cuthill and McKee (1969) finds. Elimination in a band takes time and memory proportional to the
number of intervals; without a narrow band, it is sparse. Products such as A A^T are not formed: a full column of A
would fill them.
"""
# mypy: ignore-errors
import numpy as np
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded
from scipy.linalg.lapack import dgbtrf, dgbtrs
from scipy.sparse import block_array, eye_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from liedyn.machine.memory import require_memory

FULL, MANY = 0.25, 20.0
"""Columns are full if they have a larger fraction of all rows, and so many times as many entries as others have."""
REPEATED = 1e-13
"""Squares of singular values below this part of the largest row's are zero: redundant rows."""
NARROW = 0.5
"""Bands with more diagonals than this fraction of all are wide: sparse factors are then smaller."""


class Bordered:
    """Factors of a matrix, sparse by columns, whose first `unknowns` rows and columns belong to unknowns.

    Raises
    ------
    RuntimeError
        The matrix is singular, as for `scipy.sparse.linalg.splu`.
    InputError
        The factors need more memory than there is.
    """

    def __init__(self, M, unknowns):
        self._first, self._last = _split(M, unknowns)
        columns = M[:, self._last].toarray()
        self._C = columns[self._first]
        self._solve = _factored(M[self._first][:, self._first] if len(self._last) else M)
        self._KC = self._solve(self._C) if len(self._last) else self._C
        try:
            self._S_inverse = np.linalg.inv(columns[self._last] - self._C.T @ self._KC)
        except np.linalg.LinAlgError:
            raise RuntimeError("the matrix is singular in its full columns") from None

    def solve(self, b):
        """x with M x = b (n,)."""
        x = np.empty(len(b))
        x[self._first] = self._solve(b[self._first])
        if len(self._last):
            x[self._last] = self._S_inverse @ (b[self._last] - self._C.T @ x[self._first])
            x[self._first] -= self._KC @ x[self._last]
        return x


def least_squares(A, epsilon):
    """Factors of [[1, A^T], [A, -epsilon]] for sparse A (m, n), None if they are singular."""
    m, n = A.shape
    try:
        return Bordered(block_array([[eye_array(n), A.T], [A, -epsilon * eye_array(m)]]).tocsc(), n)
    except RuntimeError:
        return None


def least_step(A, b):
    """The least-norm x with A x = b, for sparse A (m, n) that may have redundant rows; None if there is none."""
    largest = np.asarray(A.multiply(A).sum(axis=1)).max(initial=0.0)
    factor = least_squares(A, REPEATED * largest) if largest > 0.0 else None
    return None if factor is None else factor.solve(np.concatenate([np.zeros(A.shape[1]), b]))[:A.shape[1]]


def is_positive(B):
    """True if a symmetric matrix, sparse by columns, is positive definite."""
    first, last = _split(B, B.shape[0])
    K = B[first][:, first] if len(last) else B
    order, band, rows, columns = _in_band(K)
    if band > NARROW * len(order):
        return _is_positive_sparse(B)
    lower = rows >= columns
    require_memory(f"elimination of {len(order)} unknowns", 16.0 * (band + 1) * len(order))
    ab = np.zeros((band + 1, len(order)))
    ab[(rows - columns)[lower], columns[lower]] = K.data[lower]
    try:
        factor = cholesky_banded(ab, overwrite_ab=True, lower=True, check_finite=False)
        if len(last):
            C = B[:, last].toarray()
            inner = C[first][order]
            np.linalg.cholesky(C[last] - inner.T @ cho_solve_banded((factor, True), inner, check_finite=False))
    except LinAlgError:
        return False
    return bool(np.isfinite(factor[0]).all())


def _is_positive_sparse(B):
    """By elimination without pivoting, which then meets positive pivots only."""
    require_memory(f"elimination of {B.shape[0]} unknowns", 12.0 * float(B.shape[0]) ** 2)
    try:
        factor = splu(B, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # the matrix is singular
        return False
    return bool((factor.perm_r == factor.perm_c).all() and (factor.U.diagonal() > 0.0).all())


def _split(M, unknowns):
    """Rows that are not full, and the full ones of unknowns: none of these if more than a few are full."""
    entries = np.diff(M.indptr)
    full = entries > min(FULL * M.shape[0], MANY * np.median(entries)) if len(entries) else entries > 0
    full[unknowns:] = False
    if full.sum() > FULL * M.shape[0]:
        full[:] = False
    return np.flatnonzero(~full), np.flatnonzero(full)


def _in_band(K):
    """An order of the rows with a narrow band, its width, and the positions of entries of K in this order."""
    order = reverse_cuthill_mckee(K, symmetric_mode=True)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rows, columns = place[K.indices], np.repeat(place, np.diff(K.indptr))
    return order, int(np.abs(rows - columns).max(initial=0)), rows, columns


def _factored(K):
    """A function that solves K x = b for b (n,) or (n, m)."""
    order, band, rows, columns = _in_band(K)
    wide = band > NARROW * len(order)
    require_memory(f"elimination of {len(order)} unknowns",  # SciPy's sparse elimination would end the process
                   len(order) * (24.0 * len(order) if wide else 8.0 * (3 * band + 1)))
    if wide:
        return splu(K, permc_spec="MMD_AT_PLUS_A").solve
    ab = np.zeros((3 * band + 1, len(order)), order="F")
    ab[2 * band + rows - columns, columns] = K.data
    factor, pivots, info = dgbtrf(ab, band, band, overwrite_ab=True)
    if info > 0:
        raise RuntimeError("the matrix is singular")

    def solve(b):
        x = np.empty_like(b)
        x[order] = dgbtrs(factor, band, band, b[order], pivots)[0]
        return x

    return solve
