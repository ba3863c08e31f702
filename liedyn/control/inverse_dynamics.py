"""Inverse dynamics of a constrained mechanism: forces of its actuators for wanted motions and constraint forces."""
from dataclasses import dataclass

import numpy as np

from liedyn.boundary import rows_of, states, wrenches
from liedyn.constraints.cut_rows import cut_bias_kernel
from liedyn.constraints.independent import by_name, choose, singular_choice, wrong_count
from liedyn.constraints.rows import reader_rows
from liedyn.control.controllability import Controllability, actuation, judged
from liedyn.control.decomposition import Decomposition, metric_tensor
from liedyn.dynamics.forward import constraint_wrenches, warn_if_poor
from liedyn.dynamics.nullspace import RANK_TOLERANCE
from liedyn.dynamics.terms import terms_kernel
from liedyn.errors import ControllabilityError, InputError, suggestion
from liedyn.jit import kernel
from liedyn.lie.lanes import SCALAR
from liedyn.model.packed import N_VIRTUAL
from liedyn.tree.kinematics import world_accelerations, world_positions, world_size, world_velocities

NOTHING = 1e-9
"""A force that no actuator can give is rounding below this part of the terms it is the difference of: states closed to
1e-12, times the condition of the mechanism."""


@dataclass(frozen=True)
class InverseDynamics:
    """Forces that give a mechanism the motion and the constraint forces that are wanted.

    Attributes
    ----------
    tau : ndarray, shape (..., nv)
        Generalised forces [N m, N], zero where nothing drives.
    u : ndarray, shape (..., nu)
        Inputs of the actuators, or of the coordinates in `active`: tau = actuator_matrix @ u. Of minimum norm where
        several do the same.
    a : ndarray, shape (..., nv)
        Accelerations of all coordinates [rad/s^2, m/s^2].
    lam : ndarray, shape (..., m)
        Multipliers that follow, ``M a + c = tau + tau_joint - G^T lam``, rows as in ``robot.row_names``; of minimum
        norm where rows are redundant.
    constraint_wrenches : dict
        For each loop the wrench (moment, force) [N m, N], shape (..., 6), as in `ForwardDynamics`.
    independent : tuple of str
        The coordinates whose accelerations were given.
    controllability : Controllability
        What the actuators can do (at the last state of a batch).
    """

    tau: np.ndarray
    u: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    constraint_wrenches: dict
    independent: tuple
    controllability: Controllability


@kernel
def readers_kernel(ints, floats, q, v):
    """E (nz, nv) and rho (nz): virtual velocities are E v, virtual accelerations E a + rho."""
    nz, zero = ints[N_VIRTUAL], np.zeros(v.size)
    work, E, rho = np.empty(world_size(ints)), np.empty((nz, v.size)), np.empty(nz)
    world_positions(SCALAR, ints, floats, q, work)
    world_velocities(SCALAR, ints, v, work)
    world_accelerations(SCALAR, ints, floats, v, zero, work)
    reader_rows(ints, floats, work, E)
    cut_bias_kernel(ints, floats, work, True, rho)
    return E, rho


