"""Functions of a robot for PyTorch, with derivatives: autograd, torch.func, batches by leading axes.

    >>> import torch, liedyn as ld
    >>> from liedyn.torch import forward_dynamics
    >>> robot = ld.load("panda")
    >>> tau = torch.zeros(7, requires_grad=True)
    >>> forward_dynamics(robot, robot.home, [0.0] * 7, tau).a.sum().backward()
    >>> tau.grad.shape
    torch.Size([7])

Derivatives are the library's own, exact to rounding. Those of `rnea`, `pose`, `forward_kinematics` and
`forward_dynamics`, with loops too, have derivatives themselves: ``torch.func.hessian``. Tensors are on the CPU. liedyn
computes in double precision: tensors of other precisions are converted, and results are of the precision that PyTorch
gives to operations on all the arguments, so that of float32 alone they are float32. Needs PyTorch: the extra ``torch``.
"""
# mypy: ignore-errors

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.bridges.differentiable import operations, runs
from liedyn.bridges.differentiable.documentation import documented
from liedyn.bridges.differentiable.changed_model import operation as of_model
from liedyn.machine.arguments import floats, require_robot
from liedyn.machine.errors import InputError, LiedynError, shown


try:
    import torch
except ImportError:
    torch = None

if TYPE_CHECKING:
    from liedyn.bridges.differentiable.operations import Acceleration, State
    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike

__all__ = ["forward_dynamics", "forward_kinematics", "pose", "rnea", "rollout", "step"]
_Differentiable = torch.autograd.Function if torch else object
_TOOLS = torch and SimpleNamespace(concatenate=torch.cat, flip=torch.flip, moveaxis=torch.movedim,
                                   swapaxes=torch.transpose, zeros_like=torch.zeros_like)
"""What `liedyn.bridges.differentiable.maps` needs: `torch.moveaxis` itself has no rule for `torch.func.vmap`."""


def _tensor(name, x):
    """x as a tensor of real numbers on the CPU; what is none becomes one of float64."""
    if not isinstance(x, torch.Tensor):
        return torch.from_numpy(np.array(floats(name, x)))
    if x.device.type != "cpu":
        raise InputError(f"{name} is on {x.device}, and liedyn computes on the CPU: pass {name}.cpu()")
    if x.is_complex() or x.dtype == torch.bool:
        raise InputError(f"{name} must be numbers, and real, got {shown(x)}")
    return x


def _call(make, robot, *given, options=(), inertia=None):
    """What an operation gives for arguments of any leading axes that go together."""
    require_robot(robot)
    if not torch:
        raise LiedynError("liedyn.torch needs PyTorch: pip install 'liedyn[torch]'")
    operation = of_model(make, robot, options, inertia)
    given = given if inertia is None else (*given, inertia)
    x = [_tensor(name, each) for name, each in zip(operation.arguments, given)]
    lead = operation.lead(*(tuple(each.shape) for each in x))
    x64 = [each.to(torch.float64).expand(lead + own) for each, own in zip(x, operation.arguments.values())]
    asked = [y.dtype for y, each in zip(x, given) if isinstance(each, torch.Tensor) and y.is_floating_point()]
    precision = functools.reduce(torch.promote_types, asked) if asked else torch.float64
    return operation.bundle(*(each.to(precision) for each in _Function.apply(operation, *x64)))


def _tensors(arrays):
    return tuple(torch.from_numpy(np.require(x, requirements="CW")) for x in arrays)


def _batched(function, info, places, operation, x):
    """One call for all of a batch of torch.func.vmap, whose axis comes first."""
    x = [each.expand(info.batch_size, *each.shape) if place is None else each.movedim(place, 0)
         for each, place in zip(x, places[1:])]
    found = function.apply(operation, *x)
    return found, (0,) * len(found)


