"""Functions of a robot for CasADi's MX expressions, with their Jacobians, for `nlpsol`, `integrator` and the like.

    >>> import casadi, liedyn as ld
    >>> from liedyn.casadi import forward_dynamics
    >>> robot = ld.load("panda")
    >>> tau = casadi.MX.sym("tau", 7)
    >>> a = forward_dynamics(robot, robot.home, casadi.DM.zeros(7), tau).a
    >>> casadi.jacobian(a, tau).shape
    (7, 7)

A state is a column, several are several columns: functions of n of them are one call of liedyn's batches, and have
block-diagonal Jacobians. Derivatives are the library's own, exact to rounding. Those of `rnea`, `pose`,
`forward_kinematics` and `forward_dynamics`, with loops too, have derivatives themselves, so that Ipopt has exact
Hessians; with others let it approximate them, ``{"ipopt.hessian_approximation": "limited-memory"}``. Functions are
computed on MX and on numbers, not on SX, which cannot call back. They live as long as Python does, as expressions do
not keep them alive.
Needs CasADi: the extra ``casadi``.
"""
# mypy: ignore-errors

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from liedyn.bridges.differentiable import operations, runs
from liedyn.bridges.differentiable.documentation import COLUMNS, documented
from liedyn.bridges.differentiable.changed_model import operation as of_model
from liedyn.machine.arguments import floats, require_robot
from liedyn.machine.errors import InputError, LiedynError
from liedyn.model.remembered import remembered


try:
    import casadi
except ImportError:
    raise LiedynError("liedyn.casadi needs CasADi: pip install 'liedyn[casadi]'") from None

if TYPE_CHECKING:
    from liedyn.bridges.differentiable.operations import Acceleration, State
    from typing import Any

    from liedyn.model.robot import Robot

__all__ = ["forward_dynamics", "forward_kinematics", "pose", "rnea", "rollout", "step"]
_ALIVE = []
"""All callbacks: CasADi does not hold the Python objects that its expressions call."""


class _Callback(casadi.Callback):
    """An operation, or its Jacobian, of so many states at once, one in each column."""

    def __init__(self, name, operation, count, options):
        super().__init__()
        self.operation, self.count = operation, count
        self.sizes = [[operations.size(shape) for shape in each.values()]
                      for each in (operation.arguments, operation.results)]
        self.construct(name, options)
        _ALIVE.append(self)

    def has_eval_buffer(self):
        return True

    def states(self, given):
        """The arguments as liedyn takes them, from CasADi's columns."""
        return [np.frombuffer(x).reshape(self.count, *shape) for x, shape in
                zip(given, self.operation.arguments.values())]


class _Function(_Callback):
    """The results."""

    def get_n_in(self):
        return len(self.operation.arguments)

    def get_n_out(self):
        return len(self.operation.results)

    def get_name_in(self, i):
        return list(self.operation.arguments)[i]

    def get_name_out(self, i):
        return list(self.operation.results)[i]

    def get_sparsity_in(self, i):
        return casadi.Sparsity.dense(self.sizes[0][i], self.count)

    def get_sparsity_out(self, i):
        return casadi.Sparsity.dense(self.sizes[1][i], self.count)

    def has_jacobian(self):
        return True

    def get_jacobian(self, name, names_in, names_out, options):
        return _Jacobian(name, self.operation, self.count, options)

    def has_jac_sparsity(self, o, i):
        return True

    def get_jac_sparsity(self, o, i, symmetric):
        return _blocks(self.operation, self.count)[o * len(self.sizes[0]) + i]

    def eval_buffer(self, given, wanted):
        for found, place in zip(self.operation.evaluate(*self.states(given)), wanted):
            if place is not None:
                np.frombuffer(place)[:] = found.ravel()
        return 0


class _Jacobian(_Callback):
    """The partial derivatives of every result by every argument; it is also given the results, and ignores them."""

    def get_n_in(self):
        return len(self.operation.arguments) + len(self.operation.results)

    def get_n_out(self):
        return len(self.operation.arguments) * len(self.operation.results)

    def get_sparsity_in(self, i):
        sizes = sum(self.sizes, [])
        return casadi.Sparsity.dense(sizes[i], self.count) if i < len(self.sizes[0]) else casadi.Sparsity(
            sizes[i], self.count)

    def get_sparsity_out(self, i):
        return _blocks(self.operation, self.count)[i]

    def has_jacobian(self):
        return True

    def get_jacobian(self, name, names_in, names_out, options):
        try:
            self.operation.require_second()
        except LiedynError as error:
            raise LiedynError(f"{error}; let the solver approximate Hessians, Ipopt by "
                              "{'ipopt.hessian_approximation': 'limited-memory'}") from None
        return _SecondCallback(name, self.operation, self.count, options)

    def has_jac_sparsity(self, o, i):
        return _has_second(self.operation)

    def get_jac_sparsity(self, o, i, symmetric):
        return _cubes(self.operation, self.count)[o * (len(self.sizes[0]) + len(self.sizes[1])) + i]

    def eval_buffer(self, given, wanted):
        matrices = self.operation.map.dense(self.operation.differentiate(*self.states(given))[1])
        for block, pattern, place in zip(matrices, self.operation.map.patterns(), wanted):
            if place is not None:  # column by column
                np.frombuffer(place)[:] = np.swapaxes(block, -1, -2)[:, pattern.T].ravel()
        return 0


