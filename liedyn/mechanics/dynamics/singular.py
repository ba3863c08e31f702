"""Singular configurations: whether a state is at one, and how many digits are left near one.

A configuration is singular if the rows of the constraints have a smaller rank than at neighbouring ones on the
manifold. Rows that are redundant everywhere (a planar loop closed by a spatial pin: 5 rows of rank 2) do not make it
singular.

Near one, let kappa be the condition number of the independent rows, each divided by its length at home, with velocities
in radians and in a unit near the size of the mechanism (so that units do not matter). A state is closed to rounding,
eps. Where two branches of the manifold cross, the curve g(q) = eps is a hyperbola beside them, with an error of kappa
eps in position, kappa^2 eps in direction, kappa^3 eps in curvature, and kappa^4 eps in the derivative of the curvature.
Accelerations depend on the direction, and on the curvature times v^2; the linearization on one derivative more:

    error of a = kappa^2 (1 + kappa v^2 / |a|) eps        error of A = kappa^3 (1 + kappa v^2 / |a|) eps

Measured on the double four-bar A02 of the IFToMM benchmark, whose exact motion is known, in states that are closed to
rounding: from 1e-1 to 1e-4 rad, at rest and up to 10 rad/s, the digits are within one and a half of those of the
largest error of twenty (`tests/mechanics/test_singular_states.py`). In states that happen to be exact there are more.
"""
import sys
import warnings
from pathlib import Path

import numpy as np

from liedyn.machine.by_name import by_name
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import (
    ClosureError, ConditionWarning, InputError, LiedynError, SingularConfigurationError, of_the_batch,
)
from liedyn.mechanics.constraints.cluster_weights import rank_of_rows, weighed, weights_of
from liedyn.mechanics.constraints.loops import constraint_jacobian, rank_of
from liedyn.mechanics.dynamics.digits import ENOUGH, Scales, digits_left, digits_of_one, digits_states
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.model.packed import SPARSE
from liedyn.model.remembered import remembered

SUSPECT = 150.0
"""Condition numbers below this leave at least `ENOUGH` digits in the worst case above, and need no closer check."""
POOR_CONDITION = 1e8
"""Condition number of [G; R] above which half of the digits are lost, which causes a warning."""
LARGEST_SPREAD = 1e6
"""Condition numbers of the constraints from this on are computed by singular values."""
ASIDE = 0.05
"""Distance of the neighbouring configurations where the rank is compared [rad, or sizes of the mechanism as in
`liedyn.model.size.weights`]."""
ACCELERATIONS, LINEARIZATION = 2, 3
"""Powers of kappa for a state at rest."""
_PACKAGE = str(Path(__file__).resolve().parents[2])


def warn(text):
    """A `ConditionWarning` at the user's line that called the library."""
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, ConditionWarning, stacklevel=level)


# ---- at a singular configuration


def singular_states(robot, q, rank, tolerance):
    """A mask of the singular ones among configurations (count, nq) with these ranks."""
    if "regular rank" not in robot._memo:
        robot._memo["regular rank"] = _always_regular(robot, q[int(np.argmax(rank))], tolerance)
    singular = np.zeros(len(q), bool)
    if np.minimum.reduce(rank) >= robot._memo["regular rank"]:
        return singular
    for b in range(len(q)):
        if rank[b] < robot._memo["regular rank"]:
            singular[b] = _rank_nearby(robot, q[b], tolerance) > rank[b]
            if not singular[b]:  # singular on all of its branch
                robot._memo["regular rank"] = int(rank[b])
    return singular


def _always_regular(robot, q, tolerance):
    """A rank that only regular configurations have: the number of rows, or the rank near q off the manifold."""
    all_rows = int(min(robot.active_rows.sum(), robot.nv))
    sizes = dict(zip(robot.velocity_names, weights_of(robot)[1]))
    aside = q + ASIDE * np.cos(1.0 + np.arange(robot.nq)) * [sizes.get(name, 0.0) for name in robot.coordinate_names]
    try:
        return rank_of(robot, aside, tolerance)[0]
    except LiedynError:  # a function or a direction not defined nearby tells nothing about q
        return all_rows


def _rank_nearby(robot, q, tolerance):
    """The largest rank of some closed configurations near q."""
    # imported by name, as few states ask for it
    close = by_name("liedyn.mechanics.constraints.assembly:close")
    integrate = by_name("liedyn.mechanics.tree.configuration:integrate")
    G, largest = constraint_jacobian(robot, q), 0
    weighed_G, _, sizes = weighed(robot, G)
    K = np.linalg.svd(weighed_G)[2][rank_of_rows(robot, G, tolerance):].T
    for k in range(3 if K.size else 0):
        step = K @ np.cos(1.0 + k + np.arange(K.shape[1]))
        step *= ASIDE / np.abs(step).max()
        try:
            near = close(robot, integrate(robot, q, sizes * step))
        except (ClosureError, InputError):  # it does not close there, or a user's function is not defined
            continue
        largest = max(largest, rank_of(robot, near, tolerance)[0])
    return largest


def require_regular(robot, lead, q, rank, tolerance):
    """SingularConfigurationError at the first configuration that is singular."""
    singular = singular_states(robot, q, rank, tolerance)
    if singular.any():
        b = int(np.argmax(singular))
        with of_the_batch(lead, b):
            raise SingularConfigurationError(
                f"{robot.name!r} is at a singular configuration: the rank of its constraints is {rank[b]} here and "
                "larger next to it, which leaves the motion open; forward_dynamics(..., method='svd') has the "
                "accelerations of least norm", np.linalg.svd(constraint_jacobian(robot, q[b]), compute_uv=False))


