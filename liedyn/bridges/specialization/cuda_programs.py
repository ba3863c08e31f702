"""The programs of a robot for CUDA: models with the fewest operations, and stages for kernels that are too long."""
from liedyn.bridges.specialization.robot_programs import RobotPrograms
from liedyn.bridges.specialization.viewpoint import Viewpoint, base_parameters
from liedyn.machine.errors import InputError
from liedyn.machine.program.register_chunks import pressure_of
from liedyn.machine.program.cuda import REGISTERS
from liedyn.machine.program.expressions import value_of
from liedyn.machine.program.trace import constants, room
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.tree.ltdl import ltdl_factor, ltdl_inverse, ltdl_solve_both
from liedyn.model.calls.direct import bad_quaternion
from liedyn.model.packed import N_LINKS, SPARSE, PackedModel

LINEAR = ("A", "B", "f0")
"""Results of `linearize`."""
STAGES = 1.5
"""Stages cost time for memory: they pay if a function needs so many times the numbers that a thread has room for."""
LONGEST = 40_000
"""Operations of a program that is compiled at all: longer ones take minutes."""
SEEN = 12
"""Degrees of freedom up to which the link is chosen from which a program is shortest."""
IN_WORLD = ("crba", "rnea_derivatives", "aba_derivatives")
"""Functions that compute in world coordinates, and so may be seen from any link."""


class CudaPrograms(RobotPrograms):
    """`RobotPrograms` with base inertial parameters, seen from the link from which they have the fewest operations."""

    def __init__(self, robot, state):
        super().__init__(robot, state)
        ints, floats = map(constants, base_parameters(robot.packed))
        ints[SPARSE] = 0
        self.model, self._link = PackedModel(ints, floats), None

    def instead_in(self, name):
        if self._link is None:
            return None
        return lambda plain: Viewpoint(self._link, plain).instead()

    def _traced(self, name):
        if name == "forward_dynamics" and not self.m:  # the open tree has fewer operations
            return self.trace("aba")._replace(name=name, results=self.trace("aba").results | {"lam": constants([])})
        links = range(self.model.ints[N_LINKS]) if name in IN_WORLD and self.n <= SEEN else (None,)
        best = min((self._seen_from(link, name) for link in links), key=lambda trace: trace.length())
        if best.length() > LONGEST:
            raise InputError(f"{name} of {self.robot.name!r} is a program of {best.length()} operations, more than "
                             f"{LONGEST}: the general ld.{name} has no such limit")
        return best

    def _seen_from(self, link, name):
        self._link = link
        try:
            found = super()._traced(name)
        finally:
            self._link = None
        wanted = LINEAR if name == "linearize" else found.results
        return found._replace(results={x: found.results[x] for x in wanted})

    def _of_tree(self, name):
        return self._of_unit_quaternions(*super()._of_tree(name))

    def _of_method(self, body):
        return self._of_unit_quaternions(*super()._of_method(body))

    def _of_unit_quaternions(self, body, taken):
        """What requires quaternions to be of unit length, as the general functions do."""
        def required(plain, **given):
            if "q" in given:
                self._require(plain(bad_quaternion)(self.model, given["q"]) < 0)
            return body(plain, **given)

        return required, taken

    def stages(self, name, real):
        """A function, and what computes the same by several kernels if it needs too many registers as one."""
        whole = self.trace(name)
        if name != "aba_derivatives" or pressure_of(whole) <= STAGES * REGISTERS[real]:
            return [whole]
        derivatives = self.trace("rnea_derivatives")
        self.state |= {x: list(map(value_of, values)) for x, values in derivatives.results.items()}
        return [whole, self.trace("aba"), derivatives, self.trace("solved_derivatives")]

    def solved_derivatives(self, plain, dtau_dq, dtau_dv, M):
        """Derivatives of accelerations from those of forces, and the inverse of M."""
        n, model = self.n, self.model
        L, da_dq, da_dv, Minv = M.copy(), dtau_dq.copy(), dtau_dv.copy(), room(n * n)
        plain(ltdl_factor)(SCALAR, model, L)
        plain(ltdl_solve_both)(SCALAR, model, L, -1.0, da_dq, da_dv, n)
        plain(ltdl_inverse)(SCALAR, model, L, Minv)
        return {"da_dq": da_dq, "da_dv": da_dv, "Minv": Minv}
