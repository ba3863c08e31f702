"""Rows of C and D for the wrenches of joints of the tree (`liedyn.mechanics.dynamics.joint_wrenches`).

With locks before the joints, F is the part of inverse dynamics in their rows. Its variation along a direction of
(y, w, u), which displaces q by dq and changes v, a and the multipliers by dv, da and dlam, is

    dF = (dID/dq + d(G^T lam)/dq) dq + dID/dv dv + M da + G^T dlam - d(forces of elements) - S du

with all derivatives those of the robot with locks, whose own coordinates do not vary, and S the forces of inputs that
act between bodies.
"""
import numpy as np

from liedyn.linear.contact_linearization import tree_derivatives
from liedyn.mechanics.dynamics.joint_wrenches import by_body, locked
from liedyn.mechanics.elements.generalized import actuator_matrix, forces_and_derivatives
from liedyn.model.calls.boundary import wrenches


class JointRows:
    """The outputs of joints of the tree at rows of states.

    Attributes
    ----------
    ways : Locked
    rows : list of int
        The first row of each joint in C and D.
    forces : ndarray
        External wrenches on the links of the robot with locks, one row for each state.
    """

    def __init__(self, robot, joints, f_ext, lead):
        self.ways = locked(robot, tuple(name for name, _ in joints))
        # locks are put where the joints stand in the declaration
        order = [joint.name for joint in robot.model.joints]
        self.rows = [row for _, row in sorted(joints, key=lambda each: order.index(each[0]))]
        self.forces = wrenches(self.ways.robot, by_body(robot, f_ext), lead)
        self.t = robot.t

    def put(self, values, C):
        """Write (joints, 6, columns) to the first columns of the rows of C."""
        for row, each in zip(self.rows, values):
            C[row:row + 6, :each.shape[-1]] = each

    def add(self, values, C):
        for row, each in zip(self.rows, values):
            C[row:row + 6, :each.shape[-1]] += each

    def of_mechanism(self, b, state, lam, dq, dv, da, dlam):
        """dF (joints, 6, columns) at state b, without force elements; dq and dv may have fewer columns than da."""
        ways, (q, v, a) = self.ways, state
        robot, lam, dlam = ways.robot, lam[None, ways.rows], dlam[ways.rows]
        given = [x(each[None]) for x, each in zip((ways.configuration, ways.velocity, ways.velocity), (q, v, a))]
        M, by_q, by_v = (x[ways.locks][..., ways.of_v] for x in tree_derivatives(
            robot.packed, *(x[0] for x in given), self.forces[b]))
        found = M @ da
        if lam.size:
            varied = np.where((dlam != 0.0).any(axis=1), 1.0, lam)  # multipliers that are zero here may change
            G, turned = ways.jacobian(given[0], varied)[0], ways.turned(*given, lam)
            by_q = by_q + turned[ways.locks][..., ways.of_v]
            found += np.moveaxis(G[:, ways.locks], 0, -1) @ dlam
        found[..., :dq.shape[1]] += by_q @ dq
        found[..., :dv.shape[1]] += by_v @ dv
        return found

    def of_elements(self, loop, state, N, X):
        """-d(forces) by (y, w) and by u of the robot's force elements, (count, joints, 6, columns) each.

        `loop` is the `ElementLoop` at these states (q, v), N and X give dq and dv.
        """
        ways, locks = self.ways, self.ways.locks
        q, v = ways.configuration(state[0]), ways.velocity(state[1])
        inner = loop.inner if loop.inner is not None and loop.inner.name == "u" else None
        u, driven = (loop.u if inner is None else inner.u), bool(ways.robot.elements.driven)
        _, by_q, by_v = forces_and_derivatives(ways.robot, self.t, q, v, u if driven else None)
        by_x = -by_v[:, locks][..., ways.of_v] @ X[:, None]
        by_x[..., :N.shape[-1]] -= by_q[:, locks][..., ways.of_v] @ N[:, None]
        by_u = np.zeros((*by_x.shape[:3], len(ways.robot.actuator_names)))
        if driven:
            by_u = -(actuator_matrix(ways.robot, q) - ways.robot.tree_actuators)[:, locks]
            if inner is not None:
                by_x += by_u @ inner.of_state(N, X)[:, None]
        return by_x, by_u
