"""Dynamics of an SDFormat 1.6 model in plain NumPy, from the file's numbers: Newton and Euler in world axes.

For models on a floating base whose tree has revolute joints and whose loops are closed by balls. A link's first joint
in the file is its tree joint; nothing of the library is used.
"""

from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

GRAVITY = np.array([0.0, 0.0, -9.81])


def pose_of(element):
    text = element.findtext("pose") or "0 0 0 0 0 0"
    numbers = [float(word) for word in text.split()]
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = Rotation.from_euler("xyz", numbers[3:]).as_matrix(), numbers[:3]
    return pose


class Oracle:
    """A model at a state (q, v by joint name, the base by pose and body-fixed twist)."""

    def __init__(self, path):
        model = ElementTree.parse(path).getroot().find("model")
        self.links = {link.get("name"): link for link in model.findall("link")}
        self.zero = {name: pose_of(link) for name, link in self.links.items()}
        self.holders, self.cuts = {}, []
        for joint in model.findall("joint"):
            child = joint.findtext("child")
            if child in self.holders:
                self.cuts.append(joint)
            else:
                self.holders[child] = joint
        self.root = next(name for name in self.links if name not in self.holders)
        self.names = [joint.get("name") for joint in self.holders.values()]
        self.nv = 6 + len(self.names)

    def place(self, base, twist, q, v):
        """Poses, Jacobians, velocities and velocity-product accelerations of all links; q and v by joint name."""
        R, omega = base[:3, :3], base[:3, :3] @ twist[:3]
        J = np.zeros((6, self.nv))
        J[:3, :3], J[3:, 3:6] = R, R
        # of each link: pose; Jacobian of omega and of the velocity of the origin; omega; alpha and acceleration
        self.state = {self.root: (base, J, omega, np.zeros(3), np.cross(omega, R @ twist[3:]))}
        left = dict(self.holders)
        while left:
            for child, joint in list(left.items()):
                if joint.findtext("parent") in self.state:
                    self._follow(child, left.pop(child), q, v)

    def _follow(self, child, joint, q, v):
        name, parent = joint.get("name"), joint.findtext("parent")
        to_joint = pose_of(joint)
        axis = np.array([float(word) for word in joint.find("axis").findtext("xyz").split()])
        axis /= np.linalg.norm(axis)
        turn = np.eye(4)
        turn[:3, :3] = Rotation.from_rotvec(q[name] * axis).as_matrix()
        at_zero = np.linalg.inv(self.zero[parent]) @ self.zero[child] @ to_joint
        pose, _, omega, alpha, _ = self.state[parent]
        frame = pose @ at_zero @ turn
        here, a = frame @ np.linalg.inv(to_joint), frame[:3, :3] @ axis
        J, _, _ = self.point(parent, frame[:3, 3])
        _, _, acceleration = self.point(parent, frame[:3, 3])
        J[:3, 6 + self.names.index(name)] = a
        alpha = alpha + np.cross(omega, a * v[name])
        omega = omega + a * v[name]
        r = here[:3, 3] - frame[:3, 3]
        J[3:] -= np.cross(r, J[:3].T).T
        acceleration = acceleration + np.cross(alpha, r) + np.cross(omega, np.cross(omega, r))
        self.state[child] = here, J, omega, alpha, acceleration

    def point(self, link, position):
        """Jacobian of omega and of the velocity of a point of a link, its place, and its acceleration."""
        pose, J, omega, alpha, acceleration = self.state[link]
        r = position - pose[:3, 3]
        J = J.copy()
        J[3:] -= np.cross(r, J[:3].T).T
        return J, position, acceleration + np.cross(alpha, r) + np.cross(omega, np.cross(omega, r))

    def equations(self, q, v):
        """M, and the generalised forces that gravity, velocities, springs and dampers leave to be balanced."""
        M, h = np.zeros((self.nv, self.nv)), np.zeros(self.nv)
        for name, link in self.links.items():
            inertial = link.find("inertial")
            values = {key: float(inertial.find("inertia").findtext(key)) for key in
                      ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")}
            pose, _, omega, alpha, _ = self.state[name]
            centre = pose @ pose_of(inertial)
            C = centre[:3, :3]
            inertia = C @ np.array([[values["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"]) @ C.T
            mass = float(inertial.findtext("mass"))
            J, _, acceleration = self.point(name, centre[:3, 3])
            M += J[:3].T @ inertia @ J[:3] + mass * J[3:].T @ J[3:]
            h += J[:3].T @ (inertia @ alpha + np.cross(omega, inertia @ omega))
            h += mass * J[3:].T @ (acceleration - GRAVITY)
        for k, joint in enumerate(self.holders.values(), 6):
            number = {key: float(joint.findtext(f"axis/dynamics/{key}") or 0.0)
                      for key in ("damping", "spring_stiffness", "spring_reference")}
            name = joint.get("name")
            h[k] += number["damping"] * v[name] + number["spring_stiffness"] * (q[name] - number["spring_reference"])
        return M, h

    def rows(self):
        """Distances between the points that balls hold together, their Jacobian, and accelerations at qdd = 0."""
        gaps, G, bias = [], [], []
        for joint in self.cuts:
            parent, child = joint.findtext("parent"), joint.findtext("child")
            on_child = pose_of(joint)
            on_parent = np.linalg.inv(self.zero[parent]) @ self.zero[child] @ on_child
            ends = [self.point(name, (self.state[name][0] @ at)[:3, 3]) for name, at in
                    ((parent, on_parent), (child, on_child))]
            gaps.append(ends[0][1] - ends[1][1])
            G.append((ends[0][0] - ends[1][0])[3:])
            bias.append(ends[0][2] - ends[1][2])
        return np.concatenate(gaps), np.vstack(G), np.concatenate(bias)

    def accelerations(self, q, v, tau, tolerance):
        """Rank of the rows, and the accelerations that obey them."""
        M, h = self.equations(q, v)
        _, G, bias = self.rows()
        U, s, Vt = np.linalg.svd(G)
        rank = int((s > tolerance * s[0]).sum())
        Z = Vt[rank:].T
        a = -Vt[:rank].T @ ((U.T @ bias)[:rank] / s[:rank])
        return rank, a + Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ (tau - h - M @ a))
