"""Many solutions of M x + G^T l = f, G x = r at once, for M positive definite and rows of G that may be redundant.

With M = L L^T and the rows of G L^-T made orthonormal, [G L^-T | r] -> [Q | d] (`liedyn.machine.linalg.nearest`), y =
L^T x is

    y = (1 - Q^T Q) L^-1 f + Q^T d

If needed, the multipliers l follow from G^T l = f - M x.
"""
from liedyn.machine.compiled.jit import kernel_in_place
from liedyn.machine.linalg.nearest import factor, orthonormal_rows
from liedyn.machine.linalg.ranks import bring_to_length, weighed_length


@kernel_in_place
def forward_rows(L, X):
    """X = L^-1 X, by operations on whole rows; the diagonal of L holds its inverse
    (`liedyn.machine.linalg.nearest.factor`)."""
    for i in range(L.shape[0]):
        for k in range(i):
            s = L[i, k]
            if s != 0.0:
                for c in range(X.shape[1]):
                    X[i, c] -= s * X[k, c]
        for c in range(X.shape[1]):
            X[i, c] *= L[i, i]


@kernel_in_place
def backward_rows(L, X):
    """X = L^-T X."""
    for i in range(L.shape[0] - 1, -1, -1):
        for k in range(i + 1, L.shape[0]):
            s = L[k, i]
            if s != 0.0:
                for c in range(X.shape[1]):
                    X[i, c] -= s * X[k, c]
        for c in range(X.shape[1]):
            X[i, c] *= L[i, i]


@kernel_in_place
def factor_saddle(M, G, L):
    """Cholesky factor L of M, or if M is singular, of M + G^T G, which has the same solutions with f + G^T r instead of
    f.

    Returns 0 or 1 for these two, -1 if x is not determined.
    """
    if factor(M, L):
        return 0
    n = M.shape[0]
    for i in range(n):
        for j in range(n):
            for r in range(G.shape[0]):
                M[i, j] += G[r, i] * G[r, j]
    return 1 if factor(M, L) else -1


@kernel_in_place
def solve_saddle(L, added, G, ranking, right, scratch, out):
    """out (n, c), for right = forces f (n, c) and rates r (m, c); returns the rank of G.

    L and `added` are those of `factor_saddle`. The forces are overwritten; scratch = Y (m, n + c) and `order`, which
    receives the indices of the rows of G in the order of pivoting.
    """
    (forces, rates), (Y, order) = right, scratch
    n, m, count = L.shape[0], G.shape[0], forces.shape[1]
    if added == 1:
        for r in range(m):
            for i in range(n):
                for c in range(count):
                    forces[i, c] += G[r, i] * rates[r, c]
    for r in range(m):
        for j in range(n):
            s = G[r, j]
            for k in range(j):
                s -= L[j, k] * Y[r, k]
            Y[r, j] = s * L[j, j]
        for c in range(count):
            Y[r, n + c] = rates[r, c]
        bring_to_length(Y, n, weighed_length(G, r, ranking), r)
    rank, _ = orthonormal_rows(Y, ranking.tolerance, order, count)
    forward_rows(L, forces)
    for i in range(n):
        for c in range(count):
            out[i, c] = forces[i, c]
    for r in range(rank):
        for i in range(n):  # the last column becomes d - Q L^-1 f
            s = Y[r, i]
            for c in range(count):
                Y[r, n + c] -= s * forces[i, c]
        for i in range(n):
            s = Y[r, i]
            for c in range(count):
                out[i, c] += s * Y[r, n + c]
    backward_rows(L, out)
    return rank
