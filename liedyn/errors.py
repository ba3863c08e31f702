"""Errors and warnings that liedyn raises; they are names of `liedyn`, too."""
from liedyn.machine.errors import (
    AccumulationError, CacheWarning, ClosureError, ConditionWarning, ContactWarning, ControllabilityError,
    InputError, LiedynError, ModelError, ModelWarning, SimulationError, SingularConfigurationError,
)

__all__ = [
    "AccumulationError", "CacheWarning", "ClosureError", "ConditionWarning", "ContactWarning",
    "ControllabilityError", "InputError", "LiedynError", "ModelError", "ModelWarning", "SimulationError",
    "SingularConfigurationError",
]
