"""Matrices in lanes to memory: transposed in registers, and written as whole cache lines past the cache.

The processor reads a cache line from memory before it writes a part of it. A line written as a whole with non-temporal
stores need not be read: for results larger than the cache that halves the memory traffic. The numbers of a state begin
`shift` numbers after the beginning of a cache line. Registers m of the W states, their numbers m W to m W + W - 1, are
transposed out of the lanes; line m of a state then consists of the last `shift` numbers of its register m - 1 and the
first ones of its register m. Lines are combined in registers, not in memory, where they would wait for earlier stores.

`lines` holds for the W states the indices where their lines 0 begin in an array, then the shifts, then which state is
the last; from LEFT on the registers transposed last, from ENDINGS on the lines in which states end.
"""
# mypy: ignore-errors
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array

from liedyn.machine.simd.lanes import WIDTH, VectorType, broadcast, lane_index
from liedyn.machine.simd.registers import mask_of, masked_store
from liedyn.machine.simd.transposition import transposed_in_memory
from liedyn.machine.typed_decorators import intrinsic

_INT = ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_INTS = ir.VectorType(_INT, WIDTH)
LEFT, ENDINGS, LINES = 3 * WIDTH, (3 + WIDTH) * WIDTH, (3 + 2 * WIDTH) * WIDTH
_REGISTERS = types.UniTuple(VectorType(WIDTH), WIDTH)


def _constant(x):
    return ir.Constant(_INT, x)


def _places(builder, shift):
    """Indices, into the registers m - 1 and m side by side, of the numbers of a line with this shift."""
    return builder.sub(ir.Constant(_INTS, list(range(WIDTH, 2 * WIDTH))), broadcast(builder, shift, WIDTH))


def _chosen(builder, x, y, places):
    """The numbers `places` of x and y side by side."""
    if WIDTH == 8:  # LLVM does not find the one instruction for it
        kind = ir.FunctionType(_VECTOR, [_VECTOR, _INTS, _VECTOR])
        choose = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.vpermi2var.pd.512")
        return builder.call(choose, [x, places, y])
    both = builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(ir.IntType(32), 2 * WIDTH), list(range(2 * WIDTH))))
    chosen = ir.Constant(_VECTOR, ir.Undefined)
    for k in range(WIDTH):
        number = builder.extract_element(both, builder.extract_element(places, lane_index(k)))
        chosen = builder.insert_element(chosen, number, lane_index(k))
    return chosen


@intrinsic
def turned(typing, lanes, m):
    """Registers m of W states, transposed out of the lanes."""

    def codegen(context, builder, sig, args):
        lanes, m = args
        data = make_array(sig.args[0])(context, builder, lanes).data
        start = builder.gep(data, [builder.mul(m, _constant(WIDTH * WIDTH))])
        return context.make_tuple(builder, sig.return_type, transposed_in_memory(builder, start, WIDTH))

    return _REGISTERS(lanes, types.intp), codegen


def _register(builder, scratch, k):
    """Address of a register in the scratch memory, from number k on."""
    return builder.bitcast(builder.gep(scratch, [_constant(k)]), _VECTOR.as_pointer())


@intrinsic
def registers_left(typing, lines):
    """Load the registers that were `turned` last."""

    def codegen(context, builder, sig, args):
        scratch = make_array(sig.args[0])(context, builder, args[0]).data
        left = [builder.load(_register(builder, scratch, LEFT + s * WIDTH), align=8) for s in range(WIDTH)]
        return context.make_tuple(builder, sig.return_type, left)

    return _REGISTERS(lines), codegen


@intrinsic
def leave_registers(typing, lines, registers):
    """Store the registers that were `turned` last."""

    def codegen(context, builder, sig, args):
        scratch = make_array(sig.args[0])(context, builder, args[0]).data
        for s in range(WIDTH):
            x = builder.extract_value(args[1], s)
            builder.store(x, _register(builder, scratch, LEFT + s * WIDTH), align=8)
        return context.get_dummy_value()

    return types.void(lines, registers), codegen


def _each_line(context, builder, sig, args):
    """For each state: its shift, the address of its line m, and that line from its registers m - 1 and m."""
    rows, lines, m, before, now = args
    data = make_array(sig.args[0])(context, builder, rows).data
    scratch = make_array(sig.args[1])(context, builder, lines).data
    for s in range(WIDTH):
        start, shift = (builder.load(builder.gep(scratch, [_constant(k)])) for k in (s, WIDTH + s))
        at = builder.add(start, builder.mul(m, _constant(WIDTH)))
        start = builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())
        x, y = builder.extract_value(before, s), builder.extract_value(now, s)
        yield shift, start, _chosen(builder, x, y, _places(builder, shift))


def _past_cache(builder, start, x):
    once = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
    builder.store(x, start, align=8 * WIDTH).set_metadata("nontemporal", once)


def _last(context, builder, typ, lines):
    return builder.load(builder.gep(make_array(typ)(context, builder, lines).data, [_constant(2 * WIDTH)]))


@intrinsic
def write_lines(typing, rows, lines, m, before, now):
    """Write line m of each state, from its registers m - 1 and m, past the cache."""

    def codegen(context, builder, sig, args):
        for _, start, x in _each_line(context, builder, sig, args):
            _past_cache(builder, start, x)
        return context.get_dummy_value()

    return types.void(rows, lines, types.intp, before, now), codegen


@intrinsic
def write_endings(typing, rows, lines, m, before, now, behind):
    """Write line m of each state, of which `behind` numbers from m W on exist.

    A full line is written past the cache. A partial one is stored until the beginning of the next state completes it;
    the last state writes it at once.
    """

    def codegen(context, builder, sig, args):
        *given, behind = args
        last = _last(context, builder, sig.args[1], args[1])
        scratch = make_array(sig.args[1])(context, builder, args[1]).data
        for s, (shift, start, x) in enumerate(_each_line(context, builder, sig, given)):
            count = builder.add(behind, shift)
            full = builder.icmp_signed(">=", count, _constant(WIDTH))
            with builder.if_then(full):
                _past_cache(builder, start, x)
            ends = builder.and_(builder.not_(full), builder.icmp_signed(">", count, _constant(0)))
            with builder.if_then(ends):
                builder.store(x, _register(builder, scratch, ENDINGS + s * WIDTH), align=8)
                with builder.if_then(builder.icmp_signed(">=", _constant(s), last)):
                    masked_store(builder, start, mask_of(builder, count), x)
        return context.get_dummy_value()

    return types.void(rows, lines, types.intp, before, now, types.intp), codegen


@intrinsic
def write_beginnings(typing, rows, lines, now):
    """Write line 0 of each state, from its register 0 and the end of the state before."""

    def codegen(context, builder, sig, args):
        rows, lines, now = args
        last = _last(context, builder, sig.args[1], lines)
        scratch = make_array(sig.args[1])(context, builder, lines).data
        each = _each_line(context, builder, sig, (rows, lines, _constant(0), now, now))
        for s, (shift, start, x) in enumerate(each):
            of_before = mask_of(builder, shift)
            if s == 0:
                masked_store(builder, start, builder.not_(of_before), x)
            else:
                ending = builder.load(_register(builder, scratch, ENDINGS + (s - 1) * WIDTH), align=8)
                with builder.if_then(builder.icmp_signed("<=", _constant(s), last)):
                    _past_cache(builder, start, builder.select(of_before, ending, x))
        return context.get_dummy_value()

    return types.void(rows, lines, now), codegen
