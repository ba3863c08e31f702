"""Simulation of any mechanism: the public function."""
import numpy as np

from liedyn.boundary import states, wrenches
from liedyn.constraints.records import refresh
from liedyn.constraints.rows import holonomic_rows
from liedyn.errors import ClosureError, InputError, suggestion
from liedyn.functions import raise_errors
from liedyn.model.packed import N_ROWS
from liedyn.simulation.adaptive import SOLVERS, Adaptive
from liedyn.simulation.fixed_step import RK4, RKMK, advance
from liedyn.simulation.far import address_of
from liedyn.simulation.formulations import FORMULATIONS
from liedyn.simulation.grid import FixedStep, Grid
from liedyn.simulation.inputs import Inputs
from liedyn.simulation.progress import Progress
from liedyn.simulation.projection import close_positions, consistent_velocities, metric
from liedyn.simulation.recorder import Recorder
from liedyn.simulation.run import Run
from liedyn.simulation.stabilisation import on_constraints
from liedyn.simulation.switching import constraint_state
from liedyn.simulation.workspace import STABILISATIONS, Settings, make_work

CONSISTENT = 1e-6
"""Largest residual [rad, m] and relative velocity residual of a start that is taken to be on the manifold."""


def simulate(robot, q0, v0, t_final, tau=None, u=None, dt=None, method="rk4", formulation="nullspace",
             stabilisation="projection", alpha=10.0, beta=10.0, sigma=10.0, energy=False,
             rtol=1e-8, atol=1e-10, max_step=np.inf, events=(), unilateral=(), f_ext=None,
             start="check", t0=0.0, record=1, progress=None, tolerance=1e-11, rank_tolerance=1e-8, largest_speed=1e9):
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
        and is not compiled into anything: a new function costs its own compilation only.
    u : array_like or callable, optional
        Instead of `tau`: forces of the robot's actuators, in the same forms.
    dt : float, optional
        Step [s], by default 1e-3; the interval between recorded states for the adaptive methods, by default their own
        steps.
    method : str
        ``"rk4"`` or ``"rkmk"``: classical Runge-Kutta, or Runge-Kutta-Munthe-Kaas in local coordinates of the group,
        both of fourth order; they differ for ball and free joints only. ``"RK23"``, ``"RK45"``, ``"DOP853"``,
        ``"Radau"``, ``"BDF"``, ``"LSODA"``: SciPy's adaptive solvers, in local coordinates as well.
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
    rtol, atol, max_step : float
        Tolerances and largest step [s] of the adaptive methods.
    events : Event or sequence of Event
        What may happen on the way.
    unilateral : sequence of str or dict
        Constraints that can only push, the residual of their first row growing freely, or with -1 as value only pull:
        they are switched off when their force changes sign.
    f_ext : dict or array_like, optional
        Constant wrenches (moment, force) [N m, N] on bodies, each in its body's own frame, as for `rnea`.
    start : {"check", "project", "as given"}
        What to do with a start that violates the constraints: an error; project it; nothing. Baumgarte's and the
        unified formulation accept any.
    t0 : float
        Start [s].
    record : int
        Keep every so many steps.
    progress : bool, optional
        A progress bar (tqdm): always, never, or by default on long runs if it is installed.
    tolerance : float
        Largest closure error [rad, m] after projection.
    rank_tolerance : float
        Pivots, or singular values, of G below this part of the largest one count as zero.
    largest_speed : float
        Speed [rad/s, m/s] above which the motion counts as diverged.

    Returns
    -------
    Trajectory
        Times, states, accelerations, forces, energies, works, residuals, condition numbers and events.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, an unknown name, or v0 violates the constraints.
    ClosureError
        A loop is open at q0.
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
    _, q, v = states(robot, q0=q0, v=v0)
    if len(q) != 1:
        raise InputError(f"simulate takes one state, got {len(q)}")
    q, v = q[0].copy(), v[0].copy()
    t0, t_final = _number("t0", t0), _number("t_final", t_final)
    on_grid = dt is not None
    dt = _number("dt", dt) if on_grid else 1e-3
    if not t_final > t0:
        raise InputError(f"t_final must come after t0 = {t0:g}, got {t_final:g}")
    if not dt > 0.0:
        raise InputError(f"dt must be positive, got {dt:g}")
    for what, name, known in (("formulation", formulation, FORMULATIONS),
                              ("stabilisation", stabilisation, STABILISATIONS), ("method", method, METHODS)):
        if name not in known:
            raise InputError(f"unknown {what} {name!r}, {suggestion(name, known)}")
    grid = Grid(t0, t_final, min(dt, t_final - t0))
    inputs = Inputs(robot, tau, u, (t0, q, v), grid.steps)
    ints, floats = robot.ints.copy(), robot.floats.copy()
    refresh(ints, floats, t0)
    raise_errors(robot.functions)
    holonomic = np.ones(int(ints[N_ROWS]), np.int64)
    holonomic_rows(ints, holonomic)
    forces = wrenches(robot, f_ext, ())[0]
    x = make_work(robot, forces, inputs.table, inputs.actuators, holonomic)
    o = Settings(
        0, STABILISATIONS.index(stabilisation), 0, float(alpha), float(beta),
        float(sigma) if formulation == "unified" else 0.0, float(tolerance), max(1e-8, float(tolerance)),
        float(rank_tolerance), bool(energy), bool(len(forces) or robot.functions), inputs.kind,
        inputs.address, float(largest_speed))
    o = o._replace(formulation=address_of(FORMULATIONS[formulation], ints, floats, o, x, t0, 0, q, v, v, v),
                   stabiliser=address_of(on_constraints, ints, floats, o, x, t0, t0, q, v))
    if start == "check" and (stabilisation == "baumgarte" or formulation == "unified"):
        start = "as given"
    _prepare_start(robot, ints, floats, o, x, q, v, start)
    if method in SOLVERS:
        if len(inputs.table) > 1 and not on_grid:
            raise InputError("inputs over the time grid need the grid: give dt")
        integrator = Adaptive(SOLVERS[method], grid, on_grid, {"rtol": rtol, "atol": atol, "max_step": max_step})
    else:
        integrator = FixedStep(advance, RKMK if stabilisation == "minimal" else EXPLICIT[method], grid)
    run = Run(robot, ints, floats, o, x, integrator, (t0, q, v), t_final, _events(robot, events),
              _unilateral(robot, unilateral, inputs), inputs, Recorder(int(record)),
              Progress(progress, t0, t_final),
              dict(method=method, formulation=formulation, stabilisation=stabilisation))
    return run.go()


