"""Inverse dynamics of a constrained mechanism: actuator forces for wanted motions and constraint forces."""
# mypy: ignore-errors

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.control.constrained.actuator_forces import DrivenState
from liedyn.control.constrained.controllability import Controllability, actuation, controllability, judged
from liedyn.control.constrained.decomposition import metric_root
from liedyn.control.constrained.driven_motion import driven_motion_kernel, driven_motion_size
from liedyn.machine.arguments import floats, non_negative
from liedyn.machine.errors import InputError, of_the_batch, shown, suggestion
from liedyn.mechanics.constraints.constraint_wrenches import constraint_wrenches
from liedyn.mechanics.constraints.independent import by_name, choose, given_coordinates
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.dynamics.forward import warn_if_poor
from liedyn.mechanics.dynamics.nullspace import OK, RANK_TOLERANCE
from liedyn.mechanics.dynamics.singular import ACCELERATIONS, POOR_CONDITION, is_suspect
from liedyn.model.calls.boundary import rows_of, states, wrenches
from liedyn.model.remembered import LazyResult
from liedyn.model.robot import Robot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.typing import Array, ArrayLike, IndependentNames, Wrenches

NO_WRENCH = np.empty(0)


@dataclass(frozen=True)
class InverseDynamics(LazyResult):
    """Forces that give a mechanism the wanted motion and constraint forces.

    Attributes
    ----------
    tau : ndarray, shape (..., nv)
        Generalised forces [N m, N], zero for passive coordinates.
    u : ndarray, shape (..., nu)
        Inputs of the actuators, or of the coordinates in `active`: tau = actuator_matrix @ u. Of minimum norm if
        several have the same effect.
    a : ndarray, shape (..., nv)
        Accelerations of all coordinates [rad/s^2, m/s^2].
    lam : ndarray, shape (..., m)
        Resulting multipliers, ``M a + c = tau + tau_joint - G^T lam``, rows as in ``robot.row_names``; of minimum
        norm if rows are redundant.
    constraint_wrenches : dict
        By constraint name the wrench (moment, force) [N m, N], shape (..., 6), on its child side
        (`liedyn.mechanics.constraints.constraint_wrenches`).
    independent : tuple of str
        The coordinates whose accelerations were given.
    controllability : Controllability
        The motions that the actuators can drive (at the last state of a batch).
    """

    tau: Array
    u: Array
    a: Array
    lam: Array
    constraint_wrenches: dict[str, Any]
    independent: tuple[str, ...]
    controllability: Controllability


@dataclass(frozen=True)
class Driven:
    """Data that are the same for all states with the same coordinates and actuators.

    Attributes
    ----------
    chosen : Independent
    actuators : tuple of str
    T : ndarray, shape (nv, r)
        Columns that span the actuator forces, orthonormal in the metric.
    inputs : ndarray, shape (nu, nv)
        u = inputs tau.
    work : ndarray
    """

    chosen: object
    actuators: tuple
    T: np.ndarray
    inputs: np.ndarray
    work: np.ndarray

    def motion(self, robot, q, v, w_dot, f_ext, tolerance):
        """tau, a and lam of one state; None if they have to be computed in another way, or do not exist."""
        tau, a, lam = np.empty(robot.nv), np.empty(robot.nv), np.empty(len(robot.row_names))
        status, condition = driven_motion_kernel(
            robot.packed, q, v, w_dot, f_ext, self.chosen.rows, self.T, tolerance, self.work, tau, a, lam)
        usual = status == OK and condition < POOR_CONDITION and not is_suspect(
            robot, q, v, a, robot.nv - len(self.chosen.rows), condition, ACCELERATIONS)
        return (tau, a, lam) if usual and math.isfinite(tau.sum() + a.sum() + lam.sum()) else None


def driven(robot, independent, active, root):
    """The `Driven` for coordinates of the tree and constant actuators, else None."""
    names = independent or robot.independent or (() if robot.row_names else robot.velocity_names)
    if not names or isinstance(names, str) or robot.elements is not None or robot.functions or watches(robot):
        return None
    chosen = by_name(robot, names)
    if (chosen.virtual >= 0).any():
        return None
    actuators, B = actuation(robot, active, robot.home)
    C, C_inverse = root
    U, s, _ = np.linalg.svd(C_inverse @ B, full_matrices=False)
    T = C @ U[:, s > 1e-12 * s.max(initial=0.0)]
    return Driven(chosen, actuators, T, np.linalg.pinv(B), np.empty(driven_motion_size(robot.packed, T.shape[1])))


