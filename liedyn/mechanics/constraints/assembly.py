"""Assembly: satisfy the constraints of a mechanism, and complete velocities, starting from a guess near the wanted
branch.

The algorithm is in `liedyn.mechanics.constraints.closing`; `singular_guess` continues where Newton's method stops at a
singular configuration.

A failure names a smallest set of constraints that contradict each other: constraints are left out one after another; if
the others still cannot be satisfied without it, it is omitted for good. The remaining ones cannot be satisfied
together, but can without any one of them (a deletion filter: Chinneck and Dravnieks 1991). The least squared error of
these alone measures the contradiction.
"""
# mypy: ignore-errors

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import floats, names, non_negative, positive, require_robot
from liedyn.machine.compiled.user_functions import forget_errors, raise_errors
from liedyn.machine.errors import (
    ClosureError, InputError, SingularConfigurationError, listed, of_the_batch, shown, suggestion,
)
from liedyn.machine.linalg.dense import independent_rows
from liedyn.machine.linalg.ranks import Ranking
from liedyn.mechanics.constraints.closing import CLOSED, JUMP, ROUNDING, Goals, Held, Target, close_states
from liedyn.mechanics.constraints.closing_steps import clusters_of_rows
from liedyn.mechanics.constraints.cluster_weights import weighed
from liedyn.mechanics.constraints.independent import by_name
from liedyn.mechanics.constraints.loops import (
    constraint_jacobian, velocity_error, virtual_coordinates, virtual_jacobian,
)
from liedyn.mechanics.constraints.singular_guess import close_singular, closed_at
from liedyn.model.calls.boundary import as_floats, require_usable, rows_of, states
from liedyn.model.packed import LINK_IQ, LINK_IV, LINK_NQ, LINK_NV, links_of

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike

REPORTED = 1e-6
"""Errors below this fraction of the largest one are inaccuracy of the search, and are not reported."""


def _held_values(name, value, size):
    """Values of a coordinate, shape (...) for `size` None, or of a joint, shape (..., size)."""
    value = floats(f"the held value of {name}", value)
    value = value[..., None] if size is None else as_floats(name, value, size)
    require_usable(name, value)
    return value


def _targets(robot, held):
    """The held coordinates as `Held`, and their values (..., size) by index in q or number of virtual coordinate."""
    dofs, coordinates = np.zeros(robot.nv, np.int64), np.zeros(robot.nq, np.int64)
    on_tree, virtual = [], {}
    for name, value in held.items():
        if name in robot.velocity_names and name in robot.coordinate_names:
            k = robot.coordinate_index(name)
            dofs[robot.velocity_index(name)] = coordinates[k] = 1
            on_tree.append((slice(k, k + 1), _held_values(name, value, None)))
        elif name in robot.joint_names:
            places = [k for k, each in enumerate(robot.coordinate_names) if each.startswith(f"{name}.")]
            dofs[[k for k, each in enumerate(robot.velocity_names) if each.startswith(f"{name}.")]] = 1
            coordinates[places] = 1
            on_tree.append((slice(places[0], places[-1] + 1), _held_values(name, value, len(places))))
        elif name in robot.virtual_names:
            if name.endswith((".rx", ".ry", ".rz")):
                raise InputError(
                    f"{name!r} is a component of a rotation; a ball cut cannot be held by one of them")
            virtual[robot.virtual_index(name)] = _held_values(name, value, None)
        elif name in robot.velocity_names:
            raise InputError(f"{name!r} is a component of a rotation, which is held whole, by the name of its joint")
        else:
            names = robot.coordinate_names + robot.joint_names + robot.virtual_names
            raise InputError(f"cannot hold {shown(name)}, {suggestion(shown(name), names)}")
    angles = np.array([_is_angle(robot, k) for k in virtual], dtype=np.int64)
    return Held(dofs, coordinates, np.array(list(virtual), dtype=np.int64), angles), on_tree, list(virtual.values())