class Motion:
    """What a state and the accelerations of independent coordinates ask for.

    Attributes
    ----------
    parts : Decomposition
    terms : tuple
        M, h, G, residual, psi, gamma.
    a : ndarray, shape (nv,)
    force : ndarray, shape (nv,)
        M a + h = tau - G^T lambda.
    tau : ndarray, shape (nv,)
        The shortest forces of the actuators for this motion.
    """

    def __init__(self, robot, q, v, w_dot, chosen, f_ext, actuators, B, W, tolerance):
        self.robot, self.actuators, self.B = robot, actuators, B
        self.terms = M, h, G, _, _, gamma = terms_kernel(robot.ints, robot.floats, q, v, f_ext)
        self.parts = parts = Decomposition(G, B, W, tolerance)
        if len(w_dot) != parts.K.shape[1]:
            raise wrong_count(robot, chosen, parts.rank)
        E, rho = readers_kernel(robot.ints, robot.floats, q, v)
        R, drift = chosen.matrix(E), np.zeros(len(w_dot))
        drift[chosen.virtual >= 0] = rho[chosen.virtual[chosen.virtual >= 0]]
        RK = R @ parts.K
        sizes = np.linalg.svd(RK, compute_uv=False)
        if sizes.size and not sizes[-1] > np.finfo(float).eps * sizes[0]:
            raise singular_choice(robot, q, chosen)
        self.condition = sizes[0] / sizes[-1] if sizes.size else 1.0
        a = parts.G_sharp @ gamma
        self.a = a + parts.K @ np.linalg.solve(RK, w_dot - drift - R @ a)
        self.force = M @ self.a + h
        self._require_drive(np.abs(M) @ np.abs(self.a) + np.abs(h))
        self.tau = parts.acting(self.force)

    def _require_drive(self, size):
        lost = np.abs(self.parts.not_driven(self.force))
        if (lost > NOTHING * (np.abs(self.parts.undriven).T @ size)).any():
            judgement = judged(self.robot, self.parts, self.actuators)
            raise ControllabilityError(f"{self.robot.name!r} cannot make this motion: {judgement}", judgement)

    def multipliers(self, tau):
        """The shortest lam with G^T lam = tau - M a - h."""
        return self.parts.multipliers @ (tau - self.force)

    def constraint_forces(self, rows, lam):
        """tau that gives named rows their multipliers too.

        Raises
        ------
        ControllabilityError
            No force of the actuators gives them.
        """
        T, Pi = self.parts.internal_for(rows)
        now = self.multipliers(self.tau)[rows]
        tau = self.tau + T @ (lam - now)
        missed = np.abs(Pi @ (lam - self.multipliers(tau)[rows]))
        scale = np.abs(self.parts.multipliers[rows]) @ (np.abs(tau) + np.abs(self.force)) + np.abs(lam)
        if (missed > NOTHING * np.maximum(scale, scale.max(initial=0.0))).any():
            judgement = judged(self.robot, self.parts, self.actuators)
            names = ", ".join(self.robot.row_names[k] for k in rows)
            raise ControllabilityError(
                f"{self.robot.name!r}: multipliers of {names} cannot be had besides the motion: "
                f"{', '.join(self.actuators) or 'no actuators'} can load the constraints in {judgement.internal} "
                "independent ways without moving anything", judgement)
        return tau


