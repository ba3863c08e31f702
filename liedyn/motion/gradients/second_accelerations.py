"""Second derivatives of constrained accelerations and multipliers by all coordinates, velocities and forces.

Along columns 1 and 2 of `forward_dynamics_derivatives`, (N, X, a', lambda') = (1, 0, a_q, lambda_q), (0, 1, a_v,
lambda_v) and (0, 0, a_tau, lambda_tau), the equations M a + G^T lambda = tau - h and G a = gamma vary to second order
by

    M a_12 + G^T lambda_12 = -F_12        G a_12 = -phi_12

with the mixed second variations of `liedyn.linear.sensitivity.variations`, those of force elements among them. Of
displacements one after the other they have a part that changes its sign with their order, which is left out: what
remains belongs to q exp(d). Of redundant rows the multipliers of least norm, lambda = G y, have besides

    (1 - G G^+) (lambda_12 - G_12 y - G_1 y_2 - G_2 y_1) = 0        G y_1 = lambda_1 - G_1 y
"""
# mypy: ignore-errors
import numpy as np

from liedyn.linear.sensitivity.law_sensitivity import element_slopes
from liedyn.linear.sensitivity.linear_model import FOLLOWS, inverse_of_rank
from liedyn.linear.sensitivity.link_sensitivity import Columns
from liedyn.linear.sensitivity.sensitivities import without_second_derivatives
from liedyn.linear.sensitivity.sensitivity_columns import Variations
from liedyn.linear.sensitivity.variations import Motion
from liedyn.machine.errors import InputError
from liedyn.mechanics.constraints.loops import constraint_jacobian
from liedyn.mechanics.dynamics.forward import forward_dynamics
from liedyn.mechanics.tree.crba import crba
from liedyn.motion.gradients.accelerations import forward_dynamics_derivatives


def acceleration_second_derivatives(robot, q, v, tau):
    """Second derivatives of a and lambda at rows of states, two dicts of (rows, size, nv, nv) by pairs of names "q",
    "v", "tau": others are zero. As `forward_dynamics_derivatives`, and where redundant rows contradict each other as
    coordinates vary InputError is raised."""
    require_second_accelerations(robot)
    first, rank = forward_dynamics_derivatives(robot, q, v, tau), np.atleast_1d(forward_dynamics(robot, q, v, tau).rank)
    (count, n), one = v.shape, _columns(first)
    two = Columns(*(each[:, :, :2 * n] for each in one))
    at = Motion(*(np.array(x, order="C") for x in (q, v, first.a, first.lam)))  # those of frameworks are read-only
    along = Variations(robot, at, [([], [])] * (2 * n), False, element_slopes(robot, q, v, None, (count,)))
    found = along.along(one, two)
    G, M = constraint_jacobian(robot, q)[:, None], crba(robot, q)[:, None]
    inverse, phi = inverse_of_rank(G[:, 0], rank)[:, None], found.rows.phi_mixed
    a = -inverse @ phi
    if np.abs(G @ a + phi).max(initial=0.0) > FOLLOWS * max(1.0, np.abs(phi).max(initial=0.0)):
        raise InputError(f"redundant rows of {robot.name!r} contradict each other to second order as coordinates vary "
                         "each on its own: accelerations have no second derivatives there")
    a = a - first.a_tau[:, None] @ (found.mixed + M @ a)
    lam = -inverse.swapaxes(2, 3) @ (found.mixed + M @ a)
    if (rank < G.shape[2]).any():
        turned = _turned_rows(along, at, (one, two), inverse[:, 0])
        lam = lam + turned - G @ (inverse @ turned)
    return tuple(_blocks(x.swapaxes(1, 2), n) for x in (a, lam))


def require_second_accelerations(robot):
    """InputError if the robot has users' functions with first derivatives only."""
    unknown = without_second_derivatives(robot)
    if unknown:
        raise InputError(f"no second derivatives of accelerations: {unknown}")


def _columns(first):
    """The columns of q, v and tau, one array each of (rows, size, 3 nv)."""
    count, n = first.a.shape
    N, X = np.zeros((2, count, n, 3 * n))
    N[:, :, :n] = X[:, :, n:2 * n] = np.eye(n)
    return Columns(N, X, np.concatenate([first.a_q, first.a_v, first.a_tau], axis=2),
                   np.concatenate([first.lam_q, first.lam_v, first.lam_tau], axis=2))


def _turned_rows(along, at, columns, inverse):
    """G_12 y + G_1 y_2 + G_2 y_1: G y varies as velocities of the rows do, without the part of moving frames."""
    (one, two), y = columns, inverse @ at.lam[:, :, None]
    by_N = along.along(Columns(None, y, None, None), Columns(two.N, None, None, None)).rows.psi_mixed[:, 0]
    y_2 = inverse @ (two.L - by_N)
    y_1 = np.concatenate([y_2, inverse @ one.L[:, :, y_2.shape[2]:]], axis=2)
    moving, still = (along.of(at._replace(v=np.ascontiguousarray(c * y[:, :, 0]))).along(
        Columns(one.N, c * y_1, None, None), Columns(two.N, c * y_2, None, None)).rows.psi_mixed for c in (1.0, 0.0))
    return moving - still


def _blocks(x, n):
    """Blocks (rows, size, nv, nv) by pairs of names, of an array (rows, size, 3 nv, 2 nv) along columns 1 and 2."""
    q, v, tau = slice(n), slice(n, 2 * n), slice(2 * n, 3 * n)
    both = 0.5 * (x[:, :, :2 * n] + x[:, :, :2 * n].swapaxes(2, 3))
    return {("q", "q"): both[:, :, q, q], ("v", "v"): both[:, :, v, v], ("q", "v"): both[:, :, q, v],
            ("q", "tau"): x[:, :, tau, q].swapaxes(2, 3)}
