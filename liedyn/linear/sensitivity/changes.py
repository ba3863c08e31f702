"""The numbers of the packed model that a parameter changes, and how kernels read them.

A parameter is a list of *changes*: derivatives of numbers of the packed model by the parameter. A change has a kind,
the index of the link, constraint or degree of freedom that it changes, and its derivatives:

====================== ============= =================================================================================
SHIFT                  link          six: displacement of the link's joint relative to its parent, a twist at the
                                     parent link's frame; all that the link carries moves with it
INERTIA                link          ten: of (m, h, J) in the link's frame
SIDE_A, SIDE_B         constraint    six: displacement of frame A or B, a twist at the frame of the link that has it
LENGTH, RADIUS         constraint    one
GRAVITY                -             three
ARMATURE, DAMPING,     degree of     one; REST only for a joint with one degree of freedom
STIFFNESS, REST        freedom
NUMBER                 index of      one: of a law of a force element, in the order of `Laws.numbers`
                       the number
FRICTION               constraint    one: coefficient of friction, which `spread` does not hold
====================== ============= =================================================================================

Kernels take a register of parameters at a time: `put_changes` writes the changes of each parameter to its lane of
arrays with one register for every number that may change, twists and inertias in world axes.
"""
from collections import namedtuple

import numpy as np

from liedyn.lie.algebra import Ad, inertia_in_parent
from liedyn.machine.compiled.jit import INTEGERS, VECTOR, group, inline, kernel_in_place
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, integer, load, splat, store
from liedyn.mechanics.tree.kinematics import origin, world_pose
from liedyn.mechanics.tree.poses import seen_from
from liedyn.model.constraint_records import loop_count, loop_links
from liedyn.model.packed_records import dof_total, get3, get6, get_inertia, link_count, parent

(SHIFT, INERTIA, SIDE_A, SIDE_B, LENGTH, RADIUS, GRAVITY, ARMATURE, DAMPING, STIFFNESS, REST, NUMBER,
 FRICTION) = range(13)
SIZES = {SHIFT: 6, INERTIA: 10, SIDE_A: 6, SIDE_B: 6, GRAVITY: 3}
"""Number of derivatives of a change; one for kinds that are not listed."""

Changes = namedtuple("Changes", "first records numbers")
"""Changes of parameter k are records first[k] to first[k + 1] - 1; a record is (kind, index, place in `numbers`)."""

CHANGES = group(Changes, INTEGERS, INTEGERS, VECTOR)
"""Their type, for `liedyn.machine.compiled.jit.late`; the records follow one another, RECORD integers each."""
RECORD = 3

Change = namedtuple("Change", "kind what numbers at")
"""One change: its kind, the index of what it changes, and where its derivatives begin in `numbers`."""

# registers per link, constraint and degree of freedom; those of gravity come last
OF_LINK, TWIST_AT, INERTIA_AT = 16, 0, 6
OF_LOOP, A_AT, B_AT, LENGTH_AT, RADIUS_AT = 14, 0, 6, 12, 13
OF_DOF = 4


