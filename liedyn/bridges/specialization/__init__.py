"""Straight-line kernels for one robot: the recursions of `liedyn.mechanics.tree`, executed once on expressions and
written as a program.

`expressions` simplifies expressions, `tracing` runs a kernel's own body on them,
`viewpoint` chooses the equivalent model and the frame in which most expressions are constant, `source` writes the
program, and `specialize` compiles it.
"""
from liedyn.bridges.specialization.specialize import Specialized, specialize

__all__ = ["Specialized", "specialize"]
