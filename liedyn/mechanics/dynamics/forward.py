"""Forward dynamics of any mechanism: one function with one result for several formulations."""
# mypy: ignore-errors

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import non_negative, one_of, require_robot
from liedyn.machine.by_name import by_name
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError, of_the_batch
from liedyn.mechanics.constraints.independent import (
    choose, given_coordinates, tangent_conditions,
)
from liedyn.mechanics.constraints.loops import require_defined
from liedyn.mechanics.constraints.undefined import require_rows
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.dynamics.dynamics_problem import no_inertia, problem, stabilized
from liedyn.mechanics.dynamics.dynamics_result import ForwardDynamics, names_of_rows
from liedyn.mechanics.dynamics.forward_one_state import nullspace_one_state, way_of
from liedyn.mechanics.dynamics.forward_states import FEW, PIVOTED, Choice, Found, nullspace_registers, nullspace_states
from liedyn.mechanics.dynamics.nullspace import (
    RANK_TOLERANCE, SINGULAR_CHOICE, SINGULAR_INERTIA, WRONG_COUNT, nullspace_kernel, solve_accelerations,
    solve_multipliers, solve_size,
)
from liedyn.mechanics.dynamics.nullspace import raise_for_status
from liedyn.mechanics.dynamics.singular import (
    ACCELERATIONS, POOR_CONDITION, SUSPECT, is_suspect, require_regular, require_regular_one, singular_states, warn,
    warn_if_digits_are_lost,
)
from liedyn.mechanics.dynamics.state import State, Terms
from liedyn.mechanics.elements.generalized import of_actuators, with_element_forces, without_elements
from liedyn.model.calls.boundary import states, wrenches
from liedyn.model.calls.checks import are_finite, copy_of

if TYPE_CHECKING:
    from typing import Literal

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike, IndependentNames, Wrenches

METHODS = {
    "nullspace": ("independent", "baumgarte"),
    "multiplier": ("baumgarte",),
    "svd": ("baumgarte",),
    "projection": ("inertia", "metric", "scale", "baumgarte"),
    "udwadia_kalaba": ("baumgarte",),
    "kane": ("independent", "condition_limit", "baumgarte"),
    "unified": ("sigma",),
    "momenta": ("independent", "baumgarte"),
}
"""The formulations, and the options of each."""

AT_SINGULAR = "svd", "projection", "udwadia_kalaba", "unified"
"""Formulations with pseudoinverses, which are defined at singular configurations, too."""

_SOLVERS = {
    "multiplier": "liedyn.mechanics.dynamics.multiplier:solve", "svd": "liedyn.mechanics.dynamics.svd:solve",
    "projection": "liedyn.mechanics.dynamics.projection:solve",
    "udwadia_kalaba": "liedyn.mechanics.dynamics.udwadia_kalaba:solve",
    "kane": "liedyn.mechanics.dynamics.kane:solve", "unified": "liedyn.mechanics.dynamics.unified:solve",
    "momenta": "liedyn.mechanics.dynamics.generalized_momenta:solve",
}
"""Where the other formulations are; each is imported when it is asked for."""


def warn_if_poor(chosen, condition):
    """ConditionWarning for independent coordinates that are close to singular."""
    if condition > POOR_CONDITION:
        # poor coordinates amplify rounding: digits are lost in proportion to the condition number
        warn(f"coordinates {', '.join(chosen.names)} are poorly conditioned here: cond [G; R] = {condition:.2g}, about "
             f"{max(0, round(-np.log10(condition * np.finfo(np.float64).eps)))} digits are left")


