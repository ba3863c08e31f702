"""Large named tuples inside compiled code, passed by address.

Numba passes a named tuple as the numbers that describe its arrays, seven for a matrix: a record of forty arrays is
pushed on the stack at each call, word by word, which takes longer than the arithmetic of a small robot.

    DISCRETISATION = record(Discretisation, types.float64, MATRIX, ...)         the type of an address
    @late(MODEL, DISCRETISATION, VECTOR)
    def make_step(model, d, q): ...                 d.h is loaded from memory; d.phases is the address of that part

    d = placed(d)         in a kernel: d is an address from here on, valid until this kernel returns
    d = contents(d)       loads all members at once, so that loops keep them in registers

A late kernel that expects an address also accepts the named tuple. While an address is in use the tuple must stay
alive; the content of its arrays may change.
"""
# mypy: ignore-errors
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_cast, lower_getattr_generic, models, register_model

from liedyn.machine.compiled.jit import group
from liedyn.machine.typed_decorators import intrinsic


class Address(types.Type):
    """Type of the address of a named tuple."""

    def __init__(self, record):
        self.record = record
        super().__init__(f"Address({record})")

    def can_convert_from(self, typing, other):
        return Conversion.safe if other == self.record else None


register_model(Address)(models.OpaqueModel)


def record(made, *kinds):
    """The type of the address of a named tuple with members of the types `kinds`, for arguments of `late` kernels."""
    return Address(group(made, *(kind.record if isinstance(kind, Address) else kind for kind in kinds)))


def _members(kind):
    return range(kind.count if isinstance(kind, ir.ArrayType) else len(kind.elements))


def _is_number(kind):
    return not isinstance(kind, (ir.ArrayType, ir.LiteralStructType))


def _load(builder, at):
    """Load member by member, so that LLVM drops the unused ones."""
    kind = at.type.pointee
    if _is_number(kind):
        return builder.load(at)
    whole = ir.Constant(kind, ir.Undefined)
    for i in _members(kind):
        whole = builder.insert_value(whole, _load(builder, cgutils.gep_inbounds(builder, at, 0, i)), i)
    return whole


def _store(builder, value, at):
    if _is_number(value.type):
        builder.store(value, at)
        return
    for i in _members(value.type):
        _store(builder, builder.extract_value(value, i), cgutils.gep_inbounds(builder, at, 0, i))


def _place(builder, value):
    at = cgutils.alloca_once(builder, value.type)
    _store(builder, value, at)
    return builder.bitcast(at, cgutils.voidptr_t)


def _where(context, builder, address, kind):
    return builder.bitcast(address, context.get_value_type(kind).as_pointer())


@infer_getattr
class _Attributes(AttributeTemplate):
    key = Address

    def generic_resolve(self, address, name):
        if name not in address.record.fields:
            return None
        kind = address.record.types[address.record.fields.index(name)]
        return Address(kind) if isinstance(kind, types.BaseNamedTuple) else kind


@lower_getattr_generic(Address)
def _attribute(context, builder, kind, address, name):
    i = kind.record.fields.index(name)
    member = kind.record.types[i]
    at = cgutils.gep_inbounds(builder, _where(context, builder, address, kind.record), 0, i)
    if isinstance(member, types.BaseNamedTuple):
        return builder.bitcast(at, cgutils.voidptr_t)
    return impl_ret_borrowed(context, builder, member, _load(builder, at))


def _taken(context, builder, kind, address):
    return impl_ret_borrowed(context, builder, kind, _load(builder, _where(context, builder, address, kind)))


@lower_cast(types.BaseTuple, Address)
def _as_address(context, builder, kind, wanted, value):
    return _place(builder, value)


@intrinsic
def placed(typing, given):
    """Store a named tuple on the calling kernel's stack and return its address, valid until that kernel returns."""
    if isinstance(given, Address):
        return given(given), lambda context, builder, signature, arguments: arguments[0]
    return Address(given)(given), lambda context, builder, signature, arguments: _place(builder, arguments[0])


@intrinsic
def contents(typing, given):
    """The named tuple at an address; a named tuple is returned unchanged."""
    if isinstance(given, Address):
        return given.record(given), lambda context, builder, signature, arguments: _taken(
            context, builder, given.record, arguments[0])
    return given(given), lambda context, builder, signature, arguments: impl_ret_borrowed(
        context, builder, given, arguments[0])
