"""Reference states at which the decisions of a robot's programs are taken, and robots that have programs."""
import contextlib

import numpy as np

from liedyn.machine.errors import ClosureError, InputError, SingularConfigurationError, shown
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.constraints.loops import constraint_jacobian, rank_of
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree.configuration import integrate
from liedyn.model.calls.boundary import states
from liedyn.model.description import Thruster

TRIES, NEIGHBOURS = 20, 3
"""How often random configurations near home are closed, and how many of them are compared with home."""
SPREAD = 0.3
"""How far they are from it [rad, m]."""


def _driven(robot):
    """The thrusters of a robot, which are force elements that inputs drive, for a message."""
    names = [each.name for each in robot.model.actuators if isinstance(each, Thruster)]
    return f" (thrusters {shown(names[0])}{', ...' * (len(names) > 1)})" if names else ""


def require_programs(robot, what):
    """Raises InputError, with the cause, for a robot whose functions cannot be programs."""
    found = [text for has, text in (
        (robot.nv == 0, "no degree of freedom"), (watches(robot), "constraints that open and close"),
        (robot.elements is not None, f"force elements{_driven(robot)}"),
        (bool(robot.functions), "functions of users")) if has]
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


def programs_at(robot, at, kind):
    """`RobotPrograms`, or another `kind` of them, at each reference configuration; for None, at the first one near home
    where the mechanism has accelerations."""
    found = [kind(robot, reference_state(robot, q)) for q in references(robot, at)]
    if at is not None:
        return found
    for k, programs in enumerate(found):
        try:
            programs.trace("forward_dynamics")
            return [programs]
        except SingularConfigurationError:
            if k == len(found) - 1:
                raise


SAMPLES = 400
"""States at which the guards are tried."""


def sample_states(robot):
    """Random closed states, up to half a turn away from home, with consistent velocities: rows by name."""
    rng, rows = np.random.default_rng(1), []
    for _ in range(SAMPLES):
        guess = integrate(robot, robot.home, rng.uniform(0.0, 1.5) * rng.normal(size=robot.nv))
        with contextlib.suppress(ClosureError, SingularConfigurationError):
            rows.append(close(robot, guess))
    q = np.array(rows)
    v, tau, a = rng.normal(size=(3, len(q), robot.nv))
    G = constraint_jacobian(robot, q)
    v -= (np.linalg.pinv(G, rcond=1e-8) @ (G @ v[..., None]))[..., 0]
    return {"q": q, "v": v, "tau": 5.0 * tau, "a": a}
