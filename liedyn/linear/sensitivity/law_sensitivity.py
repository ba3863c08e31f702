"""Laws of force elements with their derivatives to second order, by the displacement x, the rate w and their numbers.

`liedyn.model.laws` has the formulas and their first slopes; here the second derivatives are added, by hand. For a
user's law only first slopes are known, which first variations alone need.
"""
# mypy: ignore-errors
import math
from collections import namedtuple

import numpy as np
from numba import types
from numba.np.unsafe.ndarray import to_fixed_tuple

from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, group, inline, kernel, late
from liedyn.machine.compiled.user_functions import call
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.elements.element_wrenches import LAWS_TYPE
from liedyn.mechanics.elements.element_wrenches import given
from liedyn.mechanics.elements.forces import force_states, give_inputs, room_for
from liedyn.mechanics.elements.generalized import unit_wrenches
from liedyn.model.calls.boundary import as_floats
from liedyn.model.force_elements import BUSHING, FUNCTION, FUNCTION_AT, LAW, LAW_KINDS, NUMBERS, PUSH, ROW
from liedyn.model.laws import LAWS
from liedyn.model.packed import N_ROWS
from liedyn.model.packed_records import get6

Slopes = namedtuple("Slopes", "rows by_numbers owners cuts records numbers")
"""Values and slopes of the laws of all elements: f, f_x, f_w, f_xx, f_xw, f_ww of each row (rows, 6), for a wrench that
the user gives moment and force alone; f, f_x and f_w by each number (numbers, 3); the row to which a number belongs, -1
for none; and the fields of `Laws` with the same names."""

SLOPES = group(Slopes, MATRIX, MATRIX, INTEGERS, MATRIX, types.int64[:, ::1], VECTOR)
"""Their type, for `liedyn.machine.compiled.jit.late`."""

KNOWN = {}
"""The functions for all of `LAWS`, by name."""


def _law(formula):
    KNOWN[formula.__name__] = inline(formula)


@_law
def linear(x, w, stiffness, damping, preload):
    o, one = 0.0 * x, 1.0 + 0.0 * x
    return ((stiffness * x + preload + damping * w, stiffness + o, damping + o, o, o, o),
            ((x, one, o), (w, o, one), (one, o, o)))


@_law
def friction(x, w, coulomb, static, stribeck, width, viscous):
    o, one = 0.0 * x, 1.0 + 0.0 * x
    g = math.exp(-(w / stribeck) ** 2)
    g_w, g_ww = -2.0 * w / stribeck ** 2 * g, (4.0 * w ** 2 / stribeck ** 4 - 2.0 / stribeck ** 2) * g
    T = math.tanh(w / width)
    U = 1.0 - T * T  # T_w = U / width
    more = static - coulomb
    grip, grip_w, grip_ww = coulomb + more * g, more * g_w, more * g_ww
    T_w, T_ww = U / width, -2.0 * T * U / width ** 2
    g_s = 2.0 * w ** 2 / stribeck ** 3 * g
    g_ws = 4.0 * w / stribeck ** 3 * g + 2.0 * w ** 2 / stribeck ** 3 * g_w
    T_b = -U * w / width ** 2  # derivative by the width
    T_wb = -U / width ** 2 - 2.0 * T * T_b / width
    return ((grip * T + viscous * w, o, grip_w * T + grip * T_w + viscous, o, o,
             grip_ww * T + 2.0 * grip_w * T_w + grip * T_ww),
            (((1.0 - g) * T, o, (1.0 - g) * T_w - g_w * T), (g * T, o, g_w * T + g * T_w),
             (more * g_s * T, o, more * (g_ws * T + g_s * T_w)), (grip * T_b, o, grip_w * T_b + grip * T_wb),
             (w, o, one)))


@_law
def gas_spring(x, w, force, column, exponent, damping):
    o, one, n = 0.0 * x, 1.0 + 0.0 * x, exponent
    left = 1.0 + x / column
    power = left ** -n
    f, f_x = -force * power, n * force / column * power / left
    by_left = f_x * column  # derivative of f by the gas column that remains
    left_c = -x / column ** 2
    f_xc = -f_x / column - (n + 1.0) * f_x / left * left_c
    return ((f + damping * w, f_x, damping + o, -(n + 1.0) * f_x / (column * left), o, o),
            ((-power, n / column * power / left, o), (by_left * left_c, f_xc, o),
             (force * math.log(left) * power, f_x / n - f_x * math.log(left), o), (w, o, one)))


@_law
def motor(x, w, stall_torque, no_load_speed, supply):
    o, slope = 0.0 * x, stall_torque / no_load_speed
    return ((slope * w - stall_torque * supply, o, slope + o, o, o, o),
            ((w / no_load_speed - supply, o, 1.0 / no_load_speed + o),
             (-slope * w / no_load_speed, o, -slope / no_load_speed + o), (-stall_torque + o, o, o)))


@_law
def polynomial(x, w, stiffness, quadratic, cubic, damping, quadratic_damping, cubic_damping, slack):
    o, one = 0.0 * x, 1.0 + 0.0 * x
    y = x if x < 0.0 else max(x - slack, 0.0)
    taut = 1.0 if x < 0.0 or x >= slack else 0.0
    beyond = -1.0 if x >= slack else 0.0  # derivative of y by the slack
    size, sense = abs(w), math.copysign(1.0, w)
    by_y, by_yy = stiffness + (2.0 * quadratic + 3.0 * cubic * y) * y, 2.0 * quadratic + 6.0 * cubic * y
    f = (stiffness + (quadratic + cubic * y) * y) * y
    return ((f + (damping + (quadratic_damping + cubic_damping * size) * size) * w, by_y * taut,
             damping + (2.0 * quadratic_damping + 3.0 * cubic_damping * size) * size, by_yy * taut, o,
             2.0 * quadratic_damping * sense + 6.0 * cubic_damping * w),
            ((y, taut, o), (y * y, 2.0 * y * taut, o), (y ** 3, 3.0 * y * y * taut, o),
             (w, o, one), (w * size, o, 2.0 * size), (w ** 3, o, 3.0 * w * w),
             (by_y * beyond, by_yy * beyond, o)))


