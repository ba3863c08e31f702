"""Variations in many directions at once, from Python: rows of states, columns of directions.

Direction 1 runs over the columns of a linearization, one after the other; direction 2 has one parameter (or column) per
lane.

Parameters that change forces only have a closed form of inverse dynamics (`liedyn.linear.sensitivity.variations`): a
wrench dI A + V x* dI V on one link, which the joints from there to the ground bear. Along a column (N, X, A) it varies
by

    dI dA + V x* dI dV + dV x* dI V      and, on the way to the ground, + turn x* F at each joint

seen from the links, with their variations as in `liedyn.mechanics.tree.tangent_recursion`, computed once for all
parameters. A register holds columns.

Users' rows vary as far as the first derivatives that their functions give allow. Along direction 2 displacements,
velocities, rows and forces vary by these derivatives. The mixed variation needs second derivatives if both directions
displace something, but not if direction 2 changes accelerations and multipliers alone, as parameters that change forces
only do: G a is linear in a, and G^T lambda in lambda.
"""
import copy

import numpy as np

from liedyn.lie.algebra import ad, add6, dot6, inertia_in_parent, inertia_times, minus_ad_dual, sub6
from liedyn.linear.sensitivity.changes import (
    ARMATURE, CHANGES, DAMPING, GRAVITY, INERTIA, STIFFNESS, change_of, make_changes,
)
from liedyn.linear.sensitivity.element_sensitivity import Acting, element_variations_size, vary_elements
from liedyn.linear.sensitivity.law_sensitivity import Slopes
from liedyn.linear.sensitivity.link_sensitivity import Along, Columns, add_to
from liedyn.linear.sensitivity.partials import partial_states
from liedyn.linear.sensitivity.two_frames import Rows
from liedyn.linear.sensitivity.variations import MOTION, ByParameters, Motion, Varied, variations_size, vary_both
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, inline_array, late
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, splat, store, take_vector
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.loops import all_derivatives
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.mechanics.tree.kinematics import S, acceleration_of, of_dof, twist_of, world_motion, world_pose, world_size
from liedyn.mechanics.tree.tangent_recursion import (
    ADDED, DA, DV, ETA, VARIATION, put_added, variation_of, vary_accelerations, vary_velocities,
)
from liedyn.model.calls.batches import batch
from liedyn.model.packed import N_LINKS, N_VIRTUAL
from liedyn.model.packed_records import (
    MODEL, dof_count, first_dof, get3, get6, get_inertia, inertia, link_count, parent, zero3,
)


def custom_rows(robot):
    """A mask of the users' rows, or None if there are none."""
    names = {each.name for each in robot.model.constraints if each.kind == "custom"} & set(robot.active)
    return np.isin(robot.row_owners, list(names)) if names else None


def add_custom(robot, custom, motion, along, found):
    """Adds the variations of users' rows to those of all others, in the arrays of `Variations`.

    Raises InputError if a user's function fails.
    """
    (one, two, N_12, X_12), rows = along, found.rows
    packed, mask = robot.packed._replace(floats=robot.packed.floats.copy()), custom[:, None]
    for b, (q, v, a, lam) in enumerate(zip(*motion)):
        def slopes(v, a, lam, q=q):
            psi_q, phi_q, phi_v, force_q = all_derivatives(packed, q, v, a, np.where(custom, lam, 0.0))
            return psi_q * mask, phi_q * mask, phi_v * mask, force_q

        G = terms_kernel(packed, q, v, np.empty(0))[2] * mask
        (psi_q, phi_q, phi_v, force_q), (still, *_) = slopes(v, a, lam), slopes(0.0 * v, a, lam)
        N, X, A, L = (x[b] for x in two)
        found.force[b] += force_q @ N + G.T @ L
        rows.g[b] += G @ N
        rows.psi[b] += psi_q @ N + G @ X
        rows.phi[b] += phi_q @ N + phi_v @ X + G @ A
        rows.psi_mixed[b] += psi_q @ N_12[b] + G @ X_12[b]
        for c in np.flatnonzero(one.X[b].any(axis=1) & N.any()):
            rows.psi_mixed[b, c] += (slopes(one.X[b, c], a, lam)[0] - still) @ N
        for j in np.flatnonzero((X != 0.0).any(axis=0) | (A != 0.0).any(axis=0) | (L != 0.0).any(axis=0)):
            by_X, _, _, by_L = slopes(np.ascontiguousarray(X[:, j]), a, np.ascontiguousarray(L[:, j]))
            by_A = slopes(v, a + A[:, j], lam)[1] - phi_q
            rows.psi_mixed[b, :, :, j] += one.N[b] @ (by_X - still).T
            rows.phi_mixed[b, :, :, j] += one.N[b] @ by_A.T
            found.mixed[b, :, :, j] += one.N[b] @ by_L.T
    raise_errors(robot.functions)


