"""Constraints: residual, Jacobian, bias, derivatives and wrenches of every kind; assembly; checks."""

from liedyn.mechanics.constraints.assembly import close, complete_velocity
from liedyn.mechanics.constraints.checking import check_constraint
from liedyn.mechanics.constraints.constraint_wrenches import constraint_wrenches, world_constraint_wrenches
from liedyn.mechanics.constraints.loops import (
    closure_error, constraint_bias, constraint_jacobian, velocity_error, virtual_coordinates, virtual_jacobian,
)

__all__ = [
    "check_constraint", "close", "closure_error", "complete_velocity", "constraint_bias", "constraint_jacobian",
    "constraint_wrenches", "velocity_error", "virtual_coordinates", "virtual_jacobian", "world_constraint_wrenches",
]
