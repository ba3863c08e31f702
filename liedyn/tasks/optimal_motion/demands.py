"""What a motion has to satisfy, from the checked arguments of `optimize_motion`.

Conditions at the start, at the goal and in between: states, configurations, named coordinates, targets.

Contradictory demands: conditions beyond limits, distances too long for speed limits; uncontrollable rest states.
"""
# mypy: ignore-errors

from dataclasses import dataclass

import numpy as np
from scipy.linalg import matrix_balance

from liedyn.machine.arguments import flag, floats, non_negative
from liedyn.machine.errors import ClosureError, InputError, shown, suggestion
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.constraints.loops import closure_error, velocity_error
from liedyn.mechanics.contact.watching import dry_friction_of, watches
from liedyn.mechanics.elements.generalized import moves_elements
from liedyn.mechanics.tree.places import places_of
from liedyn.model.calls.boundary import states
from liedyn.tasks.optimal_motion.charts import charts_about
from liedyn.tasks.optimal_motion.dynamics import motion_at, rates_in
from liedyn.tasks.optimal_motion.limits import Linear, Own, Power, Reaching, Virtual, coordinate_rows, limits
from liedyn.tasks.optimal_motion.path_functions import PathFunction
from liedyn.tasks.optimal_motion.program import Demands
from liedyn.tasks.optimal_motion.samples import Samples
from liedyn.tasks.reaching.solve import inverse_kinematics
from liedyn.tasks.reaching.targets import Target

SLACK = 1e-6
"""Relative excess of limits that is allowed at conditions, as users round numbers."""
SMALL = 1e-7
"""Relative size that counts as zero for accelerations that no input cancels and for uncontrollable modes: half of the
digits, the accuracy of repeated eigenvalues."""
QUARTER = 1.5
"""Coordinates of cut joints may be angles, which are known up to full turns: distances above this [rad] are not
checked."""


def require_possible(robot, demands):
    """Requires conditions within the limits, and enough time between them at the speed limits.

    Raises InputError that names the violated limit, where, and by how much.
    """
    for part, condition in demands.conditions:
        where = {0.0: "at the start", 1.0: "at the goal"}.get(part, f"at {part:g} of the duration")
        for rows in demands.rows:
            values = known(robot, condition, rows)
            slack = SLACK * np.maximum(1.0, np.abs(values))
            for j in np.flatnonzero((values < rows.low - slack) | (values > rows.high + slack)):
                raise InputError(f"{rows.names[j]} of {robot.name!r} is {values[j]:.6g} {where}, beyond its limits "
                                 f"({rows.low[j]:.6g}, {rows.high[j]:.6g}); limits=False leaves out those that the "
                                 "robot declares")
    for rows in demands.rows:
        if isinstance(rows, (Linear, Virtual)) and rows.of_velocity:
            for name, low, high in zip(rows.names, rows.low, rows.high):
                _require_time(robot, demands, name.removeprefix("velocity:"), low, high)


def _require_time(robot, demands, name, slowest, fastest):
    """Requires that coordinate `name` can move from condition to condition in time."""
    virtual = name in robot.virtual_names
    if not virtual and places_of(robot)[robot.velocity_index(name)] < 0:
        return
    rows, before = coordinate_rows(robot, name, -np.inf, np.inf), None
    for part, condition in sorted(demands.conditions, key=lambda each: each[0]):
        value = known(robot, condition, rows)[0]
        if np.isnan(value):
            continue
        if before is not None:
            way, longest = value - before[1], (part - before[0]) * demands.duration[1]
            least = way / (fastest if way > 0.0 else slowest) if way else 0.0
            if least > longest * (1.0 + SLACK) and not (virtual and abs(way) > QUARTER):
                raise InputError(f"{name} of {robot.name!r} has to go {way:.4g} within {longest:.4g} s, which takes "
                                 f"{least:.4g} s at least at its limits of speed ({slowest:.4g}, {fastest:.4g})")
        before = part, value


def known(robot, condition, rows):
    """Values (m,) of rows at a condition; NaN if the condition leaves them free, or they depend on inputs."""
    named = {name: x for each in condition.rows if isinstance(each, (Linear, Virtual))
             for name, x in zip(each.names, each.low)}
    values = np.array([named.get(name, np.nan) for name in rows.names])
    if condition.q is None or isinstance(rows, Power) or condition.v is None and (
            isinstance(rows, Own) or rows.of_velocity):
        return values
    v = np.zeros(robot.nv) if condition.v is None else condition.v
    found, _, _, by_u, _ = rows.evaluate(Samples(
        np.zeros(1), condition.q[None], v[None], np.zeros((1, len(robot.actuator_names))), *[None] * 6))
    return found[0] if by_u is None or not by_u.any() else values


