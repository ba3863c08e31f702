"""Sines and cosines of one angle, of lanes, and of all angles of a state at once.

Polynomials cost little if a register is full of angles. `put_sines` takes W angles of one state at a time, or in lanes
one angle of each of W states.
"""
# mypy: ignore-errors
import math

from llvmlite import ir
from numba import types
from numba.core import cgutils

from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import WIDTH, VectorType, call_intrinsic, emit_scalar, everywhere, like, narrow
from liedyn.machine.simd.registers import at_once, load_at_once, store_at_once
from liedyn.machine.typed_decorators import intrinsic

# Cody-Waite reduction by three parts of pi/2, then the minimax polynomials of Cephes (Moshier) on [-pi/4, pi/4]:
# at most 2 ulp for |x| <= 1e6, about 1 ns a pair; beyond that libm's full reduction takes over.
_LARGEST_REDUCED = 1e6
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_SIN = (1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6, -1.98412698295895385996e-4,
        8.33333333332211858878e-3, -1.66666666666666307295e-1)
_COS = (-1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7, 2.48015872888517045348e-5,
        -1.38888888888730564116e-3, 4.16666666666665929218e-2)


def _emit_polynomial_sincos(builder, x):
    def fma(a, b, c):
        return call_intrinsic(builder, "fma", x.type, [a, b, c])

    def horner(coefficients, z):
        p = like(x, coefficients[0])
        for c in coefficients[1:]:
            p = fma(p, z, like(x, c))
        return p

    shift = like(x, 6755399441055744.0)  # 1.5 * 2**52: adding it rounds to the nearest integer
    t = fma(x, like(x, 2.0 / math.pi), shift)
    integer = ir.VectorType(ir.IntType(64), x.type.count) if isinstance(x.type, ir.VectorType) else ir.IntType(64)
    n, quadrant = builder.fsub(t, shift), builder.bitcast(t, integer)
    r = fma(n, like(x, -_HALF_PI[1]), fma(n, like(x, -_HALF_PI[0]), x))
    z = builder.fmul(r, r)
    s = fma(builder.fmul(r, z), horner(_SIN, z), r)
    c = fma(builder.fmul(z, z), horner(_COS, z), fma(z, like(x, -0.5), like(x, 1.0)))
    odd = builder.icmp_unsigned("!=", builder.and_(quadrant, like(quadrant, 1)), like(quadrant, 0))

    def signed(value, q):
        sign = builder.shl(builder.and_(q, like(q, 2)), like(q, 62))
        return builder.bitcast(builder.xor(builder.bitcast(value, integer), sign), x.type)

    sin = signed(builder.select(odd, c, s), quadrant)
    cos = signed(builder.select(odd, s, c), builder.add(quadrant, like(quadrant, 1)))
    return sin, cos


@intrinsic
def sincos(typing, x):
    """sincos(x) -> (sin x, cos x) for a float or for lanes."""
    width = x.width if isinstance(x, VectorType) else 1
    number = x if width > 1 else types.float64

    def codegen(context, builder, sig, args):
        (x,) = args
        sin, cos = _emit_polynomial_sincos(builder, x)
        slots = [cgutils.alloca_once_value(builder, y) for y in (sin, cos)]
        small = builder.fcmp_ordered("<=", call_intrinsic(builder, "fabs", x.type, [x]), like(x, _LARGEST_REDUCED))
        with builder.if_then(builder.not_(everywhere(builder, small)), likely=False):
            for slot, function in zip(slots, (math.sin, math.cos)):
                builder.store(emit_scalar(context, builder, function, [x], width), slot)
        return context.make_tuple(builder, sig.return_type, [builder.load(slot) for slot in slots])

    return types.UniTuple(number, 2)(number), codegen


@inline
def sines_size(count):
    """Size of the results of `put_sines` for `count` coordinates."""
    return 2 * (count + -count % WIDTH)


@inline
def put_sines(lane, q, count, work, at):
    """Write sin q_k to work[at + k] and cos q_k half of `sines_size` after it, for all k < count."""
    put_sines_from(lane, q, 0, count, work, at)


@inline
def put_sines_from(lane, q, first, count, work, at):
    """The same for first <= k < count; for one state also for a few k before `first` in the same register."""
    room, few = sines_size(count) // 2, narrow(lane)
    for k in range(first - first % at_once(few), count, at_once(few)):
        s, c = sincos(load_at_once(few, q, k, count - k))
        store_at_once(few, work, at + k, at_once(few), s)
        store_at_once(few, work, at + room + k, at_once(few), c)
