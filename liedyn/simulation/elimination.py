"""Linear equations of an implicit step, solved in place."""
from liedyn.jit import kernel_in_place


@kernel_in_place
def eliminate(A, b, n):
    """b[:n] = A[:n, :n]^-1 b[:n] by elimination with partial pivoting; A is overwritten. False if A is singular."""
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        if not abs(A[best, k]) > 0.0:  # a NaN is no pivot either
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
