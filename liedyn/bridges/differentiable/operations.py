"""Functions of a robot for the bridges: from arrays of numbers to arrays of numbers, with their Jacobians.

An `Operation` does not depend on any framework. Its arguments and results are arrays with common leading axes.
`evaluate` returns the results, `differentiate` the results and the matrices of the derivative by the numbers of
the arguments, from the library's own exact functions, and `second` those of these matrices, if they are known. `map` is
the structure of these matrices (`liedyn.bridges.differentiable.maps`); `liedyn.bridges.differentiable.quaternions`
explains derivatives by the numbers of a quaternion.
"""
# mypy: ignore-errors

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from liedyn.bridges.differentiable.maps import Blocks
from liedyn.bridges.differentiable.quaternions import rates, tangent, tangent_slopes, with_unit_quaternions
from liedyn.machine.errors import InputError, LiedynError
from liedyn.mechanics.dynamics.forward import forward_dynamics as constrained_dynamics
from liedyn.mechanics.tree.aba import aba
from liedyn.mechanics.tree.aba_derivatives import aba_derivatives
from liedyn.mechanics.tree.aba_second_derivatives import aba_second_derivatives
from liedyn.mechanics.tree.forward_kinematics import forward_kinematics, pose
from liedyn.mechanics.tree.jacobians import body_jacobian
from liedyn.mechanics.tree.regressor import inertial_regressor
from liedyn.mechanics.tree.rnea import rnea
from liedyn.mechanics.tree.rnea_derivatives import rnea_derivatives
from liedyn.mechanics.tree.rnea_second_derivatives import rnea_second_derivatives
from liedyn.model.remembered import remembered
from liedyn.motion.gradients import forward_dynamics_derivatives
from liedyn.motion.gradients.second_accelerations import (
    acceleration_second_derivatives, require_second_accelerations,
)
from liedyn.tasks.operating_points.continuation_parameters import Parameters

if TYPE_CHECKING:
    from typing import Any


class Acceleration(NamedTuple):
    """Accelerations a (..., nv) and multipliers lam (..., m) of a mechanism."""

    a: Any
    lam: Any


class State(NamedTuple):
    """A configuration q (..., nq) and a velocity v (..., nv), or those of a run, one row for each time."""

    q: Any
    v: Any


class Operation:
    """A function of a robot.

    Attributes
    ----------
    robot : Robot
    arguments, results : dict
        Shapes by name, without leading axes. Those named q are configurations.
    bundle : callable
        Makes the user's result from the arrays of results.
    map : Blocks or Chain
        Structure of the derivative.
    """

    bundle: Any = staticmethod(lambda only: only)

    def __init__(self, robot, arguments, results):
        self.robot, self.arguments, self.results, self._memo = robot, arguments, results, {}
        self.map = Blocks([size(shape) for shape in arguments.values()], [size(shape) for shape in results.values()])

    def __getstate__(self):  # objects of frameworks are not pickled with the robot
        return vars(self) | {"_memo": {}}

    def lead(self, *shapes):
        """The common leading axes of arguments of these shapes.

        Raises InputError if a shape does not fit.
        """
        leads = []
        for shape, (name, own) in zip(shapes, self.arguments.items()):
            if shape[len(shape) - len(own):] != own:
                raise InputError(f"{name} must have shape (..., {', '.join(map(str, own))}), got {tuple(shape)}")
            leads.append(shape[:len(shape) - len(own)])
        try:
            return np.broadcast_shapes(*leads)
        except ValueError:
            given = ", ".join(f"{name} {tuple(shape)}" for name, shape in zip(self.arguments, shapes))
            raise InputError(f"leading axes do not broadcast: {given}") from None

    def evaluate(self, *x):
        """The results as a tuple, for arguments with the same leading axes (arrays that NumPy accepts)."""
        return self._evaluate(*self._with_rotations(x)[0])

    def differentiate(self, *x, inertia=False, parameters=()):
        """The results as a tuple, and the matrices of the derivative as another, optionally by the inertial parameters
        too, or by others with these names.
        """
        x, lengths = self._with_rotations(x)
        found, slopes = self._differentiate(*x)
        if inertia or parameters:
            blocks = self._by_inertia(x, found, slopes) if inertia else self._by_forces(
                x, found, slopes, parameters)
            slopes = [(*row, block) for row, block in zip(slopes, blocks)]
        W = self.robot.nq != self.robot.nv and tangent(self.robot, x[0], lengths)
        matrices = []
        for (name, y), row in zip(zip(self.results, found), slopes):
            Q = self.robot.nq != self.robot.nv and name == "q" and rates(self.robot, y)
            for argument, block in zip((*self.arguments, "of the model"), row):
                block = block if W is False or argument != "q" else block @ W
                matrices.append(block if Q is False else Q @ block)
        return found, tuple(matrices)

    def second(self, *x):
        """For every result and two arguments, result by result, the second derivatives (..., y, x1, x2), as a tuple.

        Raises LiedynError if they are not known.
        """
        self.require_second()
        x, lengths = self._with_rotations(x)
        known, names, lead = self._second(*x), list(self.arguments), x[0].shape[:-1]
        sizes = [size(shape) for shape in self.arguments.values()]
        if self.robot.nq != self.robot.nv:
            W = tangent(self.robot, x[0], lengths)
            K, (_, slopes) = tangent_slopes(self.robot, x[0], W, lengths), self._differentiate(*x)
        found = []
        for r, y in enumerate(self.map.results):
            for a, first in zip(names, sizes):
                for b, second in zip(names, sizes):
                    H = known[r].get((a, b))
                    if H is None and (b, a) in known[r]:
                        H = np.swapaxes(known[r][b, a], -1, -2)
                    if H is None:
                        H = np.zeros((*lead, y, first, second))
                    elif self.robot.nq != self.robot.nv:
                        H = np.swapaxes(W, -1, -2)[..., None, :, :] @ H if a == "q" else H
                        H = H @ W[..., None, :, :] if b == "q" else H
                        H = H + np.einsum("...yi,...ijk->...yjk", slopes[r][0], K) if a == b == "q" else H
                    found.append(H)
        return tuple(found)

    def require_second(self):
        """LiedynError if second derivatives are not known."""
        raise LiedynError(f"no second derivatives: those of {type(self).__name__} are not known")

    def _with_rotations(self, x):
        """The arguments, q first, with unit quaternions; and the original lengths of the quaternions."""
        q, *others = map(np.asarray, x)
        q, lengths = with_unit_quaternions(self.robot, q)
        return (q, *others), lengths


