"""Functions of a robot for JAX, with derivatives in both directions: under jit, vmap, grad, jvp, jacfwd, jacrev.

    >>> import jax, jax.numpy as jnp, liedyn as ld
    >>> from liedyn.jax import forward_dynamics
    >>> jax.config.update("jax_enable_x64", True)
    >>> robot = ld.load("panda")
    >>> rest = jnp.zeros(robot.nv)
    >>> jax.jacfwd(lambda q: forward_dynamics(robot, q, rest, rest).a)(jnp.array(robot.home)).shape
    (7, 7)

Derivatives are the library's own, exact to rounding. A function calls back to liedyn on the host, once for a whole
batch (`jax.pure_callback`); its tangents are products with matrices that come back with it, so JAX transposes them for
the reverse direction. Those of `rnea`, `pose`, `forward_kinematics` and `forward_dynamics`, with loops too, have
derivatives themselves, exact too: ``jax.hessian``. Needs JAX: the extra ``jax``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.bridges.differentiable import operations, runs
from liedyn.bridges.differentiable.documentation import documented
from liedyn.bridges.differentiable.changed_model import operation as of_model
from liedyn.machine.arguments import floats, require_robot
from liedyn.machine.errors import InputError, LiedynError, shown
from liedyn.model.remembered import remembered


try:
    import jax
    import jax.numpy as jnp
    from jax.custom_derivatives import SymbolicZero
except ImportError:
    raise LiedynError("liedyn.jax needs JAX: pip install 'liedyn[jax]'") from None

if TYPE_CHECKING:
    from typing import Any

    from liedyn.bridges.differentiable.operations import Acceleration, State
    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike

__all__ = ["forward_dynamics", "forward_kinematics", "pose", "rnea", "rollout", "step"]


def _array(name, x):
    """x as JAX's array of float64, traced or not."""
    if not isinstance(x, jax.Array):
        return jnp.asarray(floats(name, x))
    if not jnp.issubdtype(x.dtype, jnp.floating) and not jnp.issubdtype(x.dtype, jnp.integer):
        raise InputError(f"{name} must be numbers, and real, got {shown(x)}")
    return x.astype(jnp.float64)


def _call(make, robot, *given, options=(), inertia=None, parameters=None):
    """What an operation gives for arguments of any leading axes that go together."""
    require_robot(robot)
    if not jax.config.jax_enable_x64:
        raise LiedynError("liedyn computes in double precision, and JAX is set to single precision: call "
                          "jax.config.update('jax_enable_x64', True) before")
    operation = of_model(make, robot, options, inertia, parameters)
    if inertia is not None:
        given = *given, inertia
    elif parameters is not None:
        numbers = [_array(f"parameters of {shown(name)}", x) for name, x in parameters.items()]
        given = *given, jnp.stack(jnp.broadcast_arrays(*numbers), axis=-1)
    x = [_array(name, each) for name, each in zip(operation.arguments, given)]
    lead = operation.lead(*(each.shape for each in x))
    x = [jnp.broadcast_to(each, lead + own) for each, own in zip(x, operation.arguments.values())]
    return operation.bundle(*_differentiable(operation)(*x))


@remembered
def _differentiable(operation):
    """The operation as a function of JAX arrays with the same leading axes."""
    @jax.custom_jvp
    def function(*x):
        return _host(operation.evaluate, _results(operation, x), x)

    @jax.custom_jvp
    def matrices(*x):
        lead = _lead(operation, x)
        wanted = tuple(jax.ShapeDtypeStruct((*lead, *shape), float) for shape in operation.map.shapes())
        return _host(operation.differentiate, (_results(operation, x), wanted), x)

    @jax.custom_jvp
    def second(*x):
        lead, shapes = _lead(operation, x), operation.map.shapes()
        wanted = tuple(jax.ShapeDtypeStruct((*lead, *shape, other), float)
                       for shape in shapes for other in operation.map.arguments)
        return _host(operation.second, wanted, x)

    @second.defjvp
    def no_third_derivatives(x, dx):
        raise LiedynError(f"liedyn.jax has no third derivatives: {type(operation).__name__} was differentiated again")

    def turns(x, dx):
        operation.require_second()
        (found, slopes), lead = matrices(*x), _lead(operation, x)
        moved = [None if type(d) is SymbolicZero else d.reshape(*lead, -1) for d in dx]
        changes = operation.map.forward(jnp, jax.lax.scan, slopes, moved)
        bent = operation.map.bend(second(*x), moved, slopes)
        return (found, slopes), (tuple(y.reshape(each.shape) for y, each in zip(changes, found)), tuple(bent))

    def tangents(x, dx):
        (found, slopes), lead = matrices(*x), _lead(operation, x)
        moved = [None if type(d) is SymbolicZero else d.reshape(*lead, -1) for d in dx]
        changes = operation.map.forward(jnp, jax.lax.scan, slopes, moved)
        return found, tuple(change.reshape(each.shape) for change, each in zip(changes, found))

    function.defjvp(tangents, symbolic_zeros=True)
    matrices.defjvp(turns, symbolic_zeros=True)
    return function


def _lead(operation, x):
    """The leading axes of arguments that share them."""
    first = next(iter(operation.arguments.values()))
    return x[0].shape[:x[0].ndim - len(first)]


