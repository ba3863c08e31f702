"""Derivatives of the steps of a simulation: of the Runge-Kutta step on the numbers of q, and of the projection after it.

A step of `liedyn.simulation.integrators.explicit` is a function of the state, the inputs held, parameters of the robot
and its own length. Differentiated stage by stage, for all columns D = [dtheta_0, dv_0, du, dp, dh] at once,

    Dq_i = Dq_0 + h sum a_ij Dqdot_j        Dv_i = Dv_0 + h sum a_ij Da_j        (and sum a_ij qdot_j, a_j in column dh)

where stages leave the constraints a little, and so do their variations. The accelerations at any (q, v) are those of
M a + h + G^T lambda = tau, G a = gamma; hence, with ID and phi = G a - gamma at constant a,

    M Da + G^T Dlambda = Dtau - dID - dG^T lambda        G Da = -dphi        (`liedyn.linalg.saddle`)

Theta is the displacement in the tangent space, perturbed on the right; of a quaternion, whose numbers the stages add
up, it is 2 Im(Q^-1 dQ).

The projection moves q* by c to q, and v* by e to v: M c = -G^T mu, M e = -G^T nu with g(q) = 0 and psi(q, v) = 0. Both
corrections obey equations like those of accelerations of a robot at rest without gravity and springs,

    M Dc + G^T Dmu = -(dM c + dG^T mu)        G Dc = -(dg + dG c)

and likewise e with D(psi). Newton's second correction is of the order of c^2; its derivative is that of the tangent space
where the projection ends, from which Dtheta is taken the part that leaves it. With steps that leave the loops open by
1e-7 before the projection, what this neglects is 1e-14.
"""
from collections import namedtuple

import numpy as np

from liedyn.compiled.jit import inline, kernel, kernel_in_place
from liedyn.constraints.records import has_target, loop_at, loop_count, refresh
from liedyn.constraints.rows import derivative_rows, force_derivative_rows
from liedyn.elements.forces import add_driven
from liedyn.lie.algebra import ad, add, cross, quaternion_rotation, rotate, scale6, unrotate
from liedyn.linalg.dense import largest_size
from liedyn.linalg.nearest import forward, orthonormal_rows
from liedyn.linalg.saddle import factor_saddle, solve_saddle
from liedyn.linalg.vectors import add_multiple, copy_to, inner
from liedyn.model.packed import (
    DOF_F, DOF_FLOATS_AT, DOF_STIFFNESS, FREE, GRAVITY, LOOP_RATE, LOOP_TWIST, NV, PackedModel,
)
from liedyn.sensitivity.variations import Motion, partials_size, put_partials
from liedyn.simd.lanes import SCALAR
from liedyn.simulation.coordinates import coordinate_rates, unit_quaternions
from liedyn.simulation.formulations import accelerations
from liedyn.simulation.integrators.derivatives import eliminate, put_derivatives, put_mechanism_derivatives, twist_of
from liedyn.simulation.integrators.explicit import explicit_step
from liedyn.simulation.passages import part_end
from liedyn.simulation.workspace import NOT_CLOSED, OK, PROJECTION, SINGULAR
from liedyn.tree.configuration import difference_kernel
from liedyn.tree.joints import put_coordinate_rates
from liedyn.tree.kinematics import world_motion
from liedyn.tree.records import dof_count, first_dof, first_q, kind, link_count, q_count

MISSED = 1e-3
"""Part of its last correction by which a projection may end elsewhere, before it is not the projection of this step."""
ROUNDING = 1e-11
"""Corrections of coordinates and speeds that are rounding."""

Room = namedtuple("Room", "at_rest unit inputs changes partials q_start v_start q_rate a q theta v forces rates Y out L gram order shift mu number")
"""Scratch arrays of a step with C columns: numbers of a model at rest; the identity (nu, nu), and what inputs do;
parameters, and their partial derivatives; variations of the start (nq, C), (n, C), of the rates of the stages (stages, nq, C), (stages, n, C), of one stage; right sides; and
vectors."""

Partials = namedtuple("Partials", "force phi psi g force_0 phi_0 psi_0 g_0 work")
"""By parameters: of ID + G^T lambda (n, np), of phi, psi and g (m, np); the same at a = 0 and lambda = 0; and scratch."""

