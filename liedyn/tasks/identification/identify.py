"""Identification of parameters from measured motions and forces: least squares, and physical consistency.

The equations K^T tau = K^T Y pi are linear. The base parameters by weighted least squares, with their covariance,
contain all information of the measurements (Gautier and Khalil 1992). Among all parameters with nearly the same fit,
those nearest to the prior with positive definite pseudo-inertias are chosen (`liedyn.tasks.identification.physical`).
"""
from __future__ import annotations

# mypy: ignore-errors


import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from liedyn.machine.arguments import between, flag, floats, names, one_of, positive
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.machine.linalg.separated import separated
from liedyn.mechanics.constraints.independent import given_coordinates
from liedyn.mechanics.elements.generalized import actuator_matrix
from liedyn.model.calls.boundary import as_floats, rows_of, states
from liedyn.tasks.identification.base import IdentificationWarning, expression, structure, warn_if_unclear
from liedyn.tasks.identification.dynamic_parameters import FRICTION_WIDTH, INERTIA, dynamic_parameters, joint_columns
from liedyn.tasks.identification.force_noise import FINEST, NUMERICAL, estimated_noise, known_noise, whitened
from liedyn.tasks.identification.identification_result import Identification
from liedyn.tasks.identification.parameter_projection import allowed_motions, chosen_coordinates, require_allowed
from liedyn.tasks.identification.physical import nearest_consistent, reference
from liedyn.tasks.identification.regression import known_forces, tree_regressor
from liedyn.tasks.identification.signals import low_pass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike, IndependentNames

NAMED = 0.1
"""Parameters with less than this part of the largest share are omitted in the names of unexcited combinations."""


class Equations(NamedTuple):
    """The equations y = W pi, grouped by states.

    Attributes
    ----------
    W : ndarray, shape (count, p, c)
    y : ndarray, shape (count, p)
    F : ndarray, shape (count, p, m)
        Effect of each measured force of typical size on the equations.
    names : tuple of str
        The coordinates to which the p equations belong.
    """

    W: np.ndarray
    y: np.ndarray
    F: np.ndarray
    names: tuple


