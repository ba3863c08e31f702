"""Gauss's method with two stages: implicit, fourth order, symmetric, symplectic in momenta."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.motion.simulation.integrators.explicit import advance
from liedyn.motion.simulation.integrators.method import Method

if TYPE_CHECKING:
    from typing import Any

ROOT = 3.0 ** 0.5 / 6.0


class Gauss(Method):
    """The method of `liedyn.motion.simulation.gauss_stages`, for `simulate`."""

    name = "gauss4"
    summary = ("Gauss's implicit Runge-Kutta method of fourth order on the group, by fixed-point iteration, for long "
               "motions that are not stiff; symplectic with formulation 'momenta'")
    loop: Any = staticmethod(advance)
    takes_momenta = True
    tableau = np.array([[1 / 4, 1 / 4 - ROOT], [1 / 4 + ROOT, 1 / 4], [1 / 2, 1 / 2]])


METHODS = [Gauss()]