def _nullspace(robot, given, tolerance, lead, independent=None, baumgarte=None):
    """Data of `ForwardDynamics` in independent coordinates, state by state."""
    (q, v, tau, forces), (way, names, tangent) = given, way_of(robot, independent)
    with of_the_batch(lead, 0):
        chosen = choose(robot, q[0], names, tolerance)
    choice = Choice(chosen.rows, chosen.virtual, way, tolerance)
    a, lam, force, rank, condition, last = _in_coordinates(robot, given, choice)
    first_bad = np.flatnonzero(rank < 0) if rank[0] < 0 or len(rank) > 1 else ()
    if len(first_bad):
        _raise_at(robot, lead, int(first_bad[0]), given, independent, tolerance)
    if not (are_finite(a) and are_finite(force)):  # NaN times zero is NaN: G^T lam detects every bad row
        _raise_overflow(robot, lead, q, v, a, force)
    require_regular(robot, lead, q, rank, tolerance)
    worst = int(condition.argmax()) if len(condition) > 1 else 0
    few = warn_if_digits_are_lost(robot, q, v, a, rank, condition, ACCELERATIONS)
    if condition[worst] > POOR_CONDITION and not few:
        # no coordinates are better than a tangent space
        poor = tangent_conditions(robot, q[worst:worst + 1], tolerance)[0] if tangent else condition[worst]
        warn_if_poor(_solved_at(robot, worst, given, independent, tolerance)[0], poor)
    if baumgarte is not None:
        problems = problem(robot, lead, q, v, tau, forces, tolerance)
        a, lam = _stabilized_nullspace(problems, baumgarte)
        force = np.einsum("bij,bi->bj", problems.G, lam)
    known = {} if tangent else {"condition": condition}
    return known | dict(a=a, lam=lam, constraint_force=force, rank=rank,
                        _found=(last, int(rank[-1]), None if tangent else chosen.names, tolerance))


def _in_coordinates(robot, given, choice):
    """Of `nullspace_states`: a, lam, G^T lam, rank, condition, and its data on the last state or a function for
    them."""
    count, n, m = len(given[0]), robot.nv, len(robot.row_names)
    last = np.zeros(1 + m + n)
    found = Found(np.empty((count, n)), np.empty((count, m)), np.empty((count, n)), np.full(count, -1), np.empty(count))

    state, lanes = State(*given), choice
    if m > 0 and count >= FEW:
        if choice.way == PIVOTED:  # the number of coordinates
            first, found_first = (each._make(x[:1] for x in each) for each in (state, found))
            nullspace_states(robot.packed, first, choice, found_first, last)
            lanes = choice._replace(virtual=np.full(max(0, n - found.rank[0]), -1))
        if choice.way != PIVOTED or found.rank[0] >= 0:
            nullspace_registers(robot.packed, state, lanes, found, last)
    if np.minimum.reduce(found.rank) >= 0:  # computed in lanes, without data on the last state
        return *found, functools.partial(_told, robot, state.q[-1:].copy(), choice)
    nullspace_states(robot.packed, state, choice, found, last)
    raise_errors(robot.functions)
    return *found, last


def _told(robot, q, choice):
    """The data of `nullspace_states` on a configuration (1, nq), if coordinates and rows depend on nothing else."""
    n, m = robot.nv, len(robot.row_names)
    row, last = np.zeros((1, n)), np.zeros(1 + m + n)
    found = Found(row, np.empty((1, m)), row.copy(), np.full(1, -1), np.empty(1))
    nullspace_states(robot.packed, State(q, row, row, np.empty((1, 0))), choice, found, last)
    return last


def _solved_at(robot, b, given, independent, tolerance):
    """The coordinates of state b, and the result of `nullspace_kernel` for it."""
    q, v, tau, forces = (x[b] for x in given)

    def solved_in(choice):
        chosen = choose(robot, q, choice, tolerance)
        return chosen, nullspace_kernel(robot.packed, q, v, tau, forces, chosen.rows, chosen.virtual, tolerance)

    chosen, solved = solved_in(independent)
    if independent is None and solved[0] in (WRONG_COUNT, SINGULAR_CHOICE):
        return solved_in("auto")  # the declared coordinates fit other switch states or other configurations
    return chosen, solved