def identify(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike | None = None,
             u: ArrayLike | None = None, include: Sequence[str] | dict[str, Any] = (),
             bodies: Sequence[str] | None = None, independent: IndependentNames = None, noise: ArrayLike | None = None,
             consistent: bool = True, distance: str = "entropic", prior_deviation: float = 1.0,
             bounds: dict[str, Any] | None = None, parallel: tuple[float, ...] | None = None,
             friction_width: float = FRICTION_WIDTH) -> Identification:
    """Masses, first moments, inertias, friction and armatures from measured motions and forces.

    Parameters
    ----------
    robot : Robot
        The robot before identification: its lengths are exact, its parameters are the prior.
    q : array_like, shape (..., nq)
        Measured configurations [rad, m; quaternions (x, y, z, w)] that close the loops; `measured_motion` computes
        them, and the velocities and accelerations, from encoder signals.
    v, a : array_like, shape (..., nv)
        Velocities and accelerations [rad/s, m/s; rad/s^2, m/s^2].
    tau : array_like, shape (..., nv), optional
        Measured generalised forces [N m, N], zero for passive joints.
    u : array_like, shape (..., nu), optional
        Measured inputs of the actuators, instead of tau.
    include : sequence of str, or dict
        Parameters of joints in addition to those of bodies: "armature", "damping", "coulomb", "offset", as in
        `dynamic_parameters`.
    bodies : sequence of str, optional
        Bodies to be identified; the others keep their parameters. Default: all bodies with mass.
    independent : sequence of str, "auto", "tangent" or None
        Independent coordinates of a mechanism with constraints, as for `regressor`.
    noise : array_like, shape (p,), optional
        Standard deviations of the equations [N m, N], by which they are weighted. Default: one for each measured force
        and one for each equation, in all states, by restricted maximum likelihood.
    consistent : bool
        True for physically consistent bodies. If false, `parameters` are those nearest to the prior with the base
        parameters of least squares, and cvxpy is not needed.
    distance : str
        Distance from the prior, "entropic" or "quadratic". Bodies with singular inertia (rods without thickness,
        particles) get a thickness of a tenth of their size there.
    prior_deviation : float
        Relative standard deviation of the moments of the prior's bodies. Small numbers keep the prior where
        the measurements are weak, large ones let estimates follow noise.
    bounds : dict, optional
        Lowest and highest value by name of a parameter, ``{"hand.m": (0.5, 0.8)}``, either may be infinite.
    parallel : tuple of float, optional
        (period, cutoff) of samples of one motion [s, Hz]: both sides of the equations are filtered by the same
        `low_pass`, and reduced to as many samples as are then independent (Gautier's parallel filter). Default: no
        filter.
    friction_width : float
        Width of Coulomb friction [rad/s, m/s], as for `regressor`.

    Returns
    -------
    Identification
        Base parameters with their standard deviations, all parameters, and ``robot`` with these.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a name is unknown, neither or both of `tau` and `u` are given,
        there are fewer equations than parameters, or velocities or accelerations open loops.
    ClosureError
        A configuration does not close the loops.
    IdentificationError
        No parameters satisfy the bounds, or the solver fails.
    LiedynError
        cvxpy or clarabel is not installed.

    Warns
    -----
    IdentificationWarning
        The motion does not excite a combination of parameters, which the message names. Or the number of base
        parameters is unclear, see `base_parameters`.

    Notes
    -----
    Wensing, Kim and Slotine 2018, IEEE RA-L 3(1); Lee, Wensing and Park 2020, IEEE T-RO 36(2); weights: Patterson and
    Thompson 1971, Biometrika 58(3). The standard deviations include the uncertainty of the estimated weights as in
    Kenward and Roger 1997, Biometrics 53(3). They hold for force noise that is independent from sample to sample; noise
    of the motion is included as far as it appears in the forces, but it also biases estimates slightly towards zero.

    Examples
    --------
    >>> import numpy as np, liedyn as ld
    >>> robot, rng = ld.load("five_bar"), np.random.default_rng(0)
    >>> q = ld.close(robot, robot.home, q1=rng.uniform(1.9, 2.3, 100), q2=rng.uniform(-1.4, -1.1, 100))
    >>> v = ld.complete_velocity(robot, q, {"q1": 3.0 * rng.normal(size=100), "q2": 3.0 * rng.normal(size=100)})
    >>> tau = rng.normal(scale=30.0, size=(100, 4)) * [1.0, 1.0, 0.0, 0.0]
    >>> a = ld.forward_dynamics(robot, q, v, tau).a
    >>> tau[:, :2] += rng.normal(scale=0.1, size=(100, 2))  # what sensors add
    >>> found = ld.identify(robot, q, v, a, tau, consistent=False)
    >>> right = found.base.coefficients @ list(found.prior.values())
    >>> bool((abs(found.estimate - right) < 4.0 * found.deviation).all())
    True
    """
    wanted, width = joint_columns(robot, include), positive("friction_width", friction_width)
    independent, consistent = given_coordinates("independent", independent), flag("consistent", consistent)
    distance = one_of("distance", distance, ("entropic", "quadratic"))
    trust = between("prior_deviation", prior_deviation, 1e-6, 1e6) ** -2
    prior = dynamic_parameters(robot, include)
    limits, free = bounds_by_number(bounds, prior), free_parameters(robot, bodies, len(wanted))
    lead, q, v, a = states(robot, q=q, v=v, a=a)
    if not len(q):
        raise InputError("identify needs at least one state")
    require_allowed(robot, lead, q, v, a)
    chosen = chosen_coordinates(robot, q, independent)
    tau, B = forces(robot, q, lead, tau, u, chosen)
    pi = np.array(list(prior.values()))
    W, y, F, equations = linear_equations(robot, (q, v, a), (tau, B), include, chosen, width, lead)
    y = y - W[..., ~free] @ pi[~free]
    if parallel is not None:
        W, y, F = filtered(parallel, lead, W, y, F)
        lead = y.shape[:1]
    base = structure(robot, include, free)
    warn_if_unclear(robot, base)
    if y.size <= len(base):
        raise InputError(f"{y.size} equations do not determine {len(base)} base parameters: more states are needed")
    noise = noise_of(noise, F, W[..., base.columns], y)
    data, yb = whitened(noise.C, W, y)
    data[:, ~free] = 0.0
    Wb = data[:, base.columns]
    before = base.coefficients[:, free] @ pi[free]
    estimate, covariance, condition, hidden = least_squares(Wb, yb, before, noise)
    unexcited = tuple(expression(base.names, row / abs(row).max(), int(abs(row).argmax())) for row in hidden)
    for text in unexcited:
        warnings.warn(f"the motion of {robot.name!r} does not excite {text}: changed together these change no force "
                      "beyond the noise; along it parameters stay what they were", IdentificationWarning, stacklevel=2)
    if consistent:
        found = nearest_consistent((data, yb), shapes(wanted, pi, free, data), pi, trust,
                                   joints(wanted, data, pi, yb), distance, limits)
    else:
        if limits:
            raise InputError("bounds are met by consistent=True only")
        found = nearest_linear(base, pi, free, estimate, before)
    residual = (y - W[..., free] @ found[free]).reshape(lead + y.shape[1:])
    deviation = np.sqrt(covariance.diagonal())
    deviation[(hidden != 0.0).any(axis=0)] = np.inf

    def known(q, v, a):
        _, q, v, a = states(robot, q=q, v=v, a=a)
        return projected(robot, q, known_forces(
            robot, q, v, a, include, tree_regressor(robot, q, v, a, wanted, width), width), chosen)

    return Identification(
        dict(zip(prior, found.tolist())), prior, base, estimate, deviation, covariance,
        base.coefficients[:, free] @ found[free], condition,
        np.sqrt(np.diagonal(noise.C, axis1=1, axis2=2).mean(axis=0)), residual, equations, unexcited,
        y.size - len(base), (robot, wanted, include, width, known))


