"""Generalised forces of all force elements at a state, their derivatives, and their energy.

With f(x, w) the forces, x the displacements, w = G v their rates and G the rows that measure them,

    tau = -G^T f

    dtau/dq = -d(G^T f)/dq - G^T (f_x G + f_w dw/dq)            f held constant in the first term
    dtau/dv = -G^T f_w G

with f_x the slopes of f by x, or of six rows by the displacement whose rates are w
(`liedyn.mechanics.elements.element_wrenches`).

Coordinates of cut joints in the displacements of force elements: x += C z, with C of `liedyn.model.force_elements`.

The coordinates z are read off the closed loops, with rates E v (`liedyn.mechanics.constraints.cut_joints`). The rows G
of the elements get an additional C E, and the generalised forces of f along z vary with q as the wrenches of the cut
joints, which are constant in the cut frames:

    d(G^T f)/dq  gets the term  d(E^T lam)/dq  at lam = C^T f
"""
import math
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.lie.algebra import neg6
from liedyn.lie.exponential import exp
from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, inline_array, kernel, kernel_in_place, late
from liedyn.machine.linalg.vectors import add_multiple, copy_to, inner
from liedyn.machine.simd.lanes import SCALAR, WIDTH, take_matrix, take_vector
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.constraint_rows import (
    derivative_rows, force_derivative_rows, jacobian_rows, residual_rows, velocity_rows,
)
from liedyn.mechanics.constraints.cut_joints import virtual_kernel
from liedyn.mechanics.constraints.families.cut import (
    cut_derivatives_kernel, cut_force_derivative_kernel, cut_jacobian_kernel, cut_velocity_kernel,
)
from liedyn.mechanics.elements.element_wrenches import LAWS_TYPE, force
from liedyn.mechanics.elements.element_wrenches import change, given, of_unit_input, pull, rate, seen_at_b
from liedyn.mechanics.tree.kinematics import world_motion, world_positions, world_size, world_velocities
from liedyn.model.force_elements import BUSHING, HOLDS, LAW, ROW
from liedyn.model.packed import NV, N_ROWS, N_VIRTUAL
from liedyn.model.packed_records import MODEL, get6, put3, put6


@late(MODEL, LAWS_TYPE, VECTOR, VECTOR, MATRIX, VECTOR, VECTOR, MATRIX)
def add_cut_coordinates(model, laws, world, z, E, x, w, G):
    """x += C z, w += C E v, G += C E; needs `world_velocities`. Angles are measured from rest, between -pi and pi."""
    cut_velocity_kernel(SCALAR, model, world, True, z)
    for r in range(x.size):
        w[r] += inner(laws.cuts[r], z)
    virtual_kernel(model, world, z)
    E[:] = 0.0
    cut_jacobian_kernel(SCALAR, model, world, True, E)
    for r in range(x.size):
        x[r] += inner(laws.cuts[r], z)
        if laws.turns[r] > 0.0:
            x[r] -= laws.turns[r] * math.floor(x[r] / laws.turns[r] + 0.5)
        for k in range(z.size):
            add_multiple(laws.cuts[r, k], E[k], G[r])


@late(MODEL, LAWS_TYPE, VECTOR, VECTOR, VECTOR, MATRIX, MATRIX, MATRIX, MATRIX, MATRIX)
def add_cut_derivatives(model, laws, world, f, lam, z_q, ignored_q, ignored_v, w_q, D):
    """Add C d(E v)/dq to w_q and d(E^T C^T f)/dq to D; needs `world_motion`. `lam` is overwritten."""
    z_q[:] = 0.0
    lam[:] = 0.0
    cut_derivatives_kernel(model, world, True, z_q, ignored_q, ignored_v)
    for r in range(f.size):
        add_multiple(f[r], laws.cuts[r], lam)
        for k in range(lam.size):
            add_multiple(laws.cuts[r, k], z_q[k], w_q[r])
    cut_force_derivative_kernel(model, world, True, lam, D)


FLOAT = types.float64
Measured = namedtuple("Measured", "world x w f held f_x f_w G z E out")
"""Kinematics; displacements, rates, forces and their conservative parts (m); slopes by the rows of the same element (m,
6); the rows (m, n); coordinates of cut joints (nz) and the rows of their rates (nz, n); scratch (6)."""
ARRAYS = 22
"""Number of arrays in the workspace, each of which may begin with a new register."""


@kernel_in_place
def room_size(model):
    """Size of the workspace of all kernels here."""
    m, n, nz = model.ints[N_ROWS], model.ints[NV], model.ints[N_VIRTUAL]
    return world_size(model) + 6 + 16 * m + 4 * n + 4 * m * n + n * n + nz + 4 * nz * n + WIDTH * ARRAYS


def room_for(model):
    """A workspace; empty if the robot has no force elements."""
    return np.empty(room_size(model) if model.ints[N_ROWS] else 0)


