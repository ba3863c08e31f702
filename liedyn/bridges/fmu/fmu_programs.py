"""The programs of an FMU: what a `StepPrograms` has, with the independent coordinates held where loops are closed, the
velocity from independent velocities, the outputs, and all partial derivatives.

A small displacement of the independent coordinates is a tangent vector eta, with three numbers for a ball joint, whose
states are the numbers of a quaternion p. With p' = E(p) omega, E of full rank and E^T E = 1/4,

    dp = E eta        eta = 4 E^T dp        d(p') = Omega(omega) E eta + E domega        Omega(omega) p = E(p) omega

and the position x of a free joint, x' = R v, has dx = R eta_v and d(x') = R (dv + eta_omega x v).
"""
from typing import NamedTuple

import numpy as np

from liedyn.bridges.fmu.fmu_outputs import output_values
from liedyn.bridges.specialization.step_programs import StepPrograms
from liedyn.lie.algebra import quaternion_rotation
from liedyn.lie.exponential import left_jacobian_inverse, so3_left_jacobian_inverse
from liedyn.machine.program.trace import constants, room
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.closing_steps import RANK_TOLERANCE as CLOSING_RANK
from liedyn.mechanics.constraints.constraint_rows import jacobian_rows
from liedyn.mechanics.constraints.elimination import (
    dependence, dependent_dofs, eliminate, elimination_size, independent_dofs,
)
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree.configuration import difference_kernel
from liedyn.mechanics.tree.kinematics import world_positions, world_size
from liedyn.mechanics.tree.places import turn_free_rows

OF_FMU = ("velocity", "outputs", "partials")


class StateFeedback(NamedTuple):
    """A regulator, u = u_0 - K x with x the deviation of the states (y, w) from a state (q, v).

    Attributes
    ----------
    q, v, u, K : ndarray
    """

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    K: np.ndarray


class FmuPrograms(StepPrograms):
    """The programs of one robot at one reference state.

    Parameters
    ----------
    robot : Robot
    state : dict
        As for `RobotPrograms`.
    states : States
    plan : list of Output
    law : StateFeedback, optional
        Of inputs that are added to those of the FMU.
    """

    def __init__(self, robot, state, states, plan, law=None):
        lam = np.zeros(max(len(robot.row_names), 1))
        super().__init__(robot, state | {"speeds": state["v"][states.speeds], "lam": lam})
        self.states, self.plan, self.law = states, plan, law

    def choices(self):
        return self.states.y, self.states.w

    def forward_dynamics(self, plain, q, v, tau):
        """Accelerations and multipliers, with the forces of the regulator."""
        return super().forward_dynamics(plain, q, v, self._regulated(plain, q, v, tau))

    def _regulated(self, plain, q, v, tau):
        """Generalised forces, with those of the regulator."""
        if self.law is None:
            return tau
        return tau + constants(self.robot.tree_actuators) @ self._law_inputs(plain, q, v)

    def _law_inputs(self, plain, q, v):
        """The regulator's u_0 - K x, x the deviation of the states (`liedyn.motion.local_coordinates`)."""
        y, w = self.states.y.rows @ self._difference(plain, q), v[self.states.speeds] - self.law.v[self.states.speeds]
        return self.law.u - self.law.K @ np.concatenate([y, w])

    def _difference(self, plain, q):
        """The tangent vector from the regulator's configuration to q."""
        d = room(self.n)
        plain(difference_kernel)(self.model, constants(self.law.q), q, d)
        return d

    def _gains(self, plain, q):
        """Derivatives of the regulator's inputs by tangents of the independent coordinates, and by velocities."""
        turned, d = constants(np.eye(self.n)), self._difference(plain, q)
        for group in self.robot.groups:
            turned[group, group] = _left_jacobian_inverse(plain, -d[group])  # the right one of d
        rows, count, K = self.states.y.rows, len(self.states.y.names), self.law.K
        return -np.hstack([K[:, :count] @ (rows @ turned @ rows.T), K[:, count:]])

    def closing_step(self, plain, q):
        """The step of the dependent coordinates that closes the linearized constraints, with the sign reversed."""
        g, G = self._open_rows(plain, q)
        plain(turn_free_rows)(self.model, q, G, True)
        held = [j for group in self.states.groups for j in group.dofs]
        with q[0].program.guards.off():
            e, rank = self._eliminated(plain, G, g, held, CLOSING_RANK)
        step, (_, forced) = room(self.n), plain(dependence)(SCALAR, self.model, e, self.n - rank)
        for i, j in enumerate(plain(dependent_dofs)(self.model, e)[0][:rank]):
            step[int(j)] = forced[i]
        return {"step": step}

    def _eliminated(self, plain, G, right, held, tolerance):
        """The elimination's workspace, and the rank; held velocities stay independent."""
        e, choosable = room(plain(elimination_size)(SCALAR, self.model)), room(self.n) + 1.0
        choosable[held] = 0.0
        rank, _, _ = plain(eliminate)(self.model, G, right, choosable, tolerance, e)
        return e, int(rank)

    def velocity(self, plain, q, speeds):
        """v from independent velocities."""
        v = room(self.n)
        v[self.states.speeds] = speeds
        if self.m:
            world, G = room(plain(world_size)(self.model)), room(self.m, self.n)
            plain(world_positions)(SCALAR, self.model, q, world)
            plain(jacobian_rows)(self.model, q, world, G)
            e, rank = self._eliminated(plain, G, room(self.m), self.states.speeds, RANK_TOLERANCE)
            self._require(self.n - rank == len(speeds))
            slopes, _ = plain(dependence)(SCALAR, self.model, e, len(speeds))
            free = [int(j) for j in plain(independent_dofs)(self.model, e)[0][:len(speeds)]]
            for i, j in enumerate(plain(dependent_dofs)(self.model, e)[0][:rank]):
                v[int(j)] = slopes[i, :len(speeds)] @ v[free]
        return {"v": v}

    def outputs(self, plain, q, v, a, lam):
        """The values of the outputs, from the accelerations and multipliers of `forward_dynamics`."""
        return {"z": output_values(self, plain, (q, v, a, lam), None)[0]}

    def partials(self, plain, q, v, tau):
        """All partial derivatives, of the states' derivatives and of the outputs, by the states and the inputs."""
        space, left, _ = self.local_space(plain, q, v, self._regulated(plain, q, v, tau))
        p_y, nu = len(self.states.y.names), len(self.robot.actuator_names)
        C, D = self._output_rows(plain, q, v, space, left)
        _, rows = output_values(self, plain, (q, v, space.a, space.lam), np.hstack([C, D]))
        upper = self._upper_rows(plain, q, v, np.hstack([space.X[:, :space.A.shape[1]], room(self.n, nu)]))
        J = np.vstack([upper, np.hstack([space.A, space.B])[p_y:], rows])
        if self.law is not None:
            x = space.A.shape[1]
            J[:, :x] = J[:, :x] + J[:, x:] @ self._gains(plain, q)
        return {"J": np.hstack([J[:, :p_y] @ self._tangents(plain, q), J[:, p_y:]])}

    def _output_rows(self, plain, q, v, space, left):
        """C and D of `linearize`, for outputs as its kernels write them."""
        parts = np.array([each[:4] for each in self.plan], np.int64).reshape(-1, 4)
        count = sum(each.rows for each in self.plan)
        if not count:
            return room(0, space.A.shape[1]), room(0, space.B.shape[1])
        return self.output_rows(plain, q, v, left, parts, count)

    def _upper_rows(self, plain, q, v, dv):
        """Variations of the states' derivatives by tangents, velocities and inputs, from those of v."""
        rows, count = [], len(self.states.y.names)
        for group in self.states.groups:
            own = dv[group.dofs]
            if len(group.dofs) == 1:
                rows.append(own)
                continue
            p, omega, by = q[self.states.places][group.states], v[group.dofs], room(3, dv.shape[1])
            by[[0, 1, 2], group.tangents[:3]] = 1.0
            E = _quaternion_matrix(p)
            rows.append(_turning(omega[:3]) @ E @ by + E @ own[:3])
            if len(group.dofs) == 6:
                rows.append(_rotation(plain, p) @ (own[3:] - _cross(omega[3:]) @ by))
        return np.vstack(rows) if rows else room(0, count)

    def _tangents(self, plain, q):
        """eta by the states of position."""
        T, states = room(len(self.states.y.names), len(self.states.places)), q[self.states.places]
        for group in self.states.groups:
            rows, columns = group.tangents, range(group.states.start, group.states.stop)
            if len(rows) == 1:
                T[rows[0], columns[0]] = 1.0
                continue
            p = states[group.states]
            T[np.ix_(rows[:3], columns[:4])] = 4.0 * _quaternion_matrix(p).T
            if len(rows) == 6:
                T[np.ix_(rows[3:], columns[4:])] = _rotation(plain, p).T
        return T


