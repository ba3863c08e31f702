"""Dynamics of constrained mechanisms: one formulation, one file."""

from liedyn.dynamics.forward import ForwardDynamics, forward_dynamics

__all__ = ["ForwardDynamics", "forward_dynamics"]
