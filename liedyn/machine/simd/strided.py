"""Records of equal size, several at once in registers: register k holds number k of each record.

An operation that is the same for all links of a state, or for all its degrees of freedom, is done on several at once.
For one state `at_once(lane)` records fill the registers, transposed when loaded and stored; in lanes one record does,
with its W states.

    for i in range(0, count, at_once(lane)):
        x, y = records_at_once(lane, points, 2 * i, 2, count - 1 - i, 2)
        put_records_at_once(lane, lengths, WIDTH * i, WIDTH, count - 1 - i, (sqrt(x * x + y * y),))
"""
# mypy: ignore-errors
from llvmlite import ir
from numba import types
from numba.np.arrayobj import make_array

from liedyn.machine.simd.lanes import VectorType, address, as_vector, of_type
from liedyn.machine.simd.registers import mask_of, masked_load, zeros
from liedyn.machine.simd.transposition import transposed
from liedyn.machine.typed_decorators import intrinsic

_INT = ir.IntType(64)


def _starts(builder, lane, first, step, last):
    """Start indices first + r step of the records r in the registers, at most first + last step."""
    end = builder.add(first, builder.mul(last, step))
    for r in range(lane.register):
        start = builder.add(first, builder.mul(step, ir.Constant(_INT, r)))
        yield builder.select(builder.icmp_signed("<", start, end), start, end)


def _registers(builder, data, starts, size):
    """Number k of the records that begin at data[starts], for each k < size."""
    registers, width = [], len(starts)
    vector = ir.VectorType(ir.DoubleType(), width)
    for first in range(0, size, width):
        count = min(width, size - first)
        mask = ir.Constant(ir.VectorType(ir.IntType(1), width), [r < count for r in range(width)])
        rows = []
        for start in starts:
            at = builder.gep(data, [builder.add(start, ir.Constant(_INT, first))], inbounds=True)
            rows.append(masked_load(builder, builder.bitcast(at, vector.as_pointer()), mask))
            of_type(builder, rows[-1], "number")
        registers += transposed(builder, rows)[:count]
    return registers


def _numbers(context, builder, lane, sig, x, base, size):
    """Numbers base to base + size - 1 of an array in lanes."""
    loaded = []
    for k in range(size):
        at = builder.add(base, ir.Constant(_INT, k))
        loaded.append(builder.load(address(context, builder, lane, sig.args[1], x, at)))
        loaded[-1].align = 8
        of_type(builder, loaded[-1], "number")
    return loaded


@intrinsic(prefer_literal=True)
def records_at_once(typing, lane, x, base, stride, last, size):
    """`size` numbers of each record at x[base + r stride], r = 0, 1, ...; after record `last`, that record again."""

    def codegen(context, builder, sig, args):
        _, x, base, stride, last, _ = args
        if lane.width == 1:
            data = make_array(sig.args[1])(context, builder, x).data
            starts = list(_starts(builder, lane, base, stride, last))
            registers = _registers(builder, data, starts, size.literal_value)
        else:
            registers = _numbers(context, builder, lane, sig, x, base, size.literal_value)
        return context.make_tuple(builder, sig.return_type, registers)

    number = types.UniTuple(VectorType(lane.register), size.literal_value)
    return number(lane, x, types.intp, types.intp, types.intp, size), codegen


@intrinsic(prefer_literal=True)
def chosen_records_at_once(typing, lane, x, base, stride, ints, at, step, last, size):
    """`size` numbers of each record at x[base + ints[at + r step] stride]; after r = `last`, that record again."""

    def codegen(context, builder, sig, args):
        _, x, base, stride, ints, at, step, last, _ = args
        table = make_array(sig.args[4])(context, builder, ints).data

        def start(k):
            k = builder.load(builder.gep(table, [k], inbounds=True))
            of_type(builder, k, "integer")
            return builder.add(base, builder.mul(stride, k))

        if lane.width == 1:
            data = make_array(sig.args[1])(context, builder, x).data
            starts = [start(k) for k in _starts(builder, lane, at, step, last)]
            registers = _registers(builder, data, starts, size.literal_value)
        else:
            registers = _numbers(context, builder, lane, sig, x, start(at), size.literal_value)
        return context.make_tuple(builder, sig.return_type, registers)

    number = types.UniTuple(VectorType(lane.register), size.literal_value)
    return number(lane, x, types.intp, types.intp, ints, types.intp, types.intp, types.intp, size), codegen


