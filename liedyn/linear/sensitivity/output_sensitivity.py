"""Derivatives by parameters of C and D, the outputs of a linear model (names: `liedyn.linear.outputs`).

An output varies along a column (N, X, a', lambda') by its row of [C D]; that changes with a parameter by the mixed
second variation: for a coordinate and its rates N_p, X_p and a'_p themselves; for a cut joint, a body or the wrench of
a contact the mixed variation of the reading, plus the reading of these. A body that is displaced by Z in its link, as
one on a fixed joint may be, has the additional term ad(x', Z) for its variation x'.

The wrench of a cut joint is a constant map of its multipliers. With redundant rows these stay of least norm,
lambda = G y; outside the range of G, where no force determines them,

    lambda' = (dG y)'        lambda'_p = G'_p y + G' y_p + G_p y'

Bodies and the wrenches of contacts, varied in two directions to second order: outputs of linear models.

A body's twist is that of its link, seen from the body; its acceleration is that of its link without gravity, which is
carried along as any twist (`liedyn.linear.sensitivity.link_sensitivity`). A displacement along direction 1 is the twist
for X = N. The wrench of a contact is the one that `liedyn.linear.sensitivity.contact_sensitivity` applies to its links,
before it is carried to them.
"""
import numpy as np
from numba import types

from liedyn.lie.algebra import Ad_inverse, neg, rotate
from liedyn.linear.output_rows import ACCELERATION, BODY, CUT, POSITION, TREE, VELOCITY, WRENCH
from liedyn.linear.sensitivity.changes import CHANGES, RADIUS_AT, number_change, of_loop, put_changes
from liedyn.linear.sensitivity.contact_sensitivity import axle_variations, contact_wrench, place_variations
from liedyn.linear.sensitivity.link_sensitivity import Columns, displacement_of, motion_of, rate_of, vary_links
from liedyn.linear.sensitivity.row_sensitivity import ALONG, put_multipliers
from liedyn.linear.sensitivity.second_order_sensitivity import carried, minus
from liedyn.linear.sensitivity.sensitivity_columns import along_at, columns_at, motion_at
from liedyn.linear.sensitivity.two_frames import relative_motion, sides
from liedyn.linear.sensitivity.variations import MOTION, take_passes, variations_size
from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, inline, late
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, store, take_vector
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.constraint_wrenches import contact_wrench_derivatives, loop_wrench_matrix
from liedyn.mechanics.constraints.families.contact import contact
from liedyn.mechanics.tree.jacobians import body_jacobian
from liedyn.mechanics.tree.kinematics import body_pose, world_positions, world_size
from liedyn.model.calls.batches import batch
from liedyn.model.constraint_records import get_rotation, loop_at, loop_kind
from liedyn.model.packed import LOOP_FOLDING
from liedyn.model.packed_records import MODEL, body_link


