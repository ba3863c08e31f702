"""Process noise: covariances of states, of inputs, or of disturbances that a matrix distributes to the states."""
import numpy as np

from liedyn.machine.arguments import floats
from liedyn.machine.errors import InputError, shown
from liedyn.tasks.cost_weights import weight


def entrance(noise, B, states, inputs):
    """The matrix G (x, ng) from disturbances to states, and names of the disturbances.

    Raises InputError if `noise` is neither "inputs", "states" nor such a matrix.
    """
    if isinstance(noise, str) and noise == "inputs":
        return B, inputs
    if isinstance(noise, str) and noise == "states":
        return np.eye(len(states)), states
    if isinstance(noise, str):
        raise InputError(f"noise must be 'inputs', 'states' or a matrix ({len(states)}, ng), got {shown(noise)}")
    G = floats("noise", noise)
    if G.ndim != 2 or len(G) != len(states) or not np.isfinite(G).all():
        raise InputError(f"noise must be 'inputs', 'states' or a finite matrix ({len(states)}, ng), got {G.shape}")
    return G, tuple(f"noise{k + 1}" for k in range(G.shape[1]))


def state_noise(Q, noise, B, states, inputs):
    """G Q G^T, for Q in the user's form."""
    G, labels = entrance(noise, B, states, inputs)
    found = G @ weight("Q", Q, labels, False) @ G.T
    return 0.5 * (found + found.T)