class DrivenFmuPrograms(FmuPrograms):
    """`FmuPrograms` of a robot whose inputs act between points, along cables, as wrenches or at cut joints.

    Their generalised forces depend on q, also within a step: functions take inputs u in the place of tau.
    """

    def __init__(self, robot, state, states, plan, law=None):
        u = np.random.default_rng(1).normal(size=len(robot.actuator_names))
        super().__init__(robot, state | {"u": u}, states, plan, law)
        self._without_inputs = self._elements

    def forward_dynamics(self, plain, q, v, u):
        return super().forward_dynamics(plain, q, v, u)

    def stage_accelerations(self, plain, q, v, u):
        return super().stage_accelerations(plain, q, v, u)

    def partials(self, plain, q, v, u):
        return super().partials(plain, q, v, u)

    def _regulated(self, plain, q, v, u):
        """The generalised forces of actuators on the tree; those of the others come with the force elements."""
        if self.law is not None:
            u = u + self._law_inputs(plain, q, v)
        self._elements = self._without_inputs.with_inputs(u)
        return constants(self.robot.tree_actuators) @ u


def _left_jacobian_inverse(plain, d):
    """Of a rotation vector, or of a twist."""
    if len(d) == 3:
        return np.array(plain(so3_left_jacobian_inverse)(tuple(d)), object).reshape(3, 3)
    A, Q = (np.array(x, object).reshape(3, 3) for x in plain(left_jacobian_inverse)((tuple(d[:3]), tuple(d[3:]))))
    return np.vstack([np.hstack([A, room(3, 3)]), np.hstack([Q, A])])


def _quaternion_matrix(p):
    """E with p' = E omega, for a body-fixed angular velocity."""
    x, y, z, s = p[:4]
    return 0.5 * np.array([[s, -z, y], [z, s, -x], [-y, x, s], [-x, -y, -z]], object)


def _turning(omega):
    """Omega with p' = Omega p."""
    a, b, c = omega
    return 0.5 * np.array([[0.0, c, -b, a], [-c, 0.0, a, b], [b, -a, 0.0, c], [-a, -b, -c, 0.0]], object)


def _cross(a):
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]], object)


def _rotation(plain, p):
    """R of a quaternion."""
    return np.array(plain(quaternion_rotation)(*p[:4]), object).reshape(3, 3)