def at_rest(robot, q, of_inputs):
    """Message about what the actuators cannot do at rest at a configuration (nq,); "" if there is nothing to say."""
    charts, zero, nu = charts_about(robot, q[None]), np.zeros(1, np.int64), len(robot.actuator_names)

    def rates(u):
        motion = motion_at(charts, zero, q[None], np.zeros((1, robot.nv)), u[None])
        return motion, rates_in(charts, zero, motion)

    p = charts.sizes[0]
    _, of = rates(np.zeros(nu))
    a, B = of.f[0, p:], of.df_du[0, p:]
    u = -np.linalg.lstsq(B, a, rcond=SMALL)[0]
    motion, of = rates(u)
    if np.abs(of.f).max() > SMALL * max(1.0, np.abs(a).max()):
        j = int(np.abs(motion.a[0]).argmax())
        return f"no inputs hold it at rest, {robot.velocity_names[j]} gets {motion.a[0, j]:.3g} rad/s^2 or m/s^2"
    low, high = of_inputs.T
    far = np.maximum(low - u, u - high)
    if len(far) and far.max() > 0.0 and np.linalg.matrix_rank(B, tol=SMALL * np.abs(B).max()) == nu:
        j = int(far.argmax())
        return (f"to hold it at rest takes {u[j]:.4g} of {robot.actuator_names[j]!r}, beyond its limits "
                f"({low[j]:.4g}, {high[j]:.4g})")
    left = unreached(of.df[0], of.df_du[0])
    if left is None:
        return ""
    if len(left) != 2 * p:
        return "rolling leaves directions that only manoeuvres reach: begin with a guess= that makes one"
    share = np.abs(left[:p] @ charts.R_y[0]) + np.abs(left[p:] @ charts.R_w[0])
    return (f"its inputs do not reach all motions next to rest there, {robot.velocity_names[int(share.argmax())]} "
            "least: the linear model is not controllable")


def unreached(A, B):
    """A combination of states (n,) that no input of dx/dt = A x + B u affects, None if the pair is controllable.

    By Hautus's test: a left eigenvector of A that is orthogonal to B (Hautus 1969). States and inputs are scaled, as
    with stiff springs positions are small compared with velocities.
    """
    A, (scale, _) = matrix_balance(A, permute=False, separate=True)
    B = B / scale[:, None]
    size = np.linalg.norm(B, axis=0)
    B = B * (np.linalg.norm(A) / np.where(size > 0.0, size, 1.0))
    for each in np.linalg.eigvals(A):
        _, s, Vh = np.linalg.svd(np.hstack([A - each * np.eye(len(A)), B]).T)
        if s[-1] <= SMALL * s[0]:
            left = Vh[-1].conj() / scale
            return left / np.linalg.norm(left)
    return None


CLOSED = 1e-8
FREE = "free"


@dataclass(frozen=True)
class Condition:
    """A condition at one time.

    Attributes
    ----------
    q : ndarray, shape (nq,), or None
        The configuration, if all of it is given.
    v : ndarray, shape (nv,), or None
        The velocity, if all of it is given.
    rows : tuple of Rows
        Other conditions.
    values : dict
        Coordinates by name, for the first guess.
    targets : tuple of Target
    """

    q: np.ndarray | None = None
    v: np.ndarray | None = None
    rows: tuple = ()
    values: dict | None = None
    targets: tuple = ()

    def near(self, robot, q):
        """A configuration that satisfies the condition, from one nearby."""
        if self.q is not None:
            return self.q
        if self.targets:
            return inverse_kinematics(robot, list(self.targets), q0=q).q
        if self.values:
            return close(robot, q, **self.values) if robot.row_names else _put(robot, q, self.values)
        return q


def condition(robot, name, given, at_rest):
    """A `Condition` from the user's argument: (what, v), or what alone, which is then at rest or has any velocity.

    Raises InputError if the argument cannot be interpreted, a shape does not fit, a name is unknown, or v opens a loop.
    Raises ClosureError if a loop is open at q.
    """
    what, v = given, FREE if not at_rest else None
    if isinstance(given, (tuple, list)) and len(given) == 2 and not np.isscalar(given[0]) and not (
            isinstance(given[1], Target)):
        what, v = given[0], FREE if given[1] is None else given[1]
    targets = (what,) if isinstance(what, Target) else tuple(what) if _are_targets(what) else ()
    if targets:
        q = inverse_kinematics(robot, list(targets), unreached="ignore").q
        return Condition(None, _velocity(robot, name, None, v), tuple(Reaching(robot, t, q) for t in targets),
                         None, targets)
    if isinstance(what, dict):
        rows, values = [], {}
        for key, x in what.items():
            if not isinstance(key, str):
                raise InputError(f"{name} has coordinates by name, got {shown(key)}")
            x = _number(name, key, x)
            rows.append(coordinate_rows(robot, key, x, x))
            if ":" in key:
                v = FREE if v is None else v
            else:
                values[key] = x
        return Condition(None, _velocity(robot, name, None, v), tuple(rows), values)
    _, q = states(robot, q=what)
    if len(q) != 1:
        raise InputError(f"{name} must be one state, got configurations of shape {np.shape(what)}")
    error = np.abs(closure_error(robot, q)).max(initial=0.0)
    if error > CLOSED:
        worst = robot.row_names[int(np.abs(closure_error(robot, q[0])).argmax())]
        raise ClosureError(f"the loops of {robot.name!r} are open at the {name}: {error:.3g} in {worst!r}; ld.close() "
                           "closes them", float(error), worst, q[0])
    return Condition(q[0].copy(), _velocity(robot, name, q[0], v))


