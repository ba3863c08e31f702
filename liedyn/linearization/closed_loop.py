"""Linear models with feedback: what a feedback tau = S f(t, q, v) with a known derivative adds to an open loop.

A variation of the state (y, w) displaces q by N dy and changes v by X (dy, dw), with X = [Delta S] as in
`liedyn.linearization.local`, and so changes f by F (dy, dw) = df/dq N dy + df/dv X (dy, dw). With B_f and D_f the
columns of these inputs,

    A_closed = A + B_f F        C_closed = C + D_f F

and B and D remain those of forces that are added to the feedback.
"""
from dataclasses import dataclass, replace

import numpy as np

from liedyn.compiled.boundary import as_floats, states
from liedyn.elements.generalized import forces_and_derivatives
from liedyn.errors import InputError
from liedyn.feedback import derivatives, split, value
from liedyn.linearization.output_rows import TREE, VELOCITY


@dataclass(frozen=True)
class Loop:
    """A feedback at some states.

    Attributes
    ----------
    name : str
        "tau" or "u".
    f, df : callable
    S : ndarray, shape (nv, k)
        tau = S f.
    tau : ndarray, shape (count, nv)
    by_q, by_v : ndarray, shape (count, k, nv)
    """

    name: str
    f: object
    df: object
    S: np.ndarray
    tau: np.ndarray = None
    by_q: np.ndarray = None
    by_v: np.ndarray = None

    def at(self, t, q, v):
        """The same at other states, one in each row of q and v."""
        size, pairs = self.S.shape[1], list(zip(q, v))
        f = np.array([value(self.name, self.f, t, *each, size) for each in pairs]).reshape(-1, size)
        by = [derivatives(self.name, self.df, t, *each, size) for each in pairs]
        by_q, by_v = np.array(by).reshape(-1, 2, *self.S.shape[::-1]).swapaxes(0, 1)
        return Loop(self.name, self.f, self.df, self.S, f @ self.S.T, by_q, by_v)

    def of_state(self, N, X):
        """F, for the states of `at`: the change of f by (y, w)."""
        F = self.by_v @ X
        F[..., :N.shape[-1]] += self.by_q @ N
        return F

    def velocities(self, first):
        """Outputs of `linearize_states` for all velocities, whose rows of C, from `first` on, are X."""
        return np.array([(TREE, VELOCITY, j, first + j) for j in range(len(self.S))], dtype=np.int64)

    def closed(self, found, rows, nu):
        """Results of `linearize_states` with the loop closed; C has `rows` rows before `velocities`, B nu columns."""
        F = self.of_state(found.K, found.C[:, rows:])
        A, C = found.A + found.B[:, :, nu:] @ F, found.C[:, :rows] + found.D[:, :rows, nu:] @ F
        return found._replace(A=A, B=found.B[:, :, :nu].copy(), C=C, D=found.D[:, :rows, :nu].copy())


@dataclass(frozen=True)
class ElementLoop(Loop):
    """The forces of a robot's force elements as a feedback, besides what is given.

    Attributes
    ----------
    robot : Robot
    inner : Loop or None
        The user's own feedback.
    given : ndarray, shape (count, nv)
        Generalised forces at these states without those of the elements.
    """

    robot: object = None
    inner: Loop = None
    given: np.ndarray = None

    def at(self, t, q, v):
        """The same at other states."""
        (tau, by_q, by_v), inner, given = forces_and_derivatives(self.robot, t, q, v), self.inner, self.given
        if inner is not None:
            inner = inner.at(t, q, v)
            given, by_q, by_v = inner.tau, by_q + inner.S @ inner.by_q, by_v + inner.S @ inner.by_v
        return replace(self, tau=tau + given, by_q=by_q, by_v=by_v, inner=inner, given=given)


def operating_points(robot, q, v, tau, u):
    """Leading shape, rows of q, v and tau, and the `Loop` if tau or u is a feedback, or there are force elements.

    Raises
    ------
    InputError
        Both tau and u, or neither; a function without its derivative; or what `states` and `Loop.at` raise.
    """
    if (tau is None) == (u is None):
        raise InputError("give tau, the forces of all coordinates, or u, those of the actuators")
    name, given = ("tau", tau) if u is None else ("u", u)
    given, df = split(name, given)
    if df is not None:
        lead, q, v = states(robot, q=q, v=v)
        loop = Loop(name, given, df, np.eye(robot.nv) if u is None else robot.actuator_matrix)
        return lead, q, v, *_with_elements(robot, q, v, None, loop)
    if callable(given):
        raise InputError(f"{name} is a function without its derivative: give a pair {name} = (f, df)")
    if u is not None:
        S = robot.actuator_matrix
        given = as_floats("u", given, S.shape[1]) @ S.T
    lead, q, v, tau = states(robot, q=q, v=v, tau=given)
    return lead, q, v, *_with_elements(robot, q, v, tau, None)


def _with_elements(robot, q, v, tau, loop):
    """Generalised forces at rows of states, and the loop that they come from, None where there is none."""
    if robot.elements is not None:
        loop = ElementLoop("force elements", None, None, np.eye(robot.nv), robot=robot, inner=loop, given=tau)
    if loop is not None:
        loop = loop.at(robot.t, q, v)
    return (tau if loop is None else loop.tau), loop