def _raise_at(robot, lead, b, given, independent, tolerance):
    """Raise the error for state b."""
    with of_the_batch(lead, b):
        chosen, solved = _solved_at(robot, b, given, independent, tolerance)
        require_rows(robot, (), solved[7][None])
        raise_for_status(robot, given[0][b], chosen, (solved[0] or SINGULAR_INERTIA, *solved[1:]))


def _raise_overflow(robot, lead, q, v, a, force):
    """Raise the error if accelerations or constraint forces (count, nv) are not finite."""
    require_defined(robot, *(x.reshape(lead + x.shape[1:]) for x in (q, v)))
    b, j = np.argwhere(~(np.isfinite(a) & np.isfinite(force)))[0]
    with of_the_batch(lead, int(b)):
        raise InputError(f"numbers overflow: acceleration and constraint force of {robot.velocity_names[j]!r} are "
                         f"{a[b, j]} and {force[b, j]}")


def _stabilized_nullspace(given, baumgarte):
    """Accelerations and multipliers with a stabilised right side; they do not depend on the choice of coordinates."""
    wanted, model = stabilized(given, baumgarte), given.robot.packed
    a, lam = np.empty_like(given.h), np.empty_like(given.gamma)
    work = np.empty(solve_size(model))
    for b in range(len(a)):
        terms = Terms(given.M[b], given.h[b], given.G[b], wanted[b])
        status, rank, _ = solve_accelerations(model, terms, given.tau[b], given.ranking.tolerance, work, a[b])
        if status == SINGULAR_INERTIA:
            raise no_inertia(given, b)
        solve_multipliers(model, work, lam[b])
    return a, lam


def _checked_options(method, options):
    """The options that are not None; InputError for an unknown method, or an option that it does not have."""
    one_of("method", method, METHODS)
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in METHODS[method]:
            fits = ", ".join(repr(other) for other, takes in METHODS.items() if name in takes)
            raise InputError(f"method {method!r} takes no option {name!r}: it takes {', '.join(METHODS[method])}; "
                             f"{name!r} is for {fits}")
    return given


