"""Plots of trajectories over time, with matplotlib (``pip install 'liedyn[plot]'``)."""
from liedyn.machine.arguments import names as names_of
from liedyn.machine.figures import COLOURS, figure
from liedyn.machine.texts import drawn
from liedyn.model.kinds import are_lengths

STYLES = ("-", "--", "-.", ":")
MOST = 10
"""Largest number of curves that are drawn by default."""


def plot(trajectory, names, ax):
    """`Trajectory.plot`."""
    names = trajectory.coordinate_names[:MOST] if names is None else names_of("names", names)
    columns = {name: trajectory.energy if name == "energy" else trajectory[name] for name in names}
    own = ax is None
    if own:
        ax = figure((8, 4.5)).add_subplot()
    for k, (name, column) in enumerate(columns.items()):
        # more lines than colours differ by their dashes
        ax.plot(trajectory.t, column, color=COLOURS[k % len(COLOURS)], ls=STYLES[k // len(COLOURS) % len(STYLES)],
                lw=1.8, label=drawn(name))
    for k, event in enumerate(trajectory.events):
        ax.axvline(event.t, color="#7F7F7F", lw=0.9, ls=":", label="events" if k == 0 else None)
    units = "" if trajectory._robot is None else ", ".join(dict.fromkeys(
        unit for unit in (_unit(trajectory._robot, name) for name in columns) if unit))
    ax.set(xlabel="t [s]", ylabel=f"[{units}]" if own and units else ax.get_ylabel(), title=drawn(trajectory.robot))
    ax.grid(alpha=0.3)
    if columns:
        # axes given by the user may contain other lines
        place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)} if own else {"loc": "best"}
        ax.legend(frameon=False, **place)
    return ax


def _unit(robot, column):
    """The unit of a column; empty for quaternions, and for rows of constraints, which have several kinds."""
    kind, _, name = column.partition(":")
    power = {"velocity": 1, "acceleration": 2, "force": 3}.get(kind if name else "", 0)
    name = name if power else column
    if name == "energy":
        return "J"
    if name not in robot.velocity_names:
        return ""
    return (("rad", "rad/s", "rad/s²", "N m") if not are_lengths(robot)[robot.velocity_index(name)]
            else ("m", "m/s", "m/s²", "N"))[power]
