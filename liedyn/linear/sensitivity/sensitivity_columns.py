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
from collections import namedtuple

import numpy as np

from liedyn.lie.algebra import ad, add6, dot6, inertia_in_parent, inertia_times, minus_ad_dual, sub6
from liedyn.linear.sensitivity.changes import (
    ARMATURE, CHANGES, DAMPING, GRAVITY, INERTIA, RECORD, STIFFNESS, make_changes,
)
from liedyn.linear.sensitivity.element_sensitivity import element_variations_size, vary_elements
from liedyn.linear.sensitivity.law_sensitivity import Slopes
from liedyn.linear.sensitivity.link_sensitivity import Directions, add_to
from liedyn.linear.sensitivity.partials import partial_states
from liedyn.linear.sensitivity.two_frames import Rows
from liedyn.linear.sensitivity.variations import MOTION, Motion, Varied, variations_size, vary_both
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, inline_array, late
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, integer, load, splat, store, take_vector
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.loops import all_derivatives
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.mechanics.tree.kinematics import S, acceleration_of, of_dof, twist_of, world_motion, world_pose, world_size
from liedyn.mechanics.tree.tangent_recursion import along_joint
from liedyn.model.calls.batches import batch
from liedyn.model.packed import N_LINKS, N_VIRTUAL
from liedyn.model.packed_records import (
    MODEL, dof_count, first_dof, get3, get6, get_inertia, inertia, link_count, parent, put6, zero3, zero6,
)


def custom_rows(robot):
    """A mask of the users' rows, or None if there are none."""
    names = {each.name for each in robot.model.constraints if each.kind == "custom"} & set(robot.active)
    return np.isin(robot.row_owners, list(names)) if names else None


def add_custom(robot, custom, motion, one, two, N_12, X_12, force, rows):
    """Adds the variations of users' rows to those of all others, in the arrays of `Variations`.

    Raises InputError if a user's function fails.
    """
    packed, mask = robot.packed._replace(floats=robot.packed.floats.copy()), custom[:, None]
    for b, (q, v, a, lam) in enumerate(zip(*motion)):
        def slopes(v, a, lam, q=q):
            psi_q, phi_q, phi_v, force_q = all_derivatives(packed, q, v, a, np.where(custom, lam, 0.0))
            return psi_q * mask, phi_q * mask, phi_v * mask, force_q

        G = terms_kernel(packed, q, v, np.empty(0))[2] * mask
        (psi_q, phi_q, phi_v, force_q), (still, *_) = slopes(v, a, lam), slopes(0.0 * v, a, lam)
        N, X, A, L = (x[b] for x in two)
        force[0, b] += force_q @ N + G.T @ L
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
            force[1, b, :, :, j] += one.N[b] @ by_L.T
    raise_errors(robot.functions)


COLUMNS = group(Directions, *[MATRIX] * 4)
TURN, ETA, DV, DA, VARIED = 0, 6, 12, 18, 24  # registers of each link


@inline
def varied(lanes, i, what):
    if i < 0:
        return zero6(LANES)
    return get6(LANES, lanes, VARIED * i + what)


@inline
def vary_motions(model, work, columns, b, lanes):
    """Turns, displacements and variations of twists and accelerations of all links along block b."""
    for i in range(link_count(model)):
        p, V = parent(model, i), twist_of(SCALAR, work, i)
        V_p, A_p = twist_of(SCALAR, work, p), acceleration_of(SCALAR, model, work, p)
        turn = along_joint(SCALAR, model, work, i, columns.N, b)
        pushed = along_joint(SCALAR, model, work, i, columns.X, b)
        dV = add6(add6(varied(lanes, p, DV), ad(V_p, turn)), pushed)
        dA = add6(add6(varied(lanes, p, DA), ad(A_p, turn)), add6(ad(dV, sub6(V, V_p)), ad(V, pushed)))
        put6(LANES, lanes, VARIED * i + TURN, turn)
        put6(LANES, lanes, VARIED * i + ETA, add6(varied(lanes, p, ETA), turn))
        put6(LANES, lanes, VARIED * i + DV, dV)
        put6(LANES, lanes, VARIED * i + DA, add6(dA, along_joint(SCALAR, model, work, i, columns.A, b)))


