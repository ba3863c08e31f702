"""Users' rows in variations, as far as the first derivatives that their functions give go.

Along direction 2, displacements and velocities with it, rows and forces vary by these derivatives. The mixed variation
asks for second ones where both directions displace something, but not where direction 2 changes accelerations and
multipliers alone, as parameters that displace nothing do: G a is linear in a, and G^T lambda in lambda.
"""
import numpy as np

from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.mechanics.constraints.loops import all_derivatives
from liedyn.mechanics.dynamics.terms import terms_kernel


def custom_rows(robot):
    """Which rows are users', or None if there are none."""
    names = {each.name for each in robot.model.constraints if each.kind == "custom"} & set(robot.active)
    return np.isin(robot.row_owners, list(names)) if names else None


def add_custom(robot, custom, motion, one, two, N_12, X_12, force, rows):
    """Add the variations of users' rows to those of all others, in arrays of
    `liedyn.linear.sensitivity.sensitivity_columns.Variations`.

    Raises
    ------
    InputError
        A function of the user fails.
    """
    packed, mask = robot.packed._replace(floats=robot.floats.copy()), custom[:, None]
    for b, (q, v, a, lam) in enumerate(zip(*motion)):
        def slopes(v, a, lam, q=q):
            psi_q, phi_q, phi_v, force_q = all_derivatives(packed, q, v, a, np.where(custom, lam, 0.0))
            return psi_q * mask, phi_q * mask, phi_v * mask, force_q

        G = terms_kernel(packed, q, v, np.empty(0))[2] * mask
        (psi_q, phi_q, phi_v, force_q), (still, *_) = slopes(v, a, lam), slopes(0.0 * v, a, lam)
        N, X, A, L = (x[b] for x in two)
        force[0, b] += force_q @ N + G.T @ L
        rows.g[b] += G @ N
        rows.psi[b] += psi_q @ N + G @ X
        rows.phi[b] += phi_q @ N + phi_v @ X + G @ A
        rows.psi_mixed[b] += psi_q @ N_12[b] + G @ X_12[b]
        for c in np.flatnonzero(one.X[b].any(axis=1) & N.any()):
            rows.psi_mixed[b, c] += (slopes(one.X[b, c], a, lam)[0] - still) @ N
        for j in np.flatnonzero((X != 0.0).any(axis=0) | (A != 0.0).any(axis=0) | (L != 0.0).any(axis=0)):
            by_X, _, _, by_L = slopes(np.ascontiguousarray(X[:, j]), a, np.ascontiguousarray(L[:, j]))
            by_A = slopes(v, a + A[:, j], lam)[1] - phi_q
            rows.psi_mixed[b, :, :, j] += one.N[b] @ (by_X - still).T
            rows.phi_mixed[b, :, :, j] += one.N[b] @ by_A.T
            force[1, b, :, :, j] += one.N[b] @ by_L.T
    raise_errors(robot.functions)
