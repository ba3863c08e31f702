"""Steps of a mechanism one by one, for real-time loops."""
# mypy: ignore-errors

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import flag, number, one_of, positive, require_robot, whole
from liedyn.machine.compiled.slices import Slices
from liedyn.machine.compiled.user_functions import forget_errors, raise_errors
from liedyn.machine.errors import ConditionWarning, InputError, SimulationError, shown
from liedyn.mechanics.contact.contact_state import equations, statuses
from liedyn.model.calls import boundary
from liedyn.model.calls.boundary import as_floats, require_usable
from liedyn.model.constraint_records import refresh
from liedyn.model.packed import OFF
from liedyn.motion.simulation.apply_events import close_constraints, impact, require_outside, switch_constraints
from liedyn.motion.simulation.coupler import VirtualCoupler
from liedyn.motion.simulation.coupler_force import MOST_COUPLERS, WRENCH
from liedyn.motion.simulation.events import Event
from liedyn.motion.simulation.fast_arguments import held_forces
from liedyn.motion.simulation.integrators.moreau import DEEPEST
from liedyn.motion.simulation.one_step import check_start, fail
from liedyn.motion.simulation.preparation import one_state
from liedyn.motion.simulation.simulate import STARTS
from liedyn.motion.simulation.stepping import COUPLED, DONE, KNOWN, Prepared, Undone, functions
from liedyn.motion.simulation.workspace import OK

if TYPE_CHECKING:
    from typing import Any

if TYPE_CHECKING:
    from typing import Literal

    from liedyn.model.robot import Robot
    from liedyn.motion.simulation.integrators.generalized_alpha import GeneralizedAlpha
    from liedyn.motion.simulation.preparation import Baumgarte
    from liedyn.typing import Array, ArrayLike, Wrenches

FEW = 64
"""Number of steps that `Stepper.advance` makes at once; larger numbers are made in slices."""


