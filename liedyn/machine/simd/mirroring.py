"""The transpose of a block of a matrix written beside it, in registers: blocks of at most W rows and W columns.

All numbers are loaded before any is stored, as rows that lie side by side share cache lines.
"""
# mypy: ignore-errors
from llvmlite import ir
from numba import types
from numba.np.arrayobj import make_array

from liedyn.machine.compiled.cpu_targets import WIDTH
from liedyn.machine.simd.lanes import of_type
from liedyn.machine.simd.registers import mask_of, masked_load, masked_store
from liedyn.machine.simd.transposition import transposed
from liedyn.machine.typed_decorators import intrinsic

_INT = ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)


def _rows(builder, data, start, step, count):
    """Addresses of W rows; after the last, that row again."""
    last = builder.sub(count, ir.Constant(_INT, 1))
    for r in range(WIDTH):
        row = ir.Constant(_INT, r)
        row = builder.select(builder.icmp_signed("<", row, last), row, last)
        at = builder.gep(data, [builder.add(start, builder.mul(row, step))], inbounds=True)
        yield builder.bitcast(at, _VECTOR.as_pointer())


def _loaded(builder, rows, mask):
    found = [masked_load(builder, row, mask) for row in rows]
    for each in found:
        of_type(builder, each, "number")
    return found


@intrinsic
def mirror_block(typing, x, row, column, step, rows, columns):
    """x[column + c step + r] = x[row + r step + c] for r < rows and c < columns."""

    def codegen(context, builder, sig, args):
        x, row, column, step, rows, columns = args
        data = make_array(sig.args[0])(context, builder, x).data
        turned = transposed(builder, _loaded(builder, _rows(builder, data, row, step, rows), mask_of(builder, columns)))
        mask = mask_of(builder, rows)
        # those after the last are written to the last's place first, and then overwritten by it
        for at, value in reversed(list(zip(_rows(builder, data, column, step, columns), turned))):
            of_type(builder, masked_store(builder, at, mask, value), "number")
        return context.get_dummy_value()

    return types.void(x, types.intp, types.intp, types.intp, types.intp, types.intp), codegen


@intrinsic
def mirror_square(typing, x, at, step, count):
    """x[at + c step + r] = x[at + r step + c] for c < r < count: what is above the diagonal."""

    def codegen(context, builder, sig, args):
        x, at, step, count = args
        data, mask = make_array(sig.args[0])(context, builder, x).data, mask_of(builder, count)
        rows = list(_rows(builder, data, at, step, count))
        own = _loaded(builder, rows, mask)
        for c, (row, turned) in enumerate(zip(rows, transposed(builder, own))):
            below = ir.Constant(ir.VectorType(ir.IntType(1), WIDTH), [r <= c for r in range(WIDTH)])
            value = builder.select(below, own[c], turned)
            of_type(builder, masked_store(builder, row, mask, value), "number")
        return context.get_dummy_value()

    return types.void(x, types.intp, types.intp, types.intp), codegen