StepDerivatives = namedtuple("StepDerivatives", "by_state by_inputs by_parameters by_length")
"""Of (theta, v) at the end of each step: (steps, 2 n, 2 n), (steps, 2 n, nu), (steps, 2 n, np), (steps, 2 n)."""


@kernel
def make_room(model, x, changes):
    """Room for steps with the workspace x of a run, and parameters (`liedyn.sensitivity.changes`)."""
    m, n = x.G.shape
    parameters = changes.first.size - 1
    partials = Partials(
        np.zeros((n, parameters)), np.zeros((m, parameters)), np.zeros((m, parameters)), np.zeros((m, parameters)),
        np.zeros((n, parameters)), np.zeros((m, parameters)), np.zeros((m, parameters)), np.zeros((m, parameters)),
        np.empty(partials_size(model, parameters)))
    nq, stages, nu = x.q_stage.size, x.a_stage.shape[0], x.actuators.shape[1]
    C = 2 * n + nu + parameters + 1
    return Room(
        model.floats.copy(), np.eye(nu), np.zeros((n, nu)), changes, partials, np.zeros((nq, C)), np.zeros((n, C)), np.zeros((stages, nq, C)), np.zeros((stages, n, C)),
        np.zeros((nq, C)), np.zeros((n, C)), np.zeros((n, C)), np.zeros((n, C)), np.zeros((m, C)),
        np.zeros((m, n + C)), np.zeros((n, C)), np.zeros((n, n)), np.zeros((m, m)), np.zeros(max(m, 1), np.int64),
        np.zeros(n), np.zeros(m), np.zeros((4, max(nq, n, m))))


@inline
def copy_rows(A, out):
    """out = A."""
    for i in range(A.shape[0]):
        copy_to(A[i], out[i])


# ---- variations of configurations: of their numbers, and in the tangent space


@inline
def is_plain(model, q):
    """Are all joints of one degree of freedom, so that both are the same?"""
    return q.size == model.ints[NV]


@kernel_in_place
def put_start(model, q, room):
    """Variations of the start: columns dtheta_0 and dv_0 are unit vectors, all others zero."""
    n = room.v.shape[0]
    room.q_start[:, :], room.v_start[:, :] = 0.0, 0.0
    for j in range(n):
        room.v_start[j, n + j] = 1.0
    if is_plain(model, q):
        for j in range(n):
            room.q_start[j, j] = 1.0
        return
    unit, rate = room.number[0, :n], room.number[1, :q.size]
    for j in range(n):
        unit[:] = 0.0
        unit[j] = 1.0
        coordinate_rates(model, q, unit, rate)
        for r in range(q.size):
            room.q_start[r, j] = rate[r]


@kernel_in_place
def put_tangent(model, q, dq, theta):
    """theta (n, C) of the variations dq (nq, C) of numbers at q, whose quaternions may have any length."""
    if is_plain(model, q):
        copy_rows(dq, theta)
        return
    for i in range(link_count(model)):
        k, j = first_q(model, i), first_dof(model, i)
        if dof_count(model, i) == 1:
            copy_to(dq[k], theta[j])
            continue
        x, y, z, s = q[k], q[k + 1], q[k + 2], q[k + 3]
        square = x * x + y * y + z * z + s * s
        for c in range(dq.shape[1]):
            a, b, e, f = dq[k, c], dq[k + 1, c], dq[k + 2, c], dq[k + 3, c]
            theta[j, c] = 2.0 * (s * a - f * x - y * e + z * b) / square
            theta[j + 1, c] = 2.0 * (s * b - f * y - z * a + x * e) / square
            theta[j + 2, c] = 2.0 * (s * e - f * z - x * b + y * a) / square
        if kind(model, i) == FREE:
            R = quaternion_rotation(x, y, z, s)
            for c in range(dq.shape[1]):
                p = unrotate(R, (dq[k + 4, c], dq[k + 5, c], dq[k + 6, c]))
                theta[j + 3, c], theta[j + 4, c], theta[j + 5, c] = p


