"""Groups of arguments of the linearization (symbols: `liedyn.linear.local`)."""
from collections import namedtuple


from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, group

Coordinates = namedtuple("Coordinates", "R_y virtual_y R_w virtual_w")
"""Rows R that read the independent coordinates y and velocities w: ydot = R_y v, w = R_w v.

If an entry of `virtual` is not negative, it is the index of a cut joint's velocity, which replaces the
row; LEFT and TANGENT (`liedyn.mechanics.constraints.free_velocities`) leave the choice to the kernel. In lanes R_y has
a register for each number, and so has R_w for tangent spaces, which differ from state to state.
"""

Chosen = namedtuple("Chosen", "coordinates way same")
"""`Coordinates`; how S is found from the elimination (`liedyn.linear.choice`); true if y and w are the same."""

LocalSpace = namedtuple("LocalSpace", "A B f0 w a lam residual psi G M N X da balance")
"""The local state space of one state, or of W states in lanes, as kernels write it.

M, N = [N 0], X = [Delta S], da and balance are padded to whole registers. Before `complete_derivatives` da and
balance belong to wdot = 0.
"""

Directions = namedtuple("Directions", "N X D balance")
"""Columns: displacements N of q, X of v, D of the accelerations, and the forces still to be balanced."""

COORDINATES = group(Coordinates, MATRIX, INTEGERS, MATRIX, INTEGERS)
SPACE = group(LocalSpace, *[MATRIX] * 2, *[VECTOR] * 6, *[MATRIX] * 6)
COLUMNS = group(Directions, *[MATRIX] * 4)
"""Their types at one state, for `liedyn.machine.compiled.jit.late`."""
