"""Partial derivatives of the equations of motion and of the constraints by a robot's parameters, at given states."""
import numpy as np

from liedyn.linear.sensitivity.changes import make_changes
from liedyn.linear.sensitivity.model_parameters import all_changes, chosen
from liedyn.linear.sensitivity.variations import ByParameters, Motion, partials_size, put_partials
from liedyn.model.calls.batches import batch
from liedyn.model.calls.boundary import as_floats, rows_of, states


@batch
def partial_states(begin, end, model, motion, changes, found):
    """`put_partials` at rows of states."""
    work = np.empty(partials_size(model, changes.first.size - 1))
    for b in range(begin, end):
        at = Motion(motion.q[b], motion.v[b], motion.a[b], motion.lam[b])
        put_partials(model, changes, at, work, ByParameters(found.force[b], found.phi[b], found.psi[b], found.g[b]))


def partial_derivatives(robot, parameters, q, v, a, lam):
    """Partial derivatives by parameters, for a robot without its force elements.

    Parameters
    ----------
    robot : Robot
    parameters : sequence of str
        Names or patterns (`liedyn.linear.sensitivity.model_parameters`).
    q, v, a : array_like, shape (..., nq), (..., nv), (..., nv)
    lam : array_like, shape (..., m)

    Returns
    -------
    force : ndarray, shape (..., nv, np)
        Of inverse dynamics plus G^T lambda.
    phi, psi, g : ndarray, shape (..., m, np)
        Of G a + Gdot v - bdot, of G v - b, and of the residual g, at a state where g is zero.
    """
    names, m = chosen(robot, parameters), len(robot.row_names)
    changes = make_changes([all_changes(robot)[name][0] for name in names])
    lead, q, v, a = states(robot, q=q, v=v, a=a)
    lam = rows_of("lam", as_floats("lam", lam, m), lead, m)
    found = ByParameters(*(np.empty((len(q), size, len(names))) for size in (robot.nv, m, m, m)))
    partial_states(robot.packed, Motion(q, v, a, lam), changes, found)
    return [x.reshape(lead + x.shape[1:]) for x in found]
