"""Kutta's 3/8 rule (1901), of fourth order."""
from liedyn.simulation.integrators.explicit import ExplicitRungeKutta

METHODS = [ExplicitRungeKutta(
    "kutta", "Kutta's 3/8 rule, of fourth order",
    A=[[1 / 3], [-1 / 3, 1], [1, -1, 1]],
    b=[1 / 8, 3 / 8, 3 / 8, 1 / 8])]
