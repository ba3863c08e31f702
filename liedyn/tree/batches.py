"""Between rows of states and SIMD lanes: W consecutive rows of a (count, size) array become one W-lane array."""
from liedyn.jit import inline
from liedyn.lie.lanes import WIDTH


@inline
def gather(rows, b, lanes):
    """Rows b..b+W-1 into lanes: scalar k of the algorithm at [k*W, (k+1)*W)."""
    for k in range(rows.shape[1]):
        for i in range(WIDTH):
            lanes[k * WIDTH + i] = rows[b + i, k]


@inline
def scatter(lanes, b, rows):
    """Lanes back into rows b..b+W-1."""
    for i in range(WIDTH):
        for k in range(rows.shape[1]):
            rows[b + i, k] = lanes[k * WIDTH + i]
