"""Inverse dynamics of one state, compiled: the least-norm actuator forces for wanted accelerations.

For independent coordinates of the tree, whose elimination gives a = K w_dot + a_p
(`liedyn.mechanics.constraints.elimination`). With columns T that span the actuator forces, orthonormal in the
metric of the forces, tau = T z, and

    K^T T z = K^T (M a + h)        |z| as small as possible        G^T lambda = tau - M a - h

(Aghili 2005, eq. 43 and 60, in independent coordinates). Other cases are treated by
`liedyn.control.constrained.actuator_forces`.
"""
import numpy as np

from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import at, padded
from liedyn.machine.linalg.nearest import orthonormal_rows, shortest
from liedyn.machine.simd.lanes import SCALAR, WIDTH, take_integers, take_matrix, take_vector
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.elimination import dependence, dependent_dofs, elimination_size, independent_dofs
from liedyn.mechanics.constraints.reduced import minimum_norm_multipliers, multipliers_size, unbalanced
from liedyn.mechanics.constraints.sparse_elimination import eliminate_rows
from liedyn.mechanics.dynamics.nullspace import OK, SINGULAR_CHOICE, WRONG_COUNT
from liedyn.mechanics.dynamics.picked import picked_condition, picks
from liedyn.mechanics.dynamics.state import Terms
from liedyn.mechanics.dynamics.terms import put_terms, terms_size
from liedyn.model.packed import NV, N_ROWS

WEAK = 1e-6
"""Effect of the actuators on a motion, relative to the largest one, below which the case is left to the general way."""


@kernel_in_place
def driven_motion_size(model, r):
    """Size of the workspace of `driven_motion_kernel`, for r columns of T."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    return (WIDTH * 16 + terms_size(model) + elimination_size(SCALAR, model) + multipliers_size(SCALAR, model)
            + m * n + m + n * padded(n) + 4 * padded(n) + n * (r + 1) + r + n)


@inline
def put_accelerations(model, e, R, w_dot, a):
    """a = K w_dot + a_p, for rows R that pick coordinates of the tree."""
    p = w_dot.size
    (dependent, _), (independent, _), (slopes, forced) = (
        dependent_dofs(model, e), independent_dofs(model, e), dependence(SCALAR, model, e, p))
    for k in range(p):
        for j in range(a.size):
            if at(R, k, j) == 1.0:
                a[j] = w_dot[k]
    for k in range(a.size - p):
        x = forced[k]
        for s in range(p):
            x += at(slopes, k, s) * a[independent[s]]
        a[dependent[k]] = x


@inline
def put_equations(model, e, T, needed, Y):
    """[K^T T, K^T needed] in the rows of Y."""
    p, r = Y.shape[0], T.shape[1]
    (dependent, _), (independent, _), (slopes, _) = (
        dependent_dofs(model, e), independent_dofs(model, e), dependence(SCALAR, model, e, p))
    for s in range(p):
        for c in range(r):
            Y[s, c] = at(T, independent[s], c)
        Y[s, r] = needed[independent[s]]
        for k in range(T.shape[0] - p):
            x = at(slopes, k, s)
            if x != 0.0:
                for c in range(r):
                    Y[s, c] += x * at(T, dependent[k], c)
                Y[s, r] += x * needed[dependent[k]]


@kernel_in_place
def driven_motion_kernel(model, q, v, w_dot, f_ext, R, T, tolerance, work, tau, a, lam):
    """tau (nv), a (nv) and lam (m) for accelerations w_dot of the coordinates of the tree that the rows of R pick.

    Returns (status, condition): OK, WRONG_COUNT of coordinates, or SINGULAR_CHOICE if the actuators hardly drive the
    motion; and the condition number of the coordinates.
    """
    n, m, p, r = model.ints[NV], model.ints[N_ROWS], w_dot.size, T.shape[1]
    work[0] = first_place(work)
    world, e, scratch = (take_vector(work, terms_size(model)), take_vector(work, elimination_size(SCALAR, model)),
                         take_vector(work, multipliers_size(SCALAR, model)))
    G, gamma = take_matrix(work, m, n), take_vector(work, m)
    M, h = take_matrix(work, n, padded(n)), take_vector(work, n)
    choosable, left, none = take_vector(work, padded(n)), take_vector(work, padded(n)), take_vector(work, padded(n))
    Y, z, order = take_matrix(work, p, r + 1), take_vector(work, r), take_integers(work, p)
    for j in range(n):
        none[j] = a[j] = 0.0
    put_terms(model, q, v, f_ext, world, Terms(M, h, G, gamma))
    for k in range(p):
        order[k] = -1  # no row reads the velocity of a cut joint
    if not picks(model, R, order, choosable):
        return WRONG_COUNT, np.inf
    rank, _, complete = eliminate_rows(model, M, G, gamma, choosable, tolerance, e)
    if not complete or rank + p != n:
        return WRONG_COUNT, np.inf
    put_accelerations(model, e, R, w_dot, a)
    unbalanced(SCALAR, model, M, h, none, a, left)
    for j in range(n):
        none[j] = -left[j]
    put_equations(model, e, T, none, Y)
    found, last = orthonormal_rows(Y, WEAK, order)
    if found < p:
        return SINGULAR_CHOICE, np.inf
    shortest(Y, found, z)
    for j in range(n):
        x = 0.0
        for c in range(r):
            x += at(T, j, c) * z[c]
        tau[j] = x
        left[j] += x
    minimum_norm_multipliers(SCALAR, model, e, left, scratch, lam)
    return OK, picked_condition(SCALAR, model, e, G, p)
