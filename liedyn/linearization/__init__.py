"""Exact local state space and underlying ODE of any mechanism."""

from liedyn.linearization.linearize import linearize, underlying
from liedyn.linearization.state_space import LocalStateSpace

__all__ = ["LocalStateSpace", "linearize", "underlying"]
