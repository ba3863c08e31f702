"""Kernels that are compiled at their first call and called by address.

Numba compiles a kernel again with each of its callers, also for features that the robot at hand lacks: contacts in
every formulation and in the linearization of every arm. A large or rarely used kernel should be compiled once, and only
if needed:

    @late(MODEL, VECTOR, VECTOR)
    def put_contacts(model, q, residual):
        ...

is called like any other kernel, with arguments of exactly these types, at a cost of about two nanoseconds. Machine code
reads the address from a variable of the process, ``liedyn_late_<module>_<name>``. While that is zero it calls Python,
which compiles the kernel or reads it from the cache.

Inside a user's own parallel loop (`prange`), Python may be blocked: the thread that waits for the others holds the
interpreter's lock. So when a user's function is compiled, all late kernels that it may call are compiled with it.
"""
# mypy: ignore-errors
import _thread
import ctypes
from dataclasses import dataclass

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError

from liedyn.machine.typed_decorators import intrinsic


_I64 = ir.IntType(64)
_LATE = {}
"""All late kernels by the name of their variable."""


def compiled_for(kernel, kinds):
    """Numba's compile result of a kernel for arguments of these types; compiled or read from the cache."""
    kernel.compile(kinds)
    return kernel.overloads[kinds]


@dataclass(frozen=True, eq=False)
class Late:
    """A late kernel: function, argument types, and the variable that holds its address."""

    kernel: object
    kinds: tuple
    address: ctypes.c_int64

    def bind(self):
        """Compile the kernel and store its address; Ctrl-C is deferred until that is done."""
        interrupted = False
        while not self.address.value:
            try:
                found = compiled_for(self.kernel, self.kinds)
                self.address.value = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)
            except KeyboardInterrupt:
                interrupted = True
        if interrupted:
            _thread.interrupt_main()


@ctypes.CFUNCTYPE(None, ctypes.c_char_p)
def _bind(name):
    _LATE[name.decode()].bind()


binding.add_symbol("liedyn_bind", ctypes.cast(_bind, ctypes.c_void_p).value)


@dataclass(frozen=True)
class BindAll:
    """Binds kernels by name. Numba calls it before a function that may call them and that was read from its cache."""

    names: tuple

    def __call__(self):
        for name in self.names:
            _LATE[name].bind()
            bind_called(_LATE[name].kernel.overloads[_LATE[name].kinds].library)


def bind_called(library):
    """Bind all late kernels that the code of a library may call."""
    module = library._get_module_for_linking()
    names = tuple(sorted(each.name for each in module.global_variables if each.name in _LATE))
    if names:
        bind_all = BindAll(names)
        library._reload_init.add(bind_all)
        bind_all()


def late_call(kernel, kinds, returned):
    """An intrinsic that calls a kernel of one signature by address; `returned` is None if not yet inferred."""
    name = f"liedyn_late_{kernel.__module__}_{kernel.__name__}".replace(".", "_")
    entry = _LATE[name] = Late(kernel, kinds, ctypes.c_int64(0))
    binding.add_symbol(name, ctypes.addressof(entry.address))

    def codegen(context, builder, signature, arguments):
        module, convention, returned = builder.module, context.call_conv, signature.return_type
        kept = module.globals.get(name) or ir.GlobalVariable(module, _I64, name)
        with builder.if_then(cgutils.is_null(builder, builder.load(kept)), likely=False):
            bind = cgutils.get_or_insert_function(
                module, ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t]), "liedyn_bind")
            builder.call(bind, [context.insert_const_string(module, name)])
        address = builder.load(kept)
        with builder.if_then(cgutils.is_null(builder, address), likely=False):
            convention.return_user_exc(builder, RuntimeError, (f"{kernel.__name__} could not be compiled",))
        callee = builder.inttoptr(address, convention.get_function_type(returned, kinds).as_pointer())
        values = cgutils.unpack_tuple(builder, arguments[0], len(kinds))
        status, value = convention.call_function(builder, callee, returned, kinds, values)
        with builder.if_then(status.is_error, likely=False):  # a kernel that it calls could not be compiled
            convention.return_status_propagate(builder, status)
        return value

    @intrinsic
    def call(typing, *given):
        taken = []
        for k, (found, kind) in enumerate(zip(given, kinds, strict=True)):
            is_array = isinstance(kind, types.Array)
            as_it_is = found == kind or is_array and found == kind.copy(readonly=True)  # late kernels only read these
            if not as_it_is and (is_array or typing.can_convert(found, kind) is None):
                raise TypingError(f"argument {k} of the late kernel {kernel.__name__} is {found}, not {kind}")
            taken.append(found if as_it_is else kind)
        result = compiled_for(kernel, kinds).signature.return_type if returned is None else returned
        return result(types.StarArgTuple(taken)), codegen

    call.__doc__ = kernel.__doc__
    return call
