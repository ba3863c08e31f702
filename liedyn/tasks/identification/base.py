"""Base parameters: the smallest set of linear combinations of parameters that determines all forces (Gautier 1991).

The columns of a regressor over many states are examined in a fixed order, and each that depends linearly on the columns
before it is dropped: its parameter is added to those of these columns, with the coefficients of that dependence. Bodies
are ordered from the ground outward, and for each body first its rotational inertia, then its first moment, then its
mass, which gives the groupings of Khalil and Dombre: what a joint cannot distinguish of a body counts as part of the
body that carries it.

The random states satisfy the constraints: closed configurations with consistent velocities and accelerations.
"""
# mypy: ignore-errors

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import qr, solve_triangular

from liedyn.machine.arguments import non_negative, whole
from liedyn.machine.errors import ClosureError, InputError, SingularConfigurationError
from liedyn.machine.texts import printable
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.constraints.cluster_weights import null_space, pseudoinverse, rank_of_rows, ranks
from liedyn.mechanics.constraints.loops import constraint_bias, constraint_jacobian, velocity_error
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree.configuration import integrate, random_configuration
from liedyn.model.calls.boundary import states
from liedyn.model.packed import BODIES_AT, BODY_I, BODY_LINK
from liedyn.tasks.identification.dynamic_parameters import FRICTION_WIDTH, INERTIA, dynamic_parameters, joint_columns
from liedyn.tasks.identification.parameter_projection import allowed_motions, require_allowed
from liedyn.tasks.identification.regression import tree_regressor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Integers

LONGEST = 0.5
"""Largest change of a coordinate [rad, m] in a step of the walk from one closed configuration to the next."""
TRIALS = 50
"""Largest number of failed steps in succession, each half of the one before; then the walk continues in place."""
FARTHEST = 10.0
"""Ratio to the condition number of the constraints at home that the walk does not exceed: it avoids singularities."""


def random_states(robot, count, rng):
    """Random q, v and a of `count` states; q is independent for trees, and a random walk for closed mechanisms.

    Raises ClosureError if the home configuration cannot be closed.
    """
    v, a = rng.normal(size=(2, count, robot.nv))
    if not robot.row_names:
        return random_configuration(robot, rng, count), v, a
    q = closed_configurations(robot, count, rng)
    return q, *allowed(robot, q, v, a)


def closed_configurations(robot, count, rng):
    """A random walk on the constraint manifold, from home, within limits."""
    here, found = close(robot, robot.home), []
    worst = FARTHEST * condition(robot, here)
    for _ in range(count):
        length = LONGEST
        for _ in range(TRIALS):
            N = null_space(robot, constraint_jacobian(robot, here), RANK_TOLERANCE)
            step = N @ (N.T @ rng.normal(size=robot.nv))
            try:
                there = close(robot, integrate(robot, here, length * step / max(abs(step).max(), 1e-300)))
                if condition(robot, there) < worst and ((robot.lower <= there) & (there <= robot.upper)).all():
                    here = there
                    break
            except (ClosureError, SingularConfigurationError):
                pass
            length = max(length / 2.0, 1e-3)
        found.append(here)
    return np.array(found)


def condition(robot, q):
    """Ratio of the largest singular value of G to the smallest one above the rank tolerance."""
    G = constraint_jacobian(robot, q)
    s = np.linalg.svd(G, compute_uv=False)[:rank_of_rows(robot, G, RANK_TOLERANCE)]
    return s.max(initial=1.0) / s.min(initial=1.0)


def allowed(robot, q, v, a):
    """The velocities and accelerations nearest to given ones that satisfy the constraints."""
    G, v, a = constraint_jacobian(robot, q), v.copy(), a.copy()
    error = velocity_error(robot, q, v)
    plus = pseudoinverse(G, ranks(robot, G, RANK_TOLERANCE)[0])
    v -= np.einsum("bij,bj->bi", plus, error)
    gamma = constraint_bias(robot, q, v)
    a -= np.einsum("bij,bj->bi", plus, np.einsum("bij,bj->bi", G, a) - gamma)
    return v, a


NOTHING = 1e-9
"""Relative size of columns, and relative contribution of coefficients to a column, that count as zero."""
INSIDE = (4, 5, 6, 7, 8, 9, 1, 2, 3, 0)  # order of the ten parameters of a body: J, m c, m
CLEAR = 100.0
"""Factor by which the kept columns must be more independent than the dropped ones."""


class IdentificationWarning(UserWarning):
    """Measurements do not determine some combinations of parameters, or the number of base parameters is unclear."""


