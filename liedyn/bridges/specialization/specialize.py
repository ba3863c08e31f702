"""Straight-line programs for one robot, as functions of Python."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, overload

import numpy as np

from liedyn.bridges.specialization.mechanism_programs import MechanismPrograms
from liedyn.bridges.specialization.recursions import RECURSIONS, shortest_trace
from liedyn.bridges.specialization.references import programs_exist, references, require_programs
from liedyn.bridges.specialization.source import recursions_module, tree_of
from liedyn.machine.arguments import names, one_of, require_robot
from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.tree.aba import require_regular_tree
from liedyn.model.calls.generated_calls import of_all_states
from liedyn.model.calls.recursion import document

if TYPE_CHECKING:
    from collections.abc import Sequence
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
    """Functions of one robot, compiled for its own numbers; returned by `specialize`.

    Attributes
    ----------
    robot : Robot
    kernels : module
        For your own ``@njit`` functions. Of the open tree, up to 12 degrees of freedom: `rnea`, `aba`,
        `rnea_derivatives` and `aba_derivatives`, with the arguments of `liedyn.kernels` without ints, floats, f_ext,
        work and the first result of `rnea_derivatives`: ``rnea(SCALAR, q, v, a, tau)``. Of closed mechanisms:
        ``forward_dynamics(SCALAR, q, v, tau, a, lam, condition, good)`` and
        ``linearize(SCALAR, q, v, tau, A, B, f0, condition, good)``; those of trees are a module with a file.
        ``good[0]`` becomes 1; or 0 where no guard holds, and then there is no result. From a ``condition[0]`` of 50 on
        few digits may be left, next to a singular configuration.

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

    def __init__(self, robot: Robot, at: Array | None = None) -> None:
        self.robot, self._at = robot, at
        self._kernels: ModuleType | None = None
        self._recursions: ModuleType | None = None
        self._programs = MechanismPrograms(robot, at)

    @property
    def kernels(self) -> ModuleType:
        robot, programs = self.robot, self._programs
        if not robot.row_names or not programs_exist(robot):
            return self._tree
        if self._kernels is None:
            self._kernels = ModuleType("kernels")
            self._kernels.__dict__.update(
                {} if robot.nv > LARGEST or robot.singular_tree else {x: getattr(self._tree, x) for x in RECURSIONS},
                forward_dynamics=programs.module("forward_dynamics", None).forward_dynamics,
                linearize=programs.module("linearize", ("A", "B", "f0")).linearize)
        return self._kernels

    @property
    def _tree(self) -> ModuleType:
        """The module with the recursions of the open tree."""
        if self._recursions is None:
            if self.robot.nv > LARGEST:
                raise InputError(f"kernels are for 1 to {LARGEST} degrees of freedom: {self.robot.name!r} has "
                                 f"{self.robot.nv}")
            require_regular_tree(self.robot)
            self._recursions = recursions_module(self.robot)
        return self._recursions

    def __reduce__(self) -> Any:
        return specialize, (self.robot, self._at)

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
        return {name: shortest_trace(recursion, tree_of(self.robot)).operations()
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

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                         out: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        """Accelerations and multipliers of the constrained mechanism, as `liedyn.forward_dynamics`.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Configuration [rad, m; quaternions (x, y, z, w)].
        v : array_like, shape (..., nv)
            Velocity [rad/s, m/s], body-fixed for spherical and free joints.
        tau : array_like, shape (..., nv)
            Generalised forces [N m, N].
        out : tuple of 2 ndarrays, optional
            Where the results go: C-contiguous float64 of their very shapes.

        Returns
        -------
        a : ndarray, shape (..., nv)
            Accelerations [rad/s^2, m/s^2].
        lam : ndarray, shape (..., rows)
            Multipliers of the constraint rows, of minimum norm.

        Raises
        ------
        InputError
            A shape does not fit, an entry is not finite, or a quaternion is not of unit length; the robot has one-sided
            constraints or functions of users.
        SingularConfigurationError
            As `liedyn.forward_dynamics`.

        Examples
        --------
        >>> import liedyn as ld
        >>> robot = ld.load("four_bar")
        >>> a, lam = ld.specialize(robot).forward_dynamics(robot.home, [0.0] * 3, [0.0] * 3)
        >>> a.shape, lam.shape
        ((3,), (5,))
        """
        require_programs(self.robot, "forward_dynamics of specialize")
        return self._programs.run("forward_dynamics", dict(q=q, v=v, tau=tau), None, out)

    def linearize(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, results: Sequence[str] = ("A", "B", "f0"),
                  out: Sequence[Array] | None = None, outputs: Sequence[str] | None = None) -> tuple[Array, ...]:
        """The matrices of `liedyn.linearize`, in the coordinates that it chooses at the reference configuration.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Configuration [rad, m; quaternions (x, y, z, w)] at which the loops are closed.
        v : array_like, shape (..., nv)
            Velocity [rad/s, m/s] that satisfies the constraints.
        tau : array_like, shape (..., nv)
            Generalised forces [N m, N].
        results : sequence of str
            Of "A", "B", "C", "D", "f0" and "K", in the order in which they are returned: what is not asked for is not
            computed.
        out : sequence of ndarray, optional
            Where the results go: C-contiguous float64 of their very shapes.
        outputs : sequence of str, optional
            Outputs of C and D, as for `liedyn.linearize`: one program for each choice of them.

        Returns
        -------
        tuple of ndarray
            A (..., nx, nx), B (..., nx, nu), C (..., ny, nx), D (..., ny, nu), f0 (..., nx), K (..., nv, p), as
            attributes of `LocalStateSpace`.

        Raises
        ------
        InputError
            A shape does not fit, an entry is not finite, v violates the constraints, a result or an output is unknown,
            or an output is the wrench of what is not a loop; the robot has one-sided constraints or
            functions of users.
        ClosureError
            A loop is open at q.
        SingularConfigurationError
            As `liedyn.linearize`.

        Examples
        --------
        >>> import liedyn as ld
        >>> robot = ld.load("four_bar")
        >>> A, B, f0 = ld.specialize(robot).linearize(robot.home, [0.0] * 3, [0.0] * 3)
        >>> A.shape, B.shape, f0.shape
        ((2, 2), (2, 3), (2,))
        """
        require_programs(self.robot, "linearize of specialize")
        asked = names("results", results)
        if not asked or not set(asked) <= {"A", "B", "C", "D", "f0", "K"} or len(set(asked)) < len(asked):
            raise InputError(f"results must be of A, B, C, D, f0 and K, got {shown(results)}")
        outputs = None if outputs is None else names("outputs", outputs)
        return self._programs.run("linearize", dict(q=q, v=v, tau=tau), asked, out, outputs)

    def _run(self, name, out, **state):
        """One state in the usual form, or a batch."""
        if self.robot.nv > LARGEST:
            many = len(RECURSIONS[name].results) > 1
            made = self._programs.run(name, state, None, out if many or out is None else (out,))
            return made if many else made[0]
        made = getattr(self._tree, f"{name}_direct")(self.robot.packed, *state.values(), out)
        if made is not None:
            return made
        shapes = tuple((self.robot.nv,) * len(shape) for shape in RECURSIONS[name].results.values())
        return of_all_states(self.robot, getattr(self._tree, f"{name}_states"),
                             shapes if len(shapes) > 1 else shapes[0], out, state)


@overload
def specialize(robot: Robot, at: ArrayLike | None = None, device: Literal["cpu"] = "cpu", dtype: str = "float64",
               layout: str = "rows") -> Specialized: ...
@overload
def specialize(robot: Robot, at: ArrayLike | None = None, *, device: Literal["cuda"], dtype: str = "float64",
               layout: str = "rows") -> CudaRobot: ...
def specialize(robot: Robot, at: ArrayLike | None = None, device: str = "cpu", dtype: str = "float64",
               layout: str = "rows") -> Specialized | CudaRobot:
    """Write functions of a robot as straight-line programs for its own numbers, and compile them.

    For a closed mechanism, batches of `linearize` are 3 to 20 times faster than those of the general kernels; the
    recursions of an arm two to three times. Programs are traced from the bodies of the general kernels, simplified, and
    stored with the cached kernels: each is written and compiled at the first call of its function (2 to 30 s, 0.2 ms
    for each operation; from the cache 10 ms). Long ones are divided into functions of a thousand lines.

    Parameters
    ----------
    robot : Robot
        Its loops and other constraints are ignored by `rnea`, `aba` and their derivatives, as in those of liedyn.
    at : array_like, shape (nq,) or (count, nq), optional
        Reference configurations [rad, m; quaternions (x, y, z, w)], closed first, at which pivots and other decisions
        are made for `forward_dynamics` and `linearize`. Each state is asked whether they are right for it; with several
        references, one after the other. None: home, or if that is singular, a configuration near it; and as many more
        as 4,000 random closed states up to half a turn away need. Where those of none are right, the general kernel
        computes the state.
    device : {"cpu", "cuda"}
        "cuda": functions for many states on a GPU of NVIDIA (needs CuPy, ``pip install 'liedyn[cuda]'``), for any
        mechanism without one-sided constraints and functions of users.
    dtype : {"float64", "float32"}
        Type of numbers on a GPU. With "float32", results have about five digits, and linear models are made of states
        that are closed to 1e-4 [rad, m].
    layout : {"rows", "columns"}
        Shapes of arrays on a GPU: (count, n), or (n, count), which is faster.

    Returns
    -------
    Specialized or CudaRobot
        With methods `forward_dynamics`, `linearize`, `rnea`, `aba`, `rnea_derivatives` and `aba_derivatives`, for one
        state or a batch, and `kernels`; on a GPU also `crba`, for arrays on the GPU, and `source`.

    Raises
    ------
    InputError
        The robot has no degree of freedom, or a configuration is of a wrong shape; on a GPU, it has what cannot be
        specialised there.
    ClosureError
        A reference configuration cannot be closed.
    SingularConfigurationError
        A reference configuration is singular.
    LiedynError
        CuPy is not installed.

    Notes
    -----
    Equal to the general kernels up to rounding, with changes that do not affect the dynamics: pivots are those of a
    reference state as long as they are large enough (Duff, Erisman and Reid 1986, section 5.4); for trees up to 12
    degrees of freedom inertias are grouped to base parameters (Gautier and Khalil 1990), and derivatives are computed
    in the frame of the link in which most numbers are constant (`liedyn.bridges.specialization`).

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> fast = ld.specialize(panda)
    >>> fast.aba(ld.neutral(panda), [0.0] * 7, [0.0] * 7).shape
    (7,)
    """
    require_robot(robot)
    one_of("device", device, ("cpu", "cuda"))
    one_of("dtype", dtype, ("float64", "float32"))
    one_of("layout", layout, ("rows", "columns"))
    if device == "cuda":
        from liedyn.bridges.specialization.cuda_robot import CudaRobot

        return CudaRobot(robot, at, dtype, layout)
    if dtype != "float64" or layout != "rows":
        raise InputError("dtype and layout are for device='cuda'")
    if not robot.nv:
        raise InputError(f"specialize: {robot.name!r} has no degree of freedom")
    return Specialized(robot, None if at is None else np.array(references(robot, at)))
