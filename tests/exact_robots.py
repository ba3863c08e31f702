"""Mechanisms in fifty digits, with parameters that can be changed by as little as 1e-15: Newton and Euler in mpmath.

From the declaration alone, body by body in world axes: generalised forces are powers of what accelerates the bodies on
the velocities of unit coordinates. Joints: all but helical, cylindrical ones; constraints: `tests.exact_rows` and
couplings; springs of joints with one degree of freedom, and force elements with all laws between points, on sums of
coordinates and on the angles of cut pins.

Where rows are redundant, motions are those of independent rows, chosen at the state by pivoting, and multipliers those
of least size: lambda = G x with x in the space of the independent rows G_i, x = G_i^T z,

    G_i G^T G G_i^T z = G_i G_i^T lambda_i
"""
import itertools

import mpmath
import numpy as np
import scipy.linalg

import liedyn as ld
from liedyn.model.frames import joint_basis
from liedyn.model.kinds import CONSTRAINT_KINDS, LOOP_KINDS
from liedyn.model.laws import LAWS
from tests.exact_rows import contact_rows, cross, cut_rows

DIGITS, STEP_DIGITS = 50, 12
"""Mixed central differences of steps 1e-12: their error is of the order 1e-24, and rounding leaves 1e-26."""


class ExactRobot:
    """The reduced dynamics of a robot whose parameters differ by `changes`, a dict of numbers by name."""

    def __init__(self, robot, changes, independent, speeds, kept=None):
        self.mp = mpmath.mp.clone()
        self.mp.dps = DIGITS
        self.robot, self.changes = robot, dict(changes)
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
        self.kept = kept  # numbers of independent rows, where they are known already
        self.y = [robot.velocity_names.index(name) for name in independent]
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
                for i, (move, axis) in enumerate(self.moves(joint)):
                    state = move(state, axis, q[k + i], v[j + i], a[j + i])
            states.append(state)
        return states

    @staticmethod
    def carried(state, arm):
        """The same at another place of the body."""
        R, p, w, dw, u, du = state
        around = cross(w, arm)
        return R, p + arm, w, dw, u + around, du + cross(dw, arm) + cross(w, around)

    def moves(self, joint):
        """What each degree of freedom does, about or along which axis."""
        if joint.kind in ("planar", "translational"):
            basis = self.number(joint_basis(joint.axes)).T
            return list(zip((self.slid, self.slid, self.turned if joint.kind == "planar" else self.slid), basis))
        move = self.turned if joint.kind in ("revolute", "universal") else self.slid
        return [(move, self.unit(axis)) for axis in joint.axes]

    def turned(self, state, axis, x, v, a):
        R, p, w, dw, u, du = state
        z = R @ axis
        return R @ self.turn(axis, x), p, w + z * v, dw + z * a + cross(w, z * v), u, du

    def slid(self, state, axis, x, v, a):
        R, p, w, dw, u, du = self.carried(state, state[0] @ axis * x)
        z = R @ axis
        return R, p, w, dw, u + z * v, du + z * a + 2 * cross(w, z * v)

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
            u, du = u + slide, du + 2 * cross(w, slide) + R @ a[3:6] + cross(spin, slide)
        return R, p, w + spin, dw + R @ a[:3] + cross(w, spin), u, du

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

    def rows(self, states, q, v, a):
        """Residuals (None where there is none), velocities and accelerations of all constraints."""
        every = *self.robot.model.loops, *self.robot.model.constraints
        return [row for each in every for row in self.rows_of(each, states, q, v, a)]

    def rows_of(self, each, states, q, v, a):
        """Those of one; zeros where it is switched off."""
        if each.name not in self.robot.active:
            return [(0 * v[0], 0 * v[0], 0 * v[0])] * sum(owner == each.name for owner in self.robot.row_owners)
        if getattr(each, "coefficients", None):
            c = self.along(each.coefficients)
            return [(self.places(q) @ c - self.number(each.offset) - self.change(f"offset:{each.name}"), v @ c, a @ c)]
        sides = [self.point(states, side) for side in self.ends[each.name]]
        if each.kind in LOOP_KINDS:
            return cut_rows(each, *sides, self.number)
        return contact_rows(each, *sides, self.number, self.mp.sqrt, *self.sizes(each))[:len(each.rows)]

    def along(self, coefficients):
        """Those of a sum of velocity coordinates of the tree."""
        return self.number([coefficients.get(name, 0.0) for name in self.robot.velocity_names])

    def places(self, q):
        """Coordinates in the order of velocities, zeros for balls."""
        found = self.zeros(self.robot.nv)
        for _, joint, k, j, *_ in self.links:
            if joint.kind not in ("spherical", "free"):
                found[j:j + len(joint.rest)] = q[k:k + len(joint.rest)]
        return found

    def sizes(self, each):
        """Length and radius of a constraint."""
        length = self.number(each.length) + sum(self.change(f"{name}:{each.name}") for name in (
            "length", "parent_radius", *(["radius"] if each.kind == "on_cylinder" else [])))
        own = "radius" in CONSTRAINT_KINDS[each.kind].needs and each.kind != "on_cylinder"
        radius = self.number(each.radius) + (self.change(f"radius:{each.name}") if own else 0)
        return length, radius

    def length(self, x, u, du, rest):
        size = self.mp.sqrt(x @ x)
        rate = x @ u / size
        return size - rest, rate, (u @ u + x @ du - rate * rate) / size

    def units(self, q):
        """Motions with one unit velocity each, and the Jacobian of the rows that they make."""
        n, o, one = self.robot.nv, self.zeros(self.robot.nv), self.number(np.eye(self.robot.nv))
        units = [self.motion(q, e, o) for e in one]
        rows = [[row[1] for row in self.rows(unit, q, e, o)] for unit, e in zip(units, one)]
        return units, np.array(rows, dtype=object).reshape(n, -1).T

    def forces(self, units, q, v, a):
        """Inverse dynamics with all springs."""
        states, tau = self.motion(q, v, a), self.zeros(self.robot.nv)
        for b, (_, joint, k, j, *_, m, com, inertia) in enumerate(self.links, 1):
            R, _, w, dw, _, du = state = states[b]
            if m != 0 or np.any(inertia != 0):
                I, force = R @ inertia @ R.T, m * (self.carried(state, R @ com)[5] - self.gravity)
                moment = I @ dw + cross(w, I @ w)
                for i, unit in enumerate(units):
                    tau[i] += force @ self.carried(unit[b], R @ com)[4] + moment @ unit[b][2]
            for i in range(len(joint.armature)):
                tau[j + i] += self.number(joint.armature[i]) * a[j + i] + self.number(joint.damping[i]) * v[j + i]
                if joint.stiffness[i]:
                    tau[j + i] += self.number(joint.stiffness[i]) * (q[k + i] - self.number(joint.rest[i]))
        for each in self.robot.model.elements:
            x, w, by_units = self.measured(each, states, units, q, v)
            numbers = [self.number(x) + self.change(f"{what}:{each.name}") for what, x in zip(
                LAWS[each.law].numbers, each.numbers)]
            tau += LAW_FORCES[each.law](self.mp, x, w, *numbers) * by_units
        return tau

    def measured(self, each, states, units, q, v):
        """The displacement of a force element, its rate, and the rates at unit velocities."""
        if each.measure.kind == "distance":
            first, second = (self.point(states, side) for side in self.ends[each.name])
            x, u = second[1] - first[1], second[4] - first[4]
            rest = self.number(each.measure.length) + self.change(f"length:{each.name}")
            stretch, rate, _ = self.length(x, u, 0 * u, rest)
            ends = [[self.point(unit, side)[4] for side in self.ends[each.name]] for unit in units]
            return stretch, rate, np.array([x @ (b - a) for a, b in ends]) / self.mp.sqrt(x @ x)
        c = self.along(each.coefficients)
        x, w = self.places(q) @ c - self.number(each.measure.offset) - self.change(f"rest:{each.name}"), v @ c
        for loop in self.robot.model.loops:
            if loop.name in each.coefficients:
                k = self.number(each.coefficients[loop.name])
                angle, rate, by_units = self.pin(loop, states, units)
                x, w, c = x + k * angle, w + k * rate, c + k * by_units
        return x, w, c

    def pin(self, loop, states, units):
        """Angle and rate of a cut pin, and the rates at unit velocities."""
        basis = self.number(joint_basis(loop.axes))
        A, B = (self.point(states, side) for side in self.ends[loop.name])
        z, E = (A[0] @ basis)[:, 2], (A[0] @ basis).T @ B[0] @ basis
        sides = [[self.point(unit, side)[2] for side in self.ends[loop.name]] for unit in units]
        return (self.mp.atan2(E[1, 0] - E[0, 1], E[0, 0] + E[1, 1]), z @ (B[2] - A[2]),
                np.array([z @ (b - a) for a, b in sides]))

    def solve(self, matrix, right):
        mp = self.mp
        return np.array(list(mp.lu_solve(mp.matrix(matrix.tolist()), mp.matrix(right.tolist()))), dtype=object)

    def at(self, q0, v0, tau, dy, dw, du):
        """The time derivative of the state (y, w), then a, at displacements of y, w and tau, assembled from q0."""
        one, o = self.number(np.eye(self.robot.nv)), self.zeros(self.robot.nv)
        self.kept = self.independent_rows(q0) if self.kept is None else self.kept
        q, kept = self.moved(self.number(q0), one[:, self.y] @ dy), self.kept
        for _ in range(8):
            rows, (units, G) = self.rows(self.motion(q, o, o), q, o, o), self.units(q)
            closed = [k for k in kept if rows[k][0] is not None]
            left = np.concatenate([np.array([-rows[k][0] for k in closed], object), self.zeros(len(self.y))])
            step = self.solve(np.concatenate([G[closed], one[self.y]]), left)
            q = self.moved(q, step)
            if max(abs(x) for x in step) < self.mp.mpf(10) ** (-DIGITS // 2 - 5):  # what is left is the square of it
                break
        units, every = self.units(q)
        G = every[kept]
        speeds = np.concatenate([self.zeros(len(G)), self.number(v0)[self.w] + dw])
        v = self.solve(np.concatenate([G, one[self.w]]), speeds)
        bias, level = self.forces(units, q, v, o), self.forces(units, q, o, o)
        M = np.stack([self.forces(units, q, o, e) - level for e in one], axis=-1)
        assert self.used >= set(self.changes), "an unknown parameter"
        rows = self.rows(self.motion(q, v, o), q, v, o)
        drift, m = np.array([rows[k][2] for k in kept], object), len(G)
        system = np.concatenate([np.concatenate([M, G.T], axis=1), np.concatenate([G, self.zeros(m, m)], axis=1)])
        solved = self.solve(system, np.concatenate([self.number(tau) + du - bias, -drift]))
        a, lam = solved[:-m or None], solved[len(o):]
        if m:
            lam = every @ G.T @ self.solve(G @ every.T @ every @ G.T, G @ G.T @ lam)
        return np.concatenate([v[self.y], a[self.w], a, lam])

    def independent_rows(self, q0):
        """Numbers of independent rows at q0, in their order, where all rows are those of the robot."""
        G = ld.constraint_jacobian(self.robot, q0)
        if not len(G):
            return []
        np.testing.assert_allclose(self.units(self.number(q0))[1].astype(float), G, rtol=0, atol=1e-9)
        R, order = scipy.linalg.qr(G.T, mode="r", pivoting=True)
        size = np.abs(np.diag(R))
        return sorted(order[:int((size > 1e-9 * size[0]).sum())])


def friction(mp, x, w, coulomb, static, stribeck, width, viscous):
    return (coulomb + (static - coulomb) * mp.exp(-(w / stribeck) ** 2)) * mp.tanh(w / width) + viscous * w


LAW_FORCES = {
    "linear": lambda mp, x, w, stiffness, damping, preload: stiffness * x + damping * w + preload,
    "friction": friction,
    "gas_spring": lambda mp, x, w, force, column, exponent, damping:
        damping * w - force * (column / (column + x)) ** exponent,
    "polynomial": lambda mp, x, w, s, q, c, d, dq, dc, slack: sum(
        k * (x if x < 0 else max(x - slack, 0)) ** n for n, k in enumerate((s, q, c), 1)) + (
            d + dq * abs(w) + dc * w * w) * w,
    "motor": lambda mp, x, w, stall_torque, no_load_speed, supply: -stall_torque * (supply - w / no_load_speed),
}
"""Forces that resist, from the formulas in words."""


def exact_sensitivity(robot, state, independent, speeds, name, direction):
    """Derivatives by a parameter: of f0, a and lambda, and of those of all three along a direction (dy, dw, du)."""
    p, r = len(independent), len(speeds)
    *parts, u = np.split(direction, [p, p + r])
    parts = *parts, robot.actuator_matrix @ u
    with mpmath.workdps(DIGITS):
        h = mpmath.mpf(10) ** -STEP_DIGITS
        sides, kept = {}, None
        for s, c in itertools.product((1, -1), repeat=2):
            exact = ExactRobot(robot, {name: s * h}, independent, speeds, kept)
            sides[s, c] = exact.at(*state, *(
                c * h * np.array([mpmath.mpf(float(x)) for x in part], object) for part in parts))
            kept = exact.kept
        first = (sides[1, 1] + sides[1, -1] - sides[-1, 1] - sides[-1, -1]) / (4 * h)
        mixed = (sides[1, 1] - sides[1, -1] - sides[-1, 1] + sides[-1, -1]) / (4 * h * h)
    first, mixed = first.astype(float), mixed.astype(float)
    x = p + r
    parts = [x, x + robot.nv]
    return *np.split(first, parts), *np.split(mixed, parts)
