"""The laws of `liedyn.model.laws` for kernels, selected by their codes."""
from numba import types
from numba.np.unsafe.ndarray import to_fixed_tuple

from liedyn.machine.compiled.jit import MATRIX, VECTOR, group, inline
from liedyn.machine.compiled.user_functions import call
from liedyn.model.force_elements import FUNCTION_AT, LAW, LAW_KINDS, NUMBERS, ROW, Laws
from liedyn.model.laws import LAWS

LAWS_TYPE = group(Laws, types.int64[:, ::1], VECTOR, MATRIX, VECTOR, types.int64[:, ::1])
"""Numba's type of `Laws`."""


@inline
def _users(laws, e, t, x, w, out):
    """Force by the user's own function, whose energy is unknown."""
    r = laws.records[e, ROW]
    call(laws.records[e, FUNCTION_AT], t, x[r:], w[r:], w, w, out, 0)
    return out[0], out[1], out[2], 0.0, 0.0


def _either(name, otherwise):
    code, formula, count = LAW_KINDS.index(name), LAWS[name].formula, len(LAWS[name].numbers)

    def either(laws, e, t, x, w, out):
        if laws.records[e, LAW] == code:
            r, given = laws.records[e, ROW], to_fixed_tuple(laws.numbers[laws.records[e, NUMBERS]:], count)
            return formula(x[r], w[r], *given)
        return otherwise(laws, e, t, x, w, out)

    either.__name__ = either.__qualname__ = f"{name}_or_another"
    return inline(either)


force = _users
"""f, df/dx, df/dw, conservative part and energy of element e, for lengths x and rates w of all rows; scratch `out`."""
for _name in LAWS:
    force = _either(_name, force)
