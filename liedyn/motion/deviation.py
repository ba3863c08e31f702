"""The difference of two states in the coordinates x = (y, w) of the linear model, and its derivative.

Coordinates y of the tree are read from the difference on the configuration group, log(q_0^-1 q), whose derivative is
the inverse right Jacobian joint by joint; coordinates of cut joints are subtracted directly. w = R_w v.
"""
import numpy as np

from liedyn.lie.se3 import right_jacobian_inverse
from liedyn.lie.so3 import so3_right_jacobian_inverse
from liedyn.machine.compiled.jit import kernel
from liedyn.machine.errors import InputError
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.families.cut import cut_derivatives_kernel
from liedyn.mechanics.constraints.independent import choose_positions, choose_speeds, given_coordinates
from liedyn.mechanics.constraints.loops import virtual_coordinates, virtual_jacobian
from liedyn.mechanics.tree.configuration import difference
from liedyn.mechanics.tree.kinematics import world_motion, world_size
from liedyn.model.calls.boundary import states
from liedyn.model.kinds import LOOP_KINDS
from liedyn.model.packed import N_VIRTUAL, NV


@kernel
def virtual_rate_derivatives(model, q, v):
    """d(E v)/dq (nz, nv), where E v are the velocities of the cut joints' coordinates."""
    n, nz = model.ints[NV], model.ints[N_VIRTUAL]
    work, zero, found = np.empty(world_size(model)), np.zeros(n), np.zeros((nz, n))
    world_motion(SCALAR, model, q, v, zero, work)
    cut_derivatives_kernel(model, work, True, found, np.zeros((nz, n)), np.zeros((nz, n)))
    return found


class Deviation:
    """The difference of states from a reference state of a robot.

    Attributes
    ----------
    robot : Robot
    q, v : ndarray
        The reference state.
    y, w : Independent
        The chosen coordinates and velocities.
    """

    def __init__(self, robot, q, v, independent, speeds, tolerance):
        independent = given_coordinates("independent", independent)
        y = choose_positions(robot, q, independent, tolerance)
        self._set(robot, q, v, y, choose_speeds(robot, q, y, given_coordinates("speeds", speeds), tolerance))

    def _set(self, robot, q, v, y, w):
        self.robot, self.q, self.v, self.y, self.w = robot, q.copy(), v.copy(), y, w
        self._reads = y.virtual >= 0
        self._reads_any = bool(self._reads.any() or (w.virtual >= 0).any())
        loops = {loop.name + suffix: loop for loop in robot.model.loops for suffix in LOOP_KINDS[loop.kind].velocities}
        for name, is_read in zip(y.names, self._reads):
            if is_read and LOOP_KINDS[loops[name].kind].has_quaternion:
                raise InputError(f"{name!r} of a ball cut has no position that could be regulated")
        self._is_angle = np.array([is_read and is_angle(loops[name], name)
                                   for name, is_read in zip(y.names, self._reads)], dtype=bool)
        self._z = virtual_coordinates(robot, q) if self._reads.any() else np.empty(0)
        self._groups = robot.groups
        self._w = self.speeds(q, v)

    def at(self, q, v):
        """The same coordinates about another reference state."""
        found = object.__new__(Deviation)
        found._set(self.robot, q, v, self.y, self.w)
        return found

    def speeds(self, q, v):
        """The independent velocities w."""
        return self._rows(self.w, q) @ v

    def state(self, q, v):
        """One checked state.

        Raises InputError if a shape does not fit, an entry is not finite, or a quaternion is not of unit length.
        """
        lead, q, v = states(self.robot, q=q, v=v)
        if lead:
            raise InputError(f"a regulator takes one state at a time, got leading axes {lead}")
        return q[0], v[0]

    def __call__(self, q, v):
        """x = (y, w), the difference of the state (q, v) from the reference state."""
        y = self.y.rows @ difference(self.robot, self.q, q)
        if self._reads.any():
            left = (virtual_coordinates(self.robot, q) - self._z)[self.y.virtual[self._reads]]
            turns = self._is_angle[self._reads]
            left[turns] -= 2.0 * np.pi * np.round(left[turns] / (2.0 * np.pi))  # to (-pi, pi]
            y[self._reads] = left
        return np.concatenate([y, self.speeds(q, v) - self._w])

    def derivative(self, q, v):
        """dx/dq in the tangent space at q, and dx/dv, each (x, nv)."""
        n = self.robot.nv
        turned = np.eye(n)
        if self._groups:
            dq = difference(self.robot, self.q, q)
            for group in self._groups:
                of_ball = so3_right_jacobian_inverse if group.stop - group.start == 3 else right_jacobian_inverse
                turned[group, group] = of_ball(dq[group])
        by_q = np.vstack([self.y.rows @ turned, np.zeros((len(self.w.names), n))])
        by_v = np.vstack([np.zeros((len(self.y.names), n)), self._rows(self.w, q)])
        if self._reads_any:
            by_q[:len(self.y.names)][self._reads] = virtual_jacobian(self.robot, q)[self.y.virtual[self._reads]]
            read = np.flatnonzero(self.w.virtual >= 0)
            slopes = virtual_rate_derivatives(self.robot.packed, q, v)
            by_q[len(self.y.names) + read] = slopes[self.w.virtual[read]]
        return by_q, by_v

    def _rows(self, chosen, q):
        return chosen.matrix(virtual_jacobian(self.robot, q)) if (chosen.virtual >= 0).any() else chosen.rows


def is_angle(loop, name):
    """True if a coordinate of a cut joint is an angle that is known up to full turns only."""
    form = LOOP_KINDS[loop.kind]
    return form.motions[form.velocities.index(name[len(loop.name):])][0] == "w" and not loop.pitch
