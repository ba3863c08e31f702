"""Central differences of exactly reduced dynamics, compiled: the contender of exact linearization.

It is given every advantage that a careful user could give it: compiled code, the predictor K dy, Newton steps with the
inverse at the operating point instead of a new one, no assembly at all for perturbed velocities and forces.

    f(y, w, u):  q with R log(q0^-1 q) = y and closed loops;  v with G v = 0 and R v = w;  wdot from null-space dynamics
"""
import numpy as np

from benchmarks.compiled import cached_njit
from liedyn.kernels import SCALAR, difference, integrate
from liedyn.mechanics.constraints.constraint_rows import jacobian_rows, residual_rows
from liedyn.mechanics.dynamics.nullspace import nullspace_kernel
from liedyn.mechanics.tree.kinematics import world_positions, world_size
from liedyn.model.packed import N_ROWS

ENOUGH = 1e-12  # a simplified Newton step this small leaves an error smaller by the size of the perturbation
MOST_STEPS = 8


@cached_njit
def assembled(model, q0, y, R, order, rank, Z_inverse, work, q):
    """The closed configuration with coordinates y relative to q0; leaves its kinematics in `work`."""
    n, p, m = Z_inverse.shape[0], R.shape[0], model.ints[N_ROWS]
    closure, moved, error, step = np.empty(m), np.empty(n), np.empty(n), np.empty(n)
    error[:rank] = 0.0
    error[rank:] = y
    start, now = q0.copy(), q0.copy()
    for _ in range(MOST_STEPS):
        for i in range(n):
            step[i] = 0.0
            for k in range(n):
                step[i] += Z_inverse[i, k] * error[k]
        integrate(model, start, step, now)
        start[:] = now
        world_positions(SCALAR, model, now, work)
        if np.abs(step).max() < ENOUGH:
            break
        residual_rows(model, now, work, closure)
        difference(model, q0, now, moved)
        for k in range(rank):
            error[k] = -closure[order[k]]
        for k in range(p):
            error[rank + k] = y[k]
            for i in range(n):
                error[rank + k] -= R[k, i] * moved[i]
    q[:] = now


@cached_njit
def admissible(model, q, w, v0, R, order, rank, Z_inverse, work, v):
    """The velocity that keeps the loops closed at the configuration in `work` and has R v = w."""
    n, m = Z_inverse.shape[0], model.ints[N_ROWS]
    G, error = np.empty((m, n)), np.empty(n)
    jacobian_rows(model, q, work, G)
    v[:] = v0
    scale = max(1.0, np.abs(v0).max())
    for _ in range(MOST_STEPS):
        for k in range(n):
            error[k] = 0.0 if k < rank else w[k - rank]
            for i in range(n):
                error[k] -= (G[order[k], i] if k < rank else R[k - rank, i]) * v[i]
        largest = 0.0
        for i in range(n):
            step = 0.0
            for k in range(n):
                step += Z_inverse[i, k] * error[k]
            v[i] += step
            largest = max(largest, abs(step))
        if largest < ENOUGH * scale:
            break


@cached_njit
def differences(model, q0, v0, tau0, f_ext, R, virtual, actuators, tolerance, step, force, out):
    """[A21 A22 B2] by central differences, (p, 2 p + nu), of 2 (2 p + nu) evaluations; returns how many there were.

    `step` is that of coordinates and velocities, `force` that of the inputs, in which f is affine.
    """
    n, p, nu = v0.size, R.shape[0], actuators.shape[1]
    solved = nullspace_kernel(model, q0, v0, tau0, f_ext, R, virtual, tolerance)
    rank, order, Z_inverse = solved[1], solved[5], solved[9]
    w, y, q, v, tau = np.zeros(p), np.zeros(p), np.empty_like(q0), np.empty(n), np.empty(n)
    for k in range(p):
        for i in range(n):
            w[k] += R[k, i] * v0[i]
    work = np.empty(world_size(model))
    evaluations = 0
    for column in range(2 * p + nu):
        size = step if column < 2 * p else force
        for side in (1.0, -1.0):
            q[:], v[:], tau[:] = q0, v0, tau0
            if column < p:
                y[column] = side * size
                assembled(model, q0, y, R, order, rank, Z_inverse, work, q)
                admissible(model, q, w, v0, R, order, rank, Z_inverse, work, v)
                y[column] = 0.0
            elif column < 2 * p:
                for i in range(n):
                    v[i] += side * size * Z_inverse[i, rank + column - p]
            else:
                for i in range(n):
                    tau[i] += side * size * actuators[i, column - 2 * p]
            w_dot = nullspace_kernel(model, q, v, tau, f_ext, R, virtual, tolerance)[11]
            evaluations += 1
            for k in range(p):
                if side > 0.0:
                    out[k, column] = w_dot[k]
                else:
                    out[k, column] = (out[k, column] - w_dot[k]) / (2.0 * size)
    return evaluations
