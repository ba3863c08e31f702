"""Variations carried along the steps of a run, forwards, and gradients carried back
(`liedyn.motion.gradients.step_derivatives`)."""
from liedyn.machine.compiled.jit import kernel_in_place
from liedyn.machine.linalg.vectors import add_multiple, inner


@kernel_in_place(nogil=True)
def carry_forward(steps, origin, held, first, last, shift, du, dp, dx):
    """dx (rows, 2 n) of rows behind `first` up to `last`, from that of row `first`, whose time varies by `shift`.

    Row k + 1 follows row origin[k], which next to singular configurations is not row k
    (`liedyn.motion.simulation.singular_passages`).
    """
    for k in range(first, last):
        for i in range(dx.shape[1]):
            dx[k + 1, i] = inner(steps.by_state[k, i], dx[origin[k]]) + inner(steps.by_inputs[k, i], du[held[k]])
            dx[k + 1, i] += inner(steps.by_parameters[k, i], dp)
            if origin[k] == first:
                dx[k + 1, i] -= steps.by_length[k, i] * shift


@kernel_in_place(nogil=True)
def carry_back(steps, origin, held, first, last, y, du, dp):
    """Gradients y (rows, 2 n) of a function of all rows, each row held fixed, become those by what precedes the row.

    Adds to du and dp; returns the gradient by the time of row `first`.
    """
    shift = 0.0
    for k in range(last - 1, first - 1, -1):
        for i in range(y.shape[1]):
            add_multiple(y[k + 1, i], steps.by_state[k, i], y[origin[k]])
            add_multiple(y[k + 1, i], steps.by_inputs[k, i], du[held[k]])
            add_multiple(y[k + 1, i], steps.by_parameters[k, i], dp)
        if origin[k] == first:
            shift -= inner(steps.by_length[k], y[k + 1])
    return shift
