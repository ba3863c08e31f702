"""The nonlinear program of a motion: unknowns, cost, equations and inequalities, with sparse derivatives.

    minimize J(z)    subject to    c_low <= c(z) <= c_high    z_low <= z <= z_high

c contains the defects of the transcription, limits at all nodes, conditions at single nodes, and periodicity. Unknowns
with equal limits are constants for the solver (`free` marks the others). Inputs and duration are scaled to size one.
"""
# mypy: ignore-errors
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_matrix

from liedyn.linear.sensitivity.sensitivities import without_second_derivatives
from liedyn.mechanics.tree.places import places_of
from liedyn.tasks.optimal_motion.cost import own
from liedyn.tasks.optimal_motion.dynamics import rates_in
from liedyn.tasks.optimal_motion.lagrangian import NodeHessians, is_known, second_motion_of
from liedyn.tasks.optimal_motion.limits import Linear, Virtual
from liedyn.tasks.optimal_motion.samples import Blocks


class Demands(NamedTuple):
    """The conditions on a motion, independent of the transcription.

    `along`: rows along the motion; limits of the inputs (nu, 2) and of the duration (2,); conditions as pairs (fraction
    of the duration, Condition), including start and goal; `shift` (nv,) of a periodic motion, or None.
    """

    rows: list
    of_inputs: np.ndarray
    duration: tuple
    conditions: list
    shift: np.ndarray


class Value(NamedTuple):
    """The program at one z: cost, gradient, c, its Jacobian (sparse), samples at the nodes, motion.

    For the cost: the part of its gradient that users' functions contribute, and blocks of the Gauss-Newton Hessian of
    the rest; `second()` is the `SecondMotion` of the nodes.
    """

    cost: float
    gradient: np.ndarray
    of_functions: np.ndarray
    c: np.ndarray
    jacobian: csc_matrix
    hessian: Blocks
    nodes: object
    motion: object
    second: object