@inline
def put_six(out, row, b, x):
    """Writes a twist x to block b of six rows."""
    for half in range(2):
        for k in range(3):
            store(LANES, out, out.shape[1] // WIDTH * (row + 3 * half + k) + b, x[half][k])


@late(MODEL, CHANGES, INTEGERS, MOTION, ALONG, VECTOR, MATRIX, MATRIX)
def vary_bodies(model, changes, bodies, motion, along, work, twists, rates):
    """Mixed variations of twists and accelerations of bodies (6 bodies, padded), without the term of a_12."""
    work[0] = first_place(work)
    world = take_vector(work, world_size(model))
    _, passes = take_passes(model, work)
    world_positions(SCALAR, model, motion.q, world)
    for b in range(along.N_12.shape[1] // WIDTH):
        put_changes(model, changes, b, world, passes.spread)
        vary_links(model, motion, world, along, b, False, passes)
        for k in range(bodies.size):
            X, i = body_pose(SCALAR, model, world, bodies[k]), body_link(model, bodies[k])
            gravity = carried(rate_of(model, world, passes, -1), displacement_of(passes, i))
            put_six(twists, 6 * k, b, Ad_inverse(X, motion_of(passes, i)[3]))
            put_six(rates, 6 * k, b, Ad_inverse(X, minus(rate_of(model, world, passes, i), gravity)[3]))


@late(MODEL, CHANGES, types.int64, MOTION, ALONG, VECTOR, MATRIX)
def vary_contact_wrench(model, changes, l, motion, along, work, out):
    """Mixed variations of the wrench of contact l (6, padded), without the term of lambda_12."""
    work[0] = first_place(work)
    world = take_vector(work, world_size(model))
    lam_2, passes = take_passes(model, work)
    world_positions(SCALAR, model, motion.q, world)
    L, r, p, d, C = contact(model, world, l)
    fold = get_rotation(model, loop_at(model, l, LOOP_FOLDING))
    for b in range(along.N_12.shape[1] // WIDTH):
        put_changes(model, changes, b, world, passes.spread)
        vary_links(model, motion, world, along, b, False, passes)
        put_multipliers(along.two, b, lam_2)
        side_a, side_b = sides(model, world, passes, l)
        M, left, _, _ = relative_motion(loop_kind(model, l), False, C, side_a, side_b)
        thicker = number_change(passes.spread, of_loop(model, l, RADIUS_AT))
        moment, force = contact_wrench(model, l, L, r, place_variations(p, C, M), axle_variations(d, C, left),
                                       (motion.lam, along.one.L, lam_2), thicker)[3]
        put_six(out, 0, b, (rotate(fold, neg(moment)), rotate(fold, neg(force))))


@batch
def vary_body_states(begin, end, model, motion, changes, bodies, along, found):
    """`vary_bodies` at rows of states, for all columns of direction 1; `found` are twists and their rates."""
    work, (twists, rates) = np.empty(variations_size(model)), found
    for b in range(begin, end):
        at, two = motion_at(motion, b), columns_at(along.two, b)
        for c in range(along.N_12.shape[1]):
            vary_bodies(model, changes, bodies, at, along_at(along, two, b, c), work, twists[b, c], rates[b, c])


@batch
def vary_wrench_states(begin, end, model, motion, changes, l, along, out):
    """`vary_contact_wrench` at rows of states."""
    work = np.empty(variations_size(model))
    for b in range(begin, end):
        at, two = motion_at(motion, b), columns_at(along.two, b)
        for c in range(along.N_12.shape[1]):
            vary_contact_wrench(model, changes, l, at, along_at(along, two, b, c), work, out[b, c])


class Outputs:
    """The outputs of the linear models at rows of states.

    Parameters
    ----------
    plan : OutputPlan
    CD : ndarray, shape (states, outputs, columns)
        C and D side by side.
    """

    def __init__(self, plan, CD):
        self.plan, self.CD = plan, CD
        self.reads = bool((plan.parts[:, 0] == CUT).any())
        self.feel = bool((plan.parts[:, 0] == WRENCH).any() or plan.contacts)
        self.bodies = np.unique(plan.parts[plan.parts[:, 0] == BODY, 2])

    def part(self, states):
        """The outputs at some of the states."""
        return Outputs(self.plan, self.CD[states])

    def derivatives(self, models, along, two, mixed, displaced):
        """Derivatives of C and D, (states, outputs, columns, parameters).

        Parameters
        ----------
        models : LinearModels
        along : Variations
        two : Columns
            Derivatives of the state by the parameters, (states, rows, parameters).
        mixed : Columns
            Derivatives of the columns themselves, (states, columns, rows, parameters).
        displaced : list of dict
            For each parameter, displacements of bodies in their links, by number.
        """
        found, columns = np.zeros((*self.CD.shape, along.count)), models.columns
        moved = Columns(None, columns.N, None, None)  # displacements are read as velocities are
        if self.reads:
            every, read = along.along(columns, two, mixed.N, mixed.X).readers, along.along(moved, two, None, mixed.N)
            of_cuts = {POSITION: read.readers.psi_mixed, VELOCITY: every.psi_mixed,
                       ACCELERATION: every.phi_mixed + models.E[:, None] @ mixed.A}
        if len(self.bodies):
            twists, rates = self._of_bodies(along, columns, two, mixed.N, mixed.X)
            of_bodies = {POSITION: self._of_bodies(along, moved, two, None, mixed.N)[0], VELOCITY: twists,
                         ACCELERATION: rates}
        of_tree = {POSITION: mixed.N, VELOCITY: mixed.X, ACCELERATION: mixed.A}
        for what, rate, k, row in self.plan.parts:
            if what == TREE:
                found[:, row] = of_tree[rate][:, :, k]
            elif what == CUT:
                found[:, row] = of_cuts[rate][:, :, k]
            elif what == WRENCH:
                W, rows = loop_wrench_matrix(models.robot, k)
                found[:, row:row + 6] = (W @ mixed.L[:, :, rows]).swapaxes(1, 2)
            else:
                x, at = of_bodies[rate], 6 * int(np.searchsorted(self.bodies, k))
                six = x[:, :, at:at + 6]
                if rate == ACCELERATION:
                    J = body_jacobian(models.robot, models.motion.q, models.robot.body_names[k])
                    six = six + J[:, None] @ mixed.A
                found[:, row:row + 6] = six.swapaxes(1, 2)
                self._displace(displaced, k, row, found)
        for number, row in self.plan.contacts:
            found[:, row:row + 6] = self._of_contact(models, along, number, two, mixed)
        return found

    def _displace(self, displaced, body, row, found):
        """Adds the term of a body that is itself displaced in its link."""
        w, v = np.split(self.CD[:, row:row + 6].swapaxes(1, 2), 2, axis=2)
        for p, bodies in enumerate(displaced):
            if body in bodies:
                turn, shift = np.split(bodies[body], 2)
                more = np.concatenate([np.cross(w, turn), np.cross(w, shift) + np.cross(v, turn)], axis=2)
                found[:, row:row + 6, :, p] += more.swapaxes(1, 2)

    def _of_bodies(self, along, one, two, N_12, X_12):
        """Derivatives of twists and their rates, (states, columns, 6 bodies, parameters)."""
        both = along.directions(one, two, N_12, X_12)
        found = np.empty((2, *both.N_12.shape[:2], 6 * len(self.bodies), along.width))
        vary_body_states.on(found.shape[1], False, along.robot.packed, along.motion, along.changes, self.bodies, both,
                            tuple(found))
        return found[..., :along.count]

    def _of_contact(self, models, along, number, two, mixed):
        """Derivatives of the wrench of a constraint between bodies."""
        robot, q, lam = models.robot, models.motion.q, models.motion.lam
        rows = np.flatnonzero(np.array(robot.row_owners) == robot.constraint_names[number])
        both = along.directions(models.columns, two, mixed.N, mixed.X)
        out = np.empty((*both.N_12.shape[:2], 6, along.width))
        by_lam, by_q = np.zeros((6, len(rows))), np.zeros((6, robot.nv))
        vary_wrench_states.on(len(out), False, along.robot.packed, along.motion, along.changes, number, both, out)
        found = out[..., :along.count]
        for b in range(len(found)):
            contact_wrench_derivatives(robot.packed, q[b], lam[b], number, by_lam, by_q)
            found[b] += by_lam @ mixed.L[b][:, rows]
        return found.swapaxes(1, 2)
