"""A run with the derivatives of its steps: forward variations and adjoint gradients.

Variations are carried forward along the steps of a run, gradients backward
(`liedyn.motion.gradients.step_derivatives`).
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import floats
from liedyn.machine.compiled.jit import kernel_in_place
from liedyn.machine.errors import InputError
from liedyn.machine.linalg.vectors import add_multiple, inner
from liedyn.model.calls.boundary import require_usable
from liedyn.motion.gradients.room import StepDerivatives
from liedyn.motion.simulation.trajectory import Trajectory

if TYPE_CHECKING:
    from liedyn.typing import Array, ArrayLike


Part = namedtuple("Part", "origin held first last")
"""Steps between two events: for each row the one that it follows, and the row of its inputs; the first and last row."""


@kernel_in_place(nogil=True)
def carry_forward(steps, part, shift, du, dp, dx):
    """dx (rows, 2 n) of the rows after `first` up to `last`, from that of row `first`, whose time varies by `shift`.

    Row k + 1 follows row origin[k], which is not row k next to singular configurations
    (`liedyn.motion.simulation.singular_passages`).
    """
    origin, held, first, last = part
    for k in range(first, last):
        for i in range(dx.shape[1]):
            dx[k + 1, i] = inner(steps.by_state[k, i], dx[origin[k]]) + inner(steps.by_inputs[k, i], du[held[k]])
            dx[k + 1, i] += inner(steps.by_parameters[k, i], dp)
            if origin[k] == first:
                dx[k + 1, i] -= steps.by_length[k, i] * shift


@kernel_in_place(nogil=True)
def carry_back(steps, part, y, du, dp):
    """Gradients y (rows, 2 n) by each row at constant times become gradients by the rows and inputs before it.

    The parts by inputs and parameters are added to du and dp; returns the gradient by the time of row `first`.
    """
    (origin, held, first, last), shift = part, 0.0
    for k in range(last - 1, first - 1, -1):
        for i in range(y.shape[1]):
            add_multiple(y[k + 1, i], steps.by_state[k, i], y[origin[k]])
            add_multiple(y[k + 1, i], steps.by_inputs[k, i], du[held[k]])
            add_multiple(y[k + 1, i], steps.by_parameters[k, i], dp)
        if origin[k] == first:
            shift -= inner(steps.by_length[k], y[k + 1])
    return shift


@dataclass(frozen=True)
class RunVariation:
    """The variation of a run for a variation of initial state, inputs and parameters.

    Attributes
    ----------
    q : ndarray, shape (nt, nv)
        Displacements in the tangent spaces at the configurations of the run [rad, m].
    v : ndarray, shape (nt, nv)
        Changes of the velocities [rad/s, m/s].
    t : ndarray, shape (nt,)
        Changes of the times [s]; zero except at events.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> ld.differentiate_run(arm, arm.home, [0.0] * 4, 0.1).forward(v0=[0.0] * 4).t.shape
    (101,)
    """

    q: Array
    v: Array
    t: Array


@dataclass(frozen=True)
class RunGradient:
    """The gradient of a function of a run.

    Attributes
    ----------
    q0, v0 : ndarray, shape (nv,)
        Gradient by a displacement in the tangent space at the start, and by the initial velocity. Only products with
        variations that the constraints allow are meaningful.
    inputs : ndarray
        Gradient by the inputs, in the shape in which they were given; for a feedback, by a constant added to it.
    parameters : ndarray, shape (np,)
        Gradient by the parameters, in the order of their names.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> run = ld.differentiate_run(arm, arm.home, [0.0] * 4, 0.1, parameters=["mass:link2"])
    >>> run.adjoint(v=[0.0, 1.0, 0.0, 0.0]).parameters.shape
    (1,)
    """

    q0: Array
    v0: Array
    inputs: Array
    parameters: Array


@dataclass(frozen=True)
class RunDerivatives:
    """A run with the derivatives of its steps.

    Attributes
    ----------
    trajectory : Trajectory
        The run itself, one row for each step.
    by_state : ndarray, shape (nt - 1, 2 nv, 2 nv)
        Derivative of row k + 1 by row k, both (tangent at q, v), at constant times; at events, which have two rows, of
        the state after by the state before. A row next to a singular configuration from which no step begins is
        skipped: the row after it is differentiated by the row before it.
    by_inputs : ndarray, shape (nt - 1, 2 nv, nu)
    by_parameters : ndarray, shape (nt - 1, 2 nv, np)
    by_length : ndarray, shape (nt - 1, 2 nv)
        Derivative by the length of the step.
    parameters : tuple of str
    start_by_parameters : ndarray, shape (2 nv, np)
        Derivative of the initial state by parameters that would open the constraints there, for ``start="project"``;
        zero for ``start="as given"``.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> run = ld.differentiate_run(arm, arm.home, [0.0] * 4, 0.1, parameters=["mass:link2", "gravity"])
    >>> run.parameters, run.by_parameters.shape
    (('mass:link2', 'gravity'), (100, 8, 2))
    """

    trajectory: Trajectory
    by_state: Array
    by_inputs: Array
    by_parameters: Array
    by_length: Array
    parameters: tuple[str, ...]
    start_by_parameters: Array
    _origin: np.ndarray = field(repr=False)
    _held: np.ndarray = field(repr=False)
    _instants: list = field(repr=False)
    _table: tuple = field(repr=False)

    def forward(self, q0: ArrayLike | None = None, v0: ArrayLike | None = None, inputs: ArrayLike | None = None,
                parameters: ArrayLike | None = None) -> RunVariation:
        """The variation of all rows for a variation of the initial state, the inputs and the parameters.

        Parameters
        ----------
        q0 : array_like, shape (nv,), optional
            Displacement of the start in the tangent space at q0; it must satisfy the constraints, together with v0.
        v0 : array_like, shape (nv,), optional
            Change of the initial velocity.
        inputs : array_like, optional
            Change of the inputs, in the shape in which they were given; for a feedback, a constant added to it.
        parameters : array_like, shape (np,), optional
            Changes of the parameters, in the order of their names.

        Returns
        -------
        RunVariation

        Raises
        ------
        InputError
            A shape does not fit, or an entry is not finite.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> run = ld.differentiate_run(arm, arm.home, [0.0] * 4, 0.1, tau=[1.0, 0.0, 0.0, 0.0])
        >>> run.forward(inputs=[1.0, 0.0, 0.0, 0.0]).q.shape
        (101, 4)
        """
        rows, n = len(self.trajectory.t), self.by_state.shape[1] // 2
        dx, dt = np.zeros((rows, 2 * n)), np.zeros(rows)
        dx[0] = np.concatenate([self._given("q0", q0, (n,)), self._given("v0", v0, (n,))])
        du = self._given("inputs", inputs, self._table).reshape(-1, self.by_inputs.shape[2])
        dp = self._given("parameters", parameters, (len(self.parameters),))
        dx[0] += self.start_by_parameters @ dp
        for first, last, instant in self._parts():
            carry_forward(self._steps(), Part(self._origin, self._held, first, last), dt[first], du, dp, dx)
            if instant is not None:
                if last > 0:  # the time of an event at the start does not vary
                    rate = instant.by_state @ self.by_length[last - 1] + instant.by_time
                    dt[last] = -(instant.by_state @ dx[last] + instant.by_parameters @ dp) / rate
                    dx[last] += self.by_length[last - 1] * dt[last]
                dt[last + 1], dx[last + 1] = dt[last], instant.jump @ dx[last] + instant.jump_by_parameters @ dp
                dx[last + 1] += instant.jump_by_time * dt[last]
        return RunVariation(dx[:, :n].copy(), dx[:, n:].copy(), dt)

    def adjoint(self, q: ArrayLike | None = None, v: ArrayLike | None = None,
                t: ArrayLike | None = None) -> RunGradient:
        """The gradient of a function of the run, from the function's gradients by the rows.

        Parameters
        ----------
        q : array_like, shape (nt, nv) or (nv,), optional
            Gradient of the function by displacements in the tangent spaces at the configurations; a single row is the
            gradient by the last state.
        v : array_like, shape (nt, nv) or (nv,), optional
            Gradient by the velocities, in the same form.
        t : array_like, shape (nt,), optional
            Gradient by the times of the rows; only times of events vary.

        Returns
        -------
        RunGradient
            The cost is one product per step, whatever the number of inputs and parameters.

        Raises
        ------
        InputError
            A shape does not fit, or an entry is not finite.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> run = ld.differentiate_run(arm, arm.home, [0.0] * 4, 0.1)
        >>> run.adjoint(q=[1.0, 0.0, 0.0, 0.0]).v0.shape  # of q1 at the end
        (4,)
        """
        rows, n = len(self.trajectory.t), self.by_state.shape[1] // 2
        y, y_t = np.hstack([self._of_rows("q", q, n), self._of_rows("v", v, n)]), self._given("t", t, (rows,)).copy()
        du, dp = np.zeros((int(np.prod(self._table[:-1])), self.by_inputs.shape[2])), np.zeros(len(self.parameters))
        for first, last, instant in reversed(self._parts()):
            if instant is not None:
                y[last] += instant.jump.T @ y[last + 1]
                dp += instant.jump_by_parameters.T @ y[last + 1]
                y_t[last] += y_t[last + 1] + instant.jump_by_time @ y[last + 1]
                if last > 0:
                    rate = instant.by_state @ self.by_length[last - 1] + instant.by_time
                    of_time = (self.by_length[last - 1] @ y[last] + y_t[last]) / rate
                    y[last] -= instant.by_state * of_time
                    dp -= instant.by_parameters * of_time
            y_t[first] += carry_back(self._steps(), Part(self._origin, self._held, first, last), y, du, dp)
        dp += self.start_by_parameters.T @ y[0]
        return RunGradient(y[0, :n].copy(), y[0, n:].copy(), du.reshape(self._table), dp)

    def _steps(self):
        return StepDerivatives(self.by_state, self.by_inputs, self.by_parameters, self.by_length)

    def _parts(self):
        """First and last row of each part between events, and the event after it."""
        parts, first = [], 0
        for instant in self._instants:
            parts.append((first, instant.row, instant))
            first = instant.row + 1
        return [*parts, (first, len(self.trajectory.t) - 1, None)]

    def _given(self, name, x, shape):
        if x is None:
            return np.zeros(shape)
        x = floats(name, x)
        if x.shape != tuple(shape):
            raise InputError(f"{name} must have shape {tuple(shape)}, got {x.shape}")
        require_usable(name, x)
        return np.ascontiguousarray(x)

    def _of_rows(self, name, x, n):
        rows = len(self.trajectory.t)
        if x is None:
            return np.zeros((rows, n))
        x = floats(name, x)
        if x.shape != (n,):
            return self._given(name, x, (rows, n))
        every = np.zeros((rows, n))
        every[-1] = self._given(name, x, (n,))
        return every
