"""Direct collocation at Lobatto's points, in the chart of each interval.

In an interval of length h the coordinates x = (y, w) are the polynomial of degree s through x_0 whose rates at the s
points c_i (0 and 1 among them) are those of the motion,

    x_i = x_0 + h sum_j a_ij f(x_j, u_j)        i = 2 .. s

the method Lobatto IIIA of order 2 s - 2 (Hairer and Wanner 1996, IV.5): s = 3 is Hermite-Simpson. The interior points
are unknowns ("separated" form): the equations stay sparse and explicit in them for any s. The last point is the first
one of the next interval, expressed in the chart of this one. Inputs are unknowns at all points, continuous between
intervals, and polynomials of degree s - 1 within them. As the ends are points, conditions at knots are satisfied there
and not extrapolated, in contrast to Gauss or Radau points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.typed_decorators import once
from liedyn.tasks.optimal_motion.dynamics import motion_at, rates_in
from liedyn.tasks.optimal_motion.samples import Blocks, Layout, node_samples

if TYPE_CHECKING:
    from typing import Any


@once
def lobatto(s):
    """Points c (s,) in [0, 1], the matrix a (s, s) of integrals from 0 to c_i, and as columns the coefficients of
    the Lagrange polynomials, lowest power first."""
    inside = np.polynomial.legendre.Legendre.basis(s - 1).deriv().roots()
    c = np.concatenate([[0.0], 0.5 * (1.0 + np.sort(inside.real)), [1.0]])
    polynomials = np.linalg.inv(np.vander(c, increasing=True))
    powers = np.arange(1, s + 1)
    return c, (c[:, None] ** powers / powers) @ polynomials, polynomials


class Collocation:
    """A motion on a mesh of N intervals with s points each.

    Attributes
    ----------
    charts : Charts
        N + 1 charts, one about each knot; each is the chart of the interval that begins at its knot.
    mesh : ndarray, shape (N + 1,)
        Knots relative to the duration, from 0 to 1.
    layout : Layout
    part, row, chart : ndarray
        For all nodes: times relative to the duration, rows of inputs, indices of charts.
    """

    name = "collocation"
    motion_at: Any = staticmethod(motion_at)

    def __init__(self, charts, mesh, points):
        N, s = len(mesh) - 1, points
        self.charts, self.mesh, self.points = charts, mesh, points
        c, self._a, _ = lobatto(s)
        nodes = N * (s - 1) + 1
        self.layout = Layout(nodes, charts.sizes[1], nodes, len(charts.robot.actuator_names))
        lengths = np.diff(mesh)
        self.part = np.append((mesh[:-1, None] + lengths[:, None] * c[:-1]).ravel(), 1.0)
        self.row, self.chart = np.arange(nodes), np.append(np.repeat(np.arange(N), s - 1), N)
        self.knots = np.arange(N + 1) * (s - 1)
        self._nodes = np.arange(N)[:, None] * (s - 1) + np.arange(s)
        self.weights = np.zeros(nodes)
        np.add.at(self.weights, self._nodes, lengths[:, None] * self._a[-1])
        self._last = None

    def evaluate(self, z):
        """Samples at the nodes, samples of the quadrature (the same), defects and their Jacobian, the motion."""
        layout, charts, s, N = self.layout, self.charts, self.points, len(self.mesh) - 1
        x, u, duration = layout.split(z)
        q, v = charts.states(self.chart, x, self._last)
        self._last = q
        motion = self.motion_at(charts, self.chart, q, v, u)
        nodes = node_samples(layout, motion, self.part, duration, self.row, self.weights)

        which = self._nodes.ravel()
        of = rates_in(charts, np.repeat(np.arange(N), s), type(motion)(*(each[which] for each in motion)))
        of = type(of)(*(each.reshape(N, s, *each.shape[1:]) for each in of))
        h, n, nu = np.diff(self.mesh), layout.x, layout.nu
        change = np.einsum("ij,kjx->kix", self._a[1:], of.f) * h[:, None, None]
        defects = of.x[:, 1:] - of.x[:, :1] - duration * change
        entries = np.zeros((N, s - 1, n, s * (n + nu) + 1))
        for j in range(s):
            factor = -duration * h[:, None, None, None] * self._a[1:, j, None, None]
            entries[:, :, :, j * n:(j + 1) * n] = factor * of.df[:, None, j]
            entries[:, :, :, s * n + j * nu:s * n + (j + 1) * nu] = factor * of.df_du[:, None, j]
            if j > 0:
                entries[:, j - 1, :, j * n:(j + 1) * n] += of.dx[:, j]
        entries[:, :, :, :n] -= of.dx[:, None, 0]
        entries[..., -1] = -change
        columns = np.hstack([layout.of_node(self._nodes.ravel()).reshape(N, -1),
                             layout.of_input(self._nodes.ravel()).reshape(N, -1), np.full((N, 1), layout.size - 1)])
        rows = np.arange(N * (s - 1) * n).reshape(N, -1)
        blocks = Blocks(rows, columns, entries.reshape(N, (s - 1) * n, -1))
        return nodes, nodes, defects.ravel(), blocks, motion

    def bend(self, z, motion, multipliers, hessians):
        """Adds multipliers times defects to `NodeHessians`."""
        N, s, n = len(self.mesh) - 1, self.points, self.layout.x
        m, k, h, duration = multipliers.reshape(N, s - 1, n), np.arange(N), np.diff(self.mesh), z[-1]
        on_f = -h[:, None, None] * np.einsum("ij,kix->kjx", self._a[1:], m)
        on_x = np.concatenate([-m.sum(axis=1, keepdims=True), m], axis=1)
        for j, nodes in enumerate(self._nodes.T):
            here = type(motion)(*(each[nodes] for each in motion))
            hessians.add_rates(nodes, self.charts, k, here, on_x[:, j], duration * on_f[:, j])
            of = rates_in(self.charts, k, here)
            by = np.concatenate([of.df, of.df_du], axis=2)
            hessians.add_by_duration(nodes, np.einsum("kx,kxj->kj", on_f[:, j], by))

    def inside(self, z, motion, k, part):
        """Coordinates in charts k[i] and inputs at fractions of intervals k[i]: the polynomials of the solution."""
        duration, s, (_, _, polynomials) = z[-1], self.points, lobatto(self.points)
        nodes = self._nodes[k]
        of = [rates_in(self.charts, k, type(motion)(*(each[nodes[:, j]] for each in motion))) for j in range(s)]
        powers = np.arange(1, s + 1)
        integrals = (part[:, None] ** powers / powers) @ polynomials
        h = duration * np.diff(self.mesh)[k]
        x = of[0].x + h[:, None] * sum(integrals[:, j, None] * of[j].f for j in range(s))
        return x, self.inputs(z, k, part)

    def inputs(self, z, k, part):
        """Inputs at fractions of intervals k[i]."""
        values = part[:, None] ** np.arange(self.points) @ lobatto(self.points)[2]
        return np.einsum("ij,ijn->in", values, self.layout.split(z)[1][self._nodes[k]])
