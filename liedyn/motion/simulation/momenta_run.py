"""Steps in canonical momenta: q and p are integrated, velocities are computed from them at every stage.

Independent velocities w with v = K w + v_p, G K = 0, G v_p = b, have the momenta p = K^T M v, and

    qdot = v        v = K (K^T M K)^-1 (p - K^T M v_p) + v_p
    pdot = K^T (tau + Q) + Kdot^T M v

(Spencer 2004, 2.4 and 5.1), Q the forces of `liedyn.mechanics.tree.momenta`: neither accelerations nor multipliers are
needed. K need not be chosen: any pi with K^T pi = p represents the momenta of all possible independent velocities at
once. With pi

    [M  G^T] [v ]   [pi]
    [G   0 ] [mu] = [b ]        pi_dot = tau + Q + Gdot^T mu

as GK = 0 makes Kdot^T (pi - M v) = Kdot^T G^T mu = -K^T Gdot^T mu: the linear system that gives accelerations also
gives velocities, and for redundant rows any solution mu will do. Adding an element of the range of G^T to pi changes
nothing. (pi and mu are the impetus and striction of Dichmann and Maddocks 1996.) A step begins with pi = M v, mu = 0.

Momenta of ball and free joints are integrated in axes of the parent, those of a free joint about its position at the
beginning of the step: there they are constant if no force acts, and Runge-Kutta methods preserve linear invariants to
rounding. With B that transformation and V_J the twist of the joint, the rate of B pi is B (pi_dot + ad*(V_J) pi).
"""
from numba import types

from liedyn.lie.algebra import add, add6, cross, minus_ad_dual, quaternion_rotation, rotate, sub, unrotate
from liedyn.machine.compiled.jit import VECTOR, inline, kernel_in_place, late
from liedyn.machine.linalg.vectors import add_multiple, copy_to
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import derivative_rows, velocity_rows
from liedyn.mechanics.dynamics.nullspace import solve_multipliers
from liedyn.mechanics.dynamics.state import Terms
from liedyn.mechanics.dynamics.terms import put_terms
from liedyn.mechanics.tree.configuration import difference_kernel, integrate_kernel
from liedyn.mechanics.tree.crba import crba_kernel
from liedyn.mechanics.tree.joints import get_quaternion, joint_twist, put_force_of_kind
from liedyn.mechanics.tree.kinematics import world_motion
from liedyn.mechanics.tree.momenta import momentum_terms_kernel
from liedyn.model.constraint_records import refresh
from liedyn.model.packed import FREE
from liedyn.model.packed_records import MODEL, dof_count, first_dof, first_q, get3, kind, link_count, zero3
from liedyn.motion.simulation.coordinate_rates import local_rates
from liedyn.motion.simulation.formulations import accelerations, solve_nullspace
from liedyn.motion.simulation.inputs import input_forces
from liedyn.motion.simulation.manifold_projection import project_positions, stabilise
from liedyn.motion.simulation.stages import put_power
from liedyn.motion.simulation.workspace import (
    MINIMAL, MOMENT, NOT_CLOSED, NOT_FINITE, OK, PROJECTION, SETTINGS, SINGULAR, WORK, Moment,
)

START, PI, MOMENTA, ACCELERATION, SLOPES = range(5)
"""Rows of work.momenta: B pi at the beginning of the step; pi, M v and accelerations of a stage; slopes of rows."""


# ---- momenta of ball and free joints in axes of the parent


@inline
def place(model, i, q_start, q):
    """Rotation of ball or free joint i, and displacement of its origin since q_start, in axes of the parent."""
    R, k = quaternion_rotation(*get_quaternion(SCALAR, model, i, q)), first_q(model, i) + 4
    if kind(model, i) == FREE:
        return R, sub(get3(SCALAR, q, k), get3(SCALAR, q_start, k))
    return R, zero3(SCALAR)


@inline
def put_in_parent(model, i, q_start, q, F, out):
    """The momentum F of joint i, seen in its link, in axes of the parent."""
    R, p = place(model, i, q_start, q)
    f = rotate(R, F[1])
    put_force_of_kind(SCALAR, kind(model, i), model, i, (add(rotate(R, F[0]), cross(p, f)), f), out)


