"""Mechanisms in fifty digits, with parameters that can be changed by as little as 1e-15: Newton and Euler in mpmath.

From the declaration alone, body by body in world axes: generalised forces are powers of what accelerates the bodies on
the velocities of unit coordinates. Joints: revolute, prismatic, universal, translational, spherical, free, fixed.
Loops: cut balls; pins of planar mechanisms, of which two rows count; rods; disks that roll on the ground. Springs:
linear ones between points and of joints with one degree of freedom.
"""
import mpmath
import numpy as np

from benchmarks.closures import is_planar

DIGITS, STEP_DIGITS = 50, 12
"""Mixed central differences of steps 1e-12: their error is of the order 1e-24, and rounding leaves 1e-26."""


class ExactRobot:
    """The reduced dynamics of a robot whose parameters differ by `changes`, a dict of numbers by name."""

    def __init__(self, robot, changes, independent, speeds):
        self.mp = mpmath.mp.clone()
        self.mp.dps = DIGITS
        self.robot, self.changes, self.planar = robot, dict(changes), bool(robot.model.loops) and is_planar(robot)
        bodies = {body.name: body for body in robot.model.bodies}
        self.order, self.links, waiting = ["ground"], [], list(robot.model.joints)
        k = j = 0
        for joint in (each for name in robot.joint_names for each in waiting if each.name == name):
            self.links.append([joint, k, j])
            k, j = k + len(joint.rest), j + len(joint.armature)
        fixed = [[joint, 0, 0] for joint in waiting if joint.kind == "fixed"]
        waiting, self.links = self.links + fixed, []
        while waiting:  # parents first
            link = next(each for each in waiting if each[0].parent in self.order)
            waiting.remove(link)
            joint = link[0]
            body = bodies[joint.child]
            place = self.placement(joint.placement, f"placement.{{}}:{joint.name}")
            com = self.number(body.com) + [self.change(f"com.{axis}:{body.name}") for axis in "xyz"]
            self.links.append((self.order.index(joint.parent), *link, *place,
                               self.number(body.mass) + self.change(f"mass:{body.name}"), com, self.inertia(body)))
            self.order.append(joint.child)
        self.gravity = self.number(robot.gravity) + [self.change(f"gravity.{axis}") for axis in "xyz"]
        self.ends = {each.name: self.sides(each) for each in (
            *robot.model.loops, *robot.model.constraints, *(each.measure for each in robot.model.elements))}
        self.y = [robot.coordinate_names.index(name) for name in independent]
        self.y_v = [robot.velocity_names.index(name) for name in independent]
        self.w = [robot.velocity_names.index(name) for name in speeds]

    used = frozenset()

    def change(self, name):
        self.used = self.used | {name}
        return self.mp.mpf(self.changes.get(name, 0))

    def number(self, x):
        return np.vectorize(lambda value: self.mp.mpf(float(value)), otypes=[object])(np.asarray(x, float))[()]

    def zeros(self, *shape):
        return np.full(shape, self.mp.mpf(0), dtype=object)

    def inertia(self, body):
        I = self.number(body.inertia)
        for entry in ("xx", "xy", "xz", "yy", "yz", "zz"):
            d, (a, b) = self.change(f"inertia.{entry}:{body.name}"), ("xyz".index(axis) for axis in entry)
            I[a, b] += d
            if a != b:
                I[b, a] += d
        return I

    def placement(self, T, pattern):
        """R and p of a placement, moved along and turned about the parent's axes."""
        T = self.number(T)
        R, p = T[:3, :3], T[:3, 3] + [self.change(pattern.format(axis)) for axis in "xyz"]
        for axis, e in zip("xyz", np.eye(3)):
            d = self.change(pattern.format(f"r{axis}"))
            R = R if d == 0 else self.turn(self.number(e), d) @ R
        return R, p

    def sides(self, each):
        return [] if each.parent is None else [
            (self.order.index(getattr(each, side)),
             *self.placement(getattr(each, f"{side}_placement"), f"{side}_placement.{{}}:{each.name}"))
            for side in ("parent", "child")]

    def turn(self, x, angle):
        """Rotation about a unit vector."""
        c, s = self.mp.cos(angle), self.mp.sin(angle)
        cross = np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]], dtype=object)
        return c * self.number(np.eye(3)) + s * cross + (1 - c) * np.outer(x, x)

    def unit(self, axis):
        axis = self.number(axis)
        return axis / self.mp.sqrt(axis @ axis)  # the declared one is a unit vector to rounding only

    def motion(self, q, v, a):
        """Of each body in the world: R, origin, angular velocity and acceleration, velocity and acceleration of it."""
        o = self.zeros(3)
        states = [(self.number(np.eye(3)), o, o, o, o, o)]
        for parent, joint, k, j, R_0, p_0, *_ in self.links:
            state = self.carried(states[parent], states[parent][0] @ p_0)
            state = (state[0] @ R_0, *state[1:])
            if joint.kind in ("spherical", "free"):
                state = self.floated(state, joint.kind, q[k:], v[j:], a[j:])
            elif joint.kind != "fixed":
                turns = joint.kind in ("revolute", "universal")
                axes = self.number(np.eye(3)) if joint.kind == "translational" else map(self.unit, joint.axes)
                for i, axis in enumerate(axes):
                    move = self.turned if turns else self.slid
                    state = move(state, axis, q[k + i], v[j + i], a[j + i])
            states.append(state)
        return states

    @staticmethod
    def carried(state, arm):
        """The same at another place of the body."""
        R, p, w, dw, u, du = state
        return R, p + arm, w, dw, u + np.cross(w, arm), du + np.cross(dw, arm) + np.cross(w, np.cross(w, arm))

    def turned(self, state, axis, x, v, a):
        R, p, w, dw, u, du = state
        z = R @ axis
        return R @ self.turn(axis, x), p, w + z * v, dw + z * a + np.cross(w, z * v), u, du

    def slid(self, state, axis, x, v, a):
        R, p, w, dw, u, du = self.carried(state, state[0] @ axis * x)
        z = R @ axis
        return R, p, w, dw, u + z * v, du + z * a + 2 * np.cross(w, z * v)

    def floated(self, state, kind, q, v, a):
        R, p, w, dw, u, du = state
        x, y, z, s = q[:4] / self.mp.sqrt(q[:4] @ q[:4])
        Q = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - s * z), 2 * (x * z + s * y)],
                      [2 * (x * y + s * z), 1 - 2 * (x * x + z * z), 2 * (y * z - s * x)],
                      [2 * (x * z - s * y), 2 * (y * z + s * x), 1 - 2 * (x * x + y * y)]], dtype=object)
        if kind == "free":
            _, p, w, dw, u, du = self.carried(state, R @ q[4:7])
        R, spin = R @ Q, R @ Q @ v[:3]
        if kind == "free":
            slide = R @ v[3:6]
            u, du = u + slide, du + 2 * np.cross(w, slide) + R @ a[3:6] + np.cross(spin, slide)
        return R, p, w + spin, dw + R @ a[:3] + np.cross(w, spin), u, du

    def moved(self, q, step):
        """q displaced by a small step; quaternions by its first order, and made of unit length again."""
        q = q.copy()
        for _, joint, k, j, *_ in self.links:
            if joint.kind in ("spherical", "free"):
                (x, y, z, s), (a, b, c) = q[k:k + 4], step[j:j + 3] / 2
                turned = q[k:k + 4] + np.array([s * a + y * c - z * b, s * b + z * a - x * c, s * c + x * b - y * a,
                                                -x * a - y * b - z * c])
                if joint.kind == "free":
                    R = self.floated(self.motion(q, *[self.zeros(self.robot.nv)] * 2)[0], "spherical", q[k:],
                                     *[self.zeros(3)] * 2)[0]
                    q[k + 4:k + 7] += R @ step[j + 3:j + 6]
                q[k:k + 4] = turned / self.mp.sqrt(turned @ turned)
            else:
                q[k:k + len(joint.rest)] += step[j:j + len(joint.rest)]
        return q

    def point(self, states, side):
        b, R, p = side
        return self.carried(states[b], states[b][0] @ p)

    def rows(self, states):
        """Residuals (None where there is none), velocities and accelerations of all constraints."""
        found = []
        for each in (*self.robot.model.loops, *self.robot.model.constraints):
            a, b = (self.point(states, side) for side in self.ends[each.name])
            x, u, du = (b[k] - a[k] for k in (1, 4, 5))
            if each.kind == "disk_on_plane":
                found += self.rolling(each, x, b)
            elif each.kind == "distance":
                found.append(self.length(x, u, du, self.number(each.length) + self.change(f"length:{each.name}")))
            else:
                assert each.kind == "spherical" or each.kind in ("revolute", "inline") and self.planar
                keep = range(3)
                if self.planar:
                    n = states[1][0] @ self.number(self.links[0][1].axes[0])
                    keep = [k for k in range(3) if abs(n[k]) < 0.5]
                C = self.number(np.eye(3)) if self.planar else (a[0] @ self.ends[each.name][0][1]).T
                w, dw, G = a[2], a[3], C  # rows of balls are components in the axes of A
                rate = u if self.planar else u - np.cross(w, x)
                rate_2 = du if self.planar else du - np.cross(dw, x) - np.cross(w, u) - np.cross(w, u - np.cross(w, x))
                found += [((G @ x)[k], (G @ rate)[k], (G @ rate_2)[k]) for k in keep]
        return found

    def length(self, x, u, du, rest):
        size = self.mp.sqrt(x @ x)
        rate = x @ u / size
        return size - rest, rate, (u @ u + x @ du - rate * rate) / size

    def rolling(self, each, x, disk):
        """A disk on a plane of the ground: height of the rim, and the velocity of the point that touches."""
        R, _, w, dw, u, du = disk
        e, r = self.unit(each.axis), self.number(each.radius) + self.change(f"radius:{each.name}")
        d = R @ self.ends[each.name][1][1] @ self.unit(each.child_axis)
        d_dot = np.cross(w, d)
        n, n_dot = e - d * (d @ e), -d_dot * (d @ e) - d * (d_dot @ e)
        size = self.mp.sqrt(n @ n)
        rho, rho_dot = -r * n / size, -r * (n_dot / size - n * (n @ n_dot) / size ** 3)
        c = u + np.cross(w, rho)
        c_dot = du + np.cross(dw, rho) + np.cross(w, rho_dot)
        along = [k for k in range(3) if k != np.argmax(np.abs(each.axis))]
        return [(x @ e - r * size, c @ e, c_dot @ e), *((None, c[k], c_dot[k]) for k in along)]

    def units(self, q):
        """Motions with one unit velocity each, and the Jacobian of the rows that they make."""
        n, o = self.robot.nv, self.zeros(self.robot.nv)
        units = [self.motion(q, e, o) for e in self.number(np.eye(n))]
        return units, np.array([[row[1] for row in self.rows(unit)] for unit in units], dtype=object).reshape(n, -1).T

    def forces(self, units, q, v, a):
        """Inverse dynamics with all springs."""
        states, tau = self.motion(q, v, a), self.zeros(self.robot.nv)
        for b, (_, joint, k, j, *_, m, com, inertia) in enumerate(self.links, 1):
            R, _, w, dw, _, du = state = states[b]
            if m != 0 or np.any(inertia != 0):
                I, force = R @ inertia @ R.T, m * (self.carried(state, R @ com)[5] - self.gravity)
                moment = I @ dw + np.cross(w, I @ w)
                for i, unit in enumerate(units):
                    tau[i] += force @ self.carried(unit[b], R @ com)[4] + moment @ unit[b][2]
            for i in range(len(joint.armature)):
                tau[j + i] += self.number(joint.armature[i]) * a[j + i] + self.number(joint.damping[i]) * v[j + i]
                if joint.stiffness[i]:
                    tau[j + i] += self.number(joint.stiffness[i]) * (q[k + i] - self.number(joint.rest[i]))
        for each in self.robot.model.elements:
            name = each.name
            stiffness, damping, preload = (self.number(x) + self.change(f"{what}:{name}") for what, x in zip(
                ("stiffness", "damping", "preload"), each.numbers))
            first, second = (self.point(states, side) for side in self.ends[name])
            x, u = second[1] - first[1], second[4] - first[4]
            rest = self.number(each.measure.length) + self.change(f"length:{name}")
            stretch, rate, _ = self.length(x, u, 0 * u, rest)
            for i, unit in enumerate(units):
                a_i, b_i = (self.point(unit, side)[4] for side in self.ends[name])
                tau[i] += (stiffness * stretch + damping * rate + preload) * (x @ (b_i - a_i)) / self.mp.sqrt(x @ x)
        return tau

    def solve(self, matrix, right):
        mp = self.mp
        return np.array(list(mp.lu_solve(mp.matrix(matrix.tolist()), mp.matrix(right.tolist()))), dtype=object)

    def at(self, q0, v0, tau, dy, dw, du):
        """The time derivative of the state (y, w), then a, at displacements of y, w and tau, assembled from q0."""
        one, o = self.number(np.eye(self.robot.nv)), self.zeros(self.robot.nv)
        q, y = self.number(q0), self.number(q0)[self.y] + dy
        for _ in range(8):
            rows, (units, G) = self.rows(self.motion(q, o, o)), self.units(q)
            kept = [k for k, row in enumerate(rows) if row[0] is not None]
            left = np.concatenate([np.array([-rows[k][0] for k in kept], object), y - q[self.y]])
            step = self.solve(np.concatenate([G[kept], one[self.y_v]]), left)
            q = self.moved(q, step)
            if max(abs(x) for x in step) < self.mp.mpf(10) ** (-DIGITS // 2 - 5):  # what is left is the square of it
                break
        units, G = self.units(q)
        speeds = np.concatenate([self.zeros(len(G)), self.number(v0)[self.w] + dw])
        v = self.solve(np.concatenate([G, one[self.w]]), speeds)
        bias, level = self.forces(units, q, v, o), self.forces(units, q, o, o)
        M = np.stack([self.forces(units, q, o, e) - level for e in one], axis=-1)
        assert self.used >= set(self.changes), "an unknown parameter"
        drift, m = np.array([row[2] for row in self.rows(self.motion(q, v, o))], object), len(G)
        system = np.concatenate([np.concatenate([M, G.T], axis=1), np.concatenate([G, self.zeros(m, m)], axis=1)])
        solved = self.solve(system, np.concatenate([self.number(tau) + du - bias, -drift]))
        return np.concatenate([v[self.y_v], solved[self.w], solved])


def exact_sensitivity(robot, state, independent, speeds, name, direction):
    """Derivatives by a parameter: of f0, a and lambda, and of A and B times a direction (dy, dw, du)."""
    p, r = len(independent), len(speeds)
    *parts, u = np.split(direction, [p, p + r])
    parts = *parts, robot.actuator_matrix @ u
    with mpmath.workdps(DIGITS):
        h = mpmath.mpf(10) ** -STEP_DIGITS
        sides = {(s, c): ExactRobot(robot, {name: s * h}, independent, speeds).at(*state, *(
            c * h * np.array([mpmath.mpf(float(x)) for x in part], object) for part in parts))
            for s in (1, -1) for c in (1, -1)}
        first = (sides[1, 1] + sides[1, -1] - sides[-1, 1] - sides[-1, -1]) / (4 * h)
        mixed = (sides[1, 1] - sides[1, -1] - sides[-1, 1] + sides[-1, -1]) / (4 * h * h)
    first, mixed = first.astype(float), mixed.astype(float)
    x = p + r
    return first[:x], first[x:x + robot.nv], first[x + robot.nv:], mixed[:x]
