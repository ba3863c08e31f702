"""Curvature that is not known, of rows of constraints or of users' functions, learnt from exact gradients.

The Lagrangian is a sum of functions of one node each, of its coordinates and inputs, but for the duration. The gradient
of each is known exactly at every iterate, so each Hessian block can be learnt on its own, by symmetric rank-one updates

    B+ = B + r r^T / (r^T s)        r = y - B s

with s the change of the node's unknowns and y that of its gradient under the newest multipliers (partitioned secant
updates: Griewank and Toint 1982; rank one, since the curvature may have any sign: Conn, Gould and Toint 1991). As the
blocks are small, a few iterations teach them, whatever the number of nodes. Jacobians of the last iterates are kept, so
all updates are made with the newest multipliers. What is known is exact (`liedyn.tasks.optimal_motion.lagrangian`).
"""
from collections import deque

import numpy as np

SKIPPED = 1e-3
"""An update is left out where |r^T s| is below this part of |r| |s|: it would be as large as it is uncertain."""


class Curvature:
    """Hessian blocks (count, size, size) of a part of the Lagrangian, over columns (count, size).

    Columns may be -1: unknowns that are fixed.
    """

    def __init__(self, columns):
        self.columns, self._moves = columns, columns >= 0
        self.blocks = np.zeros((*columns.shape, columns.shape[1]))
        self._history = deque(maxlen=2 * columns.shape[1] + 2)

    def update(self, x, jacobian, multipliers):
        """Learn from unknowns x, the Jacobian there (sparse, by columns) and the newest multipliers."""
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