@kernel_in_place
def momenta_in_parents(model, q_start, q, pi, out):
    """out = B pi: momenta of ball and free joints in axes of the parent."""
    for i in range(link_count(model)):
        if dof_count(model, i) == 1:
            out[first_dof(model, i)] = pi[first_dof(model, i)]
        else:
            put_in_parent(model, i, q_start, q, joint_twist(SCALAR, model, i, pi), out)


@kernel_in_place
def momenta_in_links(model, q_start, q, carried, pi):
    """pi = B^-1 carried, the inverse of `momenta_in_parents`."""
    for i in range(link_count(model)):
        if dof_count(model, i) == 1:
            pi[first_dof(model, i)] = carried[first_dof(model, i)]
        else:
            (R, p), (n, f) = place(model, i, q_start, q), joint_twist(SCALAR, model, i, carried)
            F = unrotate(R, sub(n, cross(p, f))), unrotate(R, f)
            put_force_of_kind(SCALAR, kind(model, i), model, i, F, pi)


@kernel_in_place
def rates_in_parents(model, q_start, q, v, pi, rate):
    """Replaces the rate of pi by the rate of B pi."""
    for i in range(link_count(model)):
        if dof_count(model, i) > 1:
            turning = minus_ad_dual(joint_twist(SCALAR, model, i, v), joint_twist(SCALAR, model, i, pi))
            put_in_parent(model, i, q_start, q, add6(joint_twist(SCALAR, model, i, rate), turning), rate)


# ---- velocities and rates


@inline
def put_velocities(model, settings, work, q, pi, v):
    """v with K^T M v = K^T pi and G v = b, and mu in work.lam_stage; returns a status."""
    if work.gamma.size == 0:
        crba_kernel(SCALAR, model, q, work.world, work.M)
    else:
        put_terms(
            model, q, work.zero, work.none, work.world, Terms(work.M, work.h, work.G, work.gamma))
        velocity_rows(model, q, work.zero, work.world, work.psi)
        for k in range(work.gamma.size):
            work.gamma[k] = -work.psi[k]
    work.h[:] = 0.0
    status = solve_nullspace(model, settings, work, pi, v)
    if work.gamma.size > 0:
        solve_multipliers(model, work.solve, work.lam_stage)
    work.nearest[0] = max(work.nearest[0], work.number[0])
    return OK if status == 0 else SINGULAR


@inline
def put_rate(model, settings, work, now, momenta, rate):
    """rate = tau + Q, and momenta = M v; False if an input is not finite."""
    t, row, q, v = now
    usable = input_forces(settings, work, t, row, q, v)
    momentum_terms_kernel(SCALAR, model, q, v, work.f_ext, work.local, momenta, rate)
    add_multiple(1.0, work.tau, rate)
    return usable


@inline
def add_turning_rows(model, work, q, v, rate):
    """rate += Gdot^T mu, where Gdot = dphi/dv - dpsi/dq as phi = d psi/dt."""
    m = work.gamma.size
    if m == 0:
        return
    psi_q, phi_q, phi_v = (work.momenta[SLOPES:SLOPES + m], work.momenta[SLOPES + m:SLOPES + 2 * m],
                           work.momenta[SLOPES + 2 * m:SLOPES + 3 * m])
    world_motion(SCALAR, model, q, v, work.zero, work.world)
    derivative_rows(model, q, v, work.zero, work.world, (psi_q, phi_q, phi_v))
    for k in range(m):
        add_multiple(work.lam_stage[k], phi_v[k], rate)
        add_multiple(-work.lam_stage[k], psi_q[k], rate)


@inline
def momentum_stage(model, settings, work, t, row, q_start, i):
    """Velocities, rate of B pi and power of stage i at work.q_stage, work.momenta[PI]; returns a status."""
    q, v, pi, a = work.q_stage, work.v_stage, work.momenta[PI], work.momenta[ACCELERATION]
    now = Moment(t, row, q, v)
    status = put_velocities(model, settings, work, q, pi, v)
    if status == OK and settings.all_power:  # moving constraints do work by their forces, which need the accelerations
        status = accelerations(model, settings, work, now, a, work.none)
    if status != OK:
        return status
    if not put_rate(model, settings, work, now, work.momenta[MOMENTA], work.a_stage[i]):
        return NOT_FINITE
    add_turning_rows(model, work, q, v, work.a_stage[i])
    rates_in_parents(model, q_start, q, v, pi, work.a_stage[i])
    put_power(model, settings, work, q, v, a, work.power[i])
    return OK


