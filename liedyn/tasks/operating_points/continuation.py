"""Branches of equilibria over a parameter, by pseudo-arclength (Keller 1977; Allgower and Georg 1990, 6 and 8).

There is one unknown more than there are balances, including the parameter, so that operating points form a curve
(`liedyn.tasks.operating_points.curve`). At a special point a test function, or a count of eigenvalues, changes between
two steps; its root locates the point (`liedyn.tasks.operating_points.special_points`).
"""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import flag, floats, names, number, positive, require_robot, whole
from liedyn.machine.errors import (
    ClosureError, InputError, ModelError, SingularConfigurationError, shown, suggestion,
)
from liedyn.machine.texts import printable
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.tasks.operating_points.branch_slopes import moving_eigenvalues
from liedyn.tasks.operating_points.curve import Curve, OffTheCurve
from liedyn.tasks.operating_points.equilibrium_problem import FAMILY, Problem
from liedyn.tasks.operating_points.special_points import eigenvalues, is_undecided, special_points
from liedyn.tasks.operating_points.trim_result import Trim

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    from liedyn.model.robot import Robot
    from liedyn.tasks.operating_points.special_points import SpecialPoint
    from liedyn.typing import Array, ArrayLike, Complexes

EASY, LONGER, SHORTER, LEAST = 3, 1.5, 0.5, 1e-7
"""Number of corrections below which the next step is longer; factors of longer and shorter steps; and the fraction of
the first step at which the branch is given up."""
TURNS = 0.9
"""Cosine of the largest angle by which the tangent may turn within a step."""
ELSEWHERE, TRIES = 0.8, 3
"""Fraction of a step that is made if its end is next to a special point, and number of such trials."""
FAILURES = OffTheCurve, ClosureError, ModelError, SingularConfigurationError, np.linalg.LinAlgError
"""Errors that mean that a step was too long."""


@dataclass(frozen=True, repr=False)
class Branch:
    """A branch of equilibria; returned by :func:`liedyn.continuation`.

    Attributes
    ----------
    name : str
        Name of the parameter.
    parameter : ndarray, shape (count,)
    q, v, u : ndarray, shapes (count, nq), (count, nv), (count, nu)
    eigenvalues : ndarray of complex, shape (count, x)
        Eigenvalues of A at each point, sorted.
    special : list of SpecialPoint
        Special points in the order of the branch.
    parameters : dict
        Values of gravity and of spring parameters that are free, by name, shape (count,).
    slopes : ndarray of complex, shape (count, x), or None
        If asked for, derivatives of the eigenvalues by the parameter along the branch; infinite at turning points.
    ended : str
        Reason why it ends: "span", "closed" (the branch returned to its start), "points", or "lost" (no equilibrium was
        found at the shortest step: named independent coordinates are singular there, or a spring has no direction). Of
        a branch that goes both ways the reasons at its two ends, "lost, span".
    start : int
        Number of the point from which it was followed.
    before : tuple of int
        Number of the point before each special point.
    coordinate_names, velocity_names, actuator_names : tuple of str

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> start = ld.trim(arm, arm.home, free=["force:q1", "force:q4"])
    >>> ld.continuation(arm, start, "q1", (2.0, 2.2), free=["force:q1", "force:q4"], hold=["q2"]).ended
    'span'
    """

    name: str
    parameter: Array
    q: Array
    v: Array
    u: Array
    eigenvalues: Complexes
    special: list[SpecialPoint]
    parameters: dict[str, Any]
    ended: str
    start: int = 0
    before: tuple[int, ...] = ()
    coordinate_names: tuple[str, ...] = ()
    velocity_names: tuple[str, ...] = ()
    actuator_names: tuple[str, ...] = ()
    slopes: Complexes | None = None

    def __getitem__(self, name: str) -> Array:
        """A column by name: the parameter, a coordinate, ``velocity:x``, ``u:actuator``, a free parameter, or "growth",
        the largest real part of the eigenvalues.
        """
        columns = self._columns(self)
        if not isinstance(name, str) or name not in columns:
            raise InputError(f"nothing called {shown(name)} on the branch, {suggestion(shown(name), tuple(columns))}")
        return columns[name]

    def _columns(self, at):
        """Numbers by name, of the branch or of one special point."""
        found = dict(zip(self.coordinate_names, at.q.T))
        found |= {f"velocity:{name}": x for name, x in zip(self.velocity_names, at.v.T)}
        found |= {f"u:{name}": x for name, x in zip(self.actuator_names, at.u.T)} | {self.name: at.parameter}
        if at is self:
            found |= self.parameters | {"growth": self.eigenvalues.real.max(axis=1, initial=-np.inf)}
        return found

    def plot(self, name: str | None = None, ax: Any = None) -> Any:
        """Draw the branch: one of its columns over the parameter, dashed where it is unstable, with special points.

        Parameters
        ----------
        name : str, optional
            A column, as in ``branch[name]``; default: the coordinate that changes most.
        ax : matplotlib axes, optional
            Axes to draw in. Default: a new figure.

        Returns
        -------
        ax : matplotlib axes
            ``ax.figure.savefig(path)`` writes the picture.

        Raises
        ------
        LiedynError
            Matplotlib is not installed.
        InputError
            There is no column of that name.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> start = ld.trim(arm, arm.home, free=["force:q1", "force:q4"])
        >>> branch = ld.continuation(arm, start, "q1", (2.0, 2.2), free=["force:q1", "force:q4"], hold=["q2"])
        >>> branch.plot("u:q1").get_xlabel()
        'q1'
        """
        from liedyn.tasks.operating_points.branch_picture import plot

        return plot(self, name, ax)

    def __repr__(self) -> str:
        found = ", ".join(f"{each.kind} at {each.parameter:.6g}" for each in self.special) or "no special points"
        return f"Branch({len(self.parameter)} points over {printable(self.name)}, {found}, ended: {self.ended})"

    def __len__(self) -> int:
        return len(self.parameter)