class Stepper:
    """A mechanism that is simulated step by step, for real-time loops.

    Everything is prepared once; a step is then one call of compiled code. Every failure is a typed error that leaves
    the last good state, from which the loop can continue with other inputs. Not thread-safe.

    Parameters
    ----------
    robot : Robot
        The stepper starts with its switches; the robot itself is not changed.
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (nv,)
        Velocity [rad/s, m/s], body-fixed for spherical and free joints.
    dt : float
        Step [s].
    method : str or GeneralizedAlpha
        One of the methods with fixed steps, as for `simulate`; one-sided constraints need ``"moreau"``.
    formulation : {"nullspace", "svd", "multiplier", "unified", "momenta"}
        How accelerations are computed, or what is integrated. ``"svd"`` passes singular configurations.
    stabilisation : {"projection", "none", "baumgarte", "minimal"} or Baumgarte
        How violations of the constraints are treated at the end of each step.
    f_ext : dict or array_like, optional
        Constant wrenches on bodies, each in its body's own frame, as for `rnea`.
    start : {"check", "project", "as given"}
        What to do with an initial state that violates the constraints, as in `simulate`.
    t : float, optional
        Time at the start [s], by default the robot's time.

    Attributes
    ----------
    robot : Robot
        The robot that the user gave.
    dt : float
    t : float
        Time [s].
    q, v, a, lam : ndarray
        Copies of the state, and its accelerations and multipliers for the last inputs. With ``"moreau"``, after a step
        with impulses, a is the change of v in the step divided by dt, and lam the mean forces.
    tau : ndarray, shape (nv,)
        Generalised forces [N m, N] that are applied until others are given.
    active : tuple of str
        Constraints that are switched on, including one-sided ones that are open.
    now : Robot
        The robot with the present switches, and at the present time, of the stepper.
    couplers : tuple of VirtualCoupler
        Couplers that pull at the robot.

    Raises
    ------
    InputError, ClosureError, SingularConfigurationError
        As for `simulate`.
    SimulationError
        The accelerations at the initial state cannot be computed.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> stepper = ld.Stepper(robot, robot.home, [0.0] * 4, dt=1e-3)
    >>> stepper.step([5.0, 0.0, 0.0, 0.0])
    >>> stepper.advance(15)
    >>> round(stepper.t, 9)
    0.016
    """

    def __init__(self, robot: Robot, q: ArrayLike, v: ArrayLike, dt: float = 1e-3,
                 method: str | GeneralizedAlpha = "rk4",
                 formulation: Literal["nullspace", "svd", "multiplier", "unified", "momenta"] = "nullspace",
                 stabilisation: Literal["projection", "none", "baumgarte", "minimal"] | Baumgarte = "projection",
                 f_ext: Wrenches | None = None, start: Literal["check", "project", "as given"] = "check",
                 t: float | None = None) -> None:
        require_robot(robot)
        self._prepare(Prepared(robot, method, formulation, stabilisation, f_ext))
        self._p.s.times[1] = positive("dt", dt)
        self._couplers, self._start, self._slices = (), None, Slices(FEW)
        self.reset(q, v, t, start)

    def _prepare(self, p):
        self._p, self._address, self._table, self._about = p, p.address, p.s.tau, p.s.about
        self._steps, self._steps_beside, self._complete, self._begin = functions()
        self._at = SimpleNamespace(robot=p.robot, packed=p.s.model, o=p.s.settings, x=p.s.work, contacts=p.contacts,
                                   equations=equations(p.s.model, p.contacts), failure=self._failed)

    def __getstate__(self) -> Any:
        return self._p, self._couplers, self._start, self._slices

    def __setstate__(self, state: Any) -> None:
        p, self._couplers, self._start, self._slices = state
        self._prepare(p)

    @property
    def robot(self) -> Robot:
        return self._p.robot

    @property
    def dt(self) -> float:
        return float(self._p.s.times[1])

    @property
    def t(self) -> float:
        return float(self._p.s.times[0] + self._about[DONE] * self._p.s.times[1])

    @property
    def q(self) -> Array:
        return self._p.s.rows.q[0].copy()

    @property
    def v(self) -> Array:
        return self._p.s.rows.v[0].copy()

    @property
    def a(self) -> Array:
        return self._p.s.rows.a[0].copy()

    @property
    def lam(self) -> Array:
        return self._p.s.rows.lam[0].copy()

    @property
    def tau(self) -> Array:
        return self._table.copy()

    @property
    def couplers(self) -> tuple[VirtualCoupler, ...]:
        return self._couplers

    @property
    def active(self) -> tuple[str, ...]:
        beyond = {k for k, is_beyond in zip(self._p.ends, self._p.beyond) if is_beyond}
        return tuple(name for k, (name, status) in enumerate(zip(
            self.robot.constraint_names, statuses(self._p.s.model))) if status != OFF or k in beyond)

    @property
    def now(self) -> Robot:
        states = dict.fromkeys(self.robot.constraint_names, False) | dict.fromkeys(self.active, True)
        now = self.robot.switched(states)
        return now.at(self.t) if self.robot.functions else now

    def __repr__(self) -> str:
        return f"Stepper({self.robot.name!r}, dt={self.dt:g}, method={self._p.method.name!r}, t={self.t:g})"

    # ---- time

    def step(self, tau: ArrayLike | None = None, u: ArrayLike | None = None) -> None:
        """One step.

        Parameters
        ----------
        tau : array_like, shape (nv,), optional
            Generalised forces [N m, N], applied in this step and those after it, until others are given.
        u : array_like, shape (nu,), optional
            Instead of `tau`: forces of the actuators.

        Raises
        ------
        InputError
            An argument does not fit or is not finite, or both are given.
        SimulationError
            The step failed: divergence, a singular or unreachable configuration.

        Examples
        --------
        >>> import liedyn as ld
        >>> robot = ld.load("five_bar")
        >>> stepper = ld.Stepper(robot, robot.home, [0.0] * 4)
        >>> stepper.step()
        >>> stepper.t
        0.001
        """
        if tau is not None or u is not None:
            self._hold(tau, u)
        self._go(self._steps, 1)

    def advance(self, steps: int, tau: ArrayLike | None = None, u: ArrayLike | None = None) -> None:
        """Make several steps in one call, during which other threads can run.

        Parameters
        ----------
        steps : int
            Number of steps.
        tau, u : array_like, optional
            As for `step`.

        Raises
        ------
        InputError
            An argument does not fit.
        SimulationError
            A step failed; the steps before it have been made.
        KeyboardInterrupt
            Ctrl-C, with a delay of up to a second; the steps before it have been made.

        Examples
        --------
        >>> import liedyn as ld
        >>> robot = ld.load("five_bar")
        >>> stepper = ld.Stepper(robot, robot.home, [0.0] * 4)
        >>> stepper.advance(16)
        >>> round(stepper.t, 9)
        0.016
        """
        steps = whole("steps", steps)
        if tau is not None or u is not None:
            self._hold(tau, u)
        if steps <= FEW:
            self._go(self._steps_beside, steps)
            return
        for begin, end in self._slices.of(steps):
            self._go(self._steps_beside, end - begin)

    def _hold(self, tau, u):
        """Stores forces, after a check that they fit."""
        tau = tau if u is None else held_forces(self.robot, tau, u)
        if boundary.usual_rows(tau, len(self._table)) is None or tau.ndim != 1:
            tau = as_floats("tau", tau, len(self._table))
            if tau.ndim != 1:
                raise InputError(f"tau must have shape ({len(self._table)},), got {tau.shape}")
            require_usable("tau", tau)
        self._table[:] = tau

    def _go(self, function, count):
        if self._p.functions:
            forget_errors(self._p.functions)
        for k, coupler in enumerate(self._couplers):
            self._p.s.couplers[k] = coupler.numbers
        if self._p.ends:
            status = OK
            while count and status == OK:
                self._p.see_edges(self._p.s.rows.q[0])
                status, count = function(self._address, 1), count - 1
        else:
            status = function(self._address, count)
        for k, coupler in enumerate(self._couplers):
            coupler.numbers[WRENCH:] = self._p.s.couplers[k, WRENCH:]
        if status != OK:
            self._about[KNOWN] = 0
            fail(self._p, "the stepper", self.t, status)

    # ---- changes

    def reset(self, q: ArrayLike | None = None, v: ArrayLike | None = None, t: float | None = None,
              start: Literal["check", "project", "as given"] = "check") -> None:
        """Continue from another state, with the present switches of constraints and without inputs.

        Parameters
        ----------
        q : array_like, shape (nq,), optional
            Configuration; by default that of the last `reset`, or the initial one.
        v : array_like, shape (nv,), optional
            Velocity; by default as for q.
        t : float, optional
            Time [s]; by default as for q.
        start : {"check", "project", "as given"}
            What to do with a state that violates the constraints.

        Raises
        ------
        InputError, ClosureError, SingularConfigurationError, SimulationError
            The state is not admissible. The stepper's state does not change.

        Examples
        --------
        >>> import liedyn as ld
        >>> robot = ld.load("five_bar")
        >>> stepper = ld.Stepper(robot, robot.home, [0.0] * 4)
        >>> stepper.advance(16)
        >>> stepper.reset()
        >>> stepper.t
        0.0
        """
        one_of("start", start, STARTS)
        before = self._start or (None, None, self.robot.t)
        q, v, t = (old if new is None else new for new, old in zip((q, v, t), before))
        q, v = one_state("a stepper", self.robot, q, v)
        t = number("t", t)
        with Undone(self._p):
            refresh(self._p.s.model, t)
            raise_errors(self._p.functions)
            self._p.see_edges(q, anew=True)
            check_start(self._p, q, v, t, start)
            self._about[DONE], self._p.s.times[0], self._table[:] = 0, t, 0.0
            self._put(q, v)
        self._start = q, v, t

    def _put(self, q, v):
        """Completes a state, or raises the error that prevents it."""
        p = self._p
        p.s.rows.q[0], p.s.rows.v[0] = q, v
        self._begin(self._address, 0)
        for k, coupler in enumerate(self._couplers):
            p.s.couplers[k] = coupler.numbers
        status = self._complete(self._address, 0)
        if status == OK and not np.isfinite(p.s.rows.a[0]).all():
            raise self._failed("no accelerations: the state or an input is not finite")
        if status != OK:
            fail(p, "the stepper", self.t, status)

    def _failed(self, text):
        """The error for a change that cannot be made."""
        return SimulationError(f"the stepper of {self.robot.name!r} at t = {self.t:.9g} s: {text}",
                               state=(self.t, self.q, self.v))

    def switch(self, name: str, on: bool = True) -> Array:
        """Switch a constraint on or off between two steps.

        A constraint that is switched on must be closed; a one-sided one may be open but not penetrated. The velocity is
        made consistent by an impulse, as for an `Event`.

        Parameters
        ----------
        name : str
            Name of the constraint.
        on : bool
            True to switch on. A one-sided constraint then opens and closes as the state demands, with
            ``method="moreau"``.

        Returns
        -------
        impulse : ndarray, shape (m,)
            Impulse of each row [N m s, N s]; zero where nothing had to change.

        Raises
        ------
        InputError
            An unknown constraint, or a one-sided one with a method that does not support it.
        SimulationError
            The constraint is open or penetrated, or there are no accelerations with it. Nothing has changed then.
        SingularConfigurationError
            No velocity satisfies all constraints. Nothing has changed.

        Warns
        -----
        ConditionWarning
            A coupler is now too stiff for the step, as the effective mass of its body is smaller than before.

        Examples
        --------
        >>> import liedyn as ld
        >>> cart = ld.load("shopping_cart")
        >>> q = cart.home.copy()
        >>> q[cart.coordinate_index("caster")] = 0.0
        >>> stepper = ld.Stepper(cart, q, [0.0] * 4)
        >>> impulse = stepper.switch("stick", True)
        >>> stepper.active
        ('rear', 'wheel', 'stick')
        """
        p, k, on = self._p, self.robot.constraint_index(name), flag("on", on)
        status = statuses(p.s.model)
        if on and k in p.contacts.index:
            p.refuse_contacts(p.contacts.index == k)
        impulse = np.zeros(len(p.s.work.psi))
        if p.switch_beyond(k, on, self.q) or (status[k] != OFF) == on:
            return impulse
        with Undone(self._p):
            refresh(p.s.model, self.t)
            event = Event(f"switch {name}", lambda t, q, v: 1.0, on=name if on else (), off=() if on else name)
            restitution, bounce = switch_constraints(self._at, (event,))
            q, v = self.q, self.v
            if on and k in p.contacts.index:
                require_outside(self._at, self.t, q, v, DEEPEST)
            elif on:
                nothing = np.empty(0, np.int64)
                close_constraints(self._at, (event,), nothing, q)
                v, impulse, _, _ = impact(self._at, (event,), nothing, restitution, bounce, q, v)
            self._put(q, v)
        for coupler in self._couplers:
            try:
                coupler.check(self.q, self.dt, self.now)
            except InputError as error:
                warnings.warn(str(error), ConditionWarning, stacklevel=2)
        return impulse

    def couple(self, *couplers: VirtualCoupler) -> None:
        """Let couplers pull at the robot: forces are computed at the beginning of each step and constant during it.

        Parameters
        ----------
        *couplers : VirtualCoupler
            All couplers that pull from now on; without arguments none do.

        Raises
        ------
        InputError
            A coupler of another robot, or one that would be unstable with this step (`VirtualCoupler.check`).

        Examples
        --------
        >>> import liedyn as ld
        >>> robot = ld.load("five_bar")
        >>> stepper = ld.Stepper(robot, robot.home, [0.0] * 4)
        >>> coupler = ld.VirtualCoupler(robot, "link2", None, stiffness=200.0, damping=40.0)
        >>> stepper.couple(coupler)
        >>> coupler.move([0.2, 1.0, 0.0])
        >>> stepper.advance(16)
        >>> bool(abs(coupler.wrench).max() > 0.0)
        True
        """
        if len(couplers) > MOST_COUPLERS:
            raise InputError(f"a stepper takes {MOST_COUPLERS} couplers, got {len(couplers)}")
        for coupler in couplers:
            if not isinstance(coupler, VirtualCoupler):
                raise InputError(f"expected a VirtualCoupler, got {shown(coupler)}")
            if coupler.robot.model is not self.robot.model:
                raise InputError(f"the coupler on {coupler.body!r} is one of another robot, {coupler.robot.name!r}")
            coupler.check(self.q, self.dt, self.now)
        self._couplers, self._about[COUPLED] = couplers, len(couplers)
