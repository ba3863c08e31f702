"""One step of a mechanism from any state."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from liedyn.machine.arguments import number, positive, require_robot
from liedyn.machine.compiled.user_functions import forget_errors, raise_errors
from liedyn.machine.errors import InputError, SimulationError
from liedyn.model.calls.boundary import wrenches
from liedyn.model.constraint_records import refresh
from liedyn.motion.simulation.apply_events import require_outside
from liedyn.motion.simulation.failure_messages import reason
from liedyn.motion.simulation.fast_arguments import held_forces, state_and_forces
from liedyn.motion.simulation.integrators.moreau import DEEPEST
from liedyn.motion.simulation.preparation import prepare_decay, prepare_start
from liedyn.motion.simulation.stepping import DECAY, DONE, Prepared, functions
from liedyn.motion.simulation.workspace import OK

if TYPE_CHECKING:
    from typing import Literal

    from liedyn.model.robot import Robot
    from liedyn.motion.simulation.integrators.generalized_alpha import GeneralizedAlpha
    from liedyn.motion.simulation.preparation import Baumgarte
    from liedyn.typing import Array, ArrayLike, Wrenches


def step(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, dt: float = 1e-3,
         method: str | GeneralizedAlpha = "rk4",
         formulation: Literal["nullspace", "svd", "multiplier", "unified", "momenta"] = "nullspace",
         stabilisation: Literal["projection", "none", "baumgarte", "minimal"] | Baumgarte = "projection",
         f_ext: Wrenches | None = None, t: float | None = None, u: ArrayLike | None = None) -> tuple[Array, Array]:
    """One step of a mechanism, the same as a step of `simulate`.

    For users' own loops with one robot: what a step needs is prepared at the first call and stored with the robot.
    `Stepper` is faster still; `liedyn.kernels.step` is for compiled loops.

    Parameters
    ----------
    robot : Robot
        With its constraints as they are switched. One-sided ones open and close with ``method="moreau"`` only.
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (nv,)
        Velocity [rad/s, m/s], body-fixed for spherical and free joints.
    tau : array_like, shape (nv,), optional
        Generalised forces [N m, N], constant during the step; or give `u`.
    dt : float
        Length of the step [s].
    method : str or GeneralizedAlpha
        One of the methods with fixed steps, as for `simulate`; the generalised-alpha method starts anew with each call.
    formulation : {"nullspace", "svd", "multiplier", "unified", "momenta"}
        How accelerations are computed, or what is integrated, as in `simulate`.
    stabilisation : {"projection", "none", "baumgarte", "minimal"} or Baumgarte
        How violations of the constraints are treated at the end of the step.
    f_ext : dict or array_like, optional
        Wrenches on bodies, each in its body's own frame, as for `rnea`.
    t : float, optional
        Time at the beginning of the step [s], for moving targets; by default the robot's time.
    u : array_like, shape (nu,), optional
        Instead of `tau`: forces of the robot's actuators.

    Returns
    -------
    q : ndarray, shape (nq,)
    v : ndarray, shape (nv,)
        The state after the step.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a name is unknown, the velocity violates the constraints, a
        contact is penetrated, the method does not support the robot's one-sided constraints, or chooses its own steps.
    ClosureError
        A loop is open at q.
    SingularConfigurationError
        A constraint has no direction at q.
    SimulationError
        The step failed; `state` of the error is the state before it; there is no trajectory.

    Notes
    -----
    Events are not detected within a step: `simulate` locates them, `Stepper.switch` is for external ones. Whether a
    contact is beyond the edge of its surface is seen at the beginning of a step.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> q, v = ld.step(robot, robot.home, [0.0] * 4, [0.0] * 4, 1e-3)
    >>> bool(abs(ld.closure_error(robot, q)).max() < 1e-12)
    True
    """
    require_robot(robot)
    try:
        pool = robot._memo.setdefault(("step", method, formulation, stabilisation, f_ext is None), _Pool())
    except TypeError:  # an unhashable object is no method and no stabilisation
        pool = _Pool()
    if u is not None or tau is None:
        tau = held_forces(robot, tau, u)
    q, v, tau = state_and_forces("step", robot, q, v, tau)
    dt, t = positive("dt", dt), robot.t if t is None else number("t", t)
    # removed from the pool, so that other threads, and users' functions that step the same robot, use others
    try:
        p = pool.pop()
    except IndexError:
        p = Prepared(robot, method, formulation, stabilisation, f_ext)
    try:
        rows, times, (go, _, _, begin) = p.s.rows, p.s.times, functions()
        rows.q[0], rows.v[0], p.s.tau[:] = q, v, tau
        times[0], times[1], p.s.about[DONE] = t, dt, 0
        if f_ext is not None:
            p.s.work.f_ext[:] = wrenches(robot, f_ext, ())[0]
        if p.functions:
            forget_errors(p.functions)
            refresh(p.s.model, t)
        p.see_edges(rows.q[0], anew=True)
        if begin(p.address, p.checks) or p.decays:
            check_start(p, rows.q[0], rows.v[0], t, "check")
        status = go(p.address, 1)
        if status != OK:
            fail(p, "a step", t, status)
        return rows.q[0].copy(), rows.v[0].copy()
    finally:
        pool.append(p)


class _Pool(list):
    """Prepared steps of a robot, which are not copied with it."""

    def __reduce__(self):
        return _Pool, ()


def check_start(p, q, v, t, start):
    """Raises the error of a bad state in row 0, or moves it to the constraints."""
    if len(p.contacts.index):
        at = SimpleNamespace(packed=p.s.model, contacts=p.contacts, failure=InputError)
        require_outside(at, t, q, v, DEEPEST)
    if p.decays:
        prepare_decay(p.robot, DECAY, t, q, v, start)
    elif p.checks or start == "project":
        prepare_start(p.robot, p.s.model, p.s.settings, p.s.work, q, v, start)


def fail(p, what, t, status):
    """Raises the error that says why a step from row 0 failed."""
    raise_errors(p.functions)
    text = reason(status, p.robot, p.s.rows.q[0], p.s.settings, p.s.work, p.inputs, p.stepping)
    raise SimulationError(f"{what} of {p.robot.name!r} stopped at t = {t:.9g} s: {text}",
                          state=(t, p.s.rows.q[0].copy(), p.s.rows.v[0].copy()))
