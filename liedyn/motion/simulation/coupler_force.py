"""Force of a virtual coupler: a spring and a damper between a device and a point of a body, compiled.

One coupler is a row of NUMBERS. The force depends on the robot only through the Jacobian of the body:

    f = sat(k (p_d - p)) + d (pdot_d - pdot)        m = sat(k_r log(R_d R^T)) + d_r (omega_d - omega)
    tau += J^T (m, f)

in world axes at the point held. Only the springs are limited: limited dampers would dissipate less energy.
"""
import math

from liedyn.lie.algebra import (
    Ad_dual_inverse, Ad_inverse, add6, compose, rotate, rotate_rotation, scale6, sub, unrotate,
)
from liedyn.lie.exponential import so3_log
from liedyn.machine.compiled.jit import VECTOR, inline, kernel_in_place, late
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.tree.forward_kinematics import pose_kernel
from liedyn.mechanics.tree.jacobians import body_jacobian_kernel
from liedyn.model.constraint_records import transposed
from liedyn.model.packed_records import MODEL, get3, get6, get9, get_pose, put6, zero6

MOST_COUPLERS = 8
BODY, HOLDS, STIFFNESS, DAMPING, LARGEST, PLACEMENT, DEVICE, TWIST, WRENCH = 0, 1, 2, 4, 6, 8, 20, 32, 38
"""Places of a coupler's numbers: body; 1 if it is held; for rotation and translation: stiffness, damping, largest
spring moment and force; placement in the body, pose of the device, its twist in world axes; the last wrench, in world
axes."""
NUMBERS = 44


@kernel_in_place
def coupling_size(n):
    """Size of the workspace of `add_coupling`: the body's Jacobian and its pose."""
    return 6 * n + 16


@inline
def limited(x, largest):
    """A vector, shortened to the length `largest` if it is longer."""
    length = math.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
    factor = largest / length if length > largest else 1.0
    return factor * x[0], factor * x[1], factor * x[2]


@inline
def spring_and_damper(c, k, apart, rate):
    """Force from the difference `apart` of the poses and its rate; k: 0 for rotations, 1 for translations."""
    stiffness, damping = c[STIFFNESS + k], c[DAMPING + k]
    x = limited((stiffness * apart[0], stiffness * apart[1], stiffness * apart[2]), c[LARGEST + k])
    return x[0] + damping * rate[0], x[1] + damping * rate[1], x[2] + damping * rate[2]


@late(MODEL, *[VECTOR] * 5)
@kernel_in_place
def add_coupling(model, q, v, c, work, tau):
    """Adds the generalised forces of coupler c to tau; its wrench is written to c."""
    b, n = int(c[BODY]), v.size
    put6(SCALAR, c, WRENCH, zero6(SCALAR))
    if c[HOLDS] == 0.0:
        return
    J, T = work[:6 * n], work[6 * n:]
    body_jacobian_kernel(SCALAR, model, q, b, J)
    pose_kernel(SCALAR, model, q, b, T)
    X = (T[0], T[1], T[2], T[4], T[5], T[6], T[8], T[9], T[10]), (T[3], T[7], T[11])
    P = get_pose(SCALAR, c, PLACEMENT)
    R, p = compose(X, P)
    V = zero6(SCALAR)
    for j in range(n):
        V = add6(V, scale6(v[j], ((J[j], J[n + j], J[2 * n + j]), (J[3 * n + j], J[4 * n + j], J[5 * n + j]))))
    omega, speed = Ad_inverse(P, V)
    turning, moving = get6(SCALAR, c, TWIST)
    m = (0.0, 0.0, 0.0)
    if c[STIFFNESS] != 0.0 or c[DAMPING] != 0.0:
        away = so3_log(rotate_rotation(get9(SCALAR, c, DEVICE), transposed(R)))
        m = spring_and_damper(c, 0, away, sub(turning, rotate(R, omega)))
    f = spring_and_damper(c, 1, sub(get3(SCALAR, c, DEVICE + 9), p), sub(moving, rotate(R, speed)))
    put6(SCALAR, c, WRENCH, (m, f))
    F = Ad_dual_inverse(P, (unrotate(R, m), unrotate(R, f)))
    for j in range(n):
        tau[j] += (J[j] * F[0][0] + J[n + j] * F[0][1] + J[2 * n + j] * F[0][2]
                   + J[3 * n + j] * F[1][0] + J[4 * n + j] * F[1][1] + J[5 * n + j] * F[1][2])
