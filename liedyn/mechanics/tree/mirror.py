"""The other half of a symmetric matrix of a tree, of which one half is written.

One state transposes squares of numbers in registers; in lanes entries are copied one after the other.
"""
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import load, store
from liedyn.machine.simd.mirroring import mirror_block, mirror_square
from liedyn.machine.simd.registers import at_once
from liedyn.model.packed_records import dof_total, parent_dof, stretch_of


@inline
def mirror(lane, model, X, at, first, behind):
    """X_ji = X_ij for rows i from `first` to behind - 1 and all j that carry them; X_ij is number at + i nv + j."""
    nv = dof_total(model)
    for i in range(first, behind, at_once(lane)):
        rows, last = min(at_once(lane), behind - i), parent_dof(model, i)
        if at_once(lane) > 1:
            mirror_square(X, at + i * nv + i, nv, rows)
        while last >= 0:  # a dof outside these rows that carries one of them also carries the first
            begin = stretch_of(model, last)
            for j in range(begin, last + 1, at_once(lane)):
                row, column = at + i * nv + j, at + j * nv + i
                if at_once(lane) > 1:
                    mirror_block(X, row, column, nv, rows, min(at_once(lane), last + 1 - j))
                else:
                    store(lane, X, column, load(lane, X, row))
            last = parent_dof(model, begin)
