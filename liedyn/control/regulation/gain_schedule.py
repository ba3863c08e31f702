"""Regulators for a grid of equilibria, with interpolation: u = u_0(s) - K(s) x, s the wanted position."""
# mypy: ignore-errors

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from liedyn.control.constrained.inverse_dynamics import inverse_dynamics
from liedyn.control.regulation.lqr import Regulator, riccati
from liedyn.linear.linearize import linearize
from liedyn.machine.arguments import floats, number, require_robot
from liedyn.machine.errors import InputError, LiedynError, shown
from liedyn.machine.texts import printable
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.motion.local_coordinates import Deviation
from liedyn.tasks.cost_weights import weight

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Complexes


class GainSchedule:
    """Regulators on a grid of equilibria; returned by :func:`liedyn.gain_schedule`.

    Attributes
    ----------
    names : tuple of str
        Coordinates of the grid.
    grid : tuple of ndarray
        Values of each coordinate [rad, m].
    q, u, K : ndarray, shapes (..., nq), (..., nu), (..., nu, x)
        Equilibria, inputs that hold them and gains; the leading axes are those of the grid.
    eigenvalues : ndarray of complex, shape (..., x)
        Eigenvalues of the closed loops at the nodes.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> ld.gain_schedule(arm, {"q1": [2.0, 2.1], "q2": [-1.3, -1.2]}, Q=1.0, R=0.1, q=arm.home)
    GainSchedule(2 x 2 equilibria over q1, q2)
    """

    names: tuple[str, ...]
    grid: tuple[Array, ...]
    q: Array
    u: Array
    K: Array
    eigenvalues: Complexes
    robot: Robot

    def __init__(self, robot: Robot, names: tuple[str, ...], grid: tuple[Array, ...], q: Array, u: Array, K: Array,
                 models: Any, first: Any) -> None:
        self.robot, self.names, self.grid, self.q, self.u, self.K = robot, names, grid, q, u, K
        self._models, self._first = models, first
        closed = models.A - models.B @ K
        self.eigenvalues = np.sort_complex(np.linalg.eigvals(closed))

    def __repr__(self) -> str:
        sizes = " x ".join(str(len(each)) for each in self.grid)
        return f"GainSchedule({sizes} equilibria over {printable(', '.join(self.names))})"

    def at(self, **place: float) -> Regulator:
        """The regulator for a position inside the grid: gains and inputs interpolated, the equilibrium itself exact.

        At a node it is the regulator that was designed there.

        Parameters
        ----------
        **place : float
            A value for each coordinate of the grid; names with dots go through ``**{...}``.

        Returns
        -------
        Regulator

        Raises
        ------
        InputError
            A coordinate is missing or unknown, or a value is outside the grid.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> schedule = ld.gain_schedule(arm, {"q1": [2.0, 2.1], "q2": [-1.3, -1.2]}, Q=1.0, R=0.1)
        >>> schedule.at(q1=2.05, q2=-1.2).K.shape
        (4, 4)
        """
        if set(place) != set(self.names):
            raise InputError(f"the schedule is over {', '.join(self.names)}, got {shown(sorted(place))}")
        corners = _corners(self.grid, [number(name, place[name]) for name in self.names], self.names)
        node, u, K = max(corners, key=lambda each: each[1])[0], 0.0, 0.0
        for index, share in corners:
            u, K = u + share * self.u[index], K + share * self.K[index]
        q = close(self.robot, self.q[node], **place)
        return Regulator(self._models[node], self._first.at(q, np.zeros(self.robot.nv)), u, K, None)


def _corners(grid, place, names):
    """(index, weight) of the corners of the cell around a position, for multilinear interpolation."""
    corners = [((), 1.0)]
    for values, x, name in zip(grid, place, names):
        if not values[0] <= x <= values[-1]:
            raise InputError(f"{name} = {x:.6g} is outside the grid, {values[0]:.6g} to {values[-1]:.6g}")
        k = min(int(np.searchsorted(values, x, side="right")) - 1, len(values) - 2)
        s = (x - values[k]) / (values[k + 1] - values[k])
        corners = [((*index, k + step), share * part) for index, share in corners
                   for step, part in ((0, 1.0 - s), (1, s)) if part > 0.0]
    return corners


