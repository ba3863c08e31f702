"""How the forces of parameters that displace nothing vary along the columns of a linear model.

Such a parameter's part of inverse dynamics is closed form (`liedyn.linear.sensitivity.only_forces`): a wrench dI A + V
x* dI V on one link, that the joints from there to the ground bear. Its variation along a column (N, X, A) is

    dI dA + V x* dI dV + dV x* dI V        and, on the way to the ground, + turn x* F at each joint

seen from the links, with their variations as in `liedyn.mechanics.tree.tangent_recursion`, found once for all
parameters. A register holds columns.
"""
from liedyn.lie.algebra import ad, add6, dot6, inertia_in_parent, inertia_times, minus_ad_dual, sub6
from liedyn.linear.sensitivity.changes import ARMATURE, CHANGES, DAMPING, GRAVITY, INERTIA, RECORD, STIFFNESS
from liedyn.linear.sensitivity.link_sensitivity import Directions, add_to
from liedyn.linear.sensitivity.variations import MOTION
from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline, late
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, integer, load, splat, store, take_vector
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.tree.kinematics import S, acceleration_of, of_dof, twist_of, world_motion, world_pose, world_size
from liedyn.mechanics.tree.tangent_recursion import along_joint
from liedyn.model.packed_records import (
    MODEL, dof_count, first_dof, get3, get6, get_inertia, inertia, link_count, parent, put6, zero3, zero6,
)

COLUMNS = group(Directions, *[MATRIX] * 4)
TURN, ETA, DV, DA, VARIED = 0, 6, 12, 18, 24  # registers of each link


@inline
def varied(lanes, i, what):
    if i < 0:
        return zero6(LANES)
    return get6(LANES, lanes, VARIED * i + what)


@inline
def vary_motions(model, work, columns, b, lanes):
    """Turns, displacements and variations of twists and accelerations of all links along block b."""
    for i in range(link_count(model)):
        p, V = parent(model, i), twist_of(SCALAR, work, i)
        V_p, A_p = twist_of(SCALAR, work, p), acceleration_of(SCALAR, model, work, p)
        turn = along_joint(SCALAR, model, work, i, columns.N, b)
        pushed = along_joint(SCALAR, model, work, i, columns.X, b)
        dV = add6(add6(varied(lanes, p, DV), ad(V_p, turn)), pushed)
        dA = add6(add6(varied(lanes, p, DA), ad(A_p, turn)), add6(ad(dV, sub6(V, V_p)), ad(V, pushed)))
        put6(LANES, lanes, VARIED * i + TURN, turn)
        put6(LANES, lanes, VARIED * i + ETA, add6(varied(lanes, p, ETA), turn))
        put6(LANES, lanes, VARIED * i + DV, dV)
        put6(LANES, lanes, VARIED * i + DA, add6(dA, along_joint(SCALAR, model, work, i, columns.A, b)))


@inline
def bear_variation(model, work, lanes, i, F, dF, row, b, out):
    """Add to rows from `row` on what the joints from link i to the ground bear of dF, as F turns with them."""
    width = out.shape[1] // WIDTH
    while i >= 0:
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            add_to(out, width * (row + j) + b, dot6(get6(SCALAR, work, of_dof(model, j, S)), dF))
        dF = add6(dF, minus_ad_dual(varied(lanes, i, TURN), F))
        i = parent(model, i)


@inline
def vary_change(model, work, columns, lanes, kind, what, numbers, at, row, b, out):
    """What one change adds to the rows of its parameter."""
    k, x = out.shape[1] // WIDTH * what + b, load(SCALAR, numbers, at)
    if kind == INERTIA:
        V, A = twist_of(SCALAR, work, what), acceleration_of(SCALAR, model, work, what)
        dI, dV = inertia_in_parent(world_pose(SCALAR, work, what), get_inertia(SCALAR, numbers, at)), varied(
            lanes, what, DV)
        F = add6(inertia_times(dI, A), minus_ad_dual(V, inertia_times(dI, V)))
        dF = add6(inertia_times(dI, varied(lanes, what, DA)), minus_ad_dual(V, inertia_times(dI, dV)))
        dF = add6(dF, minus_ad_dual(dV, inertia_times(dI, V)))
        bear_variation(model, work, lanes, what, F, dF, row, b, out)
    elif kind == GRAVITY:
        gx, gy, gz = get3(SCALAR, numbers, at)
        g = zero3(SCALAR), (-gx, -gy, -gz)
        for i in range(link_count(model)):
            I = inertia_in_parent(world_pose(SCALAR, work, i), inertia(model, i))
            bear_variation(model, work, lanes, i, inertia_times(I, g), inertia_times(I, ad(g, varied(lanes, i, ETA))),
                           row, b, out)
    else:
        width, zero = out.shape[1] // WIDTH, splat(LANES, 0.0)
        part = zero
        if kind == ARMATURE:
            part = load(LANES, columns.A, k)
        elif kind == DAMPING:
            part = load(LANES, columns.X, k)
        elif kind == STIFFNESS:
            part = load(LANES, columns.N, k)
        add_to(out, width * (row + what) + b, x * part)


@inline
def columns_at_rest_size(model):
    """Numbers in the workspace of `vary_at_rest`."""
    return WIDTH * (4 + VARIED * link_count(model)) + world_size(model)


@late(MODEL, CHANGES, MOTION, COLUMNS, VECTOR, MATRIX)
def vary_at_rest(model, changes, motion, columns, work, out):
    """out (parameters nv, columns): how the forces of each parameter, nv rows, vary along padded columns."""
    work[0] = first_place(work)
    world = take_vector(work, world_size(model))
    lanes = take_vector(work, WIDTH * VARIED * link_count(model))
    world_motion(SCALAR, model, motion.q, motion.v, motion.a, world)
    n = columns.N.shape[0]
    for k in range(out.size // WIDTH):
        store(LANES, out, k, splat(LANES, 0.0))
    for b in range(out.shape[1] // WIDTH):
        vary_motions(model, world, columns, b, lanes)
        for p in range(changes.first.size - 1):
            for c in range(changes.first[p], changes.first[p + 1]):
                vary_change(model, world, columns, lanes, integer(changes.records, RECORD * c),
                            integer(changes.records, RECORD * c + 1), changes.numbers,
                            integer(changes.records, RECORD * c + 2), n * p, b, out)
