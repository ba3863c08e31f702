"""Derivatives of the steps of a simulation: of the Runge-Kutta step on the numbers of q, and of the projection after
it.

A step of `liedyn.motion.simulation.integrators.explicit` is a function of the state, the inputs (constant in the step),
parameters of the robot and its own length. Differentiated stage by stage, for all columns D = [dtheta_0, dv_0, du, dp,
dh] at once,

    Dq_i = Dq_0 + h sum a_ij Dqdot_j        Dv_i = Dv_0 + h sum a_ij Da_j        (and sum a_ij qdot_j, a_j in column dh)

where the stages, and so their variations, satisfy the constraints only up to the error of the step. The accelerations
at any (q, v) are those of M a + h + G^T lambda = tau, G a = gamma; hence, with ID and phi = G a - gamma at constant a,

    M Da + G^T Dlambda = Dtau - dID - dG^T lambda        G Da = -dphi        (`liedyn.machine.linalg.saddle`)

Theta is the displacement in the tangent space, perturbed on the right; for a quaternion, whose numbers the stages add
up, it is 2 Im(Q^-1 dQ).

The projection (`liedyn.motion.simulation.manifold_projection`) is differentiated as it is computed: Newton's
corrections c of q, all in the metric of M* = M(q*), and then one correction e of v* in the same metric,

    M* c = -G(q_i)^T mu        G(q_i) c = -g(q_i)        q_i+1 = q_i exp(c)
    M* e = -G(q)^T nu          psi(q, v* + e) = 0

    M* Dc + G^T Dmu = -(DM* c + DG^T mu)        G Dc = -(Dg + DG c)        Dtheta_i+1 = exp(-ad c) Dtheta_i + J_r(c) Dc

and likewise e with D(psi). Corrections of the size of rounding are treated as zero: they only bring Dtheta into the
tangent space at q.
"""
from numba import types

from liedyn.linear.sensitivity.variations import ByParameters, Motion, put_partials
from liedyn.machine.compiled.jit import VECTOR, kernel_in_place, late
from liedyn.machine.linalg.dense import largest_size
from liedyn.machine.linalg.saddle import solve_saddle
from liedyn.machine.linalg.vectors import add_multiple, copy_to
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import (
    derivative_rows, force_derivative_rows, jacobian_rows, residual_rows,
)
from liedyn.mechanics.constraints.families.cut import cut_residual_kernel
from liedyn.mechanics.tree.configuration import difference_kernel, integrate_kernel
from liedyn.mechanics.tree.kinematics import world_motion, world_positions
from liedyn.model.constraint_records import ranking_of, refresh
from liedyn.model.packed import N_ROWS, PackedModel
from liedyn.motion.gradients.coordinate_derivatives import (
    carry, copy_rows, put_start, put_tangent, vary_rates,
)
from liedyn.motion.gradients.equations import (
    add_partials, add_rows, add_times, put_at_rest, put_correction_partials, put_force_partials, put_impulses,
    put_metric, vary_accelerations, vary_metric,
)
from liedyn.motion.gradients.sliding_derivatives import keep_direction
from liedyn.motion.simulation.coordinate_rates import coordinate_rates, unit_quaternions
from liedyn.motion.simulation.formulations import accelerations
from liedyn.motion.simulation.inputs import input_forces
from liedyn.motion.simulation.integrators.derivatives import put_mechanism_derivatives
from liedyn.motion.simulation.integrators.explicit import explicit_step
from liedyn.motion.simulation.manifold_projection import ITERATIONS, correction, metric, put_jacobian
from liedyn.motion.simulation.singular_passages import part_end
from liedyn.motion.simulation.workspace import NOT_CLOSED, OK, PROJECTION, SETTINGS, SINGULAR, WORK, Moment

MISSED = 1e-3
"""Largest deviation of a projection, relative to its correction, with which it still counts as the one of the step."""
ROUNDING = 1e-11
"""Corrections of coordinates and speeds below this are rounding."""
SMALL = 1e-6
"""Corrections of coordinates below this have negligible squares, the order of Newton's next correction."""


