"""Equilibria and steady motions: coordinates, speeds and inputs at which nothing accelerates.

The residual is wdot(y, w, u, p), the accelerations of the independent velocities; its derivatives are the lower rows of
the exact A and B of `linearize`, and so Newton's method on the manifold,

    [A_wy A_ww B_w P_w] (dy, dw, du, dp) = -wdot        R_h K dy = held value - value

has no differences in it (`liedyn.operating_points.problem`, `liedyn.operating_points.newton`). Closing the loops at
each step keeps the state on the manifold (`liedyn.close`).
"""
from dataclasses import dataclass, field, fields

import numpy as np

from liedyn.arguments import floats, names, positive, require_robot, whole
from liedyn.compiled.boundary import states
from liedyn.contact.watching import watches
from liedyn.dynamics.nullspace import RANK_TOLERANCE
from liedyn.elements.generalized import actuator_matrix
from liedyn.errors import InputError, LiedynError, listed, of_the_batch, shown, suggestion
from liedyn.operating_points import resting
from liedyn.operating_points.newton import freedom, search, unmet
from liedyn.operating_points.problem import Problem


class TrimError(LiedynError):
    """There is no equilibrium near the guess; `trim` says which balance is left, and the error has the last try.

    Attributes
    ----------
    nearest : Trim
        Where the search ended, ``reached`` False; of a batch all states, those that were reached too. States that have
        no place (loops that do not close) are NaN.

    Examples
    --------
    >>> import liedyn as ld
    >>> try:
    ...     ld.trim(ld.load("loader"), ld.load("loader").home, free=["lift_cylinder"])
    ... except ld.TrimError as error:
    ...     error.nearest.reached
    False
    """

    def __init__(self, text, nearest):
        super().__init__(text)
        self.nearest = nearest


@dataclass(frozen=True, repr=False)
class Trim:
    """An equilibrium or steady motion.

    Attributes
    ----------
    q, v, u : ndarray, shapes (..., nq), (..., nv), (..., nu)
        The state and the inputs of the actuators.
    tau : ndarray, shape (..., nv)
        The generalised forces of these inputs.
    residual : dict
        Acceleration that is left, by name of an independent coordinate [rad/s^2, m/s^2], shape (...).
    drift : dict
        Rate of that acceleration along the motion [rad/s^3, m/s^3], shape (...): the motion goes on steadily where this
        is zero too; else nothing accelerates at this instant only.
    freedom : int or ndarray of int
        How many directions of what is free change nothing: the equilibrium is one of so many dimensions, and the
        nearest one was taken.
    iterations : int or ndarray of int
    reached : bool or ndarray of bool
    parameters : dict
        Values of gravity and of numbers of springs that were free or held, by name, shape (...).
    contacts : dict
        What each one-sided constraint does, by name, as in `ForwardDynamics`.
    contact_wrenches : dict
        By name of a one-sided constraint the wrench (moment, force) [N m, N], shape (..., 6), that it exerts on the
        body at its child side.
    robot : Robot or ndarray of Robot
        With these parameters.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> ld.trim(loader, loader.home, free=loader.actuator_names).freedom
    0
    """

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    tau: np.ndarray
    residual: dict
    drift: dict
    freedom: int
    iterations: int
    reached: bool
    parameters: dict = field(default_factory=dict)
    contacts: dict = field(default_factory=dict)
    contact_wrenches: dict = field(default_factory=dict)
    robot: object = None

    def __repr__(self):
        left = max((np.abs(x).max(initial=0.0) for x in self.residual.values()), default=0.0)
        how = "reached" if np.all(self.reached) else "not reached"
        return f"Trim({how}, residual {left:.3g}, freedom {self.freedom})"


