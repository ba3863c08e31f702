"""Random states that a mechanism can have: closed configurations, velocities and accelerations that keep them so."""
import numpy as np

from liedyn.machine.errors import ClosureError, SingularConfigurationError
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.constraints.cluster_weights import null_space, pseudoinverse, rank_of_rows, ranks
from liedyn.mechanics.constraints.loops import constraint_bias, constraint_jacobian, velocity_error
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree.configuration import integrate, random_configuration

LONGEST = 0.5
"""Step of the walk from one closed configuration to the next: its largest coordinate [rad, m]."""
TRIALS = 50
"""So often in a row a step may fail, each half as long as the one before, before the walk goes on from where it is."""
FARTHEST = 10.0
"""The rows of the constraints may become worse conditioned than at home by this factor: singularities are avoided."""


def random_states(robot, count, rng):
    """q, v and a of so many states, each independent of the others but for q of closed mechanisms, which walk.

    Raises
    ------
    ClosureError
        The home configuration cannot be closed.
    """
    v, a = rng.normal(size=(2, count, robot.nv))
    if not robot.row_names:
        return random_configuration(robot, rng, count), v, a
    q = closed_configurations(robot, count, rng)
    return q, *allowed(robot, q, v, a)


def closed_configurations(robot, count, rng):
    """A random walk along the motions that the constraints allow, from home, within limits."""
    here, found = close(robot, robot.home), []
    worst = FARTHEST * condition(robot, here)
    for _ in range(count):
        length = LONGEST
        for _ in range(TRIALS):
            N = null_space(robot, constraint_jacobian(robot, here), RANK_TOLERANCE)
            step = N @ (N.T @ rng.normal(size=robot.nv))
            try:
                there = close(robot, integrate(robot, here, length * step / max(abs(step).max(), 1e-300)))
                if condition(robot, there) < worst and ((robot.lower <= there) & (there <= robot.upper)).all():
                    here = there
                    break
            except (ClosureError, SingularConfigurationError):
                pass
            length = max(length / 2.0, 1e-3)
        found.append(here)
    return np.array(found)


def condition(robot, q):
    """The largest singular value of the rows of the constraints by the smallest one that counts."""
    G = constraint_jacobian(robot, q)
    s = np.linalg.svd(G, compute_uv=False)[:rank_of_rows(robot, G, RANK_TOLERANCE)]
    return s.max(initial=1.0) / s.min(initial=1.0)


def allowed(robot, q, v, a):
    """The velocities and accelerations nearest to given ones that the constraints allow."""
    G, v, a = constraint_jacobian(robot, q), v.copy(), a.copy()
    error = velocity_error(robot, q, v)
    plus = pseudoinverse(G, ranks(robot, G, RANK_TOLERANCE)[0])
    v -= np.einsum("bij,bj->bi", plus, error)
    gamma = constraint_bias(robot, q, v)
    a -= np.einsum("bij,bj->bi", plus, np.einsum("bij,bj->bi", G, a) - gamma)
    return v, a
