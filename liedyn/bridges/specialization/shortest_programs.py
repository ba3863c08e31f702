"""The programs of a robot with the fewest operations: base inertial parameters, seen from the best link."""
from liedyn.bridges.specialization.robot_programs import HESSIANS, RobotPrograms
from liedyn.bridges.specialization.viewpoint import Viewpoint, base_parameters
from liedyn.machine.program.trace import constants, room
from liedyn.model.packed import N_LINKS, SPARSE, PackedModel

SEEN = 12
"""Degrees of freedom up to which the link is chosen from which a program is shortest."""
IN_WORLD = ("crba", "rnea_derivatives", "aba_derivatives", *HESSIANS)
"""Functions that compute in world coordinates, and so may be seen from any link."""


class ShortestPrograms(RobotPrograms):
    """`RobotPrograms` with base inertial parameters, seen from the link from which they have the fewest operations.

    Parameters
    ----------
    robot : Robot
    state : dict
        As for `RobotPrograms`.
    chosen : tuple, optional
        As for `RobotPrograms`.
    """

    def __init__(self, robot, state, chosen=None):
        super().__init__(robot, state, chosen)
        ints, floats = map(constants, base_parameters(robot.packed))
        ints[SPARSE] = 0
        self.model, self._link = PackedModel(ints, floats), None

    def instead_in(self, name):
        if self._link is None:
            return super().instead_in(name)
        return lambda plain: Viewpoint(self._link, plain).instead()

    def _traced(self, name):
        links = range(self.model.ints[N_LINKS]) if name in IN_WORLD and self.n <= SEEN else (None,)
        return min((self._seen_from(link, name) for link in links), key=lambda trace: trace.length())

    def forward_dynamics(self, plain, q, v, tau):
        """Accelerations a and multipliers lam; without constraints by `aba`, in fewer operations."""
        if self.m:
            return super().forward_dynamics(plain, q, v, tau)
        tau = self.with_elements(plain, q, v, tau)
        return self._of_tree("aba")[0](plain, q=q, v=v, tau=tau) | {"lam": room(0)}

    def _seen_from(self, link, name):
        self._link = link
        try:
            return super()._traced(name)
        finally:
            self._link = None
