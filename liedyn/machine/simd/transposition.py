"""Transposition between rows of numbers and SIMD lanes, in registers: blocks of W rows and W columns.

W rows of an array, `stride` numbers apart, become W vectors, one for each column, or the other way round. A block may
have fewer columns (only these are read and written) and fewer rows (after row `last`, that row again).
"""
# mypy: ignore-errors
from llvmlite import ir
from numba import types
from numba.np.arrayobj import make_array

from liedyn.machine.simd.lanes import VectorType
from liedyn.machine.simd.registers import mask_of, masked_load, masked_store
from liedyn.machine.typed_decorators import intrinsic

_INT = ir.IntType(64)


def transposed(builder, rows):
    """Butterflies: in the stage of s, blocks of s x s numbers are exchanged across the diagonal."""
    return _butterflies(builder, rows, len(rows))


def transposed_in_memory(builder, start, width):
    """`transposed` for W x W consecutive numbers in memory; half rows are loaded directly to their new places."""
    half = ir.VectorType(ir.DoubleType(), width // 2)
    both = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(width)))

    def part(i, j):
        at = builder.gep(start, [ir.Constant(_INT, i * width + j)])
        return builder.load(builder.bitcast(at, half.as_pointer()), align=8)

    rows = [builder.shuffle_vector(part(i, j), part(i + width // 2, j), both)
            for j in (0, width // 2) for i in range(width // 2)]
    return _butterflies(builder, rows, width // 2)


def _butterflies(builder, rows, largest):
    width, rows = len(rows), list(rows)
    s = 1
    while s < largest:
        low = [j if j & s == 0 else width + j - s for j in range(width)]
        high = [j + s if j & s == 0 else width + j for j in range(width)]
        masks = [ir.Constant(ir.VectorType(ir.IntType(32), width), mask) for mask in (low, high)]
        for i in range(width):
            if i & s == 0:
                a, b = rows[i], rows[i + s]
                rows[i], rows[i + s] = (builder.shuffle_vector(a, b, mask) for mask in masks)
        s *= 2
    return rows


def _addresses(builder, data, start, stride, last, vector):
    """Addresses of the rows of a block."""
    for i in range(vector.count):
        row = ir.Constant(_INT, i)
        row = builder.select(builder.icmp_signed("<", row, last), row, last)
        yield builder.bitcast(builder.gep(data, [builder.add(start, builder.mul(row, stride))]), vector.as_pointer())


@intrinsic
def turned(typing, a, b, c, d):
    """Transpose a block of columns of four numbers, each in a register."""
    four = types.UniTuple(VectorType(4), 4)

    def codegen(context, builder, sig, args):
        return context.make_tuple(builder, four, transposed(builder, args))

    return four(a, b, c, d), codegen


@intrinsic
def rows_to_lanes(typing, lane, rows, start, stride, last, columns, lanes, k):
    """Rows at rows[start + i stride], with `columns` numbers each, to the lanes of scalars k to k + W - 1."""
    width = lane.width
    vector = ir.VectorType(ir.DoubleType(), width)

    def codegen(context, builder, sig, args):
        _, rows, start, stride, last, columns, lanes, k = args
        data = make_array(sig.args[1])(context, builder, rows).data
        mask = mask_of(builder, columns)
        loaded = [masked_load(builder, address, mask)
                  for address in _addresses(builder, data, start, stride, last, vector)]
        data = make_array(sig.args[6])(context, builder, lanes).data
        for j, column in enumerate(transposed(builder, loaded)):
            at = builder.mul(builder.add(k, ir.Constant(_INT, j)), ir.Constant(_INT, width))
            builder.store(column, builder.bitcast(builder.gep(data, [at]), vector.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(lane, rows, types.intp, types.intp, types.intp, types.intp, lanes, types.intp), codegen


@intrinsic
def lanes_to_rows(typing, lane, lanes, k, rows, start, stride, last, columns):
    """The lanes of scalars k to k + W - 1 to rows at rows[start + i stride], with `columns` numbers each."""
    width = lane.width
    vector = ir.VectorType(ir.DoubleType(), width)

    def codegen(context, builder, sig, args):
        _, lanes, k, rows, start, stride, last, columns = args
        data = make_array(sig.args[1])(context, builder, lanes).data
        turned = transposed_in_memory(builder, builder.gep(data, [builder.mul(k, ir.Constant(_INT, width))]), width)
        data = make_array(sig.args[3])(context, builder, rows).data
        mask = mask_of(builder, columns)
        for row, address in zip(turned, _addresses(builder, data, start, stride, last, vector)):
            masked_store(builder, address, mask, row)
        return context.get_dummy_value()

    return types.void(lane, lanes, types.intp, rows, types.intp, types.intp, types.intp, types.intp), codegen