def trim(robot, q, v=None, u=None, hold=None, free=None, bounds=None, tolerance=1e-10, iterations=100,
         rank_tolerance=RANK_TOLERANCE):
    """Find an equilibrium, or a steady motion, near a guess.

    Where does it come to rest under these inputs: ``trim(robot, q, u=[3.0])``. Which inputs hold this pose:
    ``trim(robot, q, free=["motor"])``. Which spring does: ``trim(robot, q, free=["stiffness:spring"])``. Anything
    between: coordinates, speeds, inputs, gravity and numbers of springs are given or free by name.

    Parameters
    ----------
    robot : Robot
        At its time where constraints move. Contacts that touch at the guess (nearer than 1 mm) are closed; one that
        would have to pull is let go.
    q : array_like, shape (..., nq)
        Guess of the configuration [rad, m; quaternions (x, y, z, w)]; its loops are closed first.
    v : array_like, shape (..., nv), optional
        Velocity of a steady motion [rad/s, m/s]; default: at rest. Where that is not consistent, its independent
        velocities count.
    u : array_like, shape (..., nu), or dict, optional
        Inputs of the actuators, given or a guess; default zero. Or some of them by name.
    hold : dict or sequence of str, optional
        What is held, at values (...) by name, or where the guess has it: coordinates of the tree or of cut joints,
        each one number; ``velocity:`` and the name of a coordinate; and numbers as in `free`.
    free : sequence of str, optional
        What may change: coordinates; ``velocity:`` and the name of a coordinate; actuators, and where the robot
        declares none ``force:`` and the name of a coordinate; ``gravity`` (its size), ``gravity.x``, ``gravity.y``,
        ``gravity.z``; ``stiffness:``, ``damping:``, ``rest:`` and the name of a joint with one coordinate;
        ``stiffness:``, ``damping:``, ``preload:``, ``length:`` or ``rest:`` and the name of a force element. Default:
        all coordinates that are not held. Without a coordinate among them, the pose is given; with some, the other
        independent coordinates are held.
    bounds : dict, optional
        (lowest, highest) by name of what is free.
    tolerance : float
        Largest acceleration that counts as none, as a part of the largest one that a unit change of what is free makes
        (or of 1).
    iterations : int
        Steps after which the search ends.
    rank_tolerance : float
        Pivots of G below this part of the largest one count as zero.

    Returns
    -------
    Trim

    Raises
    ------
    TrimError
        None is reached; says which acceleration is left, and of what size, or which contact slips. In a batch all other
        states are in the error.
    InputError
        A shape that does not fit, an unknown name, a guess out of its bounds, a contact that slips at the guess, or
        what is free can change nothing.
    ClosureError
        The loops do not close with the coordinates that are held.

    Notes
    -----
    With velocities the condition is that they stay: steady turning, rolling at constant speed. `Trim.drift` says
    whether the motion goes on like that.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> held = ld.trim(loader, loader.home, free=loader.actuator_names)
    >>> lower = ld.trim(loader, loader.home, u=0.99 * held.u, hold=["bucket"], free=["boom", "tilt_cylinder"])
    >>> bool(abs(ld.forward_dynamics(loader, lower.q, lower.v, lower.tau).a).max() < 1e-6)
    True
    """
    require_robot(robot)
    tolerance, iterations = positive("tolerance", tolerance), whole("iterations", iterations, 1)
    given = hold if isinstance(hold, dict) else dict.fromkeys(names("hold", () if hold is None else hold))
    given = {name: None if x is None else floats(f"hold of {shown(name)}", x) for name, x in given.items()}
    u = _inputs(robot, u)
    lead, q, v, u, given = _broadcast(robot, q, v, u, given)
    ways = hold, free, bounds, rank_tolerance

    def solved(b):
        with of_the_batch(lead, b):
            return _solve(robot, q[b], v[b], u[b], {name: x if x is None else float(x[b]) for name, x in given.items()},
                          ways[1:], tolerance, iterations)

    if not lead:
        return solved(0)
    results, first = [], None
    for b in range(len(q)):
        try:
            results.append(solved(b))
        except LiedynError as error:
            if isinstance(error, InputError) and not results:
                raise
            results.append(getattr(error, "nearest", None))
            first = first or error
    if first is None:
        return _stacked(results, lead)
    count = sum(each is None or not each.reached for each in results)
    if all(each is None for each in results):
        raise first
    raise TrimError(f"{first}; {len(results) - count} of {len(results)} states were reached, the error has them",
                    _stacked(results, lead)) from first


def _inputs(robot, u):
    """Rows of inputs."""
    nu, known = len(robot.actuator_names), robot.actuator_names
    if isinstance(u, dict):
        for name in u:
            if name not in known:
                raise InputError(f"u: unknown {shown(name)}, {suggestion(name, known)}")
        parts = [floats(f"u of {shown(name)}", u.get(name, 0.0)) for name in known]
        try:
            u = np.stack(np.broadcast_arrays(*parts), -1) if parts else np.zeros(0)
        except ValueError:
            raise InputError(f"shapes of u do not fit each other: {', '.join(str(x.shape) for x in parts)}") from None
    u = np.zeros(nu) if u is None else floats("u", u)
    if u.shape[-1:] != (nu,) or not np.isfinite(u).all():
        raise InputError(f"u must be finite and have shape (..., {nu}), got {u.shape}")
    return u


