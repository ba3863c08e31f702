"""Exact local state space, discrete-time model and underlying ODE of any mechanism."""

from liedyn.linear.state_space import DiscreteStateSpace
from liedyn.linear.frequency import FrequencyResponse, frequency_response
from liedyn.linear.linearize import linearize
from liedyn.linear.modes import Modes, modes
from liedyn.linear.second.second_result import SecondDerivatives
from liedyn.linear.state_space import LocalStateSpace
from liedyn.linear.underlying import underlying

__all__ = [
    "DiscreteStateSpace", "FrequencyResponse", "LocalStateSpace", "Modes", "SecondDerivatives", "frequency_response",
    "linearize", "modes", "underlying",
]
