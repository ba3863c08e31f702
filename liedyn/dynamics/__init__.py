"""Dynamics of constrained mechanisms: one formulation, one file."""

from liedyn.dynamics.forward import ForwardDynamics, forward_dynamics
from liedyn.dynamics.projectors import constraint_inertia, cross_coupling, is_decoupled, passive_joint_map, projector
from liedyn.dynamics.unified import unified_velocity

__all__ = [
    "ForwardDynamics", "constraint_inertia", "cross_coupling", "forward_dynamics", "is_decoupled",
    "passive_joint_map", "projector", "unified_velocity",
]
