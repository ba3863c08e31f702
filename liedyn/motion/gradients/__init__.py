"""Derivatives of whole runs, exact for the steps of the integrator itself: forwards and backwards in time."""
from liedyn.motion.gradients.accelerations import ForwardDynamicsDerivatives, forward_dynamics_derivatives
from liedyn.motion.gradients.differentiate_run import differentiate_run
from liedyn.motion.gradients.run_derivatives import RunDerivatives, RunGradient, RunVariation

__all__ = [
    "ForwardDynamicsDerivatives", "RunDerivatives", "RunGradient", "RunVariation", "differentiate_run",
    "forward_dynamics_derivatives",
]
