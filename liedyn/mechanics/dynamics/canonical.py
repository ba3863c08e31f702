"""Canonical momenta of a constrained mechanism: from velocities and back, and their equations of motion.

The equations are in `liedyn.mechanics.dynamics.generalized_momenta`.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import non_negative, require_robot
from liedyn.machine.errors import InputError, SingularConfigurationError, of_the_batch
from liedyn.mechanics.constraints.independent import given_coordinates
from liedyn.mechanics.constraints.loops import velocity_error
from liedyn.mechanics.dynamics.generalized_momenta import basis, momenta_of_state, turning
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.elements.generalized import with_element_forces, without_elements
from liedyn.model.calls.boundary import as_floats, rows_of, states, wrenches

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, IndependentNames, Wrenches


class _Momenta:
    """Configurations with independent coordinates, chosen at the first one, and the `basis` of each."""

    def __init__(self, robot, lead, q, independent, rank_tolerance):
        tolerance = non_negative("rank_tolerance", rank_tolerance)
        independent = given_coordinates("independent", independent)
        if not len(q):
            raise InputError("canonical momenta need at least one state")
        self.robot, self.lead, self.q, self.at = robot, lead, q, []
        for b in range(len(q)):
            with of_the_batch(lead, b):
                self.at.append(basis(robot, q[b], self.at[0].chosen if b else independent, tolerance))

    def velocities(self, p):
        """v (count, nv) for momenta p (count, p)."""
        drift = -velocity_error(self.robot, self.q, np.zeros((len(p), self.robot.nv)))  # b of G v = b
        return np.array([self._velocity(b, p[b], drift[b]) for b in range(len(p))])

    def _velocity(self, b, p, drift):
        at = self.at[b]
        v_p = at.G_sharp @ drift[at.rows]
        inertia = at.K.T @ at.M @ at.K
        try:
            factor = np.linalg.cholesky(inertia)
        except np.linalg.LinAlgError:
            with of_the_batch(self.lead, b):
                raise SingularConfigurationError(
                    f"no inertia resists some motion of {self.robot.name!r} that its loops allow: K^T M K is not "
                    "positive definite", np.linalg.svd(inertia, compute_uv=False)) from None
        v = v_p
        for _ in range(2):  # the second pass removes rounding errors of the first
            left = p - at.K.T @ (at.M @ v)
            v = v + at.K @ np.linalg.solve(factor.T, np.linalg.solve(factor, left))
        return v


def _given_momenta(robot, q, p, independent, rank_tolerance, **forces):
    """`_Momenta`, and rows of p and of forces (..., nv), broadcast over their leading axes."""
    require_robot(robot)
    lead, q, *forces = states(robot, q=q, **forces)
    free = len(_Momenta(robot, (), q[:1], independent, rank_tolerance).at[0].chosen.names)
    p = as_floats("p", p, free)
    try:
        wide = np.broadcast_shapes(lead, p.shape[:-1])
    except ValueError:
        raise InputError(f"leading axes do not broadcast: q {lead + (robot.nq,)}, p {p.shape}") from None
    q, *forces = (rows_of(name, x.reshape(lead + x.shape[1:]), wide, x.shape[1])
                  for name, x in (("q", q), *(("tau", x) for x in forces)))
    return _Momenta(robot, wide, q, independent, rank_tolerance), rows_of("p", p, wide, free), *forces


def canonical_momenta(robot: Robot, q: ArrayLike, v: ArrayLike, independent: IndependentNames = None,
                      rank_tolerance: float = RANK_TOLERANCE) -> Array:
    """Momenta conjugate to independent coordinates of a mechanism, its constraints included.

    Parameters
    ----------
    robot : Robot
        With its switched constraints, at its time. One-sided ones count if they are switched to "sliding" or
        "sticking".
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] that satisfies the constraints.
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s] that keeps them satisfied, body-fixed for spherical and free joints.
    independent : sequence of str, "auto", "tangent" or None
        Independent coordinates, as for `forward_dynamics`; in a batch, those chosen at the first state are used for
        all.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.

    Returns
    -------
    p : ndarray, shape (..., degrees of freedom)
        ``dT/dw = K^T M v`` [kg m^2/s, kg m/s] for the independent velocities w, in their order; conserved where the
        coordinate is cyclic and no force acts along it.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, an unknown name, too many or few coordinates, or no state.
    SingularConfigurationError
        The configuration is singular for these coordinates, or some motion has no inertia.

    Notes
    -----
    Spencer 2004, 2.4 and 5.1: v = K w + v_p with G K = 0.

    Examples
    --------
    >>> import liedyn as ld
    >>> five_bar = ld.load("five_bar")
    >>> p = ld.canonical_momenta(five_bar, five_bar.home, [0.0] * 4)
    >>> p.shape
    (2,)
    """
    require_robot(robot)
    lead, q, v = states(robot, q=q, v=v)
    found = _Momenta(robot, lead, q, independent, rank_tolerance)
    p = np.array([at.K.T @ (at.M @ x) for at, x in zip(found.at, v)])
    return p.reshape(lead + p.shape[1:])


def velocity_from_momenta(robot: Robot, q: ArrayLike, p: ArrayLike, independent: IndependentNames = None,
                          rank_tolerance: float = RANK_TOLERANCE) -> Array:
    """Velocity of a mechanism from its canonical momenta, the inverse of `canonical_momenta`.

    Parameters
    ----------
    robot : Robot
        With its switched constraints, at its time.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] that satisfies the constraints.
    p : array_like, shape (..., degrees of freedom)
        Momenta [kg m^2/s, kg m/s] of the independent velocities.
    independent : sequence of str, "auto", "tangent" or None
        Independent coordinates, as for `canonical_momenta`.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.

    Returns
    -------
    v : ndarray, shape (..., nv)
        [rad/s, m/s], body-fixed for spherical and free joints; it satisfies all constraints, moving ones too.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, an unknown name, too many or few coordinates, or no state.
    SingularConfigurationError
        The configuration is singular for these coordinates, or some motion has no inertia.

    Notes
    -----
    ``v = K (K^T M K)^-1 (p - K^T M v_p) + v_p`` with G v_p = b.

    Examples
    --------
    >>> import liedyn as ld
    >>> five_bar = ld.load("five_bar")
    >>> v = ld.velocity_from_momenta(five_bar, five_bar.home, [1.0, 2.0])
    >>> bool(abs(ld.canonical_momenta(five_bar, five_bar.home, v) - [1.0, 2.0]).max() < 1e-12)
    True
    """
    found, p = _given_momenta(robot, q, p, independent, rank_tolerance)
    v = found.velocities(p)
    return v.reshape(found.lead + v.shape[1:])


def canonical_equations(robot: Robot, q: ArrayLike, p: ArrayLike, tau: ArrayLike, independent: IndependentNames = None,
                        f_ext: Wrenches | None = None, rank_tolerance: float = RANK_TOLERANCE) -> tuple[Array, Array]:
    """Equations of motion in canonical momenta: the rates of q and p, without accelerations and multipliers.

    Parameters
    ----------
    robot : Robot
        With its switched constraints, at its time.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] that satisfies the constraints.
    p : array_like, shape (..., degrees of freedom)
        Momenta [kg m^2/s, kg m/s] of the independent velocities.
    tau : array_like, shape (..., nv)
        Generalised forces [N m, N]; force elements are added.
    independent : sequence of str, "auto", "tangent" or None
        Independent coordinates, as for `canonical_momenta`.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, each in its body's own frame, as for `rnea`.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.

    Returns
    -------
    v : ndarray, shape (..., nv)
        Velocity [rad/s, m/s], the rate of q, body-fixed for spherical and free joints.
    p_dot : ndarray, shape (..., degrees of freedom)
        [N m, N]

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, an unknown name, too many or few coordinates, or no state.
    SingularConfigurationError
        The configuration is singular for these coordinates, or some motion has no inertia.

    Notes
    -----
    ``pdot = K^T (tau + Q) + Kdot^T M v``, Q the forces of `momentum_terms`: Hamilton's equations for holonomic
    independent coordinates; those of Poincare and Hamel for quasi-velocities and for nonholonomic systems, in the
    momenta of the independent velocities. Derived from Spencer 2004, 2.4, as 5.1 suggests.

    Examples
    --------
    >>> import liedyn as ld
    >>> five_bar = ld.load("five_bar")
    >>> v, p_dot = ld.canonical_equations(five_bar, five_bar.home, [1.0, 2.0], [0.0] * 4)
    >>> v.shape, p_dot.shape
    ((4,), (2,))
    """
    found, p, tau = _given_momenta(robot, q, p, independent, rank_tolerance, tau=tau)
    v, F = found.velocities(p), wrenches(robot, f_ext, found.lead)
    if robot.elements is not None:
        tau = with_element_forces(robot, found.q, v, tau)
        robot = without_elements(robot)
    p_dot = np.empty_like(p)
    for b, at in enumerate(found.at):
        momenta, forces, _ = momenta_of_state(robot.packed, found.q[b], v[b], F[b])
        p_dot[b] = at.K.T @ (tau[b] + forces) + turning(robot, found.q[b], v[b], at).T @ momenta
    return v.reshape(found.lead + v.shape[1:]), p_dot.reshape(found.lead + p.shape[1:])
