"""MuJoCo as an oracle: inertia matrix, bias forces, rows of constraints and accelerations of robots of MJCF files."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.files.mjcf import compiled

mujoco = pytest.importorskip("mujoco", reason="MJCF files are read by MuJoCo")

EXACT = 1e-9
"""Relative. MuJoCo rounds poses of the file to 1e-16, and factors of 1e3 to 1e5 are between the terms of the sums."""


class Oracle:
    """MuJoCo's own numbers at a state of a robot, in the robot's coordinates.

    Coordinates differ in two ways: quaternions have w first, and the velocity of a free joint is that of its origin in
    world axes. With v_mujoco = T v, M = T^T M_mujoco T.
    """

    def __init__(self, path, robot):
        self.model = compiled(path)[1]  # what is in the file but meshes for the eye
        # bounds of inputs and forces are no part of the dynamics
        self.model.actuator_forcelimited[:] = self.model.jnt_actfrclimited[:] = 0
        self.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL)
        self.data, self.robot = mujoco.MjData(self.model), robot
        self.q_places, self.v_places = [], []
        m = self.model
        for j in range(m.njnt):
            name = m.joint(j).name or m.body(m.jnt_bodyid[j]).name
            nq, nv = {0: (7, 6), 1: (4, 3)}.get(int(m.jnt_type[j]), (1, 1))
            first_q = next(k for k, c in enumerate(robot.coordinate_names) if c.split(".")[0] == name)
            first_v = next(k for k, c in enumerate(robot.velocity_names) if c.split(".")[0] == name)
            self.q_places.append((int(m.jnt_type[j]), int(m.jnt_qposadr[j]), first_q, nq))
            self.v_places.append((int(m.jnt_type[j]), int(m.jnt_dofadr[j]), first_v, nv))

    def set(self, q, v):
        """Put MuJoCo into a state; returns T and the part of its accelerations that does not depend on ours."""
        d, T, rest = self.data, np.zeros((self.model.nv, self.robot.nv)), np.zeros(self.model.nv)
        for (kind, to, at, nq), (_, dof, own, _) in zip(self.q_places, self.v_places):
            x = q[at:at + nq]
            if kind == 0:
                d.qpos[to:to + 7] = [*x[4:], x[3], *x[:3]]
                R = np.zeros(9)
                mujoco.mju_quat2Mat(R, d.qpos[to + 3:to + 7])
                R = R.reshape(3, 3)
                T[dof:dof + 3, own + 3:own + 6], T[dof + 3:dof + 6, own:own + 3] = R, np.eye(3)
                rest[dof:dof + 3] = R @ np.cross(v[own:own + 3], v[own + 3:own + 6])
            elif kind == 1:
                d.qpos[to:to + 4] = [x[3], *x[:3]]
                T[dof:dof + 3, own:own + 3] = np.eye(3)
            else:
                d.qpos[to], T[dof, own] = x[0], 1.0
        d.qvel[:] = T @ v
        mujoco.mj_forward(self.model, d)
        return T, rest

    def dynamics(self, q, v, u=None):
        """M and h of M a + h = 0 without constraints; u moves the actuators."""
        self.data.ctrl[:] = 0.0 if u is None else u
        T, rest = self.set(q, v)
        m, d = self.model, self.data
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, M)
        h = d.qfrc_bias - d.qfrc_passive - d.qfrc_actuator
        return T.T @ M @ T, T.T @ (h + M @ rest)

    def accelerations(self, q, v, G, gamma):
        """With hard constraints G a = gamma."""
        M, h = self.dynamics(q, v)
        m = len(G)
        K = np.block([[M, G.T], [G, np.zeros((m, m))]])
        return np.linalg.lstsq(K, np.concatenate([-h, gamma]), rcond=1e-11)[0][:len(M)]


def mass_matrix_and_bias(robot, q, v):
    return ld.crba(robot, q), ld.rnea(robot, q, v, 0 * v) - ld.element_forces(robot, q, v)


def close_to(a, b, tolerance=EXACT):
    return np.abs(np.asarray(a) - b).max() <= tolerance * max(1.0, np.abs(b).max())


def rows_of_mujoco(oracle, q, v):
    """MuJoCo's rows of equalities G, in the robot's coordinates, and gamma = -dG/dt v by differences of its rows.

    The fourth-order difference of a row along the motion is exact to 1e-10 or so of its size.
    """
    robot = oracle.robot

    def G_at(s):
        T, _ = oracle.set(ld.integrate(robot, q, s * v), v)
        d, m = oracle.data, oracle.model
        J = np.zeros((d.nefc, m.nv)) if d.efc_J.size else np.zeros((0, m.nv))
        if mujoco.mj_isSparse(m):
            mujoco.mju_sparse2dense(J, d.efc_J.ravel(), d.efc_J_rownnz, d.efc_J_rowadr, d.efc_J_colind)
        else:
            J[:] = d.efc_J.reshape(d.nefc, m.nv)
        return (J @ T)[d.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)]

    h = 1e-3
    rate = (8.0 * (G_at(h) - G_at(-h)) - (G_at(2 * h) - G_at(-2 * h))) / (12.0 * h)
    return G_at(0.0), -rate @ v