class Rnea(Operation):
    """Generalised forces tau of the open tree for accelerations a."""

    def __init__(self, robot):
        super().__init__(robot, state(robot) | {"a": (robot.nv,)}, {"tau": (robot.nv,)})

    def _evaluate(self, q, v, a):
        return (rnea(self.robot, q, v, a),)

    def _differentiate(self, q, v, a):
        return self._evaluate(q, v, a), (rnea_derivatives(self.robot, q, v, a),)

    def _by_inertia(self, x, found, slopes):
        return (regressor(self.robot, *x),)

    def _by_forces(self, x, found, slopes, names):
        of_elements = [name for name in names if name.partition(":")[2] in self.robot.element_names]
        if of_elements:
            raise InputError(f"rnea does not contain force elements, and so not {of_elements[0]}")
        return (-force_slopes(self.robot, names, *x),)

    def require_second(self):
        """They are known."""

    def _second(self, q, v, a):
        """For each result the blocks (..., y, x1, x2) by pairs of names, in tangent spaces; others are zero."""
        qq, vv, qv, qa = rnea_second_derivatives(self.robot, q, v, a)
        return ({("q", "q"): qq, ("v", "v"): vv, ("q", "v"): qv, ("q", "a"): qa},)


class Dynamics(Operation):
    """Accelerations and multipliers."""

    bundle = Acceleration

    def __init__(self, robot):
        super().__init__(robot, state(robot) | {"tau": (robot.nv,)}, {"a": (robot.nv,), "lam": (len(robot.row_names),)})
        self.is_tree = not robot.row_names and robot.elements is None

    def _evaluate(self, q, v, tau):
        if self.is_tree:
            a = aba(self.robot, q, v, tau)
            return a, a[..., :0]
        found = constrained_dynamics(self.robot, q, v, tau)
        return found.a, found.lam

    def _differentiate(self, q, v, tau):
        if self.is_tree:
            slopes = aba_derivatives(self.robot, q, v, tau)
            return self._evaluate(q, v, tau), (slopes, [block[..., :0, :] for block in slopes])
        found = forward_dynamics_derivatives(self.robot, q, v, tau)
        return (found.a, found.lam), ((found.a_q, found.a_v, found.a_tau), (found.lam_q, found.lam_v, found.lam_tau))

    def _by_inertia(self, x, found, slopes):
        Y = regressor(self.robot, *x[:2], found[0])
        return [-by_tau @ Y for *_, by_tau in slopes]

    def _by_forces(self, x, found, slopes, names):
        by_parameters = force_slopes(self.robot, names, *x[:2], found[0])
        return [by_tau @ by_parameters for *_, by_tau in slopes]

    def require_second(self):
        """InputError for users' functions with first derivatives only."""
        require_second_accelerations(self.robot)

    def _second(self, q, v, tau):
        if not self.is_tree:
            lead, rows = q.shape[:-1], (x.reshape(-1, x.shape[-1]) for x in (q, v, tau))
            found = acceleration_second_derivatives(self.robot, *rows)
            return tuple({pair: x.reshape(*lead, *x.shape[1:]) for pair, x in each.items()} for each in found)
        qq, vv, qv, qtau = aba_second_derivatives(self.robot, q, v, tau)
        return {("q", "q"): qq, ("v", "v"): vv, ("q", "v"): qv, ("q", "tau"): qtau}, {}


