"""Reference states at which the decisions of a robot's programs are taken, and robots that have programs."""
import contextlib

import numpy as np

from liedyn.machine.errors import ClosureError, InputError, SingularConfigurationError, shown
from liedyn.machine.program.evaluate import guards_hold
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.constraints.closing import CLOSED, Goals, Held, close_states
from liedyn.mechanics.constraints.loops import constraint_jacobian, rank_of
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree.configuration import integrate
from liedyn.mechanics.tree.crba import crba
from liedyn.model.calls.boundary import states

TRIES, NEIGHBOURS = 20, 3
"""How often random configurations near home are closed, and how many of them are compared with home."""
SPREAD = 0.3
"""How far they are from it [rad, m]."""


def programs_exist(robot):
    """False for a robot whose functions cannot be programs."""
    return not _obstacles(robot)


def _obstacles(robot):
    given = [*robot.functions, *([] if robot.elements is None else robot.elements.functions)]
    return [text for has, text in (
        (robot.nv == 0, "no degree of freedom"), (watches(robot), "constraints that open and close"),
        (bool(given), f"functions of users ({', '.join(map(shown, given))})")) if has]


def require_programs(robot, what):
    """Raises InputError, with the cause, for a robot whose functions cannot be programs."""
    found = _obstacles(robot)
    if found:
        raise InputError(f"{what} is not for such robots: {robot.name!r} has {', '.join(found)}")


def references(robot, at):
    """Closed configurations that are not singular: those given, or home and others near it, home first.

    Raises SingularConfigurationError for a given configuration where rows are redundant that are independent elsewhere.
    """
    near = _near_home(robot)
    if at is None:
        given = near
    else:
        given = close(robot, states(robot, q=at)[1])
        if not len(given):
            raise InputError("at needs at least one configuration")
    if not robot.row_names:
        return list(given)
    ranks = [rank_of(robot, q, RANK_TOLERANCE)[0] for q in (*near, *given)]
    regular = [rank == max(ranks) for rank in ranks[len(near):]]
    if at is not None and not all(regular):
        q = given[regular.index(False)]
        raise SingularConfigurationError(
            f"a reference configuration of {robot.name!r} is singular: give others as `at`",
            np.linalg.svd(constraint_jacobian(robot, q), compute_uv=False))
    return [q for q, good in zip(given, regular) if good]


def _near_home(robot):
    """Home, closed, and other closed configurations near it."""
    rng, found = np.random.default_rng(0), [close(robot, robot.home)]
    for _ in range(TRIES):
        if len(found) > NEIGHBOURS:
            break
        with contextlib.suppress(ClosureError, SingularConfigurationError):
            found.append(close(robot, integrate(robot, robot.home, SPREAD * rng.normal(size=robot.nv))))
    return found


def reference_state(robot, q):
    """A state at q that moves, as `RobotPrograms` takes it: nothing is zero by chance."""
    rng = np.random.default_rng(0)
    v, tau, a, dv = rng.normal(size=(4, robot.nv))
    if robot.row_names:
        G = constraint_jacobian(robot, q)
        v = v - np.linalg.pinv(G, rcond=1e-8) @ (G @ v)
    return {"q": q, "v": v, "tau": tau, "a": a, "dv": 0.1 * dv}


CLOSED_TO = 1e-12
"""Closure error of sampled states [rad, m]."""
SAMPLES, ENOUGH = 4000, 0.9999
"""States at which the guards are tried, and the part of them at which those of one of the references have to hold."""
MOST, CANDIDATES, TRIED = 8, 6, 300_000
"""Of references; of candidates for each further one; operations of all candidates together."""
WORST = 1e-2
"""States nearer to a singular one are no references: the ratio of singular values of G."""
LIGHT = 1e-3
"""Where some motion has less than this part of its usual inertia, as where axes of three joints are in one plane, a
state is no reference."""


def closed_rows(robot, guesses):
    """Those of many guesses (count, nq) that Newton's method closes, closed."""
    if not robot.row_names:
        return guesses
    found, status, none = np.empty_like(guesses), np.empty(len(guesses), np.int64), np.empty(0, np.int64)
    held = Held(np.zeros(robot.nv, np.int64), np.zeros(robot.nq, np.int64), none, none)
    goals = Goals(held, guesses, np.empty((len(guesses), 0)))
    close_states(robot.packed, guesses, goals, CLOSED_TO, (found, status))
    return found[status == CLOSED]


def sample_states(robot, center):
    """Random closed states, up to half a turn away from a configuration, with consistent velocities: rows by name."""
    rng = np.random.default_rng(1)
    spread = rng.uniform(0.0, 1.5, size=(SAMPLES, 1))
    guesses = integrate(robot, np.repeat(center[None], SAMPLES, axis=0), spread * rng.normal(size=(SAMPLES, robot.nv)))
    q = closed_rows(robot, guesses)
    v, tau, a, dv = rng.normal(size=(4, len(q), robot.nv))
    G = constraint_jacobian(robot, q)
    v -= (np.linalg.pinv(G, rcond=1e-8) @ (G @ v[..., None]))[..., 0]
    return {"q": q, "v": v, "tau": 5.0 * tau, "a": a, "dv": 0.1 * dv}