@kernel_in_place
def vary_correction(model, o, x, q, newton, first, room):
    """room.theta at q exp(c) from room.theta at q, for a correction c = room.shift.

    For Newton's steps the derivative of the residual enters, which is G up to terms of the size of the residual. In the
    `first` one q is q*, where the metric is computed; later room.held has the term of the metric's variation.
    Returns the norms of the part of c that constraint forces do not explain and of c, in the metric.
    """
    rest, d = PackedModel(model.ints, room.at_rest), room.derivatives
    room.mu[:] = 0.0
    motion, M = Motion(q, x.zero, room.shift, room.mu), x.M if first else d.tau_q  # which is not needed later
    put_mechanism_derivatives(rest, x.none, motion, x.G, M, d)
    if first:
        put_metric(x, room)
        room.forces[:, :] = 0.0
        add_times(-1.0, d.ID_q, room.theta, room.forces)
    else:
        copy_rows(room.held, room.forces)
    for r in range(x.G.shape[0]):
        if x.holonomic[r] == 0:
            x.G[r, :], d.phi_q[r, :] = 0.0, 0.0
    for r in range(x.G.shape[0]):
        copy_to(x.G[r], d.phi_v[r])
    if newton:
        cut_residual_kernel(model, d.work, d.phi_v)
    left, whole = put_impulses(x, room, room.shift, ranking_of(model, o.rank_tolerance))
    force_derivative_rows(model, q, d.work, room.mu, d.force_q)
    room.rates[:, :] = 0.0
    add_times(-1.0, d.force_q, room.theta, room.forces)
    add_times(-1.0, d.phi_q, room.theta, room.rates)
    add_times(-1.0, d.phi_v, room.theta, room.rates)
    if room.partials.g.shape[1] > 0:
        put_correction_partials(rest, x, room, q, room.shift)
        for r in range(x.G.shape[0]):
            if x.holonomic[r] == 0:
                room.partials.phi[r, :] = 0.0
        add_partials(room.partials.phi, room, room.rates)
        add_partials(room.partials.g, room, room.rates)
        if not first:
            put_force_partials(rest, x, room, q)
        add_partials(room.partials.force, room, room.forces)
    solve_saddle(
        room.L, 0, x.G, ranking_of(model, o.rank_tolerance), (room.forces, room.rates),
        (room.Y, room.order), room.out)
    carry(model, room.shift, room.out, room.theta)
    return left, whole


@kernel_in_place
def vary_newton(model, o, x, q_star, q, room):
    """room.theta at q* becomes room.theta at q, Newton step by Newton step; returns a status."""
    moved, left = room.number[3, :q.size], x.vector[3]
    copy_to(q_star, moved)
    whole = largest_size(room.shift)
    for k in range(ITERATIONS):
        metric(model, o, x, q_star)
        world_positions(SCALAR, model, moved, x.world)
        residual_rows(model, moved, x.world, x.residual)
        put_jacobian(model, moved, x)
        correction(model, o, x, x.residual, x.holonomic, x.order[:0])
        copy_to(x.vector[0], room.shift)
        if k > 0:
            rest = PackedModel(model.ints, room.at_rest)
            vary_metric(rest, x, q_star, room.shift, room.theta_star, room, room.held)
        vary_correction(model, o, x, moved, True, k == 0, room)
        integrate_kernel(model, moved, room.shift, moved)
        difference_kernel(model, moved, q, left)
        if largest_size(left) <= ROUNDING * (1.0 + largest_size(q)):
            return OK
    return OK if largest_size(left) <= MISSED * whole else NOT_CLOSED


@kernel_in_place
def vary_projection(model, o, x, start, end, at_start, room):
    """room.theta and room.v, the variations of (q*, v*) = start, become those of its projection (q, v) = end.

    Returns a status.
 At the start velocities are projected in the metric of M(q).
    """
    (q_star, v_star), (q, v), d = start, end, room.derivatives
    n, m = v.size, x.G.shape[0]
    rest, varies = PackedModel(model.ints, room.at_rest), room.partials.g.shape[1] > 0
    put_at_rest(model, room.at_rest)
    copy_rows(room.theta, room.theta_star)
    difference_kernel(model, q_star, q, room.shift)
    if largest_size(room.shift) > SMALL:
        status = vary_newton(model, o, x, q_star, q, room)
        if status != OK:
            return status
    else:
        left, whole = vary_correction(model, o, x, q_star, False, True, room)
        if not left <= MISSED * whole + ROUNDING * (1.0 + largest_size(q)):
            return NOT_CLOSED

    world_positions(SCALAR, model, q, x.world)
    jacobian_rows(model, q, x.world, x.G)
    for r in range(m):
        if x.holonomic[r] == 0:
            x.G[r, :] = 0.0
    room.forces[:, :], room.rates[:, :] = 0.0, 0.0
    add_times(-1.0, x.G, room.theta, room.rates)
    if varies:
        room.mu[:] = 0.0
        put_correction_partials(rest, x, room, q, x.zero)
        add_partials(room.partials.g, room, room.rates)
    solve_saddle(
        room.L, 0, x.G, ranking_of(model, o.rank_tolerance), (room.forces, room.rates),
        (room.Y, room.order), room.out)
    add_rows(1.0, room.out, room.theta)

    for j in range(n):
        room.shift[j] = v[j] - v_star[j]
    if at_start:
        vary_metric(rest, x, q, room.shift, room.theta, room, room.held)
    else:
        vary_metric(rest, x, q_star, room.shift, room.theta_star, room, room.held)
    world_motion(SCALAR, model, q, v, x.zero, d.work)
    jacobian_rows(model, q, d.work, x.G)
    put_impulses(x, room, room.shift, ranking_of(model, o.rank_tolerance))
    d.force_q[:, :] = 0.0
    force_derivative_rows(model, q, d.work, room.mu, d.force_q)
    derivative_rows(model, q, v, x.zero, d.work, (d.psi_q, d.phi_q, d.phi_v))
    copy_rows(room.held, room.forces)
    room.rates[:, :] = 0.0
    add_times(-1.0, d.force_q, room.theta, room.forces)
    add_times(-1.0, d.psi_q, room.theta, room.rates)
    add_times(-1.0, x.G, room.v, room.rates)
    if varies:
        p = room.partials
        put_correction_partials(rest, x, room, q, x.zero)  # partial derivatives of G^T nu
        add_partials(p.force, room, room.forces)
        room.mu[:] = 0.0
        put_partials(model, room.changes, Motion(q, v, x.zero, room.mu), p.work,
                     ByParameters(p.force_0, p.phi_0, p.psi, p.g_0))
        add_partials(p.psi, room, room.rates)
    solve_saddle(
        room.L, 0, x.G, ranking_of(model, o.rank_tolerance), (room.forces, room.rates),
        (room.Y, room.order), room.out)
    add_rows(1.0, room.out, room.v)
    return OK