def _one_state(robot, q, v, accelerations, independent, active, tolerance):
    """The `InverseDynamics` of one state in the usual case, else None."""
    if type(accelerations) is dict:
        if independent is not None:
            return None
        independent, accelerations = tuple(accelerations), list(accelerations.values())
    key = "inverse dynamics", independent, active
    try:
        found = robot._memo.get(key, key)
    except TypeError:  # lists
        key = tuple(tuple(x) if type(x) is list else x for x in key)
        try:
            found = robot._memo.get(key, key)
        except TypeError:
            return None
    if found is key:
        usual = all(x is None or type(x) is tuple and all(type(name) is str for name in x) for x in key[1:])
        found = robot._memo[key] = driven(robot, *key[1:], metric_root(None, robot.nv)) if usual else None
    if found is None:
        return None
    try:
        w_dot, q, v = (floats("", x).copy() for x in (accelerations, q, v))
    except InputError:  # the general way names the error
        return None
    shapes = (len(found.chosen.names),), (robot.nq,), (robot.nv,)
    if (w_dot.shape, q.shape, v.shape) != shapes:
        return None
    motion = found.motion(robot, q, v, w_dot, NO_WRENCH, tolerance)
    if motion is None:
        return None
    tau, a, lam = motion
    return InverseDynamics.of(dict(tau=tau, u=found.inputs @ tau, a=a, lam=lam, independent=found.chosen.names,
                                   _later=(_read_later, robot, q, active, tolerance)))


def _read_later(name, found, robot, q, active, tolerance):
    """An attribute of an `InverseDynamics` that is computed when it is first read."""
    if name == "constraint_wrenches":
        return {name: constraint_wrenches(robot, q, found.lam)}
    return {name: controllability(robot, q, active, rank_tolerance=tolerance)}


def inverse_dynamics(robot: Robot, q: ArrayLike, v: ArrayLike, accelerations: ArrayLike | dict[str, Any],
                     independent: IndependentNames = None, active: Sequence[str] | None = None,
                     metric: ArrayLike | None = None, multipliers: dict[str, Any] | None = None,
                     f_ext: Wrenches | None = None, rank_tolerance: float = RANK_TOLERANCE) -> InverseDynamics:
    """Smallest actuator forces that give a constrained mechanism the wanted accelerations.

    Parameters
    ----------
    robot : Robot
        At its time, ``robot.at(t)``, if constraints move.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] that closes the loops.
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s] that satisfies the constraints.
    accelerations : array_like, shape (..., p), or dict
        Accelerations of the independent coordinates [rad/s^2, m/s^2], in their order or by name. For a virtual
        coordinate of a cut joint: the second derivative of that coordinate.
    independent : sequence of str, "auto", "tangent" or None
        Coordinates whose accelerations are given, as many as there are degrees of freedom. None: the names of a dict,
        else those that the robot declares, else "auto" (pivoting, at the first state of a batch).
    active : sequence of str, optional
        Joints or velocity coordinates that are driven, all others being passive; default: by the robot's actuators, or
        all of them if it declares none.
    metric : array_like, shape (nv,) or (nv, nv), optional
        W, or its diagonal: among all forces with the wanted effect, those with the smallest tau^T W^-1 tau are
        returned. ``effort_limit ** 2`` distributes the load according to the limits of motors. Default: ones.
    multipliers : dict, optional
        Wanted multipliers by name of a row, or of a constraint for all its rows: numbers of shape (...) or (..., rows).
        If rows are redundant, only the force that the given ones make together matters.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] applied to bodies, each in its body's own frame, as for `rnea`.
    rank_tolerance : float
        Singular values of G below this fraction of the largest one count as zero.

    Returns
    -------
    InverseDynamics
        Forces ``tau``, actuator inputs ``u``, accelerations ``a``, multipliers ``lam``, ``controllability``.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a name is unknown, there are too many or few independent
        coordinates, a multiplier belongs to a constraint that is switched off, or the metric is not positive definite.
    SingularConfigurationError
        The independent coordinates do not determine the motion here.
    ControllabilityError
        The actuators cannot give this motion, or not with these multipliers; the message names the motion.

    Warns
    -----
    ConditionWarning
        The independent coordinates are poorly conditioned here.

    Notes
    -----
    Aghili 2005, section VII: the projected inverse dynamics (43), with passive joints (54)-(60), weight (47) and
    constraint forces (49)-(52). ``forward_dynamics(robot, q, v, r.tau)`` returns ``r.a`` and ``r.lam`` again.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("slider_crank")
    >>> r = ld.inverse_dynamics(robot, robot.home, [0.0, 0.0], {"crank": 2.0})
    >>> r.tau.round(6).tolist(), r.a.round(6).tolist()
    ([0.619, -1.238], [2.0, -4.0])
    >>> ld.inverse_dynamics(robot, robot.home, [0.0, 0.0], {"crank": 2.0}, active=("crank",)).tau.round(6).tolist()
    [3.095, 0.0]
    >>> hybrid = ld.inverse_dynamics(robot, robot.home, [0.0, 0.0], {"crank": 2.0}, multipliers={"slider": 0.0})
    >>> float(abs(hybrid.lam).max().round(12))
    0.0
    """
    rank_tolerance = non_negative("rank_tolerance", rank_tolerance)
    if metric is None and multipliers is None and f_ext is None and isinstance(robot, Robot):
        found = _one_state(robot, q, v, accelerations, independent, active, rank_tolerance)
        if found is not None:
            return found
    independent = given_coordinates("independent", independent)
    lead, q, v = states(robot, q=q, v=v)
    if not len(q):
        raise InputError("inverse_dynamics needs at least one state")
    forces = wrenches(robot, f_ext, lead)
    if isinstance(accelerations, dict):
        independent, accelerations = _by_names(robot, accelerations, independent)
    accelerations = floats("accelerations", accelerations)
    with of_the_batch(lead, 0):
        chosen = choose(robot, q[0], independent, rank_tolerance)
    size = len(chosen.names)
    if accelerations.ndim == 0 or accelerations.shape[-1] != size:
        raise InputError(f"accelerations must have shape (..., {size}), one for each of "
                         f"{', '.join(chosen.names)}; got {accelerations.shape}")
    w_dot = rows_of("accelerations", accelerations, lead, size)
    root = metric_root(metric, robot.nv)
    rows, wanted = wanted_rows(robot, multipliers, lead)
    results = []
    for b in range(len(q)):
        with of_the_batch(lead, b):
            actuators, B = actuation(robot, active, q[b])
            motion = DrivenState(robot, (q[b], v[b], forces[b]), w_dot[b], chosen, (actuators, B), root, rank_tolerance)
            warn_if_poor(chosen, motion.condition)
            tau = motion.with_multipliers(rows, wanted[b]) if rows else motion.tau
        results.append((tau, np.linalg.pinv(B) @ tau, motion.a, motion.multipliers(tau)))
    tau, u, a, lam = (np.reshape(x, lead + np.shape(x[0])) for x in zip(*results))
    return InverseDynamics(tau, u, a, lam, constraint_wrenches(robot, q.reshape(lead + (-1,)), lam), chosen.names,
                           judged(robot, motion.parts, actuators))