@inline
def bear_variation(model, work, lanes, i, F, dF, row, b, out):
    """Adds to the rows from `row` on the forces of joints, from link i to the ground, by dF and by F as they turn."""
    width = out.shape[1] // WIDTH
    while i >= 0:
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            add_to(out, width * (row + j) + b, dot6(get6(SCALAR, work, of_dof(model, j, S)), dF))
        dF = add6(dF, minus_ad_dual(varied(lanes, i, TURN), F))
        i = parent(model, i)


@inline
def vary_change(model, work, columns, lanes, kind, what, numbers, at, row, b, out):
    """Adds the effect of one change to the rows of its parameter."""
    k, x = out.shape[1] // WIDTH * what + b, load(SCALAR, numbers, at)
    if kind == INERTIA:
        V, A = twist_of(SCALAR, work, what), acceleration_of(SCALAR, model, work, what)
        dI, dV = inertia_in_parent(world_pose(SCALAR, work, what), get_inertia(SCALAR, numbers, at)), varied(
            lanes, what, DV)
        F = add6(inertia_times(dI, A), minus_ad_dual(V, inertia_times(dI, V)))
        dF = add6(inertia_times(dI, varied(lanes, what, DA)), minus_ad_dual(V, inertia_times(dI, dV)))
        dF = add6(dF, minus_ad_dual(dV, inertia_times(dI, V)))
        bear_variation(model, work, lanes, what, F, dF, row, b, out)
    elif kind == GRAVITY:
        gx, gy, gz = get3(SCALAR, numbers, at)
        g = zero3(SCALAR), (-gx, -gy, -gz)
        for i in range(link_count(model)):
            I = inertia_in_parent(world_pose(SCALAR, work, i), inertia(model, i))
            bear_variation(model, work, lanes, i, inertia_times(I, g), inertia_times(I, ad(g, varied(lanes, i, ETA))),
                           row, b, out)
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
    return WIDTH * (4 + VARIED * link_count(model)) + world_size(model)