@dataclass(frozen=True, repr=False)
class BaseParameters:
    """Linear combinations of parameters that determine the forces, each named by its leading parameter.

    Attributes
    ----------
    names : tuple of str
        The leading parameters: those whose columns of the regressor are kept.
    expressions : tuple of str
        The combinations, such as ``link1.Jzz + link2.m``; numbers are rounded to six digits.
    parameters : tuple of str
        Names of all parameters, as in `dynamic_parameters`.
    columns : ndarray of int, shape (b,)
        Indices of the kept columns of the regressor.
    coefficients : ndarray, shape (b, c)
        Base parameters are this matrix times all c parameters: ``Y @ pi = Y[:, columns] @ (coefficients @ pi)``.
    alone : tuple of str
        Parameters that can be identified individually.
    grouped : tuple of str
        Parameters that can be identified in combinations only.
    unidentifiable : tuple of str
        Parameters that have no influence on any force.
    gap : tuple of float
        The smallest relative part of a kept column that is independent of those before it, and the largest one of a
        dropped column: the rank is clear if these differ by many powers of ten.

    Examples
    --------
    >>> import liedyn as ld
    >>> base = ld.base_parameters(ld.load("panda"))
    >>> base, base.expressions[0]
    (BaseParameters(43 combinations of 130 parameters, 14 of them alone; 21 without influence), \
'panda_link1.Jzz + panda_link2.Jyy')
    """

    names: tuple[str, ...]
    expressions: tuple[str, ...]
    parameters: tuple[str, ...]
    columns: Integers
    coefficients: Array
    alone: tuple[str, ...]
    grouped: tuple[str, ...]
    unidentifiable: tuple[str, ...]
    gap: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return (f"BaseParameters({len(self)} combinations of {len(self.parameters)} parameters, {len(self.alone)} of "
                f"them alone; {len(self.unidentifiable)} without influence)")

    def __str__(self) -> str:
        return "\n".join(map(printable, self.expressions))


def base_parameters(robot: Robot, include: Sequence[str] | dict[str, Any] = (), q: ArrayLike | None = None,
                    v: ArrayLike | None = None, a: ArrayLike | None = None, tolerance: float = 1e-6,
                    seed: int = 0) -> BaseParameters:
    """The linear combinations of parameters that determine the forces of a robot, by name; for closed mechanisms too.

    Parameters
    ----------
    robot : Robot
    include : sequence of str, or dict
        Parameters of joints in addition to those of bodies, as in `dynamic_parameters`.
    q, v, a : array_like, shapes (..., nq), (..., nv), (..., nv), optional
        A motion, whose forces are considered. Default: random states, which stand for any motion.
    tolerance : float
        Columns whose relative independent part is smaller than this count as dependent on those before them.
    seed : int
        Seed of the random states: the same seed gives the same result.

    Returns
    -------
    BaseParameters

    Raises
    ------
    InputError
        A name is unknown, a shape does not fit, only a part of q, v and a is given, or the motion opens loops.
    ClosureError
        Loops do not close at home, or at a given configuration.

    Warns
    -----
    IdentificationWarning
        Kept columns are hardly more independent than dropped ones, for example if dimensions that should be equal are
        rounded differently.

    Notes
    -----
    Gautier 1991, "Numerical calculation of the base inertial parameters of robots", J. Robotic Systems 8(4), with the
    groupings of Khalil and Dombre 2002, chapter 9.

    Examples
    --------
    >>> import liedyn as ld
    >>> base = ld.base_parameters(ld.load("slider_crank"))
    >>> print(base)
    crank.Jzz + rod.m + rod.Jzz
    crank.mx + rod.m
    crank.my
    rod.mx
    rod.my
    """
    tolerance, seed = non_negative("tolerance", tolerance), whole("seed", seed)
    given = [x for x in (q, v, a) if x is not None]
    if len(given) not in (0, 3):
        raise InputError("a motion needs q, v and a; without all three states are random")
    motion = None
    if given:
        lead, *motion = states(robot, q=q, v=v, a=a)
        require_allowed(robot, lead, *motion)
    found = structure(robot, include, motion=motion, tolerance=tolerance, seed=seed)
    warn_if_unclear(robot, found)
    return found


def warn_if_unclear(robot, base):
    """IdentificationWarning, attributed to the caller's caller, if the rank is unclear."""
    if base.gap[0] < CLEAR * base.gap[1]:
        kept, dropped = base.gap
        warnings.warn(f"the number of base parameters of {robot.name!r}, {len(base)}, is not clear: of a column that "
                      f"is kept {kept:.2g} is independent of those before it, of one that is dropped {dropped:.2g}; "
                      "base_parameters takes a tolerance above or below both", IdentificationWarning, stacklevel=3)


