"""Exact local state space, discrete-time model and underlying ODE of any mechanism."""

from liedyn.linearization.discretize import DiscreteStateSpace, discretize
from liedyn.linearization.linearize import linearize
from liedyn.linearization.underlying import underlying
from liedyn.linearization.state_space import LocalStateSpace

__all__ = ["DiscreteStateSpace", "LocalStateSpace", "discretize", "linearize", "underlying"]
