"""The program in the form of solvers: without fixed unknowns, and scaled to size one.

The unknown curvature of constraint rows or of users' functions is approximated from exact gradients.

Except for the duration, the Lagrangian is a sum of functions of one node each, of its coordinates and inputs. The
gradient of each is known exactly at every iterate, so each Hessian block can be approximated by symmetric rank-one
updates

    B+ = B + r r^T / (r^T s)        r = y - B s

with s the change of the node's unknowns and y that of its gradient under the newest multipliers (partitioned secant
updates: Griewank and Toint 1982; rank one, since the curvature may have any sign: Conn, Gould and Toint 1991). As the
blocks are small, few iterations suffice, whatever the number of nodes. Jacobians of the last iterates are stored, so
that all updates use the newest multipliers. Known curvature is exact (`liedyn.tasks.optimal_motion.lagrangian`).

Transfer of the multipliers of limits from one mesh to another.

The multiplier of a limit along the motion is a density over time. The multiplier of its row at a node is that density
times the weight of the node, the time that it represents; so densities are interpolated at the nodes of another mesh.
Multipliers of equations then follow by least squares (`liedyn.tasks.optimal_motion.interior_point`).
"""
# mypy: ignore-errors

from collections import deque
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix, csc_matrix, diags_array

from liedyn.machine.errors import LiedynError
from liedyn.tasks.optimal_motion.bordered import least_squares, least_step


def densities_of(program, of_c, of_z):
    """By name of limits along the motion: times relative to the duration, and densities there.

    of_c and of_z are multipliers of the rows of c and of the limits of z; positive at active upper limits.
    """
    found = {}
    for name, places, part, weight in _limits(program):
        values = (of_c if isinstance(name, str) else of_z)[places] / weight
        found[name] = part, values
    return found


def multipliers_of(program, found):
    """Multipliers of the rows of c and of the limits of z for such densities; zero for names without densities."""
    of_c, of_z = np.zeros(len(program.labels)), np.zeros(len(program.scale))
    for name, places, part, weight in _limits(program):
        if name in found:
            (of_c if isinstance(name, str) else of_z)[places] = weight * np.interp(part, *found[name])
    return of_c, of_z


def _limits(program):
    """For each limit: its name (a pair for unknowns), indices of its multipliers, relative times, weights."""
    t = program.transcription
    layout = t.layout
    weights = _weights(t)
    rows = {}
    for row in np.flatnonzero(program.c_low < program.c_high):
        rows.setdefault(program.labels[row][0], []).append(row)
    for name, places in rows.items():
        part = np.array([program.labels[row][1] for row in places])
        order = np.argsort(part)
        part, places = part[order], np.array(places)[order]
        at_nodes = weights[np.minimum(np.searchsorted(t.part, part), len(weights) - 1)]
        yield name, places, part, at_nodes if len(part) > 1 else np.ones(1)
    of_nodes, of_inputs = layout.of_node(np.arange(layout.nodes)), layout.of_input(np.arange(layout.inputs))
    held = np.diff(t.mesh) if layout.inputs < layout.nodes else weights
    for kind, columns, weight in ("state", of_nodes, weights), ("input", of_inputs, held):
        for j, places in enumerate(columns.T):
            yield (kind, j), places, t.part[:len(places)], weight
    yield ("duration", 0), np.array([layout.size - 1]), np.ones(1), np.ones(1)


def _weights(t):
    """Lengths of time, relative to the duration, that nodes represent."""
    lengths = np.diff(t.part, prepend=0.0, append=1.0)
    return 0.5 * (lengths[1:] + lengths[:-1])


SKIPPED = 1e-3
"""An update is skipped if |r^T s| is below this part of |r| |s|: it would be as large as it is uncertain."""


class SecantBlocks:
    """Hessian blocks (count, size, size) of a part of the Lagrangian, over columns (count, size).

    Columns may be -1 for fixed unknowns.
    """

    def __init__(self, columns):
        self.columns, self._moves = columns, columns >= 0
        self.blocks = np.zeros((*columns.shape, columns.shape[1]))
        self._history = deque(maxlen=2 * columns.shape[1] + 2)

    def update(self, x, jacobian, multipliers):
        """Updates from unknowns x, the Jacobian there (sparse, by columns) and the newest multipliers."""
        if self._history and np.array_equal(self._history[-1][0], x):
            self._history.pop()
        self._history.append((x.copy(), jacobian.T.tocsr()))
        points = [(self._of_blocks(each), self._of_blocks(J @ multipliers)) for each, J in self._history]
        self.blocks[:] = 0.0
        for (x_0, g_0), (x_1, g_1) in zip(points, points[1:]):
            s, y = x_1 - x_0, g_1 - g_0
            r = y - np.einsum("bij,bj->bi", self.blocks, s)
            along = np.einsum("bi,bi->b", r, s)
            size = np.linalg.norm(r, axis=1) * np.linalg.norm(s, axis=1)
            good = (np.abs(along) > SKIPPED * size) & (size > 0.0)
            r = r[good]
            self.blocks[good] += r[:, :, None] * r[:, None, :] / along[good, None, None]

    def entries(self):
        """Entries, rows and columns of the sparse matrix."""
        shape = self.blocks.shape
        rows, columns = (np.broadcast_to(each, shape) for each in (self.columns[:, :, None], self.columns[:, None, :]))
        keep = (rows >= 0) & (columns >= 0)
        return self.blocks[keep], rows[keep], columns[keep]

    def _of_blocks(self, x):
        return np.where(self._moves, x[self.columns], 0.0)


