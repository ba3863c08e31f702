"""Adaptive integration by SciPy's solvers, those of `solve_ivp`, in local coordinates of the configuration group.

The solver integrates an ordinary vector y = (u, v, W): q = q_c exp(u) about a centre q_c, and the works W. With udot =
J_r^-1(u) v that is exact; before a rotation u approaches 2 pi, where J_r is singular, the centre is moved to the
present state. For one-dof joints that is never necessary.

Stabilisation is part of the right side: it is evaluated at the projection of (q, v) on the constraints, and the
projection is also what is recorded. So every solver can be used unchanged, errors of its own state off the manifold do
not feed back, and dense output stays consistent. The implicit solvers get the exact Jacobian of that right side
(`derivatives`).

Steps are shortened if a trial state lies beyond a contact or a singular configuration, where the right side has no
value. Sliding contacts keep the direction of their slip from the beginning of a step for all trial states.
"""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.integrate import BDF, DOP853, LSODA, RK23, RK45, Radau

from liedyn.machine.arguments import one_of, positive
from liedyn.machine.compiled.jit import kernel_in_place
from liedyn.machine.errors import InputError
from liedyn.machine.linalg.vectors import copy_to
from liedyn.mechanics.tree.configuration import difference_kernel, integrate_kernel
from liedyn.model.constraint_records import refresh
from liedyn.motion.simulation.coordinate_rates import largest_turn, local_rates
from liedyn.motion.simulation.grid import MOST_STEPS
from liedyn.motion.simulation.integrators.derivatives import right_side_jacobian
from liedyn.motion.simulation.integrators.method import Method
from liedyn.motion.simulation.stages import end_step, energy_due, put_power
from liedyn.motion.simulation.workspace import (
    BOUNDED_ENERGY, FREE_ENERGY, FUNCTION, INPUT_WORK, NOT_FINITE, OK, OTHER_WORK, SINGULAR, TOO_SMALL, copy_row,
)

SOLVERS = {"RK23": RK23, "RK45": RK45, "DOP853": DOP853, "Radau": Radau, "BDF": BDF, "LSODA": LSODA}
IMPLICIT = Radau, BDF, LSODA
SHORTEST = 10.0
"""Smallest step, in units of the last digit of the time."""
LOOKS = 10
"""Number of times within a step of a solver at which guards are evaluated."""
SHORTER = 0.2
"""Factor by which a step is shortened if a stage cannot be evaluated, as by SciPy's solvers for large errors."""
LARGEST_TURN = 1.0
"""Rotation [rad] of a ball or free joint at which the centre is moved: far from 2 pi, and not often."""


@kernel_in_place
def evaluate(model, settings, work, h, energy, center, y, rows, k, y_dot):
    """Completes row k, whose time and inputs are set, from y; ydot = (J_r^-1(u) v, a, powers). Returns a status."""
    q, v = rows.q[k], rows.v[k]
    n = v.size
    rows.scalars[k, INPUT_WORK], rows.scalars[k, OTHER_WORK] = y[2 * n], y[2 * n + 1]
    integrate_kernel(model, center, y[:n], q)
    copy_to(y[n:], v)
    refresh(model, rows.t[k])
    status = end_step(model, settings, work, rows, k, h, energy_due(settings, rows, k, energy))
    if status == OK:
        difference_kernel(model, center, q, work.vector[1])
        local_rates(model, work.vector[1], v, y_dot[:n])
        copy_to(rows.a[k], y_dot[n:2 * n])
        put_power(model, settings, work, q, v, rows.a[k], y_dot[2 * n:])
    return status


class _Stop(Exception):
    """The right side could not be evaluated: at a trial state, or at the beginning of a step."""


class _Piece(NamedTuple):
    """Dense output of one step of the solver."""

    start: float
    end: float
    value: object
    center: np.ndarray
    row: int