def structure(robot, include=(), free=slice(None), motion=None, tolerance=1e-6, seed=0):
    """`base_parameters` of the parameters that are free; the others are assumed to have no influence."""
    parameters = tuple(dynamic_parameters(robot, include))
    key = "base parameters", parameters, np.arange(len(parameters))[free].tobytes(), tolerance, seed
    if motion is None and key in robot._memo:
        return robot._memo[key]
    found = structure_of(robot, include, free, motion, tolerance, seed)
    if motion is None:
        robot._memo[key] = found
    return found


def structure_of(robot, include, free, motion, tolerance, seed):
    """`structure` without the cache."""
    parameters = tuple(dynamic_parameters(robot, include))
    if motion is None:
        freedom = max(robot.nv - len(robot.row_names), 1)
        motion = random_states(robot, 4 * len(parameters) // freedom + 20, np.random.default_rng(seed))
    Y = tree_regressor(robot, *motion, joint_columns(robot, include), FRICTION_WIDTH)
    if robot.row_names:
        Y = np.swapaxes(allowed_motions(robot, motion[0], None), 1, 2) @ Y
    Y /= np.maximum(abs(Y).max(axis=(1, 2), keepdims=True), NOTHING)  # all states get equal weight
    W = np.zeros((Y.shape[0] * Y.shape[1], len(parameters)))
    W[:, free] = Y.reshape(len(W), -1)[:, free]
    return grouped(robot, parameters, W, tolerance)


def grouped(robot, parameters, W, tolerance):
    """The `BaseParameters` of a matrix W, shape (equations, parameters)."""
    order = preference(robot, len(parameters))
    sizes = np.linalg.norm(W, axis=0)
    there = [k for k in order if sizes[k] > NOTHING * sizes.max(initial=0.0)]
    kept, parts = independent_columns(W[:, there] / sizes[there], tolerance)
    columns, others = [there[k] for k in kept], [k for k in there if k not in {there[k] for k in kept}]
    coefficients = np.zeros((len(columns), len(parameters)))
    coefficients[np.arange(len(columns)), columns] = 1.0
    if columns and others:
        Q, R = np.linalg.qr(W[:, columns] / sizes[columns])
        share = solve_triangular(R, Q.T @ (W[:, others] / sizes[others]))
        share[abs(share) < tolerance] = 0.0
        coefficients[:, others] = share * sizes[others] / sizes[columns][:, None]
    joins = (coefficients != 0.0).sum(axis=1)
    alone = tuple(parameters[k] for k, terms in zip(columns, joins) if terms == 1)
    seen = {parameters[k] for k in there}
    dropped = [part for k, part in enumerate(parts) if k not in kept]
    return BaseParameters(
        tuple(parameters[k] for k in columns), tuple(expression(parameters, row, k)
                                                     for row, k in zip(coefficients, columns)),
        parameters, np.array(columns, dtype=int), coefficients, alone,
        tuple(name for name in parameters if name in seen and name not in alone),
        tuple(name for name in parameters if name not in seen),
        (float(parts[kept].min(initial=1.0)), float(max(dropped, default=0.0))))


def preference(robot, count):
    """Indices of all parameters in the order of preference: bodies outward, then those of joints."""
    at = robot.packed.ints[BODIES_AT]
    links = [robot.packed.ints[at + BODY_I * b + BODY_LINK] for b in range(robot.nbodies)]
    bodies = sorted(range(robot.nbodies), key=links.__getitem__)
    return [INERTIA * b + k for b in bodies for k in INSIDE] + list(range(INERTIA * robot.nbodies, count))


def independent_columns(W, tolerance):
    """Indices of columns of unit length that are independent of those before them, and their independent parts.

    The triangular factor of W has the same columns up to a rotation; kept columns are orthogonalised twice, which is
    exact to rounding (Giraud, Langou and Rozloznik 2005).
    """
    R = qr(W, mode="r")[0][:W.shape[1]]
    Q, kept, parts = np.zeros((len(R), 0)), [], np.empty(R.shape[1])
    for k in range(R.shape[1]):
        left = R[:, k]
        for _ in range(2):
            left = left - Q @ (Q.T @ left)
        parts[k] = np.linalg.norm(left)
        if parts[k] > tolerance:
            Q = np.hstack([Q, left[:, None] / parts[k]])
            kept.append(k)
    return kept, parts


def expression(parameters, coefficients, leader):
    """A linear combination of parameters as text, the leading one first."""
    terms = [leader] + [k for k in np.flatnonzero(coefficients) if k != leader]
    text = ""
    for k in terms:
        c = coefficients[k]
        size = "" if abs(abs(c) - 1.0) < 5e-7 else f"{abs(c):.6g} "
        text += (" - " if c < 0.0 else " + ") + size + parameters[k]
    return text[3:] if text.startswith(" + ") else "-" + text[3:]