@intrinsic(prefer_literal=True)
def constants_at_once(typing, lane, x, base, stride, last, size):
    """`records_at_once` of an array that is the same for all states: in lanes, plain numbers of one record."""
    number = VectorType(lane.register) if lane.width == 1 else types.float64

    def codegen(context, builder, sig, args):
        _, x, base, stride, last, _ = args
        data = make_array(sig.args[1])(context, builder, x).data
        if lane.width == 1:
            starts = list(_starts(builder, lane, base, stride, last))
            values = _registers(builder, data, starts, size.literal_value)
        else:
            values = [builder.load(builder.gep(data, [builder.add(base, ir.Constant(_INT, k))], inbounds=True))
                      for k in range(size.literal_value)]
        return context.make_tuple(builder, sig.return_type, values)

    return types.UniTuple(number, size.literal_value)(lane, x, types.intp, types.intp, types.intp, size), codegen


@intrinsic
def put_records_at_once(typing, lane, x, base, stride, last, values):
    """Write number k of record r to x[base + r stride + k], r = 0 to `last`, and zeros up to the register's end."""

    def codegen(context, builder, sig, args):
        _, x, base, stride, last, values = args
        width, vector = lane.register, ir.VectorType(ir.DoubleType(), lane.register)
        registers = [as_vector(context, builder, typ, builder.extract_value(values, k), width)
                     for k, typ in enumerate(sig.args[5].types)]
        if lane.width > 1:
            for k, register in enumerate(registers):
                at = builder.add(base, ir.Constant(_INT, k))
                of_type(builder, builder.store(register, address(context, builder, lane, sig.args[1], x, at), align=8),
                        "number")
            return context.get_dummy_value()
        data = make_array(sig.args[1])(context, builder, x).data
        starts = list(_starts(builder, lane, base, stride, last))
        for first in range(0, len(registers), width):
            block = registers[first:first + width]
            rows = transposed(builder, block + [zeros(width)] * (width - len(block)))
            # rows after the last are written to the last's place first, and then overwritten by it
            for r in reversed(range(width)):
                at = builder.gep(data, [builder.add(starts[r], ir.Constant(_INT, first))], inbounds=True)
                of_type(builder, builder.store(rows[r], builder.bitcast(at, vector.as_pointer()), align=8), "number")
        return context.get_dummy_value()

    return types.void(lane, x, types.intp, types.intp, types.intp, values), codegen


@intrinsic
def where_larger(typing, a, b, x):
    """x where a > b, zero elsewhere."""

    def codegen(context, builder, sig, args):
        a, b, x = args
        larger = builder.fcmp_ordered(">", a, as_vector(context, builder, types.float64, b, sig.args[0].width))
        return builder.select(larger, x, zeros(sig.args[0].width))

    return x(a, types.float64, x), codegen


@intrinsic
def first_then(typing, count, x, y):
    """The first `count` numbers of x, followed by those of y."""

    def codegen(context, builder, sig, args):
        count, x, y = args
        return builder.select(mask_of(builder, count, sig.args[1].width), x, y)

    return x(types.intp, x, y), codegen


@intrinsic
def where_before(typing, j, end, x):
    """Number k of x where j + k < end, zero elsewhere."""

    def codegen(context, builder, sig, args):
        j, end, x = args
        width = sig.args[2].width
        return builder.select(mask_of(builder, builder.sub(end, j), width), x, zeros(width))

    return x(types.intp, types.intp, x), codegen
