"""The recursions for which `specialize` writes programs, and the parts that remain loops."""
from typing import NamedTuple

import numpy as np
from numba.core.registry import CPUDispatcher

from liedyn.bridges.specialization.viewpoint import Viewpoint, base_parameters
from liedyn.machine.program.expressions import ARITHMETIC, Program
from liedyn.machine.program.trace import Tracer, constants, inputs, room
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.tree.aba import aba
from liedyn.mechanics.tree.aba_derivatives import aba_derivatives
from liedyn.mechanics.tree.ltdl import ltdl_inverse, ltdl_solve, ltdl_solve_both
from liedyn.mechanics.tree.rnea import rnea
from liedyn.mechanics.tree.rnea_derivatives import rnea_derivatives
from liedyn.model.calls.recursion import RECURSIONS as DECLARED
from liedyn.model.packed import NQ, NV, N_LINKS, PackedModel


class Recursion(NamedTuple):
    """A kernel of `liedyn.mechanics.tree` and its arrays.

    Attributes
    ----------
    kernel, size : CPUDispatcher
        The kernel, and the size of its workspace.
    inputs : tuple of str
        Names of its arguments from the state.
    written : tuple of str
        All arrays to which it writes.
    results : dict
        The arrays that are results, with their declared shapes.
    in_world : bool
        True if it uses world coordinates.
    """

    kernel: CPUDispatcher
    size: CPUDispatcher
    inputs: tuple
    written: tuple
    results: dict
    in_world: bool

    @classmethod
    def of(cls, declared, in_world):
        """The `Recursion` of a declaration, without external wrenches."""
        inputs = tuple(x for x in declared.inputs if x != "f_ext")
        return cls(declared.kernel, declared.size, inputs, (*declared.scratch, *declared.results), declared.results,
                   in_world)

    @property
    def scratch(self):
        """Arrays for intermediate results; `tau` is excluded, as straight-line programs do not need it."""
        return tuple(name for name in self.written if name not in self.results and name != "tau")


RECURSIONS = {each.__name__: Recursion.of(DECLARED[each.__name__], each in (rnea_derivatives, aba_derivatives))
              for each in (rnea, aba, rnea_derivatives, aba_derivatives)}


COLUMNS, FACTOR = "columns", "L"


class Solution(NamedTuple):
    """Straight lines for registers of columns: the new values of the rows of some matrices.

    Attributes
    ----------
    program : Program
        Its inputs are the rows `COLUMNS` and the numbers `FACTOR`.
    rows : ndarray of object
    matrices : tuple of str
    """

    program: Program
    rows: np.ndarray
    matrices: tuple


class Trace(NamedTuple):
    """A traced recursion: expressions for each array, the systems to be solved, and the kernels called at the end."""

    program: Program
    arrays: dict
    solutions: tuple
    calls: tuple

    def operations(self):
        """Numbers of additions and subtractions, multiplications, divisions, without the calls at the end.

        Returns
        -------
        dict of int
        """
        used = self.program.used_by(x for array in self.arrays.values() for x in array)
        kinds = [x.operation for x in self.program if x.number in used]
        return {operation: kinds.count(operation) for operation in ARITHMETIC}


def shortest_trace(recursion, model):
    """The trace with the fewest operations, over all links from which the recursion may be seen.

    Parameters
    ----------
    recursion : Recursion
    model : PackedModel

    Returns
    -------
    Trace
    """
    model = base_parameters(model)
    links = range(model.ints[N_LINKS]) if recursion.in_world else [None]
    return min((_trace(recursion, model, link) for link in links), key=lambda trace: sum(trace.operations().values()))


def _trace(recursion, model, seen_from):
    model = PackedModel(constants(model.ints), constants(model.floats))
    n, rng = model.ints[NV], np.random.default_rng(0)
    program = Program({name: rng.normal(size=model.ints[NQ] if name == "q" else n) for name in recursion.inputs})
    arrays = {name: np.full(n * n, None) for name in recursion.written}
    in_the_end = _InTheEnd(arrays)

    def instead(plain):
        view = {} if seen_from is None else Viewpoint(seen_from, plain).instead()
        return in_the_end.instead() | view

    plain = Tracer(program, instead).plain
    state = [inputs(program, name, len(program.reference[name])) for name in recursion.inputs]
    plain(recursion.kernel)(SCALAR, model, *state, room(0), room(plain(recursion.size)(model)), *arrays.values())
    wanted = {name: arrays[name] for name in (*recursion.scratch, *recursion.results)}
    return Trace(program, wanted, tuple(in_the_end.solutions), tuple(in_the_end.calls))


class _InTheEnd:
    """Solutions for many columns are computed by registers, the inverse by a loop: shorter than straight lines."""

    def __init__(self, arrays):
        self.solutions, self.calls, self._names = [], [], {id(array): name for name, array in arrays.items()}

    def instead(self):
        return {ltdl_solve_both: self._solve_columns, ltdl_inverse: self._invert}

    def _solve_columns(self, lane, model, L, factor, B, C, columns):
        program = Program({COLUMNS: np.ones(columns), FACTOR: np.ones(columns * columns)})
        rows, numbers = inputs(program, COLUMNS, columns), inputs(program, FACTOR, columns * columns)
        Tracer(program).plain(ltdl_solve)(lane, model, numbers, factor, rows, 1)
        self.solutions.append(Solution(program, rows, (self._names[id(B)], self._names[id(C)])))

    def _invert(self, lane, model, L, Minv):
        Minv[:] = None
        self.calls.append((ltdl_inverse, "lane", "MODEL", self._names[id(L)], self._names[id(Minv)]))
