"""Whole registers of consecutive numbers, with one source for one state and for lanes.

An operation that is the same for all numbers of a row is done on several at once. For one state `at_once(lane)` numbers
of the row fill a register; in lanes each number fills one already, with its W states.

    for c in range(0, columns, at_once(lane)):
        x = load_at_once(lane, row, c, columns - c)
        store_at_once(lane, row, c, columns - c, 2.0 * x)
"""
# mypy: ignore-errors
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array

from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import (
    WIDTH, VectorType, address, broadcast, call_intrinsic, everywhere, lane_index, like, of_type,
)
from liedyn.machine.typed_decorators import intrinsic

_INT = ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_ALIGN = ir.Constant(ir.IntType(32), 8)

LARGEST = 1e50
"""Largest accepted size of a number in a state: products of a few such numbers do not overflow, and no quantity of a
real mechanism in SI units comes near it."""


def mask_of(builder, count, width=WIDTH):
    """A mask of `width` numbers, true for the first `count`."""
    numbers = ir.Constant(ir.VectorType(_INT, width), list(range(width)))
    return builder.icmp_signed("<", numbers, broadcast(builder, count, width))


def _masked(builder, name, vector, result, arguments):
    name = f"llvm.masked.{name}.v{vector.count}f64.p0v{vector.count}f64"
    kind = ir.FunctionType(result, [x.type for x in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def masked_load(builder, start, mask):
    """Load a vector under a mask; numbers outside the mask are zero and not read."""
    vector = start.type.pointee
    return _masked(builder, "load", vector, vector, [start, _ALIGN, mask, zeros(vector.count)])


def masked_store(builder, start, mask, value):
    """Store a vector under a mask; numbers outside the mask are not written."""
    return _masked(builder, "store", value.type, ir.VoidType(), [value, start, _ALIGN, mask])


def zeros(width):
    """A register of zeros."""
    return ir.Constant(ir.VectorType(ir.DoubleType(), width), [0.0] * width)


def register_at(context, builder, lane, array_type, array, k):
    """Address of number k of an array, as that of a register."""
    start = address(context, builder, lane, array_type, array, k)
    return builder.bitcast(start, ir.VectorType(ir.DoubleType(), lane.register).as_pointer())


@intrinsic
def at_once(typing, lane):
    """Number of values that fill a register: W for one state, 1 in lanes."""
    count = lane.register // lane.width

    def codegen(context, builder, sig, args):
        return context.get_constant(types.intp, count)

    return types.intp(lane), codegen


@intrinsic
def load_at_once(typing, lane, x, k, count):
    """Load numbers k, k + 1, ... of x: `count` of them, at most a register; the rest is zero."""

    def codegen(context, builder, sig, args):
        _, x, k, count = args
        start = register_at(context, builder, lane, sig.args[1], x, k)
        if lane.width == 1:
            value = masked_load(builder, start, mask_of(builder, count, lane.register))
        else:
            value = builder.load(start, align=8)
        of_type(builder, value, "number")
        return value

    return VectorType(lane.register)(lane, x, types.intp, types.intp), codegen


@intrinsic
def store_at_once(typing, lane, x, k, count, value):
    """Store numbers k, k + 1, ...: `count` of them, at most a register."""

    def codegen(context, builder, sig, args):
        _, x, k, count, value = args
        start = register_at(context, builder, lane, sig.args[1], x, k)
        if lane.width == 1:
            instruction = masked_store(builder, start, mask_of(builder, count, lane.register), value)
        else:
            instruction = builder.store(value, start, align=8)
        of_type(builder, instruction, "number")
        return context.get_dummy_value()

    return types.void(lane, x, types.intp, types.intp, value), codegen


@inline
def put_row(lane, out, k, count, value):
    """Fill `count` numbers from number k on with the same register."""
    for c in range(0, count, at_once(lane)):
        store_at_once(lane, out, k + c, count - c, value)


@inline
def copy_row(lane, x, k, count, out, to):
    """out[to : to + count] = x[k : k + count]."""
    for c in range(0, count, at_once(lane)):
        store_at_once(lane, out, to + c, count - c, load_at_once(lane, x, k + c, count - c))


@intrinsic
def side_by_side(typing, a, b, c, d):
    """Four numbers in one register of 256 bits; of lanes, those of the first state."""

    def codegen(context, builder, sig, args):
        register = ir.Constant(ir.VectorType(ir.DoubleType(), 4), ir.Undefined)
        for k, x in enumerate(args):
            if isinstance(sig.args[k], VectorType):
                x = builder.extract_element(x, lane_index(0))
            register = builder.insert_element(register, x, lane_index(k))
        return register

    return VectorType(4)(a, b, c, d), codegen


@intrinsic
def yzx(typing, a):
    """The register (y, z, x, w) of (x, y, z, w)."""

    def codegen(context, builder, sig, args):
        order = ir.Constant(ir.VectorType(ir.IntType(32), 4), [1, 2, 0, 3])
        return builder.shuffle_vector(args[0], ir.Constant(args[0].type, ir.Undefined), order)

    return a(a), codegen


@intrinsic
def is_zero(typing, x):
    """True if a number, or every number of a register, is zero."""

    def codegen(context, builder, sig, args):
        return everywhere(builder, builder.fcmp_ordered("==", args[0], like(args[0], 0.0)))

    return types.boolean(x), codegen


@intrinsic
def bounded_at_once(typing, x, k):
    """True if |x[k]|, |x[k + 1]|, ..., a register of them, are at most LARGEST; false for NaN."""

    def codegen(context, builder, sig, args):
        data = make_array(sig.args[0])(context, builder, args[0]).data
        start = builder.bitcast(builder.gep(data, [args[1]]), _VECTOR.as_pointer())
        size = call_intrinsic(builder, "fabs", _VECTOR, [builder.load(start, align=8)])
        return everywhere(builder, builder.fcmp_ordered("<=", size, like(size, LARGEST)))

    return types.boolean(x, types.intp), codegen


@intrinsic
def before_line(typing, x, k):
    """Count of numbers from x[k] to the next register-aligned address."""

    def codegen(context, builder, sig, args):
        data = make_array(sig.args[0])(context, builder, args[0]).data
        start = builder.ptrtoint(builder.gep(data, [args[1]]), _INT)
        return builder.and_(builder.ashr(builder.neg(start), ir.Constant(_INT, 3)), ir.Constant(_INT, WIDTH - 1))

    return types.intp(x, types.intp), codegen


@inline
def first_place(work):
    """First index for `take_vector` and its like in a workspace: after the counter, aligned to a cache line."""
    return 1 + before_line(work, 1)


@intrinsic
def prefetch_line(typing, x, k):
    """Prefetch the cache line of x[k], which will soon be written; k may lie after the end."""

    def codegen(context, builder, sig, args):
        data = make_array(sig.args[0])(context, builder, args[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        start = builder.bitcast(builder.gep(data, [args[1]]), byte)
        # read access, all cache levels, data
        builder.call(prefetch, [start, *(ir.Constant(number, k) for k in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(x, types.intp), codegen


@intrinsic
def finish_stores(typing):
    """Fence: stores past the cache become visible to all threads."""

    def codegen(context, builder, sig, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen
