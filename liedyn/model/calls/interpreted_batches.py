"""Batches where calls are interpreted (`liedyn.machine.program.handover`): one thread computes all rows, in the same
slices.

Imported by `liedyn` in this case only.
"""
# mypy: ignore-errors
from liedyn.model.calls.batches import BatchKernel


def at_once(self, begin, end, many, *arguments):
    """Compute rows begin to end - 1."""
    self.kernel(begin, end, *arguments)


BatchKernel.at_once = at_once