def _is_angle(robot, index):
    name = robot.virtual_names[index]
    if "." in name:
        return name.rsplit(".", 1)[1].startswith("angle")
    return robot.model.loops[robot.loop_index(name)].kind == "revolute"


def close(robot: Robot, q: ArrayLike, held: dict[str, Any] | None = None, tolerance: float = 1e-12,
          **coordinates: float | ArrayLike) -> Array:
    """Assemble the loops, and satisfy all other constraints on q, near a guess and on its branch.

    Parameters
    ----------
    robot : Robot
        Constraints that are switched off are ignored; moving ones have the targets of ``robot.at(t)``.
    q : array_like, shape (..., nq)
        Guess [rad, m; quaternions (x, y, z, w)]. It need not be closed, and may be singular.
    held : dict, optional
        Values of coordinates to be held [rad, m]: of the tree or virtual ones of a cut, by name, shape (...); of a
        joint with several coordinates by the joint's name, shape (..., size). The position of a free joint, such as
        ``base.x``, is that in q, along the axes of the parent's frame; a rotation can be held only as a whole, by its
        joint's name. Arrays are batches: their leading axes and those of q are broadcast against each other.
    tolerance : float
        Largest closure error accepted [rad, m], 1e-14 at least.
    **coordinates : float or array_like
        Further entries of `held`, for names that are identifiers: ``close(robot, q, boom=0.3)`` or
        ``close(robot, q, boom=np.linspace(0.0, 0.3, 100))``.

    Returns
    -------
    q : ndarray, shape (..., nq)
        Closed configuration; the loops' error is usually at rounding, well below `tolerance`.

    Raises
    ------
    ClosureError
        The constraints cannot be satisfied, or a target cannot be reached. The message says which constraints
        contradict each other, with the error, the constraint with the largest error, and the state of the batch; the
        attributes hold the configuration where the search stopped.
    InputError
        An unknown name, a shape that does not fit, or an entry that is not finite.

    Notes
    -----
    Newton with step control on the configuration manifold (Spencer 2004, 3.1.3, projection on position invariants), and
    continuation in the held coordinates; states are closed one by one, each from its own guess. Where Newton stops at a
    singular configuration, the sum of squared errors is minimised along its negative curvature (More and Sorensen
    1983), always in the same direction: a linkage whose guess is stretched on a line buckles.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> q = ld.close(loader, loader.home, boom=0.3, bucket=-0.2)
    >>> bool(abs(ld.closure_error(loader, q)).max() < 1e-12), float(q[loader.coordinate_index("boom")])
    (True, 0.3)
    """
    require_robot(robot)
    if not isinstance(held, dict | None):
        raise InputError(f"held must be a dict of values by name of a coordinate, got {shown(held)}")
    held, tolerance = {**(held or {}), **coordinates}, positive("tolerance", tolerance)
    what, on_tree, virtual = _targets(robot, held)
    lead, q, target, values = _broadcast(robot, q, on_tree, virtual)
    if not tolerance >= ROUNDING:
        raise InputError(f"tolerance must be at least {ROUNDING:g}, to which states can be closed, got {tolerance:g}")
    return _closed(robot, lead, q, Goals(what, target, values), held, tolerance).reshape(lead + (robot.nq,))


def close_around(robot, q, fixed, tolerance=1e-12):
    """`close` for one state; dofs marked in `fixed` (nv) do not move, in the sense of
    `liedyn.mechanics.tree.places`."""
    coordinates, none = np.zeros(robot.nq, np.int64), np.empty(0, np.int64)
    for iq, iv, nq, nv in links_of(robot.packed)[0][:, [LINK_IQ, LINK_IV, LINK_NQ, LINK_NV]]:
        coordinates[iq:iq + nq] = [*[fixed[iv] != 0] * (nq - nv), *(fixed[iv:iv + nv] != 0)]
    what = Held((fixed != 0).astype(np.int64), coordinates, none, none)
    held = [robot.coordinate_names[k] for k in np.flatnonzero(coordinates)]
    return _closed(robot, (), q[None], Goals(what, q[None], np.empty((1, 0))), held, tolerance)[0]