def inverse_dynamics(robot, q, v, accelerations, independent=None, active=None, metric=None, multipliers=None,
                     f_ext=None, rank_tolerance=RANK_TOLERANCE):
    """Smallest forces of the actuators that give a constrained mechanism the accelerations that are wanted.

    Parameters
    ----------
    robot : Robot
        At the time of ``robot.at(t)`` where constraints move.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] that closes the loops.
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s] that keeps them closed.
    accelerations : array_like, shape (..., p), or dict
        Of the independent coordinates [rad/s^2, m/s^2], in their order or by name. A virtual coordinate of a cut joint
        has the second derivative of that coordinate.
    independent : sequence of str, "auto", "tangent" or None
        Coordinates whose accelerations are given, as many as there are degrees of freedom. None: the names of a dict,
        else the robot's own declaration, else "auto" (pivoting).
    active : sequence of str, optional
        Joints or velocity coordinates that are driven, all others being passive; default: by the robot's actuators, or
        all of them where it declares none.
    metric : array_like, shape (nv,) or (nv, nv), optional
        W, or its diagonal: of all forces that do, those with the smallest tau^T W^-1 tau are taken.
        ``effort_limit ** 2`` shares the load by what motors can bear. Default: ones.
    multipliers : dict, optional
        Wanted multipliers by name of a row, or of a constraint for all its rows: numbers of shape (...) or (..., rows).
        Where rows are redundant, only the force that the given ones make together counts.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] applied to bodies, each in its body's own frame, as for `rnea`.
    rank_tolerance : float
        Singular values of G below this part of the largest one count as zero.

    Returns
    -------
    InverseDynamics
        Forces ``tau``, actuator inputs ``u``, accelerations ``a``, multipliers ``lam``, ``controllability``.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, an unknown name, too many or few independent coordinates, a
        multiplier of a constraint that is switched off, or a metric that is none.
    SingularConfigurationError
        The independent coordinates do not determine the motion here.
    ControllabilityError
        The actuators cannot give this motion, or these multipliers besides it; says which motion nothing drives.

    Warns
    -----
    ConditionWarning
        The independent coordinates are poorly conditioned here.

    Notes
    -----
    Aghili 2005, section VII: the projected inverse dynamics (43), with passive joints (54)-(60), weight (47) and
    constraint forces (49)-(52). ``forward_dynamics(robot, q, v, r.tau)`` gives back ``r.a`` and ``r.lam``.

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
    lead, q, v = states(robot, q=q, v=v)
    if not len(q):
        raise InputError("inverse_dynamics needs at least one state")
    forces = wrenches(robot, f_ext, lead)
    if isinstance(accelerations, dict):
        independent, accelerations = _by_names(robot, accelerations, independent)
    accelerations = np.asarray(accelerations, dtype=np.float64)
    choices = [choose(robot, each, independent, rank_tolerance) for each in q]
    size = len(choices[0].names)
    if accelerations.ndim == 0 or accelerations.shape[-1] != size:
        raise InputError(f"accelerations must have shape (..., {size}), one for each of "
                         f"{', '.join(choices[0].names)}; got {accelerations.shape}")
    w_dot = rows_of("accelerations", accelerations, lead, size)
    actuators, B = actuation(robot, active)
    W = metric_tensor(metric, robot.nv)
    rows, wanted = wanted_rows(robot, multipliers or {}, lead)
    spread = np.linalg.pinv(B)
    results = []
    for b, chosen in enumerate(choices):
        motion = Motion(robot, q[b], v[b], w_dot[b], chosen, forces[b], actuators, B, W, rank_tolerance)
        warn_if_poor(chosen, motion.condition)
        tau = motion.constraint_forces(rows, wanted[b]) if rows else motion.tau
        results.append((tau, spread @ tau, motion.a, motion.multipliers(tau)))
    tau, u, a, lam = (np.reshape(x, lead + np.shape(x[0])) for x in zip(*results))
    return InverseDynamics(tau, u, a, lam, constraint_wrenches(robot, lam), choices[-1].names,
                           judged(robot, motion.parts, actuators))


def _by_names(robot, accelerations, independent):
    """Independent coordinates, and their accelerations in that order."""
    names = tuple(accelerations) if independent is None else by_name(robot, independent).names
    values = []
    for name in names:
        if name not in accelerations:
            raise InputError(f"no acceleration given for {name!r}; given are {', '.join(map(repr, accelerations))}")
        count = len(by_name(robot, [name]).names)
        value = np.asarray(accelerations[name], dtype=np.float64)
        values.append(value[..., None] if count == 1 and value.shape[-1:] != (1,) else value)
    surplus = set(accelerations) - set(names)
    if surplus:
        raise InputError(f"accelerations of {', '.join(map(repr, surplus))} are given, but independent are "
                         f"{', '.join(map(repr, names))}")
    lead = np.broadcast_shapes(*(value.shape[:-1] for value in values))
    return names, np.concatenate([np.broadcast_to(x, lead + x.shape[-1:]) for x in values] or [np.empty(0)], axis=-1)


def rows_named(robot, name):
    """Numbers of the rows that a name stands for: one row, or all of a constraint; InputError if there are none."""
    if name in robot.constraint_names:
        return [k for k, owner in enumerate(robot.row_owners) if owner == name]
    if name in robot.row_names:
        return [robot.row_names.index(name)]
    raise InputError(f"unknown constraint or row {name!r}, "
                     f"{suggestion(name, (*robot.constraint_names, *robot.row_names))}")


def wanted_rows(robot, multipliers, lead):
    """Row numbers, and wanted values (count, rows)."""
    rows, columns = [], []
    for name, value in multipliers.items():
        found = rows_named(robot, name)
        value = np.asarray(value, dtype=np.float64)
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