@late(MODEL, CHANGES, MOTION, COLUMNS, VECTOR, MATRIX)
def vary_at_rest(model, changes, motion, columns, work, out):
    """out (parameters nv, columns): variation of the forces of each parameter, nv rows, along padded columns."""
    work[0] = first_place(work)
    world = take_vector(work, world_size(model))
    lanes = take_vector(work, WIDTH * VARIED * link_count(model))
    world_motion(SCALAR, model, motion.q, motion.v, motion.a, world)
    n = columns.N.shape[0]
    for k in range(out.size // WIDTH):
        store(LANES, out, k, splat(LANES, 0.0))
    for b in range(out.shape[1] // WIDTH):
        vary_motions(model, world, columns, b, lanes)
        for p in range(changes.first.size - 1):
            for c in range(changes.first[p], changes.first[p + 1]):
                vary_change(model, world, columns, lanes, integer(changes.records, RECORD * c),
                            integer(changes.records, RECORD * c + 1), changes.numbers,
                            integer(changes.records, RECORD * c + 2), n * p, b, out)


SHARED = 50_000
"""Links times columns times states above which threads are used."""

Columns = namedtuple("Columns", "N X A L")
"""Directions of states: displacements of q, variations of v, a and lambda; the last axis numbers the columns."""


@inline_array
def _rows_at(rows, b, c):
    return Rows(rows.g[b, c], rows.psi[b, c], rows.phi[b, c], rows.psi_mixed[b, c], rows.phi_mixed[b, c])


@batch
def vary_states(begin, end, model, motion, changes, one, two, N_12, X_12, force, rows, readers):
    """`vary_both` at rows of states, for all columns of direction 1: each array has the axes (state, column, ...)."""
    work = np.empty(variations_size(model))
    for b in range(begin, end):
        at = Motion(motion.q[b], motion.v[b], motion.a[b], motion.lam[b])
        along = Directions(two.N[b], two.X[b], two.A[b], two.L[b])
        for c in range(one.N.shape[1]):
            out = Varied(force[0][b, c], force[1][b, c], _rows_at(rows, b, c), _rows_at(readers, b, c))
            vary_both(model, changes, at, Directions(one.N[b, c], one.X[b, c], one.A[b, c], one.L[b, c]), along,
                      N_12[b, c], X_12[b, c], work, out)


@batch
def vary_element_states(begin, end, model, slopes, pushed, motion, changes, one, two, N_12, X_12, force):
    """`vary_elements` at rows of states, added to the forces."""
    work = np.empty(element_variations_size(model, slopes.owners.size))
    for b in range(begin, end):
        at = Motion(motion.q[b], motion.v[b], motion.a[b], motion.lam[b])
        along = Directions(two.N[b], two.X[b], two.A[b], two.L[b])
        own = Slopes(slopes.rows[b], slopes.by_numbers[b], slopes.owners, slopes.cuts, slopes.records, slopes.numbers)
        for c in range(one.N.shape[1]):
            vary_elements(model, changes, own, pushed[b, c], at,
                          Directions(one.N[b, c], one.X[b, c], one.A[b, c], one.L[b, c]), along, N_12[b, c], X_12[b, c],
                          work, force[0][b, c], force[1][b, c])


@batch
def at_rest_states(begin, end, model, motion, changes, columns, out):
    """`vary_at_rest` at rows of states."""
    work = np.empty(columns_at_rest_size(model))
    for b in range(begin, end):
        at = Motion(motion.q[b], motion.v[b], motion.a[b], motion.lam[b])
        along = Directions(columns.N[b], columns.X[b], columns.A[b], columns.L[b])
        vary_at_rest(model, changes, at, along, work, out[b])


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
    padded = Directions(*(np.concatenate([x, np.zeros((*x.shape[:2], width - count))], axis=2) for x in columns))
    out, force = np.empty((states, parameters * n, width)), np.empty((states, n, parameters))
    at_rest_states.on(states, states * parameters >= SHARED, robot.packed, motion, changes, padded, out)
    partial_states(robot.packed, motion, changes, force, *np.empty((3, states, m, parameters)))
    varied = out[..., :count].reshape(states, parameters, n, count)
    return force, varied.transpose(0, 3, 2, 1)


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
        one, two, N_12, X_12 = self.directions(one, two, N_12, X_12)
        count = one.N.shape[1]
        nz = int(robot.packed.ints[N_VIRTUAL]) if self.reads else 0
        force = np.empty((2, states, count, n, self.width))
        rows, readers = (Rows(*np.empty((5, states, count, size, self.width))) for size in (m, nz))
        vary_states.on(states, states * count * self.width * robot.packed.ints.item(N_LINKS) >= SHARED, robot.packed,
                       self.motion, self.changes, one, two, N_12, X_12, (force[0], force[1]), rows, readers)
        if self.slopes is not None:
            if pushed is None:
                pushed = np.zeros((states, count, self.slopes.rows.shape[1]))
            vary_element_states.on(states, False, robot.elements.packed, self.slopes, pushed, self.motion,
                                   self.of_elements, one, two, N_12, X_12, (force[0], force[1]))
        if self.custom is not None:
            add_custom(robot, self.custom, self.motion, one, two, N_12, X_12, force, rows)
        return Varied(*force[..., :self.count], *(Rows(*(x[..., :self.count] for x in each)) for each in (
            rows, readers)))

    def directions(self, one, two, N_12=None, X_12=None):
        """The arguments of `along` as kernels take them: direction 1 column by column, direction 2 padded."""
        states, n = len(self.motion.q), self.robot.nv
        sizes = n, n, n, len(self.robot.row_names)
        count = next((x.shape[2] for x in one if x is not None), 1)
        one = Directions(*(np.zeros((states, count, size)) if x is None else np.ascontiguousarray(x.swapaxes(1, 2))
                           for x, size in zip(one, sizes)))
        two = Directions(*(self._padded(x, (states, size)) for x, size in zip(two, sizes)))
        return one, two, *(self._padded(x, (states, count, n)) for x in (N_12, X_12))

    def _padded(self, x, shape):
        found = np.zeros((*shape, self.width))
        if x is not None:
            found[..., :self.count] = x
        return found
