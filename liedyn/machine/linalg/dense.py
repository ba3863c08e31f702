"""Dense linear algebra on small matrices, where a call to LAPACK costs more than the work."""

import math

import numpy as np

from liedyn.machine.compiled.jit import kernel, kernel_in_place
from liedyn.machine.linalg.ranks import negligible, put_weighed


@kernel_in_place
def largest_size(x):
    """max |x_i|; NaN if any x_i is NaN."""
    largest = 0.0
    for k in range(x.size):
        if np.isnan(x[k]):
            return np.nan
        largest = max(largest, abs(x[k]))
    return largest


@kernel
def transposed_product(A, B, out):
    """out = A^T B."""
    out[:] = 0.0
    for k in range(A.shape[0]):
        for i in range(A.shape[1]):
            x = A[k, i]
            if x != 0.0:
                for j in range(B.shape[1]):
                    out[i, j] += x * B[k, j]


@kernel
def independent_rows(G, ranking):
    """Rank of G by Householder QR of G^T with pivoting (Golub and Van Loan 2013, 5.4.2), order of its rows, pivots.

    The first `rank` entries of the order are independent rows of G, the rest depend on them. Pivots are those of the
    weighted rows; the rank is decided as in `liedyn.machine.linalg.ranks`.
    """
    m, n = G.shape
    A, order, diagonal, rank = np.empty_like(G), np.empty(m, np.int64), np.zeros(m), 0
    put_weighed(G, ranking, A)
    for i in range(m):
        order[i] = i
    for k in range(min(m, n)):
        best, largest = k, -1.0
        for i in range(k, m):
            s = 0.0
            for j in range(k, n):
                s += A[i, j] * A[i, j]
            if s > largest:
                best, largest = i, s
        order[k], order[best] = order[best], order[k]
        for j in range(n):
            A[k, j], A[best, j] = A[best, j], A[k, j]
        norm = math.sqrt(largest)
        diagonal[k] = norm
        if negligible(norm, diagonal[0], ranking.tolerance):
            break
        rank = k + 1
        # Householder reflection that maps row k to (-sign norm, 0, ...), applied to the rows below
        alpha = -norm if A[k, k] >= 0.0 else norm
        A[k, k] -= alpha
        h = norm * (norm + abs(A[k, k] + alpha))
        for i in range(k + 1, m):
            s = 0.0
            for j in range(k, n):
                s += A[i, j] * A[k, j]
            s /= h
            for j in range(k, n):
                A[i, j] -= s * A[k, j]
    return rank, order, diagonal


@kernel
def inverse(A, out):
    """out = A^-1 by Gauss-Jordan elimination with partial pivoting; A is overwritten. Returns the 1-norm condition
    number, inf if A is singular."""
    n = A.shape[0]
    norm = 0.0
    for j in range(n):
        s = 0.0
        for i in range(n):
            s += abs(A[i, j])
        norm = max(norm, s)
    out[:] = 0.0
    for i in range(n):
        out[i, i] = 1.0
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        if A[best, k] == 0.0:
            return np.inf
        if best != k:
            for j in range(n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
                out[k, j], out[best, j] = out[best, j], out[k, j]
        d = 1.0 / A[k, k]
        for j in range(n):
            A[k, j] *= d
            out[k, j] *= d
        for i in range(n):
            x = A[i, k]
            if i != k and x != 0.0:
                for j in range(n):
                    A[i, j] -= x * A[k, j]
                    out[i, j] -= x * out[k, j]
    inverse_norm = 0.0
    for j in range(n):
        s = 0.0
        for i in range(n):
            s += abs(out[i, j])
        inverse_norm = max(inverse_norm, s)
    return norm * inverse_norm


@kernel_in_place
def solve_square(A, b, n, least=-1.0):
    """b[:n] = A[:n, :n]^-1 b[:n] by elimination with partial pivoting; A is overwritten. False if A is singular.

    If `least` is not negative, pivots are taken in their order, and it is also False if one is not larger than that.
    """
    for k in range(n):
        best = k
        for i in range(k + 1, n if least < 0.0 else 0):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        if not (abs(A[best, k]) > 0.0 if least < 0.0 else A[k, k] > least):  # NaN is no pivot either
            return False
        if best != k:
            for j in range(k, n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
            b[k], b[best] = b[best], b[k]
        for i in range(k + 1, n):
            x = A[i, k] / A[k, k]
            if x != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= x * A[k, j]
                b[i] -= x * b[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= A[i, j] * b[j]
        b[i] /= A[i, i]
    return True


@kernel
def solve_positive(A, B):
    """B = A^-1 B in place by Cholesky; A is overwritten by its factor. False if A is not positive definite."""
    n = A.shape[0]
    for j in range(n):
        for k in range(j):
            for i in range(j, n):
                A[i, j] -= A[i, k] * A[j, k]
        if not A[j, j] > 0.0:
            return False
        d = 1.0 / math.sqrt(A[j, j])
        for i in range(j, n):
            A[i, j] *= d
    for c in range(B.shape[1]):
        for i in range(n):
            for k in range(i):
                B[i, c] -= A[i, k] * B[k, c]
            B[i, c] /= A[i, i]
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                B[i, c] -= A[k, i] * B[k, c]
            B[i, c] /= A[i, i]
    return True