@kernel_in_place
def vary_rates(model, q, v, dq, theta, dv, number, out):
    """Variations (nq, C) of the rates of the numbers of q: of a quaternion Q (w, 0) / 2, of a position R(Q) u."""
    if is_plain(model, q):
        copy_rows(dv, out)
        return
    turned, rate, along = number[0, :q.size], number[1, :q.size], number[2, :v.size]
    for i in range(link_count(model)):
        k, j = first_q(model, i), first_dof(model, i)
        if dof_count(model, i) == 1:
            copy_to(dv[j], out[k])
            continue
        R = quaternion_rotation(q[k], q[k + 1], q[k + 2], q[k + 3])
        for c in range(dq.shape[1]):
            for r in range(k, k + q_count(model, i)):
                turned[r] = dq[r, c]
            for r in range(j, j + dof_count(model, i)):
                along[r] = dv[r, c]
            put_coordinate_rates(model, i, turned, v, rate)
            for r in range(k, k + 4):
                out[r, c] = rate[r]
            put_coordinate_rates(model, i, q, along, rate)
            for r in range(k, k + 4):
                out[r, c] += rate[r]
            if kind(model, i) == FREE:
                w, u = (theta[j, c], theta[j + 1, c], theta[j + 2, c]), (v[j + 3], v[j + 4], v[j + 5])
                x = rotate(R, add(cross(w, u), (dv[j + 3, c], dv[j + 4, c], dv[j + 5, c])))
                out[k + 4, c], out[k + 5, c], out[k + 6, c] = x


@kernel_in_place
def turn_along(model, shift, factor, moved, theta):
    """theta += factor ad(shift, moved) joint by joint, column by column; `moved` may be theta."""
    for i in range(link_count(model)):
        if dof_count(model, i) == 1:
            continue
        j, free = first_dof(model, i), kind(model, i) == FREE
        along = twist_of(free, shift, j)
        for c in range(theta.shape[1]):
            x = (moved[j, c], moved[j + 1, c], moved[j + 2, c]), (0.0, 0.0, 0.0)
            if free:
                x = x[0], (moved[j + 3, c], moved[j + 4, c], moved[j + 5, c])
            w, p = scale6(factor, ad(along, x))
            for r in range(3):
                theta[j + r, c] += w[r]
                if free:
                    theta[j + 3 + r, c] += p[r]


# ---- right sides


@inline
def add_rows(factor, A, out):
    """out += factor A."""
    for i in range(A.shape[0]):
        for c in range(A.shape[1]):
            out[i, c] += factor * A[i, c]


@inline
def add_times(factor, A, X, out):
    """out += factor A X."""
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            s = factor * A[i, k]
            if s != 0.0:
                for c in range(X.shape[1]):
                    out[i, c] += s * X[k, c]


@kernel_in_place
def vary_accelerations(model, o, x, t, q, v, a, lam, d, room, out):
    """Variations of the accelerations a at (q, v) along room.theta and room.v; False if they are not determined."""
    put_derivatives(model, o, x, t, q, v, a, lam, d)
    room.forces[:, :], room.rates[:, :] = 0.0, 0.0
    for i in range(v.size):
        for j in range(v.size):
            d.tau_q[i, j] -= d.ID_q[i, j] + d.force_q[i, j]
            d.tau_v[i, j] -= d.ID_v[i, j]
        copy_to(x.actuators[i], room.inputs[i])
    if x.laws.inputs.shape[0] > 0:  # actuators that are force elements
        add_driven(x.elements, x.laws, x.element_work, room.unit, room.inputs)
    for i in range(v.size):
        for c in range(x.actuators.shape[1]):
            room.forces[i, 2 * v.size + c] = room.inputs[i, c]
    add_times(1.0, d.tau_q, room.theta, room.forces)
    add_times(1.0, d.tau_v, room.v, room.forces)
    add_times(-1.0, d.phi_q, room.theta, room.rates)
    add_times(-1.0, d.phi_v, room.v, room.rates)
    if room.partials.g.shape[1] > 0:
        p = room.partials
        put_partials(model, room.changes, Motion(q, v, a, lam), p.work, p.force, p.phi, p.psi, p.g)
        add_partials(p.force, room, room.forces)
        add_partials(p.phi, room, room.rates)
    added = factor_saddle(x.M, x.G, room.L)
    if added < 0:
        return False
    solve_saddle(room.L, added, x.G, o.rank_tolerance, room.forces, room.rates, room.Y, room.order, out)
    return True


