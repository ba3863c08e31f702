"""Checks before a run: of the state, the options and the names of constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from liedyn.machine.arguments import names, number, one_of, positive
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import ClosureError, InputError, shown
from liedyn.mechanics.constraints.undefined import require_rows
from liedyn.mechanics.contact.contact_state import contacts_of, statuses
from liedyn.mechanics.dynamics.unified import unified_velocity
from liedyn.model.calls.boundary import states
from liedyn.model.constraint_records import refresh
from liedyn.model.kinds import CONSTRAINT_KINDS, LOOP_KINDS
from liedyn.model.packed import (
    LOOP_ACTIVE, LOOP_FRICTION, LOOP_NROWS, LOOP_RESTITUTION, LOOP_SIDE, OFF, OPEN, PackedModel,
    constraints_of,
)
from liedyn.model.size import velocity_sizes
from liedyn.motion.simulation.events import Event
from liedyn.motion.simulation.gaps import row_states
from liedyn.motion.simulation.integrators import METHODS
from liedyn.motion.simulation.integrators.method import Method
from liedyn.motion.simulation.manifold_projection import (
    CONSISTENT, constraint_state, project_positions, project_velocities,
)
from liedyn.motion.simulation.workspace import FORMULATIONS, MINIMAL, STABILISATIONS, Settings

if TYPE_CHECKING:
    from liedyn.mechanics.contact.contact_state import Contacts
    from liedyn.motion.simulation.inputs import Inputs
    from liedyn.motion.simulation.workspace import Work

MOST_ROWS = 4
"""Largest number of rows of a one-sided constraint."""


@dataclass(frozen=True)
class Baumgarte:
    """Baumgarte's feedback ``g'' + 2 alpha g' + beta^2 g = 0`` as the `stabilisation` of `simulate`.

    Parameters
    ----------
    alpha, beta : float
        Constants of the feedback [1/s].

    Raises
    ------
    InputError
        One of them is not a finite number.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> tr = ld.simulate(robot, robot.home, [0.0] * 4, 0.1, stabilisation=ld.Baumgarte(alpha=20.0, beta=20.0))
    >>> bool(tr.position_residual.max() < 1e-6)
    True
    """

    alpha: float = 10.0
    beta: float = 10.0

    def __post_init__(self) -> None:
        for key in ("alpha", "beta"):
            object.__setattr__(self, key, number(key, getattr(self, key)))


NO_FEEDBACK = Baumgarte(0.0, 0.0)


def one_state(owner, robot, q0, v0):
    """Copies of the initial state."""
    _, q, v = states(robot, q0=q0, v0=v0)
    if len(q) != 1:
        raise InputError(f"{owner} takes one state, got {len(q)}")
    return q[0].copy(), v[0].copy()


class Scheme(NamedTuple):
    """How the equations are integrated: checked options of `simulate`."""

    method: Method
    formulation: str
    stabilisation: str
    pull: Baumgarte  # its constants, zero for other stabilisations
    sigma: float  # rate of decay of "unified"


class ReadyRun(NamedTuple):
    """What a run needs besides its start: its own model, `Settings`, `Work`, one-sided constraints, and inputs."""

    model: PackedModel
    settings: Settings
    work: Work
    contacts: Contacts
    inputs: Inputs


class Bounds(NamedTuple):
    """Numbers with which a run is judged; `simulate` explains them."""

    tolerance: float = 1e-8
    rank_tolerance: float = 1e-8
    largest_speed: float = 1e9


USUAL = Bounds()


def scheme_of(method, formulation, stabilisation, sigma=0.0):
    """The `Scheme` of the user's options; `sigma` counts for formulation "unified" only."""
    if not isinstance(method, Method):
        method = METHODS[one_of("method", method, METHODS)]
    pull = NO_FEEDBACK
    if isinstance(stabilisation, Baumgarte) or isinstance(stabilisation, str) and stabilisation == "baumgarte":
        stabilisation, pull = "baumgarte", stabilisation if isinstance(stabilisation, Baumgarte) else Baumgarte()
    one_of("formulation", formulation, FORMULATIONS)
    if formulation == "momenta":
        if not method.takes_momenta:
            raise InputError(f"formulation 'momenta' is integrated by Runge-Kutta methods with fixed steps, 'rk4', "
                             f"'rkmk' or 'gauss4', not by {method.name!r}")
        if stabilisation == "baumgarte":
            raise InputError("formulation 'momenta' has no accelerations to feed back to: no stabilisation 'baumgarte'")
    return Scheme(method, formulation, one_of("stabilisation", stabilisation, STABILISATIONS), pull,
                  number("sigma", sigma) if formulation == "unified" else 0.0)


