"""Simulation of any mechanism: the public function."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.machine.arguments import flag, number, one_of, whole
from liedyn.machine.by_name import by_name
from liedyn.machine.errors import InputError
from liedyn.machine.progress import Progress
from liedyn.model.calls.boundary import states, wrenches
from liedyn.model.packed import LOOP_TARGET, constraints_of
from liedyn.motion.simulation.events import edges, leave_surfaces
from liedyn.motion.simulation.grid import Grid
from liedyn.motion.simulation.inputs import Inputs
from liedyn.motion.simulation.integrators import METHODS, described
from liedyn.motion.simulation.preparation import (
    Bounds, ReadyRun, known_events, one_sided, prepare_decay, prepare_start, private_model,
    require_contacts_can_be_kept, require_sense, scheme_of, settings_of,
)
from liedyn.motion.simulation.recorder import Recorder
from liedyn.motion.simulation.run import Run
from liedyn.motion.simulation.workspace import BOUNDED_ENERGY, FREE_ENERGY, WANTED_ENERGY, make_work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    from liedyn.model.robot import Robot
    from liedyn.motion.simulation.events import Event
    from liedyn.motion.simulation.integrators.adaptive import Adaptive
    from liedyn.motion.simulation.integrators.generalized_alpha import GeneralizedAlpha
    from liedyn.motion.simulation.preparation import Baumgarte
    from liedyn.motion.simulation.sampled import Sampled

    from liedyn.motion.simulation.trajectory import Trajectory
    from liedyn.typing import ArrayLike, Wrenches

STARTS = ("check", "project", "as given")
ACCUMULATIONS = ("moreau", "error")


@described
def simulate(robot: Robot, q0: ArrayLike, v0: ArrayLike, t_final: float,
             tau: ArrayLike | Callable[..., Any] | Sampled | tuple[Any, ...] | None = None,
             u: ArrayLike | Callable[..., Any] | Sampled | tuple[Any, ...] | None = None,
             dt: float | None = None, method: str | GeneralizedAlpha | Adaptive = "rk4",
             formulation: Literal["nullspace", "svd", "multiplier", "unified", "momenta"] = "nullspace",
             stabilisation: Literal["projection", "none", "baumgarte", "minimal"] | Baumgarte = "projection",
             sigma: float = 10.0, energy: bool = False, events: Event | Sequence[Event] = (),
             unilateral: Sequence[str] | dict[str, Any] = (), accumulation: Literal["moreau", "error"] = "moreau",
             f_ext: Wrenches | None = None, start: Literal["check", "project", "as given"] = "check", t0: float = 0.0,
             record: int = 1, progress: bool | None = None, tolerance: float = 1e-8, rank_tolerance: float = 1e-8,
             largest_speed: float = 1e9) -> Trajectory | Any:
    """Simulate the motion of a mechanism in time, from one state or many, with its constraints satisfied.

    Parameters
    ----------
    robot : Robot
        The run starts with its switches and targets; the robot itself is not changed.
    q0 : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)]. Leading axes make a batch of runs, which share the cores:
        in SIMD lanes if they are plain (revolute, prismatic and cut joints, fixed steps, inputs that are arrays, no
        events), else one after the other, in threads unless Python functions are called.
    v0 : array_like, shape (..., nv)
        Velocity [rad/s, m/s], body-fixed for spherical and free joints. Leading axes are broadcast against those of q0.
    t_final : float
        End time [s].
    tau : array_like or callable, optional
        Generalised forces [N m, N]: constant, shape (nv,); over the time grid, shape (steps, nv) or (steps + 1, nv),
        row k applied from ``t0 + k dt`` on; or a function ``tau(t, q, v)``, which is fast if it is compiled (``@njit``)
        and is called by its address: a new function costs its own compilation only. It must depend on its
        arguments alone: steps are repeated where events are located. A pair ``(f, df)`` adds its derivative,
        ``df(t, q, v) -> (by_q, by_v)``, each of shape (nv, nv), by a displacement in the tangent space at q and by v
        (`check_feedback` checks it). Implicit methods use it: with stiff feedback they need it. `Sampled` turns a
        function into a controller that samples, holds, is delayed and saturates. In a batch also one for each run,
        (..., nv) or (..., steps, nv).
    u : array_like or callable, optional
        Instead of `tau`: forces of the robot's actuators, in the same forms; derivatives of shape (nu, nv).
    dt : float, optional
        Step [s], by default 1e-3; the interval between recorded states for the adaptive methods, by default their own
        steps.
    method : str, GeneralizedAlpha or Adaptive
        METHODS
    formulation : {"nullspace", "svd", "multiplier", "unified", "momenta"}
        How accelerations are computed, as in `forward_dynamics`. ``"svd"`` passes singular configurations.
        With ``"momenta"`` canonical momenta are integrated in place of velocities, which are computed from them at
        every stage and satisfy the constraints to rounding; momenta of cyclic coordinates, and of floating robots, are
        conserved to rounding, too. Only for ``"rk4"``, ``"rkmk"`` (both on the group then) and ``"gauss4"``, without
        friction and Baumgarte's feedback; ``"gauss4"`` ends in an error at singular configurations, which others pass.
    stabilisation : {"projection", "none", "baumgarte", "minimal"} or Baumgarte
        Projection on closed positions and consistent velocities after each step; nothing; Baumgarte's feedback; or
        minimal coordinates, where the constraints give the others at every stage, chosen anew when necessary.
    sigma : float
        Decay ``A v - b + sigma C = 0`` of the unified formulation [1/s].
    energy : bool
        True if projection restores the energy too. Its value follows from the work of inputs, dampers, external
        wrenches and moving targets, and from the losses at events.
    events : Event or sequence of Event
        Events that are watched during the run.
    unilateral : sequence of str or dict
        Constraints that are one-sided in this run, besides those declared as such (`Builder.constraint`): the
        residual of their first row stays >= 0, or <= 0 for the value -1 of a dict. They close where it becomes zero,
        and open where their force would have to change its sign. Loops and other constraints whose first residual is
        no gap can open, and stay off until an event switches them on.
    accumulation : {"moreau", "error"}
        What to do where impacts accumulate (a ball that bounces to rest, a table that rattles): continue by
        time-stepping until all contacts have settled, rolling and sliding ones too, and then as before; or stop with
        an `AccumulationError`. The same applies where contacts stick and slip without end, or friction makes
        accelerations contradictory.
    f_ext : dict or array_like, optional
        Constant wrenches (moment, force) [N m, N] on bodies, each in its body's own frame, as for `rnea`.
    start : {"check", "project", "as given"}
        What to do with an initial state that violates the constraints: raise an error; project it; nothing.
        Baumgarte's feedback accepts any state. The unified formulation without projection accepts any q0 with a
        velocity that lets the violation decay, and changes v0 only.
    t0 : float
        Start time [s].
    record : int
        Record every `record`-th step.
    progress : bool, optional
        A progress bar (tqdm): always, never, or by default on long runs in a terminal if it is installed.
    tolerance : float
        Largest closure error [rad; m relative to the mechanism's size, `liedyn.model.size`] that slightly
        contradictory constraints may retain. Projection itself continues to rounding.
    rank_tolerance : float
        Pivots, or singular values, of G below this fraction of the largest one count as zero.
    largest_speed : float
        Speed [rad/s; sizes of the mechanism per second] above which the motion counts as diverged.

    Returns
    -------
    Trajectory, or Trajectories for a batch
        Times, states, accelerations, forces, energies, works, residuals, condition numbers and events. Singular
        passages are among the events: peaks of the condition number above 30 times its smallest value before, at the
        rows of the run (with adaptive methods give `dt`, as their own steps may be too long to show them).

    Warns
    -----
    ConditionWarning
        The energy of a run without inputs and dissipation changes in a step, near a singular configuration or because
        `dt` is too large, by more than 100 times the median change and 1e-6 of the largest kinetic energy; or it grows
        by more than 1e-3 of the latter during the run.
    ModelWarning
        A spring on the angle of a cut joint passes half a turn from rest, where its force jumps.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a name is unknown, or v0 violates the constraints.
    ClosureError
        A loop is open at q0.
    SingularConfigurationError
        A constraint has no direction at q0 (unless ``start="as given"``, where the run stops at once).
    SimulationError
        The run stopped: divergence, a singular or unreachable configuration, inputs that are not finite, an impossible
        event, chattering, an error in a user's function. The error has the trajectory up to there. For a batch one
        warning gives the number of failed runs, and ``errors`` of the result contains their errors.

    Notes
    -----
    Spencer 2004, chapter 3; Gillespie 2003, section 4, for switching. Works are integrated along with the motion.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> tr = ld.simulate(robot, robot.home, [0.0] * 4, 0.2)
    >>> tr.t[-1].item(), bool(abs(tr.energy_drift).max() < 1e-9)
    (0.2, True)
    >>> speeds = ld.complete_velocity(robot, robot.home, {"q1": [0.0, 0.1, 0.2], "q2": 0.0})
    >>> ld.simulate(robot, robot.home, speeds, 0.2).q.shape
    (3, 201, 4)
    """
    lead, q, v = states(robot, q0=q0, v0=v0)
    grid = Grid(number("t0", t0), number("t_final", t_final), 1e-3 if dt is None else number("dt", dt))
    scheme = scheme_of(method, formulation, stabilisation, sigma)
    method, stabilisation, sigma = scheme.method, scheme.stabilisation, scheme.sigma
    one_of("start", start, STARTS)
    one_of("accumulation", accumulation, ACCUMULATIONS)
    energy, record = flag("energy", energy), whole("record", record, 1)
    require_sense(method, stabilisation, energy)
    integrator = method._integrator(grid, dt is not None)
    forces, events = wrenches(robot, f_ext, ())[0], known_events(robot, events) + edges(robot)
    labels = dict(method=method.name, formulation=formulation, stabilisation=stabilisation, _f_ext=f_ext)

    def prepared(q, v, tau, u):
        """The run's own model, settings, workspace, contacts and inputs."""
        inputs = Inputs(robot, tau, u, (grid.start, q, v), grid, method.uses_derivatives)
        if len(inputs.table) > 1 and dt is None and not method.loop:
            raise InputError("inputs over the time grid need the grid: give dt")
        if inputs.sampling is not None and not method.loop:
            raise InputError(f"Sampled controllers need fixed steps: method {method.name!r} chooses its own")
        model = private_model(robot, grid.start)
        leave_surfaces(robot, model, q)
        contacts = one_sided(robot, model, unilateral, events)
        require_contacts_can_be_kept(contacts, method, stabilisation)
        x = make_work(robot, forces, inputs, contacts, method.tableau.shape[1], formulation == "momenta")
        # the work of targets is known to the accuracy of its integral only: it gives no bound of the energy
        bounded = len(contacts.index) > 0 and not constraints_of(model)[0][:, LOOP_TARGET].any()
        settings = settings_of(
            robot, scheme, contacts, inputs, len(forces) > 0,
            WANTED_ENERGY if energy else BOUNDED_ENERGY if bounded else FREE_ENERGY,
            Bounds(tolerance, rank_tolerance, largest_speed))
        return ReadyRun(model, settings, x, contacts, inputs)

    def run(q, v, tau, u, progress):
        """One run, from one state."""
        ready = prepared(q, v, tau, u)
        model, settings, x, contacts, _ = ready
        if formulation == "unified" and stabilisation in ("none", "baumgarte"):
            prepare_decay(robot, sigma, grid.start, q, v, start)
        elif start != "check" or stabilisation != "baumgarte":
            prepare_start(robot, model, settings, x, q, v, start)
        settles = accumulation == "moreau" and len(contacts.index) > 0
        settler = METHODS["moreau"]._integrator(grid, True) if settles else None
        steps = method._integrator(grid, dt is not None) if lead else integrator
        return Run(robot, ready, (q, v), (steps, settler), events,
                   Recorder(record, labels), Progress(progress, grid.start, grid.end)).go()

    if not lead:
        return run(q[0].copy(), v[0].copy(), tau, u, progress)
    # imported by name: a single run needs no lanes and no threads
    batch = by_name("liedyn.motion.simulation.many:Batch")(robot, lead, q.copy(), v.copy(), tau, u, grid)
    wanted = by_name("liedyn.motion.simulation.many:Wanted")(start, record, labels, events)
    return by_name("liedyn.motion.simulation.many:run_many")(batch, prepared, run, method, wanted, progress)