def _closed(robot, lead, q, goals, held, tolerance):
    """Rows q closed, each with its held coordinates at the targets in `goals`; `held` has their names for messages."""
    what, target, values = goals
    closed, status = np.empty_like(q), np.empty(len(q), np.int64)
    close_states(robot.packed, q, goals, tolerance, (closed, status))
    if (status == CLOSED).all():
        forget_errors(robot.functions)  # failures on the way to the solution do not matter
    for b in np.flatnonzero(status != CLOSED):
        raise_errors(robot.functions)
        with of_the_batch(lead, b):
            goal = Target(what, target[b], values[b])
            closed[b], stopped = close_singular(robot, q[b], goal, tolerance, closed[b], status[b])
            if stopped != CLOSED:
                raise_contradiction(robot, closed[b], goal, held, stopped, tolerance)
    return closed


def _broadcast(robot, q, on_tree, virtual):
    """The leading axes, rows of guesses, rows of tree targets, and targets of virtual coordinates."""
    if not (on_tree or virtual):
        lead, q = states(robot, q=q)
        return lead, q, q, np.empty((len(q), 0))  # without targets
    q = as_floats("q", q, robot.nq)
    leads = [x.shape[:-1] for x in (q, *(value for _, value in on_tree), *virtual)]
    try:
        lead = np.broadcast_shapes(*leads)
    except ValueError:
        raise InputError(f"leading axes of q and of held values do not broadcast: {', '.join(map(str, leads))}"
                         ) from None
    target = np.broadcast_to(robot.neutral, (*lead, robot.nq)).copy()
    for place, value in on_tree:
        target[..., place] = value
    lead, q, target = states(robot, q=q, q1=target)
    values = np.empty((*lead, len(virtual)))
    for k, value in enumerate(virtual):
        values[..., k:k + 1] = value
    return lead, q, target, values.reshape(math.prod(lead), len(virtual))


def complete_velocity(robot: Robot, q: ArrayLike, velocities: ArrayLike | dict[str, Any],
                      tolerance: float = 1e-8) -> Array:
    """The velocity that satisfies the constraints, from the velocities of independent coordinates.

    Parameters
    ----------
    robot : Robot
        At the time of ``robot.at(t)``, if constraints move.
    q : array_like, shape (..., nq)
        Closed configuration [rad, m; quaternions (x, y, z, w)].
    velocities : dict or array_like, shape (..., p)
        Velocity of each independent coordinate by name, of the tree or virtual [rad/s, m/s], shape (...); of a joint
        with several coordinates by the joint's name, shape (..., size). Or an array: the independent velocities that
        the robot declares, of a robot without constraints all. Leading axes are broadcast against those of q.
    tolerance : float
        Singular values of [G; R], with weighted rows and columns, below this fraction of the largest one count as zero.

    Returns
    -------
    v : ndarray, shape (..., nv)
        Velocity [rad/s, m/s] with ``G v = b``.

    Raises
    ------
    SingularConfigurationError
        The given velocities do not determine the motion, or contradict each other; a constraint has no direction here.
    InputError
        An unknown name, a shape that does not fit, or an entry that is not finite.

    Notes
    -----
    v = K w, Spencer 2004, eq. 2.42a.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> v = ld.complete_velocity(loader, loader.home, {"boom": 0.4, "bucket": -0.3})
    >>> bool(abs(ld.constraint_jacobian(loader, loader.home) @ v).max() < 1e-12)
    True
    """
    require_robot(robot)
    if not isinstance(velocities, dict):
        velocities = _by_name(robot, velocities)
    chosen, tolerance = by_name(robot, names("velocities", velocities)), non_negative("tolerance", tolerance)
    lead, q, w = _rates(robot, q, velocities)
    G, drift = constraint_jacobian(robot, q), velocity_error(robot, q, np.zeros((len(q), robot.nv)))
    Z = np.concatenate([G, chosen.matrix(virtual_jacobian(robot, q))], axis=1)
    known = np.concatenate([-drift, w], axis=1)
    v = np.empty((len(q), robot.nv))
    for b in range(len(q)):
        with of_the_batch(lead, b):
            v[b] = _determined(robot, chosen, Z[b], known[b], tolerance)
    return v.reshape(*lead, robot.nv)


