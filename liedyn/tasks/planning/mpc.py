"""Model-predictive control: at each sample a plan from the measured state, whose first input is applied.

The plan of one sample, shifted by a fraction of a step, is the initial guess of the next.
"""
# mypy: ignore-errors

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.linear.feedback import Feedback
from liedyn.machine.arguments import non_negative, positive, whole
from liedyn.machine.compiled.by_address import placed
from liedyn.machine.compiled.jit import inline, kernel
from liedyn.machine.errors import InputError, SingularConfigurationError
from liedyn.model.travel import Travelling
from liedyn.tasks.planning.ddp_search import CLOSED, CONVERGED, FROM_STATES, GO_ON, ITERATIONS
from liedyn.tasks.planning.expansion import put_difference
from liedyn.tasks.planning.phase_schedule import NOW, carry, close, phases_ahead, schedule_of
from liedyn.tasks.planning.plan import STATUS, PlanWarning, first_penalty, plan_of, put_start, regulated
from liedyn.tasks.planning.solver import GROWTH, HALVINGS as FIRST_HALVINGS, Division, PlanError, Solver
from liedyn.tasks.planning.step import copy_vector, owned_in_phase, put_state

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    from liedyn.model.robot import Robot
    from liedyn.tasks.planning.plan import Plan
    from liedyn.tasks.planning.planning_problem import Cost, Limits
    from liedyn.tasks.planning.phase_schedule import Phase
    from liedyn.typing import ArrayLike, IndependentNames


@inline
def blend(x, following, part):
    """x += part (following - x)."""
    for i in range(x.size):
        x[i] += part * (following[i] - x[i])


@kernel(nogil=True)
def shift_by_part(model, d, step, f, path, x, part):
    """Moves each knot by a fraction of a step towards the next one, along the manifold; the last one stays.

    The new inputs are the plan's mean inputs over the shifted steps; the same applies to feedback and multipliers.
    """
    count, d, step = path.u.shape[0], placed(d), placed(step)
    for k in range(count):
        of_knot, e = owned_in_phase(model, d, k)
        put_difference(of_knot, e, f.dq, (path.q[k], path.v[k]), (path.q[k + 1], path.v[k + 1]), f.dx)
        if put_state(of_knot, e, step, path.q[k], path.v[k], f.dx, part):
            copy_vector(step.stage.q, path.q[k])
            copy_vector(step.stage.v, path.v[k])
        blend(x.lam[k], x.lam[k + 1], part)
        if k + 1 < count:
            blend(path.u[k], path.u[k + 1], part)
            for i in range(path.u.shape[1]):
                blend(x.K[k, i], x.K[k + 1, i], part)


FIRST_ITERATIONS, FIRST_TOLERANCE = 500, 1e-9
"""Iterations and tolerance of the plan in the first call."""

ROUNDING = 1e-6
"""Fraction of a step that is rounding of time."""
UNCHANGED = "as planned before"
UNPLANNABLE = PlanError, SingularConfigurationError
"""Errors that a search raises if a plan has no solution."""

HALVINGS = 8
"""Number of fractions of a change that are tried, which bounds the time of a call."""


