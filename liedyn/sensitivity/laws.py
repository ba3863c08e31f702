"""Laws of force elements with their derivatives to second order, by the displacement x, the rate w and their numbers.

`liedyn.model.laws` has the formulas and their first slopes; here are those that variations need besides, by hand, for
arrays of states.
"""
from typing import NamedTuple

import numpy as np

from liedyn.model.force_elements import LAW, LAW_KINDS, NUMBERS, ROW
from liedyn.model.laws import LAWS


class Slopes(NamedTuple):
    """Of the laws of all elements at rows of states."""

    rows: np.ndarray
    """(states, rows, 6): f, f_x, f_w, f_xx, f_xw, f_ww of each row."""
    by_numbers: np.ndarray
    """(states, numbers, 3): f, f_x and f_w by each number."""
    owners: np.ndarray
    """(numbers): the row that a number belongs to, -1 for none."""


def linear(x, w, stiffness, damping, preload):
    o, one = 0.0 * x, 1.0 + 0.0 * x
    return ((stiffness * x + preload + damping * w, stiffness + o, damping + o, o, o, o),
            ((x, one, o), (w, o, one), (one, o, o)))


def friction(x, w, coulomb, static, stribeck, width, viscous):
    o, one = 0.0 * x, 1.0 + 0.0 * x
    g = np.exp(-(w / stribeck) ** 2)
    g_w, g_ww = -2.0 * w / stribeck ** 2 * g, (4.0 * w ** 2 / stribeck ** 4 - 2.0 / stribeck ** 2) * g
    T = np.tanh(w / width)
    U = 1.0 - T * T  # T_w = U / width
    more = static - coulomb
    grip, grip_w, grip_ww = coulomb + more * g, more * g_w, more * g_ww
    T_w, T_ww = U / width, -2.0 * T * U / width ** 2
    g_s = 2.0 * w ** 2 / stribeck ** 3 * g
    g_ws = 4.0 * w / stribeck ** 3 * g + 2.0 * w ** 2 / stribeck ** 3 * g_w
    T_b = -U * w / width ** 2  # by the width
    T_wb = -U / width ** 2 - 2.0 * T * T_b / width
    return ((grip * T + viscous * w, o, grip_w * T + grip * T_w + viscous, o, o,
             grip_ww * T + 2.0 * grip_w * T_w + grip * T_ww),
            (((1.0 - g) * T, o, (1.0 - g) * T_w - g_w * T), (g * T, o, g_w * T + g * T_w),
             (more * g_s * T, o, more * (g_ws * T + g_s * T_w)), (grip * T_b, o, grip_w * T_b + grip * T_wb),
             (w, o, one)))


def gas_spring(x, w, force, column, exponent, damping):
    o, one, n = 0.0 * x, 1.0 + 0.0 * x, exponent
    left = 1.0 + x / column
    power = left ** -n
    f, f_x = -force * power, n * force / column * power / left
    by_left = f_x * column  # of f, by what is left
    left_c = -x / column ** 2
    f_xc = -f_x / column - (n + 1.0) * f_x / left * left_c
    return ((f + damping * w, f_x, damping + o, -(n + 1.0) * f_x / (column * left), o, o),
            ((-power, n / column * power / left, o), (by_left * left_c, f_xc, o),
             (force * np.log(left) * power, f_x / n - f_x * np.log(left), o), (w, o, one)))


def motor(x, w, stall_torque, no_load_speed, supply):
    o, slope = 0.0 * x, stall_torque / no_load_speed
    return ((slope * w - stall_torque * supply, o, slope + o, o, o, o),
            ((w / no_load_speed - supply, o, 1.0 / no_load_speed + o),
             (-slope * w / no_load_speed, o, -slope / no_load_speed + o), (-stall_torque + o, o, o)))


def driven(x, w, gear, u):
    o = 0.0 * x
    return (-gear * u + o, o, o, o, o, o), ((-u + o, o, o), (-gear + o, o, o))


KNOWN = {law.__name__: law for law in (linear, friction, gas_spring, motor, driven)}
"""All of `LAWS`."""


def slopes(laws, x, w, u):
    """`Slopes` at displacements and rates (states, rows), with inputs u (states, inputs)."""
    rows = np.zeros((*x.shape, 6))
    by_numbers, owners = np.zeros((len(x), len(laws.numbers), 3)), np.full(len(laws.numbers), -1)
    inputs = {int(row): u[:, k] for k, row, _ in laws.inputs}
    for record in laws.records:
        r, at, name = int(record[ROW]), int(record[NUMBERS]), LAW_KINDS[record[LAW]]
        count = len(LAWS[name].numbers)
        numbers = list(laws.numbers[at:at + count])
        if r in inputs:
            numbers[-1] = inputs[r]
        own, by = KNOWN[name](x[:, r], w[:, r], *numbers)
        rows[:, r] = np.stack(own, axis=-1)
        by_numbers[:, at:at + count] = np.stack([np.stack(each, axis=-1) for each in by], axis=1)
        owners[at:at + count] = r
    return Slopes(rows, by_numbers, owners)