class Program:
    """The program at the top of this file; `scale` has the sizes of all unknowns, `labels` the meaning of each row of
    c.

    `is_exact`: `hessian` is exact for the cost without users' functions, and for the `known` rows of c.
    """

    def __init__(self, transcription, demands, cost, scale_u, scale_t):
        self.transcription, self.demands, self.cost = transcription, demands, cost
        layout, robot = transcription.layout, transcription.charts.robot
        self.scale = layout.joined(np.ones((layout.nodes, layout.x)), np.tile(scale_u, (layout.inputs, 1)), scale_t)
        self._limit_unknowns(layout, robot)
        self._place_rows(layout)
        self._jacobian, self._hessian, self._last = _Pattern(), _Pattern(), (None, None)
        self.is_exact = transcription.name == "collocation" and without_second_derivatives(robot) is None
        self.known = np.full(len(self.labels), self.is_exact)
        first = self._defects
        for rows, where in self._placed:
            self.known[first:first + len(where) * len(rows.names)] &= is_known(robot, rows)
            first += len(where) * len(rows.names)

    def _limit_unknowns(self, layout, robot):
        """Limits of z: of inputs, the duration, whole states, and coordinates of trees, which are their own charts."""
        t, charts = self.transcription, self.transcription.charts
        x_low, u_low = np.full((layout.nodes, layout.x), -np.inf), np.full((layout.inputs, layout.nu), -np.inf)
        x_high, u_high, p = -x_low, -u_low, charts.sizes[0]
        u_low[:], u_high[:] = self.demands.of_inputs.T
        self._rows, plain = [], not robot.row_names and not charts.groups
        for rows in self.demands.rows:
            if plain and isinstance(rows, Linear):
                at = np.array(rows._dofs) + (p if rows.of_velocity else 0)
                zero = 0.0 if rows.of_velocity else charts.q[t.chart][:, rows._places]
                x_low[:, at] = np.maximum(x_low[:, at], rows.low - zero)
                x_high[:, at] = np.minimum(x_high[:, at], rows.high - zero)
            else:
                self._rows.append(rows)
        self.fixed_q, self.fixed_v = np.zeros((2, layout.nodes), bool)
        for part, condition in self.demands.conditions:
            i = self.node(part)
            if condition.q is not None:
                y = charts.read(t.chart[[i]], condition.q[None], np.zeros((1, robot.nv)))[0, :p]
                x_low[i, :p] = x_high[i, :p] = y
                self.fixed_q[i] = True
            if condition.v is not None:
                x_low[i, p:] = x_high[i, p:] = charts.R_w[t.chart[i]] @ condition.v
                self.fixed_v[i] = True
        low, high = self.demands.duration
        self.low, self.high = layout.joined(x_low, u_low, low), layout.joined(x_high, u_high, high)
        self.free = np.flatnonzero(self.low < self.high)

    def node(self, part):
        """Index of the node at a fraction of the duration."""
        return int(np.argmin(np.abs(self.transcription.part - part)))

    def _place_rows(self, layout):
        """Rows at each node, and limits and labels of all rows of c."""
        t, x = self.transcription, layout.x
        every, self._placed = np.arange(layout.nodes), []
        for rows in self._rows:
            fixed = self.fixed_q & self.fixed_v
            if isinstance(rows, (Linear, Virtual)) and not rows.of_velocity:
                fixed = self.fixed_q
            self._placed.append((rows, every if rows.with_inputs else every[~fixed]))
        for part, condition in self.demands.conditions:
            self._placed += [(rows, np.array([self.node(part)])) for rows in condition.rows]
        count = len(t.mesh) - 1
        per_interval = (layout.nodes - 1) // count * x
        self.labels = [("dynamics", t.mesh[row // per_interval]) for row in range(count * per_interval)]
        self._defects = len(self.labels)
        low, high = [np.zeros(self._defects)], [np.zeros(self._defects)]
        for rows, nodes in self._placed:
            self.labels += [(name, t.part[i]) for i in nodes for name in rows.names]
            low.append(np.tile(rows.low, len(nodes)))
            high.append(np.tile(rows.high, len(nodes)))
        if self.demands.shift is not None:
            extra = x + (layout.nu if t.name == "collocation" else 0)
            self.labels += [("periodicity", 1.0)] * extra
            low.append(np.zeros(extra))
            high.append(np.zeros(extra))
        self.c_low, self.c_high = np.concatenate(low), np.concatenate(high)

    def evaluate(self, z):
        """The `Value` at z; the last one is stored."""
        key = z.tobytes()
        if self._last[0] != key:
            self._last = key, self._evaluate(z)
        return self._last[1]

    def _evaluate(self, z):
        layout, duration = self.transcription.layout, z[-1]
        nodes, quadrature, defects, blocks, motion = self.transcription.evaluate(z)
        c, found = [defects], [blocks]
        first = len(defects)
        for rows, where in self._placed:
            s = nodes.at(where)
            values, *by = rows.evaluate(s)
            entries = sum(each @ d for each, d in zip(by[:3], (s.dq, s.dv, s.du)) if each is not None)
            if by[3] is not None:
                entries = entries + by[3][:, :, None] * s.dt[:, None]
            c.append(values.ravel())
            found.append(Blocks(first + np.arange(values.size).reshape(values.shape), s.columns, entries))
            first += values.size
        if self.demands.shift is not None:
            c_of, blocks_of = self._periodic(z, motion, first)
            c.append(c_of)
            found += blocks_of
        value, by, mean, H = self.cost.running(quadrature, duration)
        gradient, of_functions = np.zeros((2, layout.size))
        np.add.at(gradient, quadrature.columns, by)
        gradient[-1] += mean
        if self.cost.function is not None:
            more, by, mean = self.cost.of_function(quadrature, duration)
            value += more
            np.add.at(of_functions, quadrature.columns, by)
            of_functions[-1] += mean
        if self.cost.terminal is not None:
            s = nodes.at(slice(-1, None))
            end, slope = own(self.cost.terminal, s)
            value += end[0]
            of_functions[s.columns[0]] += slope[0]
        c = np.concatenate(c)
        jacobian = self._jacobian.matrix(found, (len(c), layout.size))
        return Value(value, gradient + of_functions, of_functions, c, jacobian,
                     Blocks(quadrature.columns, quadrature.columns, H), nodes, motion,
                     second_motion_of(self.transcription, motion))

    def hessian(self, z, of_cost, multipliers):
        """Hessian of of_cost times the cost without users' functions plus multipliers times the `known` rows of c
        (sparse).

        If `is_exact` is false it is the Gauss-Newton Hessian of the cost alone.
        """
        t, value = self.transcription, self.evaluate(z)
        blocks = value.hessian._replace(entries=of_cost * value.hessian.entries)
        if self.is_exact:
            hessians = NodeHessians(t, value.motion)
            if of_cost:
                self.cost.bend(value.nodes, value.motion, of_cost * z[-1], hessians)
            if multipliers is not None:
                self._bend(z, value, multipliers, hessians)
            blocks = blocks._replace(entries=blocks.entries + hessians.total(value.second))
        return self._hessian.matrix([blocks], (len(z), len(z)))

    def _bend(self, z, value, multipliers, hessians):
        """Adds multipliers times known rows to `NodeHessians`."""
        t, first = self.transcription, self._defects
        t.bend(z, value.motion, multipliers[:first], hessians)
        for rows, where in self._placed:
            m = multipliers[first:first + len(where) * len(rows.names)].reshape(len(where), -1)
            if is_known(t.charts.robot, rows) and len(where):
                hessians.add_rows(rows, where, value.nodes.at(where), m, value.second)
            first += m.size
        if self.demands.shift is not None:
            end, on_x = self._shifted_end(value.motion), multipliers[None, first:first + t.layout.x]
            hessians.add_rates([-1], t.charts, np.zeros(1, np.int64), end, on_x, 0.0 * on_x)

    def _shifted_end(self, motion):
        """The motion at the end, moved back by the shift of a periodic motion."""
        end, places = type(motion)(*(each[-1:] for each in motion)), places_of(self.transcription.charts.robot)
        q = end.q.copy()
        q[:, places[places >= 0]] -= self.demands.shift[places >= 0]
        return end._replace(q=q)

    def _periodic(self, z, motion, first):
        """The end, moved back by the shift, equals the start: in the chart of the start."""
        layout, charts = self.transcription.layout, self.transcription.charts
        of, (x, u, _) = rates_in(charts, np.zeros(1, np.int64), self._shifted_end(motion)), layout.split(z)
        c, rows = [of.x[0] - x[0]], first + np.arange(layout.x)[None]
        blocks = [Blocks(rows, layout.of_node([layout.nodes - 1]), of.dx),
                  Blocks(rows, layout.of_node([0]), -np.eye(layout.x)[None])]
        if self.transcription.name == "collocation":
            c.append(u[-1] - u[0])
            rows, one = first + layout.x + np.arange(layout.nu)[None], np.eye(layout.nu)[None]
            blocks += [Blocks(rows, layout.of_input([layout.inputs - 1]), one),
                       Blocks(rows, layout.of_input([0]), -one)]
        return np.concatenate(c), blocks

    def violations(self, z):
        """How far each row of c, and each unknown, is beyond its limits."""
        c = self.evaluate(z).c
        beyond = np.maximum(np.maximum(self.c_low - c, c - self.c_high), 0.0)
        return beyond, np.maximum(np.maximum(self.low - z, z - self.high), 0.0)


class _Pattern:
    """Sums dense blocks into a sparse matrix; the places of the entries are computed once."""

    def __init__(self):
        self._to = None

    def matrix(self, blocks, shape):
        entries = np.concatenate([np.broadcast_to(b.entries, (*b.rows.shape, b.columns.shape[1])).ravel()
                                  for b in blocks])
        if self._to is None:
            shapes = [(*b.rows.shape, b.columns.shape[1]) for b in blocks]
            rows, columns = (np.concatenate([np.broadcast_to(x, shape).ravel() for x, shape in zip(each, shapes)])
                             for each in ([b.rows[:, :, None] for b in blocks], [b.columns[:, None] for b in blocks]))
            places, self._to = np.unique(columns * shape[0] + rows, return_inverse=True)
            self._indices = places % shape[0]
            self._indptr = np.searchsorted(places, np.arange(shape[1] + 1) * shape[0])
        data = np.bincount(self._to, entries, len(self._indices))
        return csc_matrix((data, self._indices.copy(), self._indptr.copy()), shape=shape)
