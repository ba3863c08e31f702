"""Exact local state space, discrete-time model and underlying ODE of any mechanism."""

from liedyn.linearization.discretize import DiscreteStateSpace, discretize
from liedyn.linearization.frequency import FrequencyResponse, frequency_response
from liedyn.linearization.linearize import linearize
from liedyn.linearization.modes import Modes, modes
from liedyn.linearization.state_space import LocalStateSpace
from liedyn.linearization.underlying import underlying

__all__ = [
    "DiscreteStateSpace", "FrequencyResponse", "LocalStateSpace", "Modes", "discretize", "frequency_response",
    "linearize", "modes", "underlying",
]
