"""Constrained accelerations from the definition, in 40 digits: the reference of all formulations."""
import mpmath
import numpy as np
import scipy.linalg


def independent(G, tolerance=1e-8):
    """Rows of G that span its row space, by SciPy's pivoted QR."""
    if not G.size:
        return np.zeros(0, int)
    _, R, order = scipy.linalg.qr(G.T, mode="economic", pivoting=True)
    pivots = np.abs(np.diag(R))
    return order[:int((pivots > tolerance * pivots[0]).sum())]


def solve(M, h, G, wanted, tau):
    """[M G_1^T; G_1 0] (a, lambda_1) = (tau - h, wanted_1), and the shortest lambda with the same force."""
    rows = independent(G)
    G_1, n, r = G[rows], len(h), len(rows)
    K = np.block([[M, G_1.T], [G_1, np.zeros((r, r))]])
    with mpmath.workdps(40):
        known = mpmath.matrix([*(mpmath.mpf(x) - mpmath.mpf(y) for x, y in zip(tau, h)), *wanted[rows]])
        found = mpmath.lu_solve(mpmath.matrix(K.tolist()), known)
        a = np.array([float(x) for x in found[:n]])
        force = np.array([float(x) for x in mpmath.matrix(G_1.T.tolist()) * found[n:]]) if r else np.zeros(n)
    lam = np.linalg.lstsq(G.T, force, rcond=1e-9)[0] if G.size else np.zeros(0)
    return a, lam
