"""The recursions as kernels, to be called inside your own ``@njit`` functions at the price of the arithmetic alone.

    >>> import numpy as np
    >>> from numba import njit
    >>> import liedyn as ld
    >>> from liedyn import kernels
    >>> @njit
    ... def hold_power(model, q, v, work):
    ...     '''tau . v at rest accelerations, summed over a trajectory.'''
    ...     tau, zero, none = np.empty(v.shape[1]), np.zeros(v.shape[1]), np.empty(0)
    ...     power = 0.0
    ...     for t in range(len(q)):
    ...         kernels.rnea(kernels.SCALAR, model, q[t], v[t], zero, none, work, tau)
    ...         power += np.dot(tau, v[t])
    ...     return power
    >>> panda = ld.load("panda")
    >>> q, v = ld.random_configuration(panda, rng=0, size=50), np.ones((50, 7))
    >>> power = hold_power(panda.packed, q, v, kernels.workspace(panda))
    >>> bool(np.isclose(power, (ld.rnea(panda, q, v, 0 * v) * v).sum()))
    True

Every kernel takes `SCALAR` first (its type selects the code for one state), then the model, ``robot.packed``. All
arrays are C-contiguous float64; matrices may be given as two-dimensional or flat arrays. Results are written into the
last arguments. Nothing is checked: a shape that does not fit, another type of number or a body number out of range
reads or writes beyond the array. With ``LIEDYN_CHECK=1`` in the environment when this module is imported, all of that
is an `InputError` that names kernel and argument (`liedyn.model.calls.checked`), in your compiled functions as well;
out of a ``prange`` loop it comes as the cause of a `SystemError`. That is for debugging: each call from compiled code
takes a few microseconds more, and functions of yours that Numba has cached go on unchecked.

================================  ======================================================================================
kernel                            arguments after ``SCALAR, model``; results after the bar
================================  ======================================================================================
{table}
`forward_kinematics`              q, work | poses (nbodies, 12): R row by row, then p
`forward_dynamics`                q, v, tau, f_ext, tolerance, work | a (nv), lam (rows of G); takes no ``SCALAR``
================================  ======================================================================================

b is the number of a body. The `tau` that `rnea_derivatives` writes lacks the joints' own forces, and `L` of
`aba_derivatives` receives D of M = L^T D L. `rnea_hessian` and `aba_hessian` are what `rnea_second_derivatives` and
`aba_second_derivatives` do with weights.

`rnea_derivatives_nonzeros`, `aba_derivatives_nonzeros`, `rnea_second_derivatives_nonzeros` and `rnea_hessian_nonzeros`
take what the kernels without that ending take and leave zeros as they are: make the results with ``np.zeros``, once for
all calls. Then a robot of many short branches takes O(n d) for n degrees of freedom and depth d, O(n d^2) for second
derivatives, where writing the zeros takes O(n^2), or O(n^3). In derivatives of RNEA and in M the zeros are the entries
of two degrees of freedom of which neither carries the other; in derivatives of ABA and in M^-1 those of two that belong
to different trees, which have only the ground in common.

`forward_dynamics` returns (status, rank, ratio): status `OK`, or not where a motion moves no mass; the number of
independent rows; the smallest pivot by the largest. Pivots below `RANK_TOLERANCE` are the rule for zero. States have to
close the loops already (`close`, `complete_velocity`).

Two more return tuples, and take no ``SCALAR``: `nullspace_dynamics` (model, q, v, tau, f_ext, R, virtual,
tolerance), the constrained accelerations, and `linearize` (model, q, v, tau, f_ext, R_y, virtual_y, R_w,
virtual_w, actuators, tolerance), the local state space; what they return is listed in
`liedyn.mechanics.dynamics.nullspace` and `liedyn.linear.local`. R and `virtual` say which coordinates are independent:
``choose(robot, q, names, tolerance)`` of `liedyn.mechanics.constraints.independent` makes them (``.rows``,
``.virtual``); unless something rolls, those of the coordinates y and of the velocities w are the same.
`linearize_in_place` of `liedyn.linear.local` leaves A, B and f0 in arrays of your own, without what `linearize` adds
for outputs.

`step` is one step of a simulation, by any method with fixed steps and with its projection: ``step(stepping, t, dt, q,
v, tau)`` moves q and v on in place, with tau held, and returns a status, `OK` if all is well; else they stay what they
were. ``stepping(robot)`` makes the first argument, once for each thread: a model of its own, in which moving targets
move, and scratch space; the robot must live as long. States have to close the loops already. A step that begins where
the one before has ended is a fourth faster if tau is the same too.

    >>> @njit
    ... def swing(stepping, q, v, steps, dt):
    ...     tau = np.zeros(v.size)
    ...     for k in range(steps):
    ...         tau[0] = -2.0 * v[0]
    ...         if kernels.step(stepping, k * dt, dt, q, v, tau) != kernels.OK:
    ...             return k
    ...     return steps
    >>> five_bar = ld.load("five_bar")
    >>> q, v = five_bar.home.copy(), np.zeros(4)
    >>> swing(kernels.stepping(five_bar), q, v, 100, 1e-3)
    100
    >>> bool(abs(ld.closure_error(five_bar, q)).max() < 1e-12)
    True

`inverse_dynamics` (model, q, v, w_dot, f_ext, R, T, tolerance, work | tau, a, lam; no ``SCALAR``) gives the shortest
forces of the actuators for accelerations w_dot of coordinates of the tree, and returns (status, condition number):
`OK`, or not where the coordinates do not fit or are not driven. ``driving(robot)`` makes R, T and its workspace.

    >>> @njit
    ... def hold(model, driving, q, v, tau, a, lam):
    ...     R, T, work = driving
    ...     return kernels.inverse_dynamics(model, q, v, -2.0 * v[:2], np.empty(0), R, T, 1e-8, work, tau, a, lam)[0]
    >>> tau, a, lam = np.empty(4), np.empty(4), np.empty(5)
    >>> hold(five_bar.packed, kernels.driving(five_bar), q, np.zeros(4), tau, a, lam) == kernels.OK
    True

`f_ext` is an empty array, or one wrench per *link* of the packed model in the frame of that link, 6 n numbers. `work`
is scratch space, one for each thread: `workspace` makes one that serves them all. `aba` needs a tree whose inertia
matrix is regular (``robot.singular_tree`` is empty). Numba's cache of your own functions does not notice a new version
of liedyn: clear it after an upgrade.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from liedyn.model.calls.recursion import RECURSIONS
from liedyn.mechanics.dynamics.nullspace import OK, RANK_TOLERANCE, acceleration_size
from liedyn.mechanics.dynamics.nullspace import acceleration_kernel as forward_dynamics
from liedyn.mechanics.dynamics.nullspace import nullspace_kernel as nullspace_dynamics
from liedyn.linear.local import linearize_kernel as linearize
from liedyn.machine.errors import InputError, listed
from liedyn.machine.simd.lanes import SCALAR, WIDTH
from liedyn.mechanics.tree.aba import aba_kernel as aba
from liedyn.mechanics.tree.aba_derivatives import (
    aba_derivatives_kernel as aba_derivatives, aba_derivatives_nonzeros_kernel as aba_derivatives_nonzeros,
)
from liedyn.mechanics.tree.aba_second_derivatives import (
    aba_hessian_kernel as aba_hessian, aba_second_derivatives_kernel as aba_second_derivatives,
)
from liedyn.mechanics.tree.centroidal import (
    centroidal_momentum_matrix_dot_kernel as centroidal_momentum_matrix_dot,
    centroidal_momentum_matrix_kernel as centroidal_momentum_matrix,
)
from liedyn.mechanics.tree.configuration import difference_kernel as difference, integrate_kernel as integrate
from liedyn.mechanics.tree.coriolis_matrix import coriolis_matrix_kernel as coriolis_matrix
from liedyn.mechanics.tree.crba import crba_kernel as crba
from liedyn.mechanics.tree.energy import (
    center_of_mass_kernel as center_of_mass, kinetic_energy_kernel as kinetic_energy, momentum_kernel as momentum,
    potential_energy_kernel as potential_energy,
)
from liedyn.mechanics.tree.forward_kinematics import (
    forward_kinematics_kernel as forward_kinematics, pose_kernel as pose,
)
from liedyn.mechanics.tree.jacobians import (
    body_jacobian_ddot_kernel as body_jacobian_ddot, body_jacobian_dot_kernel as body_jacobian_dot,
    body_jacobian_dq_kernel as body_jacobian_dq, body_jacobian_kernel as body_jacobian,
)
from liedyn.mechanics.tree.momenta import momentum_terms_kernel as momentum_terms
from liedyn.mechanics.tree.regressor import regressor_kernel as inertial_regressor
from liedyn.mechanics.tree.rnea import rnea_kernel as rnea
from liedyn.mechanics.tree.rnea_derivatives import (
    rnea_derivatives_kernel as rnea_derivatives, rnea_derivatives_nonzeros_kernel as rnea_derivatives_nonzeros,
)
from liedyn.mechanics.tree.rnea_hessian import (
    rnea_hessian_kernel as rnea_hessian, rnea_hessian_nonzeros_kernel as rnea_hessian_nonzeros,
)
from liedyn.mechanics.tree.rnea_second_derivatives import (
    rnea_second_derivatives_kernel as rnea_second_derivatives,
    rnea_second_derivatives_nonzeros_kernel as rnea_second_derivatives_nonzeros,
)
from liedyn.mechanics.tree.world_axes import (
    world_acceleration_kernel as world_acceleration, world_jacobian_dot_kernel as world_jacobian_dot,
    world_jacobian_kernel as world_jacobian,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from liedyn.control.constrained.driven_motion import driven_motion_kernel as inverse_dynamics
    from liedyn.model.packed import PackedModel
    from liedyn.model.robot import Robot
    from liedyn.motion.simulation.integrators.generalized_alpha import GeneralizedAlpha
    from liedyn.motion.simulation.preparation import Baumgarte
    from liedyn.motion.simulation.stepping import step
    from liedyn.typing import Array, ArrayLike, Wrenches

__all__ = [
    "OK", "RANK_TOLERANCE", "SCALAR", "aba", "aba_derivatives", "aba_derivatives_nonzeros", "aba_hessian",
    "aba_second_derivatives", "body_jacobian",
    "body_jacobian_ddot", "body_jacobian_dot", "body_jacobian_dq", "center_of_mass", "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_dot", "coriolis_matrix", "crba", "difference", "driving", "forward_dynamics",
    "forward_kinematics",
    "inertial_regressor", "integrate", "inverse_dynamics", "kinetic_energy", "linearize", "momentum",
    "momentum_terms", "nullspace_dynamics", "pose", "potential_energy", "rnea", "rnea_derivatives",
    "rnea_derivatives_nonzeros", "rnea_hessian", "rnea_hessian_nonzeros", "rnea_second_derivatives",
    "rnea_second_derivatives_nonzeros", "step", "stepping", "workspace", "world_acceleration", "world_jacobian",
    "world_jacobian_dot",
]

_ROWS = []
for _name, _each in RECURSIONS.items():
    if _name not in globals():  # one that is not imported above, which editors do not know
        globals()[_name] = _each.kernel
        globals()["__all__"].append(_name)
    if globals()[_name] is _each.kernel:  # the public `forward_kinematics` has a kernel of its own
        _ROWS.append(f"{f'`{_name}`':32}  {_each.row()}")
__doc__ = __doc__ and __doc__.replace("{table}", "\n".join(_ROWS))


def __getattr__(name: str) -> Any:
    # trees that do not step need not import simulation
    if name == "step":
        from liedyn.motion.simulation.stepping import step as found
    elif name == "inverse_dynamics":
        from liedyn.control.constrained.driven_motion import driven_motion_kernel as found
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def stepping(robot: Robot, method: str | GeneralizedAlpha = "rk4",
             formulation: Literal["nullspace", "svd", "multiplier", "unified", "momenta"] = "nullspace",
             stabilisation: Literal["projection", "none", "baumgarte", "minimal"] | Baumgarte = "projection",
             f_ext: Wrenches | None = None) -> Any:
    """What `step` takes: a method, and scratch space for it.

    Parameters
    ----------
    robot : Robot
        As its constraints are switched.
    method : str or GeneralizedAlpha
        One of the methods with fixed steps, as for `simulate`; one-sided constraints need ``"moreau"``.
    formulation : {"nullspace", "svd", "multiplier", "unified", "momenta"}
        How accelerations are computed, or what is integrated, as in `simulate`.
    stabilisation : {"projection", "none", "baumgarte", "minimal"} or Baumgarte
        What is done about the constraints at the end of each step.
    f_ext : dict or array_like, optional
        Constant wrenches on bodies, each in its body's own frame.

    Returns
    -------
    stepping : Stepping
        A named tuple, for compiled code. Not to be shared between threads.

    Raises
    ------
    InputError
        An unknown name, a method that chooses its own steps, or one-sided constraints or ends of surfaces that it does
        not see; nothing may be compiled here (``LIEDYN_COMPILE=never``).

    Examples
    --------
    >>> import liedyn as ld
    >>> stepping(ld.load("five_bar")).rows.q.shape
    (2, 4)
    """
    from liedyn.machine.program.handover import NEVER
    from liedyn.motion.simulation.stepping import Prepared

    if NEVER:
        raise InputError("steps in compiled loops have to be compiled, and the environment has LIEDYN_COMPILE=never")
    prepared = Prepared(robot, method, formulation, stabilisation, f_ext)
    if prepared.ends:
        names = [robot.constraint_names[k] for k in prepared.ends]
        raise InputError(f"steps in compiled loops do not see surfaces end: {listed(names)} of {robot.name!r}; take a "
                         "Stepper, or simulate()")
    return prepared.s


def driving(robot: Robot, independent: Sequence[str] | None = None, active: Sequence[str] | None = None,
            metric: ArrayLike | None = None) -> tuple[Array, Array, Array]:
    """What `inverse_dynamics` takes besides the state: which coordinates are moved, and by what.

    Parameters
    ----------
    robot : Robot
    independent : sequence of str, optional
        Coordinates of the tree whose accelerations are given; by default the robot's declaration, or all of a tree.
    active : sequence of str, optional
        Joints or coordinates that are driven, as for `liedyn.inverse_dynamics`.
    metric : array_like, optional
        Of the forces, as for `liedyn.inverse_dynamics`.

    Returns
    -------
    R : ndarray, shape (p, nv)
        Rows that pick the coordinates.
    T : ndarray, shape (nv, r)
        Columns that span the forces of the actuators, orthonormal in the metric.
    work : ndarray
        Scratch space, not to be shared between threads.

    Raises
    ------
    InputError
        An unknown name, coordinates of cut joints, none at all, a metric that is none; or a robot with force elements,
        contacts or constraints in Python, whose terms these kernels do not have.

    Examples
    --------
    >>> import liedyn as ld
    >>> R, T, work = driving(ld.load("five_bar"))
    >>> R.shape, T.shape
    ((2, 4), (4, 4))
    """
    from liedyn.machine.arguments import names
    from liedyn.control.constrained.decomposition import metric_root
    from liedyn.control.constrained.inverse_dynamics import driven

    independent = None if independent is None else names("independent", independent)
    active = None if active is None else names("active", active)
    found = driven(robot, independent, active, metric_root(metric, robot.nv))
    if found is None:
        raise InputError(f"the inverse dynamics of {robot.name!r} is not compiled: it takes named coordinates of the "
                         "tree, and robots without force elements, contacts and functions; use "
                         "liedyn.inverse_dynamics")
    return found.chosen.rows.copy(), found.T, found.work


def workspace_size(model: PackedModel) -> int:
    """Numbers in the workspace that serves every kernel, the largest of all."""
    return max(size(model) for size in {acceleration_size, *(each.size for each in RECURSIONS.values())} - {None})


def workspace(robot: Robot) -> Array:
    """Scratch space, large enough for every kernel of this module.

    Parameters
    ----------
    robot : Robot

    Returns
    -------
    work : ndarray
        Float64, uninitialised, from the beginning of a line of the cache on. Not to be shared between threads.

    Examples
    --------
    >>> import liedyn as ld
    >>> workspace(ld.load("panda")).ndim
    1
    """
    size = workspace_size(robot.packed)
    work = np.empty(size + WIDTH)
    begin = -work.ctypes.data // work.itemsize % WIDTH
    return work[begin:begin + size]


if os.environ.get("LIEDYN_CHECK", "0") != "0":
    from liedyn.model.calls.checked import checked
    _OTHERS = {"OK", "RANK_TOLERANCE", "SCALAR", "driving", "inverse_dynamics", "step", "stepping", "workspace"}
    for _name in set(__all__) - _OTHERS:
        globals()[_name] = checked(_name, globals()[_name], workspace_size)