def _broadcast(robot, q, v, u, given):
    """The leading shape that all share, and rows."""
    lead, q, v = states(robot, q=q, v=np.zeros(robot.nv) if v is None else v)
    shapes = {"q and v": lead, "u": u.shape[:-1]} | {
        f"hold of {shown(name)}": x.shape for name, x in given.items() if x is not None}
    for name, x in given.items():
        if x is not None and not np.isfinite(x).all():
            raise InputError(f"hold of {shown(name)} must be finite, got {shown(x.tolist())}")
    try:
        every = np.broadcast_shapes(*shapes.values())
    except ValueError:
        raise InputError("leading axes do not broadcast: " + ", ".join(f"{key} {x}" for key, x in shapes.items())
                         ) from None
    q, v = (np.broadcast_to(x.reshape(lead + x.shape[1:]), every + x.shape[1:]).reshape(-1, x.shape[1]) for x in (q, v))
    u = np.broadcast_to(u, every + u.shape[-1:]).reshape(-1, u.shape[-1])
    rows = {name: x if x is None else np.broadcast_to(x, every).ravel() for name, x in given.items()}
    return every, q, v, u, rows


def _solve(robot, q, v, u, given, ways, tolerance, iterations):
    """The `Trim` near one guess."""
    if not watches(robot):
        problem, here, count = _search(robot, q, v, u, given, ways, tolerance, iterations)
        return _result(problem, here, count, True)
    closed, tried = resting.touching(robot, q, v), set()
    while True:
        tried.add(frozenset(closed))
        with_closed = resting.with_closed(robot, closed)
        problem, here, count = _search(with_closed, q, v, u, given, ways, tolerance, iterations)
        now, slip, found = resting.held_up(robot, here, closed)
        if slip:
            raise TrimError(f"no equilibrium of {robot.name!r} near this guess: contact {shown(slip[0])} slips, its "
                            "friction does not hold it", _result(problem, here, count, False))
        if found is not None:
            return _result(problem, here, count, True, found)
        if frozenset(now) in tried:
            raise TrimError(f"no equilibrium of {robot.name!r} near this guess: contacts {listed(closed)} should be "
                            f"{listed(now) or 'open'}, and then they again",
                            _result(problem, here, count, False))
        closed, q, v, u = now, here.q, here.v, here.u


def _search(robot, q, v, u, given, ways, tolerance, iterations):
    problem = Problem(robot, given, *ways)
    here, count, reached = search(problem, problem.start(q, v, u, given), tolerance, iterations)
    if not reached:
        raise TrimError(f"no equilibrium of {robot.name!r} near this guess: {unmet(problem, here)}",
                        _result(problem, here, count, False))
    return problem, here, count


def _result(problem, here, count, reached, found=None):
    p, A, f0 = len(here.y), here.A, here.ss.f0
    numbers = [name for name in (*here.free, *problem.held) if problem.is_parameter(name)]
    contacts = {} if found is None else found.contacts
    return Trim(here.q, here.v, here.u, actuator_matrix(here.robot, here.q) @ here.u,
                dict(zip(here.speeds, f0[p:].tolist())), dict(zip(here.speeds, (A[p:] @ f0).tolist())),
                freedom(here), count, reached, {name: problem.number(here.robot, name) for name in numbers}, contacts,
                {name: found.constraint_wrenches[name] for name in contacts if name in found.constraint_wrenches},
                here.robot if found is None else here.robot.switched(dict.fromkeys(
                    (name for name, how in contacts.items() if how != "off"), True)))


def _stacked(results, lead):
    """One `Trim` of a batch; None among the results stands for a state of which nothing is known."""
    known = next(each for each in results if each is not None)

    def together(parts, like):
        if isinstance(like, dict):
            keys = dict.fromkeys(name for part in parts if part is not None for name in part)
            return {name: together([None if part is None else part.get(name) for part in parts],
                                   next(part[name] for part in parts if part is not None and name in part))
                    for name in keys}
        if isinstance(like, bool | int):
            return np.reshape([type(like)(0) if part is None else part for part in parts], lead)
        if isinstance(like, str):
            return np.reshape(["" if part is None else part for part in parts], lead)
        if isinstance(like, float | np.ndarray):
            return np.reshape([np.full(np.shape(like), np.nan) if part is None else part for part in parts],
                              lead + np.shape(like))
        every = np.empty(len(parts), dtype=object)
        every[:] = parts
        return every.reshape(lead)

    return Trim(*(together([None if each is None else getattr(each, key.name) for each in results],
                           getattr(known, key.name)) for key in fields(Trim)))
