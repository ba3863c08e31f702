"""Laws of force elements: the force f by the length x and its rate w, with both slopes.

    linear      f = k x + c w + p                          stiffness k, damping c, preload p
    friction    f = s(w) tanh(w / w_0) + c w               s(w) = F_c + (F_s - F_c) exp(-(w / w_s)^2)
    function    f(x, w) of a user's own

Friction is Stribeck's curve (Armstrong-Helouvry, Dupont and Canudas de Wit 1994), Coulomb's where F_s = F_c, with the
jump at rest drawn out over the width w_0: it creeps where it should stick.
"""
import math

from liedyn.compiled.functions import call
from liedyn.compiled.jit import INTEGERS, MATRIX, group, inline
from liedyn.model.force_elements import FRICTION, LINEAR, Laws

STIFFNESS, DAMPING, PRELOAD = range(3)
COULOMB, STATIC, STRIBECK, WIDTH, VISCOUS = range(5)

LAWS = group(Laws, INTEGERS, MATRIX)
"""Its Numba type."""


@inline
def friction(c, w):
    """f and df/dw of a row of numbers c."""
    grip = c[COULOMB] + (c[STATIC] - c[COULOMB]) * math.exp(-(w / c[STRIBECK]) ** 2)
    grip_w = -2.0 * w / c[STRIBECK] ** 2 * (grip - c[COULOMB])
    sense = math.tanh(w / c[WIDTH])
    return grip * sense + c[VISCOUS] * w, grip_w * sense + grip * (1.0 - sense * sense) / c[WIDTH] + c[VISCOUS]


@inline
def force(laws, r, x, w, out):
    """f, df/dx and df/dw of element r at lengths x and rates w; `out` is scratch (3)."""
    c = laws.numbers[r]
    if laws.kinds[r] == LINEAR:
        return c[STIFFNESS] * x[r] + c[DAMPING] * w[r] + c[PRELOAD], c[STIFFNESS], c[DAMPING]
    if laws.kinds[r] == FRICTION:
        f, f_w = friction(c, w[r])
        return f, 0.0, f_w
    call(laws.kinds[x.size + r], 0.0, x[r:], w[r:], w, w, out, 0)
    return out[0], out[1], out[2]
