"""The result of a linearization: matrices with names, and ways on to control libraries and to disk.

The linear model of one step of an integrator: what `liedyn.discretize` returns.
"""
# mypy: ignore-errors

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import names, positive
from liedyn.machine.by_name import by_name
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.machine.python_control import forces, plain, python_control
from liedyn.machine.texts import html_table, printable, text_table
from liedyn.model.calls.boundary import as_floats, require_usable
from liedyn.model.remembered import LazyResult

if TYPE_CHECKING:
    from typing import Any

    from liedyn.typing import Array, Complexes

ARRAYS = "A", "B", "q", "v", "tau", "q_next", "v_next"
"""The arrays of a `DiscreteStateSpace` with a row for each state."""
RESULTS = ("A", "B", "C", "D", "f0", "K", "S", "drift", "a", "lam")
"""The results that may be asked for; names, the operating point and judgements of it are always there."""
_CHECKED: dict[tuple[str, ...], tuple[str, ...]] = {}
"""What has been asked for, and the same in the order of RESULTS."""


class LeftOutError(InputError, AttributeError):
    """A result is read that was not asked for.

    Also an AttributeError, so that `hasattr` says that there is none.
    """


def asked_results(results: Any) -> tuple[str, ...]:
    """The names of the results, checked: those of RESULTS, in its order; RESULTS itself for all."""
    if results is None:
        return RESULTS
    try:
        return _CHECKED[results]
    except (KeyError, TypeError):  # not asked for before, or a list
        given = names("results", results)
    if not given:
        raise InputError("results names none; leave it out for all")
    for name in given:
        if name not in RESULTS:
            raise InputError(f"unknown result {shown(name)}, {suggestion(name, RESULTS)}")
    every = set(given) == set(RESULTS)
    found = _CHECKED[given] = RESULTS if every else tuple(name for name in RESULTS if name in given)
    return found


def kept_only(results, known):
    """A dict of attributes without the results that were not asked for."""
    return {name: value for name, value in known.items() if name in results or name not in RESULTS}


def restricted(space, results):
    """The `LocalStateSpace` itself, with these results only."""
    if results is not RESULTS:
        known = vars(space)
        for name in RESULTS:
            if name not in results:
                known.pop(name, None)
        known["_later"] = (read_asked, results, *known["_later"])
    return space


def read_asked(name, found, results, read=None, *given):
    """Attributes that are read late (`LazyResult`): those asked for, by `read`; an error for others."""
    if name in RESULTS and name not in results:
        raise LeftOutError(f"{name} was not asked for: linearize with results=({', '.join(map(repr, results))}, "
                           f"{name!r}), or without results= for all")
    return {} if read is None else kept_only(results, read(name, found, *given))


@dataclass(frozen=True)
class DiscreteStateSpace:
    """x[k+1] - x1 = A (x[k] - x0) + B (u[k] - u0): one step of an integrator linearized, inputs constant in the step.

    For a batch the arrays have its leading axes, and ``models[i]`` is one of the models.

    Attributes
    ----------
    A, B : ndarray, shapes (..., x, x) and (..., x, nu)
    h : float
        The step [s].
    states, inputs : tuple of str
        Names as in `LocalStateSpace`.
    q, v, tau : ndarray
        The operating point where the step begins, and the forces, constant during the step.
    q_next, v_next : ndarray
        State at the end of the step.
    """

    A: Array
    B: Array
    h: float
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    q: Array
    v: Array
    tau: Array
    q_next: Array
    v_next: Array

    def eigenvalues(self) -> Complexes:
        """Eigenvalues of A; perturbations decay if all are inside the unit circle.

        Returns
        -------
        eigenvalues : ndarray of complex, shape (..., x)
            Sorted by real part, then imaginary part.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> len(ld.discretize(arm, arm.home, [0.0] * 4, [0.0] * 4, 1e-3).eigenvalues())
        4
        """
        return np.sort_complex(np.linalg.eigvals(self.A))

    def __getitem__(self, index: Any) -> DiscreteStateSpace:
        """One model of a batch, or several, by their leading axes."""
        lead = self.A.shape[:-2]
        if not lead:
            raise InputError("this is one model, not a batch")
        try:
            chosen = np.arange(math.prod(lead)).reshape(lead)[index]
        except (IndexError, TypeError, ValueError) as error:
            raise InputError(f"no model {shown(index)}: there are models of shape {lead}") from error
        return replace(self, **{name: _at(getattr(self, name), lead, chosen) for name in ARRAYS})


