"""A plan seen a part of a step later, as the next sample of model-predictive control begins with it."""
from liedyn.machine.compiled.by_address import placed
from liedyn.machine.compiled.jit import inline, kernel
from liedyn.tasks.planning.expansion import put_difference
from liedyn.tasks.planning.step import copy_vector, owned_in_phase, put_state


@inline
def blend(x, following, part):
    """x += part (following - x)."""
    for i in range(x.size):
        x[i] += part * (following[i] - x[i])


@kernel(nogil=True)
def shift_by_part(model, d, step, f, path, x, part):
    """Move each knot by a part of a step towards the next one, along the manifold; the last one stays.

    Inputs are the means of what the plan holds during the step from there, and so are feedback and multipliers.
    """
    count, d, step = path.u.shape[0], placed(d), placed(step)
    for k in range(count):
        of_knot, e = owned_in_phase(model, d, k)
        put_difference(of_knot, e, f.dq, path.q[k], path.v[k], path.q[k + 1], path.v[k + 1], f.dx)
        if put_state(of_knot, e, step, path.q[k], path.v[k], f.dx, part):
            copy_vector(step.stage.q, path.q[k])
            copy_vector(step.stage.v, path.v[k])
        blend(x.lam[k], x.lam[k + 1], part)
        if k + 1 < count:
            blend(path.u[k], path.u[k + 1], part)
            for i in range(path.u.shape[1]):
                blend(x.K[k, i], x.K[k + 1, i], part)
