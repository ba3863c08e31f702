"""Choice of independent coordinates: by name, by pivoting, or as the tangent space (Spencer 2004, 2.3)."""
from dataclasses import dataclass, field

import numpy as np

from liedyn.machine.arguments import names
from liedyn.machine.errors import InputError, SingularConfigurationError, shown, suggestion
from liedyn.machine.linalg.dense import independent_rows
from liedyn.machine.linalg.ranks import Ranking
from liedyn.mechanics.constraints.cluster_weights import rank_of_rows, weighed
from liedyn.mechanics.constraints.constraint_rows import holonomic_rows
from liedyn.mechanics.constraints.free_velocities import LEFT, TANGENT, choose_open
from liedyn.mechanics.constraints.loops import constraint_jacobian, virtual_jacobian
from liedyn.model.remembered import remembered


@dataclass(frozen=True)
class Independent:
    """Rows R of the independent velocities w = R v.

    Attributes
    ----------
    names : tuple of str
        Names of the independent coordinates.
    rows : ndarray, shape (p, nv)
        Constant rows of R; zero for virtual velocities.
    virtual : ndarray of int64, shape (p,)
        Number of the virtual velocity that is used as this row, -1 for none.
    rates : tuple of str
        Names of the velocities w.
    """

    names: tuple
    rows: np.ndarray
    virtual: np.ndarray
    rates: tuple = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "rates", tuple(f"velocity:{name}" for name in self.names))

    def matrix(self, E):
        """R itself, given the rows E (..., nz, nv) of the virtual velocities."""
        R = np.broadcast_to(self.rows, E.shape[:-2] + self.rows.shape).copy()
        R[..., self.virtual >= 0, :] = E[..., self.virtual[self.virtual >= 0], :]
        return R


def _expand(robot, name):
    """Names of the velocity coordinates, tree or virtual, that `name` stands for: itself, or all of a joint or loop."""
    known = robot.velocity_names + robot.virtual_names
    if name in known:
        return [name]
    family = [other for other in known if other.startswith(f"{name}.")]
    if not family:
        raise InputError(f"unknown independent coordinate {shown(name)}, {suggestion(name, known)}")
    return family


def by_name(robot, names):
    """Independent coordinates of the tree or of cut joints by name; a joint's or loop's name stands for all of its."""
    return _by_name(robot, (names,) if isinstance(names, str) else tuple(names))


@remembered
def _by_name(robot, names):
    names = [member for name in names for member in _expand(robot, name)]
    if len(set(names)) < len(names):
        raise InputError(f"independent coordinates named twice: {', '.join(names)}")
    rows, virtual = np.zeros((len(names), robot.nv)), np.full(len(names), -1)
    for k, name in enumerate(names):
        if name in robot.velocity_names:
            rows[k, robot.velocity_index(name)] = 1.0
        else:
            virtual[k] = robot.virtual_index(name)
    return Independent(tuple(names), rows, virtual)


def by_elimination(robot, G, way, tolerance):
    """The tree coordinates that stay independent in G v = 0 ("auto"), or an orthonormal basis of the tangent space."""
    rows = choose_open(robot.packed, G, tolerance, LEFT if way == "auto" else TANGENT)[2]
    if way == "auto":
        return by_name(robot, [robot.velocity_names[k] for k in rows.argmax(axis=1)] if rows.size else [])
    return Independent(tangent_names(len(rows)), rows, np.full(len(rows), -1))


def tangent_conditions(robot, q, tolerance):
    """Condition numbers (1-norm) of [G_1; R] with the tangent spaces at configurations (count, nq) as R."""
    condition = np.ones(len(q))
    for b, G in enumerate(constraint_jacobian(robot, q)):
        rank, rows, R = choose_open(robot.packed, G, tolerance, TANGENT)
        condition[b] = np.linalg.cond(np.vstack([G[rows[:rank]], R]), 1)
    return condition


def tangent_names(count):
    return tuple(f"tangent{k + 1}" for k in range(count))


@remembered
def holonomic(robot):
    """A mask of the constraint rows that restrict positions."""
    mask = np.ones(len(robot.row_names))
    holonomic_rows(robot.packed, mask)
    return mask > 0.0