def forces(robot, q, lead, tau, u, chosen):
    """Measured generalised forces (count, nv), and the effect of each measured force of its typical size (..., m).

    The second array is empty if each force is an equation of its own, whose noise is that of the equation.
    """
    if (tau is None) == (u is None):
        raise InputError("identify needs either tau, generalised forces, or u, inputs of the actuators")
    if tau is not None:
        tau = rows_of("tau", as_floats("tau", tau, robot.nv), lead, robot.nv)
        size = np.sqrt((tau ** 2).mean(axis=0))
        measured = (size > 0.0) & (chosen is not None)
        return tau, np.broadcast_to(np.diag(size)[:, measured], (len(q), robot.nv, measured.sum()))
    nu = len(robot.actuator_names)
    u = rows_of("u", as_floats("u", u, nu), lead, nu)
    B = np.array([actuator_matrix(robot, at) for at in q])
    return (B @ u[..., None])[..., 0], B * np.sqrt((u ** 2).mean(axis=0))


def bounds_by_number(bounds, prior):
    """Bounds by index of the parameter."""
    if not isinstance(bounds, dict | None):
        raise InputError(f"bounds must be a dict of pairs by name of a parameter, got {shown(bounds)}")
    known, found = {name: k for k, name in enumerate(prior)}, {}
    for name, pair in (bounds or {}).items():
        if name not in known:
            raise InputError(f"bounds: unknown parameter {shown(name)}, {suggestion(str(name), known)}")
        low_high = floats(f"bounds of {name!r}", pair)
        if low_high.shape != (2,) or not low_high[0] <= low_high[1]:
            raise InputError(f"bounds of {name!r} must be the lowest and the highest value, got {shown(pair)}")
        found[known[name]] = low_high.tolist()
    return found


def free_parameters(robot, bodies, extra):
    """A mask of the parameters to be identified: of bodies with mass, and of joints."""
    if bodies is not None:
        bodies = names("bodies", bodies)
        for name in bodies:
            if name not in robot.body_names:
                raise InputError(f"unknown body {shown(name)} in bodies, {suggestion(name, robot.body_names)}")
    free = [body.mass > 0.0 and (bodies is None or body.name in bodies) for body in robot.model.bodies]
    for body, is_free in zip(robot.model.bodies, free):
        if bodies is not None and body.name in bodies and not is_free:
            raise InputError(f"body {body.name!r} has no mass to begin with: give it one near what is expected")
    return np.concatenate([np.repeat(free, INERTIA), np.ones(extra, dtype=bool)]).astype(bool)


def projected(robot, q, x, chosen):
    """K^T x for rows of x, or x itself for trees."""
    return x if chosen is None else np.einsum("sij,si...->sj...", allowed_motions(robot, q, chosen), x)


def linear_equations(robot, motion, forces, include, chosen, width, lead):
    """The `Equations` of measured states; forces = (tau, B), measured ones and how the actuators act."""
    (q, v, a), (tau, B) = motion, forces
    Y = tree_regressor(robot, q, v, a, joint_columns(robot, include), width)
    y = tau - known_forces(robot, q, v, a, include, Y, width)
    if chosen is None:
        return Equations(Y, y, B, robot.velocity_names)
    Kt = np.swapaxes(allowed_motions(robot, q, chosen, lead), 1, 2)
    return Equations(Kt @ Y, (Kt @ y[..., None])[..., 0], Kt @ B, chosen.names)


