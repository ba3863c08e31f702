"""Physically consistent bodies: positive definite pseudo-inertias, and distances between bodies.

The pseudo-inertia P = sum of m (r, 1) (r, 1)^T is linear in the ten parameters, and a distribution of mass with these
parameters exists if and only if P is positive semidefinite (Wensing, Kim and Slotine 2018): this combines positive
mass, positive inertia and the triangle inequality. With P_0 = C C^T of the prior body and P = C S C^T, S is 1 for the
prior, whatever its size and place. Two distances from it, equal to second order and independent of frames and units:

    quadratic   |S - 1|^2 / 2                (Lee, Wensing and Park 2020)
    entropic    tr S - log det S - 4         (Lee, Wensing and Park 2020; twice Kullback and Leibler's)
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from liedyn.machine.errors import LiedynError

ACCURACY = 1e-7
"""Tolerances of the solver for objective and constraints; its default of 1e-8 is sometimes below rounding."""
SMALLEST = 1e-6
"""Lower bound of the eigenvalues of S, above the solver's errors: a body with a zero eigenvalue is degenerate."""
THICKNESS = 0.1
"""Relative thickness given to thin bodies (rods, particles), whose P_0 has no inverse, for distances."""
_TRIANGLE = np.triu_indices(3)


def pseudo_inertia(pi):
    """P, shape (..., 4, 4), of ten parameters, shape (..., 10)."""
    J = np.zeros(pi.shape[:-1] + (3, 3))
    J[(..., *_TRIANGLE)] = J[(..., *_TRIANGLE[::-1])] = pi[..., 4:]
    P = np.empty(pi.shape[:-1] + (4, 4))
    P[..., :3, :3] = np.trace(J, axis1=-2, axis2=-1)[..., None, None] / 2.0 * np.eye(3) - J
    P[..., 3, :3] = P[..., :3, 3] = pi[..., 1:4]
    P[..., 3, 3] = pi[..., 0]
    return P


def parameters_of(P):
    """The ten parameters of a pseudo-inertia, shape (..., 10)."""
    spread = P[..., :3, :3]
    J = np.trace(spread, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - spread
    return np.concatenate([P[..., 3:, 3], P[..., :3, 3], J[(..., *_TRIANGLE)]], axis=-1)


def reference(pi):
    """The lower triangular C with C C^T = P_0 of a body with mass; and whether P_0 had to be regularised.

    The principal second moments about the centre of mass are at least `THICKNESS` squared times the largest one; a
    particle gets the size of its distance from the origin, or of one metre.
    """
    P, c = pseudo_inertia(pi), pi[1:4] / pi[0]
    values, axes = np.linalg.eigh(P[:3, :3] - pi[0] * np.outer(c, c))
    size = values.max() if values.max() > 1e-12 * pi[0] * max(c @ c, 1.0) else pi[0] * (c @ c if c.any() else 1.0)
    thick = np.maximum(values, THICKNESS ** 2 * size)
    P[:3, :3] = (axes * thick) @ axes.T + pi[0] * np.outer(c, c)
    return np.linalg.cholesky(P), bool((values < thick).any())


def parameters_by_shape(C):
    """The (10, 16) matrix that maps the entries of S, column by column, to the parameters of C S C^T."""
    return np.stack([parameters_of(C @ unit.reshape(4, 4, order="F") @ C.T) for unit in np.eye(16)], axis=1)


class IdentificationError(LiedynError):
    """No physically consistent bodies satisfy the bounds, or the solver failed.

    Attributes
    ----------
    status : str
        Status that the solver returned.
    """

    status: str

    def __init__(self, message: str, status: str) -> None:
        super().__init__(message)
        self.status = status


def solver():
    """The module `cvxpy`.

    Raises LiedynError if cvxpy is not installed.
    """
    try:
        import clarabel  # noqa: F401  what cvxpy calls
        import cvxpy
    except ImportError:
        raise LiedynError("identification of bodies that can exist needs cvxpy and clarabel: "
                          "pip install 'liedyn[identification]'") from None
    return cvxpy


def nearest_consistent(equations, shapes, prior, trust, joints, distance, bounds):
    """The pi that minimises |A pi - y|^2 / 2 + trust (distance from the prior), with physically consistent bodies.

    Parameters
    ----------
    equations : tuple
        A (rows, c) and y (rows), measurements of unit variance.
    shapes : dict
        The factor C of each free body, by index of its first parameter.
    prior : ndarray, shape (c,)
        Parameters that are not free keep these values.
    trust : float
    joints : dict
        By index of a joint parameter: the change of it that counts like a change of S by 1, and its lowest value.
    distance : str
        "entropic" or "quadratic".
    bounds : dict
        By index of a parameter its lowest and highest value.

    Raises
    ------
    IdentificationError
        The solver found no solution.
    """
    cp, (A, y) = solver(), equations
    left = y - A @ prior
    blocks, variables, terms, limits, values = [], [], [], [], {}
    for first, C in shapes.items():
        S, T = cp.Variable((4, 4), PSD=True), parameters_by_shape(C)
        left = left + A[:, first:first + 10] @ prior[first:first + 10]
        blocks.append(A[:, first:first + 10] @ T)
        variables.append(cp.vec(S, order="F"))
        values |= {first + k: T[k] @ variables[-1] for k in range(10)}
        if distance == "entropic":
            terms.append(cp.trace(S) - cp.log_det(S))
        else:
            terms.append(0.5 * cp.sum_squares(S - np.eye(4)))
            limits.append(S >> SMALLEST * np.eye(4))
    for k, (scale, lowest) in joints.items():
        x = cp.Variable()
        blocks.append(A[:, k:k + 1] * scale)
        variables.append(cp.reshape(x, (1,), order="F"))
        values[k] = prior[k] + scale * x
        terms.append(0.5 * cp.square(x))
        if lowest > -np.inf:
            limits.append(x >= (lowest - prior[k]) / scale)
    for k, (low, up) in bounds.items():
        unit = max(abs(prior[k]), abs(low) if np.isfinite(low) else 0.0, abs(up) if np.isfinite(up) else 0.0, 1e-12)
        limits += [values[k] / unit >= low / unit] * bool(np.isfinite(low))
        limits += [values[k] / unit <= up / unit] * bool(np.isfinite(up))
    everything = np.hstack([*blocks, left[:, None]])
    # a triangular factor with as many rows as unknowns, equivalent to all measurements up to a constant
    R = np.linalg.qr(everything, mode="r")[:everything.shape[1] - 1]
    fit = cp.sum_squares(R[:, :-1] @ cp.hstack(variables) - R[:, -1])
    largest = max(trust, 1.0)
    problem = cp.Problem(cp.Minimize(0.5 / largest * fit + trust / largest * sum(terms)), limits)
    try:
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=ACCURACY, tol_gap_rel=ACCURACY, tol_feas=ACCURACY)
    except cp.error.SolverError as error:
        raise IdentificationError(f"the solver failed: {error}", "failed") from None
    if problem.status != cp.OPTIMAL:
        why = "; the bounds contradict each other or what can exist" * ("infeasible" in problem.status)
        raise IdentificationError(f"no bodies were found: the solver says {problem.status}{why}", problem.status)
    pi = prior.copy()
    for k, value in values.items():
        pi[k] = np.squeeze(value.value)
    for k, (_, lowest) in joints.items():
        pi[k] = max(pi[k], lowest)  # the solver may violate the bound slightly
    return pi
