"""What is called by the text that `liedyn.model.calls.recursion` writes for a declaration."""
from liedyn.machine.arguments import require_robot  # noqa: F401
from liedyn.machine.compiled.objects import is_none, item, number_of, numbers, scratch  # noqa: F401
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH  # noqa: F401
from liedyn.model.calls.batches import (  # noqa: F401
    aligned, batch, prefetch_rows, gather, in_lanes, lines_for, scatter, scatter_matrix, check_rows,
)
from liedyn.model.calls.boundary import (
    delivered_all, in_users_shape, rows_for, rows_for_all, states, states_unchecked, wrenches,
)
from liedyn.model.calls.direct import (  # noqa: F401
    configuration, direct, nothing, packed, result, results, general_path, velocity,
)
from liedyn.model.packed_records import body_count, dof_total, q_total  # noqa: F401


def of_all_states(robot, kernel, shape, out, state, **others):
    """Results of ``kernel(model, *rows, *others, *results, verdict)`` in the user's shape.

    Parameters
    ----------
    robot : Robot
    kernel : batch
    shape : tuple
        Of the result at each state; of several results, a tuple of shapes.
    out : object
        As the user gave it.
    state : dict
        What `states` takes, in the order of the rows.
    **others
        What it takes besides: `f_ext` as the user gave it, or the number `b` of a body.
    """
    lead, *rows, verdict = states_unchecked(robot, **state)
    many = shape != () and isinstance(shape[0], tuple)
    made = (rows_for_all if many else rows_for)(out, lead, shape, *rows)
    rows += [wrenches(robot, x, lead) if name == "f_ext" else x for name, x in others.items()]
    kernel(robot.packed, *rows, *(made if many else (made,)), verdict)
    if not verdict[0]:
        states(robot, **state)
    made = (delivered_all if many else in_users_shape)(made, lead, shape, out)
    return float(made) if out is None and shape == lead == () else made