COLUMNS = group(Columns, *[MATRIX] * 4)


@inline
def vary_motions(model, work, columns, b, variations):
    """Displacements of all links along block b, and variations of their twists; of their accelerations the part DA for
    constant a, and the part ADDED by its variation."""
    vary_velocities(SCALAR, model, work, columns.N, columns.X, b, variations)
    vary_accelerations(SCALAR, model, work, True, columns.X, b, variations)
    for i in range(link_count(model)):
        put_added(SCALAR, model, work, i, columns.A, b, variations)


@inline
def bear_variation(model, work, variations, i, wrench, row, b, out):
    """Adds to the rows from `row` on the forces of joints, from link i to the ground, by dF and by F as they turn, for
    a wrench (F, dF)."""
    (F, dF), width = wrench, out.shape[1] // WIDTH
    while i >= 0:
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            add_to(out, width * (row + j) + b, dot6(get6(SCALAR, work, of_dof(model, j, S)), dF))
        p = parent(model, i)
        turn = sub6(variation_of(variations, i, ETA), variation_of(variations, p, ETA))
        i, dF = p, add6(dF, minus_ad_dual(turn, F))


@inline
def vary_change(model, work, columns, variations, change, row, b, out):
    """Adds the effect of one change to the rows of its parameter."""
    kind, what, numbers, at = change
    k, x = out.shape[1] // WIDTH * what + b, load(SCALAR, numbers, at)
    if kind == INERTIA:
        V, A = twist_of(SCALAR, work, what), acceleration_of(SCALAR, model, work, what)
        dI = inertia_in_parent(world_pose(SCALAR, work, what), get_inertia(SCALAR, numbers, at))
        dV, dA = variation_of(variations, what, DV), variation_of(variations, what, DA)
        dA = add6(dA, variation_of(variations, what, ADDED))
        F = add6(inertia_times(dI, A), minus_ad_dual(V, inertia_times(dI, V)))
        dF = add6(inertia_times(dI, dA), minus_ad_dual(V, inertia_times(dI, dV)))
        dF = add6(dF, minus_ad_dual(dV, inertia_times(dI, V)))
        bear_variation(model, work, variations, what, (F, dF), row, b, out)
    elif kind == GRAVITY:
        gx, gy, gz = get3(SCALAR, numbers, at)
        g = zero3(SCALAR), (-gx, -gy, -gz)
        for i in range(link_count(model)):
            I = inertia_in_parent(world_pose(SCALAR, work, i), inertia(model, i))
            F = inertia_times(I, g), inertia_times(I, ad(g, variation_of(variations, i, ETA)))
            bear_variation(model, work, variations, i, F, row, b, out)
    else:
        width, zero = out.shape[1] // WIDTH, splat(LANES, 0.0)
        part = zero
        if kind == ARMATURE:
            part = load(LANES, columns.A, k)
        elif kind == DAMPING:
            part = load(LANES, columns.X, k)
        elif kind == STIFFNESS:
            part = load(LANES, columns.N, k)
        add_to(out, width * (row + what) + b, x * part)


@inline
def columns_at_rest_size(model):
    """Size of the workspace of `vary_at_rest`."""
    return WIDTH * (4 + VARIATION * link_count(model)) + world_size(model)


