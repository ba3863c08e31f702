"""Forward dynamics of any mechanism: one signature, one result, several formulations."""
import warnings
from dataclasses import dataclass

import numpy as np

from liedyn.boundary import states, wrenches
from liedyn.constraints.independent import choose, singular_choice, wrong_count
from liedyn.constraints.loops import rank_of
from liedyn.constraints.wrenches import constraint_wrenches
from liedyn.dynamics import kane, multiplier, projection, svd, udwadia_kalaba, unified
from liedyn.dynamics.nullspace import (
    RANK_TOLERANCE, SINGULAR_CHOICE, SINGULAR_INERTIA, WRONG_COUNT, nullspace_kernel,
)
from liedyn.dynamics.problem import Solution, linear_solution, problem, stabilized
from liedyn.errors import ConditionWarning, InputError, SingularConfigurationError, suggestion
