"""Matrices in lanes to memory: turned over in registers, and written as whole lines past the cache.

The cache reads a line of memory before a part of it is written. A line written as a whole, at once and past the cache,
need not be read: of results larger than the cache that is half of the traffic. The numbers of a state begin `shift`
behind the beginning of a line. Registers m of the states, their numbers m W to m W + W - 1, are turned over out of the
lanes and go round by as much: then line m of a state is the first `shift` numbers of its register m - 1, and of its
register m the others. Nothing needs to be put together in memory, where it would wait for lines on their way.

Of W states `lines` holds where their lines 0 begin in an array, then the shifts, then which state is the last.
"""
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from liedyn.lie.lanes import WIDTH, VectorType, lane_index
from liedyn.lie.registers import mask_of, masked_store
from liedyn.lie.transposition import transposed_in_memory

_INT = ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_INTS = ir.VectorType(_INT, WIDTH)
_REGISTERS = types.UniTuple(VectorType(WIDTH), WIDTH)


def _constant(x):
    return ir.Constant(_INT, x)


def _places(context, builder, typ, lines):
    """For each state, where number k of a line is in its registers: k - shift, if negative of the one before."""
    data = make_array(typ)(context, builder, lines).data
    for s in range(WIDTH):
        shift = builder.load(builder.gep(data, [_constant(WIDTH + s)]))
        one = builder.insert_element(ir.Constant(_INTS, ir.Undefined), shift, lane_index(0))
        everywhere = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH))
        yield shift, builder.sub(ir.Constant(_INTS, list(range(WIDTH))), everywhere)


def _round(builder, x, places):
    """x[places mod W]: written number by number, LLVM makes it one instruction where there is one."""
    places = builder.and_(places, ir.Constant(_INTS, [WIDTH - 1] * WIDTH))
    y = ir.Constant(_VECTOR, ir.Undefined)
    for k in range(WIDTH):
        number = builder.extract_element(x, builder.extract_element(places, lane_index(k)))
        y = builder.insert_element(y, number, lane_index(k))
    return y


@intrinsic
def turned(typing, lanes, m, lines):
    """Registers m of W states."""

    def codegen(context, builder, sig, args):
        lanes, m, lines = args
        data = make_array(sig.args[0])(context, builder, lanes).data
        start = builder.gep(data, [builder.mul(m, _constant(WIDTH * WIDTH))])
        registers = [_round(builder, x, places) for x, (_, places) in zip(
            transposed_in_memory(builder, start, WIDTH), _places(context, builder, sig.args[2], lines))]
        return context.make_tuple(builder, sig.return_type, registers)

    return _REGISTERS(lanes, types.intp, lines), codegen


@intrinsic
def zero_registers(typing):
    """`turned` of zeros."""

    def codegen(context, builder, sig, args):
        return context.make_tuple(builder, sig.return_type, [ir.Constant(_VECTOR, [0.0] * WIDTH)] * WIDTH)

    return _REGISTERS(), codegen


def _each_line(context, builder, sig, args):
    """Of each state: its shift, where in memory line m begins, and what is in it of its registers m - 1 and m."""
    rows, lines, m, before, now = args
    data = make_array(sig.args[0])(context, builder, rows).data
    starts = make_array(sig.args[1])(context, builder, lines).data
    for s, (shift, places) in enumerate(_places(context, builder, sig.args[1], lines)):
        at = builder.add(builder.load(builder.gep(starts, [_constant(s)])), builder.mul(m, _constant(WIDTH)))
        start = builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())
        of_before = builder.ashr(places, ir.Constant(_INTS, [63] * WIDTH))
        x, y = (builder.bitcast(builder.extract_value(part, s), _INTS) for part in (before, now))
        x = builder.or_(builder.and_(of_before, x), builder.and_(builder.not_(of_before), y))
        yield shift, start, builder.bitcast(x, _VECTOR)


def _past_cache(builder, start, x):
    once = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
    builder.store(x, start, align=8 * WIDTH).set_metadata("nontemporal", once)


def _last(context, builder, typ, lines):
    return builder.load(builder.gep(make_array(typ)(context, builder, lines).data, [_constant(2 * WIDTH)]))


@intrinsic
def write_lines(typing, rows, lines, m, before, now):
    """Line m of each state, past the cache, of its registers m - 1 and m."""

    def codegen(context, builder, sig, args):
        for _, start, x in _each_line(context, builder, sig, args):
            _past_cache(builder, start, x)
        return context.get_dummy_value()

    return types.void(rows, lines, types.intp, before, now), codegen


@intrinsic
def write_endings(typing, rows, lines, m, before, now, behind, endings):
    """Line m of each state, of which `behind` numbers from m W on there are.

    Past the cache where it is full. Where it ends within the line it waits for the beginning of the next state, among
    the `endings` returned; but the last state has none.
    """

    def codegen(context, builder, sig, args):
        *given, behind, endings = args
        last = _last(context, builder, sig.args[1], args[1])
        for s, (shift, start, x) in enumerate(_each_line(context, builder, sig, given)):
            count = builder.add(behind, shift)
            full = builder.icmp_signed(">=", count, _constant(WIDTH))
            with builder.if_then(full):
                _past_cache(builder, start, x)
            ends = builder.and_(builder.not_(full), builder.icmp_signed(">", count, _constant(0)))
            with builder.if_then(builder.and_(ends, builder.icmp_signed(">=", _constant(s), last))):
                masked_store(builder, start, mask_of(builder, count), x)
            endings = builder.insert_value(endings, builder.select(ends, x, builder.extract_value(endings, s)), s)
        return endings

    return _REGISTERS(rows, lines, types.intp, before, now, types.intp, endings), codegen


@intrinsic
def write_beginnings(typing, rows, lines, now, endings):
    """Line 0 of each state, of its register 0 and of the ending of the state before."""

    def codegen(context, builder, sig, args):
        rows, lines, now, endings = args
        last, before = _last(context, builder, sig.args[1], lines), endings
        for s in range(1, WIDTH):
            before = builder.insert_value(before, builder.extract_value(endings, s - 1), s)
        each = _each_line(context, builder, sig, (rows, lines, _constant(0), before, now))
        for s, (shift, start, x) in enumerate(each):
            if s == 0:
                masked_store(builder, start, builder.not_(mask_of(builder, shift)), x)
            else:
                with builder.if_then(builder.icmp_signed("<=", _constant(s), last)):
                    _past_cache(builder, start, x)
        return context.get_dummy_value()

    return types.void(rows, lines, now, endings), codegen