class _Function(_Differentiable):
    """The results of an operation."""

    @staticmethod
    def forward(operation, *x):
        return _tensors(operation.evaluate(*(each.detach() for each in x)))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.operation, *x = inputs
        ctx.save_for_backward(*x)
        ctx.save_for_forward(*x)
        ctx.lead = output[0].shape[:output[0].ndim - len(next(iter(ctx.operation.results.values())))]

    @staticmethod
    def backward(ctx, *gradients):
        found = ctx.operation.map.reverse(_TOOLS, _scan, _Matrices.apply(ctx.operation, *ctx.saved_tensors),
                                          [y.reshape(*ctx.lead, -1) for y in gradients])
        return None, *(x.reshape(ctx.lead + shape) for x, shape in zip(found, ctx.operation.arguments.values()))

    @staticmethod
    def jvp(ctx, _, *changes):
        _require_one_forward()
        found = ctx.operation.map.forward(_TOOLS, _scan, _Matrices.apply(ctx.operation, *ctx.saved_tensors),
                                          [d if d is None else d.reshape(*ctx.lead, -1) for d in changes])
        return tuple(y.reshape(ctx.lead + shape) for y, shape in zip(found, ctx.operation.results.values()))

    @staticmethod
    def vmap(info, places, operation, *x):
        return _batched(_Function, info, places, operation, x)


class _Matrices(_Differentiable):
    """The matrices of an operation's derivative."""

    @staticmethod
    def forward(operation, *x):
        return _tensors(operation.differentiate(*(each.detach() for each in x))[1])

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.operation, *x = inputs
        ctx.save_for_backward(*x, *output)
        ctx.save_for_forward(*x, *output)
        ctx.lead = x[0].shape[:x[0].ndim - len(next(iter(ctx.operation.arguments.values())))]

    @staticmethod
    def backward(ctx, *gradients):
        found = ctx.operation.map.unbend(_second(ctx), gradients)
        return None, *(x.reshape(ctx.lead + shape) for x, shape in zip(found, ctx.operation.arguments.values()))

    @staticmethod
    def jvp(ctx, _, *changes):
        moved = [d if d is None else d.reshape(*ctx.lead, -1) for d in changes]
        return tuple(ctx.operation.map.bend(_second(ctx), moved, ctx.saved_tensors[len(moved):]))

    @staticmethod
    def vmap(info, places, operation, *x):
        return _batched(_Matrices, info, places, operation, x)


class _Second(_Differentiable):
    """The second derivatives of an operation, which have no derivatives themselves."""

    @staticmethod
    def forward(operation, *x):
        return _tensors(operation.second(*(each.detach() for each in x)))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.name = type(inputs[0]).__name__

    @staticmethod
    def backward(ctx, *gradients):
        raise LiedynError(f"liedyn.torch has no third derivatives: {ctx.name} was differentiated again")

    @staticmethod
    def jvp(ctx, *changes):
        raise LiedynError(f"liedyn.torch has no third derivatives: {ctx.name} was differentiated again")

    @staticmethod
    def vmap(info, places, operation, *x):
        return _batched(_Second, info, places, operation, x)


def _second(ctx):
    """The second derivatives where the matrices of this context are."""
    ctx.operation.require_second()
    return _Second.apply(ctx.operation, *ctx.saved_tensors[:len(ctx.operation.arguments)])


def _require_one_forward():
    """LiedynError for forward mode within forward mode, in which PyTorch loses what users' functions contribute."""
    inside = getattr(torch._C, "_functorch", None)
    transforms = (inside.get_interpreter_stack() or ()) if hasattr(inside, "get_interpreter_stack") else ()
    if sum("Jvp" in str(each.key()) for each in transforms) > 1:
        raise LiedynError("PyTorch does not differentiate functions of others forward twice: take torch.func.hessian, "
                          "or jacrev for one of both")


def _scan(function, carried, sequences):
    """A loop over the first axis of tensors, as `liedyn.bridges.differentiable.maps` wants it."""
    rows = []
    for at in zip(*sequences):
        carried, row = function(carried, at)
        rows.append(row)
    return carried, torch.stack(rows)