def _results(operation, x):
    """Shapes of the results."""
    lead = _lead(operation, x)
    return tuple(jax.ShapeDtypeStruct(lead + shape, float) for shape in operation.results.values())


def _host(function, results, x):
    """A function of NumPy's arrays: called at once where there are numbers, else when JAX's program runs."""
    if any(isinstance(each, jax.core.Tracer) for each in x):
        return jax.pure_callback(function, results, *x, vmap_method="broadcast_all")
    return jax.tree.map(jnp.asarray, function(*x))


@documented("jax.Array", more="parameters")
def rnea(robot: Robot, q: jax.Array | ArrayLike, v: jax.Array | ArrayLike, a: jax.Array | ArrayLike,
         inertia: jax.Array | ArrayLike | None = None,
         parameters: dict[str, Any] | None = None) -> jax.Array:
    """
    Examples
    --------
    >>> import jax, liedyn as ld
    >>> from liedyn.jax import rnea
    >>> jax.config.update("jax_enable_x64", True)
    >>> panda, still = ld.load("panda"), [0.0] * 7
    >>> jax.jacrev(lambda a: rnea(panda, panda.home, still, a))(jax.numpy.zeros(7)).shape
    (7, 7)
    """
    return _call(operations.inverse_dynamics, robot, q, v, a, inertia=inertia, parameters=parameters)


@documented("jax.Array", more="parameters")
def forward_dynamics(robot: Robot, q: jax.Array | ArrayLike, v: jax.Array | ArrayLike, tau: jax.Array | ArrayLike,
                     inertia: jax.Array | ArrayLike | None = None,
                     parameters: dict[str, Any] | None = None) -> Acceleration:
    """
    Examples
    --------
    >>> import jax, liedyn as ld
    >>> from liedyn.jax import forward_dynamics
    >>> jax.config.update("jax_enable_x64", True)
    >>> arm, still = ld.load("five_bar"), [0.0] * 4
    >>> jax.jacfwd(lambda tau: forward_dynamics(arm, arm.home, still, tau).a)(jax.numpy.zeros(4)).shape
    (4, 4)
    """
    return _call(operations.forward_dynamics, robot, q, v, tau, inertia=inertia, parameters=parameters)


@documented("jax.Array")
def forward_kinematics(robot: Robot, q: jax.Array | ArrayLike) -> jax.Array:
    """
    Examples
    --------
    >>> import jax, liedyn as ld
    >>> from liedyn.jax import forward_kinematics
    >>> jax.config.update("jax_enable_x64", True)
    >>> panda = ld.load("panda")
    >>> jax.jacfwd(lambda q: forward_kinematics(panda, q))(jax.numpy.array(panda.home)).shape[1:]
    (4, 4, 7)
    """
    return _call(operations.poses, robot, q)


@documented("jax.Array")
def pose(robot: Robot, q: jax.Array | ArrayLike, body: str) -> jax.Array:
    """
    Examples
    --------
    >>> import jax, liedyn as ld
    >>> from liedyn.jax import pose
    >>> jax.config.update("jax_enable_x64", True)
    >>> panda = ld.load("panda")
    >>> height = lambda q: pose(panda, q, "panda_hand")[2, 3]
    >>> jax.grad(height)(jax.numpy.array(panda.home)).shape
    (7,)
    """
    return _call(operations.poses, robot, q, options=(body,))


@documented("jax.Array", more="parameters")
def step(robot: Robot, q: jax.Array | ArrayLike, v: jax.Array | ArrayLike, tau: jax.Array | ArrayLike, dt: float = 1e-3,
         inertia: jax.Array | ArrayLike | None = None, parameters: dict[str, Any] | None = None) -> State:
    """
    Examples
    --------
    >>> import jax, liedyn as ld
    >>> from liedyn.jax import step
    >>> jax.config.update("jax_enable_x64", True)
    >>> arm, still = ld.load("five_bar"), jax.numpy.zeros(4)
    >>> jax.jacfwd(lambda tau: step(arm, arm.home, still, tau).v)(still).shape
    (4, 4)
    """
    return _call(runs.step, robot, q, v, tau, options=(dt,), inertia=inertia, parameters=parameters)


@documented("jax.Array", more="parameters")
def rollout(robot: Robot, q: jax.Array | ArrayLike, v: jax.Array | ArrayLike, tau: jax.Array | ArrayLike,
            dt: float = 1e-3, inertia: jax.Array | ArrayLike | None = None,
            parameters: dict[str, Any] | None = None) -> State:
    """
    Examples
    --------
    >>> import jax, liedyn as ld
    >>> from liedyn.jax import rollout
    >>> jax.config.update("jax_enable_x64", True)
    >>> arm, still = ld.load("five_bar"), [0.0] * 4
    >>> end = lambda tau: rollout(arm, arm.home, still, tau, 0.01).q[-1, 0]
    >>> jax.grad(end)(jax.numpy.zeros((10, 4))).shape
    (10, 4)
    """
    return _call(runs.rollout, robot, q, v, tau, options=(dt, _shape(tau)), inertia=inertia, parameters=parameters)


def _shape(x):
    return x.shape if isinstance(x, jax.Array) else floats("tau", x).shape
