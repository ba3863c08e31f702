"""Ranks of a robot's constraints from Python, by the same rule as in compiled code (`liedyn.machine.linalg.ranks`)."""
import numpy as np

from liedyn.machine.linalg.dense import independent_rows
from liedyn.machine.linalg.ranks import Ranking
from liedyn.model.remembered import remembered


@remembered
def weights_of(robot):
    """Weights of the rows (m) and of the columns (nv) of the constraints; the packed model ends with them."""
    m, n = len(robot.row_names), robot.nv
    floats = robot.packed.floats
    return floats[floats.size - m - n:][:m].copy(), floats[floats.size - n:].copy()


@remembered
def ranking(robot, tolerance):
    """The `Ranking` for this robot's constraints."""
    return Ranking(float(tolerance), *weights_of(robot))


def ranks(robot, G, tolerance):
    """Rank of each G (count, m, nv), the order of its rows (independent ones first), and the ratio of its pivots.

    The ratio is the largest weighted pivot, at least 1, divided by the smallest one that counts.
    """
    return ranks_by(ranking(robot, tolerance), G)


def ranks_by(by, G):
    """`ranks` with a given `Ranking`."""
    rank, order, ratio = np.empty(len(G), int), np.empty(G.shape[:2], np.int64), np.ones(len(G))
    for b in range(len(G)):
        rank[b], order[b], pivots = independent_rows(G[b], by)
        if rank[b] > 0:
            ratio[b] = max(pivots[0], 1.0) / pivots[rank[b] - 1]
    return rank, order, ratio


def rank_of_rows(robot, rows, tolerance):
    """Rank of one G and of rows below it that read velocities, as in `weighed`; the other rows are set to zero."""
    by = ranking(robot, tolerance)
    if len(rows) > len(by.rows):
        by = Ranking(by.tolerance, *weighed(robot, rows)[1:])
    return int(independent_rows(np.ascontiguousarray(rows, dtype=float), by)[0])


def null_space(robot, G, tolerance):
    """An orthonormal basis, as columns, of the null space of G (m, nv)."""
    return np.linalg.svd(G)[2][rank_of_rows(robot, G, tolerance):].T if len(G) else np.eye(robot.nv)


def weighed(robot, rows):
    """Weighted rows (m + more, nv), the weights of all of them, and those of the columns.

    The first m rows are the constraints; the others read velocities and are scaled to length 1.
    """
    of_rows, of_columns = weights_of(robot)
    more = np.linalg.norm(rows[len(of_rows):] * of_columns, axis=1)
    of_rows = np.concatenate([of_rows, 1.0 / np.where(more > 0.0, more, 1.0)])
    return of_rows[:, None] * rows * of_columns, of_rows, of_columns


def solution(robot, Z, known, tolerance):
    """x with Z x = known for rows as in `weighed`, by least squares if they contradict each other."""
    Z, of_rows, of_columns = weighed(robot, Z)
    return of_columns * np.linalg.lstsq(Z, of_rows * known, rcond=tolerance)[0]


def pseudoinverse(A, rank):
    """Moore-Penrose inverses with the `rank` (count) largest singular values of each matrix (count, m, n)."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    kept = np.arange(s.shape[-1]) < np.reshape(rank, (-1, 1))
    inverted = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    return np.swapaxes(Vt, -1, -2) @ (inverted[..., None] * np.swapaxes(U, -1, -2))
