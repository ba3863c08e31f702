"""Why constraints cannot be satisfied: a smallest set of constraints that contradict each other.

Constraints are left out one after another; if the others still cannot be satisfied without it, it is omitted for good.
The remaining ones cannot be satisfied together, but can without any one of them (a deletion filter: Chinneck and
Dravnieks 1991). The least squared error of these alone measures the contradiction.
"""
from dataclasses import replace

import numpy as np

from liedyn.machine.errors import ClosureError
from liedyn.mechanics.constraints.closing import JUMP
from liedyn.mechanics.constraints.closing_steps import clusters_of_rows
from liedyn.mechanics.constraints.loops import virtual_coordinates
from liedyn.mechanics.constraints.singular_guess import closed_at

ROUNDING = 1e-6
"""Errors below this fraction of the largest one are inaccuracy of the search, and are not reported."""


def raise_contradiction(robot, q, target, held, outcome, tolerance):
    """Raise the `ClosureError` for a state that could not be closed; the search stopped at q."""
    said = f" with {_values(robot, held, target.q, target.held.virtual, target.values)}" if held else ""
    said += f" at t = {robot.t}" if robot.functions else ""
    least = closed_at(robot, q, target, tolerance)
    if least[2] or outcome == JUMP:
        here = _values(robot, held, q, target.held.virtual, virtual_coordinates(robot, q)[target.held.virtual])
        raise ClosureError(
            f"no path leads from the guess to an assembly of {robot.name!r}{said}: it ends at {here}, where the other "
            "coordinates would have to jump; start from a guess on the wanted branch", 0.0, "", q)
    # forces do not matter here, and would prevent their cut joints from being removed
    alone = replace(robot, elements=None)
    alone = alone.switched(dict.fromkeys(_apart(robot, target, least[1], tolerance), False))
    for name in alone.active:
        without = alone.switched({name: False})
        found = closed_at(without, least[0], target, tolerance)
        if not found[2]:
            alone, least = without, found
    near, e, _ = least
    sizes = {name: _sizes(alone, name, e) for name in alone.active}
    size, worst = max(((x, name) for name, (x, _) in sizes.items()), default=(0.0, ""))
    parts = [f"{_named(robot, name)} is left open by {text}" for name, (x, text) in sizes.items()
             if not x <= ROUNDING * size]
    for k, x in zip(target.held.virtual, np.abs(e[len(robot.row_names):])):
        if x > tolerance:
            parts.append(f"{robot.virtual_names[k]!r} stays {x:.3g} away from its value")
            size = max(size, float(x))
    text = ", ".join(parts)
    if len(sizes) > 1:
        *first, last = [_named(robot, name) for name in sizes]
        text = f"{', '.join(first)} and {last} contradict each other, at best {text}"
    raise ClosureError(f"the constraints of {robot.name!r} cannot be satisfied near this guess{said}: {text}",
                       float(size), worst, near)


def _apart(robot, target, e, tolerance):
    """Active constraints without coordinates of those left open by e, or of a held coordinate away from its value."""
    of_rows = clusters_of_rows(robot.packed, target.held.virtual)
    still_open = of_rows[~(np.abs(e) <= tolerance)]
    owners = np.array(robot.row_owners)
    return [name for name in robot.active if not np.isin(of_rows[:len(owners)][owners == name], still_open).any()]


def _named(robot, name):
    return f"{'loop' if name in robot.loop_names else 'constraint'} {name!r}"


def _sizes(robot, name, e):
    """The largest error of a constraint's rows, and a text with its errors, metres separate from radians."""
    by_unit = {}
    for k, owner in enumerate(robot.row_owners):
        if owner == name:
            row = robot.row_names[k].removeprefix(name)
            unit = " rad" if row in (".wx", ".wy", ".wz") else " m" if row in _LENGTHS else ""
            by_unit[unit] = np.hypot(by_unit.get(unit, 0.0), e[k])
    largest = max(by_unit.values(), default=0.0)
    return largest, " and ".join(f"{x:.3g}{unit}" for unit, x in by_unit.items() if not x <= ROUNDING * largest)


_LENGTHS = (".vx", ".vy", ".vz", ".gap", ".height")


def _values(robot, held, q, virtual, values):
    """A text with the held coordinates and their values at q."""
    parts = []
    for name in held:
        if name in robot.virtual_names:
            x = values[list(virtual).index(robot.virtual_index(name))]
        else:
            x = [q[k] for k, each in enumerate(robot.coordinate_names) if each == name or each.startswith(f"{name}.")]
            x = x[0] if len(x) == 1 else [float(f"{each:.6g}") for each in x]
        parts.append(f"{name} = {x:.6g}" if np.ndim(x) == 0 else f"{name} = {x}")
    return ", ".join(parts)