@inline
def first_stage(model, settings, work, start, a):
    """The rates of the first stage of a step, where v and a are known and mu is zero."""
    q, v, pi, rate = start.q, start.v, work.momenta[PI], work.a_stage[0]
    refresh(model, start.t)
    if not put_rate(model, settings, work, start, pi, rate):
        return NOT_FINITE
    momenta_in_parents(model, q, q, pi, work.momenta[START])
    rates_in_parents(model, q, q, v, pi, rate)
    put_power(model, settings, work, q, v, a, work.power[0])
    copy_to(v, work.v_stage)
    copy_to(v, work.q_rate[0, :v.size])
    return OK


@inline
def close_stage(model, settings, work, q, u, last):
    """Moves positions to the constraints: at every stage in minimal coordinates, by projection at the end of a step.

    Velocities follow from the momenta there, so that projection does not change the momenta. Returns a status.
    """
    if settings.stabilisation == MINIMAL:
        status = stabilise(model, settings, work, 0.0, 0.0, work.q_stage, work.v_stage)
        difference_kernel(model, q, work.q_stage, u)
        return status
    if last and settings.stabilisation == PROJECTION and work.psi.size > 0 and not project_positions(model, settings,
                                                                                                     work,
                                                                                                     work.q_stage):
        return NOT_CLOSED
    return OK


@inline
def put_increments(settings, work, h, i, u, carried):
    """Adds the rates of all stages, weighted by row i of the tableau, to u (initially zero) and `carried`; returns
    c_i."""
    u[:] = 0.0
    part = 0.0
    for j in range(settings.tableau.shape[1]):
        weight = h * settings.tableau[i, j]
        part += settings.tableau[i, j]
        if weight != 0.0:
            add_multiple(weight, work.q_rate[j], u)
            add_multiple(weight, work.a_stage[j], carried)
    return part


@inline
def move_stage(model, settings, work, start, h, i, last):
    """work.q_stage and work.momenta[PI] of stage i of a step; returns the stage's time and a status."""
    u, carried = work.step[:work.zero.size], work.momenta[MOMENTA]
    copy_to(work.momenta[START], carried)
    part = put_increments(settings, work, h, i, u, carried)
    time = start.t + (h if last else part * h)
    refresh(model, time)
    integrate_kernel(model, start.q, u, work.q_stage)
    status = close_stage(model, settings, work, start.q, u, last)
    momenta_in_links(model, start.q, work.q_stage, carried, work.momenta[PI])
    return time, status


@inline
def stage_in_momenta(model, settings, work, start, h, i):
    """Rates of stage i of a step from `start`; returns a status."""
    time, status = move_stage(model, settings, work, start, h, i, False)
    if status == OK:
        status = momentum_stage(model, settings, work, time, start.row, start.q, i)
        local_rates(model, work.step[:work.zero.size], work.v_stage, work.q_rate[i])
    return status


@inline
def end_in_momenta(model, settings, work, start, h, end):
    """The state (q, v) = end of a step from `start`, from the rates of its stages; returns a status."""
    _, status = move_stage(model, settings, work, start, h, settings.tableau.shape[1], True)
    if status == OK:
        status = put_velocities(model, settings, work, work.q_stage, work.momenta[PI], work.v_stage)
        copy_to(work.q_stage, end[0])
        copy_to(work.v_stage, end[1])
    return status


@late(MODEL, SETTINGS, WORK, MOMENT, types.float64, VECTOR, types.UniTuple(VECTOR, 2), returns=types.int64)
def step_in_momenta(model, settings, work, start, h, a, end):
    """A step of length h from `start`, where the accelerations are a, to (q, v) = end, by the explicit method of the
    tableau.

    Returns a status. The powers of the stages are written to work.power.
    """
    work.q_rate[:] = 0.0
    work.a_stage[:] = 0.0
    status = first_stage(model, settings, work, start, a)
    for i in range(1, settings.tableau.shape[1]):
        if status == OK:
            status = stage_in_momenta(model, settings, work, start, h, i)
    return end_in_momenta(model, settings, work, start, h, end) if status == OK else status