class Poses(Operation):
    """Homogeneous matrices of all bodies, or of one."""

    def __init__(self, robot, body=None):
        super().__init__(robot, {"q": (robot.nq,)}, {"poses": (robot.nbodies, 4, 4) if body is None else (4, 4)})
        self.body = body

    def _evaluate(self, q):
        return (forward_kinematics(self.robot, q) if self.body is None else pose(self.robot, q, self.body),)

    def require_second(self):
        """They are known."""

    def _second(self, q):
        found, = self._evaluate(q)
        if self.body is not None:
            return ({("q", "q"): turned(self.robot, found, body_jacobian(self.robot, q, self.body))},)
        every = [turned(self.robot, found[..., b, :, :], body_jacobian(self.robot, q, name))
                 for b, name in enumerate(self.robot.body_names)]
        return ({("q", "q"): np.concatenate(every, axis=-3)},)

    def _differentiate(self, q):
        found, = self._evaluate(q)
        if self.body is not None:
            slopes = moved(found, body_jacobian(self.robot, q, self.body))
        else:
            slopes = np.concatenate([moved(found[..., b, :, :], body_jacobian(self.robot, q, name))
                                     for b, name in enumerate(self.robot.body_names)], axis=-2)
        return (found,), ((slopes,),)


@remembered
def inverse_dynamics(robot):
    """The operation of `rnea`."""
    return Rnea(robot)


@remembered
def forward_dynamics(robot):
    """The operation of `forward_dynamics`."""
    return Dynamics(robot)


@remembered
def poses(robot, body=None):
    """The operation of `forward_kinematics`, or of `pose`."""
    if body is not None:
        robot.body_index(body)  # raises an error for unknown bodies
    return Poses(robot, body)


def regressor(robot, q, v, a):
    """dID/dpi, for all bodies side by side, (..., nv, 10 nbodies)."""
    Y = inertial_regressor(robot, q, v, a)
    return Y.reshape(*Y.shape[:-2], -1)


def force_slopes(robot, names, q, v, a):
    """Derivatives of generalised forces by parameters (..., nv, np), at constant accelerations."""
    known = Parameters(robot)
    rows = zip(*(x.reshape(-1, x.shape[-1]) for x in (q, v, a)))
    found = [np.stack([known.force_slope(robot, name, *row) for name in names], axis=-1) for row in rows]
    return np.reshape(found, (*a.shape, len(names)))


def moved(T, J):
    """The derivatives T [J_j] of a pose T (..., 4, 4) by the coordinates, for its 16 numbers, shape (..., 16, nv)."""
    R, w, v = T[..., :3, :3], J[..., :3, :], J[..., 3:, :]
    change = np.zeros(T.shape[:-2] + (4, 4, J.shape[-1]))
    for k in range(3):  # column k of R [w] is R (w x e_k)
        change[..., :3, k, :] = R @ np.cross(w, np.eye(3)[k][:, None], axis=-2)
    change[..., :3, 3, :] = R @ v
    return change.reshape(T.shape[:-2] + (16, J.shape[-1]))


def turned(robot, T, J):
    """The second derivatives (..., 16, nv, nv) of the 16 numbers of a pose: T [J_j] [J_k], j before k on the way to it.

    Within a ball or free joint they are the mean of both orders.
    """
    X = np.zeros((*J.shape[:-2], J.shape[-1], 4, 4))
    for k in range(3):
        X[..., :3, k] = np.cross(np.swapaxes(J[..., :3, :], -1, -2), np.eye(3)[k])
    X[..., :3, 3] = np.swapaxes(J[..., 3:, :], -1, -2)
    both = T[..., None, None, :, :] @ X[..., :, None, :, :] @ X[..., None, :, :, :]
    both = np.moveaxis(both.reshape(*both.shape[:-2], 16), -1, -3)
    first = np.triu(np.ones(both.shape[-2:]), 1) + 0.5 * np.eye(both.shape[-1])
    for group in robot.groups:
        first[group, group] = 0.5
    half = both * first
    return half + np.swapaxes(half, -1, -2)


def state(robot):
    """Shapes of q and v."""
    return {"q": (robot.nq,), "v": (robot.nv,)}


def size(shape):
    """Number of entries."""
    return math.prod(shape)
