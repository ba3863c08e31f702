"""liedyn's kernels in a user's own ``@njit`` loop over states: one loop for each algorithm, all with one signature."""
import numpy as np

from benchmarks.compiled import cached_njit
from liedyn import kernels
from liedyn.kernels import SCALAR


@cached_njit
def rnea(model, q, v, x, b, work, out):
    none = np.empty(0)
    for s in range(len(q)):
        kernels.rnea(SCALAR, model, q[s], v[s], x[s], none, work, out[0])


@cached_njit
def crba(model, q, v, x, b, work, out):
    for s in range(len(q)):
        kernels.crba(SCALAR, model, q[s], work, out[0])


@cached_njit
def aba(model, q, v, x, b, work, out):
    none = np.empty(0)
    for s in range(len(q)):
        kernels.aba(SCALAR, model, q[s], v[s], x[s], none, work, out[0])


@cached_njit
def rnea_derivatives(model, q, v, x, b, work, out):
    none = np.empty(0)
    for s in range(len(q)):
        kernels.rnea_derivatives(SCALAR, model, q[s], v[s], x[s], none, work, out[0], out[1], out[2], out[3])


@cached_njit
def aba_derivatives(model, q, v, x, b, work, out):
    none = np.empty(0)
    for s in range(len(q)):
        kernels.aba_derivatives(SCALAR, model, q[s], v[s], x[s], none, work, out[0], out[1], out[2], out[3], out[4])


@cached_njit
def rnea_derivatives_nonzeros(model, q, v, x, b, work, out):
    none = np.empty(0)
    for s in range(len(q)):
        kernels.rnea_derivatives_nonzeros(SCALAR, model, q[s], v[s], x[s], none, work, out[0], out[1], out[2], out[3])


@cached_njit
def aba_derivatives_nonzeros(model, q, v, x, b, work, out):
    none = np.empty(0)
    for s in range(len(q)):
        kernels.aba_derivatives_nonzeros(SCALAR, model, q[s], v[s], x[s], none, work, out[0], out[1], out[2],
                                         out[3], out[4])


@cached_njit
def body_jacobian(model, q, v, x, b, work, out):
    for s in range(len(q)):
        kernels.body_jacobian(SCALAR, model, q[s], b, out[0])


@cached_njit
def body_jacobian_dot(model, q, v, x, b, work, out):
    for s in range(len(q)):
        kernels.body_jacobian_dot(SCALAR, model, q[s], v[s], b, out[0])


@cached_njit
def body_jacobian_dq(model, q, v, x, b, work, out):
    for s in range(len(q)):
        kernels.body_jacobian_dq(SCALAR, model, q[s], b, work, out[0])


@cached_njit
def forward_kinematics(model, q, v, x, b, work, out):
    for s in range(len(q)):
        kernels.forward_kinematics(SCALAR, model, q[s], work, out[0])


@cached_njit
def rnea_second_derivatives_nonzeros(model, q, v, x, b, work, out):
    none = np.empty(0)
    for s in range(len(q)):
        kernels.rnea_second_derivatives_nonzeros(
            SCALAR, model, q[s], v[s], x[s], none, work, out[0], out[1], out[2], out[3])


@cached_njit
def rnea_hessian_nonzeros(model, q, v, x, b, work, out):
    none = np.empty(0)
    for s in range(len(q)):
        kernels.rnea_hessian_nonzeros(
            SCALAR, model, q[s], v[s], x[s], v[s], none, work, out[0], out[1], out[2], out[3])


@cached_njit
def aba_hessian(model, q, v, x, b, work, out):
    none = np.empty(0)
    for s in range(len(q)):
        kernels.aba_hessian(SCALAR, model, q[s], v[s], x[s], v[s], none, work, out[0], out[1], out[2], out[3])


LOOPS = {loop.py_func.__name__: loop for loop in (
    rnea, crba, aba, rnea_derivatives, aba_derivatives, body_jacobian, body_jacobian_dot, body_jacobian_dq,
    forward_kinematics)}
"""By the name of the algorithm; arguments model, q, v, x (accelerations, or forces for `aba`), number of a body,
workspace, and five rows for the results."""
NONZEROS = {loop.py_func.__name__: loop for loop in (rnea_derivatives_nonzeros, aba_derivatives_nonzeros)}
"""The same, without the zeros of the matrices: the rows for the results are zero before."""


def results(robot):
    """Rows for the results of any of them, and a workspace."""
    size = max(robot.nv * max(6, robot.nv), 6 * robot.nv ** 2, 12 * robot.nbodies)
    return np.zeros((5, size)), kernels.workspace(robot)