def _by_name(robot, velocities):
    """The robot's declared independent velocities by name, from an array with one in each column."""
    known = by_name(robot, robot.independent).names if robot.independent else () if robot.row_names else (
        robot.velocity_names)
    if not known:
        raise InputError(f"velocities must be a dict by name of a coordinate: {robot.name!r} declares no independent "
                         "coordinates, in whose order an array could be")
    return dict(zip(known, np.moveaxis(as_floats("velocities", velocities, len(known)), -1, 0)))


def _rates(robot, q, velocities):
    """The common leading axes of q and the velocities, and rows of both."""
    parts = []
    for name, value in velocities.items():
        value = floats(f"velocity of {shown(name)}", value)
        size = len(by_name(robot, name).names)
        parts.append(value[..., None] if size == 1 else as_floats(f"velocity of {shown(name)}", value, size))
        require_usable(f"velocity of {shown(name)}", parts[-1])
    q = as_floats("q", q, robot.nq)
    leads = [x.shape[:-1] for x in (q, *parts)]
    try:
        lead = np.broadcast_shapes(*leads)
    except ValueError:
        raise InputError(f"leading axes of q and of velocities do not broadcast: {', '.join(map(str, leads))}"
                         ) from None
    w = np.concatenate([np.broadcast_to(x, lead + x.shape[-1:]) for x in parts] or [np.empty((*lead, 0))], axis=-1)
    q = rows_of("q", q, lead, robot.nq)
    return lead, q, w.reshape(len(q), w.shape[-1])


def _missing(robot, Z, rank):
    """Names of tree coordinates whose velocities and the weighted rows Z of this rank determine the motion."""
    free = np.linalg.svd(Z)[2][rank:].T  # one motion in each column
    by = Ranking(1e-9, np.ones(robot.nv), np.ones(free.shape[1]))
    _, order, _ = independent_rows(np.ascontiguousarray(free), by)
    return [robot.velocity_names[k] for k in order[:robot.nv - rank]]


def _determined(robot, chosen, Z, known, tolerance):
    """The unique v with Z v = known; raises if there is none, or more than one."""
    Z, of_rows, of_columns = weighed(robot, Z)
    known = of_rows * known
    v, _, rank, singular_values = np.linalg.lstsq(Z, known, rcond=tolerance)
    if rank < robot.nv:
        given = f"velocities of {', '.join(chosen.names)} do" if chosen.names else "no velocities are given, which does"
        raise SingularConfigurationError(
            f"{given} not determine the motion of {robot.name!r}: [G; R] has rank {rank} of {robot.nv}; add "
            f"{listed(_missing(robot, Z, rank))}, or others in their place", singular_values)
    # for consistent equations the residual is rounding times the condition of [G; R], for contradictory ones a part of
    # w
    if np.abs(Z @ v - known).max(initial=0.0) > 1e-9 * max(1.0, np.abs(known).max(initial=0.0)):
        raise SingularConfigurationError(
            f"velocities of {', '.join(chosen.names)} contradict the constraints of {robot.name!r}", singular_values)
    return of_columns * v


# ---- why constraints cannot be satisfied