@remembered
def all_holonomic(robot):
    return bool(holonomic(robot).all())


def given_coordinates(name, x):
    """A choice of coordinates as users may write it: None, "auto", "tangent", an `Independent`, or names as a tuple."""
    if x is None or isinstance(x, Independent) or isinstance(x, str) and x in ("auto", "tangent"):
        return x
    try:
        return names(name, x)
    except InputError:
        raise InputError(f"{name} must be names of coordinates, 'auto', 'tangent' or None, got {shown(x)}") from None


def choose(robot, q, independent, tolerance):
    """Independent coordinates at one configuration, as many as all constraints together leave free.

    `independent` is a sequence of names, "auto", "tangent", or None: the robot's own choice, else "auto".
    """
    if isinstance(independent, Independent):
        return independent
    if independent is None:
        independent = robot.independent or "auto"
    if independent == "auto" or independent == "tangent":
        return by_elimination(robot, constraint_jacobian(robot, q), independent, tolerance)
    return by_name(robot, independent)


def choose_positions(robot, q, independent, tolerance):
    """Independent coordinates of positions: as `choose`, but without constraints on velocities only.

    If the robot rolls, its declared coordinates are too few for positions, and pivoting chooses.
    """
    if all_holonomic(robot):
        return choose(robot, q, independent, tolerance)
    G = np.where(holonomic(robot)[:, None], constraint_jacobian(robot, q), 0.0)
    if independent is None:
        declared = by_name(robot, robot.independent)
        if len(declared.names) == robot.nv - rank_of_rows(robot, G, tolerance):
            return declared
        independent = "auto"
    if independent == "auto" or independent == "tangent":
        return by_elimination(robot, G, independent, tolerance)
    return choose(robot, q, independent, tolerance)


def choose_speeds(robot, q, chosen, speeds, tolerance):
    """Independent velocities: those named, those that the robot declares, or those of the chosen coordinates that all
    constraints together leave free.

    If every constraint is holonomic, these are all of them; else pivoting takes the best conditioned ones of G N as
    dependent, with N the motions of the chosen coordinates.
    """
    if isinstance(speeds, Independent):
        return speeds
    if speeds is not None:
        return by_name(robot, speeds)
    if all_holonomic(robot):
        return chosen
    G, R = constraint_jacobian(robot, q), chosen.matrix(virtual_jacobian(robot, q))
    declared = by_name(robot, robot.independent)
    if declared.names and len(declared.names) == robot.nv - rank_of_rows(robot, G, tolerance):
        return declared
    Z, of_rows, of_columns = weighed(robot, np.vstack([np.where(holonomic(robot)[:, None], G, 0.0), R]))
    N = np.linalg.pinv(Z, rcond=tolerance)[:, len(G):]
    along = of_rows[:len(G), None] * G * of_columns @ N
    rank, order, _ = independent_rows(
        np.ascontiguousarray(along.T), Ranking(tolerance, np.ones(along.shape[1]), np.ones(len(along))))
    keep = np.sort(order[rank:])
    return Independent(tuple(chosen.names[k] for k in keep), chosen.rows[keep], chosen.virtual[keep])


def wrong_count(robot, chosen, rank):
    """The error for a choice with too many or too few coordinates."""
    p = robot.nv - rank
    return InputError(f"{robot.name!r} has {p} degrees of freedom here ({robot.nv} coordinates, {rank} independent "
                      f"constraint rows), but {len(chosen.names)} independent coordinates were given: "
                      f"{', '.join(chosen.names)}")


def singular_choice(robot, q, chosen, rows=slice(None)):
    """The error for coordinates that do not determine the motion, with the singular values of [G; R].

    `rows` selects the rows of G that count: all, or those on positions.
    """
    Z = np.vstack([constraint_jacobian(robot, q)[rows], chosen.matrix(virtual_jacobian(robot, q))])
    singular_values = np.linalg.svd(Z, compute_uv=False)
    return SingularConfigurationError(
        f"coordinates {', '.join(chosen.names)} do not determine the motion of {robot.name!r} here: "
        f"singular values of [G; R] from {singular_values[0]:.3g} down to {singular_values[robot.nv - 1]:.3g}",
        singular_values)
