"""Derivatives of simulated runs, exact for the integrator's own steps: forward variations and adjoint gradients."""
from liedyn.motion.gradients.accelerations import ForwardDynamicsDerivatives, forward_dynamics_derivatives
from liedyn.motion.gradients.differentiate_run import differentiate_run
from liedyn.motion.gradients.run_derivatives import RunDerivatives, RunGradient, RunVariation

__all__ = [
    "ForwardDynamicsDerivatives", "RunDerivatives", "RunGradient", "RunVariation", "differentiate_run",
    "forward_dynamics_derivatives",
]
