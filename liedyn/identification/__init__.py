"""Parameters from measured motions: regressors, base parameters, bodies that can exist, motions that excite."""

from liedyn.identification.base import BaseParameters, base_parameters
from liedyn.identification.parameters import dynamic_parameters
from liedyn.identification.regression import regressor

__all__ = ["BaseParameters", "base_parameters", "dynamic_parameters", "regressor"]