def forward_dynamics(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, method: str = "nullspace",
                     independent: IndependentNames = None, f_ext: Wrenches | None = None,
                     rank_tolerance: float = RANK_TOLERANCE, *, baumgarte: tuple[float, float] | None = None,
                     sigma: float | None = None, inertia: Literal["M_c", "M_c'", "M_c''"] | None = None,
                     metric: ArrayLike | Literal["inertia"] | None = None, scale: float | None = None,
                     condition_limit: float | None = None, u: ArrayLike | None = None) -> ForwardDynamics:
    """Accelerations and constraint forces of a constrained mechanism, by any of eight formulations.

    All give the same accelerations and minimum-norm multipliers wherever they are defined.

    Parameters
    ----------
    robot : Robot
        With its switched constraints (``robot.switched``), at its time (``robot.at``). The state decides whether
        one-sided constraints are open, slide or stick; those switched to "sliding" or "sticking" are equations.
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] that satisfies the constraints.
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s] that keeps them satisfied.
    tau : array_like, shape (..., nv)
        Generalised forces [N m, N]; give tau or u.
    method : str
        - "nullspace": independent coordinates, by pivoting, names or tangent space (Spencer 2004, 2.3 and 2.4);
        - "multiplier": Lagrange multipliers (Spencer, 2.1);
        - "svd": null space and pseudoinverse by singular values; also defined at singular configurations (Spencer,
          3.1), as are "projection", "udwadia_kalaba" and "unified";
        - "projection": constraint inertia matrices M_c, M_c', M_c'' (Aghili 2005);
        - "udwadia_kalaba": the explicit equation (Xu and Liu 2017, eq. 5-9);
        - "kane": embedded constraints, with other speeds chosen where they fail (Gillespie 2003, section 4);
        - "unified": all constraints as velocity constraints, also for inconsistent states (Yun and Sarkar 1998);
        - "momenta": the rate of the canonical momenta of independent coordinates (Spencer, 5.1; `canonical_equations`).
    independent : sequence of str, "auto", "tangent" or None
        Coordinates in which the motion is solved; the accelerations do not depend on the choice. None: the robot's
        declared ones if they fit the active constraints, else "auto" (pivoting). For "nullspace"; for "kane" names of
        tree coordinates, or "auto".
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] applied to bodies, each in its body's own frame, as for `rnea`.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero; rows and columns are weighted by the sizes of
        the mechanism (`liedyn.machine.linalg.ranks`).
    baumgarte : tuple of float (alpha, beta), optional
        Stabilisation ``g'' + 2 alpha g' + beta^2 g = 0`` [1/s] (Spencer, eq. 3.8). For all methods but "unified". The
        gains of Xu and Liu, eq. 52, are 2 alpha and beta^2. Nonholonomic rows have no g: ``psi' + 2 alpha psi = 0``.
    sigma : float, optional
        For "unified": rate [1/s] at which ``psi = G v - b`` decays; 0 by default. From a velocity fitted with
        `liedyn.mechanics.dynamics.unified_velocity` the residual decays at the same rate.
    inertia : {"M_c", "M_c'", "M_c''"}, optional
        For "projection": which constraint inertia matrix; "M_c" by default.
    metric : array_like, shape (nv,) or (nv, nv), or "inertia", optional
        For "projection": Aghili's metric tensor W of the velocities, for mixed units; 1 by default.
    scale : float, optional
        For "projection" with "M_c''": Aghili's gamma; by default of the size of M.
    condition_limit : float, optional
        For "kane": condition number of A above which other generalised speeds are chosen; 1e4 by default.
    u : array_like, shape (..., nu), optional
        Instead of tau: forces of the robot's actuators [N m, N], in the order of ``robot.actuator_names``.

    Returns
    -------
    ForwardDynamics
        Accelerations ``a``, multipliers ``lam``, ``constraint_wrenches`` by name, ``rank``, ``redundant_rows``,
        ``condition``, ``independent``, ``constraint_force``, ``multipliers`` by constraint, ``contacts`` by name, and
        for "svd" ``singular_values`` and ``indicator``.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, both tau and u are given or neither, an unknown name, method or
        option, an option that the method does not take, or too many or few independent coordinates; a contact
        penetrates by more than 1e-6, or an impact is due.
    SingularConfigurationError
        A constraint has no direction here (the points of a distance coincide, a disk lies flat);
        accelerations of contacts contradict each other (Painleve); the configuration is singular (for "nullspace",
        "multiplier", "kane" and "momenta"; the other methods set ``singular``), the independent coordinates do not
        determine the motion here, or some motion has no inertia; for "multiplier", "udwadia_kalaba", and "projection"
        with "M_c" or "M_c'", also if only one of the open tree has none.

    Warns
    -----
    ConditionWarning
        Near a singular configuration, or in poorly conditioned independent coordinates, few digits are left; the
        message says how many (`liedyn.mechanics.dynamics.singular`).

    Notes
    -----
    Every method accepts redundant rows, and the zero rows of inactive constraints. At a singular configuration, where
    rows are redundant that are independent in its neighbourhood, "svd", "projection", "udwadia_kalaba" and "unified"
    use a pseudoinverse: motions that only the lost rows prevented are free, and equations that contradict each other
    are satisfied in the sense of least squares.

    At a state that violates the constraints, redundant rows demand accelerations that contradict each other in
    proportion to the violation. Then "nullspace", "multiplier" and "kane" satisfy the independent rows chosen by
    pivoting, and the other methods all rows in the sense of least squares.

    Contacts: the closed ones and their sliding friction are determined first; the rest is the dynamics of the robot
    with closed contacts as equations (`liedyn.mechanics.contact.contact_modes`). That friction does not depend on
    `baumgarte` and `sigma`. Multipliers that would pull are replaced by others with the same force, if such exist.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> r = ld.forward_dynamics(loader, loader.home, [0.0] * 8, [0.0] * 8)
    >>> r.rank, r.a.shape, sorted(r.constraint_wrenches)
    (6, (8,), ['lift_pin', 'link_pin', 'tilt_pin'])
    >>> other = ld.forward_dynamics(loader, loader.home, [0.0] * 8, [0.0] * 8, method="projection", inertia="M_c'")
    >>> bool(abs(other.a - r.a).max() < 1e-9)
    True
    """
    if not hasattr(robot, "packed"):
        require_robot(robot)
    if u is not None or tau is None:
        tau = of_actuators(robot, q, tau, u)
    if robot.elements is not None:
        robot, tau = without_elements(robot), with_element_forces(robot, q, v, tau)
    plain = f_ext is baumgarte is sigma is inertia is metric is scale is condition_limit is None
    if plain and type(method) is str and method == "nullspace" and not watches(robot):
        found = _one_state(robot, q, v, tau, independent, rank_tolerance)
        if found is not None:
            return found
    options = _checked_options(method, dict(
        independent=independent, baumgarte=baumgarte, sigma=sigma, inertia=inertia, metric=metric, scale=scale,
        condition_limit=condition_limit))
    rank_tolerance = non_negative("rank_tolerance", rank_tolerance)
    if watches(robot):
        # imported by name, as contacts need a formulation, and so this package
        return by_name("liedyn.mechanics.dynamics.with_contacts:dynamics_with_contacts")(
            forward_dynamics, robot, State(q, v, tau, f_ext), rank_tolerance, method=method, **options)
    if "independent" in options:
        options["independent"] = given_coordinates("independent", independent)
    lead, q, v, tau = states(robot, q=q, v=v, tau=tau)
    forces, singular = wrenches(robot, f_ext, lead), np.zeros(len(q), bool)
    if not len(q):
        raise InputError("forward_dynamics needs at least one state")
    if method == "nullspace":
        known = _nullspace(robot, (q, v, tau, forces), rank_tolerance, lead, **options) | {"singular": singular}
    else:
        given = problem(robot, lead, q, v, tau, forces, rank_tolerance)
        if method in AT_SINGULAR:
            singular = singular_states(robot, q, given.rank, rank_tolerance)
        else:
            require_regular(robot, lead, q, given.rank, rank_tolerance)
        solution = by_name(_SOLVERS[method])(given, **options)
        warn_if_digits_are_lost(robot, q, v, solution.a, given.rank, given.ratio, ACCELERATIONS)
        known = dict(a=solution.a, lam=solution.lam, rank=solution.rank, condition=solution.condition,
                     constraint_force=np.einsum("bij,bi->bj", given.G, solution.lam),
                     redundant_rows=names_of_rows(robot, solution.dependent), independent=solution.independent,
                     singular_values=solution.singular_values, indicator=solution.indicator, singular=singular)
    return _result(robot, lead, copy_of(q), known)


