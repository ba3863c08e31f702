"""Parameters from measured motions: regressors, base parameters, physically consistent bodies, exciting motions."""

from liedyn.tasks.identification.base import BaseParameters, IdentificationWarning, base_parameters
from liedyn.tasks.identification.dynamic_parameters import dynamic_parameters
from liedyn.tasks.identification.excitation import Excitation, excitation
from liedyn.tasks.identification.identification_result import Identification
from liedyn.tasks.identification.identify import identify
from liedyn.tasks.identification.physical import IdentificationError
from liedyn.tasks.identification.regression import regressor
from liedyn.tasks.identification.signals import low_pass, measured_motion

__all__ = ["BaseParameters", "Excitation", "Identification", "IdentificationError", "IdentificationWarning",
           "base_parameters", "dynamic_parameters", "excitation", "identify", "low_pass", "measured_motion",
           "regressor"]