def filtered(parallel, lead, W, y, F):
    """W and y after the same low pass, without the samples within one period of the cutoff from either end.

    Samples are kept at twice the cutoff frequency, so that the noise of neighbouring ones is independent.
    """
    if not isinstance(parallel, tuple | list) or len(parallel) != 2:
        raise InputError(f"parallel must be a period and a cutoff, got {shown(parallel)}")
    if len(lead) != 1:
        raise InputError(f"parallel takes samples of one motion, of shape (samples, ...), got leading axes {lead}")
    W, y = low_pass(W, *parallel), low_pass(y, *parallel)
    period = 1.0 / (parallel[0] * parallel[1])
    keep = slice(int(np.ceil(period)), len(y) - int(np.ceil(period)), max(int(period / 2.0), 1))
    if not len(y[keep]):
        raise InputError(f"parallel: {len(y)} samples are less than the three periods of the cutoff that are needed")
    return W[keep], y[keep], F[keep]


def noise_of(noise, F, W, y):
    """The `Noise` of the equations: from given standard deviations, or from the residuals of least squares."""
    if noise is None:
        return estimated_noise(F, W, y)
    p, noise, size = y.shape[1], floats("noise", noise), abs(y).max() or 1.0
    if noise.shape not in ((), (p,)) or not ((FINEST ** 2 * size < noise) & (noise < size / FINEST ** 2)).all():
        raise InputError(f"noise must be positive, of shape ({p},), one for each equation, and not be 1e12 times less "
                         f"or more than the largest force, {size:.3g}; got {shown(noise)}")
    return known_noise(noise, y.shape)


def least_squares(W, y, before, noise):
    """Estimate, covariance, condition number, and rows of combinations that are not excited.

    Along a direction that is not excited the estimate is the prior. A direction is not excited if its standard
    deviation, as a force, exceeds all measured forces, or if its singular value is rounding.
    """
    scale = np.linalg.norm(W, axis=0)
    scale[scale == 0.0] = 1.0
    U, s, Vt = np.linalg.svd(W / scale, full_matrices=False)
    known = (s > NUMERICAL * s.max(initial=0.0)) & (s * np.linalg.norm(y) > 1.0)
    change = (U.T @ (y - W @ before))[known] / s[known]
    estimate = before + (Vt[known].T @ change) / scale
    left = y - W @ estimate
    variance = left @ left / max(len(y) - known.sum(), 1)
    half = Vt[known].T / s[known] / scale[:, None]
    hidden = separated(Vt[~known])
    large = abs(hidden) >= NAMED * abs(hidden).max(axis=1, keepdims=True, initial=0.0)
    hidden = np.where(large, hidden / scale, 0.0)  # a step along the direction, in the units of the parameters
    condition = s.max(initial=1.0) / s.min(initial=np.inf) if s.min(initial=1.0) > 0.0 else np.inf
    return estimate, variance * half @ noise.spread(U[:, known]) @ half.T, float(condition), hidden


def shapes(wanted, pi, free, data):
    """The reference factor C of each free body with any influence, by index of its first parameter."""
    bodies = range(0, len(pi) - len(wanted), INERTIA)
    return {k: reference(pi[k:k + INERTIA])[0] for k in bodies if free[k] and data[:, k:k + INERTIA].any()}


def joints(wanted, data, pi, y):
    """By index of a joint parameter: the change that causes forces of the size of all forces; its lower bound."""
    found = {}
    for k, (word, _) in enumerate(wanted, len(pi) - len(wanted)):
        size = np.linalg.norm(data[:, k])
        found[k] = (max(abs(pi[k]), np.linalg.norm(y) / size if size > 0.0 else 1.0),
                    -np.inf if word == "offset" else 0.0)
    return found


def nearest_linear(base, pi, free, estimate, before):
    """All parameters nearest to the prior, in relative units, that have the given base parameters."""
    unit = np.maximum(abs(pi), 1e-3 * abs(pi).max(initial=0.0)) * free
    L = base.coefficients * unit
    return pi + unit * (np.linalg.pinv(L) @ (estimate - before))
