"""Descriptions of robots: ``liedyn list`` and ``liedyn info``."""
import numpy as np

import liedyn as ld
from liedyn.machine.errors import LiedynError
from liedyn.machine.texts import ShownText, printable
from liedyn.mechanics.constraints.loops import rank_of
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.model.kinds import LOOP_KINDS


def table(rows, indent="  "):
    """Rows of texts as lines, in columns."""
    rows = [[printable(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [indent + "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows]


def print_list():
    """Print the bundled robots."""
    robots = [ld.load(name) for name in ld.bundled()]
    print("\n".join(table([(robot.name, f"{robot.nv} coordinates", f"{len(robot.loop_names)} loops", robot.description)
                           for robot in robots], indent="")))


def print_info(source):
    """Print bodies, joints, loops, mobility and redundant rows of a robot."""
    print(ld.load(source).info())


def description(robot):
    """What `Robot.info` returns."""
    lines = [printable(robot.name + (f": {robot.description}" if robot.description else ""))]
    if robot.source:
        lines.append(f"source: {printable(robot.source)}")
    lines += [f"gravity: {robot.gravity.tolist()} m/s^2", *_parts(robot), "",
              f"coordinates of the tree:      {robot.nv}" + (f" (nq = {robot.nq})" if robot.nq != robot.nv else "")]
    lines += _mobility(robot) if robot.constraint_names else [f"degrees of freedom:           {robot.nv}"]
    if robot.independent:
        lines.append(f"independent by default:       {printable(', '.join(robot.independent))}")
    if robot.singular_tree:
        lines.append(f"held by loops only:           {printable(', '.join(robot.singular_tree))} "
                     "(massless in the open tree)")
    return ShownText("\n".join(lines))


def _parts(robot):
    """A table for each kind of part that the robot has."""
    model = robot.model
    tables = [
        ("bodies", robot.nbodies, "", [(body.name, f"{body.mass:g} kg") for body in model.bodies]),
        ("frames", len(model.frames), "", [(frame.name, f"in {frame.body}") for frame in model.frames]),
        ("joints", len(model.joints), "", [(joint.name, joint.kind, f"{joint.parent} -> {joint.child}",
                                            _coordinates(robot, joint)) for joint in model.joints]),
        ("loops", len(model.loops), ", closed by cut joints", [
            (loop.name, loop.kind, f"{loop.parent} - {loop.child}", _rows(robot, loop),
             "virtual: " + (", ".join(loop.name + s for s in LOOP_KINDS[loop.kind].velocities) or "none"))
            for loop in model.loops]),
        ("other constraints", len(model.constraints), "", [
            (each.name, each.kind, "" if each.bodies == {None} else _between(each), _rows(robot, each))
            for each in model.constraints]),
        ("actuators", len(model.actuators), "", [
            (each.name, f"on {', '.join(each.gears)}" if each.gears else _between(each.measure), _gear(each))
            for each in model.actuators]),
        ("force elements", len(model.elements), "", [
            (each.name, each.law, _between(each.measure) if each.bodies - {None} else
             f"on {', '.join(each.measure.coefficients)}") for each in model.elements]),
    ]
    return [line for what, count, more, rows in tables if rows
            for line in ("", f"{what} ({count}){more}", *table(rows))]


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


def _mobility(robot):
    lines = [f"constraint rows:              {len(robot.row_names)}"]
    try:
        q = ld.close(robot, robot.home)
        rank, redundant = rank_of(robot, q, RANK_TOLERANCE)
    except LiedynError as error:
        return [*lines, f"mobility:                     unknown, {printable(str(error))}"]
    on_positions = rank_of(robot, q, RANK_TOLERANCE, robot.holonomic)[0]
    of_positions = f" ({robot.nv - on_positions} of positions)" if on_positions != rank else ""
    which = printable(f"{len(redundant)}: {', '.join(redundant)}") if redundant else "none"
    return [*lines, f"rank of the rows:             {rank} (at the home configuration, loops closed to "
            f"{np.abs(ld.closure_error(robot, q)).max():.1e})",
            f"degrees of freedom:           {robot.nv - rank}{of_positions}", f"redundant rows:               {which}"]


def _between(each):
    if getattr(each, "stations", ()):
        return " - ".join(station.body for station in each.stations)
    return f"{each.parent} - {each.child}"