@inline_array
def taken(model, work):
    """The arrays of `Measured` in the workspace, from its beginning."""
    m, n, nz = model.ints[N_ROWS], model.ints[NV], model.ints[N_VIRTUAL]
    work[0] = first_place(work)
    return Measured(
        take_vector(work, world_size(model)), take_vector(work, m), take_vector(work, m), take_vector(work, m),
        take_vector(work, m), take_matrix(work, m, 6), take_matrix(work, m, 6), take_matrix(work, m, n),
        take_vector(work, nz), take_matrix(work, nz, n), take_vector(work, 6))


@inline
def row_count(laws, e):
    return 6 if laws.records[e, LAW] >= BUSHING else 1


@inline
def measure(model, laws, at, t, q, v):
    """Fill `Measured`, except for the slopes of six rows, and return the energy; needs `world_velocities`."""
    energy = 0.0
    at.f[:] = 0.0  # cut joints that are only read have rows, too
    at.held[:] = 0.0
    residual_rows(model, q, at.world, at.x)
    velocity_rows(model, q, v, at.world, at.w)
    jacobian_rows(model, q, at.world, at.G)
    if at.z.size > 0:
        add_cut_coordinates(model, laws, at.world, at.z, at.E, at.x, at.w, at.G)
    for e in range(laws.records.shape[0]):
        r = laws.records[e, ROW]
        if row_count(laws, e) == 1:
            at.f[r], at.f_x[r, 0], at.f_w[r, 0], at.held[r], stored = force(laws, e, t, at.x, at.w, at.out)
        else:
            X, V = get6(SCALAR, at.x, r), get6(SCALAR, at.w, r)
            f, held, stored = pull(laws, e, t, X, V, at.x, at.out)
            put6(SCALAR, at.f, r, f)
            put6(SCALAR, at.held, r, held)
        energy += stored
    return energy


@late(MODEL, LAWS_TYPE, VECTOR, FLOAT, VECTOR, VECTOR, VECTOR)
def add_forces(model, laws, work, t, q, v, tau):
    """tau -= G^T f."""
    at = taken(model, work)
    world_positions(SCALAR, model, q, at.world)
    world_velocities(SCALAR, model, v, at.world)
    measure(model, laws, at, t, q, v)
    for r in range(at.f.size):
        add_multiple(-at.f[r], at.G[r], tau)


@late(MODEL, LAWS_TYPE, VECTOR, FLOAT, VECTOR, VECTOR, returns=FLOAT)
def add_energy_slope(model, laws, work, t, q, slope):
    """Return the energy, and add its derivative, tangent at q, to `slope`."""
    at, rest = taken(model, work), take_vector(work, model.ints[NV])
    rest[:] = 0.0
    world_positions(SCALAR, model, q, at.world)
    world_velocities(SCALAR, model, rest, at.world)
    energy = measure(model, laws, at, t, q, rest)
    for r in range(at.held.size):
        add_multiple(at.held[r], at.G[r], slope)
    return energy


@inline
def put_column(A, r, k, F):
    """Column k of six rows of A from row r on."""
    for i in range(3):
        A[r + i, k], A[r + 3 + i, k] = F[0][i], F[1][i]


@inline
def put_slopes(laws, at, t):
    """Compute the slopes of six-row elements."""
    for e in range(laws.records.shape[0]):
        if row_count(laws, e) == 1:
            continue
        r = laws.records[e, ROW]
        X, V, zero = get6(SCALAR, at.x, r), get6(SCALAR, at.w, r), ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        W = given(laws, e, t, X, at.x, at.out)
        for k in range(6):
            at.out[:] = 0.0
            at.out[k] = 1.0
            unit = get6(SCALAR, at.out, 0)
            put_column(at.f_x, r, k, change(laws, e, W, X, V, unit, zero))
            put_column(at.f_w, r, k, change(laws, e, W, X, V, zero, unit))


@inline
def leave_held(laws, at):
    """Replace forces and slopes by their conservative parts."""
    copy_to(at.held, at.f)
    for e in range(laws.records.shape[0]):
        if laws.records[e, HOLDS] == 0:
            first = laws.records[e, ROW]
            at.f_x[first:first + row_count(laws, e)] = 0.0


@late(MODEL, LAWS_TYPE, VECTOR, FLOAT, VECTOR, VECTOR, types.boolean, MATRIX, MATRIX)
def add_derivatives(model, laws, work, t, q, v, held, by_q, by_v):
    """Add dtau/dq and dtau/dv (n, n); with `held`, for v = 0 and the conservative forces only."""
    at, m, n = taken(model, work), model.ints[N_ROWS], model.ints[NV]
    zero, f_q, f_v = take_vector(work, n), take_vector(work, n), take_vector(work, n)
    w_q, ignored_q, ignored_v = take_matrix(work, m, n), take_matrix(work, m, n), take_matrix(work, m, n)
    D = take_matrix(work, n, n)
    zero[:] = 0.0
    D[:] = 0.0
    world_motion(SCALAR, model, q, v, zero, at.world)
    measure(model, laws, at, t, q, v)
    put_slopes(laws, at, t)
    if held:
        leave_held(laws, at)
    derivative_rows(model, q, v, zero, at.world, (w_q, ignored_q, ignored_v))
    force_derivative_rows(model, q, at.world, at.f, D)
    if at.z.size > 0:
        of_cuts = (take_matrix(work, at.z.size, n), take_matrix(work, at.z.size, n), take_matrix(work, at.z.size, n))
        add_cut_derivatives(model, laws, at.world, at.f, at.z, *of_cuts, w_q, D)
    for i in range(n):
        add_multiple(-1.0, D[i], by_q[i])
    for e in range(laws.records.shape[0]):
        first, count = laws.records[e, ROW], row_count(laws, e)
        for r in range(first, first + count):
            f_q[:] = 0.0
            f_v[:] = 0.0
            for k in range(count):
                add_multiple(at.f_x[r, k], at.G[first + k], f_q)
                add_multiple(at.f_w[r, k], w_q[first + k], f_q)
                add_multiple(at.f_w[r, k], at.G[first + k], f_v)
            for i in range(n):
                add_multiple(-at.G[r, i], f_q, by_q[i])
                add_multiple(-at.G[r, i], f_v, by_v[i])


