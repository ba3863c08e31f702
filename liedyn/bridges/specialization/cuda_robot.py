"""The functions of one robot on a GPU, and its programs, in stages where one kernel is too long."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING

import numpy as np

from liedyn.bridges.specialization.c_names import identifier
from liedyn.bridges.specialization.cuda_bodies import CudaBody, has_numba_cuda
from liedyn.bridges.specialization.cuda_device import CupyDevice
from liedyn.bridges.specialization.cuda_launches import DeviceBatch
from liedyn.bridges.specialization.references import References, references, require_programs
from liedyn.bridges.specialization.shortest_programs import ShortestPrograms
from liedyn.linear.linearize import linearize
from liedyn.machine.errors import InputError, LiedynError, shown
from liedyn.machine.program.cuda import LANGUAGES, REGISTERS, cuda_function
from liedyn.machine.program.cuda_texts import TRANSPOSE, head
from liedyn.machine.program.expressions import value_of
from liedyn.machine.program.register_chunks import pressure_of
from liedyn.machine.program.trace import room
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.dynamics.forward import forward_dynamics
from liedyn.mechanics.tree.aba import aba
from liedyn.mechanics.tree.aba_derivatives import aba_derivatives
from liedyn.mechanics.tree.crba import crba
from liedyn.mechanics.tree.ltdl import ltdl_factor, ltdl_inverse, ltdl_solve_both
from liedyn.mechanics.tree.rnea import rnea
from liedyn.mechanics.tree.rnea_derivatives import rnea_derivatives

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike, Function

FALLBACKS, LAYOUTS = ("cpu", "nan", "raise"), ("rows", "columns")
TREE = {function.__name__: function for function in (rnea, aba, crba, rnea_derivatives, aba_derivatives)}
FUNCTIONS = (*TREE, "forward_dynamics", "linearize")
LONGEST, LONGEST_LINES = 40_000, 12_000
"""Operations of a program that is compiled at all, which takes minutes; and of one that is better than the loops of the
kernel's own body, for functions of the open tree."""
CLOSURE_TOLERANCE = {"float64": 1e-8, "float32": 1e-4}
"""Largest closure error of states of linear models [rad, m]."""
ROOM = 40_000
"""Operations of a function at all reference states together, which one kernel tries."""


_COMMON = """
Parameters
----------
{given}
fallback : {{"cpu", "nan", "raise"}}
    What is done with states for which `ok` is false.

Returns
-------
{found}
ok : array of bool, shape (...)
    True where the GPU has computed the result.

Raises
------
InputError
    A shape or type does not fit; with ``fallback="raise"``, a state has no result.

Examples
--------
>>> import liedyn as ld
>>> gpu = ld.specialize(ld.load("panda"), device="cuda")
>>> {call}  # doctest: +SKIP
"""
_ARGUMENTS = {"q": "(..., nq)\n    Configurations [rad, m; quaternions (x, y, z, w)].",
              "v": "(..., nv)\n    Velocities [rad/s, m/s].", "a": "(..., nv)\n    Accelerations [rad/s^2, m/s^2].",
              "tau": "(..., nv)\n    Generalised forces [N m, N]."}
STAGES = 1.5
"""Stages cost time for memory: they pay if a function needs so many times the numbers that a thread has room for."""


class CudaPrograms(ShortestPrograms):
    """`ShortestPrograms`, and stages."""

    def stages(self, name, real):
        """A function, and what computes the same by several kernels if it needs too many registers as one."""
        whole = self.trace(name)
        if name != "aba_derivatives" or pressure_of(whole) <= STAGES * REGISTERS[real]:
            return [whole]
        derivatives = self.trace("rnea_derivatives")
        self.state |= {x: list(map(value_of, values)) for x, values in derivatives.results.items()}
        return [whole, self.trace("aba"), derivatives, self.trace("solved_derivatives")]

    def solved_derivatives(self, plain, dtau_dq, dtau_dv, M):
        """Derivatives of accelerations from those of forces, and the inverse of M."""
        n, model = self.n, self.model
        L, da_dq, da_dv, Minv = M.copy(), dtau_dq.copy(), dtau_dv.copy(), room(n * n)
        plain(ltdl_factor)(SCALAR, model, L)
        plain(ltdl_solve_both)(SCALAR, model, L, -1.0, da_dq, da_dv, n)
        plain(ltdl_inverse)(SCALAR, model, L, Minv)
        return {"da_dq": da_dq, "da_dv": da_dv, "Minv": Minv}


