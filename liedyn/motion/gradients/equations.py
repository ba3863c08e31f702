"""The equations that variations obey (`liedyn.motion.gradients.step_derivatives`): accelerations and impulses."""
import numpy as np
from numba import types

from liedyn.linear.sensitivity.element_sensitivity import add_element_partials
from liedyn.linear.sensitivity.law_sensitivity import put_slopes
from liedyn.linear.sensitivity.variations import ByParameters, Motion, put_partials
from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, kernel_in_place, late
from liedyn.machine.linalg.dense import solve_square
from liedyn.machine.linalg.nearest import forward, orthonormal_rows
from liedyn.machine.linalg.ranks import bring_to_length, weighed_length
from liedyn.machine.linalg.saddle import factor_saddle, solve_saddle
from liedyn.machine.linalg.vectors import add_multiple, copy_to, inner
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.elements.forces import add_driven, taken
from liedyn.mechanics.tree.rnea_derivatives import composite_derivatives, world_motion
from liedyn.model.constraint_records import has_target, loop_at, loop_count, ranking_of
from liedyn.model.packed import DOF_F, DOF_FLOATS_AT, DOF_STIFFNESS, GRAVITY, LOOP_RATE, LOOP_TWIST, NV
from liedyn.motion.gradients.room import OF_ELEMENTS
from liedyn.motion.gradients.sliding_derivatives import add_sliding, hold_sliding, let_slide, put_sliding
from liedyn.motion.simulation.integrators.derivatives import put_derivatives
from liedyn.motion.simulation.workspace import WORK


@inline
def add_rows(factor, A, out):
    """out += factor A, for the rows and columns of `out`."""
    for i in range(out.shape[0]):
        for c in range(out.shape[1]):
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
def element_changes(x, t, q, v, of_elements, force):
    """Adds the parameter derivatives of the forces of elements to `force` (n, np); after `put_derivatives` here."""
    at = taken(x.elements, x.element_work)
    put_slopes(x.laws, t, at.x, at.w, at.out, of_elements.slopes)
    add_element_partials(x.elements, of_elements.changes, of_elements.slopes, q, v, of_elements.work, force)


# not inlined: inside each step it would slow down the steps of all robots by a quarter
add_element_changes = late(WORK, types.float64, VECTOR, VECTOR, OF_ELEMENTS, MATRIX)(element_changes)


@kernel_in_place
def vary_accelerations(model, o, x, t, motion, room, out):
    """Variations of the accelerations motion.a along room.theta and room.v; False if a is not determined."""
    sliding = hold_sliding(model, x.friction) if o.friction else 0
    (q, v, _, lam), d = motion, room.derivatives
    put_derivatives(model, o, x, t, motion, d)
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
        put_partials(model, room.changes, motion, p.work, ByParameters(p.force, p.phi, p.psi, p.g))
        if room.of_elements.changes.records.size > 0:
            add_element_changes(x, t, q, v, room.of_elements, p.force)
        add_partials(p.force, room, room.forces)
        add_partials(p.phi, room, room.rates)
    if sliding > 0:
        let_slide(model, x.friction, sliding)
        put_sliding(model, x, v, lam, d.psi_q, room, sliding)
    added = factor_saddle(x.M, x.G, room.L)
    if added < 0:
        return False
    rank = solve_saddle(
        room.L, added, x.G, ranking_of(model, o.rank_tolerance), (room.forces, room.rates),
        (room.Y, room.order), room.out)
    if sliding > 0 and not add_sliding(model, x, room, rank, room.out, sliding):
        return False
    for i in range(v.size):
        copy_to(room.out[i], out[i])
    return True


@kernel_in_place
def put_at_rest(model, at_rest):
    """The model without gravity, springs and velocities of targets: only inertia and constraints remain."""
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
    """out -= partial derivatives, in the columns of the parameters, which are the last but one group of columns."""
    first = room.theta.shape[1] - 1 - partial.shape[1]
    for i in range(out.shape[0]):
        for c in range(partial.shape[1]):
            out[i, first + c] -= partial[i, c]


@inline
def put_correction_partials(rest, x, room, q, moved):
    """Partial derivatives of M c + G^T mu, of G c and of g at a correction c, without gravity and springs."""
    p = room.partials
    put_partials(rest, room.changes, Motion(q, x.zero, moved, room.mu), p.work,
                 ByParameters(p.force, p.phi, p.psi, p.g))
    copy_to(room.mu, x.lam_stage)
    room.mu[:] = 0.0
    put_partials(rest, room.changes, Motion(q, x.zero, x.zero, room.mu), p.work,
                 ByParameters(p.force_0, p.phi_0, p.psi_0, p.g_0))
    copy_to(x.lam_stage, room.mu)
    for c in range(p.g.shape[1]):
        for i in range(p.force.shape[0]):
            p.force[i, c] -= p.force_0[i, c]
        for r in range(p.g.shape[0]):
            p.phi[r, c] -= p.phi_0[r, c]
            if x.holonomic[r] == 0:
                p.g[r, c] = 0.0


@inline
def put_force_partials(rest, x, room, q):
    """room.partials.force of G^T mu only."""
    p = room.partials
    for i in range(p.force.shape[0]):
        for c in range(p.force.shape[1]):
            p.force[i, c] = -p.force_0[i, c]
    put_partials(rest, room.changes, Motion(q, x.zero, x.zero, room.mu), p.work,
                 ByParameters(p.force_0, p.phi_0, p.psi_0, p.g_0))
    for i in range(p.force.shape[0]):
        for c in range(p.force.shape[1]):
            p.force[i, c] += p.force_0[i, c]


@kernel_in_place
def put_metric(x, room):
    """room.L = factor of x.M; if M is singular, as in the projection, of the identity, which does not vary."""
    if factor_saddle(x.M, x.G[:0], room.L) < 0:
        room.L[:, :], room.derivatives.ID_q[:, :] = 0.0, 0.0
        for j in range(room.L.shape[0]):
            room.L[j, j] = 1.0


@kernel_in_place
def vary_metric(rest, x, q, moved, theta, room, out):
    """out = -D(M(q) moved) along theta at q and along the parameters; room.L is the factor of M(q)."""
    d = room.derivatives
    world_motion(SCALAR, rest, q, x.zero, moved, d.work)
    composite_derivatives(SCALAR, rest, q, x.none, d.work, (d.ignored, d.ID_q, d.ID_v, x.M))
    put_metric(x, room)
    room.mu[:], out[:, :] = 0.0, 0.0
    add_times(-1.0, d.ID_q, theta, out)
    if room.partials.g.shape[1] > 0:
        put_correction_partials(rest, x, room, q, moved)
        add_partials(room.partials.force, room, out)


@kernel_in_place
def put_impulses(x, room, moved, ranking):
    """room.mu of M moved = -G^T mu on independent rows of x.G; returns the norms of the part of `moved` that this
    leaves over and of `moved`, in the metric of M."""
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
        bring_to_length(x.Y, n, weighed_length(x.G, r, ranking), r)
    rank, _ = orthonormal_rows(x.Y, ranking.tolerance, room.order)
    for i in range(rank):
        row = room.Y[room.order[i], :n]
        b[i] = -inner(row, c)
        for k in range(rank):
            room.gram[i, k] = inner(row, room.Y[room.order[k], :n])
    if not solve_square(room.gram, b, rank):
        return np.inf, 1.0
    whole = inner(c, c)
    for i in range(rank):
        room.mu[room.order[i]] = b[i]
        add_multiple(b[i], room.Y[room.order[i], :n], c)
    return inner(c, c) ** 0.5, whole ** 0.5
