"""Contradictory demands: conditions beyond limits, distances too long for speed limits; uncontrollable rest states."""
# mypy: ignore-errors
import numpy as np
from scipy.linalg import matrix_balance

from liedyn.machine.errors import InputError
from liedyn.mechanics.tree.places import places_of
from liedyn.tasks.optimal_motion.charts import charts_about
from liedyn.tasks.optimal_motion.dynamics import motion_at, rates_in
from liedyn.tasks.optimal_motion.limits import Linear, Own, Power, Virtual, coordinate_rows
from liedyn.tasks.optimal_motion.samples import Samples

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