@late(MODEL, CHANGES, MOTION, COLUMNS, VECTOR, MATRIX)
def vary_at_rest(model, changes, motion, columns, work, out):
    """out (parameters nv, columns): variation of the forces of each parameter, nv rows, along padded columns."""
    work[0] = first_place(work)
    world = take_vector(work, world_size(model))
    variations = take_vector(work, WIDTH * VARIATION * link_count(model))
    world_motion(SCALAR, model, motion.q, motion.v, motion.a, world)
    n = columns.N.shape[0]
    for k in range(out.size // WIDTH):
        store(LANES, out, k, splat(LANES, 0.0))
    for b in range(out.shape[1] // WIDTH):
        vary_motions(model, world, columns, b, variations)
        for p in range(changes.first.size - 1):
            for c in range(changes.first[p], changes.first[p + 1]):
                vary_change(model, world, columns, variations, change_of(changes, c), n * p, b, out)


SHARED = 50_000
"""Links times columns times states above which threads are used."""


@inline_array
def motion_at(motion, b):
    """Row b of a `Motion`."""
    return Motion(motion.q[b], motion.v[b], motion.a[b], motion.lam[b])


@inline_array
def columns_at(columns, b):
    """Row b of `Columns`."""
    return Columns(columns.N[b], columns.X[b], columns.A[b], columns.L[b])


@inline_array
def along_at(along, two, b, c):
    """State b and column c of direction 1, with `two` for direction 2."""
    one = along.one
    return Along(Columns(one.N[b, c], one.X[b, c], one.A[b, c], one.L[b, c]), two, along.N_12[b, c], along.X_12[b, c])


@inline_array
def rows_at(rows, b, c):
    return Rows(rows.g[b, c], rows.psi[b, c], rows.phi[b, c], rows.psi_mixed[b, c], rows.phi_mixed[b, c])


@batch
def vary_states(begin, end, model, motion, changes, along, found):
    """`vary_both` at rows of states, for all columns of direction 1: each array has the axes (state, column, ...)."""
    work = np.empty(variations_size(model))
    for b in range(begin, end):
        at, two = motion_at(motion, b), columns_at(along.two, b)
        for c in range(along.N_12.shape[1]):
            out = Varied(found.force[b, c], found.mixed[b, c], rows_at(found.rows, b, c), rows_at(found.readers, b, c))
            vary_both(model, changes, at, along_at(along, two, b, c), work, out)


@batch
def vary_element_states(begin, end, model, acting, motion, changes, along, forces):
    """`vary_elements` at rows of states, added to the forces."""
    slopes, pushed, (force, mixed) = acting.slopes, acting.pushed, forces
    work = np.empty(element_variations_size(model, slopes.owners.size))
    for b in range(begin, end):
        at, two = motion_at(motion, b), columns_at(along.two, b)
        own = Slopes(slopes.rows[b], slopes.by_numbers[b], slopes.owners, slopes.cuts, slopes.records, slopes.numbers)
        for c in range(along.N_12.shape[1]):
            vary_elements(model, changes, Acting(own, pushed[b, c]), at, along_at(along, two, b, c), work,
                          (force[b, c], mixed[b, c]))


@batch
def at_rest_states(begin, end, model, motion, changes, columns, out):
    """`vary_at_rest` at rows of states."""
    work = np.empty(columns_at_rest_size(model))
    for b in range(begin, end):
        vary_at_rest(model, changes, motion_at(motion, b), columns_at(columns, b), work, out[b])


def forces_at_rest(robot, motion, changes, columns):
    """Forces of parameters that change forces only, and their variations along columns.

    Parameters
    ----------
    robot : Robot
    motion : Motion
    changes : list
        One list of changes for each parameter.
    columns : Columns
        Each array has shape (states, rows, columns).

    Returns
    -------
    force : ndarray, shape (states, nv, parameters)
    varied : ndarray, shape (states, columns, nv, parameters)
    """
    states, n, count, m = len(motion.q), robot.nv, columns.N.shape[2], len(robot.row_names)
    changes, width = make_changes(changes), WIDTH * -(-count // WIDTH)
    parameters = len(changes.first) - 1
    padded = Columns(*(np.concatenate([x, np.zeros((*x.shape[:2], width - count))], axis=2) for x in columns))
    out, force = np.empty((states, parameters * n, width)), np.empty((states, n, parameters))
    at_rest_states.on(states, states * parameters >= SHARED, robot.packed, motion, changes, padded, out)
    partial_states(robot.packed, motion, changes, ByParameters(force, *np.empty((3, states, m, parameters))))
    varied = out[..., :count].reshape(states, parameters, n, count)
    return force, varied.transpose(0, 3, 2, 1)


def brackets(robot, x, y):
    """ad_x y joint by joint, for displacements or velocities (..., nv): zero except for ball and free joints."""
    found = np.zeros(np.broadcast_shapes(x.shape, y.shape))
    for joint in robot.groups:
        turn, slide = slice(joint.start, joint.start + 3), slice(joint.start + 3, joint.stop)
        found[..., turn] = np.cross(x[..., turn], y[..., turn])
        if slide.start < slide.stop:  # the linear part: w x linear + v x angular
            found[..., slide] = np.cross(x[..., turn], y[..., slide]) + np.cross(x[..., slide], y[..., turn])
    return found


class Variations:
    """Variations of a robot's equations at rows of states.

    Parameters
    ----------
    robot : Robot
    motion : Motion
        Rows of q, v, a and lambda.
    changes : list
        For each parameter of direction 2 two lists of changes
        (`liedyn.linear.sensitivity.model_parameters.all_changes`).
    reads : bool
        True if the virtual velocities are needed.
    slopes : Slopes, optional
        Slopes of the laws of the force elements at these states, if the robot has any.
    """

    def __init__(self, robot, motion, changes, reads=False, slopes=None):
        self.robot, self.motion, self.count, self.reads = robot, motion, len(changes), reads
        self.changes, self.of_elements = (make_changes([each[k] for each in changes]) for k in range(2))
        self.slopes, self.width = slopes, WIDTH * -(-len(changes) // WIDTH)
        self.custom = custom_rows(robot)

    def of(self, motion):
        """Variations of the constraints alone, at other states."""
        found = copy.copy(self)
        found.motion, found.slopes, found.reads = motion, None, False
        return found

    def zeros(self, rows):
        """Zero variations of `rows` numbers along direction 2."""
        return np.zeros((len(self.motion.q), rows, self.count))

    def along(self, one, two, N_12=None, X_12=None, pushed=None):
        """Variations (states, columns of direction 1, rows, columns of direction 2).

        Parameters
        ----------
        one, two : Columns
            Each array has shape (states, rows, columns), or is None for zeros.
        N_12, X_12 : ndarray, shape (states, columns 1, nv, columns 2), optional
        pushed : ndarray, shape (states, columns 1, rows), optional
            Added to the forces of force elements along direction 1.

        Returns
        -------
        Varied
            Arrays; `readers` is empty unless `reads` is true.
        """
        robot, states = self.robot, len(self.motion.q)
        n, m = robot.nv, len(robot.row_names)
        along = self.directions(one, two, N_12, X_12)
        count = along.N_12.shape[1]
        nz = int(robot.packed.ints[N_VIRTUAL]) if self.reads else 0
        found = Varied(*np.empty((2, states, count, n, self.width)), *(
            Rows(*np.empty((5, states, count, size, self.width))) for size in (m, nz)))
        vary_states.on(states, states * count * self.width * robot.packed.ints.item(N_LINKS) >= SHARED, robot.packed,
                       self.motion, self.changes, along, found)
        if self.slopes is not None:
            self._add_elements(along, pushed, (found.force, found.mixed))
        if self.custom is not None:
            add_custom(robot, self.custom, self.motion, along, found)
        cut = [x[..., :self.count] for x in (found.force, found.mixed)]
        return Varied(*cut, *(Rows(*(x[..., :self.count] for x in each)) for each in (found.rows, found.readers)))

    def _add_elements(self, along, pushed, forces):
        if pushed is None:
            pushed = np.zeros((*along.N_12.shape[:2], self.slopes.rows.shape[1]))
        vary_element_states.on(len(self.motion.q), False, self.robot.elements.packed, Acting(self.slopes, pushed),
                               self.motion, self.of_elements, along, forces)

    def of_force_elements(self, one, two, pushed):
        """The mixed variations of the forces G^T f of force elements alone (states, columns 1, nv, columns 2);
        arguments as for `along`."""
        along = self.directions(one, two)
        force, mixed = np.zeros((2, *along.N_12.shape))
        self._add_elements(along, pushed, (force, mixed))
        return mixed[..., :self.count]

    def directions(self, one, two, N_12=None, X_12=None):
        """The arguments of `along` as kernels take them: direction 1 column by column, direction 2 padded."""
        states, n = len(self.motion.q), self.robot.nv
        sizes = n, n, n, len(self.robot.row_names)
        count = next((x.shape[2] for x in one if x is not None), 1)
        one = Columns(*(np.zeros((states, count, size)) if x is None else np.ascontiguousarray(x.swapaxes(1, 2))
                        for x, size in zip(one, sizes)))
        two = Columns(*(self._padded(x, (states, size)) for x, size in zip(two, sizes)))
        return Along(one, two, *(self._padded(x, (states, count, n)) for x in (N_12, X_12)))

    def _padded(self, x, shape):
        found = np.zeros((*shape, self.width))
        if x is not None:
            found[..., :self.count] = x
        return found
