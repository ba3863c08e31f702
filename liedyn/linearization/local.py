"""Exact local state space of any mechanism, by implicit differentiation in the null space (Spencer 2004, 4.2 and 4.3).

State x = (y, w): independent coordinates and velocities. A variation of y moves q along N = K and v along Delta:

    [G_1; R] N = (0, 1)          [G_1; R] Delta = -(d(G v)/dq, d(R v)/dq) N

Differentiating ID(q, v, a) + G^T lambda = tau and phi = G a + Gdot v = 0 (and likewise the reader rho of wdot) along
(N, Delta) and along (0, K) leaves, with D_1 and D_2 the accelerations that the constraints force on their own,

    [G_1; R] D_1 = -(dphi/dq N + dphi/dv Delta, drho/dq N + drho/dv Delta)        [G_1; R] D_2 = -(dphi/dv K, drho/dv K)

    K^T M K A21 = -K^T (M D_1 + (dID/dq + d(G^T lambda)/dq) N + dID/dv Delta)
    K^T M K A22 = -K^T (M D_2 + dID/dv K)                                         K^T M K B2 = K^T S_u

The multipliers' own derivative never appears: K^T G^T = 0. The upper rows are A11 = -R ad_v N, zero unless a ball
or free joint is among the coordinates (its tangent turns with it), A12 = 1, B1 = 0.
"""
import numpy as np

from liedyn.constraints.records import SPHERICAL, loop_count, loop_kind, loop_virtuals
from liedyn.constraints.rows import derivative_rows, force_derivative_rows, reader_derivatives
from liedyn.dense import product, solve_positive, transposed_product
from liedyn.dynamics.nullspace import OK, nullspace_kernel, right_hand_side
from liedyn.jit import kernel
from liedyn.lie.lanes import SCALAR
from liedyn.model.packed import FREE, N_ROWS, N_VIRTUAL, NV
from liedyn.model.packed import SPHERICAL as BALL
from liedyn.tree.kinematics import world_accelerations, world_positions, world_size, world_velocities
from liedyn.tree.records import first_dof, kind, link_count
from liedyn.tree.rnea_derivatives import COMPOSITE, composite_derivatives


@kernel
def cross_rows(w, X, at, out):
    """out[at:at+3] += w x X[at:at+3], column by column."""
    for c in range(X.shape[1]):
        x, y, z = X[at, c], X[at + 1, c], X[at + 2, c]
        out[at, c] += w[1] * z - w[2] * y
        out[at + 1, c] += w[2] * x - w[0] * z
        out[at + 2, c] += w[0] * y - w[1] * x


@kernel
def tangent_bracket(ints, v, N, out):
    """ad_v N joint by joint: zero but for ball and free joints."""
    out[:] = 0.0
    for i in range(link_count(ints)):
        j = first_dof(ints, i)
        if kind(ints, i) == BALL or kind(ints, i) == FREE:
            cross_rows(v[j:j + 3], N, j, out)
        if kind(ints, i) == FREE:
            # the linear part: w x linear + v x angular
            cross_rows(v[j:j + 3], N, j + 3, out)
            for c in range(N.shape[1]):
                x, y, z = N[j, c], N[j + 1, c], N[j + 2, c]
                out[j + 3, c] += v[j + 4] * z - v[j + 5] * y
                out[j + 4, c] += v[j + 5] * x - v[j + 3] * z
                out[j + 5, c] += v[j + 3] * y - v[j + 4] * x


@kernel
def virtual_bracket(ints, E, v, N, out):
    """ad of the virtual velocities on E N: zero but for ball cuts."""
    EN, z = np.empty((E.shape[0], N.shape[1])), np.zeros(E.shape[0])
    product(E, N, EN)
    for k in range(E.shape[0]):
        for j in range(E.shape[1]):
            z[k] += E[k, j] * v[j]
    out[:] = 0.0
    for l in range(loop_count(ints)):
        if loop_kind(ints, l) == SPHERICAL:
            k = loop_virtuals(ints, l)[0]
            cross_rows(z[k:k + 3], EN, k, out)


