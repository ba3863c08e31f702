"""Constraint records of the packed model, and their changes at run time: switches, time and moving targets."""
import numpy as np

from liedyn.lie.algebra import rotate_rotation, unrotate
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.compiled.user_functions import call
from liedyn.machine.linalg.ranks import Ranking
from liedyn.machine.simd.lanes import SCALAR, integer, load, vector_in
from liedyn.model.kinds import CONSTRAINT_KINDS, FAMILIES, N_JOINTS
from liedyn.model.packed import (
    LOOPS_AT, LOOP_ACTIVE, LOOP_F, LOOP_FLOATS_AT, LOOP_FOLDING, LOOP_HOLONOMIC, LOOP_I, LOOP_KIND, LOOP_LINK_A,
    LOOP_LINK_B, LOOP_MOTION, LOOP_NROWS, LOOP_NVIRTUAL, LOOP_PITCH, LOOP_RATE, LOOP_ROW,
    LOOP_TARGET, LOOP_TARGET_SIZE, LOOP_TOLD, LOOP_TWIST, LOOP_VIRTUAL, NV, N_LOOPS, N_ROWS, OFF, SLIDING, SPARSE, TIME,
    WEIGHED,
)
from liedyn.model.packed_records import get3, get6, get9, put6, put_pose

CONTACT, CUSTOM = FAMILIES.index("contact"), FAMILIES.index("custom")
_FAMILY_OF = np.array([0] * N_JOINTS + [FAMILIES.index(kind.family) for kind in CONSTRAINT_KINDS.values()])
_COUPLES = np.array([False] * N_JOINTS + [kind.coefficients > 0 for kind in CONSTRAINT_KINDS.values()])


@inline
def loop_integer(model, l, what):
    return integer(model.ints, integer(model.ints, LOOPS_AT) + LOOP_I * l + what)


@inline
def loop_count(model):
    return integer(model.ints, N_LOOPS)


@inline
def loop_kind(model, l):
    return loop_integer(model, l, LOOP_KIND)


@inline
def family_of(model, l):
    """Number of the family (`liedyn.mechanics.constraints.families`) that a constraint belongs to."""
    return _FAMILY_OF[loop_kind(model, l)]


@inline
def is_cut(model, l):
    """True for a cut joint, which has virtual coordinates."""
    return loop_kind(model, l) < N_JOINTS


@inline
def all_cut(model):
    """True if all constraints are cut joints."""
    all_are = True
    for l in range(loop_count(model)):
        all_are = all_are and is_cut(model, l)
    return all_are


@inline
def ranking_of(model, tolerance):
    """The `Ranking` of the robot's constraints (`liedyn.machine.linalg.ranks`); its weights end the packed model."""
    n, m = integer(model.ints, NV), integer(model.ints, N_ROWS)
    at = model.floats.size - n - m
    return Ranking(tolerance, vector_in(model.floats, at, m), vector_in(model.floats, at + m, n))


@inline
def is_weighed(model):
    """True if some weights of rows or columns of the constraints are not 1."""
    return integer(model.ints, WEIGHED) != 0


@inline
def is_long(model):
    """True if the robot has long chains of loops (`liedyn.model.clusters`)."""
    return integer(model.ints, SPARSE) != 0


@inline
def is_active(model, l):
    return loop_integer(model, l, LOOP_ACTIVE) > OFF


@inline
def loop_links(model, l):
    """Links a and b; -1 for the ground."""
    return loop_integer(model, l, LOOP_LINK_A), loop_integer(model, l, LOOP_LINK_B)


@inline
def loop_rows(model, l):
    """First row and number of rows."""
    return loop_integer(model, l, LOOP_ROW), loop_integer(model, l, LOOP_NROWS)


@inline
def present_rows(model, l):
    """First row and number of active rows: for a sliding contact, only those with a residual."""
    first, count = loop_rows(model, l)
    return first, holonomic_count(model, l) if loop_integer(model, l, LOOP_ACTIVE) == SLIDING else count


@inline
def holonomic_count(model, l):
    """Number of rows with a residual, which come first."""
    return loop_integer(model, l, LOOP_HOLONOMIC)


@inline
def loop_virtuals(model, l):
    """First virtual velocity and number of them."""
    return loop_integer(model, l, LOOP_VIRTUAL), loop_integer(model, l, LOOP_NVIRTUAL)


@inline
def loop_at(model, l, what):
    """Index in floats of entry `what` of record l."""
    return integer(model.ints, LOOP_FLOATS_AT) + LOOP_F * l + what


@inline
def loop_pitch(model, l):
    return load(SCALAR, model.floats, loop_at(model, l, LOOP_PITCH))


@inline
def has_target(model, l):
    """True if a function of time moves frame A."""
    return loop_integer(model, l, LOOP_TARGET) != 0


@kernel_in_place
def switch(model, l, status):
    """Set the status of constraint number l (as in ``robot.constraint_names``)."""
    model.ints[model.ints[LOOPS_AT] + LOOP_I * l + LOOP_ACTIVE] = status


@kernel_in_place
def refresh(model, t):
    """Set the time, and with it all moving frames; their twists are body-fixed in the moving frame."""
    floats = model.floats
    floats[TIME] = t
    for l in range(loop_count(model)):
        if not has_target(model, l):
            continue
        k = loop_at(model, l, LOOP_TOLD)
        call(loop_integer(model, l, LOOP_TARGET), t, floats, floats, floats, floats, floats, k)
        if _COUPLES[loop_kind(model, l)]:  # a number and its first two derivatives
            for order, place in enumerate((LOOP_MOTION, LOOP_TWIST, LOOP_RATE)):
                floats[loop_at(model, l, place)] = floats[k + order]
            continue
        fold = get_rotation(model, loop_at(model, l, LOOP_FOLDING))
        if loop_integer(model, l, LOOP_TARGET_SIZE) == 9:  # position, velocity, acceleration
            R, p = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), get3(SCALAR, floats, k)
            W = ((0.0, 0.0, 0.0), get3(SCALAR, floats, k + 3))
            W_dot = ((0.0, 0.0, 0.0), get3(SCALAR, floats, k + 6))
        else:  # a (4, 4) pose, a twist and its rate
            x, y, z = get3(SCALAR, floats, k), get3(SCALAR, floats, k + 4), get3(SCALAR, floats, k + 8)
            R = (x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2])
            p = (floats[k + 3], floats[k + 7], floats[k + 11])
            W, W_dot = get6(SCALAR, floats, k + 16), get6(SCALAR, floats, k + 22)
        R = rotate_rotation(transposed(fold), rotate_rotation(R, fold))
        put_pose(SCALAR, floats, loop_at(model, l, LOOP_MOTION), (R, unrotate(fold, p)))
        put6(SCALAR, floats, loop_at(model, l, LOOP_TWIST), (unrotate(fold, W[0]), unrotate(fold, W[1])))
        put6(SCALAR, floats, loop_at(model, l, LOOP_RATE), (unrotate(fold, W_dot[0]), unrotate(fold, W_dot[1])))


@inline
def transposed(R):
    return (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8])


@inline
def get_rotation(model, k):
    return get9(SCALAR, model.floats, k)
