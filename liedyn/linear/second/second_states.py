"""Second derivatives at rows of states: one workspace per thread."""
import numpy as np

from liedyn.linear.local import linearize_in_place, linearize_size, new_space
from liedyn.linear.lower_rows import complete_derivatives
from liedyn.linear.second.hessian import model_hessians, model_hessians_size
from liedyn.linear.second.weighted_sums import SumWeights
from liedyn.linear.space import Coordinates
from liedyn.machine.linalg.gauss_jordan import padded
from liedyn.machine.simd.lanes import SCALAR
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.dynamics.nullspace import OK
from liedyn.mechanics.dynamics.state import State
from liedyn.model.calls.batches import batch
from liedyn.model.packed import NV


@batch
def second_states(begin, end, model, states, request, weights, results):
    """Second derivatives results.H (states, first + sums, x + nu, x + nu), for a `SecondRequest`: after `first` ones
    that are zero, Hessians of weighted sums of the motion at linearized states.

    `weights` are `SumWeights` (states, sums, size), or (1, sums, size) for all states. States that are `done` are left
    as they are; it becomes 1 at the others, but where there is no state space.
    """
    (coordinates, actuators, tolerances), (H, done) = request, results
    R_y, virtual_y, R_w, virtual_w = coordinates
    p_y, p_w, nu, n = virtual_y.size, virtual_w.size, actuators.shape[1], model.ints[NV]
    columns = padded(p_y + p_w + nu)
    lower, moved = np.empty((p_w, columns)), np.empty((n, columns))
    space = new_space(model, p_y, p_w, nu)
    own = np.empty(linearize_size(model, p_y, p_w, nu))
    work = np.empty(model_hessians_size(model, weights.y.shape[1], p_y, p_w, nu))
    for b in range(begin, end):
        if done[b] == 1:
            continue
        chosen = Coordinates(R_y[min(b, R_y.shape[0] - 1)], virtual_y, R_w[min(b, R_w.shape[0] - 1)], virtual_w)
        state = State(states.q[b], states.v[b], states.tau[b], states.f_ext[b])
        found = linearize_in_place(model, state, chosen, actuators, tolerances.rank, own, space)
        if found[0] != OK or found[3] != OK:
            continue
        complete_derivatives(SCALAR, p_y, actuators, space, lower, moved)
        e = own[first_place(own):]
        own_weights = min(b, weights.y.shape[0] - 1)
        each = SumWeights(
            weights.y[own_weights], weights.w[own_weights], weights.a[own_weights], weights.lam[own_weights],
            weights.q[own_weights], weights.v[own_weights])
        first = H.shape[1] - weights.y.shape[1]
        H[b, :first] = 0.0
        model_hessians(model, state, chosen, each, e, work, space, H[b][first:].reshape(-1, H.shape[3]))
        done[b] = 1