def _one_state(robot, q, v, tau, independent, rank_tolerance):
    """The result of "nullspace" for one usual state, else None."""
    found = nullspace_one_state(robot, q, v, tau, independent, rank_tolerance)
    if robot.functions:
        raise_errors(robot.functions)
    if found is None:
        return None
    (a, lam, force, told, q_kept), names = found
    rank, condition = int(told.item(0)), told.item(1)
    if rank < 0 or condition > SUSPECT and is_suspect(robot, q, v, a, rank, condition, ACCELERATIONS):
        return None  # the general path raises the error
    require_regular_one(robot, q, rank, rank_tolerance)
    known = {"a": a, "lam": lam, "constraint_force": force, "rank": rank, "_at": (robot, q_kept),
             "_found": (told, rank, names, rank_tolerance)}
    if names is not None:
        known["condition"] = condition
    return ForwardDynamics.of(known)


def _result(robot, lead, q, known):
    """A batch of results in the user's shape."""
    known = {name: x.reshape(lead + x.shape[1:]) if isinstance(x, np.ndarray) else x for name, x in known.items()}
    if not lead:
        known |= {name: kind(known[name]) for name, kind in (("rank", int), ("condition", float), ("singular", bool))
                  if name in known}
    return ForwardDynamics.of(known | {"_at": (robot, q)})
