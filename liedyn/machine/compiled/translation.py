"""Machine code only for functions that are called from outside.

Numba translates every function that another one calls: it links all callees into it, optimises the whole and makes
machine code, although its caller uses the LLVM code only, and optimises that again. In a chain of kernels the innermost
is optimised and translated as often as the chain is long: half of the time of a first call.

Here a function that is compiled for a caller stops at its own LLVM code, in which helpers have been inlined and
simplified. The outermost kernel links all its callees, each once, and is optimised and translated once. A kernel that
stopped at LLVM code and is called from Python later is then translated.

This uses parts of Numba that may change: the classes here are those of `numba.core` with a few methods overridden. With
a version of Numba that is not in `KNOWN`, kernels are compiled by Numba's own pipeline; only the first call takes
longer then.
"""
# mypy: ignore-errors

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import operator
import threading
from typing import TYPE_CHECKING

import numba
from llvmlite import binding as llvm
from numba import njit
from numba.core import cgutils, cpu, ir, lowering, typed_passes, types, typing
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.np.arrayobj import raise_with_shape_context

from liedyn.machine.compiled.compile_progress import notice
from liedyn.machine.compiled.late import BindAll, bind_called
from liedyn.machine.compiled.passes import Compiler
from liedyn.machine.compiled.slices import interrupts_noted

if TYPE_CHECKING:
    from typing import Any

KNOWN = {(0, 68)}
"""Versions of Numba with which this was tested."""
IS_KNOWN = numba.version_info[:2] in KNOWN and not numba.config.DISABLE_JIT


class Waiting:
    """Stands for the entry point of a function without machine code, and holds what its wrappers are made from.

    Numba uses an entry point also as a key, by which callers find the function.
    """

    def __init__(self, library, fndesc, env):
        self.library, self.fndesc, self.env = library, fndesc, env


class Library(JITCodeLibrary):
    """The LLVM code of one function; its callees are remembered, not linked in."""

    is_helper = False
    knows_environments = False
    """Its functions' environments lack the wrappers' constants: the cache must not replace complete ones by them."""

    def add_ir_module(self, ir_module):  # as Numba's, but only the whole is verified, not each module
        module = llvm.parse_assembly(cgutils.normalize_ir_text(str(ir_module)))
        module.name = ir_module.name
        self.add_llvm_module(module)

    def _optimize_functions(self, ll_module):  # done in `absorb`
        ll_module.data_layout = self._codegen._data_layout

    def add_linking_library(self, library):
        if not isinstance(library, Library):
            library._ensure_finalized()
        self._linking_libraries.append(library)

    def absorb(self):
        """Inline the helpers of this function and their helpers, and simplify while it is small.

        Doing all at once, in the outermost kernel, took two to three times as long: LLVM's cost of variables in memory
        grows with their number times the size of the function.
        """
        helpers = {each: None for each in self._linking_libraries if isinstance(each, Library) and each.is_helper}
        own = _defined(self._final_module)
        for each in helpers:
            self._inherit(each)
            self._final_module.link_in(each._final_module, preserve=True)
        called = [self._linking_libraries, *(helper._linking_libraries for helper in helpers)]
        self._linking_libraries = list(dict.fromkeys(each for some in called for each in some if each not in helpers))
        _allow_copies(self._final_module, own)
        self._codegen.simplify(self._final_module)

    def _inherit(self, library):
        """Take over a library's actions on reading it from the cache, except those of users' functions."""
        self._reload_init.update(each for each in library._reload_init if not isinstance(each, BindAll))

    def _called(self):
        """All libraries that this one needs, each once; finished ones last, as LLVM links only symbols still needed."""
        found, waiting = {}, [self]
        while waiting:
            for library in waiting.pop()._linking_libraries:
                if library not in found:
                    found[library] = None
                    if not library._finalized:
                        waiting.append(library)
        return sorted(found, key=lambda library: library._finalized)

    def finalize(self):
        self._raise_if_finalized()
        self._codegen._check_llvm_bugs()
        whole = self._final_module
        own = _defined(whole)
        for library in self._called():
            self._inherit(library)
            whole.link_in(library._get_module_for_linking() if library._finalized else library._final_module,
                          preserve=True)
        _allow_copies(whole, own)
        passes, builder = self._codegen._module_pass_manager()
        passes.run(whole, builder)
        whole.verify()
        self._finalize_final_module()


def _defined(module):
    return {each.name for each in module.functions if not each.is_declaration}


def _allow_copies(module, own):
    """Declare a module's foreign functions as available elsewhere, so that LLVM may drop them."""
    for function in module.functions:
        if not function.is_declaration and function.linkage == llvm.Linkage.external and function.name not in own:
            function.linkage = "linkonce_odr"


