"""Bodies and the wrenches of contacts, varied in two directions to second order: outputs of linear models.

A body's twist is that of its link, seen from the body, and its acceleration that of its link without gravity, which is
carried along as any twist is (`liedyn.linear.sensitivity.link_sensitivity`). A displacement along direction 1 is the
twist that belongs to X = N. The wrench of a contact is what `liedyn.linear.sensitivity.contact_sensitivity` lets its
links feel, before it turns with them.
"""
from numba import types

from liedyn.lie.algebra import Ad_inverse, neg, rotate
from liedyn.linear.sensitivity.changes import CHANGES, RADIUS_AT, number_change, of_loop, put_changes
from liedyn.linear.sensitivity.contact_sensitivity import axle_variations, contact_wrench, place_variations
from liedyn.linear.sensitivity.link_sensitivity import displacement_of, motion_of, rate_of, vary_links
from liedyn.linear.sensitivity.row_sensitivity import VARIED, put_multipliers
from liedyn.linear.sensitivity.second_order_sensitivity import carried, minus
from liedyn.linear.sensitivity.two_frames import relative_motion, sides
from liedyn.linear.sensitivity.variations import MOTION, take_passes
from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, inline, late
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, store, take_vector
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.families.contact import contact
from liedyn.mechanics.tree.kinematics import body_pose, world_positions, world_size
from liedyn.model.constraint_records import get_rotation, loop_at, loop_kind, present_rows
from liedyn.model.packed import LOOP_FOLDING
from liedyn.model.packed_records import MODEL, body_link


@inline
def put_six(out, row, b, x):
    """Block b of six rows."""
    for half in range(2):
        for k in range(3):
            store(LANES, out, out.shape[1] // WIDTH * (row + 3 * half + k) + b, x[half][k])


@late(MODEL, CHANGES, INTEGERS, MOTION, *VARIED, MATRIX, MATRIX, VECTOR, MATRIX, MATRIX)
def vary_bodies(model, changes, bodies, motion, one, two, N_12, X_12, work, twists, rates):
    """Mixed variations of twists and accelerations of bodies (6 bodies, padded), but for what a_12 would add."""
    work[0] = first_place(work)
    world = take_vector(work, world_size(model))
    _, passes = take_passes(model, work)
    world_positions(SCALAR, model, motion.q, world)
    for b in range(N_12.shape[1] // WIDTH):
        put_changes(model, changes, b, world, passes.spread)
        vary_links(model, motion.v, motion.a, world, one, two, N_12, X_12, b, False, passes)
        for k in range(bodies.size):
            X, i = body_pose(SCALAR, model, world, bodies[k]), body_link(model, bodies[k])
            gravity = carried(rate_of(model, world, passes, -1), displacement_of(passes, i))
            put_six(twists, 6 * k, b, Ad_inverse(X, motion_of(passes, i)[3]))
            put_six(rates, 6 * k, b, Ad_inverse(X, minus(rate_of(model, world, passes, i), gravity)[3]))


@late(MODEL, CHANGES, types.int64, MOTION, *VARIED, MATRIX, MATRIX, VECTOR, MATRIX)
def vary_contact_wrench(model, changes, l, motion, one, two, N_12, X_12, work, out):
    """Mixed variations of the wrench of contact l (6, padded), but for what lambda_12 would add."""
    work[0] = first_place(work)
    world = take_vector(work, world_size(model))
    lam_2, passes = take_passes(model, work)
    world_positions(SCALAR, model, motion.q, world)
    kind, (first, count) = loop_kind(model, l), present_rows(model, l)
    L, r, p, d, C = contact(model, world, l)
    fold = get_rotation(model, loop_at(model, l, LOOP_FOLDING))
    for b in range(N_12.shape[1] // WIDTH):
        put_changes(model, changes, b, world, passes.spread)
        vary_links(model, motion.v, motion.a, world, one, two, N_12, X_12, b, False, passes)
        put_multipliers(two, b, lam_2)
        side_a, side_b = sides(model, world, passes, l)
        M, left, _, _ = relative_motion(kind, False, C, side_a, side_b)
        thicker = number_change(passes.spread, of_loop(model, l, RADIUS_AT))
        moment, force = contact_wrench(kind, L, r, place_variations(p, C, M), axle_variations(d, C, left),
                                       (motion.lam, one.L, lam_2), first, count, thicker)[3]
        put_six(out, 0, b, (rotate(fold, neg(moment)), rotate(fold, neg(force))))
