"""Inverse dynamics of trees in sixty digits, and its second derivatives: Newton and Euler in mpmath.

From the declaration alone, body by body in world axes: positions and velocities outward, wrenches about the world's
origin inward. All kinds of joints with their springs, dampers and armatures, and wrenches on bodies. Second derivatives
along directions: polarisation, which is exact, in velocities and accelerations, and central differences of steps 1e-15
in positions, whose error is of the order 1e-30, as is what rounding leaves.
"""
import mpmath
import numpy as np

from liedyn.model.frames import joint_basis
from tests.exact_rows import cross

DIGITS, STEP_DIGITS = 60, 15


class ExactTree:
    """Inverse dynamics of a robot without loops."""

    def __init__(self, robot):
        self.mp = mpmath.mp.clone()
        self.mp.dps = DIGITS
        self.robot, bodies = robot, {body.name: body for body in robot.model.bodies}
        places, k, j = {}, 0, 0
        joints = {joint.name: joint for joint in robot.model.joints}
        for name in robot.joint_names:
            places[name] = k, j
            k, j = k + len(joints[name].rest), j + len(joints[name].armature)
        self.names, self.links, waiting = ["ground"], [], list(joints.values())
        while waiting:  # parents first
            joint = next(each for each in waiting if each.parent in self.names)
            waiting.remove(joint)
            body, T = bodies[joint.child], self.number(joint.placement)
            self.links.append((self.names.index(joint.parent), joint, *places.get(joint.name, (0, 0)), T[:3, :3],
                               T[:3, 3], self.number(body.mass), self.number(body.com), self.number(body.inertia)))
            self.names.append(joint.child)

    def number(self, x):
        return np.vectorize(lambda value: self.mp.mpf(value), otypes=[object])(np.asarray(x))[()]

    def turn(self, x, angle):
        """Rotation about a unit vector."""
        c, s = self.mp.cos(angle), self.mp.sin(angle)
        hat = np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]], dtype=object)
        return c * np.eye(3, dtype=int) + s * hat + (1 - c) * np.outer(x, x)

    def rotation(self, q):
        x, y, z, s = q / self.mp.sqrt(q @ q)
        return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - s * z), 2 * (x * z + s * y)],
                         [2 * (x * y + s * z), 1 - 2 * (x * x + z * z), 2 * (y * z - s * x)],
                         [2 * (x * z - s * y), 2 * (y * z + s * x), 1 - 2 * (x * x + y * y)]], dtype=object)

    def steps(self, joint, q):
        """What a joint does, one after the other: turns and shifts by and along axes, with its degree of freedom."""
        if joint.kind in ("planar", "translational"):
            axes = self.number(joint_basis(joint.axes)).T
            kinds = ("shift", "shift", "turn" if joint.kind == "planar" else "shift")
            return [(kind, axis, d, 1) for d, (kind, axis) in enumerate(zip(kinds, axes))]
        axes = [axis / self.mp.sqrt(axis @ axis) for axis in map(self.number, joint.axes)]
        if joint.kind == "helical":
            return [("turn", axes[0], 0, 1), ("shift", axes[0], 0, self.number(joint.pitch))]
        if joint.kind == "cylindrical":
            return [("turn", axes[0], 0, 1), ("shift", axes[0], 1, 1)]
        return [("turn" if joint.kind in ("revolute", "universal") else "shift", axis, d, 1)
                for d, axis in enumerate(axes)]

    def move(self, state, joint, q, v, a):
        """The state of a body (R, p, w, dw, u, du) beyond a joint, and the screw of each degree of freedom."""
        R, p, w, dw, u, du = state
        screws = np.zeros((len(joint.armature), 2, 3), dtype=object)  # moment and force per unit of a wrench at p
        if joint.kind in ("spherical", "free"):
            if joint.kind == "free":
                R, p, w, dw, u, du = carried(state, R @ q[4:7])
            E = np.eye(3, dtype=int)
            R = R @ self.rotation(q[:4])
            spin = R @ v[:3]
            if joint.kind == "free":
                slide = R @ v[3:6]
                u, du = u + slide, du + 2 * cross(w, slide) + R @ a[3:6] + cross(spin, slide)
                screws[3:, 1] = (R @ E).T
            screws[:3, 0] = (R @ E).T
            return (R, p, w + spin, dw + R @ a[:3] + cross(w, spin), u, du), [(s, p) for s in screws]
        places = [None] * len(screws)
        for kind, axis, d, rate in self.steps(joint, q):
            z, speed, push = R @ axis, v[d] * rate, a[d] * rate
            if kind == "turn":
                R, w, dw = R @ self.turn(axis, q[d]), w + z * speed, dw + z * push + cross(w, z * speed)
                screws[d, 0] = z
            else:
                R, p, w, dw, u, du = carried((R, p, w, dw, u, du), z * (q[d] * rate))
                u, du = u + z * speed, du + z * push + 2 * cross(w, z * speed)
                screws[d, 1] = z * rate
            places[d] = p
        return (R, p, w, dw, u, du), list(zip(screws, places))

    def forces(self, q, v, a, f_ext=None):
        """Inverse dynamics; f_ext maps names of bodies to wrenches in their frames."""
        o, tau = self.number(np.zeros(3)), self.number(np.zeros(self.robot.nv))
        states, wrenches = [(self.number(np.eye(3)), o, o, o, o, o - self.number(self.robot.gravity))], [(o, o)]
        screws = [None]
        for parent, joint, k, j, R_0, p_0, m, com, inertia in self.links:
            state = carried(states[parent], states[parent][0] @ p_0)
            state = state[0] @ R_0, *state[1:]
            if joint.kind != "fixed":
                state, own = self.move(state, joint, q[k:], v[j:], a[j:])
                screws.append(own)
                self.add_joint(joint, q[k:], v[j:], a[j:], tau[j:])
            else:
                screws.append([])
            states.append(state)
            R, p, w, dw, _, _ = state
            center, I = carried(state, R @ com), R @ inertia @ R.T
            force, moment = m * center[5], I @ dw + cross(w, I @ w)
            moment = moment + cross(center[1], force)
            if f_ext and joint.child in f_ext:
                F = self.number(f_ext[joint.child])
                push = R @ F[3:]
                force, moment = force - push, moment - R @ F[:3] - cross(p, push)
            wrenches.append((moment, force))
        for b in range(len(self.links), 0, -1):
            parent, _, _, j = self.links[b - 1][:4]
            moment, force = wrenches[b]
            wrenches[parent] = wrenches[parent][0] + moment, wrenches[parent][1] + force
            for d, (screw, p) in enumerate(screws[b]):
                tau[j + d] += screw[0] @ (moment - cross(p, force)) + screw[1] @ force
        return tau

    def add_joint(self, joint, q, v, a, tau):
        """tau += armature a + damping v + dV/dq."""
        k = self.number(joint.stiffness)
        for d in range(len(joint.armature)):
            tau[d] += self.number(joint.armature[d]) * a[d] + self.number(joint.damping[d]) * v[d]
            if joint.kind not in ("spherical", "free"):
                tau[d] += k[d] * (q[d] - self.number(joint.rest[d]))
        if joint.kind in ("spherical", "free"):
            rest = self.number(joint.rest)
            (x, y, z, s), (a, b, c, w) = q[:4], rest[:4] * [-1, -1, -1, 1]
            turned = np.array([w * x + a * s + b * z - c * y, w * y + b * s + c * x - a * z,
                               w * z + c * s + a * y - b * x])
            real, size = w * s - a * x - b * y - c * z, self.mp.sqrt(turned @ turned)
            tau[:3] += k[:3] * turned * (2 * self.mp.atan2(size, real) / size)
            if joint.kind == "free":
                tau[3:6] += k[3:6] * (self.rotation(q[:4]).T @ (q[4:7] - rest[4:7]))

    def moved(self, q, step):
        """q exp(step), for a small step."""
        q = q.copy()
        for _, joint, k, j, *_ in self.links:
            if joint.kind in ("spherical", "free"):
                d, (x, y, z, s) = step[j:j + 3], q[k:k + 4]
                half = self.mp.sqrt(d @ d) / 2
                (a, b, c), w = d * (self.mp.sin(half) / half / 2 if half else self.mp.mpf(1) / 2), self.mp.cos(half)
                if joint.kind == "free":
                    part = total = step[j + 3:j + 6]
                    for n in range(2, 7):  # the sum of [d]^n / (n + 1)!
                        part = cross(d, part) / n
                        total = total + part
                    q[k + 4:k + 7] += self.rotation(q[k:k + 4]) @ total
                q[k:k + 4] = [s * a + w * x + y * c - z * b, s * b + w * y + z * a - x * c,
                              s * c + w * z + x * b - y * a, s * w - x * a - y * b - z * c]
            else:
                q[k:k + len(joint.rest)] += step[j:j + len(joint.rest)]
        return q

    def accelerations(self, q, v, tau, f_ext=None):
        """Forward dynamics."""
        none = 0 * v
        bias, one = self.forces(q, v, none, f_ext), self.number(np.eye(self.robot.nv))
        M = [self.forces(q, none, e, f_ext) - self.forces(q, none, none, f_ext) for e in one]
        return np.array(list(self.mp.lu_solve(self.mp.matrix(np.array(M).T.tolist()), self.mp.matrix(
            (tau - bias).tolist()))), dtype=object)

    def second_derivatives_of_accelerations(self, q, v, tau, f_ext, d, e):
        """qq, vv, qv and qtau along directions d (the first of the two) and e, as floats."""
        q, v, tau, d, e = map(self.number, (q, v, tau, d, e))
        h = self.mp.mpf(10) ** -STEP_DIGITS

        def a(x, speed=0, push=0):
            return self.accelerations(self.moved(q, h * x), v + h * speed, tau + h * push, f_ext)

        def mixed(function):
            return (function(d, e) - function(d, -e) - function(-d, e) + function(-d, -e)) / (4 * h * h)

        found = (mixed(lambda d, e: a(d + e)), mixed(lambda d, e: a(0 * d, d + e)), mixed(a),
                 mixed(lambda d, e: a(d, 0, e)))
        return [x.astype(float) for x in found]

    def second_derivatives(self, q, v, a, f_ext, d, e):
        """qq, vv, qv and qa along directions d (the first of the two) and e, as floats."""
        q, v, a, d, e = map(self.number, (q, v, a, d, e))
        h = self.mp.mpf(10) ** -STEP_DIGITS

        def tau(x, speed=0, push=0):
            return self.forces(self.moved(q, x), v + speed, a + push, f_ext)

        none = 0 * d
        qq = (tau(h * (d + e)) - tau(h * (d - e)) - tau(h * (e - d)) + tau(-h * (d + e))) / (4 * h * h)
        vv = (tau(none, d + e) - tau(none, d - e) - tau(none, e - d) + tau(none, -d - e)) / 4
        qv = (tau(h * d, e) - tau(h * d, -e) - tau(-h * d, e) + tau(-h * d, -e)) / (4 * h)
        qa = (tau(h * d, none, e) - tau(h * d) - tau(-h * d, none, e) + tau(-h * d)) / (2 * h)
        return [x.astype(float) for x in (qq, vv, qv, qa)]


def carried(state, arm):
    """The same at another place of the body."""
    R, p, w, dw, u, du = state
    around = cross(w, arm)
    return R, p + arm, w, dw, u + around, du + cross(dw, arm) + cross(w, around)