def continuation(robot: Robot | Callable[..., Any], start: Trim, parameter: str | float, span: ArrayLike,
                 free: Sequence[str] | None = None, hold: Sequence[str] | None = None, step: float = 0.02,
                 longest: float = 0.1, points: int = 1000, direction: int | Literal["both"] = 1,
                 rank_tolerance: float = RANK_TOLERANCE, second: bool = False) -> Branch:
    """Follow the equilibria of a robot while a parameter changes, around turning points too.

    Parameters
    ----------
    robot : Robot or callable
        A robot; or any function of the parameter that returns one, also for values slightly outside the span.
    start : Trim
        First point of the branch.
    parameter : str or float
        If `robot` is a function of the parameter: its value at the start. Else its name:
        an actuator (``force:`` and a coordinate if none is declared); ``velocity:`` and an independent coordinate;
        a coordinate; gravity, or a parameter of a spring, as for `trim`.
    span : array_like, shape (2,)
        Lowest and highest value of the parameter, where the branch ends.
    free : sequence of str, optional
        Unknowns besides the parameter, as for `trim`; default: all coordinates that are not held.
    hold : sequence of str, optional
        Coordinates that are constant.
    step : float
        First step along the branch, in a norm with coordinates in radians and metres, and the parameter and inputs
        relative to the span; step lengths adapt to the curve.
    longest : float
        Longest step.
    points : int
        Largest number of points of the branch, each way.
    direction : {1, -1, "both"}
        1 if the parameter increases at first, -1 if it decreases; "both" follows the branch both ways from the start,
        and returns it as one, in the direction 1.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.
    second : bool
        True: ``slopes`` of the result has the derivatives of the eigenvalues by the parameter, from second derivatives
        of the mechanism, and changes of stability are found by Newton's method on them.

    Returns
    -------
    Branch

    Raises
    ------
    InputError
        A name is unknown, the start is no equilibrium or outside the span, contact modes are undetermined, or the
        unknowns do not form a curve; the message gives the number of directions. With `second`, `robot` is a function,
        or what `sensitivities` refuses.

    Notes
    -----
    Derivatives are exact except those by the parameter of a function that returns robots: these are secants along the
    steps (Broyden 1965), which affect the speed of Newton's method, not its result. Special points are roots, to 1e-9
    and better, of exact quantities.

    Examples
    --------
    A rod on a torsion spring buckles under a load: the upright position is one branch, and another one crosses it.

    >>> import liedyn as ld
    >>> b = ld.Builder("column", gravity=(0.0, 0.0, 0.0))
    >>> b.body("rod", 1.0, (1.0, 0.0, 0.0))
    >>> b.joint("hinge", "revolute", "ground", "rod", stiffness=3.0)
    >>> b.cylinder("load", "ground", "rod", (1000.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    >>> column = b.build()
    >>> branch = ld.continuation(column, ld.trim(column, [0.0]), "load", (-1.0, 5.0))
    >>> [(each.kind, round(each.parameter, 2)) for each in branch.special]
    [('branch point', 3.0)]
    """
    family = robot if callable(robot) and not hasattr(robot, "packed") else None
    if family is not None:
        parameter = number("parameter", parameter)
        robot = family(parameter)
    require_robot(robot)
    if not isinstance(start, Trim) or np.ndim(start.reached):
        raise InputError(f"start must be what trim returns for one state, got {shown(start)}")
    span = floats("span", span)
    if span.shape != (2,) or not np.isfinite(span).all() or not span[0] < span[1]:
        raise InputError(f"span must be (lowest, highest), got {shown(span.tolist())}")
    step, points = positive("step", step), whole("points", points, 1)
    if type(direction) not in (int, str) or direction not in (1, -1, "both"):
        raise InputError(f"direction must be 1, -1 or 'both', got {shown(direction)}")
    longest, second = positive("longest", longest), flag("second", second)
    if watches(robot):
        raise InputError("continuation wants contacts decided: switch one-sided constraints off, or to 'sliding' or "
                         "'sticking', as start.contacts has them")
    held = names("hold", () if hold is None else hold)
    given = dict.fromkeys(held)
    if family is None:
        problem, name = Problem(robot, held, free, None, rank_tolerance, parameter), parameter
        here = problem.start(start.q, start.v, start.u, given | start.parameters)
    else:
        problem, name = Problem(robot, held, free, None, rank_tolerance, None, family), FAMILY
        here = problem.start(start.q, start.v, start.u, given | {FAMILY: parameter})
        here = problem.probed(here, span)
    if not start.reached or np.abs(here.r).max(initial=0.0) > 1e-6 * max(1.0, np.abs(here.J).max(initial=0.0)):
        raise InputError("start is no equilibrium of this robot")
    if name not in here.free:
        raise InputError(f"parameter {shown(name)} is not independent here; independent are {', '.join(here.y)}")
    if not span[0] <= here.free[name] <= span[1]:
        raise InputError(f"span: {name} = {here.free[name]:.6g} is outside")
    if second and family is not None:
        raise InputError("second: derivatives by the parameter of a function that returns robots are not known")
    ways = [_follow(curve, curve.first(here, each), min(step, longest), longest, points)
            for curve, each in ((Curve(problem, name, span, here, second), each) for each in (
                (1, -1) if direction == "both" else (direction,)))]
    return ways[0] if len(ways) == 1 or ways[0].ended == "closed" else _joined(*ways)


