"""The result of forward dynamics; derived quantities are computed when they are read."""
# mypy: ignore-errors

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.by_name import by_name
from liedyn.mechanics.constraints.independent import tangent_conditions, tangent_names
from liedyn.model.remembered import LazyResult, remembered

if TYPE_CHECKING:
    from typing import Any

    from liedyn.typing import Array, Booleans


@dataclass(frozen=True)
class ForwardDynamics(LazyResult):
    """Accelerations and forces of a constrained mechanism.

    Attributes
    ----------
    a : ndarray, shape (..., nv)
        Accelerations [rad/s^2, m/s^2], stabilisation included.
    lam : ndarray, shape (..., m)
        Multipliers of ``M a + c = tau + tau_joint - G^T lam``, rows as in ``robot.row_names``; of minimum norm if rows
        are redundant.
    constraint_wrenches : dict
        By constraint name the wrench (moment, force) [N m, N], shape (..., 6), that it exerts on the body at its child
        side: of a loop in the cut frame with the axes the user declared, of a contact about the origin of its frame B
        in the axes of frame A (`liedyn.mechanics.constraints.constraint_wrenches`). Couplings, cables and custom
        rows have none.
    rank : int or ndarray
        Number of independent constraint rows.
    redundant_rows : tuple of str
        Names of rows that depend on the others (at the last state of a batch), of constraints that are switched on.
    condition : float or ndarray
        Condition number of the matrix that the formulation inverts besides the inertia: [G; R] (1-norm) for
        "nullspace", A for "kane", the nonzero singular values of G for "svd" and "unified", M^-1/2 G^T for
        "udwadia_kalaba", G M^-1 G^T for "multiplier", the constraint inertia matrix itself for "projection". If
        pivoting chooses the coordinates, neighbouring states of a batch share a choice if it suits all of them.
    independent : tuple of str
        Names of the independent coordinates used (at the last state of a batch); empty if there are none.
    constraint_force : ndarray, shape (..., nv)
        ``G^T lam`` [N m, N], the part of the generalised forces that the constraints balance.
    multipliers : dict
        ``lam`` by constraint name, shape (..., rows of the constraint).
    singular_values : ndarray or None, shape (..., m)
        Singular values of G, largest first, zeros after the first nv ("svd" only).
    indicator : ndarray or None, shape (..., m)
        ``|u_i . Gdot v|`` for each singular value s_i, the norm of ``v_i u_i^T Gdot v``; divided by s_i it is an
        acceleration, which stays finite on the way to a singular configuration only if the indicator vanishes with s_i.
        Entries after the rank are the part of ``Gdot v`` outside the range of G ("svd" only).
    singular : bool or ndarray
        True at a singular configuration, where the constraints have a smaller rank than in its neighbourhood. Then the
        motion is not determined: ``a`` is the one of least error in ``G a = gamma``, with the new motions as further
        degrees of freedom ("svd", "projection", "udwadia_kalaba" and "unified": the other methods raise there).
    contacts : dict
        Mode of each one-sided constraint by name: "open", "leaving" (touching, but separating), "sliding" (also without
        friction), "sticking", or "off"; for a batch, arrays of these, shape (...). Those of inextensible cables are
        shown as taut where they are equal to "sliding", as slack for "open", and as going slack for "leaving".

    Examples
    --------
    >>> import liedyn as ld
    >>> five_bar = ld.load("five_bar")
    >>> r = ld.forward_dynamics(five_bar, five_bar.home, [0.0] * 4, [0.0] * 4, method="svd")
    >>> r.rank, r.redundant_rows, r.singular_values.round(3).tolist()
    (2, ('pin.wx', 'pin.wy', 'pin.vz'), [2.576, 1.598, 0.0, 0.0, 0.0])
    """

    a: Array
    lam: Array
    rank: int
    redundant_rows: tuple[str, ...]
    condition: float
    independent: tuple[str, ...]
    constraint_force: Array
    singular_values: Array | None = None
    indicator: Array | None = None
    singular: bool | Booleans = False
    # the robot, configurations (count, nq), contacts if the state decides
    _at: tuple[Any, ...] | None = field(default=None, repr=False)
    # output `last` of `nullspace_states`, or a function that computes it; the rank, the names of the given coordinates
    # (None for the tangent space), and the tolerance
    _found: tuple[Any, ...] | None = field(default=None, repr=False)

    _later = (lambda name, result: {each: found(result) for each, found in _DERIVED.items() if each == name},)

    @functools.cached_property
    def constraint_wrenches(self) -> dict[str, Array]:
        robot, q = self._at[:2]
        wrenches_at = by_name("liedyn.mechanics.constraints.constraint_wrenches:wrenches_at")
        found = wrenches_at(robot, robot.t, q, self.lam.reshape(len(q), self.lam.shape[-1]))
        return {name: F.reshape(self.lam.shape[:-1] + (6,)) for name, F in found.items()}

    @functools.cached_property
    def multipliers(self) -> dict[str, Array]:
        return {name: self.lam[..., k] for name, k in _rows_by_constraint(self._at[0])[1].items()}

    @functools.cached_property
    def contacts(self) -> dict[str, Any]:
        return self._at[2] if len(self._at) > 2 else self._at[0].contacts

    def __getstate__(self) -> Any:  # without the robot
        _ = self.constraint_wrenches, self.multipliers, self.contacts, [getattr(self, name) for name in _DERIVED]
        return {name: value for name, value in vars(self).items() if name not in ("_at", "_found", "_later")}


def _found(result):
    told, *others = result._found
    return told() if callable(told) else told, *others


def _redundant_rows(result):
    told, rank, _, _ = _found(result)
    n, m = result.a.shape[-1], result.lam.shape[-1]
    return names_of_rows(result._at[0], sorted(map(int, told[len(told) - m - n + rank:len(told) - n])))


def _independent(result):
    told, rank, names, _ = _found(result)
    n, m = result.a.shape[-1], result.lam.shape[-1]
    if names is None:
        return tangent_names(n - rank)
    if told[-1 - m - n]:
        return tuple(result._at[0].velocity_names[k] for k in np.flatnonzero(told[len(told) - n:]))
    return names


def _condition(result):
    condition = tangent_conditions(*result._at[:2], float(result._found[3]))
    return condition.reshape(result.lam.shape[:-1]) if result.lam.ndim > 1 else float(condition[0])


_DERIVED = {"redundant_rows": _redundant_rows, "independent": _independent, "condition": _condition}


@remembered
def _rows_by_constraint(robot):
    """Names of the active rows, by number; numbers of the rows of each constraint."""
    active = set(robot.active)
    owned = {name: [k for k, owner in enumerate(robot.row_owners) if owner == name] for name in robot.constraint_names}
    return ({k: name for k, (name, owner) in enumerate(zip(robot.row_names, robot.row_owners)) if owner in active},
            {name: slice(k[0], k[-1] + 1) if k else slice(0, 0) for name, k in owned.items()})


def names_of_rows(robot, numbers):
    """Names of those of the rows that are active."""
    names = _rows_by_constraint(robot)[0]
    return tuple(names[k] for k in numbers if k in names)
