"""Whole registers of consecutive numbers, in one body for one state and for lanes.

What is done alike to all numbers of a row need not be done to one after another. For one state `at_once(lane)` numbers
of the row fill a register; in lanes each number fills one already, with its W states.

    for c in range(0, columns, at_once(lane)):
        x = load_at_once(lane, row, c, columns - c)
        store_at_once(lane, row, c, columns - c, 2.0 * x)
"""
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import (
    WIDTH, VectorType, address, broadcast, call_intrinsic, everywhere, lane_index, like, of_type,
)

_INT = ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_ALIGN = ir.Constant(ir.IntType(32), 8)

LARGEST = 1e50
"""Numbers of a state may be as large as this: products of a few of them do not overflow yet. No quantity of a real
mechanism in SI units comes near it."""


def mask_of(builder, count, width=WIDTH):
    """Which of `width` numbers are among the first `count`."""
    numbers = ir.Constant(ir.VectorType(_INT, width), list(range(width)))
    return builder.icmp_signed("<", numbers, broadcast(builder, count, width))


def _masked(builder, name, vector, result, arguments):
    name = f"llvm.masked.{name}.v{vector.count}f64.p0v{vector.count}f64"
    kind = ir.FunctionType(result, [x.type for x in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def masked_load(builder, start, mask):
    """A vector of which only the numbers of the mask are read; the others are zero."""
    vector = start.type.pointee
    return _masked(builder, "load", vector, vector, [start, _ALIGN, mask, zeros(vector.count)])


def masked_store(builder, start, mask, value):
    """Only the numbers of the mask are written."""
    return _masked(builder, "store", value.type, ir.VoidType(), [value, start, _ALIGN, mask])


def zeros(width):
    """A register of zeros."""
    return ir.Constant(ir.VectorType(ir.DoubleType(), width), [0.0] * width)


def register_at(context, builder, lane, array_type, array, k):
    """Where number k of an array lies and those behind it that fill a register."""
    start = address(context, builder, lane, array_type, array, k)
    return builder.bitcast(start, ir.VectorType(ir.DoubleType(), lane.register).as_pointer())


@intrinsic
def at_once(typing, lane):
    """How many numbers of the algorithm fill a register."""
    count = lane.register // lane.width

    def codegen(context, builder, sig, args):
        return context.get_constant(types.intp, count)

    return types.intp(lane), codegen


@intrinsic
def load_at_once(typing, lane, x, k, count):
    """Number k and those behind it, `count` of them or as many as fill a register; the rest is zero."""

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
    """Number k and those behind it, `count` of them or as many as fill a register."""

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
    """The same register in `count` numbers from number k on."""
    for c in range(0, count, at_once(lane)):
        store_at_once(lane, out, k + c, count - c, value)


@inline
def copy_row(lane, x, k, count, out, to):
    """`count` numbers of x from number k on become those of `out` from number `to` on."""
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
    """Is a number, or every number of a register, zero?"""

    def codegen(context, builder, sig, args):
        return everywhere(builder, builder.fcmp_ordered("==", args[0], like(args[0], 0.0)))

    return types.boolean(x), codegen


@intrinsic
def bounded_at_once(typing, x, k):
    """Is the size of x[k] and of those behind it, a register full, at most LARGEST? That of NaN is not."""

    def codegen(context, builder, sig, args):
        data = make_array(sig.args[0])(context, builder, args[0]).data
        start = builder.bitcast(builder.gep(data, [args[1]]), _VECTOR.as_pointer())
        size = call_intrinsic(builder, "fabs", _VECTOR, [builder.load(start, align=8)])
        return everywhere(builder, builder.fcmp_ordered("<=", size, like(size, LARGEST)))

    return types.boolean(x, types.intp), codegen


@intrinsic
def before_line(typing, x, k):
    """How many numbers there are from x[k] on to the next that begins a register's place in memory."""

    def codegen(context, builder, sig, args):
        data = make_array(sig.args[0])(context, builder, args[0]).data
        start = builder.ptrtoint(builder.gep(data, [args[1]]), _INT)
        return builder.and_(builder.ashr(builder.neg(start), ir.Constant(_INT, 3)), ir.Constant(_INT, WIDTH - 1))

    return types.intp(x, types.intp), codegen


@inline
def first_place(work):
    """Where in a workspace `take_vector` and its like may begin: behind the first number, in a line of the cache."""
    return 1 + before_line(work, 1)


@intrinsic
def prefetch_line(typing, x, k):
    """x[k] will soon be written: its line of the cache is fetched meanwhile; k may lie behind the end."""

    def codegen(context, builder, sig, args):
        data = make_array(sig.args[0])(context, builder, args[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        start = builder.bitcast(builder.gep(data, [args[1]]), byte)
        builder.call(prefetch, [start, *(ir.Constant(number, k) for k in (0, 3, 1))])  # read, to all caches, data
        return context.get_dummy_value()

    return types.void(x, types.intp), codegen


@intrinsic
def finish_stores(typing):
    """What was written past the cache is there for every thread."""

    def codegen(context, builder, sig, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen
