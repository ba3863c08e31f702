"""Directions of variation that share a column, because no link moves in two of them.

A motion of one leg of a robot moves no link of another leg: variations along both can share one column, as their sum,
and are distinguished by the row (as in Curtis, Powell and Reid 1974 for the columns of sparse Jacobians). Links whose
joints are connected by constraints belong to one *group*; a group that is the only child of another one is joined to
it, so that a leg is one. The smallest number in a group is its leader. The columns of a group's directions follow those
of the group that carries it.

A direction of a group moves nothing nearer to the ground. There its wrench acts on all joints on the way; columns
distinguished by their links would be added up, so it is removed where the group is attached to another one (`hand_over`
in `liedyn.mechanics.tree.tangent_recursion`).

Integers: the size of a record, the number of directions of each part, the number of columns of the first part; then a
record for each link. Except for the entry of the leader, only the leader's record is used. A direction is one of
coordinates, part 0, or of velocities, part 1.
"""
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import integer

RECORDS = 3
# entries of a record: leader; 1 for a floating base; for each part the group's own columns from FIRST to before END,
# and their number; then the directions in all columns up to END, one list for each part
LEADER, FLOATS, FIRST, END, COUNT, DIRECTIONS = 0, 1, 2, 4, 6, 8


@inline
def record_of(shares, i):
    """Index where the record of link i begins."""
    return RECORDS + integer(shares, 0) * i


@inline
def leader(shares, i):
    return integer(shares, record_of(shares, i) + LEADER)


@inline
def directions_of(shares, i, part):
    """For link i: where its list of directions begins, its group's first column, the end of all; index of column 0."""
    record = record_of(shares, leader(shares, i))
    return (record + DIRECTIONS + integer(shares, 1) * part, integer(shares, record + FIRST + part),
            integer(shares, record + END + part), integer(shares, 2) * part)
