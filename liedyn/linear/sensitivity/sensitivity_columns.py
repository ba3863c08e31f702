"""Variations of states in many directions at once, from Python: rows of states, columns of directions.

Direction 1 is one column of a linearization after the other, direction 2 one parameter, or one column, for each lane.
"""
import copy
from collections import namedtuple

import numpy as np

from liedyn.linear.sensitivity.changes import make_changes
from liedyn.linear.sensitivity.columns_at_rest import columns_at_rest_size, vary_at_rest
from liedyn.linear.sensitivity.custom_sensitivity import add_custom, custom_rows
from liedyn.linear.sensitivity.element_sensitivity import element_variations_size, vary_elements
from liedyn.linear.sensitivity.law_sensitivity import Slopes
from liedyn.linear.sensitivity.link_sensitivity import Directions
from liedyn.linear.sensitivity.partials import partial_states
from liedyn.linear.sensitivity.two_frames import Rows
from liedyn.linear.sensitivity.variations import Motion, Varied, variations_size, vary_both
from liedyn.machine.compiled.jit import inline_array
from liedyn.machine.simd.lanes import WIDTH
from liedyn.model.calls.batches import batch
from liedyn.model.packed import N_LINKS, N_VIRTUAL

SHARED = 50_000
"""Links times columns times states from which on threads are worth waking."""

Columns = namedtuple("Columns", "N X A L")
"""Directions of states: displacements of q, variations of v, a and lambda, the last axis numbers the columns."""


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
    """`vary_elements` likewise, added to the forces."""
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
    """Of parameters that displace nothing the forces (states, nv, parameters), and how they vary along columns.

    Parameters
    ----------
    robot : Robot
    motion : Motion
    changes : list
        One list of changes for each parameter.
    columns : Columns
        Each array (states, rows, columns).

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
        Of the parameters along direction 2: two lists of changes each
        (`liedyn.linear.sensitivity.model_parameters.all_changes`).
    reads : bool
        Are virtual velocities asked for?
    slopes : Slopes, optional
        Of the laws of the force elements at these states, if the robot has some.
    """

    def __init__(self, robot, motion, changes, reads=False, slopes=None):
        self.robot, self.motion, self.count, self.reads = robot, motion, len(changes), reads
        self.changes, self.of_elements = (make_changes([each[k] for each in changes]) for k in range(2))
        self.slopes, self.width = slopes, WIDTH * -(-len(changes) // WIDTH)
        self.custom = custom_rows(robot)

    def of(self, motion):
        """The same of the constraints at other states."""
        found = copy.copy(self)
        found.motion, found.slopes, found.reads = motion, None, False
        return found

    def zeros(self, rows):
        """No variation of so many numbers along direction 2."""
        return np.zeros((len(self.motion.q), rows, self.count))

    def along(self, one, two, N_12=None, X_12=None, pushed=None):
        """Variations (states, columns of direction 1, rows, columns of direction 2).

        Parameters
        ----------
        one, two : Columns
            Each array (states, rows, columns), or None for zeros.
        N_12, X_12 : ndarray, shape (states, columns 1, nv, columns 2), optional
        pushed : ndarray, shape (states, columns 1, rows), optional
            What direction 1 adds to the forces of force elements.

        Returns
        -------
        Varied
            Of arrays; `readers` is empty unless they are asked for.
        """
        robot, states = self.robot, len(self.motion.q)
        n, m = robot.nv, len(robot.row_names)
        one, two, N_12, X_12 = self.directions(one, two, N_12, X_12)
        count = one.N.shape[1]
        nz = int(robot.ints[N_VIRTUAL]) if self.reads else 0
        force = np.empty((2, states, count, n, self.width))
        rows, readers = (Rows(*np.empty((5, states, count, size, self.width))) for size in (m, nz))
        vary_states.on(states, states * count * self.width * robot.ints.item(N_LINKS) >= SHARED, robot.packed,
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