class _SecondCallback(_Callback):
    """The derivatives of the blocks of a Jacobian by the arguments; results and the Jacobian itself are ignored."""

    def get_n_in(self):
        return _Jacobian.get_n_in(self) + _Jacobian.get_n_out(self)

    def get_n_out(self):
        return _Jacobian.get_n_in(self) * _Jacobian.get_n_out(self)

    def get_sparsity_in(self, i):
        given = _Jacobian.get_n_in(self)
        if i < given:
            return _Jacobian.get_sparsity_in(self, i)
        return casadi.Sparsity(*_blocks(self.operation, self.count)[i - given].shape)

    def get_sparsity_out(self, i):
        return _cubes(self.operation, self.count)[i]

    def has_jacobian(self):
        return True  # so that CasADi asks for it, and gets the reason

    def get_jacobian(self, *ignored):
        raise LiedynError("liedyn.casadi has no third derivatives")

    def eval_buffer(self, given, wanted):
        arguments, every = len(self.sizes[0]), _Jacobian.get_n_in(self)
        for k, H in enumerate(self.operation.second(*self.states(given))):
            place = wanted[k // arguments * every + k % arguments]
            if place is not None:  # by the argument of the block, then along its columns, then by the other argument
                np.frombuffer(place)[:] = H.transpose(0, 3, 2, 1).ravel()
        return 0


def _has_second(operation):
    """True if second derivatives are known."""
    with contextlib.suppress(LiedynError):
        operation.require_second()
        return True
    return False


@remembered
def _cubes(operation, count):
    """Sparsities of the derivatives of all blocks of a Jacobian by all its inputs: for each state its own arguments."""
    found, states = [], np.arange(count)[:, None, None, None]
    sizes, results = operation.map.arguments, operation.map.results
    for y, x in operation.map.shapes():
        rows, columns = y * count, x * count
        for other in sizes:
            z, c, r = np.arange(other)[:, None, None], np.arange(x)[:, None], np.arange(y)
            row = ((states * x + c) * rows + states * y + r) + 0 * z
            column = states * other + z + 0 * row
            found.append(casadi.Sparsity.triplet(rows * columns, other * count, row.ravel().tolist(),
                                                 column.ravel().tolist()))
        found += [casadi.Sparsity(rows * columns, each * count) for each in results]
    return found


@remembered
def _blocks(operation, count):
    """Sparsities of the matrices: for each state a block on the diagonal."""
    patterns = ((pattern.shape, *np.nonzero(pattern)) for pattern in operation.map.patterns())
    return [casadi.diagcat(*[casadi.Sparsity.triplet(*shape, *(x.tolist() for x in places))] * count)
            for shape, *places in patterns]


@remembered
def _function(operation, count):
    return _Function(f"liedyn_{type(operation).__name__}", operation, count, {})


def _columns(name, x, size):
    """x as MX or DM, of so many rows."""
    if isinstance(x, casadi.SX):
        raise InputError(f"{name} is SX, which cannot call back: liedyn.casadi takes MX expressions and numbers")
    if not isinstance(x, casadi.MX | casadi.DM):
        x = floats(name, x)
        if x.ndim > 2:
            raise InputError(f"{name} must be a column, or columns, got an array of shape {x.shape}")
        x = casadi.DM(x)
    if x.shape[0] != size or not x.shape[1]:
        raise InputError(f"{name} must have shape ({size}, n), got {x.shape}")
    return x


def _call(make, robot, *given, options=(), inertia=None):
    """What an operation gives for columns; one column goes with any number of others."""
    require_robot(robot)
    operation = of_model(make, robot, options, inertia)
    given = given if inertia is None else (*given, inertia)
    x = [_columns(name, each, operations.size(shape))
         for (name, shape), each in zip(operation.arguments.items(), given)]
    count = max(each.shape[1] for each in x)
    if any(each.shape[1] not in (1, count) for each in x):
        shapes = ", ".join(f"{name} {each.shape}" for name, each in zip(operation.arguments, x))
        raise InputError(f"numbers of columns do not go together: {shapes}")
    x = [casadi.repmat(each, 1, count // each.shape[1]) for each in x]
    if any(isinstance(each, casadi.MX) for each in x):
        found = _function(operation, count).call(x)
    else:
        states = (each.full().T.reshape(count, *shape) for each, shape in zip(x, operation.arguments.values()))
        found = [casadi.DM(each.reshape(count, -1).T) for each in operation.evaluate(*states)]
    return operation.bundle(*found)


def _matrices(numbers):
    """The homogeneous matrices (4, 4 n) that 16 numbers each, row by row, in n columns stand for."""
    by_columns = [4 * row + column for column in range(4) for row in range(4)]
    return casadi.reshape(numbers[by_columns, :], 4, 4 * numbers.shape[1])


@documented("casadi.MX or casadi.DM", COLUMNS)
def rnea(robot: Robot, q: Any, v: Any, a: Any, inertia: Any = None) -> Any:
    """
    Examples
    --------
    >>> import casadi, liedyn as ld
    >>> from liedyn.casadi import rnea
    >>> panda, a = ld.load("panda"), casadi.MX.sym("a", 7)
    >>> M = casadi.Function("M", [a], [casadi.jacobian(rnea(panda, panda.home, [0.0] * 7, a), a)])
    >>> bool(abs(M([0.0] * 7).full() - ld.crba(panda, panda.home)).max() < 1e-12)
    True
    """
    return _call(operations.inverse_dynamics, robot, q, v, a, inertia=inertia)


@documented("casadi.MX or casadi.DM", COLUMNS)
def forward_dynamics(robot: Robot, q: Any, v: Any, tau: Any, inertia: Any = None) -> Acceleration:
    """
    Examples
    --------
    >>> import casadi, liedyn as ld
    >>> from liedyn.casadi import forward_dynamics
    >>> arm, tau = ld.load("five_bar"), casadi.MX.sym("tau", 4, 20)
    >>> casadi.jacobian(forward_dynamics(arm, arm.home, [0.0] * 4, tau).a, tau).nnz()
    320
    """
    return _call(operations.forward_dynamics, robot, q, v, tau, inertia=inertia)


@documented("casadi.MX or casadi.DM", COLUMNS)
def forward_kinematics(robot: Robot, q: Any) -> Any:
    """
    Examples
    --------
    >>> import casadi, liedyn as ld
    >>> from liedyn.casadi import forward_kinematics
    >>> panda, q = ld.load("panda"), casadi.MX.sym("q", 7)
    >>> forward_kinematics(panda, q)[0].shape
    (4, 4)
    """
    numbers = _call(operations.poses, robot, q)
    return tuple(_matrices(numbers[16 * b:16 * b + 16, :]) for b in range(robot.nbodies))


@documented("casadi.MX or casadi.DM", COLUMNS)
def pose(robot: Robot, q: Any, body: str) -> Any:
    """
    Examples
    --------
    >>> import casadi, liedyn as ld
    >>> from liedyn.casadi import pose
    >>> panda, q = ld.load("panda"), casadi.MX.sym("q", 7)
    >>> casadi.gradient(pose(panda, q, "panda_hand")[2, 3], q).shape
    (7, 1)
    """
    return _matrices(_call(operations.poses, robot, q, options=(body,)))


@documented("casadi.MX or casadi.DM", COLUMNS)
def step(robot: Robot, q: Any, v: Any, tau: Any, dt: float = 1e-3, inertia: Any = None) -> State:
    """
    Examples
    --------
    >>> import casadi, liedyn as ld
    >>> from liedyn.casadi import step
    >>> panda = ld.load("panda")
    >>> q, v, tau = (casadi.MX.sym(name, 7, 20) for name in ("q", "v", "tau"))
    >>> gaps = q[:, 1:] - step(panda, q, v, tau, 0.01).q[:, :-1]  # multiple shooting
    >>> casadi.jacobian(casadi.vec(gaps), q).nnz()
    1064
    """
    return _call(runs.step, robot, q, v, tau, options=(dt,), inertia=inertia)


@documented("casadi.MX or casadi.DM", COLUMNS)
def rollout(robot: Robot, q: Any, v: Any, tau: Any, dt: float = 1e-3, inertia: Any = None) -> State:
    """
    Examples
    --------
    >>> import casadi, liedyn as ld
    >>> from liedyn.casadi import rollout
    >>> arm, tau = ld.load("five_bar"), casadi.MX.sym("tau", 4, 10)
    >>> run = rollout(arm, arm.home, [0.0] * 4, tau, 0.01)
    >>> run.q.shape, casadi.jacobian(run.q[0, -1], tau).shape
    ((4, 11), (1, 40))
    """
    require_robot(robot)
    tau = _columns("tau", tau, robot.nv)
    for name, x, size in (("q", q, robot.nq), ("v", v, robot.nv)):
        if _columns(name, x, size).shape[1] != 1:
            raise InputError(f"rollout takes one run: {name} must have one column, got {x.shape[1]}")
    found = _call(runs.rollout, robot, q, v, casadi.vec(tau), options=(dt, (tau.shape[1], robot.nv)),
                  inertia=inertia)
    return found._make(casadi.reshape(x, -1, tau.shape[1] + 1) for x in found)