FAR = 1e6
"""Cost and violations returned where a motion cannot be computed: solvers turn back."""
LEAST_COST = 1e-8
"""Smaller costs are zero: they are not scaled to one."""
OF_SIZES = 0.1
"""An initial cost below this part of the cost of inputs of their typical sizes is no scale for the optimum: at rest it
is zero."""


class Options(NamedTuple):
    """Options of a solver: iterations, tolerances, its own settings; `warm` are the `densities` of limits if the start
    is near the optimum, else None."""

    iterations: int
    optimality: float
    feasibility: float
    settings: dict
    warm: dict


class Problem:
    """The free unknowns x of a `Program`, and its cost, both divided by their scales.

    Attributes
    ----------
    low, high, c_low, c_high : ndarray
    best : ndarray
        The unknowns of the least merit so far: violations beyond the tolerance weigh more than the cost.
    failures : int
        Number of times that a motion could not be computed; `error` is the last error.
    """

    def __init__(self, program, z, feasibility, report=lambda iteration: None):
        self.program, self.feasibility, self._z, self._report = program, feasibility, z.copy(), report
        self.free, self.scale = program.free, program.scale[program.free]
        self.low, self.high = program.low[self.free] / self.scale, program.high[self.free] / self.scale
        self.c_low, self.c_high = program.c_low, program.c_high
        first = program.evaluate(z)
        self.cost_scale = max(abs(first.cost), LEAST_COST, OF_SIZES * self._cost_of_sizes(z))
        self.scaled_by_start = self.cost_scale == abs(first.cost)
        self._take_patterns(first.jacobian, len(z))
        self._known = program.known
        self._has_functions = program.cost.function is not None or program.cost.terminal is not None
        self.failures, self.error, self.best, self._least = 0, None, self.start(z), (np.inf, np.inf)
        self._key = self._value = None

    def _take_patterns(self, J, size):
        """Entries of the program's Jacobian that belong to this one, and the columns of the nodes' blocks."""
        number = np.full(size, -1)
        number[self.free] = np.arange(len(self.free))
        counts = np.diff(J.indptr)
        self._kept = np.flatnonzero(number[np.repeat(np.arange(size), counts)] >= 0)
        self.indices = J.indices[self._kept]
        self.indptr = np.concatenate([[0], np.cumsum(counts[self.free])])
        self._factors = np.repeat(self.scale, counts[self.free])
        layout = self.program.transcription.layout
        nodes = np.arange(layout.nodes)
        columns = number[np.hstack([layout.of_node(nodes), layout.of_input(np.minimum(nodes, layout.inputs - 1))])]
        columns[layout.inputs:, layout.x:] = -1  # the last knot of shooting has no inputs of its own
        self._of_rows, self._of_functions = SecantBlocks(columns), SecantBlocks(columns)

    def _cost_of_sizes(self, z):
        """The cost at z with inputs as large as their sizes."""
        program, layout = self.program, self.program.transcription.layout
        x, _, duration = layout.split(z)
        inputs = layout.split(program.scale)[1]
        return abs(program.evaluate(np.clip(layout.joined(x, inputs, duration), program.low, program.high)).cost)

    def start(self, z):
        """Unknowns for z, within their limits."""
        return np.clip(z[self.free] / self.scale, self.low, self.high)

    def carried(self, found):
        """Multipliers of c and of the limits of x for `densities` of limits."""
        of_c, of_z = multipliers_of(self.program, found)
        return of_c / self.cost_scale, of_z[self.free] * self.scale / self.cost_scale

    def densities(self, of_c, of_x):
        """`densities` of limits for multipliers of c and of the limits of x."""
        of_z = np.zeros(len(self._z))
        of_z[self.free] = of_x / self.scale * self.cost_scale
        return densities_of(self.program, of_c * self.cost_scale, of_z)

    def whole(self, x):
        """All unknowns z of the program."""
        z = self._z.copy()
        z[self.free] = x * self.scale
        return z

    def _at(self, x):
        """The program's value at x, None if the motion cannot be computed."""
        key = x.tobytes()
        if key != self._key:
            self._key, self._value = key, None
            try:
                self._value = self.program.evaluate(self.whole(x))
            except (LiedynError, FloatingPointError, np.linalg.LinAlgError) as error:
                self.failures, self.error = self.failures + 1, error
        return self._value

    def values(self, x):
        """Cost and c."""
        value = self._at(x)
        if value is None:
            return FAR, np.full(len(self.c_low), FAR)
        beyond = self.violation(value.c)
        merit = max(beyond - self.feasibility, 0.0), value.cost
        if merit < self._least:
            self._least, self.best = merit, x.copy()
        return value.cost / self.cost_scale, value.c

    def violation(self, c):
        """The largest violation of a row."""
        return float(np.maximum(self.c_low - c, c - self.c_high).max(initial=0.0))

    def gradient(self, x):
        """Gradient of the cost."""
        value = self._at(x)
        return (np.zeros(len(x)) if value is None else
                value.gradient[self.free] * self.scale / self.cost_scale)

    def jacobian_entries(self, x):
        value = self._at(x)
        return np.zeros(len(self.indices)) if value is None else value.jacobian.data[self._kept] * self._factors

    def jacobian(self, x):
        """Jacobian of c, sparse by columns."""
        shape = len(self.c_low), len(self.free)
        return csc_matrix((self.jacobian_entries(x), self.indices, self.indptr), shape=shape)

    def cost_hessian(self, x):
        """Hessian of the cost."""
        return self.hessian(x, None)

    def hessian(self, x, multipliers, of_cost=1.0):
        """Hessian of the Lagrangian (sparse): exact where the program knows it, else approximated."""
        parts, size, value = [], len(x), self._at(x)
        if value is not None:
            H = self.program.hessian(self.whole(x), of_cost / self.cost_scale, multipliers)
            H = H[self.free][:, self.free].tocoo()
            parts.append((H.data * self.scale[H.row] * self.scale[H.col], H.row, H.col))
        if of_cost and self._has_functions:
            if value is not None:
                slope = value.of_functions[self.free] * self.scale / self.cost_scale
                self._of_functions.update(x, csc_matrix(slope[None]), np.array([1.0]))
            entries, *at = self._of_functions.entries()
            parts.append((of_cost * entries, *at))
        if multipliers is not None and not self._known.all():
            if value is not None:
                self._of_rows.update(x, self.jacobian(x), np.where(self._known, 0.0, multipliers))
            parts.append(self._of_rows.entries())
        data, rows, columns = (np.concatenate(each) for each in zip(*parts)) if parts else (np.zeros(0),) * 3
        return coo_matrix((data, (rows.astype(np.int64), columns.astype(np.int64))), shape=(size, size)).tocsc()

    def iterated(self, iteration):
        """Called after each iteration."""
        self._report(iteration)

    def polished(self, x, steps=6):
        """The nearest unknowns that satisfy the equations and the limits that are violated, by Newton's method."""
        for _ in range(steps):
            value = self._at(x)
            if value is None:
                return self.best
            c = value.c
            beyond = np.where(c < self.c_low, c - self.c_low, np.where(c > self.c_high, c - self.c_high, 0.0))
            active = np.flatnonzero((self.c_low == self.c_high) | (np.abs(beyond) > 0.0))
            if np.abs(beyond).max(initial=0.0) <= 1e-3 * self.feasibility:
                break
            J = self.jacobian(x).tocsr()[active] @ diags_array(1.0 * ((x > self.low) & (x < self.high)))
            step = least_step(J, -beyond[active])
            if step is None:
                break
            trial = np.clip(x + step, self.low, self.high)
            after = self._at(trial)
            if after is None or not self.violation(after.c) < self.violation(c):
                break
            x = trial
        return x

    def refined(self, x, of_c, of_x):
        """Multipliers of c, with those of equations exact to rounding, the largest component of the gradient of the
        Lagrangian, and the largest product of a multiplier and the distance from its limit.

        Solvers compute multipliers from normal equations, which lose digits if the Jacobian is poorly conditioned.
        """
        J, g, equations = self.jacobian(x), self.gradient(x), self.c_low == self.c_high
        A, of_c = J.tocsr()[np.flatnonzero(equations)], of_c.copy()
        if equations.any():
            factor, count = least_squares(A, 1e-14), A.shape[0]
            for _ in range(4 if factor is not None else 0):
                slope = g + J.T @ of_c + of_x
                trial = of_c.copy()
                trial[equations] -= factor.solve(np.concatenate([slope, np.zeros(count)]))[len(x):]
                if not np.abs(g + J.T @ trial + of_x).max() < np.abs(slope).max():
                    break
                of_c = trial
        c, slope = self.values(x)[1], g + J.T @ of_c + of_x
        slack = max(_products(of_x, x, self.low, self.high),
                    _products(*(each[~equations] for each in (of_c, c, self.c_low, self.c_high))))
        return of_c, float(np.abs(slope).max(initial=0.0)), slack


def _products(multipliers, x, low, high):
    """The largest product of a multiplier and the distance from the nearer limit, if there is one."""
    distance = np.minimum(np.abs(x - low), np.abs(high - x))
    limited = np.isfinite(distance)
    return float(np.abs(multipliers[limited] * distance[limited]).max(initial=0.0))