def _by_names(robot, accelerations, independent):
    """Independent coordinates, and their accelerations in the same order."""
    names = tuple(accelerations) if independent is None else by_name(robot, independent).names
    values = []
    for name in names:
        if name not in accelerations:
            raise InputError(f"no acceleration given for {name!r}; given are {', '.join(map(repr, accelerations))}")
        count = len(by_name(robot, [name]).names)
        value = floats(f"acceleration of {name!r}", accelerations[name])
        values.append(value[..., None] if count == 1 and value.shape[-1:] != (1,) else value)
    surplus = set(accelerations) - set(names)
    if surplus:
        raise InputError(f"accelerations of {', '.join(map(repr, surplus))} are given, but independent are "
                         f"{', '.join(map(repr, names))}")
    lead = np.broadcast_shapes(*(value.shape[:-1] for value in values))
    return names, np.concatenate([np.broadcast_to(x, lead + x.shape[-1:]) for x in values] or [np.empty(0)], axis=-1)


def rows_named(robot, name):
    """Indices of the rows that a name stands for: one row, or all of a constraint; InputError if there are none."""
    if name in robot.constraint_names:
        return [k for k, owner in enumerate(robot.row_owners) if owner == name]
    if name in robot.row_names:
        return [robot.row_names.index(name)]
    raise InputError(f"unknown constraint or row {shown(name)}, "
                     f"{suggestion(shown(name), (*robot.constraint_names, *robot.row_names))}")


def wanted_rows(robot, multipliers, lead):
    """Row indices, and wanted values (count, rows)."""
    if not isinstance(multipliers, dict | None):
        raise InputError(f"multipliers must be a dict by name of a constraint or row, got {shown(multipliers)}")
    rows, columns = [], []
    for name, value in (multipliers or {}).items():
        found = rows_named(robot, name)
        value = floats(f"multipliers[{name!r}]", value)
        if len(found) == 1 and value.shape[-1:] != (1,):
            value = value[..., None]
        if value.shape[-1:] != (len(found),):
            raise InputError(f"multipliers of {name!r} must have shape (..., {len(found)}), one for each of "
                             f"{', '.join(robot.row_names[k] for k in found)}; got {value.shape}")
        value = rows_of(f"multipliers[{name!r}]", value, lead, len(found))
        if robot.row_owners[found[0]] not in robot.active and value.any():
            raise InputError(f"multipliers of {name!r}: constraint {robot.row_owners[found[0]]!r} is switched off")
        rows += found
        columns.append(value)
    if len(set(rows)) < len(rows):
        raise InputError(f"multipliers name a row twice: {', '.join(multipliers)}")
    return rows, np.concatenate(columns, axis=1) if columns else np.empty((1, 0))
