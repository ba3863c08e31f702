"""Regulators for a grid of equilibria, with interpolation: u = u_0(s) - K(s) x, s the wanted position."""
# mypy: ignore-errors

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from liedyn.control.constrained.inverse_dynamics import inverse_dynamics
from liedyn.control.regulation.kept_states import regulated, without
from liedyn.control.regulation.lqr import Regulator, require_steady, riccati
from liedyn.linear.linearize import linearize
from liedyn.machine.arguments import floats, number, require_robot
from liedyn.machine.errors import InputError, LiedynError, shown, suggestion
from liedyn.machine.texts import printable
from liedyn.mechanics.constraints.assembly import close, complete_velocity
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.motion.local_coordinates import Deviation
from liedyn.tasks.cost_weights import weight

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Complexes

SPEED = "velocity:"


class GainSchedule:
    """Regulators on a grid of equilibria; returned by :func:`liedyn.gain_schedule`.

    Attributes
    ----------
    names : tuple of str
        Coordinates and velocities of the grid.
    grid : tuple of ndarray
        Values of each of them [rad, m; rad/s, m/s].
    q, v, u, K : ndarray, shapes (..., nq), (..., nv), (..., nu), (..., nu, x)
        Equilibria or steady motions, inputs that hold them and gains; the leading axes are those of the grid.
    states : tuple of str
        What is regulated, in the order of the columns of K.
    left_out : dict
        States of the robot that are not regulated, each with the reason.
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
    v: Array
    u: Array
    K: Array
    states: tuple[str, ...]
    left_out: dict[str, str]
    eigenvalues: Complexes
    robot: Robot

    def __init__(self, robot: Robot, grid: dict[str, Array], motion: tuple[Array, Array, Array], K: Array, models: Any,
                 first: Any, left_out: dict[str, str]) -> None:
        self.robot, self.names, self.grid, self.K = robot, tuple(grid), tuple(grid.values()), K
        self.q, self.v, self.u = motion
        self.states, self.left_out, self._models, self._first = models.states, left_out, models, first
        closed = models.A - models.B @ K
        self.eigenvalues = np.sort_complex(np.linalg.eigvals(closed))

    def __repr__(self) -> str:
        sizes = " x ".join(str(len(each)) for each in self.grid)
        return f"GainSchedule({sizes} equilibria over {printable(', '.join(self.names))}{without(self.left_out)})"

    def plot(self, over: str | None = None, axes: Any = None) -> Any:
        """Draw the gains over one name of the grid, an axes for each input, and the slowest closed loop at the bottom.

        Parameters
        ----------
        over : str, optional
            Default: the first name of the grid. Of the other ones there is a line for each node.
        axes : sequence of matplotlib axes, optional
            One for each input, and one more. Default: a new figure.

        Returns
        -------
        axes : ndarray of matplotlib axes, shape (nu + 1,)
            ``axes[0].figure.savefig(path)`` writes the picture.

        Raises
        ------
        LiedynError
            Matplotlib is not installed.
        InputError
            The grid has no such name, or there are too few axes.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> schedule = ld.gain_schedule(arm, {"q1": [2.0, 2.1], "q2": [-1.3, -1.2]}, Q=1.0, R=0.1)
        >>> len(schedule.plot("q2"))
        5
        """
        from liedyn.machine.figures import COLOURS, figure
        from liedyn.machine.texts import drawn

        over = self.names[0] if over is None else over
        if not isinstance(over, str) or over not in self.names:
            raise InputError(f"over: {shown(over)} is not in the grid, {suggestion(shown(over), self.names)}")
        k, inputs = self.names.index(over), self._models.inputs
        x, K, s = self.grid[k], *(np.moveaxis(each, k, 0) for each in (self.K, self.eigenvalues.real.max(axis=-1)))
        if axes is None:
            axes = figure((7.5, 1.6 + 1.9 * len(inputs))).subplots(len(inputs) + 1, 1, sharex=True)
        axes = np.ravel(axes)
        if len(axes) != len(inputs) + 1:
            raise InputError(f"axes must be {len(inputs) + 1}, one for each input and one more, got {len(axes)}")
        for i, name in enumerate(inputs):
            for j, state in enumerate(self.states):
                lines = axes[i].plot(x, K[..., i, j].reshape(len(x), -1), color=COLOURS[j % len(COLOURS)], lw=1.5)
                lines[0].set_label(drawn(state))
            axes[i].set(ylabel=drawn(name))
        axes[-1].plot(x, s.reshape(len(x), -1), color="black", lw=1.5)
        axes[-1].set(xlabel=drawn(over), ylabel="slowest [1/s]")
        axes[0].set(title="gains")
        axes[0].legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
        for each in axes:
            each.grid(alpha=0.3)
            each.ticklabel_format(axis="y", useOffset=False)
        return axes

    def at(self, **place: float) -> Regulator:
        """The regulator for a position inside the grid: gains and inputs interpolated, the equilibrium itself exact.

        At a node it is the regulator that was designed there.

        Parameters
        ----------
        **place : float
            A value for each coordinate and velocity of the grid; names with dots and colons go through ``**{...}``.

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
        q, v = _motion(self.robot, self.q[node], place, self._first.w.names)
        return Regulator(self._models[node], self._first.at(q, v), u, K, None, self.left_out)


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
                  rank_tolerance: float = RANK_TOLERANCE, states: Sequence[str] | None = None) -> GainSchedule:
    """Regulators for all equilibria, or steady motions, of a grid of coordinates and velocities.

    Parameters
    ----------
    robot : Robot
    grid : dict
        Increasing values by coordinate, at least two each: ``{"boom": [0.0, 0.2, 0.4], "bucket": [-0.3, 0.0]}``. Of
        robots that roll also by independent velocity, ``{"velocity:rear_wheel": [-20.0, -10.0]}``; velocities that are
        not named are zero.
    Q, R
        Weights, as for `lqr`.
    q : array_like, shape (nq,), optional
        Initial guess for closing the loops at the first node; default: home. Each other node starts from a neighbour.
    independent : sequence of str or "auto", optional
        Coordinates of the states, as for `linearize`; by default those of the grid if they are as many as there are
        degrees of freedom, else the default of `linearize`.
    rank_tolerance : float
        Pivots of G below this fraction of the largest one count as zero.
    states : sequence of str, optional
        What is regulated, as for `lqr`; the same at all nodes.

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
    shape, places = tuple(map(len, values)), [name for name in names if not name.startswith(SPEED)]
    q_nodes, v_nodes = np.empty((*shape, robot.nq)), np.zeros((*shape, robot.nv))
    nodes = {index: {name: float(x[k]) for name, x, k in zip(names, values, index)} for index in np.ndindex(shape)}
    first = None
    for index, place in nodes.items():
        guess = q_nodes[_before(index)] if any(index) else robot.home if q is None else q
        with _at_node(place):
            if first is None:
                start = close(robot, guess, **{name: place[name] for name in places})
                first = Deviation(robot, start, v_nodes[index], _choice(robot, places, independent), None,
                                  rank_tolerance)
            q_nodes[index], v_nodes[index] = _motion(robot, guess, place, first.w.names)
    first = first.at(q_nodes[(0,) * len(shape)], v_nodes[(0,) * len(shape)])
    held = inverse_dynamics(robot, q_nodes, v_nodes, np.zeros((*shape, len(first.w.names))), independent=first.w)
    models = linearize(robot, q_nodes, v_nodes, u=held.u, independent=first.y, speeds=first.w,
                       rank_tolerance=rank_tolerance)
    kept = regulated(models, states, len(first.y.names))
    kept.refuse("Q", Q)
    few = kept.model(models)
    Q, R = weight("Q", Q, few.states, False), weight("R", R, few.inputs, True)
    K = np.empty((*shape, len(few.inputs), len(few.states)))
    for index, place in nodes.items():
        with _at_node(place):
            require_steady(models[index], len(first.y.names))
            K[index] = riccati(few[index], Q, R)[0]
    return GainSchedule(robot, dict(zip(names, values)), (q_nodes, v_nodes, held.u), K, few, kept.deviation(first),
                        kept.left_out)


def _motion(robot, guess, place, speeds):
    """The state (q, v) of a node: coordinates and independent velocities as it says, other velocities zero."""
    q = close(robot, guess, **{name: x for name, x in place.items() if not name.startswith(SPEED)})
    asked = {name.removeprefix(SPEED): x for name, x in place.items() if name.startswith(SPEED)}
    if not asked:
        return q, np.zeros(robot.nv)
    for name in asked:
        if name not in speeds:
            raise InputError(f"grid: {shown(SPEED + name)} is no independent velocity, {suggestion(name, speeds)}")
    return q, complete_velocity(robot, q, dict.fromkeys(speeds, 0.0) | asked)


def _before(index):
    """A neighbour before a node in C order: one less along the last axis on which the node is not the first."""
    last = max(k for k, each in enumerate(index) if each)
    return (*index[:last], index[last] - 1, *index[last + 1:])


def _choice(robot, names, independent):
    """Coordinates of the states: those of the grid if they are as many as the degrees of freedom."""
    if independent is not None or not names:
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