class Codegen(JITCPUCodegen):
    """Numba's code generator with another class of library."""

    _library_class = Library

    def __init__(self, codegen):  # not Numba's __init__, which would start a second engine
        self.__dict__.update(codegen.__dict__)

    def simplify(self, module):
        """Simplify a function into which helpers have been inlined."""
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.add_new_gvn_pass()
        passes.run(module, self._pass_builder(opt=0))


_ARITHMETIC = {getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "lt", "le", "gt", "ge", "eq", "ne",
                                                   "iadd", "isub", "imul", "itruediv")}
_OPERATORS = _ARITHMETIC | {operator.getitem, operator.setitem, operator.neg}


class _OtherShape:
    """Stands for the function that Numba calls where an array is assigned to a slice of another shape.

    Numba's writes both shapes into its message: code for texts, which takes a process four seconds to compile, and
    which all kernels with a slice would contain.
    """

    @staticmethod
    def get_call_type(context, args, kws):
        return typing.signature(types.none, *args)


class _Operator(types.Function):
    """An operator of Numba's, which resolves the same operands once; Numba does so for each that it generates."""

    def __init__(self, function):  # not Numba's __init__: all is shared
        self.__dict__.update(function.__dict__)
        self._known = {}

    def get_call_type(self, context, args, kws):
        if args not in self._known:
            self._known[args] = super().get_call_type(context, args, kws)
        return self._known[args]


class _Types(typing.Context):
    """Numba's typing context as the generator of code for one function sees it."""

    def __init__(self, numbas):  # not Numba's __init__: all type information is shared
        self.__dict__.update(numbas.__dict__)
        self.numbas, self._operators = numbas, {raise_with_shape_context: _OtherShape}

    def resolve_value_type(self, val):
        if not callable(val):
            return super().resolve_value_type(val)
        if val not in self._operators:
            found = super().resolve_value_type(val)
            self._operators[val] = _Operator(found) if val in _OPERATORS else found
        return self._operators[val]


class Context(cpu.CPUContext):
    """Numba's target context, in which functions wait for machine code until they are called from outside."""

    def __init__(self, context):  # not Numba's __init__: all information about functions is shared
        self.__dict__.update(context.__dict__)
        self._internal_codegen = Codegen(context.codegen())
        self._of_one_function()

    def _of_one_function(self):
        """Begin with nothing found: of a function, as other modules may add to Numba what the next one needs."""
        numbas = getattr(self.typing_context, "numbas", self.typing_context)
        self.typing_context, self._found = _Types(numbas), {}

    def _compile_subroutine_no_cache(self, *arguments, **options):
        """Compile a function that Numba's generator of code writes: its types are Numba's own."""
        seen, self.typing_context = self.typing_context, self.typing_context.numbas
        try:
            return super()._compile_subroutine_no_cache(*arguments, **options)
        finally:
            self.typing_context = seen

    def get_function(self, fn, sig, _firstcall=True):
        if fn is _OtherShape:
            text = "cannot assign slice from input of different size"
            return lambda builder, args: self.call_conv.return_user_exc(builder, ValueError, (text,))
        if (fn, sig) not in self._found:
            self._found[fn, sig] = super().get_function(fn, sig, _firstcall)
        return self._found[fn, sig]

    def subtarget(self, **options):  # Numba's makes a new object and runs the __init__ above on it
        changed = copy.copy(self)
        changed.__dict__.update(options)
        changed._of_one_function()
        return changed

    def get_executable(self, library, fndesc, env):
        library.is_helper = fndesc.inline
        library.absorb()
        self._of_one_function()  # forgets what it has found
        notice.one_more()
        return Waiting(library, fndesc, env)


_context = functools.cache(Context)


class _Lower(lowering.Lower):
    """Numba's generator of LLVM code for one function."""

    def lower_binop(self, resty, expr, op):
        """Numbers that are known are operands like others: Numba searches for code of their own, as powers have it."""
        if op in _ARITHMETIC and all(isinstance(self.typeof(x.name), types.Number) for x in (expr.lhs, expr.rhs)):
            expr.static_lhs = expr.static_rhs = ir.UNDEFINED
        return super().lower_binop(resty, expr, op)


class _Lowering(typed_passes.NativeLowering):
    """Numba's lowering, which leaves the wrappers for Python and C for later."""

    lowering_class = _Lower

    def run_pass(self, state):
        flags = state.flags
        wanted = flags.no_cpython_wrapper, flags.no_cfunc_wrapper
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        super().run_pass(state)
        flags.no_cpython_wrapper, flags.no_cfunc_wrapper = wanted
        state.cr.cfunc.call_helper = state.cr.call_helper


