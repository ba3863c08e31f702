"""Dynamics of constrained mechanisms, one formulation per file."""

from liedyn.mechanics.dynamics.canonical import canonical_equations, canonical_momenta, velocity_from_momenta
from liedyn.mechanics.dynamics.forward import ForwardDynamics, forward_dynamics
from liedyn.mechanics.dynamics.joint_wrenches import joint_wrenches, world_joint_wrenches
from liedyn.mechanics.dynamics.projectors import (
    constraint_inertia, cross_coupling, is_decoupled, passive_joint_map, projector,
)
from liedyn.mechanics.dynamics.unified import unified_velocity

__all__ = [
    "ForwardDynamics", "canonical_equations", "canonical_momenta", "constraint_inertia", "cross_coupling",
    "forward_dynamics", "is_decoupled", "joint_wrenches", "passive_joint_map", "projector", "unified_velocity",
    "velocity_from_momenta", "world_joint_wrenches",
]
