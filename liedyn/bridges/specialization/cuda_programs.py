"""The programs of a robot for CUDA, and stages for kernels that are too long."""
from liedyn.bridges.specialization.shortest_programs import ShortestPrograms
from liedyn.machine.program.cuda import REGISTERS
from liedyn.machine.program.expressions import value_of
from liedyn.machine.program.register_chunks import pressure_of
from liedyn.machine.program.trace import room
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.tree.ltdl import ltdl_factor, ltdl_inverse, ltdl_solve_both

STAGES = 1.5
"""Stages cost time for memory: they pay if a function needs so many times the numbers that a thread has room for."""


class CudaPrograms(ShortestPrograms):
    """`ShortestPrograms`, and stages."""

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