@late(SETTINGS, WORK, types.float64, types.int64, VECTOR, VECTOR)
def element_inputs(o, x, t, row, q, v):
    """Inputs and forces of a robot with force elements; a kernel of its own, so that other robots do without."""
    input_forces(o, x, t, row, q, v)


@kernel_in_place
def vary_step(model, o, x, rows, k, room):
    """room.theta and room.v at the end of the step from row k to row k + 1; returns a status."""
    t, row, q, v = rows.t[k], rows.held[k], rows.q[k], rows.v[k]
    h, stages, last = rows.t[k + 1] - t, o.tableau.shape[1], room.v.shape[1] - 1
    put_start(model, q, room)
    if o.friction:
        keep_direction(model, x, rows.lam[k])
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
        if i == 0 and not o.friction:
            copy_to(rows.a[k], x.a_stage[0])
            copy_to(rows.lam[k], x.lam_stage)
            if x.elements.ints[N_ROWS] > 0:  # elements that are actuators take their inputs from there
                element_inputs(o, x, t, row, x.q_stage, x.v_stage)
        else:
            now = Moment(t + part * h, row, x.q_stage, x.v_stage)
            status = accelerations(model, o, x, now, x.a_stage[i], x.lam_stage)
            if status != OK:
                return status
        motion = Motion(x.q_stage, x.v_stage, x.a_stage[i], x.lam_stage)
        if not vary_accelerations(model, o, x, t + part * h, motion, room, room.a[i]):
            return SINGULAR
    unit_quaternions(model, x.q_stage)
    refresh(model, rows.t[k + 1])
    if o.stabilisation == PROJECTION and x.G.shape[0] > 0:
        return vary_projection(
            model, o, x, (x.q_stage, x.v_stage), (rows.q[k + 1], rows.v[k + 1]), False, room)
    return OK


@kernel_in_place
def vary_start(model, o, x, q_given, v_given, rows, room):
    """room.theta and room.v: derivatives of the projected initial state by the parameters; returns a status."""
    room.theta[:, :], room.v[:, :] = 0.0, 0.0
    refresh(model, rows.t[0])
    if x.G.shape[0] == 0:
        return OK
    return vary_projection(model, o, x, (q_given, v_given), (rows.q[0], rows.v[0]), True, room)


@kernel_in_place(nogil=True)
def differentiate_steps(model, o, x, rows, between, room, found):
    """Derivatives of the steps between two rows into `found`; returns a status and the last row."""
    first, last = between
    n, nu = x.zero.size, x.actuators.shape[1]
    for k in range(first, last):
        status = vary_step(model, o, x, rows, k, room)
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
    """Repeats a step from row 0 to the time of the last row, one part to each row; returns a status."""
    parts = rows.t.size - 1
    for k in range(parts):
        if k + 1 < parts:
            rows.t[k + 1] = part_end(rows.t[0], rows.t[parts], k, parts)
        start = Moment(rows.t[k], rows.held[k], rows.q[k], rows.v[k])
        status = explicit_step(model, o, x, rows, start, k, k + 1, 0.0)
        if status != OK:
            return status
    return OK
