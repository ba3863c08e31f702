"""Steps in q in which a free joint is displaced along the axes of its parent's frame.

The velocity of a free joint is a twist in its child's own frame, while its position in q is in the parent's frame:
``base.x`` is the name of an entry of each. To hold a coordinate means to hold an entry of q, so closing uses steps d in
which both agree: those of `liedyn.mechanics.tree.configuration`, except for the last three of a free joint, which are
displacements of its position. Rows for velocities, row . v, are transformed to rows for such steps.
"""
import numpy as np

from liedyn.lie.algebra import quaternion_rotation, rotate
from liedyn.machine.compiled.jit import kernel_in_place
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.tree.joints import get_quaternion, joint_difference, move_joint
from liedyn.model.kinds import FREE, JOINTS
from liedyn.model.packed import LINK_IQ, LINK_IV, LINK_PRIMITIVE, links_of
from liedyn.model.packed_records import first_dof, first_q, get3, kind, link_count, put3
from liedyn.model.remembered import remembered


@kernel_in_place
def displace(model, q, d, q_new):
    """q_new = q after the step d; q_new may be q itself. Quaternions are normalised."""
    for i in range(link_count(model)):
        k, j = first_q(model, i), first_dof(model, i)
        if kind(model, i) != FREE:
            move_joint(model, i, q, d, q_new)
            continue
        x, y, z = q[k + 4] + d[j + 3], q[k + 5] + d[j + 4], q[k + 6] + d[j + 5]
        move_joint(model, i, q, d, q_new)
        q_new[k + 4], q_new[k + 5], q_new[k + 6] = x, y, z


@kernel_in_place
def displacement(model, q0, q1, d):
    """The step d from q0 to q1, along the shorter way."""
    for i in range(link_count(model)):
        joint_difference(model, i, q0, q1, d)
        if kind(model, i) == FREE:
            k, j = first_q(model, i) + 4, first_dof(model, i) + 3
            for s in range(3):
                d[j + s] = q1[k + s] - q0[k + s]


@kernel_in_place
def turn_free_rows(model, q, rows, to_steps):
    """Transform rows (count, nv) for velocities into rows for steps from q, or back."""
    for i in range(link_count(model)):
        if kind(model, i) == FREE:
            j, (x, y, z, w) = first_dof(model, i) + 3, get_quaternion(SCALAR, model, i, q)
            R = quaternion_rotation(x, y, z, w if to_steps else -w)
            for r in range(rows.shape[0]):
                put3(SCALAR, rows[r], j, rotate(R, get3(SCALAR, rows[r], j)))


@remembered
def places_of(robot):
    """Index in q of the coordinate whose rate each velocity is; -1 for ball and free joints, which have none."""
    places = np.full(robot.nv, -1)
    for link in links_of(robot.packed)[0]:
        kind = JOINTS[link[LINK_PRIMITIVE]]
        if not kind.has_quaternion:
            places[link[LINK_IV]:link[LINK_IV] + kind.nv] = link[LINK_IQ] + np.arange(kind.nv)
    return places