@documented("torch.Tensor")
def rnea(robot: Robot, q: torch.Tensor | ArrayLike, v: torch.Tensor | ArrayLike, a: torch.Tensor | ArrayLike,
         inertia: torch.Tensor | ArrayLike | None = None) -> torch.Tensor:
    """
    Examples
    --------
    >>> import torch, liedyn as ld
    >>> from liedyn.torch import rnea
    >>> panda, still = ld.load("panda"), torch.zeros(7)
    >>> torch.func.jacrev(lambda a: rnea(panda, panda.home, still, a))(still).shape
    torch.Size([7, 7])
    """
    return _call(operations.inverse_dynamics, robot, q, v, a, inertia=inertia)


@documented("torch.Tensor")
def forward_dynamics(robot: Robot, q: torch.Tensor | ArrayLike, v: torch.Tensor | ArrayLike,
                     tau: torch.Tensor | ArrayLike, inertia: torch.Tensor | ArrayLike | None = None) -> Acceleration:
    """
    Examples
    --------
    >>> import torch, liedyn as ld
    >>> from liedyn.torch import forward_dynamics
    >>> arm, tau = ld.load("five_bar"), torch.zeros(4, requires_grad=True)
    >>> forward_dynamics(arm, arm.home, [0.0] * 4, tau).a[0].backward()
    >>> tau.grad.shape
    torch.Size([4])
    """
    return _call(operations.forward_dynamics, robot, q, v, tau, inertia=inertia)


@documented("torch.Tensor")
def forward_kinematics(robot: Robot, q: torch.Tensor | ArrayLike) -> torch.Tensor:
    """
    Examples
    --------
    >>> import torch, liedyn as ld
    >>> from liedyn.torch import forward_kinematics
    >>> panda = ld.load("panda")
    >>> forward_kinematics(panda, torch.zeros(100, 7)).shape[2:]
    torch.Size([4, 4])
    """
    return _call(operations.poses, robot, q)


@documented("torch.Tensor")
def pose(robot: Robot, q: torch.Tensor | ArrayLike, body: str) -> torch.Tensor:
    """
    Examples
    --------
    >>> import torch, liedyn as ld
    >>> from liedyn.torch import pose
    >>> panda, q = ld.load("panda"), torch.zeros(7, requires_grad=True)
    >>> pose(panda, q, "panda_hand")[2, 3].backward()
    >>> q.grad.shape
    torch.Size([7])
    """
    return _call(operations.poses, robot, q, options=(body,))


@documented("torch.Tensor")
def step(robot: Robot, q: torch.Tensor | ArrayLike, v: torch.Tensor | ArrayLike, tau: torch.Tensor | ArrayLike,
         dt: float = 1e-3, inertia: torch.Tensor | ArrayLike | None = None) -> State:
    """
    Examples
    --------
    >>> import torch, liedyn as ld
    >>> from liedyn.torch import step
    >>> arm, tau = ld.load("five_bar"), torch.zeros(4, requires_grad=True)
    >>> step(arm, arm.home, [0.0] * 4, tau).v[0].backward()
    >>> tau.grad.shape
    torch.Size([4])
    """
    return _call(runs.step, robot, q, v, tau, options=(dt,), inertia=inertia)


@documented("torch.Tensor")
def rollout(robot: Robot, q: torch.Tensor | ArrayLike, v: torch.Tensor | ArrayLike, tau: torch.Tensor | ArrayLike,
            dt: float = 1e-3, inertia: torch.Tensor | ArrayLike | None = None) -> State:
    """
    Examples
    --------
    >>> import torch, liedyn as ld
    >>> from liedyn.torch import rollout
    >>> arm, tau = ld.load("five_bar"), torch.zeros(10, 4, requires_grad=True)
    >>> rollout(arm, arm.home, [0.0] * 4, tau, 0.01).q[-1, 0].backward()
    >>> tau.grad.shape
    torch.Size([10, 4])
    """
    return _call(runs.rollout, robot, q, v, tau, options=(dt, _shape(tau)), inertia=inertia)


def _shape(x):
    return tuple(x.shape) if isinstance(x, torch.Tensor) else floats("tau", x).shape