def _joined(ahead, back):
    """One branch of two that start at the same point: against the direction of the second, on along the first."""
    def together(one, other):
        return np.concatenate([other[:0:-1], one])

    special = [replace(each, unstable=each.unstable[::-1]) for each in reversed(back.special)] + ahead.special
    parameters = {name: together(x, back.parameters[name]) for name, x in ahead.parameters.items()}
    columns = ("parameter", "q", "v", "u", "eigenvalues", *(() if ahead.slopes is None else ("slopes",)))
    return replace(ahead, **{name: together(getattr(ahead, name), getattr(back, name)) for name in columns},
                   special=special, parameters=parameters, ended=f"{back.ended}, {ahead.ended}", start=len(back) - 1,
                   before=(*(len(back) - 2 - k for k in reversed(back.before)),
                           *(len(back) - 1 + k for k in ahead.before)))


def _follow(curve, here, h, longest, points):
    """The `Branch` from a first place on."""
    shortest, special, branch, ended, before = LEAST * h, [], [here.point], "points", []
    moving = [_moving(curve, here)] if curve.second else None
    easy = EASY if curve.problem.family is None else 2 * EASY  # secants need more corrections
    while len(branch) < points and ended == "points":
        try:
            h, there = _next(curve, here, h, shortest)
            why, h = _ends(curve, here, h, there, branch)
            there = curve.at(here, h) if why else there
            special += [point for _, point in special_points(curve, here, h, there)] if h else []
            before += [len(branch) - 1] * (len(special) - len(before))
        except FAILURES:
            h *= SHORTER
            ended = "lost" if h < shortest else ended
            continue
        ended = why or ended
        if h:
            branch.append(there.point)
            if moving:
                moving.append(_moving(curve, there))
            here = curve.onwards(there)
        if there.count <= easy:
            h = min(h * LONGER, longest)
    numbers, robot = [name for name in curve.problem.parameters if name != FAMILY], curve.problem.robot
    values, slopes = zip(*moving) if moving else ([eigenvalues(each.A) for each in branch], None)
    return Branch(curve.name, np.array([curve.value(each) for each in branch]),
                  *(np.array([getattr(each, key) for each in branch]) for key in ("q", "v", "u")),
                  np.array(values), special,
                  {name: np.array([each.free[name] for each in branch]) for name in numbers}, ended, 0,
                  tuple(before), robot.coordinate_names, robot.velocity_names, robot.actuator_names,
                  None if slopes is None else np.array(slopes))


def _moving(curve, place):
    """Eigenvalues at a place, and their derivatives by the parameter along the curve."""
    values, slopes = moving_eigenvalues(curve.problem, place.point, place.t * curve.scale(place.point))
    with np.errstate(all="ignore"):
        return values, slopes / (curve.along(place) * curve.sizes[curve.name])


def _next(curve, here, h, shortest):
    """The length of a step, and the place at its end; shorter if that place is itself special."""
    for _ in range(TRIES):
        there = curve.at(here, h)
        if there.t @ here.t < TURNS and h > shortest:
            raise OffTheCurve("the curve turns within the step")
        if not is_undecided(curve, there, here):
            break
        h *= ELSEWHERE
    return h, there


def _ends(curve, here, h, there, branch):
    """The reason why the branch ends within a step, None if it does not, and the part of the step up to there."""
    limit = float(np.clip(curve.value(there.point), *curve.span))
    back = curve.returns(here, h, branch[0]) if len(branch) > 2 else None
    if back is not None:
        return "closed", back
    return ("span", _reaching(curve, here, h, limit)) if limit != curve.value(there.point) else (None, h)


def _reaching(curve, here, h, limit):
    """The part of a step at whose end the parameter is at its limit."""
    from scipy.optimize import brentq

    def beyond(s):
        return (curve.value(curve.at(here, s).point) - limit) / (curve.span[1] - curve.span[0])

    return brentq(beyond, 0.0, h, xtol=1e-15, rtol=1e-15) if beyond(0.0) else 0.0
