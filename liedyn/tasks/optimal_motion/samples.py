"""Points at which functions of (t, q, v, u) are evaluated, with the derivatives of the state by the unknowns.

The unknowns are one array z: coordinates x of all nodes, then rows of inputs, then the duration. A sample depends on
few of them, its `columns`.
"""
from typing import NamedTuple

import numpy as np


class Samples(NamedTuple):
    """Times (count,), states and inputs at them, and their derivatives by z[columns], (count, ..., columns).

    `weights` are those of a quadrature over the duration relative to its length.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    dt: np.ndarray
    dq: np.ndarray
    dv: np.ndarray
    du: np.ndarray
    columns: np.ndarray
    weights: np.ndarray

    def at(self, which):
        """The samples with these indices."""
        return Samples(*(x[which] for x in self))


class Blocks(NamedTuple):
    """Dense blocks of a sparse matrix: rows (count, r) and columns (count, c) of entries (count, r, c)."""

    rows: np.ndarray
    columns: np.ndarray
    entries: np.ndarray


class Layout(NamedTuple):
    """Layout of z: `nodes` times x coordinates, `inputs` times nu inputs, the duration."""

    nodes: int
    x: int
    inputs: int
    nu: int

    @property
    def size(self):
        return self.nodes * self.x + self.inputs * self.nu + 1

    def split(self, z):
        """Coordinates (nodes, x), inputs (inputs, nu) and the duration."""
        end = self.nodes * self.x
        return z[:end].reshape(self.nodes, self.x), z[end:-1].reshape(self.inputs, self.nu), z[-1]

    def joined(self, x, u, duration):
        return np.concatenate([x.ravel(), u.ravel(), [duration]])

    def of_node(self, i):
        """Indices in z of the coordinates of nodes i, (count, x)."""
        return np.asarray(i)[:, None] * self.x + np.arange(self.x)

    def of_input(self, i):
        """Indices in z of the inputs of rows i, (count, nu)."""
        return self.nodes * self.x + np.asarray(i)[:, None] * self.nu + np.arange(self.nu)

    def local(self, node, row):
        """Indices in z of a node, an input and the duration, (count, x + nu + 1)."""
        return np.hstack([self.of_node(node), self.of_input(row), np.full((len(node), 1), self.size - 1)])


def node_samples(layout, motion, part, duration, row, weights):
    """Samples at all nodes, with times as fractions of the duration and inputs of the given rows."""
    count, n, p = motion.N.shape
    x, nu, columns = layout.x, layout.nu, layout.x + layout.nu + 1
    dt, dq = np.zeros((count, columns)), np.zeros((count, n, columns))
    dv, du = np.zeros((count, n, columns)), np.zeros((count, nu, columns))
    dt[:, -1], dq[:, :, :p], dv[:, :, :x], du[:, :, x:-1] = part, motion.N, motion.X, np.eye(nu)
    return Samples(part * duration, motion.q, motion.v, motion.u, dt, dq, dv, du,
                   layout.local(np.arange(count), row), weights)