def settings_of(robot, scheme, contacts, inputs, pushed, energy, bounds=USUAL):
    """Settings from checked options; `pushed`: there are external wrenches."""
    method, formulation, stabilisation, pull, sigma = scheme
    rubs = len(contacts.index) > 0 and bool(((contacts.count > 1) & (contacts.friction > 0.0)).any())
    if rubs and formulation == "momenta":
        raise InputError(f"friction needs the normal forces, which formulation 'momenta' does not compute: constraint "
                         f"{contacts.names[int(np.argmax((contacts.count > 1) & (contacts.friction > 0.0)))]!r}")
    return Settings(
        tableau=method.tableau, on_group=method.on_group or stabilisation == STABILISATIONS[MINIMAL], rho=method.rho,
        formulation=FORMULATIONS.index(formulation), stabilisation=STABILISATIONS.index(stabilisation),
        rate=sigma + 2.0 * pull.alpha, stiffness=pull.beta ** 2, tolerance=positive("tolerance", bounds.tolerance),
        rank_tolerance=positive("rank_tolerance", bounds.rank_tolerance), energy=energy,
        all_power=bool(pushed or robot.functions or rubs), friction=rubs, input_kind=inputs.kind,
        direct=inputs.direct, input_address=inputs.address, feedback_address=inputs.derivative,
        largest=positive("largest_speed", bounds.largest_speed) * velocity_sizes(robot))


def private_model(robot, t):
    """The run's own copy of the packed model, at time t."""
    model = robot.packed._replace(ints=robot.packed.ints.copy(), floats=robot.packed.floats.copy())
    refresh(model, t)
    raise_errors(robot.functions)
    return model


def require_sense(method, stabilisation, energy):
    """Raises InputError for options that contradict each other."""
    if energy and stabilisation != "projection":
        raise InputError(f"energy=True is part of the projection, not of stabilisation={stabilisation!r}")
    if stabilisation == "baumgarte" and method.keeps_constraints:
        raise InputError(f"method {method.name!r} keeps the constraints itself: no stabilisation 'baumgarte'")


def known_events(robot, events):
    """Events as a tuple, after a check that their constraints exist."""
    if not isinstance(events, Event | tuple | list):
        raise InputError(f"events must be an Event or several, got {shown(events)}")
    events = (events,) if isinstance(events, Event) else tuple(events)
    for event in events:
        if not isinstance(event, Event):
            raise InputError(f"events must be of class Event, got {shown(event)}")
        for name in (*event.on, *event.off):
            robot.constraint_index(name)
    return events


def one_sided(robot, model, unilateral, events):
    """All one-sided constraints of a run: those of the robot, and those in `unilateral`, which are changed in `ints`.

    If only an event gives the restitution of such a constraint, that is used. Loops and other constraints whose first
    row is no gap can open, but do not close again by themselves (`have_gaps`).
    """
    signs = unilateral if isinstance(unilateral, dict) else dict.fromkeys(names("unilateral", unilateral), 1)
    for name, sign in signs.items():
        every, (records, numbers) = robot.model.loops + robot.model.constraints, constraints_of(model)
        k = robot.constraint_index(name)
        if number(f"sign of unilateral constraint {name!r}", sign) not in (-1, 1):
            raise InputError(f"unilateral constraint {name!r}: the sign must be 1 or -1, got {shown(sign)}")
        if not (every[k].kind in LOOP_KINDS or every[k].holonomic):
            raise InputError(f"unilateral constraint {name!r}: {every[k].kind} has no residual that could stay on one "
                             "side of zero")
        if records[k, LOOP_NROWS] > MOST_ROWS:
            raise InputError(f"unilateral constraint {name!r}: {every[k].kind} has {records[k, LOOP_NROWS]} rows; one "
                             f"that can let go has one that pushes and up to {MOST_ROWS - 1} across it")
        if records[k, LOOP_SIDE]:
            continue  # declared as one-sided in the model, with its own side
        records[k, LOOP_SIDE] = sign
        if records[k, LOOP_ACTIVE] == OFF and have_gaps(robot)[k]:
            records[k, LOOP_ACTIVE] = OPEN
        numbers[k, LOOP_FRICTION] = np.inf  # the other rows hold without limit while it is closed
        numbers[k, LOOP_RESTITUTION] = max((event.restitution for event in events if name in event.on), default=0.0)
    return contacts_of(robot, model)