class _Compiler(Compiler):
    def __init__(self, typingctx, targetctx, *args):
        super().__init__(typingctx, _context(targetctx), *args)

    lower: Any = staticmethod(_Lowering().run_pass)


@contextlib.contextmanager
def _locks_unnoted():
    """Numba notes each call of LLVM once for every function that is being compiled: a twentieth of the time."""
    noted = llvm.ffi.lib._lock._cblist
    kept = [*noted]
    noted.clear()
    try:
        yield
    finally:
        noted[:] = kept


class _Chain:
    """The functions that are being compiled now, each for the one before."""

    thread = None

    @contextlib.contextmanager
    def begun(self):
        # Numba would take an interrupt for a typing error and continue
        with interrupts_noted(), global_compiler_lock, _locks_unnoted():
            collects = gc.isenabled()
            gc.disable()  # a collection would walk over millions of objects, none of which is garbage yet
            self.thread = threading.get_ident()
            notice.begin()
            try:
                yield
            finally:
                notice.end()
                self.thread = None
                if collects:
                    gc.enable()

    def goes_on(self):
        return self.thread == threading.get_ident()


_chain = _Chain()


class Dispatcher(CPUDispatcher):
    """Numba's dispatcher of a function that gets machine code only when it is called from outside."""

    def compile(self, sig):
        if _chain.goes_on():
            known = self.overloads.get(sig) if isinstance(sig, tuple) else None
            return known.entry_point if known else super().compile(sig)
        with _chain.begun(), self._alone(sig):
            entry = super().compile(sig)
            return self._translate(sig, entry) if isinstance(entry, Waiting) else entry

    def _compile_for_args(self, *args, **kws):
        if self.targetoptions.get("no_cpython_wrapper"):  # there is no wrapper that Python could call
            raise TypeError(f"{self.__module__}.{self.__name__} is a helper of compiled code: Python cannot call it")
        return super()._compile_for_args(*args, **kws)

    def _alone(self, sig):
        """Let one of two processes that start at once compile, and the other one wait for the cached file."""
        alone = None if isinstance(sig, tuple) and sig in self.overloads else getattr(self._cache, "alone", None)
        return alone(sig, self.targetctx.codegen()) if alone else contextlib.nullcontext()

    def get_call_template(self, args, kws):  # Numba's chooses among all signatures; a kernel has exactly the one wanted
        pysig, args = self._compiler.fold_argument_types(args, kws)
        self.compile(args)
        if not _chain.goes_on():  # the caller is a user's function
            bind_called(self.overloads[args].library)
        found = self.overloads[args].signature
        return typing.make_concrete_template(self.__name__, key=self.__name__, signatures=[found]), pysig, args, {}

    def add_overload(self, cres):
        if isinstance(cres.entry_point, Waiting) or self.targetoptions.get("no_cpython_wrapper"):
            self.overloads[cres.signature.args] = cres  # Python's wrapper is not registered, or not yet
        else:
            super().add_overload(cres)

    def _translate(self, sig, waiting):
        args = next(args for args, each in self.overloads.items() if each.entry_point is waiting)
        if waiting.library._finalized:  # a function of Numba's own kind has linked it in: too late for wrappers
            del self.overloads[args]
            waiting = super().compile(sig)
        result = self.overloads[args]
        context, library, fndesc = result.target_context, waiting.library, waiting.fndesc
        of_wrapper = library, fndesc, waiting.env, waiting.call_helper
        if not self.targetoptions.get("no_cpython_wrapper"):
            context.create_cpython_wrapper(*of_wrapper, release_gil=self.targetoptions.get("nogil", False))
        if not self.targetoptions.get("no_cfunc_wrapper"):
            context.create_cfunc_wrapper(*of_wrapper)
        entry = cpu.CPUContext.get_executable(context, library, fndesc, waiting.env)
        context.insert_user_function(entry, fndesc, [library])
        result = result._replace(entry_point=entry, reload_init=[*library._reload_init])
        self.add_overload(result)
        self._cache.save_overload(sig, result)
        return entry


def compiled(function, **options):
    """`njit` for kernels and their helpers."""
    if not IS_KNOWN:  # Numba then compiles a kernel with its callers, to which "makes no arrays" does not apply
        options.setdefault("_nrt", True)
    if not IS_KNOWN or options.get("parallel"):
        return njit(**options)(function)
    return Dispatcher(function, targetoptions={"nopython": True, **options}, pipeline_class=_Compiler)