def gain_schedule(robot: Robot, grid: dict[str, Any], Q: ArrayLike | dict[str, Any], R: ArrayLike | dict[str, Any],
                  q: ArrayLike | None = None, independent: Sequence[str] | Literal["auto"] | None = None,
                  rank_tolerance: float = RANK_TOLERANCE) -> GainSchedule:
    """Regulators for all equilibria of a grid of coordinates.

    Parameters
    ----------
    robot : Robot
    grid : dict
        Increasing values by coordinate, at least two each: ``{"boom": [0.0, 0.2, 0.4], "bucket": [-0.3, 0.0]}``.
    Q, R
        Weights, as for `lqr`.
    q : array_like, shape (nq,), optional
        Initial guess for closing the loops at the first node; default: home. Each other node starts from a neighbour.
    independent : sequence of str or "auto", optional
        Coordinates of the states, as for `linearize`; by default those of the grid if they are as many as there are
        degrees of freedom, else the default of `linearize`.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.

    Returns
    -------
    GainSchedule

    Raises
    ------
    InputError
        The grid does not increase, a name is unknown, a weight is not (semi)definite, or a motion cannot be
        stabilised; the message names the node.
    ClosureError
        The loops do not close at a node.
    ControllabilityError
        No inputs hold the robot at a node.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> schedule = ld.gain_schedule(loader, {"boom": [0.0, 0.2], "bucket": [0.0, 0.2]}, 100.0, 1e-9)
    >>> schedule.at(boom=0.1, bucket=0.05).K.shape
    (2, 4)
    """
    require_robot(robot)
    if not isinstance(grid, dict) or not grid:
        raise InputError(f"grid must be a dict of increasing values by coordinate, got {shown(grid)}")
    names, values = tuple(grid), tuple(floats(f"grid of {shown(name)}", x) for name, x in grid.items())
    for name, x in zip(names, values):
        if x.ndim != 1 or len(x) < 2 or not np.isfinite(x).all() or not (np.diff(x) > 0.0).all():
            raise InputError(f"grid of {shown(name)} must be at least two increasing numbers, got {shown(grid[name])}")
    shape = tuple(map(len, values))
    rest, configurations = np.zeros(robot.nv), np.empty((*shape, robot.nq))
    for index in np.ndindex(shape):
        guess = configurations[_before(index)] if any(index) else robot.home if q is None else q
        place = {name: float(x[k]) for name, x, k in zip(names, values, index)}
        with _at_node(place):
            configurations[index] = close(robot, guess, **place)
    first = Deviation(robot, configurations[(0,) * len(shape)], rest, _choice(robot, names, independent), None,
                      rank_tolerance)
    rests = np.zeros((*shape, robot.nv))
    held = inverse_dynamics(robot, configurations, rests, np.zeros((*shape, len(first.w.names))), independent=first.w)
    models = linearize(robot, configurations, rests, u=held.u, independent=first.y, speeds=first.w,
                       rank_tolerance=rank_tolerance)
    Q, R = weight("Q", Q, models.states, False), weight("R", R, models.inputs, True)
    K = np.empty((*shape, len(models.inputs), len(models.states)))
    for index in np.ndindex(shape):
        with _at_node({name: float(x[k]) for name, x, k in zip(names, values, index)}):
            K[index] = riccati(models[index], Q, R)[0]
    return GainSchedule(robot, names, values, configurations, held.u, K, models, first)


def _before(index):
    """A neighbour before a node in C order: one less along the last axis on which the node is not the first."""
    last = max(k for k, each in enumerate(index) if each)
    return (*index[:last], index[last] - 1, *index[last + 1:])


def _choice(robot, names, independent):
    """Coordinates of the states: those of the grid if they are as many as the degrees of freedom."""
    if independent is not None:
        return independent
    try:
        linearize(robot, robot.home, np.zeros(robot.nv), np.zeros(robot.nv), independent=names)
    except LiedynError:
        return None
    return names


@contextlib.contextmanager
def _at_node(place):
    """A context in which error messages get the node of the grid."""
    try:
        yield
    except LiedynError as error:
        where = ", ".join(f"{name} = {x:.6g}" for name, x in place.items())
        error.args = (f"{error} (at {where})", *error.args[1:])
        raise