def require_regular_one(robot, q, rank, tolerance):
    """`require_regular` for one configuration, usually in a tenth of a microsecond."""
    if rank != robot._memo.get("regular rank"):
        require_regular(robot, (), q.reshape(1, -1), np.array([rank]), tolerance)


# ---- near a singular configuration


@remembered
def _row_scales(robot):
    """Lengths of the rows at home, in units of the mechanism, followed by `long`; the factor by which scaling reduces
    the condition number there, 1 where that also depends on the units of velocities; and `long`, the part of it due to
    the number of loops: that of a long chain grows with it, also far from singular configurations."""
    G, of_columns = constraint_jacobian(robot, robot.home)[None], weights_of(robot)[1]
    G_units = G * of_columns
    scales = np.linalg.norm(G_units[0], axis=1)
    longest = scales.max(initial=0.0) or 1.0
    scales = np.where(scales > 1e-6 * longest, scales, longest)
    rank = np.array([rank_of(robot, robot.home, RANK_TOLERANCE)[0]])
    scaled = _spread(G_units / scales[:, None], rank)
    smaller, long = _spread(G, rank) / scaled, scaled if robot.packed.ints[SPARSE] else np.ones(1)
    return np.append(scales, long), float(smaller[0]) if (of_columns == 1.0).all() else 1.0, float(long[0])


def _spread(G, rank, largest=0.0):
    """Largest singular value, at least `largest`, divided by the smallest one that counts."""
    s = np.linalg.svd(G, compute_uv=False)
    return np.where(rank > 0, np.maximum(s[:, 0], largest) / s[np.arange(len(s)), np.maximum(rank, 1) - 1], 1.0)


def _is_large(robot, condition):
    """True if a condition number that grows with kappa is larger than usual for this robot."""
    if not condition > SUSPECT:
        return False
    _, smaller, long = _row_scales(robot)
    return condition > SUSPECT * long * max(1.0, smaller)


def is_suspect(robot, q, v, a, rank, condition, power):
    """True if a state needs the general check; warns if it has fewer digits than `ENOUGH`.

    `condition` is any condition number that grows with kappa. If it is large, compiled code computes the remaining
    digits (`liedyn.mechanics.dynamics.digits`) in a microsecond or two.
    """
    if not _is_large(robot, condition):
        return False
    if condition > POOR_CONDITION:  # the coordinates may be poor
        return True
    found = digits_of_one(robot, q, v, a, rank, _row_scales(robot)[0], power)
    if robot.functions:
        raise_errors(robot.functions)
    if found is None or not found[0] < LARGEST_SPREAD:
        return True
    if found[1] < ENOUGH:
        _warn_of_digits(robot, *found, power)
    return False


def warn_if_digits_are_lost(robot, q, v, a, rank, condition, power):
    """Warn if fewer digits than `ENOUGH` are left at some state; returns whether it did.

    `condition` (count) is any condition number that grows with kappa. Arrays have one row for each state.
    """
    if not _is_large(robot, condition.max()):
        return False
    (lengths, _, long), of_columns = _row_scales(robot), weights_of(robot)[1]
    q, v, a, rank = (np.ascontiguousarray(x[condition > SUSPECT]) for x in (q, v, a, rank))
    kappa, digits = _digits(robot, q, v, a, rank, power)
    far = np.flatnonzero(~(kappa < LARGEST_SPREAD))
    if len(far):
        # all rows may vanish together
        G = constraint_jacobian(robot, q[far]) * of_columns / lengths[:-1, None]
        kappa[far] = _spread(G, rank[far], 1.0) / long
        for b in far:
            digits[b] = digits_left(kappa[b], v[b] / of_columns, a[b] / of_columns, power)
    worst = int(digits.argmin())
    if digits[worst] >= ENOUGH:
        return False
    _warn_of_digits(robot, kappa[worst], digits[worst], power)
    return True


def states_with_few_digits(robot, q, v, rank, condition, power, enough=ENOUGH):
    """A mask of the states at which fewer digits than `enough` may be left, whatever the accelerations are: at all
    others `warn_if_digits_are_lost` does not warn.

    `rank` is that of all states; `condition` (count) is as there.
    """
    few, smaller = condition > POOR_CONDITION, 10.0 ** ((ENOUGH - enough) / (power + 1))
    if _is_large(robot, condition.max(initial=0.0) / smaller):
        large = np.flatnonzero(condition > smaller * SUSPECT)
        _, digits = _digits(robot, q[large], v[large], np.zeros((len(large), robot.nv)), np.full(len(large), rank),
                            power)
        few[large] |= ~(digits >= enough)
    return few


def _digits(robot, q, v, a, rank, power):
    """Condition numbers of the constraints, and the number of remaining digits, at rows of states."""
    lengths, _, long = _row_scales(robot)
    kappa, digits = np.empty(len(q)), np.empty(len(q))
    digits_states(robot.packed, (q, v, a), rank, Scales(lengths[:-1].copy(), long, power), (kappa, digits))
    raise_errors(robot.functions)
    return kappa, digits


def _warn_of_digits(robot, kappa, digits, power):
    what = "accelerations lose" if power == ACCELERATIONS else "the linearization loses"
    warn(f"{what} digits next to a singular configuration of {robot.name!r}: condition number of the constraints "
         f"{kappa:.2g}, about {max(0, int(digits))} digits are left")