@kernel_in_place
def give_inputs(laws, u):
    """Store the inputs of the actuators that are force elements."""
    for k in range(laws.inputs.shape[0]):
        laws.numbers[laws.inputs[k, 2]] = u[laws.inputs[k, 0]]


@late(MODEL, LAWS_TYPE, VECTOR, MATRIX, MATRIX)
def add_driven(model, laws, work, by_u, out):
    """out (n, columns) += S by_u, with S the generalised forces of unit inputs of such actuators; after
    `add_derivatives` or the like."""
    at = taken(model, work)
    for k in range(laws.inputs.shape[0]):
        e, gears = laws.inputs[k, 1], at.out
        first = laws.records[e, ROW]
        gears[0] = laws.numbers[laws.inputs[k, 2] - 1]
        if row_count(laws, e) == 6:
            put6(SCALAR, gears, 0, of_unit_input(laws, e, get6(SCALAR, at.x, first)))
        for r in range(row_count(laws, e)):
            for i in range(out.shape[0]):
                if at.G[first + r, i] != 0.0:
                    add_multiple(gears[r] * at.G[first + r, i], by_u[laws.inputs[k, 0]], out[i])


@inline
def show(laws, at, x, w, f):
    """Displacements, rates and forces as users see them: for six rows (phi, p), (omega, u), and the wrench at B."""
    copy_to(at.x, x)
    copy_to(at.w, w)
    copy_to(at.f, f)
    for e in range(laws.records.shape[0]):
        if row_count(laws, e) == 6:
            r = laws.records[e, ROW]
            X, F = get6(SCALAR, at.x, r), get6(SCALAR, at.f, r)
            p = exp(X)[1]
            put3(SCALAR, x, r + 3, p)
            put6(SCALAR, w, r, rate(p, get6(SCALAR, at.w, r)))
            put6(SCALAR, f, r, seen_at_b(p, F if laws.records[e, LAW] == BUSHING else neg6(F)))


@kernel
def force_states(model, laws, work, t, q, v, found):
    """found = (tau, x, w, f) for each row of q and v: tau, and displacements, rates and forces of all elements."""
    tau, x, w, f = found
    tau[:] = 0.0
    for b in range(q.shape[0]):
        add_forces(model, laws, work, t, q[b], v[b], tau[b])
        show(laws, taken(model, work), x[b], w[b], f[b])


@kernel
def driven_states(model, laws, work, q, tree, S):
    """For each row of q the generalised forces of unit inputs, S (count, n, nu), including actuators on the tree."""
    zero, every = np.zeros(model.ints[NV]), np.eye(tree.shape[1])
    for b in range(q.shape[0]):
        at = taken(model, work)
        world_positions(SCALAR, model, q[b], at.world)
        world_velocities(SCALAR, model, zero, at.world)
        measure(model, laws, at, 0.0, q[b], zero)
        S[b] = tree
        add_driven(model, laws, work, every, S[b])


@kernel
def energy_states(model, laws, work, t, q, energy, slope):
    """For each row of q the energy and its derivative."""
    slope[:] = 0.0
    for b in range(q.shape[0]):
        energy[b] = add_energy_slope(model, laws, work, t, q[b], slope[b])


@kernel
def derivative_states(model, laws, work, t, states, held, slopes):
    """slopes = (dtau/dq, dtau/dv) for each row of states = (q, v)."""
    (q, v), (by_q, by_v) = states, slopes
    by_q[:] = 0.0
    by_v[:] = 0.0
    for b in range(q.shape[0]):
        add_derivatives(model, laws, work, t, q[b], v[b], held, by_q[b], by_v[b])


@kernel
def driven_state_derivatives(model, laws, work, t, driven, found, slopes):
    """`force_states` and `derivative_states` for each row of driven = (q, v, u); the last inputs remain in `laws`."""
    (q, v, u), (tau, x, w, f), (by_q, by_v) = driven, found, slopes
    for b in range(q.shape[0]):
        row = slice(b, b + 1)
        give_inputs(laws, u[b])
        force_states(model, laws, work, t, q[row], v[row], (tau[row], x[row], w[row], f[row]))
        derivative_states(model, laws, work, t, (q[row], v[row]), False, (by_q[row], by_v[row]))
