"""The programs of which the iterations are made that close loops and make steps."""
import numpy as np

from liedyn.bridges.specialization.logarithms import wherever_open
from liedyn.bridges.specialization.shortest_programs import ShortestPrograms
from liedyn.machine.program.expressions import Program, value_of
from liedyn.machine.program.guards import REDUNDANT
from liedyn.machine.program.trace import Tracer, constants, room
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.closing_steps import (
    RANK_TOLERANCE as CLOSING_RANK, clusters_of_dofs, clusters_of_rows,
)
from liedyn.mechanics.constraints.constraint_rows import jacobian_rows, residual_rows, velocity_rows
from liedyn.mechanics.constraints.elimination import eliminate, elimination_size
from liedyn.mechanics.constraints.independent import holonomic
from liedyn.mechanics.constraints.reduced import ForceBalance, Reduction, reduced_motion
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree.configuration import integrate_kernel
from liedyn.mechanics.tree.crba import crba_kernel, crba_size
from liedyn.mechanics.tree.kinematics import world_positions, world_size, world_velocities
from liedyn.mechanics.tree.places import displace, turn_free_rows
from liedyn.model.constraint_records import ranking_of
from liedyn.motion.simulation.coordinate_rates import coordinate_rates, unit_quaternions


class StepPrograms(ShortestPrograms):
    """`ShortestPrograms`, and those for closing loops and for steps of time."""

    def instead_in(self, name):
        of_open = name in ("closure_error", "closing_step", "position_change")
        return wherever_open if of_open else super().instead_in(name)

    def clusters(self):
        """The cluster of each constraint row, and of each degree of freedom."""
        plain = Tracer(Program({})).plain
        return ([int(c) for c in plain(clusters_of_rows)(self.model, np.empty(0, np.int64))],
                [int(c) for c in plain(clusters_of_dofs)(self.model)])

    def closure_error(self, plain, q):
        """What is left open, g, of all rows."""
        world, g = room(plain(world_size)(self.model)), room(self.m)
        plain(world_positions)(SCALAR, self.model, q, world)
        plain(residual_rows)(self.model, q, world, g)
        return {"g": g}

    def closing_step(self, plain, q):
        """The shortest step in units of the mechanism that closes the linearized constraints, with the sign reversed.

        Any pivots will do: whether a state is closed is measured afterwards.
        """
        g, G = self._open_rows(plain, q)
        plain(turn_free_rows)(self.model, q, G, True)
        columns = plain(ranking_of)(self.model, 0.0).columns
        with q[0].program.guards.off():
            return {"step": self._nearest(plain, np.diag(1.0 / columns ** 2), G, g, CLOSING_RANK)}

    def position_change(self, plain, q, inertia):
        """What is left open, g, and the nearest change in the metric of the inertia, with the sign reversed.

        Rows that are redundant in closed loops are left out: when the others are satisfied, they are.
        """
        g, G = self._open_rows(plain, q)
        with q[0].program.guards.off(REDUNDANT):
            return {"g": g, "change": self._nearest(plain, inertia, G, g, RANK_TOLERANCE)}

    def _open_rows(self, plain, q):
        """g, and G, of the rows that restrict positions; zero in the others."""
        world, g, G = room(plain(world_size)(self.model)), room(self.m), room(self.m, self.n)
        plain(world_positions)(SCALAR, self.model, q, world)
        plain(residual_rows)(self.model, q, world, g)
        plain(jacobian_rows)(self.model, q, world, G)
        for i in np.flatnonzero(~holonomic(self.robot)):
            g[i], G[i] = 0.0, 0.0
        return g, G

    def velocity_change(self, plain, q, v, inertia):
        """The nearest change of the velocity in the same metric, with the sign reversed."""
        world, psi, G = room(plain(world_size)(self.model)), room(self.m), room(self.m, self.n)
        plain(world_positions)(SCALAR, self.model, q, world)
        plain(jacobian_rows)(self.model, q, world, G)
        plain(world_velocities)(SCALAR, self.model, v, world)
        plain(velocity_rows)(self.model, q, v, world, psi)
        return {"change": self._nearest(plain, inertia, G, psi, RANK_TOLERANCE)}

    def _nearest(self, plain, M, G, left, tolerance):
        """The x with G x = left and K^T M x = 0: accelerations without forces (Gauss' principle)."""
        n, zeros = self.n, room(self.n)
        e, a, choosable = room(plain(elimination_size)(SCALAR, self.model)), room(n), room(n) + 1.0
        rank, _, _ = plain(eliminate)(self.model, G, left, choosable, tolerance, e)
        p = n - rank
        balance = ForceBalance(constants(M).reshape(n, n), zeros, zeros)
        reduction = Reduction(room(p, n), room(p, p + 1), room(p, p + 1))
        regular = plain(reduced_motion)(SCALAR, self.model, e, balance, reduction, a)
        self._require(regular)
        return a

    def inertia(self, plain, q):
        """The metric of projections: M(q), or the identity if some motion of the open tree has no inertia."""
        M = room(self.n * self.n)
        plain(crba_kernel)(SCALAR, self.model, q, room(plain(crba_size)(self.model)), M)
        values = np.array([value_of(x) for x in M]).reshape(self.n, self.n)
        massless = np.linalg.eigvalsh(values)[0] <= 1e-12 * values.max()
        return {"M": constants(np.eye(self.n)) if massless else M}

    def integrate(self, plain, q, dv):
        """q (+) dv."""
        q_new = room(self.nq)
        plain(integrate_kernel)(self.model, q, dv, q_new)
        return {"q_new": q_new}

    def displace(self, plain, q, dv):
        """q after a step in which free joints move along the axes of their parents."""
        q_new = room(self.nq)
        plain(displace)(self.model, q, dv, q_new)
        return {"q_new": q_new}

    def coordinate_rates(self, plain, q, v):
        """The time derivative of every number in q."""
        q_dot = room(self.nq)
        plain(coordinate_rates)(self.model, q, v, q_dot)
        return {"q_dot": q_dot}

    def unit_quaternions(self, plain, q):
        """q with quaternions of unit length."""
        q_new = q.copy()
        plain(unit_quaternions)(self.model, q_new)
        return {"q_new": q_new}