@kernel_in_place
def put_at_rest(model, at_rest):
    """The model without what moves it: gravity, springs, the velocities of targets."""
    copy_to(model.floats, at_rest)
    at_rest[GRAVITY:GRAVITY + 3] = 0.0
    for j in range(model.ints[NV]):
        at_rest[model.ints[DOF_FLOATS_AT] + DOF_F * j + DOF_STIFFNESS] = 0.0
    for l in range(loop_count(model)):
        if has_target(model, l):
            k = loop_at(model, l, LOOP_TWIST)
            at_rest[k:k + LOOP_RATE - LOOP_TWIST + 6] = 0.0


@inline
def add_partials(partial, room, out):
    """out -= partial derivatives, in the columns of the parameters, which are the last ones but that of the length."""
    first = out.shape[1] - 1 - partial.shape[1]
    for i in range(out.shape[0]):
        for c in range(partial.shape[1]):
            out[i, first + c] -= partial[i, c]


@inline
def put_correction_partials(rest, x, room, q, moved):
    """Those of M c + G^T mu, of G c and of g at a correction c: what is linear in it, not gravity and springs."""
    p = room.partials
    put_partials(rest, room.changes, Motion(q, x.zero, moved, room.mu), p.work, p.force, p.phi, p.psi, p.g)
    copy_to(room.mu, x.lam_stage)
    room.mu[:] = 0.0
    put_partials(rest, room.changes, Motion(q, x.zero, x.zero, room.mu), p.work, p.force_0, p.phi_0, p.psi_0, p.g_0)
    copy_to(x.lam_stage, room.mu)
    for c in range(p.g.shape[1]):
        for i in range(p.force.shape[0]):
            p.force[i, c] -= p.force_0[i, c]
        for r in range(p.g.shape[0]):
            p.phi[r, c] -= p.phi_0[r, c]
            if x.holonomic[r] == 0:
                p.g[r, c] = 0.0


@kernel_in_place
def put_metric(x, d, room):
    """room.L of x.M, or as the projection has it where M is singular, of the identity, which does not vary."""
    if factor_saddle(x.M, x.G[:0], room.L) < 0:
        room.L[:, :], d.ID_q[:, :] = 0.0, 0.0
        for j in range(room.L.shape[0]):
            room.L[j, j] = 1.0


@kernel_in_place
def put_impulses(x, room, moved, tolerance):
    """room.mu of M moved = -G^T mu on independent rows of x.G; returns what of `moved` they leave, in the metric of M,
    and all of it."""
    n, m = room.L.shape[0], x.G.shape[0]
    c, b = room.number[0, :n], room.number[1, :m]
    for j in range(n):  # c = L^T moved
        c[j] = moved[j] / room.L[j, j]
        for k in range(j + 1, n):
            c[j] += room.L[k, j] * moved[k]
    for r in range(m):
        room.mu[r] = 0.0
        for j in range(n):
            room.Y[r, j] = x.G[r, j]
        forward(room.L, room.Y[r, :n])
        for j in range(n):
            x.Y[r, j] = room.Y[r, j]
        x.Y[r, n] = 0.0
    rank, _ = orthonormal_rows(x.Y, tolerance, room.order)
    for i in range(rank):
        row = room.Y[room.order[i], :n]
        b[i] = -inner(row, c)
        for k in range(rank):
            room.gram[i, k] = inner(row, room.Y[room.order[k], :n])
    if not eliminate(room.gram, b, rank):
        return np.inf, 1.0
    whole = inner(c, c)
    for i in range(rank):
        room.mu[room.order[i]] = b[i]
        add_multiple(b[i], room.Y[room.order[i], :n], c)
    return inner(c, c) ** 0.5, whole ** 0.5


# ---- a step


