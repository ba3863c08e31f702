"""Linear models with feedback: the terms that tau = S f(t, q, v), with known derivatives of f, adds to an open loop.

A variation of the state (y, w) displaces q by N dy and changes v by X (dy, dw), with X = [Delta S] as in
`liedyn.linear.local`, and so changes f by F (dy, dw) = df/dq N dy + df/dv X (dy, dw). With B_f and D_f the
columns of these inputs,

    A_closed = A + B_f F        C_closed = C + D_f F

where B and D remain the responses to forces that are added to the feedback.
"""
# mypy: ignore-errors
from dataclasses import dataclass, replace

import numpy as np

from liedyn.linear.feedback import derivatives, split, value
from liedyn.linear.output_rows import TREE, VELOCITY
from liedyn.machine.errors import InputError
from liedyn.mechanics.elements.generalized import actuator_matrix, forces_and_derivatives
from liedyn.model.calls.boundary import as_floats, states


@dataclass(frozen=True)
class Loop:
    """A feedback, evaluated at rows of states.

    Attributes
    ----------
    name : str
        "tau" or "u".
    f, df : callable
    S : ndarray, shape (nv, k)
        tau = S f.
    tau : ndarray, shape (count, nv)
    by_q, by_v : ndarray, shape (count, k, nv)
    u : ndarray, shape (count, k)
        The values of f.
    driven : ndarray, shape (count, nv, nu), or None
        Generalised forces of unit inputs beyond the robot's constant actuator matrix (`liedyn.actuator_matrix`).
    """

    name: str
    f: object
    df: object
    S: np.ndarray
    tau: np.ndarray | None = None
    by_q: np.ndarray | None = None
    by_v: np.ndarray | None = None
    u: np.ndarray | None = None
    driven: np.ndarray | None = None

    def at(self, t, q, v):
        """The same feedback evaluated at other states, the rows of q and v."""
        size, pairs = self.S.shape[1], list(zip(q, v))
        f = np.array([value(self.name, self.f, t, *each, size) for each in pairs]).reshape(-1, size)
        by = [derivatives(self.name, self.df, t, *each, size) for each in pairs]
        by_q, by_v = np.array(by).reshape(-1, 2, *self.S.shape[::-1]).swapaxes(0, 1)
        return Loop(self.name, self.f, self.df, self.S, f @ self.S.T, by_q, by_v, f)

    def of_state(self, N, X):
        """F at the states of `at`: the derivative of f by (y, w)."""
        F = self.by_v @ X
        F[..., :N.shape[-1]] += self.by_q @ N
        return F

    def velocities(self, first):
        """Outputs of `linearize_states` for all velocities; their rows of C, from row `first` on, are X."""
        return np.array([(TREE, VELOCITY, j, first + j) for j in range(len(self.S))], dtype=np.int64)

    def closed(self, found, rows, nu):
        """Results of `linearize_states` with the loop closed; C has `rows` rows before `velocities`, B nu columns."""
        F = self.of_state(found.K, found.C[:, rows:])
        B_f, D_f = found.B[:, :, nu:], found.D[:, :rows, nu:]
        B, D = found.B[:, :, :nu].copy(), found.D[:, :rows, :nu].copy()
        if self.driven is not None:
            B, D = B + B_f @ self.driven, D + D_f @ self.driven
        return found._replace(A=found.A + B_f @ F, B=B, C=found.C[:, :rows] + D_f @ F, D=D)


@dataclass(frozen=True)
class ElementLoop(Loop):
    """The forces of a robot's force elements as a feedback, added to the forces and feedback that the user gives.

    Attributes
    ----------
    robot : Robot
    inner : Loop or None
        The user's own feedback.
    of_tree : ndarray, shape (count, nv)
        Generalised forces that the user gives, without those of `driven`.
    given : ndarray, shape (count, nv)
        All generalised forces that the user gives, without those of passive force elements.
    """

    robot: object | None = None
    inner: Loop | None = None
    of_tree: np.ndarray | None = None
    given: np.ndarray | None = None

    def at(self, t, q, v):
        """The same feedback evaluated at other states."""
        inner, of_tree, u, driven = self.inner, self.of_tree, self.u, None
        if inner is not None:
            inner = inner.at(t, q, v)
            of_tree, u = inner.tau, inner.u if inner.name == "u" else None
        is_driven = bool(self.robot.elements.driven)
        tau, by_q, by_v = forces_and_derivatives(self.robot, t, q, v, u if is_driven else None)
        given = of_tree
        if is_driven:
            driven = actuator_matrix(self.robot, q) - self.robot.tree_actuators
            given = of_tree if u is None else of_tree + np.einsum("bij,bj->bi", driven, u)
        if inner is not None:
            S = inner.S if driven is None or u is None else inner.S + driven
            by_q, by_v = by_q + S @ inner.by_q, by_v + S @ inner.by_v
        return replace(self, tau=tau + of_tree, by_q=by_q, by_v=by_v, inner=inner, given=given, driven=driven)


def operating_points(robot, q, v, tau, u):
    """Leading shape, rows of q, v and tau, and a `Loop` if tau or u is a feedback or the robot has force elements.

    Raises InputError if both tau and u are given, or neither, or a function has no derivative; and what `states` and
    `Loop.at` raise.
    """
    if (tau is None) == (u is None):
        raise InputError("give tau, the forces of all coordinates, or u, those of the actuators")
    name, given = ("tau", tau) if u is None else ("u", u)
    given, df = split(name, given)
    if df is not None:
        lead, q, v = states(robot, q=q, v=v)
        loop = Loop(name, given, df, np.eye(robot.nv) if u is None else robot.tree_actuators)
        return lead, q, v, *_with_elements(robot, q, v, None, loop)
    if callable(given):
        raise InputError(f"{name} is a function without its derivative: give a pair {name} = (f, df)")
    if u is not None:
        S = robot.tree_actuators
        u = as_floats("u", given, S.shape[1])
        given = u @ S.T
    lead, q, v, tau = states(robot, q=q, v=v, tau=given)
    if u is not None:
        u = np.broadcast_to(u, lead + u.shape[-1:]).reshape(len(q), -1)
    return lead, q, v, *_with_elements(robot, q, v, tau, None, u)


def _with_elements(robot, q, v, tau, loop, u=None):
    """Generalised forces at rows of states, and the loop that they come from, None if there is none."""
    if robot.elements is not None:
        loop = ElementLoop("force elements", None, None, np.eye(robot.nv), robot=robot, inner=loop, of_tree=tau, u=u)
    if loop is not None:
        loop = loop.at(robot.t, q, v)
    return (tau if loop is None else loop.tau), loop