@_law
def cable(x, w, stiffness, damping):
    o, one = 0.0 * x, 1.0 + 0.0 * x
    taut = 1.0 if x > 0.0 and stiffness * x + damping * w > 0.0 else 0.0
    return (((stiffness * x + damping * w) * taut, stiffness * taut + o, damping * taut + o, o, o, o),
            ((x * taut, one * taut, o), (w * taut, o, one * taut)))


@_law
def driven(x, w, gear, u):
    o = 0.0 * x
    return (-gear * u + o, o, o, o, o, o), ((-u + o, o, o), (-gear + o, o, o))


@inline
def _first_only(laws, e, t, x, w, out, slopes):
    """First slopes of a user's law, and the wrenches that the user gives."""
    r = laws.records[e, ROW]
    if laws.records[e, LAW] == FUNCTION:
        call(laws.records[e, FUNCTION_AT], t, x[r:], w[r:], w, w, out, 0)
        for k in range(3):
            slopes.rows[r, k] = out[k]
    elif laws.records[e, LAW] != BUSHING:
        m, F = given(laws, e, t, get6(SCALAR, x, r), x, out)
        for k in range(3):
            slopes.rows[r + k, 0], slopes.rows[r + 3 + k, 0] = m[k], F[k]


def _either(name, otherwise):
    code, variations, count = LAW_KINDS.index(name), KNOWN[name], len(LAWS[name].numbers)

    def either(laws, e, t, x, w, out, slopes):
        if laws.records[e, LAW] == code:
            r, at = laws.records[e, ROW], laws.records[e, NUMBERS]
            own, by = variations(x[r], w[r], *to_fixed_tuple(laws.numbers[at:], count))
            for k in range(6):
                slopes.rows[r, k] = own[k]
            for i in range(count):
                for k in range(3):
                    slopes.by_numbers[at + i, k] = by[i][k]
        else:
            otherwise(laws, e, t, x, w, out, slopes)

    either.__name__ = either.__qualname__ = f"{name}_or_another"
    return inline(either)


_put = _first_only
for _name in LAWS:
    _put = _either(_name, _put)


@late(LAWS_TYPE, types.float64, VECTOR, VECTOR, VECTOR, SLOPES)
def put_slopes(laws, t, x, w, out, slopes):
    """Fill rows and by_numbers of `slopes`, at displacements x and rates w of all rows; `out` is scratch (6)."""
    slopes.rows[:, :] = 0.0
    slopes.by_numbers[:, :] = 0.0
    for e in range(laws.records.shape[0]):
        _put(laws, e, t, x, w, out, slopes)


@kernel
def slope_states(laws, t, x, w, u, rows, by_numbers, owners):
    """`put_slopes` at rows of displacements, rates and inputs u; the last row of inputs remains in `laws`."""
    out = np.empty(6)
    for b in range(x.shape[0]):
        give_inputs(laws, u[b])
        put_slopes(laws, t, x[b], w[b], out, Slopes(
            rows[b], by_numbers[b], owners, laws.cuts, laws.records, laws.numbers))


def make_slopes(laws, rows):
    """Arrays for the slopes of laws with `rows` rows."""
    owners = np.full(len(laws.numbers), -1)
    for record in laws.records:
        name = LAW_KINDS[record[LAW]]
        if name in LAWS:
            owners[record[NUMBERS]:record[NUMBERS] + len(LAWS[name].numbers)] = record[ROW]
    return Slopes(np.zeros((rows, 6)), np.zeros((len(laws.numbers), 3)), owners, laws.cuts, laws.records, laws.numbers)


def element_slopes(robot, q, v, u, lead):
    """`Slopes` of the laws of force elements at rows of states with inputs u, None if there are none."""
    if robot.elements is None:
        return None
    packed, laws, count = robot.elements.packed, robot.elements.laws, len(q)
    rows, nu = int(packed.ints[N_ROWS]), len(robot.actuator_names)
    tau, x, w, f = (np.zeros((count, size)) for size in (robot.nv, rows, rows, rows))
    force_states(packed, laws, room_for(packed), robot.t, q, v, (tau, x, w, f))
    u = np.zeros((count, nu)) if u is None else np.broadcast_to(as_floats("u", u, nu), (*lead, nu)).reshape(count, nu)
    one = make_slopes(laws, rows)
    found = one._replace(rows=np.zeros((count, *one.rows.shape)), by_numbers=np.zeros((count, *one.by_numbers.shape)))
    slope_states(laws._replace(numbers=laws.numbers.copy()), robot.t, x, w, np.array(u, order="C"), found.rows,
                 found.by_numbers, found.owners)
    return found


def pushed_by_inputs(robot, q, columns, first):
    """What unit inputs add to the forces of force elements (states, columns, rows); column `first` is the first
    input."""
    laws, rows = robot.elements.laws, int(robot.elements.packed.ints[N_ROWS])
    pushed = np.zeros((len(q), columns, rows))
    for actuator, element, at in laws.inputs:
        row, thruster = laws.records[element, ROW], robot.model.actuators[actuator]
        if laws.records[element, LAW] < PUSH:
            pushed[:, first + actuator, row] = -laws.numbers[at - 1]
        else:
            pushed[:, first + actuator, row:row + 6] = -unit_wrenches(robot, q, thruster)
    return pushed