class SciPySolver:
    """An integrator of a run, made from one of SciPy's.

    Parameters
    ----------
    solver : type
        A subclass of `scipy.integrate.OdeSolver`.
    grid : Grid
        Times at which inputs change, and of the rows if `on_grid`.
    on_grid : bool
        True: rows at the times of the grid, by dense output. False: at the solver's own steps.
    options : dict
        rtol, atol, max_step.
    """

    stepping = completes = False

    def __init__(self, solver, grid, on_grid, options):
        self.kind, self.grid, self.on_grid, self.options = solver, grid, on_grid, options
        self.step, self.size = grid.dt, None

    def restart(self, run):
        """Begin at row 0."""
        self.directions = run.x.friction.direction.copy()
        y = np.concatenate([np.zeros(run.robot.nv), run.rows.v[0], run.rows.scalars[0, INPUT_WORK:OTHER_WORK + 1]])
        self.pieces = []
        self._begin(run, float(run.rows.t[0]), run.rows.q[0].copy(), y)
        run.rows.held[0] = self.row

    def advance(self, run, count, known):
        """Computes rows until there are `count` of them, or up to the end of the run."""
        done, self.pieces = 0, self.pieces[-1:]
        while done < count and run.rows.t[done] < run.end:
            wanted = self._next_time(run.rows.t[done])
            if wanted is not None:
                status = self._put(run, wanted, run.rows, done + 1)
                done += status == OK
            else:
                status = self._step(run)
            if status != OK:
                return status, done
        return OK, done

    def within(self, run, k, t):
        """The state at time t between rows k and k + 1, into row 0 of run.single; returns a status."""
        copy_row(run.rows, k, run.single, 0)
        return self._put(run, t, run.single, 0) if t > run.rows.t[k] else OK

    def between(self, run, done):
        """Times between rows 0 to done at which guards are evaluated: tenths of the solver's steps."""
        tenths = np.unique(np.concatenate(
            [np.linspace(piece.start, piece.end, LOOKS, endpoint=False) for piece in self.pieces] or [np.empty(0)]))
        t = run.rows.t[:done + 1]
        return [tenths[(tenths > begin) & (tenths < end)].tolist() for begin, end in zip(t[:-1], t[1:])]

    def _next_time(self, t):
        """Time of the row after one at t, None if the solver has not reached it yet."""
        if not self.pieces or self.pieces[-1].end <= t:
            return None
        if not self.on_grid:
            return self.pieces[-1].end
        wanted = self.grid.next_time(t)
        return wanted if wanted <= self.pieces[-1].end else None

    def _put(self, run, t, rows, k):
        """Row k at time t, from the piece that contains it."""
        piece = next((piece for piece in self.pieces if t <= piece.end), None)
        if piece is None:  # the solver has not reached t
            return TOO_SMALL
        return self._evaluate(run, run.o, (t, piece.value(t)), piece.row, piece.center, rows, k)[0]

    def _evaluate(self, run, settings, at, row, center, rows, k):
        """(status, ydot) at (t, y), with the inputs of the table's `row`; row k is completed."""
        t, y = at
        rows.t[k], rows.held[k], y_dot = t, row, np.empty_like(y)
        return evaluate(run.packed, settings, run.x, self.step, run.energy_at_no_work, center, np.ascontiguousarray(y),
                        rows, k, y_dot), y_dot

    def _begin(self, run, t, center, y):
        """A new solver from (t, y) to the next change of the inputs, or the end of the run."""
        last = len(run.x.table) - 1
        self.center, self.row = center, min(self.grid.number(t), last)
        bound = self.grid.next_time(t) if self.row < last else run.end
        self._solve(run, t, y, bound, None if self.size is None else min(self.size, bound - t))

    def _solve(self, run, t, y, bound, first):
        """A new solver from (t, y), with a given first step or its own; None, and a status, if the right side fails."""
        center, row = self.center, self.row

        # the energy at a stage may exceed the bound for the motion
        settings = run.o._replace(energy=FREE_ENERGY) if run.o.energy == BOUNDED_ENERGY else run.o

        def rates(t, y):
            self.tried, run.x.friction.direction[:] = float(t), self.directions
            self.status, y_dot = self._evaluate(run, settings, (float(t), y), row, center, run.single, 1)
            if self.status != OK:
                raise _Stop
            return y_dot

        def jacobian(t, y):
            rates(t, y)
            try:
                J = right_side_jacobian(run, settings, float(t), self.step, center, np.ascontiguousarray(y))
            except np.linalg.LinAlgError:
                self.status = SINGULAR
                raise _Stop from None
            if not np.isfinite(J).all():
                self.status = NOT_FINITE
                raise _Stop
            return J

        self.rates = rates
        # without the derivative of a user's function SciPy uses differences of the right side
        known = run.o.input_kind != FUNCTION or run.o.feedback_address != 0
        exact = {"jac": jacobian} if known and issubclass(self.kind, IMPLICIT) else {}
        self.solver = None
        while self.solver is None and (first is None or first > 0.0):
            try:
                self.solver = self.kind(rates, t, y, bound, first_step=first, **exact, **self.options)
            except _Stop:
                first = self._shorter(t)

    def _shorter(self, t):
        """A shorter first step from t than the one that failed at a stage; 0 if there is none."""
        first = SHORTER * (self.tried - t)
        return first if first > SHORTEST * np.spacing(abs(t)) else 0.0

    def _step(self, run):
        """One step of the solver, with a new centre or new inputs if needed; returns a status."""
        if self.solver is not None and (
                self.solver.status == "finished" or largest_turn(run.packed, self.solver.y) > LARGEST_TURN ** 2):
            n, y, center = run.robot.nv, self.solver.y.copy(), np.empty_like(self.center)
            integrate_kernel(run.packed, self.center, y[:n].copy(), center)
            y[:n] = 0.0
            self._begin(run, float(self.solver.t), center, y)
        made = False
        while not made:
            if self.solver is None:
                return self.status
            t, y, bound = float(self.solver.t), self.solver.y.copy(), self.solver.t_bound
            try:
                self.solver.step()
                dense = self.solver.dense_output() if self.solver.status != "failed" else None
                if run.o.friction:
                    self.rates(self.solver.t, self.solver.y)
                    self.directions = run.x.friction.direction.copy()
                made = True
            except _Stop:
                first = self._shorter(t)
                if first == 0.0:
                    return self.status
                self._solve(run, t, y, bound, first)
        if self.solver.status == "failed":
            return TOO_SMALL if np.isfinite(self.solver.y).all() else NOT_FINITE
        if getattr(self.solver, "jac_factor", None) is not None:
            # SciPy would enlarge difference increments without limit if the right side is constant: limit by the state
            np.minimum(self.solver.jac_factor, 1.0, out=self.solver.jac_factor)
        self.size = self.solver.step_size
        self.pieces.append(_Piece(float(self.solver.t_old), float(self.solver.t), dense, self.center, self.row))
        return OK


