"""Partial derivatives by parameters that displace nothing: inertias, gravity, springs, dampers and armatures of joints.

They change forces alone, one parameter at a time and in closed form: an inertia's change dI makes the wrench
dI A + V x* dI V on its link, which the joints from there to the ground bear, S_j . F; a change of gravity the wrench
-I (0, dg) on every link.
"""
from liedyn.lie.algebra import add6, dot6, inertia_in_parent, inertia_times, minus_ad_dual
from liedyn.linear.sensitivity.changes import ARMATURE, DAMPING, GRAVITY, INERTIA, RECORD, REST, STIFFNESS
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import SCALAR, integer, load
from liedyn.mechanics.tree.kinematics import S, acceleration_of, of_dof, twist_of, world_pose
from liedyn.model.packed_records import (
    dof_count, dof_link, first_dof, first_q, get3, get6, get_inertia, inertia, link_count, parent_dof, rest, stiffness,
    zero3,
)


@inline
def rests(changes, first, end):
    """Do parameters first to end - 1 displace nothing?"""
    for c in range(changes.first[first], changes.first[end]):
        kind = integer(changes.records, RECORD * c)
        if not (kind == INERTIA or kind == GRAVITY or kind == ARMATURE or kind == DAMPING or kind == STIFFNESS
                or kind == REST):
            return False
    return True


@inline
def bear(model, work, i, F, k, force):
    """Column k of `force` (nv, parameters): what the joints from link i to the ground bear of a wrench."""
    j = first_dof(model, i) + dof_count(model, i) - 1
    while j >= 0:
        force[j, k] += dot6(get6(SCALAR, work, of_dof(model, j, S)), F)
        j = parent_dof(model, j)


@inline
def add_change(model, work, q, v, a, kind, what, numbers, at, k, force):
    """What one change adds to column k; needs `world_motion`."""
    x = load(SCALAR, numbers, at)
    if kind == INERTIA:
        V, A = twist_of(SCALAR, work, what), acceleration_of(SCALAR, model, work, what)
        dI = inertia_in_parent(world_pose(SCALAR, work, what), get_inertia(SCALAR, numbers, at))
        bear(model, work, what, add6(inertia_times(dI, A), minus_ad_dual(V, inertia_times(dI, V))), k, force)
    elif kind == GRAVITY:
        gx, gy, gz = get3(SCALAR, numbers, at)
        for i in range(link_count(model)):
            I = inertia_in_parent(world_pose(SCALAR, work, i), inertia(model, i))
            bear(model, work, i, inertia_times(I, (zero3(SCALAR), (-gx, -gy, -gz))), k, force)
    elif kind == ARMATURE:
        force[what, k] += x * a[what]
    elif kind == DAMPING:
        force[what, k] += x * v[what]
    else:
        c = first_q(model, dof_link(model, what))
        force[what, k] += x * (q[c] - rest(model, c)) if kind == STIFFNESS else -x * stiffness(model, what)


@inline
def put_column_at_rest(model, work, q, v, a, changes, k, force):
    """Column k of `force`, of a parameter that `rests`; needs `world_motion`."""
    for j in range(force.shape[0]):
        force[j, k] = 0.0
    for c in range(changes.first[k], changes.first[k + 1]):
        add_change(model, work, q, v, a, integer(changes.records, RECORD * c), integer(changes.records, RECORD * c + 1),
                   changes.numbers, integer(changes.records, RECORD * c + 2), k, force)
