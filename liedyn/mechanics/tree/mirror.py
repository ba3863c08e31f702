"""The other half of a symmetric matrix of a tree, of which one half is written.

One state transposes squares of numbers in registers; in lanes entries are copied one after the other.
"""
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import LANES, WIDTH, load, store
from liedyn.machine.simd.registers import at_once, load_at_once, store_at_once
from liedyn.machine.simd.strided import first_then
from liedyn.machine.simd.transposition import rows_to_lanes
from liedyn.model.packed_records import dof_total, parent_dof, stretch_of



@inline
def mirror_block(lane, X, at, step, size, work, spare):
    """X[column + c step + r] = X[row + r step + c]: rows and columns of at most a register each."""
    (row, column), (rows, columns) = at, size
    if at_once(lane) > 1:
        rows_to_lanes(LANES, X, row, step, rows - 1, columns, work, spare // WIDTH)
        for c in range(columns):
            store_at_once(lane, X, column + c * step, rows, load_at_once(lane, work, spare + c * WIDTH, WIDTH))
    else:
        store(lane, X, column, load(lane, X, row))


@inline
def mirror_square(lane, X, at, step, count, work, spare):
    """The same for a square on the diagonal: what is above it."""
    if at_once(lane) > 1:
        rows_to_lanes(LANES, X, at, step, count - 1, count, work, spare // WIDTH)
        for c in range(count - 1):
            k = at + c * step
            own, x = load_at_once(lane, X, k, count), load_at_once(lane, work, spare + c * WIDTH, WIDTH)
            store_at_once(lane, X, k, count, first_then(c + 1, own, x))


@inline
def mirror(lane, model, X, at, first, behind, work, spare):
    """X_ji = X_ij for rows i from `first` to behind - 1 and all j that carry them.

    X_ij is number at + i nv + j. At work[spare], a multiple of W, is place for a square.
    """
    nv = dof_total(model)
    for i in range(first, behind, at_once(lane)):
        count, last = min(at_once(lane), behind - i), parent_dof(model, i)
        mirror_square(lane, X, at + i * nv + i, nv, count, work, spare)
        while last >= 0:  # a dof outside these rows that carries one of them also carries the first
            begin = stretch_of(model, last)
            for j in range(begin, last + 1, at_once(lane)):
                mirror_block(lane, X, (at + i * nv + j, at + j * nv + i), nv, (count, min(at_once(lane), last + 1 - j)),
                             work, spare)
            last = parent_dof(model, begin)
