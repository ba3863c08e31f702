"""Straight-line kernels for one robot."""

from __future__ import annotations

import hashlib
import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING, overload

from liedyn.bridges.specialization.recursions import RECURSIONS, shortest_trace
from liedyn.bridges.specialization.source import module_source
from liedyn.machine.arguments import require_robot
from liedyn.machine.cache import cache_files as files, source_stamp
from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.tree.aba import require_regular_tree
from liedyn.model.calls.generated_calls import of_all_states
from liedyn.model.calls.recursion import document
from liedyn.model.packed import LOOPS_AT, LOOP_FLOATS_AT, TIME, PackedModel

if TYPE_CHECKING:
    from typing import Any, Literal

    from liedyn.bridges.specialization.cuda_robot import CudaRobot
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Function

LARGEST = 12
"""Largest number of degrees of freedom: larger programs compile for minutes and exceed the processor's instruction
cache, so that loops are as fast."""


def _documented(method: Function) -> Function:
    """Adds the common documentation of the methods of `Specialized`."""
    recursion = RECURSIONS[method.__name__]
    method.__doc__ = document(method.__doc__, recursion.inputs, recursion.results)
    return method


class Specialized:
    """The recursions of one open tree, compiled for its own numbers; returned by `specialize`.

    Attributes
    ----------
    robot : Robot
    kernels : module
        `rnea`, `aba`, `rnea_derivatives` and `aba_derivatives` for your own ``@njit`` functions, with the arguments of
        `liedyn.kernels` without ints, floats, f_ext, work and the first result of `rnea_derivatives`:
        ``rnea(SCALAR, q, v, a, tau)``. ``kernels.__file__`` is the program.

    Examples
    --------
    >>> import numpy as np
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> fast = ld.specialize(panda)
    >>> q = np.linspace(0.1, 0.7, 7)
    >>> bool(abs(fast.rnea(q, q, q) - ld.rnea(panda, q, q, q)).max() < 1e-12)
    True
    """

    robot: Robot
    kernels: ModuleType

    def __init__(self, robot: Robot, kernels: ModuleType) -> None:
        self.robot, self.kernels = robot, kernels

    def __reduce__(self) -> Any:
        return specialize, (self.robot,)

    def __repr__(self) -> str:
        return f"Specialized({self.robot.name!r}, nv={self.robot.nv})"

    def operations(self) -> dict[str, Any]:
        """Number of arithmetic operations of each recursion, without sines and the solution for many right sides.

        Returns
        -------
        dict
            For each recursion, by name, a dict with the counts of ``"+"``, ``"-"``, ``"*"`` and ``"/"``.

        Examples
        --------
        >>> import liedyn as ld
        >>> fast = ld.specialize(ld.load("particle_on_circle"))
        >>> sorted(fast.operations()["rnea"])
        ['*', '+', '-', '/']
        """
        return {name: shortest_trace(recursion, _tree(self.robot)).operations()
                for name, recursion in RECURSIONS.items()}

    @_documented
    def rnea(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Array | None = None) -> Array:
        """Inverse dynamics, as `liedyn.rnea` without external wrenches.

        Returns
        -------
        tau : ndarray, shape (..., nv)
            Generalised forces [N m, N].

        Examples
        --------
        >>> import liedyn as ld
        >>> fast = ld.specialize(ld.load("particle_on_circle"))
        >>> fast.rnea([0.1, 0.2], [0.0, 0.0], [1.0, 1.0]).shape
        (2,)
        """
        return self._run("rnea", out, q=q, v=v, a=a)

    @_documented
    def aba(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, out: Array | None = None) -> Array:
        """Forward dynamics of the open tree, as `liedyn.aba` without external wrenches.

        Returns
        -------
        a : ndarray, shape (..., nv)
            Accelerations [rad/s^2, m/s^2].

        Examples
        --------
        >>> import liedyn as ld
        >>> fast = ld.specialize(ld.load("particle_on_circle"))
        >>> fast.aba([0.1, 0.2], [0.0, 0.0], [0.0, 0.0]).shape
        (2,)
        """
        return self._run("aba", out, q=q, v=v, tau=tau)

    @_documented
    def rnea_derivatives(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                         out: Array | None = None) -> tuple[Array, Array, Array]:
        """Derivatives of inverse dynamics, as `liedyn.rnea_derivatives` without external wrenches.

        Returns
        -------
        dtau_dq, dtau_dv, M : ndarray, shape (..., nv, nv)

        Examples
        --------
        >>> import liedyn as ld
        >>> fast = ld.specialize(ld.load("particle_on_circle"))
        >>> [x.shape for x in fast.rnea_derivatives([0.1, 0.2], [0.0, 0.0], [1.0, 1.0])]
        [(2, 2), (2, 2), (2, 2)]
        """
        return self._run("rnea_derivatives", out, q=q, v=v, a=a)

    @_documented
    def aba_derivatives(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                        out: Array | None = None) -> tuple[Array, Array, Array]:
        """Derivatives of forward dynamics, as `liedyn.aba_derivatives` without external wrenches.

        Returns
        -------
        da_dq, da_dv, Minv : ndarray, shape (..., nv, nv)

        Examples
        --------
        >>> import liedyn as ld
        >>> fast = ld.specialize(ld.load("particle_on_circle"))
        >>> [x.shape for x in fast.aba_derivatives([0.1, 0.2], [0.0, 0.0], [0.0, 0.0])]
        [(2, 2), (2, 2), (2, 2)]
        """
        return self._run("aba_derivatives", out, q=q, v=v, tau=tau)

    def _run(self, name, out, **state):
        """One state in the usual form, or a batch."""
        made = getattr(self.kernels, f"{name}_direct")(self.robot.packed, *state.values(), out)
        if made is not None:
            return made
        shapes = tuple((self.robot.nv,) * len(shape) for shape in RECURSIONS[name].results.values())
        return of_all_states(self.robot, getattr(self.kernels, f"{name}_states"),
                             shapes if len(shapes) > 1 else shapes[0], out, state)


