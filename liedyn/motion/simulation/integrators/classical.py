"""The classical Runge-Kutta method, on the numbers of q and on the group."""
from liedyn.motion.simulation.integrators.explicit import ExplicitRungeKutta
from liedyn.motion.simulation.integrators.method import CLASSICAL

METHODS = [
    ExplicitRungeKutta("rk4", "the classical Runge-Kutta method, of fourth order", *CLASSICAL),
    ExplicitRungeKutta("rkmk", "the same in local coordinates of the group (Runge-Kutta-Munthe-Kaas), which differs "
                       "for ball and free joints only", *CLASSICAL, on_group=True),
]