if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

    from liedyn.linear.second.second_result import SecondDerivatives
    from liedyn.typing import Array, ArrayLike, Complexes, PathLike


@dataclass(frozen=True, repr=False)
class LocalStateSpace(LazyResult):
    """Exact first-order model dx/dt = f0 + A (x - x0) + B (u - u0), y - y0 = C (x - x0) + D (u - u0) about one state.

    Results that `linearize` was not asked for (``results=``) raise an InputError when they are read.
    Models of a batch are indexed as its states are, `models[3]`, `models[2, :5]`; a batch has a length and can be
    iterated.

    Attributes
    ----------
    A, B, C, D : ndarray
        Shapes (x, x), (x, nu), (ny, x), (ny, nu), or with the leading axes of a batch; x is the number of independent
        coordinates y and velocities w together.
    f0 : ndarray, shape (x,)
        dx/dt at the operating point: rates of the independent coordinates, accelerations of the independent velocities.
    K : ndarray, shape (nv, p_y)
        Displacements of all coordinates for unit displacements of the independent ones, dq = K dy.
    S : ndarray, shape (nv, p_w)
        Velocities of all coordinates for unit independent velocities, v = S w + drift; equal to K if all constraints
        are holonomic.
    drift : ndarray, shape (nv,)
        Velocity [rad/s, m/s] that moving constraints force while the independent velocities are zero.
    states, inputs, outputs : tuple of str
        Names: independent coordinates, then ``velocity:`` and the name of each independent velocity; inputs are
        actuators or generalised forces.
    q, v, tau, a, lam : ndarray
        The operating point: configuration, velocity, generalised forces, accelerations and multipliers.
    rank : int
        Number of independent constraint rows.
    condition : float
        Condition number (1-norm) of the independent coordinates.
    closure_residual : float
        Largest closure error of the loops [rad, m] at the operating point.
    second : SecondDerivatives or None
        Second derivatives, if ``linearize`` was asked for them.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    f0: Array
    K: Array
    S: Array
    drift: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    q: Array
    v: Array
    tau: Array
    a: Array
    lam: Array
    rank: int
    condition: float
    closure_residual: float
    second: SecondDerivatives | None = None

    @property
    def lead(self) -> tuple[int, ...]:
        """Leading axes of a batch; () for one model."""
        return np.shape(self.rank)

    @property
    def _is_shown(self):
        """True if it is printed with its matrices."""
        few = not self.lead and max(len(self.states), len(self.inputs)) <= _SHOWN
        return few and all(hasattr(self, name) for name in ("A", "B", "C", "D"))

    def __getstate__(self) -> Any:
        state = {each.name: getattr(self, each.name) for each in fields(self) if hasattr(self, each.name)}
        asked = tuple(name for name in RESULTS if name in state)
        return state if asked == RESULTS else state | {"_later": (read_asked, asked)}

    def __bool__(self) -> bool:  # true for a batch of length zero, too
        return True

    def __len__(self) -> int:
        if not self.lead:
            raise TypeError("this is one model, which has no len()")
        return self.lead[0]

    def __iter__(self) -> Iterator[Self]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: Any) -> Self:
        """The model, or the smaller batch of models, of the states at `index`."""
        if not self.lead:
            raise InputError(f"this is one model and no batch: nothing is at {shown(index)}")
        try:
            chosen = np.arange(np.prod(self.lead)).reshape(self.lead)[index]
        except (IndexError, TypeError, ValueError) as error:
            raise InputError(f"models of a batch {self.lead} have no index {shown(index)}") from error
        second = {}
        if self.second is not None:
            at_models = by_name("liedyn.linear.second.second_result:at_models")
            second = {"second": at_models(self.second, self.lead, chosen)}
        return type(self).of({"_later": (_at_index, self, chosen), "_robot": vars(self).get("_robot"), **second})

    def __repr__(self) -> str:
        of = f"{' x '.join(map(str, self.lead))} models, " if self.lead else ""
        return (f"LocalStateSpace({of}{len(self.states)} states: {_few(self.states)}; "
                f"{len(self.inputs)} inputs: {_few(self.inputs)}; {len(self.outputs)} outputs: {_few(self.outputs)})")

    def _tables(self):
        """A beside B and C beside D, as rows of texts."""
        head = ["", *self.states, *self.inputs]
        rows = [[f"d/dt {name}", *map(_number, row)] for name, row in zip(self.states, np.hstack([self.A, self.B]))]
        return [head, *rows, *([name, *map(_number, row)]
                               for name, row in zip(self.outputs, np.hstack([self.C, self.D])))]

    def __str__(self) -> str:
        if not self._is_shown:
            return repr(self)
        return f"{self!r}\n" + text_table(self._tables())

    def _repr_html_(self):
        if not self._is_shown:
            return html_table(repr(self), [])
        return html_table(repr(self), self._tables())

    def taylor(self, dx: ArrayLike, du: ArrayLike | None = None) -> Array:
        """The rates dx/dt of the model at x0 + dx and u0 + du: to second order if it has second derivatives.

        Parameters
        ----------
        dx : array_like, shape (..., x)
            Displacements of the independent coordinates and changes of the independent velocities.
        du : array_like, shape (..., nu), optional
            Changes of the inputs; None for none.

        Returns
        -------
        rates : ndarray, shape (..., x)
            ``f0 + A dx + B du``, and half of the second derivatives along (dx, du). What is left out is of third order.

        Raises
        ------
        InputError
            A shape does not fit, a number is not finite, or the second derivatives belong to a weighted sum.

        Examples
        --------
        >>> import numpy as np
        >>> import liedyn as ld
        >>> arm, dx = ld.load("five_bar"), np.full(4, 1e-2)
        >>> ss = ld.linearize(arm, arm.home, [0.0] * 4, [0.0] * 4, independent=("q1", "q2"), second=True)
        >>> q = ld.close(arm, arm.home, {"q1": arm.home[0] + 1e-2, "q2": arm.home[1] + 1e-2})
        >>> v = ld.complete_velocity(arm, q, {"q1": 1e-2, "q2": 1e-2})
        >>> there = ld.linearize(arm, q, v, [0.0] * 4, independent=("q1", "q2")).f0
        >>> bool(abs(ss.taylor(dx) - there).max() < 0.1 * abs(ss.f0 + ss.A @ dx - there).max())
        True
        """
        dx = as_floats("dx", dx, self.B.shape[-2])
        du = np.zeros((*dx.shape[:-1], self.B.shape[-1])) if du is None else as_floats("du", du, self.B.shape[-1])
        for name, x in (("dx", dx), ("du", du)):
            require_usable(name, x)
        rates = self.f0 + np.einsum("...ij,...j->...i", self.A, dx) + np.einsum("...ij,...j->...i", self.B, du)
        if self.second is None:
            return rates
        if self.second.f.ndim != self.A.ndim + 1:
            raise InputError("second derivatives of a weighted sum make no model: linearize with second=True")
        lead = np.broadcast_shapes(dx.shape[:-1], du.shape[:-1])
        both = np.concatenate([np.broadcast_to(x, (*lead, x.shape[-1])) for x in (dx, du)], axis=-1)
        return rates + 0.5 * np.einsum("...ijk,...j,...k->...i", self.second.f, both, both)

    def eigenvalues(self) -> Complexes:
        """Eigenvalues of A [1/s].

        Returns
        -------
        eigenvalues : ndarray of complex, shape (x,)
            Sorted by real part, then imaginary part.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> len(ld.linearize(arm, arm.home, [0.0] * 4, [0.0] * 4).eigenvalues())
        4
        """
        return np.sort_complex(np.linalg.eigvals(self.A))

    def discretize(self, h: float) -> DiscreteStateSpace:
        """Discretise this linear model exactly, with inputs constant between samples (zero-order hold).

        Parameters
        ----------
        h : float
            Time between samples [s].

        Returns
        -------
        DiscreteStateSpace
            As `liedyn.discretize` returns it, with the same names. ``q_next, v_next`` is where the linear model is
            after h, under the inputs of the operating point: loops are closed there to first order.

        Raises
        ------
        InputError
            h is not positive, or so long that the exponential overflows; or the model has lost its robot in a file and
            is not at rest, and coordinates are quaternions.

        Notes
        -----
        The exponential of ``[[A, B, f0], [0, 0, 0]] h`` (Van Loan 1978). `liedyn.discretize` is the derivative of a
        step of the mechanism instead, linearized all along it.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> ds = ld.linearize(arm, arm.home, [0.0] * 4, [0.0] * 4).discretize(1e-3)
        >>> ds.A.shape, ds.B.shape, ds.h, ds.states == ld.discretize(arm, arm.home, [0.0] * 4, [0.0] * 4, 1e-3).states
        ((4, 4), (4, 4), 0.001, True)
        """
        h = positive("h", h)
        from scipy.linalg import expm

        x, nu = self.B.shape[-2:]
        both = np.zeros((*self.lead, x + nu + 1, x + nu + 1))
        both[..., :x, :x], both[..., :x, x:-1], both[..., :x, -1] = self.A, self.B, self.f0
        with np.errstate(all="ignore"):
            whole = expm(h * both)
        if not np.isfinite(whole).all():
            raise InputError(f"h = {h:g} s is too long: the exponential of A h overflows")
        q_next, v_next = self._after(whole[..., :x, -1])
        return DiscreteStateSpace(whole[..., :x, :x].copy(), whole[..., :x, x:-1].copy(), h, self.states, self.inputs,
                                  self.q.copy(), self.v.copy(), self.tau.copy(), q_next, v_next)

    def _after(self, x):
        """The state of this linear model with the deviation x from the operating point."""
        p = self.K.shape[-1]
        dq, dw = (self.K @ x[..., :p, None])[..., 0], x[..., p:]
        v_next = self.v + (self.S @ dw[..., None])[..., 0]
        if self.q.shape == dq.shape:
            return self.q + dq, v_next
        if not dq.any():
            return self.q.copy(), v_next
        robot = vars(self).get("_robot")
        if robot is None:
            raise InputError("a linear model from a file, with quaternions, has no state after a step: linearize again")
        return by_name("liedyn.mechanics.tree.configuration:integrate")(robot, self.q, dq), v_next

    def to_control(self) -> Any:
        """The same system for python-control.

        Returns
        -------
        control.StateSpace
            With the names of states and outputs, and of inputs with ``force_`` in front, which are also those of
            regulators, filters and :func:`liedyn.to_control`: ``control.interconnect`` joins them by name. f0 is left
            out.

        Raises
        ------
        LiedynError
            python-control is not installed.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> ld.linearize(arm, arm.home, [0.0] * 4, [0.0] * 4).to_control().nstates
        4
        """
        control = python_control("to_control")
        return control.ss(self.A, self.B, self.C, self.D, states=plain(self.states), inputs=forces(self.inputs),
                          outputs=plain(self.outputs), name="linear_model")

    def to_scipy(self) -> Any:
        """The same system for SciPy.

        Returns
        -------
        scipy.signal.StateSpace
            Without names and without f0.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> ld.linearize(arm, arm.home, [0.0] * 4, [0.0] * 4).to_scipy().A.shape
        (4, 4)
        """
        from scipy.signal import StateSpace

        return StateSpace(self.A, self.B, self.C, self.D)

    def save(self, path: PathLike) -> Path:
        """Write everything to a NumPy archive.

        Parameters
        ----------
        path : str or path-like
            File to write, ``.npz`` added if missing; read it back with ``numpy.load``, one array per attribute that
            was asked for.

        Returns
        -------
        Path
            The file that was written.

        Examples
        --------
        >>> import liedyn as ld, tempfile, numpy as np
        >>> arm = ld.load("five_bar")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = ld.linearize(arm, arm.home, [0.0] * 4, [0.0] * 4).save(folder + "/arm")
        ...     file.name, sorted(np.load(file))[:4]
        ('arm.npz', ['A', 'B', 'C', 'D'])
        """
        path = str(path) if str(path).endswith(".npz") else f"{path}.npz"
        second = {} if self.second is None else self.second.__getstate__()
        more = {f"second_{name}": value for name, value in second.items()}
        np.savez(path, **{each.name: np.asarray(getattr(self, each.name)) for each in fields(self)[:-1]
                         if hasattr(self, each.name)}, **more)
        return Path(path)


_SHOWN = 8
"""Largest number of states or inputs for which the matrices are printed."""


def _at_index(name, found, models, chosen):
    """The attribute `name` of `models`, at the models with the numbers `chosen`."""
    value = getattr(models, name)
    if not isinstance(value, tuple):
        value = _at(np.asarray(value), models.lead, chosen)
    return {name: value}


def _at(x, lead, chosen):
    """Of an array with leading axes, which may be empty, the parts with the numbers `chosen`."""
    return x.reshape(math.prod(lead), *x.shape[len(lead):])[chosen]


def _few(names):
    return printable(", ".join(names[:4])) + (", ..." if len(names) > 4 else "")


def _number(x):
    return f"{x:.4g}"
