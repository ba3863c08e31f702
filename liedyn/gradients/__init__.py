"""Derivatives of whole runs, exact for the steps of the integrator itself: forwards and backwards in time."""
from liedyn.gradients.accelerations import ForwardDynamicsDerivatives, forward_dynamics_derivatives
from liedyn.gradients.result import RunDerivatives, RunGradient, RunVariation
from liedyn.gradients.run import differentiate_run

__all__ = [
    "ForwardDynamicsDerivatives", "RunDerivatives", "RunGradient", "RunVariation", "differentiate_run",
    "forward_dynamics_derivatives",
]