def raise_contradiction(robot, q, target, held, outcome, tolerance):
    """Raise the `ClosureError` for a state that could not be closed; the search stopped at q."""
    said = f" with {_values(robot, held, target.q, target.held.virtual, target.values)}" if held else ""
    said += f" at t = {robot.t}" if robot.functions else ""
    least = closed_at(robot, q, target, tolerance)
    if least[2] or outcome == JUMP:
        here = _values(robot, held, q, target.held.virtual, virtual_coordinates(robot, q)[target.held.virtual])
        where = f"at {here}, where the other" if held else "where"
        raise ClosureError(
            f"no path leads from the guess to an assembly of {robot.name!r}{said}: it ends {where} coordinates would "
            "have to jump; start from a guess on the wanted branch", 0.0, "", q)
    # forces do not matter here, and would prevent their cut joints from being removed
    alone = replace(robot, elements=None)
    alone = alone.switched(dict.fromkeys(_apart(robot, target, least[1], tolerance), False))
    for name in alone.active:
        without = alone.switched({name: False})
        found = closed_at(without, least[0], target, tolerance)
        if not found[2]:
            alone, least = without, found
    near, e, _ = least
    sizes = {name: _sizes(alone, name, e) for name in alone.active}
    size, worst = max(((x, name) for name, (x, _) in sizes.items()), default=(0.0, ""))
    parts = [f"{_named(robot, name)} is left open by {text}" for name, (x, text) in sizes.items()
             if not x <= REPORTED * size]
    for k, x in zip(target.held.virtual, np.abs(e[len(robot.row_names):])):
        if x > tolerance:
            parts.append(f"{robot.virtual_names[k]!r} stays {x:.3g} away from its value")
            size = max(size, float(x))
    text = ", ".join(parts)
    if len(sizes) > 1:
        *first, last = [_named(robot, name) for name in sizes]
        text = f"{', '.join(first)} and {last} contradict each other, at best {text}"
    raise ClosureError(f"the constraints of {robot.name!r} cannot be satisfied near this guess{said}: {text}",
                       float(size), worst, near)


def _apart(robot, target, e, tolerance):
    """Active constraints without coordinates of those left open by e, or of a held coordinate away from its value."""
    of_rows = clusters_of_rows(robot.packed, target.held.virtual)
    still_open = of_rows[~(np.abs(e) <= tolerance)]
    owners = np.array(robot.row_owners)
    return [name for name in robot.active if not np.isin(of_rows[:len(owners)][owners == name], still_open).any()]


def _named(robot, name):
    return f"{'loop' if name in robot.loop_names else 'constraint'} {name!r}"


def _sizes(robot, name, e):
    """The largest error of a constraint's rows, and a text with its errors, metres separate from radians."""
    by_unit = {}
    for k, owner in enumerate(robot.row_owners):
        if owner == name:
            row = robot.row_names[k].removeprefix(name)
            unit = " rad" if row in (".wx", ".wy", ".wz") else " m" if row in _LENGTHS else ""
            by_unit[unit] = np.hypot(by_unit.get(unit, 0.0), e[k])
    largest = max(by_unit.values(), default=0.0)
    return largest, " and ".join(f"{x:.3g}{unit}" for unit, x in by_unit.items() if not x <= REPORTED * largest)


_LENGTHS = (".vx", ".vy", ".vz", ".gap", ".height")


def _values(robot, held, q, virtual, values):
    """A text with the held coordinates and their values at q."""
    parts = []
    for name in held:
        if name in robot.virtual_names:
            x = values[list(virtual).index(robot.virtual_index(name))]
        else:
            x = [q[k] for k, each in enumerate(robot.coordinate_names) if each == name or each.startswith(f"{name}.")]
            x = x[0] if len(x) == 1 else [float(f"{each:.6g}") for each in x]
        parts.append(f"{name} = {x:.6g}" if np.ndim(x) == 0 else f"{name} = {x}")
    return ", ".join(parts)
