"""Inverse dynamics and constraints varied along a direction of the state and along parameters, to second order.

    F(q, v, a, lambda; p) = ID + G^T lambda        phi = G a + Gdot v - bdot        psi = G v - b        g

for a model without force elements. `vary_both` computes, one register of columns after the other, the variations along
direction 2, (q_2, v_2, a_2, lambda_2) and a parameter, and the mixed ones of directions 1 and 2, without the terms of
a_12 and lambda_12. If direction 1 and the state's part of direction 2 are zero, these are the partial derivatives by
the parameters, `put_partials`.

Parameters that change forces only (inertias, gravity; springs, dampers and armatures of joints) are treated one by one
in closed form: the change dI of an inertia gives the wrench dI A + V x* dI V on its link, which the joints from there
to the ground bear, S_j . F; a change of gravity gives the wrench -I (0, dg) on every link.
"""
from collections import namedtuple

from numba import types

from liedyn.lie.algebra import add6, dot6, inertia_in_parent, inertia_times, minus_ad_dual
from liedyn.linear.sensitivity.changes import (
    ARMATURE, CHANGES, DAMPING, GRAVITY, INERTIA, REST, STIFFNESS, change_of, put_changes, spread_size,
)
from liedyn.linear.sensitivity.link_sensitivity import (
    FLOATS, LANED, Along, Columns, Passes, add_joint_forces, gather_forces, vary_links,
)
from liedyn.linear.sensitivity.row_sensitivity import (
    ALONG, put_multipliers, vary_cuts, vary_others, vary_readers,
)
from liedyn.linear.sensitivity.two_frames import ROWS, Rows
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, late
from liedyn.machine.linalg.gauss_jordan import clear
from liedyn.machine.simd.lanes import SCALAR, WIDTH, load, take_matrix, take_vector
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.constraint_rows import clear_block
from liedyn.mechanics.dynamics.state import Motion
from liedyn.mechanics.tree.kinematics import (
    S, acceleration_of, of_dof, twist_of, world_motion, world_pose, world_positions, world_size,
)
from liedyn.model.constraint_records import all_cut
from liedyn.model.packed import NV, N_ROWS
from liedyn.model.packed_records import (
    MODEL, dof_count, dof_link, first_dof, first_q, get3, get6, get_inertia, inertia, link_count, parent_dof, rest,
    stiffness, zero3,
)


@inline
def rests(changes, first, end):
    """True if parameters first to end - 1 change forces only."""
    for c in range(changes.first[first], changes.first[end]):
        kind = change_of(changes, c).kind
        if not (kind == INERTIA or kind == GRAVITY or kind == ARMATURE or kind == DAMPING or kind == STIFFNESS
                or kind == REST):
            return False
    return True


@inline
def bear(model, work, i, F, k, force):
    """Adds S_j . F to column k of `force` (nv, parameters), for each joint j from link i to the ground."""
    j = first_dof(model, i) + dof_count(model, i) - 1
    while j >= 0:
        force[j, k] += dot6(get6(SCALAR, work, of_dof(model, j, S)), F)
        j = parent_dof(model, j)


@inline
def add_change(model, work, motion, change, k, force):
    """Adds the effect of one change to column k; needs `world_motion`."""
    (kind, what, numbers, at), (q, v, a, _) = change, motion
    x = load(SCALAR, numbers, at)
    if kind == INERTIA:
        V, A = twist_of(SCALAR, work, what), acceleration_of(SCALAR, model, work, what)
        dI = inertia_in_parent(world_pose(SCALAR, work, what), get_inertia(SCALAR, numbers, at))
        bear(model, work, what, add6(inertia_times(dI, A), minus_ad_dual(V, inertia_times(dI, V))), k, force)
    elif kind == GRAVITY:
        gx, gy, gz = get3(SCALAR, numbers, at)
        for i in range(link_count(model)):
            I = inertia_in_parent(world_pose(SCALAR, work, i), inertia(model, i))
            bear(model, work, i, inertia_times(I, (zero3(SCALAR), (-gx, -gy, -gz))), k, force)
    elif kind == ARMATURE:
        force[what, k] += x * a[what]
    elif kind == DAMPING:
        force[what, k] += x * v[what]
    else:
        c = first_q(model, dof_link(model, what))
        force[what, k] += x * (q[c] - rest(model, c)) if kind == STIFFNESS else -x * stiffness(model, what)


@inline
def put_column_at_rest(model, work, motion, changes, k, force):
    """Column k of `force`, for a parameter that changes forces only; needs `world_motion`."""
    for j in range(force.shape[0]):
        force[j, k] = 0.0
    for c in range(changes.first[k], changes.first[k + 1]):
        add_change(model, work, motion, change_of(changes, c), k, force)


ByParameters = namedtuple("ByParameters", "force phi psi g")
"""Partial derivatives by the parameters: of F (nv, np), and of phi, psi and g (m, np)."""

