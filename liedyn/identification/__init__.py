"""Parameters from measured motions: regressors, base parameters, bodies that can exist, motions that excite."""

from liedyn.identification.base import BaseParameters, IdentificationWarning, base_parameters
from liedyn.identification.excitation import Excitation, excitation
from liedyn.identification.identify import identify
from liedyn.identification.parameters import dynamic_parameters
from liedyn.identification.physical import IdentificationError
from liedyn.identification.regression import regressor
from liedyn.identification.result import Identification
from liedyn.identification.signals import low_pass, measured_motion

__all__ = ["BaseParameters", "Excitation", "Identification", "IdentificationError", "IdentificationWarning",
           "base_parameters", "dynamic_parameters", "excitation", "identify", "low_pass", "measured_motion",
           "regressor"]
