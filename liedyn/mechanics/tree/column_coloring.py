"""Columns that several directions share, because none of them moves a link that another one moves.

What moves one leg of a robot moves no link of another leg: variations along both can stand in one column, their sum,
and are told apart by the row (as Curtis, Powell and Reid 1974 do it for the columns of sparse Jacobians). Links whose
joints constraints tie together belong to one *group*, as do two that have no others beside them on the link they hang
on: a leg is one. The smallest number in a group is its leader. Directions of a group come in columns behind those of
the group it hangs on.

A direction of a group moves nothing nearer to the ground. There its wrench only passes, and acts on all joints on the
way; columns that were told apart by the links would now be added up, so it is taken out where the group hangs on
another one (`hand_over` in `liedyn.mechanics.tree.tangent_recursion`).

Integers: the size of a record, how many directions there are of each part, how many columns the first part has. Then a
record for each link; but for its leader, only that of the leader counts. A direction is of coordinates, part 0, or of
velocities, part 1.
"""
from liedyn.machine.compiled.jit import inline
from liedyn.machine.simd.lanes import integer

RECORDS = 3
# of a record: leader; is it a floating base; columns that are the group's own, of each part from FIRST to before END,
# and how many; then the directions in all columns to END, one list for each part
LEADER, FLOATS, FIRST, END, COUNT, DIRECTIONS = 0, 1, 2, 4, 6, 8


@inline
def record_of(shares, i):
    """Where the record of link i begins."""
    return RECORDS + integer(shares, 0) * i


@inline
def leader(shares, i):
    return integer(shares, record_of(shares, i) + LEADER)


@inline
def directions_of(shares, i, part):
    """Of link i: where the list of directions begins, its own first column, the end of all; the column of number 0."""
    record = record_of(shares, leader(shares, i))
    return (record + DIRECTIONS + integer(shares, 1) * part, integer(shares, record + FIRST + part),
            integer(shares, record + END + part), integer(shares, 2) * part)