def _documented(*results: str) -> Callable[[Function], Function]:
    """Adds to the first line of a method what all of them have in common."""
    def document(method: Function) -> Function:
        if method.__doc__:
            given = [x for x in inspect.signature(method).parameters if x in _ARGUMENTS]
            method.__doc__ += "\n" + _COMMON.format(
                given="\n".join(f"{x} : array, shape {_ARGUMENTS[x]}" for x in given),
                found="\n".join(f"{x} : array, shape {shape}" for x, shape in zip(results[::2], results[1::2])),
                call=f"{', '.join(results[::2])}, ok = gpu.{method.__name__}({', '.join(given)})")
        return method
    return document


class CudaRobot:
    """The functions of one robot on a GPU; returned by ``specialize(robot, device="cuda")``.

    Arguments are arrays on the GPU, of CuPy, PyTorch, JAX or whatever exports DLPack, of type `dtype`, and are not
    copied; NumPy's are. Results are arrays of the library of the first argument, on the GPU. The last one, `ok`, is
    true for states whose results the GPU has computed. Decisions that depend on the state, such as pivots, were made at
    reference states, and each state is asked whether they are right for it: where they are not, `ok` is false and
    `fallback` decides (a function of the open tree that is too long for one program, such as the derivatives of a
    humanoid, is compiled by numba-cuda from its kernel, and has no such decisions):

    - ``"cpu"``: liedyn's general functions compute these states, and raise the errors that they raise,
    - ``"nan"``: the results are not numbers, and nothing waits for the GPU,
    - ``"raise"``: an `InputError`.

    Attributes
    ----------
    robot : Robot
    dtype : str
        "float64" or "float32".
    layout : str
        "rows" for arrays of shapes (count, n) and (count, n, n), or "columns" for (n, count) and (n, n, count).

    Examples
    --------
    >>> import liedyn as ld
    >>> gpu = ld.specialize(ld.load("five_bar"), device="cuda")
    >>> A, B, f0, ok = gpu.linearize(q, v, tau)  # doctest: +SKIP
    >>> gpu.independent
    ('q1', 'q2')
    """

    robot: Robot
    dtype: str
    layout: str

    def __init__(self, robot: Robot, at: ArrayLike | None, dtype: str, layout: str, device: Any = None) -> None:
        require_programs(robot, "specialize on a GPU")
        for name, value, known in (("dtype", dtype, tuple(LANGUAGES)), ("layout", layout, LAYOUTS)):
            if not isinstance(value, str) or value not in known:
                raise InputError(f"{name} must be {' or '.join(map(repr, known))}, got {shown(value)}")
        self.robot, self.dtype, self.layout = robot, dtype, layout
        self._given = None if at is None else np.array(at, np.float64)
        self._references = References(robot, lambda state: CudaPrograms(robot, state),
                                      None if at is None else references(robot, at), room=ROOM)
        self._functions: dict[str, Any] = {}
        self._launches: dict[str, Any] = {}
        self._on = device

    def __reduce__(self) -> Any:
        return CudaRobot, (self.robot, self._given, self.dtype, self.layout)

    def __repr__(self) -> str:
        return f"CudaRobot({self.robot.name!r}, nv={self.robot.nv}, dtype={self.dtype!r}, layout={self.layout!r})"

    def source(self, name: str) -> str:
        """CUDA C++ of a function: ``ROBOT_NAME(q, v, tau, A, B, f0)`` for one state in your own kernels.

        Its arguments are pointers to the numbers of one state, or what has an operator ``[]``. It returns 1, or 0 where
        there is no result. The kernels that `CudaRobot` launches follow, one thread for each state. The text needs no
        other file and neither CuPy nor a GPU: NVRTC and nvcc compile it, and for other compilers of C++ the kernels are
        loops over the states.

        Parameters
        ----------
        name : str
            Of "rnea", "aba", "crba", "rnea_derivatives", "aba_derivatives", "forward_dynamics" and "linearize".

        Returns
        -------
        str

        Raises
        ------
        InputError
            An unknown function, or one that is too long for one program.

        Examples
        --------
        >>> import liedyn as ld
        >>> gpu = ld.specialize(ld.load("four_bar"), device="cuda")
        >>> "four_bar_linearize(T0 q, T1 v, T2 tau, T3 A, T4 B, T5 f0)" in gpu.source("linearize")
        True
        """
        function = self._function(name)
        if isinstance(function, CudaBody):
            raise InputError(f"{name} of {self.robot.name!r} is too long for one program, and has no source: its "
                             "kernel is compiled by numba-cuda")
        return head() + function.text + TRANSPOSE[self.dtype]

    @_documented("tau", "(..., nv)")
    def rnea(self, q: Any, v: Any, a: Any, fallback: str = "cpu") -> tuple[Any, Any]:
        """Inverse dynamics of the open tree, as `liedyn.rnea`."""
        return self._run("rnea", fallback, q=q, v=v, a=a)

    @_documented("a", "(..., nv)")
    def aba(self, q: Any, v: Any, tau: Any, fallback: str = "cpu") -> tuple[Any, Any]:
        """Forward dynamics of the open tree, as `liedyn.aba`."""
        return self._run("aba", fallback, q=q, v=v, tau=tau)

    @_documented("M", "(..., nv, nv)")
    def crba(self, q: Any, fallback: str = "cpu") -> tuple[Any, Any]:
        """The inertia matrix of the open tree, as `liedyn.crba`."""
        return self._run("crba", fallback, q=q)

    @_documented("dtau_dq", "(..., nv, nv)", "dtau_dv", "(..., nv, nv)", "M", "(..., nv, nv)")
    def rnea_derivatives(self, q: Any, v: Any, a: Any, fallback: str = "cpu") -> tuple[Any, Any, Any, Any]:
        """Derivatives of inverse dynamics, as `liedyn.rnea_derivatives`."""
        return self._run("rnea_derivatives", fallback, q=q, v=v, a=a)

    @_documented("da_dq", "(..., nv, nv)", "da_dv", "(..., nv, nv)", "Minv", "(..., nv, nv)")
    def aba_derivatives(self, q: Any, v: Any, tau: Any, fallback: str = "cpu") -> tuple[Any, Any, Any, Any]:
        """Derivatives of forward dynamics, as `liedyn.aba_derivatives`."""
        return self._run("aba_derivatives", fallback, q=q, v=v, tau=tau)

    @_documented("a", "(..., nv)", "lam", "(..., m)")
    def forward_dynamics(self, q: Any, v: Any, tau: Any, fallback: str = "cpu") -> tuple[Any, Any, Any]:
        """Forward dynamics of the mechanism, and multipliers of its constraints, as `liedyn.forward_dynamics`."""
        return self._run("forward_dynamics", fallback, q=q, v=v, tau=tau)

    @_documented("A", "(..., nx, nx)", "B", "(..., nx, nu)", "f0", "(..., nx)")
    def linearize(self, q: Any, v: Any, tau: Any, fallback: str = "cpu") -> tuple[Any, Any, Any, Any]:
        """The linear model of the mechanism, as `liedyn.linearize`, in the coordinates `independent`.

        States that are not closed, or whose velocities do not keep them closed, have none: `ok` is false.
        """
        return self._run("linearize", fallback, q=q, v=v, tau=tau)

    @property
    def independent(self) -> tuple[str, ...]:
        """Names of the independent coordinates of linear models."""
        return self._references.of("linearize")[0].choices()[0].names

    # ---- programs

    @property
    def _device(self):
        if self._on is None:
            self._on = CupyDevice()
        return self._on

    def _function(self, name):
        if not isinstance(name, str) or name not in FUNCTIONS:
            raise InputError(f"unknown function {shown(name)}: there are {', '.join(FUNCTIONS)}")
        if name not in self._functions:
            self._functions[name] = self._made(name)
        return self._functions[name]

    def _made(self, name):
        """A program, or the kernel's body for what is too long for one."""
        length = self._references.first(name).trace(name).length()
        recursion = "aba" if name == "forward_dynamics" and not self.robot.row_names else name
        if recursion in TREE and length > LONGEST_LINES and (length > LONGEST or has_numba_cuda()):
            return CudaBody(self.robot, recursion)
        if length > LONGEST:
            raise InputError(f"{name} of {self.robot.name!r} is a program of {length} operations, more than "
                             f"{LONGEST}: the general ld.{name} has no such limit")
        real = LANGUAGES[self.dtype].real
        return cuda_function(f"{identifier(self.robot.name)}_{name}", self.dtype,
                             [programs.stages(name, real) for programs in self._references.of(name)])

    def _computed(self, name, function, states):
        """Results (count, size) by name, `ok`, and how many states have none."""
        rows = self.layout == "rows"
        if isinstance(function, CudaBody):
            return function.run(self._device, states, self.dtype, rows)
        if name not in self._launches:
            self._launches[name] = self._device.compile(self.source(name))
        return DeviceBatch(self._device, function, self._launches[name], self.dtype).run(states, rows)

    # ---- calls

    def _run(self, name, fallback, **given):
        if fallback not in FALLBACKS:
            raise InputError(f"fallback must be one of {', '.join(map(repr, FALLBACKS))}, got {shown(fallback)}")
        function, first = self._function(name), next(iter(given.values()))
        states, single = self._states(function, given)
        results, ok, failed = self._computed(name, function, states)
        if fallback != "nan" and int(self._device.host(failed)[0]):
            if fallback == "raise":
                raise InputError(f"{int(self._device.host(failed)[0])} of {len(ok)} states have no result of {name} on "
                                 "the GPU: their decisions differ from those at the reference states")
            self._on_cpu(name, states, results, ok)
        shaped = [self._shaped(x, results.get(x), size, len(ok), single) for x, size in self._sizes(name).items()]
        return tuple(self._device.like(x, first) for x in (*shaped, ok.view(bool)[0 if single else slice(None)]))

    def _states(self, function, given):
        """Arguments as arrays (count, n), and whether they are those of one state."""
        arrays, counts = {}, []
        for name, x in given.items():
            x, size = self._device.array(x), function.inputs[name]
            rows = x.T if self.layout == "columns" and x.ndim == 2 else x
            if rows.dtype != self.dtype:
                raise InputError(f"{name} must be of type {self.dtype}, got {rows.dtype}")
            if rows.ndim not in (1, 2) or rows.shape[-1] != size:
                wanted = f"({size}, count)" if self.layout == "columns" else f"(count, {size})"
                raise InputError(f"{name} must have shape {wanted} or ({size},), got {x.shape}")
            arrays[name] = rows
            counts += [len(rows)] * (rows.ndim == 2)
        if len(set(counts)) > 1:
            raise InputError(f"arguments must have equally many states, got {', '.join(map(str, counts))}")
        count = counts[0] if counts else 1
        return {name: x if x.ndim == 2 else self._device.broadcast(x, (count, len(x)))
                for name, x in arrays.items()}, not counts

    def _sizes(self, name):
        results = self._references.first(name).trace(name).results
        return {x: len(values) for x, values in results.items()}

    def _shaped(self, name, x, size, count, single):
        """Numbers of results (count, size) as vectors or matrices, in the layout."""
        if x is None:
            x = self._device.empty((count, size), self.dtype)
        shape = (size,)
        if name == "B":
            order = math.isqrt(len(self._references.of("linearize")[0].trace("linearize").results["A"]))
            shape = (order, size // order)
        elif name not in ("tau", "a", "lam", "f0"):
            shape = (math.isqrt(size),) * 2
        if single:
            return x[0].reshape(shape)
        return x.T.reshape(*shape, count) if self.layout == "columns" else x.reshape(count, *shape)

    def _on_cpu(self, name, states, results, ok):
        """The general functions, for states that have no result yet."""
        at = np.flatnonzero(self._device.host(ok) == 0)
        places = self._device.array(at)
        given = {x: self._device.host(array[places]).astype(np.float64) for x, array in states.items()}
        try:
            found = self._general(name, given)
        except LiedynError as error:
            error.add_note(f"{name} was asked for states {at[:10].tolist()} of a batch on the GPU by fallback='cpu'")
            raise
        for x, values in zip(self._sizes(name), found):
            if x in results:
                results[x][places] = self._device.array(np.reshape(values, (len(at), -1)).astype(self.dtype))

    def _general(self, name, given):
        if name == "linearize":
            y, w = self._references.of(name)[0].choices()
            space = linearize(self.robot, given["q"], given["v"], given["tau"], independent=y.names, speeds=w.names,
                              closure_tolerance=CLOSURE_TOLERANCE[self.dtype], results=("A", "B", "f0"))
            return space.A, space.B, space.f0
        if name == "forward_dynamics":
            found = forward_dynamics(self.robot, given["q"], given["v"], given["tau"], independent="auto")
            return found.a, found.lam
        found = TREE[name](self.robot, *given.values())
        return found if isinstance(found, tuple) else (found,)