class MPC(Feedback, Travelling):
    """A controller that plans anew at each sample; a function of (t, q, v) for :class:`liedyn.Sampled`.

    Each call shifts the last plan to the present, with its multipliers, puts the measured state at its beginning,
    and improves it until it has converged, or until iterations or time run out; the first iterations close the gap
    after that state. If derivatives do not exist there, the call plans from the start, as the first call does, in the
    remaining time. If that fails too, it returns the input of the last plan, with its feedback, and warns. Inputs are
    within their limits at every call. The first call plans to convergence, and takes longer. Time does not go back from
    call to call: call `reset` before another run.

    Parameters
    ----------
    robot : Robot
        As for `ddp`.
    q, v : array_like, shapes (nq,) and (nv,)
        A closed state at or near the robot's initial state [rad, m; rad/s, m/s]: it determines the coordinates, and is
        used to compile the kernels.
    cost : Cost or callable
        Or a function ``t -> Cost``, for moving references and goals; costs of all times have the same targets.
    steps : int
        Number of steps of the horizon, without phase changes.
    h : float
        Duration of a step [s]; it need not be the sampling period.
    limits, method, independent
        As for `ddp`.
    schedule : sequence of Phase, optional
        Schedule of closed contacts: phases that follow one another from t = 0 on, and repeat. Calls are then at
        multiples of h, and references of the cost are single states, or functions of time. A measured state need not
        touch where the schedule demands it: plans begin with a phase change of no duration, for which `plan` has one
        more knot.
    iterations : int
        Largest number of iterations of a call. One is enough if no limit of a state is active; with active limits, more
        iterations satisfy them more accurately.
    budget : float, optional
        Largest duration of a call [s], measured by the clock: no iteration begins that would end later if it
        took as long as the longest one of this call. At least one iteration is made, and the first call is not limited.
        Results then depend on the speed of the machine. Default: only `iterations` counts.
    tolerance, limit_tolerance
        As for `ddp`.
    penalty : float, optional
        Penalty of violated limits of states, per square of a unit: it is constant after the first plan. Default: the
        cost of the first plan, or the largest weight of the cost.
    hessian : {"gauss-newton", "exact"}
        As for `ddp`.

    Attributes
    ----------
    status : str
        Reason for the end of the last call's search, as for :class:`liedyn.Plan`; or ``"as planned before"`` if no
        plan was found from the state.
    iterations : int
        Number of iterations of the last call.

    Raises
    ------
    InputError, ClosureError
        As for `ddp`; and in a call time goes back, or a loop is open.
    PlanError, SingularConfigurationError
        In a call: the first plan has no solution; the message names the knot.

    Warns
    -----
    PlanWarning
        The first plan has not converged; or a call has found no plan from its state, and continues with the last one.

    Notes
    -----
    Real-time iterations (Diehl, Bock and Schloeder 2005) of `ddp`, several of them in a call. Penalties of limits are
    constant, and multipliers are carried along: that satisfies limits accurately, with smooth inputs while they are
    active. Everything but the shift and the clock is compiled.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> goal = ld.close(loader, loader.home, boom=0.2, bucket=-0.1)
    >>> hold = ld.inverse_dynamics(loader, goal, [0.0] * 8, [0.0, 0.0]).u
    >>> cost = ld.Cost(Q={"boom": 100.0, "bucket": 100.0}, R=1e-9, q=goal, u=hold)
    >>> mpc = ld.MPC(loader, loader.home, [0.0] * 8, cost, steps=30, h=0.02, limits=ld.Limits(inputs=(-4e5, 4e5)))
    >>> tr = ld.simulate(loader, loader.home, [0.0] * 8, 0.1, dt=2e-3, u=ld.Sampled(mpc, 0.01))
    """

    status: str
    iterations: int

    def __init__(self, robot: Robot, q: ArrayLike, v: ArrayLike, cost: Cost | Callable[..., Any], steps: int, h: float,
                 limits: Limits | None = None, method: str = "euler", independent: IndependentNames = None,
                 iterations: int = 8, tolerance: float = 1e-6, limit_tolerance: float = 1e-4,
                 penalty: float | None = None, budget: float | None = None,
                 schedule: Sequence[Phase] | None = None,
                 hessian: Literal["gauss-newton", "exact"] = "gauss-newton") -> None:
        self._cost, self._limits, self._steps = cost, limits, whole("steps", steps, 1)
        self._schedule, self._now, self._step = schedule_of(schedule), 0 if schedule is None else NOW, 0
        self._given_to_solver = (robot, q, v), limits, (h, method, independent, hessian)
        self._solver = self._solver_at(0, 0.0)
        self._most, self.iterations = whole("iterations", iterations, 1), 0
        self._budget = np.inf if budget is None else positive("budget", budget)
        self._tolerance = non_negative("tolerance", tolerance)
        self._limit_tolerance = non_negative("limit_tolerance", limit_tolerance)
        self._penalty = self._given = None if penalty is None else positive("penalty", penalty)
        self._t, self._status, self._costs, self.status = None, CONVERGED, [], "no call yet"
        self._solver.begin(*self._solver.state(q, v))
        self._solver.search(0, (0.0, np.inf), 1.0, self._begin_anew())  # compiles
        self._solver.path.u[:] += 1.0  # so that steps do not end at the next knots: kernels for gaps are compiled, too
        o = self._solver.objective
        kept = o.u_low.copy(), o.u_high.copy()
        if np.isfinite(kept).any():  # what inputs at their limits need is compiled, too
            o.u_low[:] = o.u_high[:] = 0.0
        self._solver.search(1, (0.0, np.inf), 1.0, FROM_STATES, False)
        o.u_low[:], o.u_high[:] = kept
        self._solver.raise_multipliers()
        if self._schedule is None:
            self._shift(0.5)

    def __repr__(self) -> str:
        return f"MPC({self._solver.robot.name!r}, {self._solver.steps} steps of {self._solver.h:g} s, {self.status})"

    def _solver_at(self, step, t):
        """The search for plans that begin with step `step`, for the cost at time t."""
        start, limits, options = self._given_to_solver
        steps = self._steps if self._schedule is None else phases_ahead(self._schedule, step, self._steps)
        return Solver(*start, self._cost_at(t), limits, Division(steps, *options))

    def _begin_anew(self):
        """Initial guess: the inputs of the cost; along a schedule at rest in the first state, closed in all phases."""
        solver, roll = self._solver, put_start(self._solver, None)
        if self._schedule is None:
            return roll
        solver.path.v[NOW:] = 0.0
        close(solver)
        return FROM_STATES

    def _cost_at(self, t):
        return self._cost(t) if callable(self._cost) else self._cost

    def reset(self) -> None:
        """Forget the plan: the next call is like the first one.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> mpc = ld.MPC(arm, arm.home, [0.0] * 4, ld.Cost(Q=1.0, R=1e-2), steps=10, h=0.02)
        >>> u = mpc(0.0, arm.home, [0.0] * 4)
        >>> mpc.reset()
        >>> bool((mpc(0.0, arm.home, [0.0] * 4) == u).all())
        True
        """
        self._t, self._penalty = None, self._given

    @property
    def plan(self) -> Plan:
        """The `Plan` of the last call, with times from that call on.

        Raises
        ------
        InputError
            There has been no call.
        """
        if self._t is None:
            raise InputError("there is no plan yet: call mpc(t, q, v) first")
        plan = replace(plan_of(self._solver, self._status), costs=np.array(self._costs), iterations=self.iterations)
        if self.status != UNCHANGED:
            return plan
        return replace(plan, status=UNCHANGED, cost=np.nan, costs=np.full(1, np.nan), violation=np.nan)

    @property
    def _robot(self) -> Robot:
        return self._solver.robot

    def _inputs(self, t, q, v):
        begun, solver = time.perf_counter(), self._solver
        state = solver.state(q, v)
        if self._t is not None and t < self._t - 0.5 * solver.h:
            raise InputError(f"mpc, t: time goes back, from {self._t:g} to {t:g}; call reset() before another run")
        if self._schedule is not None:
            self._move_to(t)
        elif callable(self._cost):
            self._set_cost(t)
        if self._t is None:
            self._first(state, FIRST_ITERATIONS, np.inf)
            self._t = t
        else:
            if self._schedule is None:
                self._shift((t - self._t) / solver.h)
            self._t = max(t, self._t)
            return self._again(t, state, begun + self._budget)
        self.status = STATUS[self._status]
        return self._solver.path.u[self._now].copy()

    def _again(self, t, state, deadline):
        """Inputs from the improved last plan; from the last plan itself if it cannot be improved."""
        solver, phases = self._solver, self._solver.discretisation.phases
        kept = *self._shifting(), phases.lam, phases.cones.lam
        shifted = [each.copy() for each in kept]
        solver.path.q[0], solver.path.v[0] = state
        try:
            if self._schedule is not None:
                close(solver)
            self._improve(FROM_STATES, self._most, self._tolerance, deadline)
        except UNPLANNABLE:
            try:
                self._first(state, self._most, deadline)
            except UNPLANNABLE as error:
                warnings.warn(f"mpc at t = {t:g} s: the plan before goes on, as no plan was found from here: {error}",
                              PlanWarning, stacklevel=4)
                for each, before in zip(kept, shifted):
                    each[:] = before
                self.status, self.iterations = UNCHANGED, 0
                planned, bounds = SimpleNamespace(**solver.path._asdict(), K=solver.expansion.K), solver.objective[-2:]
                return regulated(solver.robot, solver.places, planned, self._now, *state, bounds)
        self.status = STATUS[self._status]
        return solver.path.u[self._now].copy()

    def _improve(self, roll, most, tolerance, deadline, growth=1.0, halvings=HALVINGS):
        """Searches until convergence, until `most` iterations are made, or the next one would end after the deadline.

        Penalties are usually constant (growth 1): multipliers that are carried from call to call satisfy the limits,
        while penalties that grew in one call would make all later ones converge more slowly.
        """
        solver, self.iterations, self._costs, longest = self._solver, 0, [], 0.0
        several = 1 if np.isfinite(deadline) else most
        while True:
            begun = time.perf_counter()
            self._status = solver.search(
                several, (tolerance, self._limit_tolerance), self._penalty, roll, False, halvings, growth)
            now, roll = time.perf_counter(), GO_ON
            made = int(solver.log.count[0])
            self.iterations += made
            self._costs += solver.log.cost[:made].tolist()
            longest = max(longest, now - begun)
            if self._status != ITERATIONS or self.iterations >= most or now + longest > deadline:
                break
        self._costs.append(float(solver.log.cost[made]))
        if self._status == ITERATIONS and solver.log.memory[CLOSED] > 0.0:  # of plans with gaps they would mean nothing
            solver.raise_multipliers()

    def _set_cost(self, t):
        """Sets the cost of this time, which has the same shape."""
        solver, before = self._solver, self._solver.objective
        solver.set_objective(self._cost_at(t), self._limits)
        for name in "running", "final":
            if getattr(solver.objective, name).records.tolist() != getattr(before, name).records.tolist():
                raise InputError(f"mpc, cost: the cost at t = {t:g} has other targets than before")

    def _first(self, state, most, deadline):
        """A plan from the inputs of the cost, to convergence if iterations and time suffice."""
        solver = self._solver
        solver.begin(*state)
        roll = self._begin_anew()
        penalty = self._penalty
        if penalty is None:
            penalty = self._penalty = first_penalty(solver, roll) if solver.limited else 1.0
        solver.set_penalty(penalty)
        self._improve(roll, most, FIRST_TOLERANCE, deadline, GROWTH, FIRST_HALVINGS)
        if self._t is None and self._status != CONVERGED:
            warnings.warn(f"mpc: the first plan is not the best one: {STATUS[self._status]} after {self.iterations} "
                          "iterations; begin at other inputs (`u` of the cost), or change `penalty` or limits",
                          PlanWarning, stacklevel=4)
        if self._t is None and self._given is None:
            o = solver.objective
            self._penalty = max(self._costs[-1], np.abs(o.Q).max(initial=penalty),
                                *((each.weights ** 2).max(initial=0.0) for each in (o.running, o.final)))
        solver.keep_penalty(self._penalty)

    def _shifting(self):
        """The arrays of the plan with a row for each knot or step."""
        x = self._solver.expansion
        return *self._solver.path, x.K, x.lam, x.mu

    def _move_to(self, t):
        """The plan along a schedule that begins at time t, with the common part of the last one.

        Raises InputError if the time is no multiple of h.
        """
        old, step = self._solver, round(t / self._solver.h)
        if abs(t / old.h - step) > ROUNDING * max(1.0, abs(step)):
            raise InputError(f"mpc, t: calls along a schedule are at multiples of h = {old.h:g} s, got {t:g}")
        solver = self._solver_at(step, t)
        if self._t is not None:
            solver.keep_penalty(self._penalty)
            solver.begin(old.path.q[0], old.path.v[0])
            put_start(solver, None)
            carry(old, self._step, solver, step)
            solver.log = old.log
        self._solver, self._step = solver, step

    def _shift(self, steps):
        """Shifts the plan by `steps` steps; new steps repeat its last knot with the reference inputs."""
        s, count = self._solver, min(int(steps + ROUNDING), self._solver.steps)
        part = steps - count if count < s.steps and steps - count > ROUNDING else 0.0
        if count > 0:
            for each in self._shifting():
                each[:-count] = each[count:].copy()
                each[-count:] = each[-count - 1 if count < len(each) else -1]
            o = s.objective
            s.path.u[-count:] = np.clip(o.u[-1], o.u_low, o.u_high)
        if part > 0.0:
            shift_by_part(s.model, s.discretisation, s.rooms.step, s.rooms.forward, s.path, s.expansion, part)