@kernel_in_place
def vary_projection(model, o, x, q_star, v_star, q, v, d, room):
    """Room.theta and room.v, the variations of (q*, v*), become those of its projection (q, v); returns a status."""
    n, m = v.size, x.G.shape[0]
    rest = PackedModel(model.ints, room.at_rest)
    put_at_rest(model, room.at_rest)
    difference_kernel(model, q_star, q, room.shift)
    room.mu[:] = 0.0
    put_mechanism_derivatives(rest, x.none, q_star, x.zero, room.shift, room.mu, x.G, x.M, d)
    put_metric(x, d, room)
    for r in range(m):
        if x.holonomic[r] == 0:
            x.G[r, :], d.phi_q[r, :] = 0.0, 0.0
    left, whole = put_impulses(x, room, room.shift, o.rank_tolerance)
    if not left <= MISSED * whole + ROUNDING * (1.0 + largest_size(q)):
        return NOT_CLOSED
    force_derivative_rows(model, q_star, d.work, room.mu, d.force_q)
    room.forces[:, :], room.rates[:, :] = 0.0, 0.0
    add_times(-1.0, d.ID_q, room.theta, room.forces)
    add_times(-1.0, d.force_q, room.theta, room.forces)
    add_times(-1.0, d.phi_q, room.theta, room.rates)
    add_times(-1.0, x.G, room.theta, room.rates)
    varies = room.partials.g.shape[1] > 0
    if varies:
        put_correction_partials(rest, x, room, q_star, room.shift)
        for r in range(m):
            if x.holonomic[r] == 0:
                room.partials.phi[r, :] = 0.0
        add_partials(room.partials.force, room, room.forces)
        add_partials(room.partials.phi, room, room.rates)
        add_partials(room.partials.g, room, room.rates)
    solve_saddle(room.L, 0, x.G, o.rank_tolerance, room.forces, room.rates, room.Y, room.order, room.out)
    if not is_plain(model, q):  # theta at q* is exp(-ad c) theta at q, and the tangent of exp is taken to first order
        turn_along(model, room.shift, -1.0, room.theta, room.theta)
        turn_along(model, room.shift, -0.5, room.out, room.out)
    add_rows(1.0, room.out, room.theta)

    for j in range(n):
        room.shift[j] = v[j] - v_star[j]
    room.mu[:] = 0.0
    put_mechanism_derivatives(rest, x.none, q, x.zero, room.shift, room.mu, x.G, x.M, d)
    put_metric(x, d, room)
    put_impulses(x, room, room.shift, o.rank_tolerance)
    if varies:
        put_correction_partials(rest, x, room, q, room.shift)
    for r in range(m):
        if x.holonomic[r] == 0:
            d.phi_q[r, :] = 0.0
        else:
            copy_to(x.G[r], d.phi_q[r])
    room.forces[:, :], room.rates[:, :] = 0.0, 0.0
    add_times(-1.0, d.phi_q, room.theta, room.rates)
    if varies:
        add_partials(room.partials.g, room, room.rates)
    solve_saddle(room.L, 0, d.phi_q, o.rank_tolerance, room.forces, room.rates, room.Y, room.order, room.out)
    add_rows(1.0, room.out, room.theta)

    force_derivative_rows(model, q, d.work, room.mu, d.force_q)
    world_motion(SCALAR, model, q, v, x.zero, d.work)
    derivative_rows(model, q, v, x.zero, d.work, d.psi_q, d.phi_q, d.phi_v)
    room.forces[:, :], room.rates[:, :] = 0.0, 0.0
    add_times(-1.0, d.ID_q, room.theta, room.forces)
    add_times(-1.0, d.force_q, room.theta, room.forces)
    add_times(-1.0, d.psi_q, room.theta, room.rates)
    add_times(-1.0, x.G, room.v, room.rates)
    if varies:
        p = room.partials
        add_partials(p.force, room, room.forces)
        room.mu[:] = 0.0
        put_partials(model, room.changes, Motion(q, v, x.zero, room.mu), p.work, p.force_0, p.phi_0, p.psi, p.g_0)
        add_partials(p.psi, room, room.rates)
    solve_saddle(room.L, 0, x.G, o.rank_tolerance, room.forces, room.rates, room.Y, room.order, room.out)
    add_rows(1.0, room.out, room.v)
    return OK


