"""Plots of trajectories over time, with matplotlib (``pip install 'liedyn[plot]'``)."""
from liedyn.machine.arguments import names as names_of
from liedyn.machine.figures import COLOURS, figure
from liedyn.machine.texts import drawn

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
    ax.set(xlabel="t [s]", title=drawn(trajectory.robot))
    ax.grid(alpha=0.3)
    if columns:
        # axes given by the user may contain other lines
        place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)} if own else {"loc": "best"}
        ax.legend(frameon=False, **place)
    return ax