def _velocity(robot, name, q, v):
    if v is FREE or isinstance(v, str) and v == FREE:
        return None
    if v is None:
        return np.zeros(robot.nv)
    if np.ndim(v) == 0 and v == 0:
        return np.zeros(robot.nv)
    _, one, v = states(robot, q=robot.home if q is None else q, v=v)
    if not v.any():
        return v[0].copy()
    if q is None:
        raise InputError(f"a velocity at the {name} needs the whole configuration; otherwise name its coordinates, "
                         "such as {'velocity:boom': 0.1}")
    error = np.abs(velocity_error(robot, one[0], v[0])).max(initial=0.0)
    if error > CLOSED * max(1.0, np.abs(v).max()):
        raise InputError(f"the velocity at the {name} opens a loop: {error:.3g}; ld.complete_velocity() completes it")
    return v[0].copy()


def _are_targets(what):
    return isinstance(what, (tuple, list)) and len(what) > 0 and all(isinstance(each, Target) for each in what)


def _number(name, key, x):
    try:
        x = float(x)
    except (TypeError, ValueError):
        raise InputError(f"{key!r} of the {name} must be a number, got {shown(x)}") from None
    if not np.isfinite(x):
        raise InputError(f"{key!r} of the {name} must be finite, got {x}")
    return x


def _put(robot, q, values):
    q = q.copy()
    for name, x in values.items():
        q[robot.coordinate_names.index(name)] = x
    return q


def conditions_of(robot, start, goal, via):
    """Pairs (part of the duration, `Condition`) for what is wanted at the start, on the way and at the goal."""
    found = [(0.0, condition(robot, "start", start, True))]
    for each in _sequence("via", via):
        if not isinstance(each, (tuple, list)) or len(each) != 2:
            raise InputError(f"via has pairs (part of the duration, what), got {shown(each)}")
        part = non_negative("the part of a via", each[0])
        if not 0.0 < part < 1.0:
            raise InputError(f"the part of a via is between 0 and 1, got {part:g}")
        found.append((part, condition(robot, "via", each[1], False)))
    return found if goal is None else [*found, (1.0, condition(robot, "goal", goal, True))]


def require_optimizable(robot):
    """InputError if motions of this robot cannot be optimized."""
    if robot.functions or robot.t != 0.0:
        raise InputError(f"{robot.name!r} has constraints that are functions or move with time: motions are optimized "
                         "for fixed constraints of the library's own kinds")
    if moves_elements(robot):
        raise InputError(f"{robot.name!r} has forces that are functions of the time: motions are optimized for forces "
                         "that states and inputs decide")
    if dry := dry_friction_of(robot):
        raise InputError(f"{robot.name!r} has {dry}")
    if watches(robot):
        raise InputError(f"{robot.name!r} has one-sided constraints: switch them to 'sliding' or 'sticking' or off")
    if not robot.actuator_names:
        raise InputError(f"{robot.name!r} has no actuators: nothing can be optimized")


def demands_of(robot, conditions, duration, bounds, declared, path, periodic):
    """All that a motion has to fulfil; bounds that the robot declares count if `declared`."""
    if bounds is not None and not isinstance(bounds, dict):
        raise InputError(f"bounds must be a dict by name, got {shown(bounds)}")
    rows, of_inputs = limits(robot, bounds or {}, flag("limits", declared))
    nu = len(robot.actuator_names)
    for each in (path,) if isinstance(path, PathFunction) else _sequence("path", path):
        if not isinstance(each, PathFunction):
            raise InputError(f"path has PathFunctions, got {shown(each)}")
        rows.append(Own(each, (0.0, robot.home, np.zeros(robot.nv), np.zeros(nu))))
    return Demands(rows, of_inputs, _duration(duration), conditions, _shift(robot, periodic))


def _sequence(name, x):
    if not isinstance(x, (list, tuple)):
        raise InputError(f"{name} must be a list, got {shown(x)}")
    return x


def _duration(given):
    x = floats("duration", given)
    if x.shape == ():
        x = np.array([x, x])
    if x.shape != (2,) or not np.isfinite(x).all() or not 0.0 < x[0] <= x[1]:
        raise InputError(f"duration must be positive, or (low, high), got {shown(given)}")
    return float(x[0]), float(x[1])


def _shift(robot, periodic):
    if isinstance(periodic, dict):
        shift = np.zeros(robot.nv)
        for name, x in periodic.items():
            if name not in robot.velocity_names or places_of(robot)[robot.velocity_index(name)] < 0:
                raise InputError(f"unknown coordinate {shown(name)} of periodic, "
                                 f"{suggestion(name, robot.coordinate_names)}")
            shift[robot.velocity_index(name)] = floats(f"periodic {name!r}", x)
        return shift
    return np.zeros(robot.nv) if flag("periodic", periodic) else None
