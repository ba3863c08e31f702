"""The shortest vector that satisfies linear equations G x = c, possibly redundant, without allocation.

Pivoted Gram-Schmidt makes the rows orthonormal and transforms the right sides with them: [G | c] -> [Q | d]. Then Q x =
d means d_k = q_k . x, and the shortest solution is x = sum d_k q_k. Shortest in the kinetic-energy metric x^T M x, with
M = L L^T, is the same for L^T x and the rows of G L^-T, each scaled to the length of its weighted row of G, so that
masses of any size do not influence the rank. A row whose remainder is below the tolerance is redundant
(`liedyn.machine.linalg.ranks`).
"""
import math

from liedyn.machine.compiled.jit import kernel_in_place
from liedyn.machine.linalg.ranks import bring_to_length, negligible, weighed_length


@kernel_in_place
def orthonormal_rows(Y, tolerance, order, right=1):
    """Transform Y = [G | c] to [Q | d] in place; returns the rank and the last pivot.

    `order` receives the indices of the rows in the order of pivoting. There may be several c: `right` is their number.
    """
    m, n = Y.shape[0], Y.shape[1] - right
    first = last = 0.0
    for i in range(m):
        order[i] = i
    for k in range(min(m, n)):
        best, largest = k, -1.0
        for i in range(k, m):
            s = 0.0
            for j in range(n):
                s += Y[i, j] * Y[i, j]
            if s > largest:
                best, largest = i, s
        size = math.sqrt(largest)
        if k == 0:
            first = size
        if negligible(size, first, tolerance) or size == 0.0:
            return k, last
        last = size
        order[k], order[best] = order[best], order[k]
        for j in range(n + right):
            x = Y[best, j]
            Y[best, j] = Y[k, j]
            Y[k, j] = x / size
        for i in range(k + 1, m):
            s = 0.0
            for j in range(n):
                s += Y[i, j] * Y[k, j]
            for j in range(n + right):
                Y[i, j] -= s * Y[k, j]
    return min(m, n), last


@kernel_in_place
def shortest(Y, rank, x):
    """x = sum d_k q_k."""
    n = Y.shape[1] - 1
    for j in range(n):
        x[j] = 0.0
    for k in range(rank):
        for j in range(n):
            x[j] += Y[k, n] * Y[k, j]


@kernel_in_place
def factor(M, L):
    """M = L L^T; False if M is not positive definite."""
    n = M.shape[0]
    for i in range(n):
        for j in range(i + 1):
            s = M[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i > j:
                L[i, j] = s * L[j, j]  # the diagonal of L stores its inverse
            elif s > 1e-14 * M[i, i]:
                L[i, i] = 1.0 / math.sqrt(s)
            else:
                return False
    return True


@kernel_in_place
def forward(L, x):
    """x = L^-1 x."""
    for i in range(L.shape[0]):
        s = x[i]
        for k in range(i):
            s -= L[i, k] * x[k]
        x[i] = s * L[i, i]


@kernel_in_place
def backward(L, x):
    """x = L^-T x."""
    n = L.shape[0]
    for i in range(n - 1, -1, -1):
        s = x[i]
        for k in range(i + 1, n):
            s -= L[k, i] * x[k]
        x[i] = s * L[i, i]


@kernel_in_place
def nearest_in_metric(G, c, rows, L, ranking, scratch, x):
    """The x of minimal x^T L L^T x with G x = c for the rows marked in `rows`; returns the rank.

    scratch = (Y, order): (m, n + 1), and the rows in the order of pivoting.
    """
    n, (Y, order) = L.shape[0], scratch
    for i in range(G.shape[0]):
        use = rows[i] != 0
        for j in range(n):
            Y[i, j] = G[i, j] if use else 0.0
        Y[i, n] = c[i] if use else 0.0
        if use:
            forward(L, Y[i])
            bring_to_length(Y, n, weighed_length(G, i, ranking), i)
    rank, _ = orthonormal_rows(Y, ranking.tolerance, order)
    shortest(Y, rank, x)
    backward(L, x)
    return rank


@kernel_in_place
def nearest_in_columns(G, c, rows, columns, ranking, scratch, x):
    """The x of minimal weighted length with G x = c for the marked rows, zero outside the marked columns.

    Returns how well these columns determine the rows: the last pivot, relative to the longest row with all columns.
    """
    n, longest, (Y, order) = G.shape[1], 0.0, scratch
    for i in range(G.shape[0]):
        use = rows[i] != 0
        s = 0.0
        for j in range(n):
            y = ranking.rows[i] * G[i, j] * ranking.columns[j]
            Y[i, j] = y if use and columns[j] != 0 else 0.0
            s += y * y if use else 0.0
        Y[i, n] = ranking.rows[i] * c[i] if use else 0.0
        longest = max(longest, s)
    rank, last = orthonormal_rows(Y, ranking.tolerance, order)
    shortest(Y, rank, x)
    for j in range(n):
        x[j] *= ranking.columns[j]
    return last / math.sqrt(longest) if longest > 0.0 else 1.0
