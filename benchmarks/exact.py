"""A, B and f of small mechanisms to fifty digits: Newton and Euler in mpmath, and differences that lose none of them.

From a robot's declaration alone: trees of revolute and prismatic joints, loops closed by points (spherical cuts, and
the revolute cuts of planar mechanisms, of which two rows count). The reduced dynamics wdot = f(y, w, u) is
differentiated by central differences of step 1e-20 in 70 digits: their error is of the order 1e-40.
"""
import numpy as np

from benchmarks.closures import is_planar
from benchmarks.errors import BenchmarkError, MissingPeer

DIGITS = 70
STEP_DIGITS = 20


def _mpmath():
    try:
        import mpmath
    except ModuleNotFoundError:
        raise MissingPeer("no mpmath") from None
    return mpmath


class ExactMechanism:
    """The reduced dynamics of one robot in exact arithmetic (very nearly).

    Parameters
    ----------
    robot : Robot
    independent : sequence of str
        Tree coordinates.

    Raises
    ------
    MissingPeer
        mpmath is not installed.
    BenchmarkError
        A joint or a cut that is not understood here.
    """

    def __init__(self, robot, independent):
        self.mp = _mpmath().mp.clone()
        self.mp.dps = DIGITS
        self.robot, self.planar = robot, is_planar(robot)
        bodies = {body.name: body for body in robot.model.bodies}
        order, self.links = ["ground"], []
        waiting = list(robot.model.joints)
        while waiting:  # parents first
            joint = next(j for j in waiting if j.parent in order)
            waiting.remove(joint)
            order.append(joint.child)
            if joint.kind not in ("revolute", "prismatic", "fixed"):
                raise BenchmarkError(f"{robot.name}: no {joint.kind} joint in exact arithmetic")
            body, k = bodies[joint.child], -1
            axis = self.number(np.zeros(3))
            if joint.kind != "fixed":
                k = robot.coordinate_names.index(joint.name)
                axis = self.number(joint.axes[0])
                axis = axis / self.mp.sqrt(axis @ axis)  # the declared one is a unit vector to rounding only
            if np.any(joint.stiffness) or np.any(joint.damping):
                raise BenchmarkError(f"{robot.name}: no springs in exact arithmetic")
            armature = self.mp.mpf(float(joint.armature[0])) if k >= 0 else 0
            placement = self.number(np.asarray(joint.placement))
            self.links.append((order.index(joint.parent), k, joint.kind, axis, placement[:3, :3], placement[:3, 3],
                               self.mp.mpf(float(body.mass)), self.number(body.com), self.number(body.inertia),
                               armature))
        self.order = order
        self.gravity = self.number(robot.gravity)
        self.points = []
        for loop in robot.model.loops:
            if not (loop.kind == "spherical" or loop.kind in ("revolute", "inline") and self.planar):
                raise BenchmarkError(f"{robot.name}: no {loop.kind} cut in exact arithmetic")
            self.points.append([(order.index(body), self.number(np.asarray(placement)[:3, 3])) for body, placement in (
                (loop.parent, loop.parent_placement), (loop.child, loop.child_placement))])
        self.picks = [robot.coordinate_names.index(name) for name in independent]
        self.actuators = self.number(robot.actuator_matrix)

    def number(self, x):
        """An array of the exact values of floats."""
        return np.vectorize(lambda value: self.mp.mpf(float(value)), otypes=[object])(np.asarray(x, dtype=float))

    def zeros(self, *shape):
        """An array of zeros."""
        return np.full(shape, self.mp.mpf(0), dtype=object)

    def motion(self, q, v, a):
        """Of each body in the world: R, origin, angular velocity and acceleration, velocity and acceleration of it."""
        zero, one = self.zeros(3), self.number(np.eye(3))
        states = [(one, zero, zero, zero, zero, zero)]
        for parent, k, kind, axis, turn, offset, *_ in self.links:
            R, p, w, dw, u, du = states[parent]
            arm = R @ offset
            p, u, du = p + arm, u + np.cross(w, arm), du + np.cross(dw, arm) + np.cross(w, np.cross(w, arm))
            R = R @ turn
            if kind == "revolute":
                z, c, s = R @ axis, self.mp.cos(q[k]), self.mp.sin(q[k])
                x = axis
                cross = np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]], dtype=object)
                R = R @ (c * one + s * cross + (1 - c) * np.outer(x, x))
                dw = dw + z * a[k] + np.cross(w, z * v[k])
                w = w + z * v[k]
            elif kind == "prismatic":
                z = R @ axis
                p = p + z * q[k]
                du = du + z * a[k] + 2 * np.cross(w, z * v[k]) + np.cross(dw, z * q[k])
                du = du + np.cross(w, np.cross(w, z * q[k]))
                u = u + z * v[k] + np.cross(w, z * q[k])
            states.append((R, p, w, dw, u, du))
        return states

    def inverse_dynamics(self, q, v, a):
        """Generalised forces."""
        states, tau = self.motion(q, v, a), self.zeros(len(v))
        forces = [self.zeros(3) for _ in states]
        moments = [self.zeros(3) for _ in states]  # about the world's origin
        for b in range(len(states) - 1, 0, -1):
            parent, k, kind, axis, _, _, m, com, inertia, armature = self.links[b - 1]
            R, p, w, dw, _, du = states[b]
            c = R @ com
            I = R @ inertia @ R.T
            force = m * (du + np.cross(dw, c) + np.cross(w, np.cross(w, c)) - self.gravity)
            forces[b] = forces[b] + force
            moments[b] = moments[b] + I @ dw + np.cross(w, I @ w) + np.cross(p + c, force)
            if k >= 0:
                z = R @ axis
                tau[k] = z @ (forces[b] if kind == "prismatic" else moments[b] - np.cross(p, forces[b]))
                tau[k] += armature * a[k]
            forces[parent], moments[parent] = forces[parent] + forces[b], moments[parent] + moments[b]
        return tau

    def gaps(self, q, v, a):
        """Of all loops: position, velocity and acceleration of one point against the other."""
        states, rows = self.motion(q, v, a), []
        for sides in self.points:
            side = []
            for b, point in sides:
                R, p, w, dw, u, du = states[b]
                arm = R @ point
                side.append((p + arm, u + np.cross(w, arm), du + np.cross(dw, arm) + np.cross(w, np.cross(w, arm))))
            rows.append([x - y for x, y in zip(*side)])
        keep = self._rows_in_plane()
        return [np.concatenate([row[kind][keep] for row in rows]) if rows else self.zeros(0) for kind in range(3)]

    def _rows_in_plane(self):
        """Of three rows those that count: all in space, the two across the axis in a planar mechanism."""
        if not self.planar:
            return [0, 1, 2]
        axis = next(R @ link[3] for link, (R, *_) in zip(
            self.links, self.motion(*[self.zeros(self.robot.nv)] * 3)[1:]) if link[2] == "revolute")
        return [k for k in range(3) if abs(axis[k]) < 0.5]

    def solve(self, matrix, right):
        """The solution of a square linear system."""
        mp = self.mp
        return np.array(list(mp.lu_solve(mp.matrix(matrix.tolist()), mp.matrix(right.tolist()))), dtype=object)

    def jacobian(self, q):
        """Rows of the loops, column by column."""
        zero, one = self.zeros(self.robot.nv), self.number(np.eye(self.robot.nv))
        return np.stack([self.gaps(q, e, zero)[1] for e in one], axis=-1) if self.points else self.zeros(0, len(zero))

    def f(self, q0, y, w, tau):
        """Accelerations of the independent coordinates at y, with velocities w, assembled from q0."""
        n, q = self.robot.nv, q0.copy()
        zero, one = self.zeros(n), self.number(np.eye(n))
        pick = one[self.picks]
        for _ in range(12):
            G = self.jacobian(q)
            Z = np.concatenate([G, pick])
            error = np.concatenate([-self.gaps(q, zero, zero)[0], y - q[self.picks]])
            step = self.solve(Z, error)
            q = q + step
            if max(abs(x) for x in step) < self.mp.mpf(10) ** (5 - DIGITS):
                break
        G = self.jacobian(q)
        v = self.solve(np.concatenate([G, pick]), np.concatenate([self.zeros(len(G)), w]))
        bias, drift = self.inverse_dynamics(q, v, zero), self.gaps(q, v, zero)[2]
        level = self.inverse_dynamics(q, zero, zero)
        M = np.stack([self.inverse_dynamics(q, zero, e) - level for e in one], axis=-1)
        m = len(G)
        system = np.concatenate([np.concatenate([M, G.T], axis=1), np.concatenate([G, self.zeros(m, m)], axis=1)])
        return self.solve(system, np.concatenate([tau - bias, -drift]))[:n][self.picks]

    def lower_rows(self, q, v, tau):
        """A21, A22 and B2 as one array of floats, (p, 2 p + nu), at a state given in floats."""
        h = self.mp.mpf(10) ** -STEP_DIGITS
        q0, tau0, p = self.number(q), self.number(tau), len(self.picks)
        y0, w0 = q0[self.picks], self.number(v)[self.picks]
        columns = []
        for column in range(2 * p + self.actuators.shape[1]):
            sides = []
            for sign in (1, -1):
                y, w, forces = y0.copy(), w0.copy(), tau0
                if column < p:
                    y[column] += sign * h
                elif column < 2 * p:
                    w[column - p] += sign * h
                else:
                    forces = tau0 + sign * h * self.actuators[:, column - 2 * p]
                sides.append(self.f(q0, y, w, forces))
            columns.append((sides[0] - sides[1]) / (2 * h))
        return np.stack(columns, axis=-1).astype(float)
