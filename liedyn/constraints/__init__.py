"""Closed loops: residual, Jacobian, bias and assembly of cut joints."""

from liedyn.constraints.assembly import close, complete_velocity
from liedyn.constraints.loops import (
    closure_error,
    constraint_bias,
    constraint_jacobian,
    velocity_error,
    virtual_coordinates,
    virtual_jacobian,
)

__all__ = [
    "close", "closure_error", "complete_velocity", "constraint_bias", "constraint_jacobian", "velocity_error",
    "virtual_coordinates",
    "virtual_jacobian",
]