@dataclass(frozen=True)
class Adaptive(Method):
    """One of SciPy's adaptive solvers as the `method` of `simulate`.

    Parameters
    ----------
    name : str
        ``"RK23"``, ``"RK45"``, ``"DOP853"``, or, implicit, ``"Radau"``, ``"BDF"``, ``"LSODA"``.
    rtol, atol : float
        Relative and absolute tolerance of the local error.
    max_step : float
        Largest step [s].

    Raises
    ------
    InputError
        The name is unknown, or a number is not positive.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> ld.simulate(robot, robot.home, [0.0] * 4, 0.01, method=ld.Adaptive("DOP853", rtol=1e-10)).method
    'DOP853'
    """

    name: str
    rtol: float = 1e-8
    atol: float = 1e-10
    max_step: float = np.inf

    def __post_init__(self) -> None:
        one_of("method", self.name, SOLVERS)
        for key in ("rtol", "atol", "max_step"):
            if not (key == "max_step" and isinstance(self.max_step, float) and self.max_step == np.inf):
                object.__setattr__(self, key, positive(key, getattr(self, key)))

    @property
    def summary(self) -> str:
        """Summary for the docstring of `simulate`."""
        implicit = ", implicit, with the exact Jacobian unless the inputs are a function without its derivative"
        return (f"SciPy's adaptive solvers in local coordinates of the group{implicit * self.uses_derivatives}; "
                "`Adaptive` has their tolerances")

    @property
    def uses_derivatives(self) -> bool:
        """True for implicit solvers, which use the Jacobian."""
        return issubclass(SOLVERS[self.name], IMPLICIT)

    def _integrator(self, grid, on_grid):
        """The object that makes the steps of one run; `on_grid`: the user has chosen the grid."""
        if not (grid.end - grid.start) / self.max_step < MOST_STEPS:
            raise InputError(f"max_step must make no more than {MOST_STEPS:g} steps to t_final, got {self.max_step:g}")
        return SciPySolver(SOLVERS[self.name], grid, on_grid,
                           {"rtol": self.rtol, "atol": self.atol, "max_step": self.max_step})


METHODS = [Adaptive(name) for name in SOLVERS]
