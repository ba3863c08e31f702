"""Simulation of any mechanism: the public function."""
import numpy as np

from liedyn.arguments import between, flag, number, positive, whole
from liedyn.boundary import wrenches
from liedyn.errors import InputError
from liedyn.jit import address_of
from liedyn.model.packed import LOOP_TARGET, constraints_of
from liedyn.model.size import velocity_sizes
from liedyn.simulation.adaptive import SOLVERS, Adaptive
from liedyn.simulation.far import address_of_linearization
from liedyn.simulation.fixed_step import advance
from liedyn.simulation.formulations import FORMULATIONS, WITH_FRICTION
from liedyn.simulation.friction import address_of_drags
from liedyn.simulation.generalized_alpha import advance_alpha
from liedyn.simulation.grid import FixedStep, Grid, TimeStepping
from liedyn.simulation.implicit import advance_implicit
from liedyn.simulation.inputs import Inputs
from liedyn.simulation.moreau import advance_moreau
from liedyn.simulation.preparation import (
    known_events, one_sided, one_state, prepare_decay, prepare_start, private_model, require_contacts_can_be_kept,
    require_known, require_sense,
)
from liedyn.simulation.progress import Progress
from liedyn.simulation.recorder import Recorder
from liedyn.simulation.run import Run
from liedyn.simulation.stabilisation import on_constraints
from liedyn.simulation.workspace import (
    ALPHA, BOUNDED_ENERGY, FREE_ENERGY, MOREAU, RK4, RKMK, SDIRK, STABILISATIONS, WANTED_ENERGY, Settings, make_work,
)

FIXED = {"rk4": (RK4, advance), "rkmk": (RKMK, advance), "implicit": (SDIRK, advance_implicit),
         "generalized_alpha": (ALPHA, advance_alpha), "moreau": (MOREAU, advance_moreau)}
"""Methods with fixed steps: their number and their loop."""
METHODS = (*FIXED, *SOLVERS)
IMPLICIT = ("implicit", "generalized_alpha", "Radau", "BDF", "LSODA")
"""Methods that use the derivative of a feedback."""
STARTS = ("check", "project", "as given")
ACCUMULATIONS = ("error", "moreau")
MOST_STEPS = 1e12
"""Steps of a run: more are a mistake in its units."""


