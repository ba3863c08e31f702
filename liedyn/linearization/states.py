"""Linearization of many states without Python in between: results in place, one workspace for each thread."""
import numpy as np

from liedyn.dynamics.nullspace import OK
from liedyn.exchange import padded
from liedyn.linearization.local import complete_derivatives, linearize_in_place, linearize_size
from liedyn.jit import inline
from liedyn.lie.lanes import SCALAR, WIDTH
from liedyn.linearization.output_rows import output_size, put_outputs, read_accelerations
from liedyn.model.packed import N_ROWS, NV
from liedyn.tree.batches import batch


@inline
def largest(x):
    found = 0.0
    for k in range(x.size):
        found = max(found, abs(x[k]))
    return found


@inline
def is_consistent(v, residual, psi, tolerance):
    """Is the state on the constraint manifold, and does its velocity stay there?"""
    return largest(residual) <= tolerance and largest(psi) <= tolerance * max(1.0, largest(v))


@batch
def linearize_states(begin, end, ints, floats, q, v, tau, f_ext, R_y, virtual_y, R_w, virtual_w, actuators, outputs,
                     closure_tolerance, rank_tolerance, A, B, C, D, f0, K, S, drift, a, lam, rank, condition,
                     condition_y, closure):
    """The local state space at each row.

    `R_y` and `R_w` (choices, p, nv) hold one choice of coordinates for all states, or one for each; `outputs` the parts
    of an `OutputPlan`. `condition_y` is the condition number of the coordinates, `condition` that of the velocities.
    The first state that has no state space gets rank -1, and none behind it in its block is worked on.
    """
    n, m, p_y, p_w, nu = ints[NV], ints[N_ROWS], virtual_y.size, virtual_w.size, actuators.shape[1]
    x = p_y + p_w
    floats = floats.copy()  # where moving targets and custom rows leave what they return
    work, w, residual, psi = (
        np.empty(linearize_size(ints, p_y, p_w, nu)), np.empty(p_w), np.zeros(m), np.zeros(m))
    G, M = np.empty((m, n)), np.empty((n, padded(n)))
    N, X = np.empty((n, padded(x))), np.empty((n, padded(x)))
    da, balance = np.empty((n, padded(x + nu))), np.empty((n, padded(x + nu)))
    lower, moved = np.empty((p_w, padded(x + nu))), np.empty((n, padded(x + nu)))
    of_outputs = np.empty(output_size(ints, C.shape[1], x, nu) if outputs.shape[0] > 0 else 0)
    for b in range(begin, end):
        status, rank[b], condition[b], status_y, _, condition_y[b] = linearize_in_place(
            ints, floats, q[b], v[b], tau[b], f_ext[b], R_y[min(b, R_y.shape[0] - 1)], virtual_y,
            R_w[min(b, R_w.shape[0] - 1)], virtual_w, actuators, rank_tolerance, work, A[b], B[b], f0[b], w, a[b],
            lam[b], residual, psi, G, M, N, X, da, balance)
        closure[b] = largest(residual)
        if status != OK or status_y != OK or not is_consistent(v[b], residual, psi, closure_tolerance):
            rank[b] = -1
            return
        for i in range(n):
            drift[b, i] = v[b, i]
            for s in range(p_y):
                K[b, i, s] = N[i, s]
            for s in range(p_w):
                S[b, i, s] = X[i, p_y + s]
                drift[b, i] -= X[i, p_y + s] * w[s]
        if outputs.shape[0] > 0:
            if read_accelerations(outputs):
                complete_derivatives(SCALAR, p_y, X, A[b], B[b], actuators, M, lower, moved, da, balance)
            put_outputs(ints, floats, q[b], v[b], a[b], lam[b], outputs, N, X, da, balance, work[WIDTH:], of_outputs,
                        C[b], D[b])
