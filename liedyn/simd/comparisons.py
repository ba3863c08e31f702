"""Comparisons in one body for floats and lanes: what they decide holds for every lane, or is chosen lane by lane."""
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from liedyn.simd.lanes import VectorType, broadcast


def _call(builder, name, kind, result, args, **flags):
    """A call of an LLVM intrinsic for numbers of a kind, floats or lanes."""
    name = f"llvm.{name}.v{kind.width}f64" if isinstance(kind, VectorType) else f"llvm.{name}.f64"
    function = ir.FunctionType(result, [x.type for x in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), args, **flags)


def _zero(kind, x):
    return ir.Constant(x.type, [0.0] * kind.width if isinstance(kind, VectorType) else 0.0)


def _everywhere(builder, kind, yes):
    """Does a comparison hold in every lane?"""
    if not isinstance(kind, VectorType):
        return yes
    bits = ir.IntType(kind.width)
    return builder.icmp_signed("==", builder.bitcast(yes, bits), ir.Constant(bits, -1))


@intrinsic
def magnitude(typing, x):
    """|x|."""

    def codegen(context, builder, sig, args):
        return _call(builder, "fabs", x, args[0].type, args)

    return x(x), codegen


@intrinsic
def larger(typing, a, b):
    """The larger of a and b; a where b is NaN."""

    def codegen(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered(">", args[1], args[0]), args[1], args[0])

    return a(a, b), codegen


@intrinsic
def where_positive(typing, x, a, b):
    """a where x > 0, else the number b."""

    def codegen(context, builder, sig, args):
        other = broadcast(builder, args[2], x.width) if isinstance(x, VectorType) else args[2]
        return builder.select(builder.fcmp_ordered(">", args[0], _zero(x, args[0])), args[1], other)

    return a(x, a, types.float64), codegen


@intrinsic
def is_positive(typing, x):
    """Is x > 0, in every lane?"""

    def codegen(context, builder, sig, args):
        return _everywhere(builder, x, builder.fcmp_ordered(">", args[0], _zero(x, args[0])))

    return types.boolean(x), codegen


@intrinsic
def largest_lane(typing, x):
    """The largest number of a register."""

    def codegen(context, builder, sig, args):
        return _call(builder, "vector.reduce.fmax", x, ir.DoubleType(), args, fastmath=("nnan", "nsz"))

    return types.float64(x), codegen


@intrinsic
def smallest_lane(typing, x):
    """The smallest number of a register."""

    def codegen(context, builder, sig, args):
        return _call(builder, "vector.reduce.fmin", x, ir.DoubleType(), args, fastmath=("nnan", "nsz"))

    return types.float64(x), codegen