EXPLICIT = {"rk4": RK4, "rkmk": RKMK}
METHODS = (*EXPLICIT, *SOLVERS)


def _number(name, x):
    try:
        x = float(x)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, got {x!r}") from None
    if not np.isfinite(x):
        raise InputError(f"{name} must be finite, got {x}")
    return x


def _events(robot, events):
    events = (events,) if hasattr(events, "guard") else tuple(events)
    for event in events:
        for name in (*event.on, *event.off):
            robot.constraint_index(name)
    return events


def _unilateral(robot, unilateral, inputs):
    """Row and sign by constraint name."""
    if isinstance(unilateral, str):
        unilateral = (unilateral,)
    signs = unilateral if isinstance(unilateral, dict) else dict.fromkeys(unilateral, 1)
    for name, sign in signs.items():
        robot.constraint_index(name)
        if sign not in (-1, 1):
            raise InputError(f"unilateral constraint {name!r}: the sign must be 1 or -1, got {sign!r}")
    return {name: (inputs.first_row[name], float(sign)) for name, sign in signs.items()}


def _prepare_start(robot, ints, floats, o, x, q, v, start):
    """Check the start, or move it to the manifold in place."""
    if start not in ("check", "project", "as given"):
        raise InputError(f"start must be 'check', 'project' or 'as given', got {start!r}")
    if start == "as given" or not len(x.psi):
        return
    if start == "project":
        metric(ints, floats, x, q)
        closed = close_positions(ints, floats, o, x, q)
        consistent_velocities(ints, floats, o, x, q, v)
    constraint_state(ints, floats, x, q, v)
    worst = int(np.abs(x.residual).argmax())
    size = abs(float(x.residual[worst]))
    if not size <= CONSISTENT or (start == "project" and not closed):
        name = robot.row_names[worst].rsplit(".", 1)[0]
        raise ClosureError(
            f"inconsistent start: constraint {name!r} of {robot.name!r} is open by {size:.3g} "
            f"({robot.row_names[worst]}); assemble it with close(), or let start='project' do it", size, name, q)
    worst = int(np.abs(x.psi).argmax())
    if not abs(x.psi[worst]) <= CONSISTENT * max(1.0, np.abs(v).max()):
        raise InputError(f"inconsistent start: v violates {robot.row_names[worst]} of {robot.name!r} by "
                         f"{abs(x.psi[worst]):.3g}; use complete_velocity(), or let start='project' do it")
