"""What every formulation starts from: M, h, G, the constraints' velocity and acceleration, at one state.

    M a + h + G^T lambda = tau        G v = b, psi = G v - b        G a = gamma
"""
import numpy as np

from liedyn.constraints.rows import bias_rows, jacobian_rows, residual_rows, velocity_rows
from liedyn.jit import kernel
from liedyn.lie.lanes import SCALAR
from liedyn.model.packed import N_ROWS, NV
from liedyn.tree.crba import INERTIA, crba_kernel
from liedyn.tree.kinematics import world_accelerations, world_size, world_velocities
from liedyn.tree.records import link_count
from liedyn.tree.rnea import WORK, rnea_kernel


@kernel
def terms_kernel(ints, floats, q, v, f_ext):
    """M (n, n), h (n), G (m, n), residual, psi, gamma (m): h contains gravity, joint forces and external wrenches."""
    n, m = ints[NV], ints[N_ROWS]
    M, h, G, zero = np.empty((n, n)), np.empty(n), np.empty((m, n)), np.zeros(n)
    residual, psi, gamma = np.zeros(m), np.empty(m), np.empty(m)
    rnea_kernel(SCALAR, ints, floats, q, v, zero, f_ext, np.empty(WORK * link_count(ints)), h)
    work = np.empty(world_size(ints) + INERTIA * link_count(ints))
    crba_kernel(SCALAR, ints, floats, q, work, M)
    world_velocities(SCALAR, ints, v, work)
    world_accelerations(SCALAR, ints, floats, v, zero, work)
    residual_rows(ints, floats, q, work, residual)
    jacobian_rows(ints, floats, q, work, G)
    velocity_rows(ints, floats, q, v, work, psi)
    bias_rows(ints, floats, q, v, work, gamma)
    for k in range(m):
        gamma[k] = -gamma[k]
    return M, h, G, residual, psi, gamma
