"""Descriptions of robots: ``liedyn list`` and ``liedyn info``."""
import numpy as np

import liedyn as ld
from liedyn.machine.errors import LiedynError
from liedyn.machine.texts import printable
from liedyn.mechanics.constraints.loops import rank_of
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.model.kinds import LOOP_KINDS


def print_table(rows, indent="  "):
    """Print rows of texts in columns."""
    rows = [[printable(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print(indent + "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


def print_list():
    """Print the bundled robots."""
    robots = [ld.load(name) for name in ld.bundled()]
    print_table([(robot.name, f"{robot.nv} coordinates", f"{len(robot.loop_names)} loops", robot.description)
                 for robot in robots], indent="")


def print_info(source):
    """Print bodies, joints, loops, mobility and redundant rows of a robot."""
    robot = ld.load(source)
    print(printable(robot.name + (f": {robot.description}" if robot.description else "")))
    if robot.source:
        print(f"source: {printable(robot.source)}")
    print(f"gravity: {robot.gravity.tolist()} m/s^2")

    _print_parts(robot)
    print(f"\ncoordinates of the tree:      {robot.nv}" + (f" (nq = {robot.nq})" if robot.nq != robot.nv else ""))
    if robot.constraint_names:
        _print_mobility(robot)
    else:
        print(f"degrees of freedom:           {robot.nv}")
    if robot.independent:
        print(f"independent by default:       {printable(', '.join(robot.independent))}")
    if robot.singular_tree:
        print(f"held by loops only:           {printable(', '.join(robot.singular_tree))} (massless in the open tree)")


def _print_parts(robot):
    """A table for each kind of part that the robot has."""
    model = robot.model
    print(f"\nbodies ({robot.nbodies})")
    print_table([(body.name, f"{body.mass:g} kg") for body in model.bodies])
    if model.frames:
        print(f"\nframes ({len(model.frames)})")
        print_table([(frame.name, f"in {frame.body}") for frame in model.frames])
    print(f"\njoints ({len(model.joints)})")
    print_table([(joint.name, joint.kind, f"{joint.parent} -> {joint.child}", _coordinates(robot, joint))
                 for joint in model.joints])
    if model.loops:
        print(f"\nloops ({len(model.loops)}), closed by cut joints")
        print_table([(loop.name, loop.kind, f"{loop.parent} - {loop.child}", _rows(robot, loop),
                      "virtual: " + (", ".join(loop.name + s for s in LOOP_KINDS[loop.kind].velocities) or "none"))
                     for loop in model.loops])
    if model.constraints:
        print(f"\nother constraints ({len(model.constraints)})")
        print_table([(each.name, each.kind, _between(each) if each.parent else "", _rows(robot, each))
                     for each in model.constraints])
    if model.actuators:
        print(f"\nactuators ({len(model.actuators)})")
        print_table([(each.name, f"on {', '.join(each.gears)}" if each.gears else _between(each.measure), _gear(each))
                     for each in model.actuators])
    if model.elements:
        print(f"\nforce elements ({len(model.elements)})")
        print_table([(each.name, each.law, _between(each.measure) if each.measure.parent else
                      f"on {', '.join(each.measure.coefficients)}") for each in model.elements])


def _gear(actuator):
    """What a unit of the input is."""
    if hasattr(actuator, "wrench"):
        moment, force = ([f"{x:g}" for x in actuator.wrench[k:k + 3]] for k in (0, 3))
        return f"force {', '.join(force)}, moment {', '.join(moment)} in axes of the {actuator.axes}"
    return f"gear {', '.join(f'{gear:g}' for gear in actuator.gears.values() or [actuator.gear])}"


def _coordinates(robot, joint):
    names = [name for name in robot.velocity_names if name == joint.name or name.startswith(f"{joint.name}.")]
    return ", ".join(names) or "-"


def _rows(robot, each):
    own = np.array(robot.row_owners) == each.name
    count, on_velocities = own.sum(), (own & ~robot.holonomic).sum()
    text = f"{count} row{'s' if count > 1 else ''}" + (f", {on_velocities} on velocities only" if on_velocities else "")
    text += ", one-sided" if getattr(each, "side", 0) else ""
    return text + ("" if each.active else ", switched off")


def _print_mobility(robot):
    print(f"constraint rows:              {len(robot.row_names)}")
    try:
        q = ld.close(robot, robot.home)
        rank, redundant = rank_of(robot, q, RANK_TOLERANCE)
    except LiedynError as error:
        print(f"mobility:                     unknown, {printable(str(error))}")
        return
    on_positions = rank_of(robot, q, RANK_TOLERANCE, robot.holonomic)[0]
    print(f"rank of the rows:             {rank} (at the home configuration, loops closed to "
          f"{np.abs(ld.closure_error(robot, q)).max():.1e})")
    of_positions = f" ({robot.nv - on_positions} of positions)" if on_positions != rank else ""
    print(f"degrees of freedom:           {robot.nv - rank}{of_positions}")
    which = printable(f"{len(redundant)}: {', '.join(redundant)}") if redundant else "none"
    print(f"redundant rows:               {which}")


def _between(each):
    return f"{each.parent} - {each.child}"