def make_changes(parameters):
    """`Changes` from one list of (kind, index, numbers) for each parameter."""
    first, records, numbers = [0], [], []
    for changes in parameters:
        for kind, what, values in changes:
            records += [kind, what, len(numbers)]
            numbers += [float(x) for x in np.atleast_1d(values)]
        first.append(len(records) // RECORD)
    return Changes(np.array(first, np.int64), np.array(records, np.int64), np.array([*numbers, 0.0]))


@inline
def change_of(changes, c):
    """The `Change` of record c."""
    k = RECORD * c
    return Change(integer(changes.records, k), integer(changes.records, k + 1), changes.numbers,
                  integer(changes.records, k + 2))


@inline
def spread_size(model):
    """Size of the array that `put_changes` fills, for a model without force elements."""
    links, loops = OF_LINK * link_count(model), OF_LOOP * loop_count(model)
    return WIDTH * (links + loops + OF_DOF * dof_total(model) + 3)


@inline
def of_loop(model, l, what):
    return OF_LINK * link_count(model) + OF_LOOP * l + what


@inline
def of_dof(model, j, what):
    return of_loop(model, loop_count(model), 0) + OF_DOF * j + what - ARMATURE


@inline
def of_gravity(model):
    return of_dof(model, dof_total(model), ARMATURE)


@inline
def of_number(model, k):
    """Register of number k of the laws of force elements."""
    return of_gravity(model) + 3 + k


@inline
def shift_of(spread, i):
    """Displacement of link i relative to its parent."""
    return get6(LANES, spread, OF_LINK * i + TWIST_AT)


@inline
def inertia_change(spread, i):
    """Change of the inertia of link i."""
    return get_inertia(LANES, spread, OF_LINK * i + INERTIA_AT)


@inline
def number_change(spread, k):
    """Change of a single number, register k."""
    return load(LANES, spread, k)


@inline
def _place(spread, k, x, slot):
    """Adds x to one lane of register k."""
    store(SCALAR, spread, WIDTH * k + slot, load(SCALAR, spread, WIDTH * k + slot) + x)


@inline
def _place3(spread, k, a, slot):
    for i in range(3):
        _place(spread, k + i, a[i], slot)


@inline
def _pose(model, work, i):
    """The pose of link i, or of the world for i < 0."""
    if i < 0:
        identity = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
        return seen_from(origin(SCALAR, model, work), identity)
    return world_pose(SCALAR, work, i)


@inline
def _put_twist(spread, k, X, Z, slot):
    w, v = Ad(X, Z)
    _place3(spread, k, w, slot)
    _place3(spread, k + 3, v, slot)


@inline
def _put_change(model, work, change, spread, slot):
    kind, what, numbers, at = change
    if kind == SHIFT:
        Z = get6(SCALAR, numbers, at)
        _put_twist(spread, OF_LINK * what + TWIST_AT, _pose(model, work, parent(model, what)), Z, slot)
    elif kind == SIDE_A or kind == SIDE_B:
        a, b = loop_links(model, what)
        link, side = (a, A_AT) if kind == SIDE_A else (b, B_AT)
        _put_twist(spread, of_loop(model, what, side), _pose(model, work, link), get6(SCALAR, numbers, at), slot)
    elif kind == INERTIA:
        m, h, J = inertia_in_parent(world_pose(SCALAR, work, what), get_inertia(SCALAR, numbers, at))
        k = OF_LINK * what + INERTIA_AT
        _place(spread, k, m, slot)
        _place3(spread, k + 1, h, slot)
        _place3(spread, k + 4, J[:3], slot)
        _place3(spread, k + 7, J[3:], slot)
    elif kind == LENGTH or kind == RADIUS:
        size = LENGTH_AT if kind == LENGTH else RADIUS_AT
        _place(spread, of_loop(model, what, size), load(SCALAR, numbers, at), slot)
    elif kind == GRAVITY:
        _place3(spread, of_gravity(model), get3(SCALAR, numbers, at), slot)
    elif kind == NUMBER:
        _place(spread, of_number(model, what), load(SCALAR, numbers, at), slot)
    elif kind != FRICTION:
        _place(spread, of_dof(model, what, kind), load(SCALAR, numbers, at), slot)


@kernel_in_place
def put_changes(model, changes, b, work, spread):
    """Writes the changes of block b of the parameters to `spread`; needs `world_positions`."""
    for k in range(spread.size // WIDTH):
        store(LANES, spread, k, splat(LANES, 0.0))
    count = changes.first.size - 1
    for p in range(WIDTH * b, min(WIDTH * (b + 1), count)):
        for c in range(changes.first[p], changes.first[p + 1]):
            _put_change(model, work, change_of(changes, c), spread, p - WIDTH * b)
