"""Reference configurations of an FMU: as many as most configurations need, each of which makes the code longer."""
import contextlib

import numpy as np

from liedyn.machine.errors import ClosureError, SingularConfigurationError
from liedyn.machine.program.evaluate import guards_hold
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.constraints.loops import constraint_jacobian
from liedyn.mechanics.tree.configuration import integrate

MOST, SAMPLES, TRIES = 4, 200, 6
"""Of references; of random configurations; of candidates for each further reference."""
LONGEST = 25000
"""Operations of all partial derivatives together: a compiler takes half a minute for as many."""
ENOUGH = 0.995
"""Part of the configurations at which the guards of one of the references hold."""
SPREADS = (0.3, 1.0, 3.0)
"""How far the configurations are from the start [rad, m]."""
MARGIN = 10.0
"""How much larger than necessary pivots have to be there: a motion from one configuration to another passes through
those between them, where a pivot may become zero."""
WORST = 1e-2
"""Configurations nearer to a singular one have no reference of their own: the ratio of singular values of G."""
GUARDED = ("velocity", "forward_dynamics")
"""Programs that have the decisions of all."""


def enough_programs(robot, programs, candidates):
    """`FmuPrograms` at the first candidate that has a result, and at others that they need.

    Parameters
    ----------
    robot : Robot
    programs : callable
        ``programs(q)`` gives those at a configuration.
    candidates : list of ndarray
        Closed configurations.

    Raises
    ------
    SingularConfigurationError
        There is no result at any of the candidates.
    """
    found, error = [], None
    for q in candidates:
        try:
            found = [_traced(programs(q))]
            break
        except SingularConfigurationError as raised:
            error = error or raised
    if not found:
        raise error
    most = min(MOST, LONGEST // max(len(found[0].trace("partials").program), 1))
    if not robot.row_names or most < 2:
        return found
    q = _random_configurations(robot, candidates[0])
    covered = _holding(robot, found[0], q)
    while len(found) < most and len(q) and covered.mean() < ENOUGH:
        best, gain = None, 0
        for each in q[~covered][:TRIES]:
            with contextlib.suppress(SingularConfigurationError):
                trial = _traced(programs(each))
                holding = _holding(robot, trial, q)
                if (holding & ~covered).sum() > gain:
                    best, gain = (trial, holding), (holding & ~covered).sum()
        if best is None or gain < 2:
            break
        found.append(best[0])
        covered = covered | best[1]
    return found


def _traced(programs):
    """The same, if all of its functions have a result there."""
    for name in (*GUARDED, "partials"):
        programs.trace(name)
    return programs


def _random_configurations(robot, start):
    """Closed configurations that are not singular, near the start and far from it."""
    rng, found = np.random.default_rng(0), []
    for k in range(SAMPLES):
        with contextlib.suppress(ClosureError, SingularConfigurationError):
            q = close(robot, integrate(robot, start, SPREADS[k % len(SPREADS)] * rng.normal(size=robot.nv)))
            sizes = np.linalg.svd(constraint_jacobian(robot, q), compute_uv=False)
            if (sizes[sizes > 1e-9 * sizes[0]] > WORST * sizes[0]).all():
                found.append(q)
    return np.array(found).reshape(-1, robot.nq)


def _holding(robot, programs, q):
    """A mask of the configurations at which all guards hold, with velocities that keep loops closed."""
    rng = np.random.default_rng(1)
    v = rng.normal(size=(len(q), robot.nv))
    for each, G in zip(v, constraint_jacobian(robot, q)):
        each -= np.linalg.pinv(G, rcond=1e-8) @ (G @ each)
    given = {"q": q, "v": v, "tau": rng.normal(size=v.shape), "speeds": v[:, programs.states.speeds]}
    found = np.ones(len(q), bool)
    for name in GUARDED:
        trace = programs.trace(name)
        found &= guards_hold(trace.program, {x: given[x] for x in trace.inputs}, MARGIN)
    return found