@kernel
def linearize_kernel(ints, floats, q, v, tau, f_ext, R_constant, virtual, actuators, tolerance):
    """The local state space at one state; arguments as for `nullspace_kernel`, `actuators` is tau = S_u u, (n, nu).

    Columns of the results belong to (y, w, u), 2 p + nu of them. Returns, after the tuple of `nullspace_kernel`:
    A11 (p, p); lower = [A21 A22 B2]; Delta (n, p); da, the acceleration's derivative; balance = G^T dlambda; and the
    derivatives of virtual velocities by q and of virtual accelerations by q and v, (3, nz, n).
    """
    solved = nullspace_kernel(ints, floats, q, v, tau, f_ext, R_constant, virtual, tolerance)
    status, rank, condition, a, lam, order, pivots, G, E, Z_inverse, M, w_dot = solved
    n, m, nz, p, nu = ints[NV], ints[N_ROWS], ints[N_VIRTUAL], virtual.size, actuators.shape[1]
    columns = 2 * p + nu
    A11, lower, Delta = np.zeros((p, p)), np.zeros((p, columns)), np.zeros((n, p))
    da, balance = np.zeros((n, columns)), np.zeros((n, columns))
    of_rows, of_virtual = np.zeros((3, m, n)), np.zeros((3, nz, n))
    if status != OK:
        return solved, A11, lower, Delta, da, balance, of_virtual

    # all derivatives at the constrained acceleration
    work = np.empty(world_size(ints) + COMPOSITE * link_count(ints))
    ID_q, ID_v, ignored = np.empty((n, n)), np.empty((n, n)), np.empty(n)
    world_positions(SCALAR, ints, floats, q, work)
    world_velocities(SCALAR, ints, v, work)
    world_accelerations(SCALAR, ints, floats, v, a, work)
    composite_derivatives(SCALAR, ints, floats, q, f_ext, work, ignored, ID_q, ID_v, M)
    force_derivative_rows(ints, floats, q, work, lam, ID_q)
    derivative_rows(ints, floats, q, v, a, work, of_rows[0], of_rows[1], of_rows[2])
    reader_derivatives(ints, floats, work, of_virtual[0], of_virtual[1], of_virtual[2])

    N = np.ascontiguousarray(Z_inverse[:, rank:])
    known, rates, more = np.empty((n, p)), np.empty((m, p)), np.empty((m, p))
    virtual_rates, virtual_more = np.empty((nz, p)), np.empty((nz, p))

    product(of_rows[0], N, rates)
    product(of_virtual[0], N, virtual_rates)
    right_hand_side(rates, virtual_rates, rank, order, virtual, -1.0, known)
    product(Z_inverse, known, Delta)

    D = np.zeros((n, columns))
    product(of_rows[1], N, rates)
    product(of_rows[2], Delta, more)
    product(of_virtual[1], N, virtual_rates)
    product(of_virtual[2], Delta, virtual_more)
    right_hand_side(rates + more, virtual_rates + virtual_more, rank, order, virtual, -1.0, known)
    product(Z_inverse, known, D[:, :p])
    product(of_rows[2], N, rates)
    product(of_virtual[2], N, virtual_rates)
    right_hand_side(rates, virtual_rates, rank, order, virtual, -1.0, known)
    product(Z_inverse, known, D[:, p:2 * p])

    product(M, D, balance)
    by_q, by_v = np.empty((n, p)), np.empty((n, p))
    product(ID_q, N, by_q)
    product(ID_v, Delta, by_v)
    balance[:, :p] += by_q + by_v
    product(ID_v, N, by_v)
    balance[:, p:2 * p] += by_v
    for i in range(n):
        for k in range(columns):
            balance[i, k] = -balance[i, k]
    balance[:, 2 * p:] += actuators

    MK, reduced, pulled = np.empty((n, p)), np.empty((p, p)), np.empty((n, columns))
    product(M, N, MK)
    transposed_product(N, MK, reduced)
    transposed_product(N, balance, lower)
    solve_positive(reduced, lower)
    product(N, lower, da)
    da += D
    product(MK, lower, pulled)
    balance -= pulled

    bracket, virtual_rows = np.empty((n, p)), np.empty((nz, p))
    tangent_bracket(ints, v, N, bracket)
    virtual_bracket(ints, E, v, N, virtual_rows)
    for k in range(p):
        if virtual[k] >= 0:
            A11[k, :] = -virtual_rows[virtual[k], :]
        else:
            for i in range(n):
                A11[k, :] -= R_constant[k, i] * bracket[i, :]
    return solved, A11, lower, Delta, da, balance, of_virtual