def have_gaps(robot):
    """For every constraint: True if the residual of its first row is a gap, whose zero means contact."""
    return np.array([each.kind == "custom" or each.kind in CONSTRAINT_KINDS and CONSTRAINT_KINDS[each.kind].one_sided
                     for each in robot.model.loops + robot.model.constraints], dtype=bool)


def require_contacts_can_be_kept(contacts, method, stabilisation):
    """Raises InputError if the method or the stabilisation does not support one-sided constraints."""
    if not len(contacts.index):
        return
    if stabilisation not in ("projection", "minimal"):
        raise InputError(f"stabilisation {stabilisation!r} lets gaps drift below zero: with one-sided constraints take "
                         "'projection' or 'minimal'")
    rubs = (contacts.count > 1) & (contacts.friction > 0.0) & np.isfinite(contacts.friction)
    if rubs.any() and method.keeps_constraints:
        raise InputError(f"method {method.name!r} knows no sliding friction: take an explicit or an adaptive one, "
                         "or 'moreau'")


def prepare_decay(robot, sigma, t, q, v, start):
    """Requires a start with decaying violations, A v = b - sigma C, or adapts v (Yun and Sarkar 1998, eq. 36).

    Raises InputError if the velocity does not fulfil that equation.
    """
    if start == "as given" or not len(robot.row_names):
        return
    fitted = unified_velocity(robot.at(t), q, v, sigma)
    if start == "project":
        v[:] = fitted
    elif np.abs(fitted - v).max() > CONSISTENT * max(1.0, np.abs(v).max()):
        raise InputError(f"inconsistent start: v0 does not satisfy A v = b - sigma C of {robot.name!r}; the nearest "
                         "velocity that does is unified_velocity(), and start='project' takes it")


def consistent_starts(robot, model, work, t, q, v):
    """For every state (count, ...) of a batch at time t: True if it satisfies the constraints, as `prepare_start` asks.

    Residuals and violations that are not finite, and states beyond the bounds, are left to `prepare_start`, which names
    the cause.
    """
    own = PackedModel(model.ints.copy(), model.floats.copy())
    status = np.repeat(statuses(model)[None], len(q), axis=0)
    residual, psi = row_states(own, status, np.full(len(q), t), q, v)
    speed = np.maximum(1.0, (np.abs(v) / velocity_sizes(robot)).max(axis=1, initial=0.0))
    return ((np.abs(residual) <= CONSISTENT * work.row_sizes).all(axis=1)
            & (np.abs(psi) <= CONSISTENT * speed[:, None] * work.row_sizes).all(axis=1))


def prepare_start(robot, model, settings, work, q, v, start):
    """Checks the initial state, or moves it to the manifold in place.

    Raises ClosureError if a constraint is open, or cannot be closed from here. Raises InputError if the velocity
    violates the constraints. Raises SingularConfigurationError if a constraint has no direction at the start.
    """
    if start == "as given" or not len(work.psi):
        return
    closed = True
    if constraint_state(model, work, q, v) and start == "check":
        raise_errors(robot.functions)
        return
    require_rows(robot, (), work.G[None], work.psi[None])
    if start == "project":
        closed = project_positions(model, settings, work, q)
        project_velocities(model, settings, work, q, v)
        constraint_state(model, work, q, v)
    raise_errors(robot.functions)
    worst = int((np.abs(work.residual) / work.row_sizes).argmax())
    size = abs(float(work.residual[worst]))
    if not (closed and size <= CONSISTENT * work.row_sizes[worst]):
        name = robot.row_names[worst].rsplit(".", 1)[0]
        remedy = ("it cannot be closed from here" if start == "project" else
                  "assemble it with close(), or let start='project' do it")
        raise ClosureError(f"inconsistent start: constraint {name!r} of {robot.name!r} is open by {size:.3g} "
                           f"({robot.row_names[worst]}); {remedy}", size, name, q)
    relative = np.abs(work.psi) / work.row_sizes
    worst = int(relative.argmax())
    if not relative[worst] <= CONSISTENT * max(1.0, (np.abs(v) / velocity_sizes(robot)).max()):
        raise InputError(f"inconsistent start: v0 violates {robot.row_names[worst]} of {robot.name!r} by "
                         f"{abs(work.psi[worst]):.3g}; use complete_velocity(), or let start='project' do it")