@overload
def specialize(robot: Robot, at: ArrayLike | None = None, device: Literal["cpu"] = "cpu", dtype: str = "float64",
               layout: str = "rows") -> Specialized: ...
@overload
def specialize(robot: Robot, at: ArrayLike | None = None, *, device: Literal["cuda"], dtype: str = "float64",
               layout: str = "rows") -> CudaRobot: ...
def specialize(robot: Robot, at: ArrayLike | None = None, device: str = "cpu", dtype: str = "float64",
               layout: str = "rows") -> Specialized | CudaRobot:
    """Write the recursions of a small robot as straight-line programs for its own numbers, and compile them.

    These are two to three times faster than the general kernels for an arm, most of all in batches. The program is
    traced from the bodies of the general kernels, simplified, and stored with the cached kernels: it is written once,
    and each recursion compiles at its first call (2 to 20 s; from the cache 10 ms).

    Parameters
    ----------
    robot : Robot
        Its loops and other constraints are ignored, as in `rnea` and `aba`, except on a GPU.
    at : array_like, shape (nq,) or (count, nq), optional
        On a GPU: reference configurations [rad, m; quaternions (x, y, z, w)], closed first, at which pivots and other
        decisions are made. Each state is asked whether they are right for it; with several references, one after the
        other. None: home, or if that is singular, a configuration near it.
    device : {"cpu", "cuda"}
        "cuda": functions for many states on a GPU of NVIDIA (needs CuPy, ``pip install 'liedyn[cuda]'``), for any
        mechanism without one-sided constraints, force elements and functions of users.
    dtype : {"float64", "float32"}
        Type of numbers on a GPU. With "float32", results have about five digits, and linear models are made of states
        that are closed to 1e-4 [rad, m].
    layout : {"rows", "columns"}
        Shapes of arrays on a GPU: (count, n), or (n, count), which is faster.

    Returns
    -------
    Specialized or CudaRobot
        With methods `rnea`, `aba`, `rnea_derivatives` and `aba_derivatives`, for one state or a batch, and `kernels`;
        on a GPU also `crba`, `forward_dynamics` and `linearize`, for arrays on the GPU, and `source`.

    Raises
    ------
    InputError
        The robot has no degree of freedom, or more than 12; on a GPU, it has what cannot be specialised there.
    SingularConfigurationError
        The robot has massless bodies that are held by its loops only; a reference configuration is singular.
    LiedynError
        CuPy is not installed.

    Notes
    -----
    Equal to the general kernels up to rounding, with two changes that do not affect the dynamics: inertias are
    grouped to base parameters (Gautier and Khalil 1990), and derivatives are computed in the frame of the link in which
    most numbers are constant (`liedyn.bridges.specialization`).

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> fast = ld.specialize(panda)
    >>> fast.aba(ld.neutral(panda), [0.0] * 7, [0.0] * 7).shape
    (7,)
    """
    require_robot(robot)
    if device == "cuda":
        from liedyn.bridges.specialization.cuda_robot import CudaRobot

        return CudaRobot(robot, at, dtype, layout)
    if device != "cpu":
        raise InputError(f"device must be 'cpu' or 'cuda', got {shown(device)}")
    if at is not None or dtype != "float64" or layout != "rows":
        raise InputError("at, dtype and layout are for device='cuda'")
    if not 0 < robot.nv <= LARGEST:
        raise InputError(f"specialize is for 1 to {LARGEST} degrees of freedom: {robot.name!r} has {robot.nv}")
    require_regular_tree(robot)
    return Specialized(robot, _module(robot))


def _tree(robot):
    """The part of the packed model that describes the tree, with time zero."""
    ints, floats = robot.packed
    tree = PackedModel(ints[:ints[LOOPS_AT]].copy(), floats[:ints[LOOP_FLOATS_AT]].copy())
    tree.floats[TIME] = 0.0
    return tree


def _source(robot):
    tree = _tree(robot)
    traces = {name: (recursion, shortest_trace(recursion, tree)) for name, recursion in RECURSIONS.items()}
    return module_source(tree.ints, traces)


def _module(robot):
    """The module with the robot's kernels, from the cache or newly written."""
    stamp = source_stamp(__file__)
    key = hashlib.sha256(str(stamp).encode() + b"".join(x.tobytes() for x in _tree(robot))).hexdigest()[:16]
    name = f"liedyn_straight_{key}"
    if name not in sys.modules:
        program, path = _program(robot, key) if stamp else (_source(robot).encode(), None)
        module = ModuleType(name)
        if path is not None:
            module.__file__ = str(path)
        # a line in front of it, as in the file
        exec(compile(b"\n" + program, f"<{name}>" if path is None else str(path), "exec"), module.__dict__)
        sys.modules[name] = module
    return sys.modules[name]


def _program(robot, key):
    """The program as bytes, and the file where it is stored, None if it cannot be."""
    name = f"straight/{re.sub('[^A-Za-z0-9]+', '_', robot.name)[:40]}_{key}.py"
    kept = files.read(name)
    if kept is not None:
        return kept.data, kept.path
    program = _source(robot).encode()
    return program, files.write(name, program)
