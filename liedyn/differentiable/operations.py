"""Functions of a robot as the bridges see them: arrays of numbers in, arrays of numbers out, and their Jacobians.

An `Operation` knows nothing of any framework. Its arguments and results are vectors, with leading axes that all of them
share. `evaluate` gives the results, `differentiate` the results and, for each of them and each argument, the matrix of
partial derivatives by its numbers, which come from the library's own exact functions
(`liedyn.differentiable.quaternions` says what that means for quaternions).
"""
import math
from collections import namedtuple

import numpy as np

from liedyn.differentiable.quaternions import rates, tangent, with_unit_quaternions
from liedyn.errors import InputError
from liedyn.model.remembered import remembered
from liedyn.tree.aba import aba
from liedyn.tree.aba_derivatives import aba_derivatives
from liedyn.tree.forward_kinematics import forward_kinematics, pose
from liedyn.tree.jacobians import body_jacobian
from liedyn.tree.rnea import rnea
from liedyn.tree.rnea_derivatives import rnea_derivatives

Acceleration = namedtuple("Acceleration", "a lam")
Acceleration.__doc__ = """Accelerations a (..., nv) and multipliers lam (..., m) of a mechanism."""
State = namedtuple("State", "q v")
State.__doc__ = """A configuration q (..., nq) and a velocity v (..., nv), or those of a run, one row for each time."""


class Operation:
    """A function of a robot.

    Attributes
    ----------
    robot : Robot
    arguments, results : dict
        Shapes by name, without leading axes. Those named q are configurations.
    bundle : callable
        Makes what users get of the results.
    memo : dict
        What frameworks keep with it.
    """

    arguments, results = {}, {}

    def __init__(self, robot):
        self.robot, self.memo = robot, {}

    def __getstate__(self):  # what frameworks keep does not travel with the robot
        return {name: value for name, value in vars(self).items() if name != "memo"} | {"memo": {}}

    bundle = staticmethod(lambda only: only)

    def lead(self, *shapes):
        """The leading axes that arguments of these shapes share.

        Raises
        ------
        InputError
            A shape does not fit.
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
        """The results, a tuple, of arguments with the same leading axes (arrays that NumPy understands)."""
        return self._evaluate(*self._rotations(x)[0])

    def differentiate(self, *x):
        """The results, and for each a tuple with the matrices (..., its size, size of the argument)."""
        x, W = self._rotations(x)
        found, slopes = self._differentiate(*x)
        slopes = [[block if W[name] is None else block @ W[name] for name, block in zip(self.arguments, row)]
                  for row in slopes]
        for k, name in enumerate(self.results):
            if name == "q" and self.robot.nq != self.robot.nv:
                Q = rates(self.robot, found[k])
                slopes[k] = [Q @ block for block in slopes[k]]
        return found, tuple(map(tuple, slopes))

    def _rotations(self, x):
        """The arguments with unit quaternions, and for each what maps its numbers to the tangent space, if anything."""
        robot, W, x = self.robot, dict.fromkeys(self.arguments), tuple(map(np.asarray, x))
        if robot.nq == robot.nv or "q" not in W:
            return x, W
        x, k = list(x), list(W).index("q")
        x[k], lengths = with_unit_quaternions(robot, x[k])
        W["q"] = tangent(robot, x[k], lengths)
        return x, W


class Rnea(Operation):
    """Forces tau of the open tree that go with accelerations a."""

    def __init__(self, robot):
        super().__init__(robot)
        self.arguments = {"q": (robot.nq,), "v": (robot.nv,), "a": (robot.nv,)}
        self.results = {"tau": (robot.nv,)}

    def _evaluate(self, q, v, a):
        return (rnea(self.robot, q, v, a),)

    def _differentiate(self, q, v, a):
        return self._evaluate(q, v, a), (rnea_derivatives(self.robot, q, v, a),)


class TreeDynamics(Operation):
    """Accelerations of a tree, and no multipliers."""

    bundle = Acceleration

    def __init__(self, robot):
        super().__init__(robot)
        self.arguments = {"q": (robot.nq,), "v": (robot.nv,), "tau": (robot.nv,)}
        self.results = {"a": (robot.nv,), "lam": (0,)}

    def _evaluate(self, q, v, tau):
        a = aba(self.robot, q, v, tau)
        return a, a[..., :0]

    def _differentiate(self, q, v, tau):
        by_state = aba_derivatives(self.robot, q, v, tau)
        return self._evaluate(q, v, tau), (by_state, [block[..., :0, :] for block in by_state])


class Poses(Operation):
    """Homogeneous matrices of all bodies, or of one."""

    def __init__(self, robot, body=None):
        super().__init__(robot)
        self.body = body
        self.arguments = {"q": (robot.nq,)}
        self.results = {"poses": (robot.nbodies, 4, 4) if body is None else (4, 4)}

    def _evaluate(self, q):
        return (forward_kinematics(self.robot, q) if self.body is None else pose(self.robot, q, self.body),)

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
    return TreeDynamics(robot)


@remembered
def poses(robot, body=None):
    """The operation of `forward_kinematics`, or of `pose`."""
    if body is not None:
        robot.body_index(body)  # unknown ones are refused
    return Poses(robot, body)


def moved(T, J):
    """The derivative T [J_j] of a pose T (..., 4, 4) by each coordinate, of its 16 numbers, shape (..., 16, nv)."""
    R, w, v = T[..., :3, :3], J[..., :3, :], J[..., 3:, :]
    change = np.zeros(T.shape[:-2] + (4, 4, J.shape[-1]))
    for k in range(3):  # column k of R [w] is R (w x e_k)
        change[..., :3, k, :] = R @ np.cross(w, np.eye(3)[k][:, None], axis=-2)
    change[..., :3, 3, :] = R @ v
    return change.reshape(T.shape[:-2] + (16, J.shape[-1]))


def size(shape):
    """How many numbers."""
    return math.prod(shape)
