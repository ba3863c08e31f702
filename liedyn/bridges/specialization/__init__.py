"""Straight-line kernels for one robot: the recursions of `liedyn.mechanics.tree`, run once on expressions and written
down.

`expressions` simplifies what is computed, `tracing` runs a kernel's own body on expressions,
`viewpoint` chooses the equivalent model and the frame in which most is constant, `source` writes the program, and
`specialize` compiles it.
"""
from liedyn.bridges.specialization.specialize import Specialized, specialize

__all__ = ["Specialized", "specialize"]