def simulate(robot, q0, v0, t_final, tau=None, u=None, dt=None, method="rk4", formulation="nullspace",
             stabilisation="projection", alpha=10.0, beta=10.0, sigma=10.0, energy=False, rho=0.8,
             rtol=1e-8, atol=1e-10, max_step=np.inf, events=(), unilateral=(), accumulation="error", f_ext=None,
             start="check", t0=0.0, record=1, progress=None, tolerance=1e-8, rank_tolerance=1e-8, largest_speed=1e9):
    """Motion of a mechanism in time, from a state, with its constraints kept.

    Parameters
    ----------
    robot : Robot
        Its switches and targets are where the run starts; the robot itself is not changed.
    q0 : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v0 : array_like, shape (nv,)
        Velocity [rad/s, m/s], body-fixed for spherical and free joints.
    t_final : float
        End [s].
    tau : array_like or callable, optional
        Generalised forces [N m, N]: constant, shape (nv,); over the time grid, shape (steps, nv) or (steps + 1, nv),
        row k held from ``t0 + k dt`` on; or a function ``tau(t, q, v)``, which is fast if it is compiled (``@njit``)
        and is not compiled into anything: a new function costs its own compilation only. It must depend on its
        arguments alone: steps are repeated where events are located. A pair ``(f, df)`` adds its derivative,
        ``df(t, q, v) -> (by_q, by_v)``, each of shape (nv, nv), by a displacement in the tangent space at q and by v
        (`check_feedback` checks it). Implicit methods use it: with stiff feedback they need it.
    u : array_like or callable, optional
        Instead of `tau`: forces of the robot's actuators, in the same forms; derivatives of shape (nu, nv).
    dt : float, optional
        Step [s], by default 1e-3; the interval between recorded states for the adaptive methods, by default their own
        steps.
    method : str
        ``"rk4"`` or ``"rkmk"``: classical Runge-Kutta, or Runge-Kutta-Munthe-Kaas in local coordinates of the group,
        both of fourth order; they differ for ball and free joints only. ``"implicit"``: diagonally
        implicit Runge-Kutta of fourth order, L-stable, on minimal coordinates with the analytic iteration matrix
        1 - h gamma A_hat of the local state space. ``"generalized_alpha"``: implicit, second
        order, constraints solved on positions. ``"moreau"``: time-stepping for contacts, first order: impacts are not
        located, however many there are. ``"RK23"``, ``"RK45"``, ``"DOP853"``,
        ``"Radau"``, ``"BDF"``, ``"LSODA"``: SciPy's adaptive solvers, in local coordinates as well; the last
        three are implicit and get the exact Jacobian, unless the inputs are a function without its derivative.
    formulation : {"nullspace", "svd", "multiplier", "unified"}
        How accelerations are computed, as in `forward_dynamics`. ``"svd"`` passes singular configurations.
    stabilisation : {"projection", "none", "baumgarte", "minimal"}
        Projection on closed positions and consistent velocities after each step; nothing; Baumgarte's feedback; or
        minimal coordinates, with the others from the constraints at every stage and a new choice when it is due.
    alpha, beta : float
        Baumgarte's ``g'' + 2 alpha g' + beta^2 g = 0`` [1/s].
    sigma : float
        Decay ``A v - b + sigma C = 0`` of the unified formulation [1/s].
    energy : bool
        Shall projection restore the energy too? What it ought to be follows from the work of inputs, dampers, external
        wrenches and moving targets, and from the losses at events.
    rho : float
        Spectral radius at infinity of the generalised-alpha method: 1 damps nothing, 0 all that is fast.
    rtol, atol, max_step : float
        Tolerances and largest step [s] of the adaptive methods.
    events : Event or sequence of Event
        What may happen on the way.
    unilateral : sequence of str or dict
        Constraints that are one-sided in this run, besides those that are declared so (`Builder.constraint`): the
        residual of their first row stays >= 0, or with -1 as value <= 0. They close where it gets zero, and let go
        where their force would have to change its sign. Loops and other constraints whose first residual is no gap let
        go, and stay off until an event switches them on.
    accumulation : {"error", "moreau"}
        What to do where impacts accumulate (a ball that bounces to rest, a table that rattles): stop with an
        `AccumulationError`; or go on by time-stepping until all contacts have settled, and then as before. Where
        contacts stick and slip without end, or friction makes accelerations contradict each other, likewise.
    f_ext : dict or array_like, optional
        Constant wrenches (moment, force) [N m, N] on bodies, each in its body's own frame, as for `rnea`.
    start : {"check", "project", "as given"}
        What to do with a start that violates the constraints: an error; project it; nothing. Baumgarte's feedback
        accepts any. The unified formulation without projection accepts any q0 with a velocity that lets the violation
        decay, and moves v0 only.
    t0 : float
        Start [s].
    record : int
        Keep every so many steps.
    progress : bool, optional
        A progress bar (tqdm): always, never, or by default on long runs if it is installed.
    tolerance : float
        Largest closure error [rad; m by the mechanism's size, `liedyn.model.size`] that constraints which contradict
        each other a little may keep. Projection itself goes on to rounding.
    rank_tolerance : float
        Pivots, or singular values, of G below this part of the largest one count as zero.
    largest_speed : float
        Speed [rad/s; sizes of the mechanism per second] above which the motion counts as diverged.

    Returns
    -------
    Trajectory
        Times, states, accelerations, forces, energies, works, residuals, condition numbers and events, singular
        passages among them: peaks of the condition number to 30 times its smallest value before, on the rows of the
        run (with adaptive methods give `dt`, as their own steps may be too long to show them).

    Warns
    -----
    ConditionWarning
        The energy of a run without inputs and dissipation changes in a step, near a singular configuration or because
        `dt` is too large: by 100 times the median change and 1e-6 of the largest kinetic energy, or grows by 1e-3 of
        that over the run.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, an unknown name, or v0 violates the constraints.
    ClosureError
        A loop is open at q0.
    SingularConfigurationError
        A constraint has no direction at q0 (unless ``start="as given"``, where the run stops at once).
    SimulationError
        The run had to stop: divergence, a singular or unreachable configuration, inputs that are not numbers, an event
        that cannot happen, chattering, an error in a user's function. It carries the trajectory up to there.

    Notes
    -----
    Spencer 2004, chapter 3; Gillespie 2003, section 4, for switching. Work is integrated along with the motion.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> tr = ld.simulate(robot, robot.home, [0.0] * 4, 0.2)
    >>> tr.t[-1].item(), bool(abs(tr.energy_drift).max() < 1e-9)
    (0.2, True)
    """
    q, v = one_state(robot, q0, v0)
    t0, t_final, step = number("t0", t0), number("t_final", t_final), 1e-3 if dt is None else number("dt", dt)
    if not t_final > t0:
        raise InputError(f"t_final must come after t0 = {t0:g}, got {t_final:g}")
    if not (step > 0.0 and (t_final - t0) / step < MOST_STEPS):
        raise InputError(f"dt must be positive, and make no more than {MOST_STEPS:g} steps to t_final, got {step:g}")
    require_known(formulation=(formulation, FORMULATIONS), stabilisation=(stabilisation, STABILISATIONS),
                  method=(method, METHODS), start=(start, STARTS),
                  accumulation=(accumulation, ACCUMULATIONS))
    energy, rho, record = flag("energy", energy), between("rho", rho, 0.0, 1.0), whole("record", record, 1)
    require_sense(method, stabilisation, energy)
    longest = np.inf if max_step is None or isinstance(max_step, float) and max_step == np.inf else positive(
        "max_step", max_step)
    if not (t_final - t0) / longest < MOST_STEPS:
        raise InputError(f"max_step must make no more than {MOST_STEPS:g} steps to t_final, got {longest:g}")
    grid = Grid(t0, t_final, min(step, t_final - t0))
    inputs = Inputs(robot, tau, u, (t0, q, v), grid.steps, method in IMPLICIT)
    forces = wrenches(robot, f_ext, ())[0]
    model = private_model(robot, t0)
    events = known_events(robot, events)
    contacts = one_sided(robot, model, unilateral, events)
    require_contacts_can_be_kept(contacts, method, stabilisation)
    rubs = bool(((contacts.count > 1) & (contacts.friction > 0.0)).any())
    x = make_work(robot, forces, inputs, contacts)
    # targets do work, which is known to the accuracy of its integral only: no bound of the energy follows from it
    moved = bool(constraints_of(model)[0][:, LOOP_TARGET].any())
    o = Settings(
        method=FIXED[method][0] if method in FIXED else RKMK, formulation=0, linearization=0,
        stabilisation=STABILISATIONS.index(stabilisation), stabiliser=0, alpha=number("alpha", alpha),
        beta=number("beta", beta), sigma=number("sigma", sigma) if formulation == "unified" else 0.0,
        tolerance=positive("tolerance", tolerance), rank_tolerance=positive("rank_tolerance", rank_tolerance),
        energy=WANTED_ENERGY if energy else BOUNDED_ENERGY if len(contacts.index) and not moved else FREE_ENERGY,
        all_power=bool(len(forces) or robot.functions or rubs), input_kind=inputs.kind, input_address=inputs.address,
        feedback_address=inputs.derivative, rho=rho,
        largest=positive("largest_speed", largest_speed) * velocity_sizes(robot),
        friction=address_of_drags() if rubs else 0)
    solver = WITH_FRICTION.get(formulation, FORMULATIONS[formulation]) if rubs else FORMULATIONS[formulation]
    o = o._replace(
        formulation=address_of(solver, model, o, x, t0, 0, q, v, v, v),
        stabiliser=address_of(on_constraints, model, o, x, t0, t0, q, v),
        linearization=address_of_linearization() if method == "implicit" else 0)
    if formulation == "unified" and stabilisation in ("none", "baumgarte"):
        prepare_decay(robot, o, t0, q, v, start)
    elif start != "check" or stabilisation != "baumgarte":
        prepare_start(robot, model, o, x, q, v, start)
    if method in FIXED:
        integrator = (TimeStepping if method == "moreau" else FixedStep)(FIXED[method][1], grid)
    else:
        if len(inputs.table) > 1 and dt is None:
            raise InputError("inputs over the time grid need the grid: give dt")
        integrator = Adaptive(SOLVERS[method], grid, dt is not None,
                              {"rtol": positive("rtol", rtol), "atol": positive("atol", atol), "max_step": longest})
    return Run(
        robot, model, o, x, integrator, (t0, q, v), t_final, events, contacts, inputs, Recorder(record),
        Progress(progress, t0, t_final),
        TimeStepping(advance_moreau, grid) if accumulation == "moreau" else None,
        dict(method=method, formulation=formulation, stabilisation=stabilisation)).go()
