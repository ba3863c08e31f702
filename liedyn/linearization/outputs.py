"""Outputs of a linearized mechanism: each name becomes rows of C and D (Spencer 2004, 4.4 for body Jacobians).

| output | rows | what it is |
|---|---|---|
| ``name`` or ``position:name`` | 1 | a coordinate of the tree or of a cut joint |
| ``velocity:name``, ``acceleration:name`` | 1 | its first and second rate |
| ``pose:body`` | 6 | body-fixed displacement (rotation, translation) of a body |
| ``twist:body``, ``twist_rate:body`` | 6 | its body-fixed twist (omega, v) and the rate of that |
| ``wrench:loop`` | 6 | wrench of the cut joint on its child side, in the cut frame |

A name of several coordinates (a joint, a loop) stands for all of them.
"""
import numpy as np

from liedyn.constraints.independent import by_name
from liedyn.constraints.loops import reader_kernel, velocity_derivative_kernel
from liedyn.constraints.wrenches import loop_wrench_matrix
from liedyn.errors import InputError, suggestion
from liedyn.jit import kernel
from liedyn.lie.algebra import Ad_inverse, ad, add6, sub6
from liedyn.lie.lanes import SCALAR
from liedyn.tree.kinematics import (
    PSI_DDOT,
    PSI_DOT,
    S_DOT,
    S,
    body_pose,
    of_dof,
    twist_of,
    world_accelerations,
    world_positions,
    world_size,
    world_velocities,
)
from liedyn.tree.records import body_link, dof_count, first_dof, get6, previous_dof, upward

KINDS = ("position", "velocity", "acceleration", "pose", "twist", "twist_rate", "wrench")
_AXES = (".wx", ".wy", ".wz", ".vx", ".vy", ".vz")
_WRENCH_AXES = (".mx", ".my", ".mz", ".fx", ".fy", ".fz")


@kernel
def body_derivatives_kernel(ints, floats, q, v, a, body, out):
    """out (4, 6, nv): the body Jacobian; its twist by q; its twist's rate by q, and by v; all in the body's frame."""
    out[:] = 0.0
    work = np.empty(world_size(ints))
    world_positions(SCALAR, ints, floats, q, work)
    world_velocities(SCALAR, ints, v, work)
    world_accelerations(SCALAR, ints, floats, v, a, work)
    link = body_link(ints, body)
    if link < 0:
        return
    X, V, up = body_pose(SCALAR, ints, floats, work, body), twist_of(SCALAR, work, link), upward(SCALAR, floats)
    j = first_dof(ints, link) + dof_count(ints, link) - 1
    while j >= 0:
        Sj, S_dot = get6(SCALAR, work, of_dof(ints, j, S)), get6(SCALAR, work, of_dof(ints, j, S_DOT))
        psi_dot = get6(SCALAR, work, of_dof(ints, j, PSI_DOT))
        # gravity acts in the workspace's accelerations, not in the body's own
        psi_ddot = sub6(get6(SCALAR, work, of_dof(ints, j, PSI_DDOT)), ad(up, Sj))
        columns = (Ad_inverse(X, Sj), Ad_inverse(X, psi_dot), Ad_inverse(X, sub6(psi_ddot, ad(V, psi_dot))),
                   Ad_inverse(X, sub6(add6(S_dot, psi_dot), ad(V, Sj))))
        for k in range(4):
            w, u = columns[k]
            for i in range(3):
                out[k, i, j], out[k, 3 + i, j] = w[i], u[i]
        j = previous_dof(ints, j)


