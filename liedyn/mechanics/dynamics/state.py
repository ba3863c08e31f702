"""Named tuples of a state and of the equations of motion, as arguments of kernels."""
from collections import namedtuple

from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, inline_array
from liedyn.model.calls.batches import gather, in_lanes

State = namedtuple("State", "q v tau f_ext")
"""Configuration, velocity, generalised forces, wrenches on the links (six numbers each, or empty); or rows of them."""

Motion = namedtuple("Motion", "q v a lam")
"""A state, its accelerations and multipliers."""

Terms = namedtuple("Terms", "M h G gamma")
"""Equations of motion M a + h + G^T lambda = tau, G a = gamma."""

STATE = group(State, *[VECTOR] * 4)
StateTerms = namedtuple("StateTerms", "M h G residual psi gamma")
"""`Terms`, and the residual g of the constraints and psi = G v - b of their velocities."""

TERMS = group(Terms, MATRIX, VECTOR, MATRIX, VECTOR)
"""Their types for one state, for `liedyn.machine.compiled.jit.late`."""


@inline_array
def state_in_lanes(states):
    """Arrays for W states in lanes."""
    return State(in_lanes(states.q), in_lanes(states.v), in_lanes(states.tau), in_lanes(states.f_ext))


@inline
def gather_state(states, b, end, lanes):
    """Load the W states from row b on into lanes."""
    gather(states.q, b, end, lanes.q)
    gather(states.v, b, end, lanes.v)
    gather(states.tau, b, end, lanes.tau)
    gather(states.f_ext, b, end, lanes.f_ext)
