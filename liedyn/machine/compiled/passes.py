"""From Python's bytecode to LLVM code: only those passes of Numba that kernels need.

Numba's own pipeline also looks for parallel loops, closures, generators, object mode and more, and analyses the
function anew for each of them. Kernels have none of these. The remaining passes run in Numba's order, with Numba's
code.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING

from numba.core import errors, typed_passes, types, typing, untyped_passes
from numba.core.analysis import dead_branch_prune, rewrite_semantic_constants
from numba.core.compiler import CompilerBase
from numba.core.ir_utils import build_definitions
from numba.core.ssa import reconstruct_ssa
from numba.core.targetconfig import ConfigStack

if TYPE_CHECKING:
    from typing import Any


class Types(typing.Context):
    """Numba's typing context, which remembers resolved operations, as kernels repeat the same few."""

    def __init__(self, context):  # not Numba's __init__: all type information is shared
        self.__dict__.update(context.__dict__)
        self._known, self._found = {}, None

    def resolve_function_type(self, func, args, kws):
        if isinstance(func, (types.Type, str)) and not isinstance(func, types.Function):
            return super().resolve_function_type(func, args, kws)
        plain = tuple(map(types.unliteral, args))
        if all(isinstance(each, (types.Number, types.Boolean)) for each in plain):
            args = plain  # arithmetic is resolved alike for all these numbers
        key = func, tuple(args), tuple(kws.items()) if kws else ()
        if key not in self._found:
            self._found[key] = super().resolve_function_type(func, args, kws)
        return self._found[key]

    @contextlib.contextmanager
    def with_flags(self, flags):
        """Context for compiling a function with these flags, on which the resolved operations depend."""
        before, self._found = self._found, self._known.setdefault(flags, {})
        try:
            yield
        finally:
            self._found = before


types_of = functools.cache(Types)


class Compiler(CompilerBase):
    """The compiler class that Numba's dispatcher calls."""

    def __init__(self, typingctx, targetctx, library, args, return_type, flags, names):
        super().__init__(types_of(typingctx), targetctx, library, args, return_type, flags, names)

    lower: Any = staticmethod(typed_passes.NativeLowering().run_pass)
    """The step that generates LLVM code."""

    def _compile_core(self):
        state, flags = self.state, self.state.flags.copy()
        with ConfigStack().enter(flags), state.typingctx.with_flags(flags):
            try:
                for step in (_read, _prune, _rewrite, _single_assignments, _prune, _infer_types, _plain_assignments,
                             _legalize, self.lower, _conclude):
                    step(state)
            except errors.NumbaError as error:
                error.args = f"in {state.func_id.func_qualname}\n{error}",
                raise
        state.pipeline = None
        return state.cr


def _read(state):
    untyped_passes.TranslateByteCode().run_pass(state)
    untyped_passes.FixupArgs().run_pass(state)
    untyped_passes.IRProcessing().run_pass(state)


def _prune(state):
    """Remove branches that the argument types decide, such as tests for None."""
    rewrite_semantic_constants(state.func_ir, state.args)
    dead_branch_prune(state.func_ir, state.args)


def _single_assignments(state):
    """Convert to static single assignment: values from several branches meet in a phi node."""
    state.func_ir = reconstruct_ssa(state.func_ir)
    state.func_ir._definitions = build_definitions(state.func_ir.blocks)


def _plain_assignments(state):
    """Convert back: each branch assigns the variable."""
    state.func_ir = typed_passes.PreLowerStripPhis()._strip_phi_nodes(state.func_ir)
    state.func_ir._definitions = build_definitions(state.func_ir.blocks)


_rewrite = untyped_passes.GenericRewrites().run_pass
_infer_types = typed_passes.NopythonTypeInference().run_pass
_legalize = typed_passes.IRLegalization().run_pass
_conclude = typed_passes.NoPythonBackend().run_pass