def _least_inertia(robot, q):
    """The smallest eigenvalues of inertia matrices with their diagonals scaled to 1; zero where they are negative."""
    M = crba(robot, q)
    scales = np.sqrt(np.maximum(np.diagonal(M, axis1=-2, axis2=-1), 1e-300))
    return np.maximum(np.linalg.eigvalsh(M / (scales[:, :, None] * scales[:, None, :]))[:, 0], 0.0)


class References:
    """Programs of a robot at reference states: those given, or as many as nearly all states need.

    Parameters
    ----------
    robot : Robot
    make : callable
        ``make(state)`` returns the `RobotPrograms` at a reference state.
    at : ndarray, shape (count, nq), or None
        Closed configurations. None: home, or if there is no result, a configuration near it; and others.
    start : ndarray, shape (nq,), optional
        A closed configuration that is tried before home.
    room : float
        Operations of the programs of a function at all reference states together.
    margin : float
        By how many times pivots have to be larger than necessary where a reference is counted as right (`guards_hold`).
    """

    def __init__(self, robot, make, at=None, start=None, room=np.inf, margin=1.0):
        self.robot, self.make, self.start, self.room, self.margin = robot, make, start, room, margin
        self.given = None if at is None else [make(reference_state(robot, q)) for q in at]
        self._near, self._found, self._rows = None, {}, None

    def of(self, *names):
        """A list of `RobotPrograms`: the guards of one of them hold at nearly all states, for all of these functions.

        Raises
        ------
        SingularConfigurationError
            There is no result at a reference state.
        """
        if names not in self._found:
            self._found[names] = self._enough(names) if self.given is None else self._as_given(names)
        return self._found[names]

    def _as_given(self, names):
        first = self.first(*names)
        for programs in self.given[1:]:
            programs.chosen = first.chosen
            self._traced(programs, names)
        return self.given

    def first(self, *names):
        """`RobotPrograms` at the first given state; or at the start, at home, or at the first state near it where the
        functions have results."""
        if self.given is not None:
            return self._traced(self.given[0], names)
        if self._near is None:
            near = references(self.robot, None)
            self._near = [self.make(reference_state(self.robot, q))
                          for q in ([] if self.start is None else [self.start]) + near]
        for k, programs in enumerate(self._near):
            try:
                return self._traced(programs, names)
            except SingularConfigurationError:
                if k == len(self._near) - 1:
                    raise

    @staticmethod
    def _traced(programs, names):
        """The same, if all functions have a result there."""
        for name in names:
            programs.trace(name)
        return programs

    def _enough(self, names):
        first = self.first(*names)
        length = max(len(first.trace(name).program) for name in names)
        most, left = min(MOST, self.room // length), TRIED // length
        found = [first]
        if most < 2 or not any(len(first.trace(name).program.guards) for name in names):
            return found
        if self._rows is None:
            self._rows, self._regular = self._sampled()
        covered, candidates = self._holding(first, names), self._regular.copy()
        while len(found) < most and covered.mean() < ENOUGH and left > 0:
            chosen = np.flatnonzero(candidates & ~covered)[:min(CANDIDATES, left)]
            if not len(chosen):
                break
            candidates[chosen] = False  # not again
            left -= len(chosen)
            trials = [(self._holding(programs, names) & ~covered, programs)
                      for k in chosen for programs in self._at(self._rows["q"][k], first, names)]
            more, best = max(trials, key=lambda trial: trial[0].sum(), default=(covered, None))
            if best is not None and more.any():
                found.append(best)
                covered |= more
        return found

    def _at(self, q, first, names):
        """Programs at a configuration, as a list; an empty one if a function has no result there."""
        programs = self.make(reference_state(self.robot, q))
        programs.chosen = first.chosen
        with contextlib.suppress(SingularConfigurationError):
            return [self._traced(programs, names)]
        return []

    def _sampled(self):
        """Rows of sampled states by name, and a mask of those that are away from singular ones."""
        rows = sample_states(self.robot, self._near[0].state["q"])
        if not len(rows["q"]):
            return rows, np.zeros(0, bool)
        least = _least_inertia(self.robot, rows["q"])
        away = least >= LIGHT * np.median(least)
        if self.robot.row_names:
            s = np.linalg.svd(constraint_jacobian(self.robot, rows["q"]), compute_uv=False)
            away &= ((s < 1e-9 * s[:, :1]) | (s > WORST * s[:, :1])).all(axis=1)
        return rows, away

    def _holding(self, programs, names):
        """A mask of the sampled states at which all guards hold; other arguments are those of the reference state."""
        found = np.ones(len(self._rows["q"]), bool)
        for name in names:
            trace = programs.trace(name)
            given = {x: self._rows[x] if x in self._rows else np.broadcast_to(programs.state[x], (len(found), size))
                     for x, size in trace.inputs.items()}
            found &= guards_hold(trace.program, given, self.margin)
        return found