Varied = namedtuple("Varied", "force mixed rows readers")
"""Variations of F along direction 2 and the mixed ones (nv, padded), those of the constraints, and those of the virtual
velocities (no rows if not needed)."""

MOTION = group(Motion, *[VECTOR] * 4)
VARIATIONS = types.BaseTuple.from_types((MATRIX, MATRIX, ROWS, ROWS), Varied)
"""Types, for `liedyn.machine.compiled.jit.late`."""


@inline
def variations_size(model):
    """Size of the workspace of `vary_both`."""
    lanes = WIDTH * (LANED * link_count(model) + model.ints[N_ROWS])
    return WIDTH * 6 + world_size(model) + spread_size(model) + FLOATS * link_count(model) + lanes


@inline
def vary_block(model, motion, along, b, world, lam_2, passes, out):
    """All variations in block b of the columns; needs `world_positions` and `put_changes`."""
    vary_links(model, motion, world, along, b, True, passes)
    clear_block(out.force, b)
    clear_block(out.mixed, b)
    for each in out.rows:  # rows that are switched off stay zero
        clear_block(each, b)
    put_multipliers(along.two, b, lam_2)
    multipliers = motion.lam, along.one.L, lam_2
    if out.readers.g.shape[0] > 0:
        vary_readers(model, world, b, passes, out.readers)
    vary_cuts(model, world, multipliers, b, passes, out.rows)
    if not all_cut(model):
        vary_others(model, world, multipliers, along, b, passes, out.rows, out.force)
    gather_forces(model, world, along, b, passes, out.force, out.mixed)
    add_joint_forces(model, motion, along, b, passes, out.force, out.mixed)


@inline
def take_passes(model, work):
    """Arrays for links and multipliers in one pass, taken from a workspace."""
    links = link_count(model)
    return take_vector(work, WIDTH * model.ints[N_ROWS]), Passes(
        take_vector(work, spread_size(model)), take_vector(work, FLOATS * links),
        take_vector(work, WIDTH * LANED * links))


@inline
def take_still(work, n, m):
    """Directions in which the state does not vary, one register of them, taken from a workspace."""
    one = Columns(take_vector(work, n), take_vector(work, n), take_vector(work, n), take_vector(work, m))
    none, no_rows = take_matrix(work, n, WIDTH), take_matrix(work, m, WIDTH)
    for each in one:
        each[:] = 0.0
    clear(none)
    clear(no_rows)
    return Along(one, Columns(none, none, none, no_rows), none, none)


@late(MODEL, CHANGES, MOTION, ALONG, VECTOR, VARIATIONS)
def vary_both(model, changes, motion, along, work, out):
    """All variations, for as many columns as direction 2 has."""
    work[0] = first_place(work)
    world = take_vector(work, world_size(model))
    lam_2, passes = take_passes(model, work)
    world_positions(SCALAR, model, motion.q, world)
    for b in range(along.N_12.shape[1] // WIDTH):
        put_changes(model, changes, b, world, passes.spread)
        vary_block(model, motion, along, b, world, lam_2, passes, out)


@inline
def partials_size(model, count):
    """Size of the workspace of `put_partials`, for any number of parameters."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    return WIDTH * 24 + 3 * n + m + WIDTH * (3 * n + 6 * m) + variations_size(model)


@late(MODEL, CHANGES, MOTION, VECTOR, group(ByParameters, *[MATRIX] * 4))
def put_partials(model, changes, motion, work, found):
    """All `ByParameters`.

    Blocks of parameters that change forces only take no pass over the links (`put_column_at_rest`).
    """
    (force, phi, psi, g), count = found, changes.first.size - 1
    n, m = model.ints[NV], model.ints[N_ROWS]
    work[0] = first_place(work)
    world = take_vector(work, world_size(model))
    world_motion(SCALAR, model, motion.q, motion.v, motion.a, world)
    along, unread = take_still(work, n, m), take_matrix(work, 0, WIDTH)
    out = Varied(take_matrix(work, n, WIDTH), take_matrix(work, n, WIDTH), Rows(
        take_matrix(work, m, WIDTH), take_matrix(work, m, WIDTH), take_matrix(work, m, WIDTH),
        take_matrix(work, m, WIDTH), take_matrix(work, m, WIDTH)), Rows(unread, unread, unread, unread, unread))
    lam_2, passes = take_passes(model, work)
    for first in range(0, count, WIDTH):
        end = min(first + WIDTH, count)
        moves = not rests(changes, first, end)
        if moves:
            put_changes(model, changes, first // WIDTH, world, passes.spread)
            vary_block(model, motion, along, 0, world, lam_2, passes, out)
        for k in range(first, end):
            if not moves:
                put_column_at_rest(model, world, motion, changes, k, force)
            for j in range(n if moves else 0):
                force[j, k] = out.force[j, k - first]
            for r in range(m):
                phi[r, k] = out.rows.phi[r, k - first] if moves else 0.0
                psi[r, k] = out.rows.psi[r, k - first] if moves else 0.0
                g[r, k] = out.rows.g[r, k - first] if moves else 0.0