@kernel_in_place
def vary_step(model, o, x, rows, k, d, room):
    """room.theta and room.v at the end of the step from row k to row k + 1; returns a status."""
    t, row, q, v = rows.t[k], rows.held[k], rows.q[k], rows.v[k]
    h, stages, last = rows.t[k + 1] - t, o.tableau.shape[1], room.v.shape[1] - 1
    put_start(model, q, room)
    part = 0.0
    for i in range(stages + 1):
        copy_to(q, x.q_stage)
        copy_to(v, x.v_stage)
        copy_rows(room.q_start, room.q)
        copy_rows(room.v_start, room.v)
        part = 0.0
        for j in range(min(i, stages)):
            weight = o.tableau[i, j]
            part += weight
            if weight == 0.0:
                continue
            add_multiple(h * weight, x.q_rate[j], x.q_stage)
            add_multiple(h * weight, x.a_stage[j], x.v_stage)
            add_rows(h * weight, room.q_rate[j], room.q)
            add_rows(h * weight, room.a[j], room.v)
            for r in range(q.size):
                room.q[r, last] += weight * x.q_rate[j, r]
            for r in range(v.size):
                room.v[r, last] += weight * x.a_stage[j, r]
        put_tangent(model, x.q_stage, room.q, room.theta)
        if i == stages:
            break
        coordinate_rates(model, x.q_stage, x.v_stage, x.q_rate[i])
        vary_rates(model, x.q_stage, x.v_stage, room.q, room.theta, room.v, room.number, room.q_rate[i])
        unit_quaternions(model, x.q_stage)
        refresh(model, t + part * h)
        if i == 0:
            copy_to(rows.a[k], x.a_stage[0])
            copy_to(rows.lam[k], x.lam_stage)
        else:
            status = accelerations(
                model, o, x, t + part * h, row, x.q_stage, x.v_stage, x.a_stage[i], x.lam_stage)
            if status != OK:
                return status
        if not vary_accelerations(
                model, o, x, t + part * h, x.q_stage, x.v_stage, x.a_stage[i], x.lam_stage, d, room, room.a[i]):
            return SINGULAR
    unit_quaternions(model, x.q_stage)
    refresh(model, rows.t[k + 1])
    if o.stabilisation == PROJECTION and x.G.shape[0] > 0:
        return vary_projection(model, o, x, x.q_stage, x.v_stage, rows.q[k + 1], rows.v[k + 1], d, room)
    return OK


@kernel_in_place
def vary_start(model, o, x, rows, d, room):
    """room.theta and room.v: how the projection of the start moves with the parameters; returns a status."""
    room.theta[:, :], room.v[:, :] = 0.0, 0.0
    refresh(model, rows.t[0])
    if x.G.shape[0] == 0:
        return OK
    return vary_projection(model, o, x, rows.q[0], rows.v[0], rows.q[0], rows.v[0], d, room)


@kernel_in_place(nogil=True)
def differentiate_steps(model, o, x, rows, first, last, d, room, found):
    """Derivatives of the steps between rows `first` and `last` into `found`; (OK, last), or what went wrong and where.
    """
    n, nu = x.zero.size, x.actuators.shape[1]
    for k in range(first, last):
        status = vary_step(model, o, x, rows, k, d, room)
        if status != OK:
            return status, k
        for i in range(2 * n):
            varied = room.theta[i] if i < n else room.v[i - n]
            for c in range(2 * n):
                found.by_state[k, i, c] = varied[c]
            for c in range(nu):
                found.by_inputs[k, i, c] = varied[2 * n + c]
            for c in range(found.by_parameters.shape[2]):
                found.by_parameters[k, i, c] = varied[2 * n + nu + c]
            found.by_length[k, i] = varied[varied.size - 1]
    return OK, last


@kernel_in_place
def make_parts(model, o, x, rows):
    """A step from row 0 to the time of the last row once more, a part to each row; returns a status."""
    parts = rows.t.size - 1
    for k in range(parts):
        if k + 1 < parts:
            rows.t[k + 1] = part_end(rows.t[0], rows.t[parts], k, parts)
        status = explicit_step(model, o, x, rows, k, k + 1, rows.t[k], rows.held[k], 0.0)
        if status != OK:
            return status
    return OK