class Derivatives:
    """What one linearized state offers to outputs; columns of every result belong to (y, w, u)."""

    def __init__(self, robot, q, v, rank, sizes, local):
        self.robot, self.q, self.v, self.rank = robot, q, v, rank
        self.a, self.lam, self.order, self.G = local.a, local.lam, local.rows, local.G
        p_y, p_w, nu = sizes
        x = p_y + p_w
        self.N, self.Delta, self.S = local.N[:, :p_y], local.X[:, :p_y], local.X[:, p_y:x]
        self.G_sharp, self.balance, self.da = local.G_sharp[:, :rank], local.balance[:, :x + nu], local.da[:, :x + nu]
        self.E, self.rho_q, self.rho_dot_q, self.rho_dot_v = reader_kernel(robot.ints, robot.floats, q, v, local.a)
        self.dq, self.dv = np.zeros((2, *self.da.shape))
        self.dq[:, :p_y] = self.N
        self.dv[:, :x] = local.X[:, :x]

    def coordinate(self, kind, chosen):
        """Rows of a position, velocity or acceleration, of the tree or of a cut."""
        virtual = chosen.virtual[0] if chosen.virtual[0] >= 0 else None
        k = np.flatnonzero(chosen.rows[0])
        if virtual is None:
            return {"position": self.dq, "velocity": self.dv, "acceleration": self.da}[kind][k]
        E, k = self.E[virtual], virtual
        if kind == "position":
            return (E @ self.dq)[None]
        if kind == "velocity":
            return (self.rho_q[k] @ self.dq + E @ self.dv)[None]
        return (self.rho_dot_q[k] @ self.dq + self.rho_dot_v[k] @ self.dv + E @ self.da)[None]

    def body(self, kind, name):
        """Rows of a body's displacement, twist or twist rate."""
        out = np.empty((4, 6, self.robot.nv))
        body_derivatives_kernel(
            self.robot.ints, self.robot.floats, self.q, self.v, self.a, self.robot.body_index(name), out
        )
        J, twist_q, rate_q, rate_v = out
        if kind == "pose":
            return J @ self.dq
        if kind == "twist":
            return twist_q @ self.dq + J @ self.dv
        return rate_q @ self.dq + rate_v @ self.dv + J @ self.da

    def multipliers(self):
        """dlambda, of minimum norm like lambda itself where rows are redundant.

        Within the range of G, G^T dlambda = balance decides. lambda stays in that range, lambda = G x, as it turns
        with q: the part of dlambda outside is the part outside of dG x (Golub and Pereyra 1973, derivative of a
        projector).
        """
        if not len(self.lam):
            return np.zeros((0, self.da.shape[1]))
        G_sharp, independent = self.G_sharp, self.order[:self.rank].astype(int)
        basis = self.G @ G_sharp  # the range of G
        normal = basis.T @ basis
        within = basis @ np.linalg.solve(normal, G_sharp.T @ self.balance)
        if self.rank == len(self.lam):
            return within
        x = G_sharp @ self.lam[independent]
        turned, moved = np.empty_like(self.G), np.empty_like(self.G)
        velocity_derivative_kernel(self.robot.ints, self.robot.floats, self.q, x, turned)
        velocity_derivative_kernel(self.robot.ints, self.robot.floats, self.q, 0.0 * x, moved)  # moving targets
        turned = (turned - moved) @ self.dq
        return within + turned - basis @ np.linalg.solve(normal, basis.T @ turned)


def output_rows(robot, names, derivatives):
    """Names and rows [C D] of all outputs.

    Raises
    ------
    InputError
        An output of unknown kind, or of an unknown coordinate, body or loop.
    """
    labels, rows, dlam = [], [np.zeros((0, derivatives.da.shape[1]))], None
    for name in names:
        kind, _, what = name.partition(":") if ":" in name else ("position", ":", name)
        if kind not in KINDS:
            raise InputError(f"unknown kind of output {kind!r} in {name!r}, {suggestion(kind, KINDS)}")
        if kind in ("position", "velocity", "acceleration"):
            for member in by_name(robot, [what]).names:
                labels.append(member if kind == "position" else f"{kind}:{member}")
                rows.append(derivatives.coordinate(kind, by_name(robot, [member])))
        elif kind == "wrench":
            dlam = derivatives.multipliers() if dlam is None else dlam
            W, at = loop_wrench_matrix(robot, robot.loop_index(what))
            labels += [f"wrench:{what}{axis}" for axis in _WRENCH_AXES]
            rows.append(W @ dlam[at])
        else:
            labels += [f"{kind}:{what}{axis}" for axis in _AXES]
            rows.append(derivatives.body(kind, what))
    return tuple(labels), np.vstack(rows)
