"""Pictures of branches of equilibria, with matplotlib (``pip install 'liedyn[plot]'``)."""
import numpy as np

from liedyn.machine.figures import COLOURS, figure
from liedyn.machine.texts import drawn

MARKS = {"turning point": "o", "branch point": "s", "hopf": "D", "flutter": "^", "divergence": "v"}
STILL = 1e-9
"""Smallest change of a coordinate that is more than rounding [rad, m]."""
STABLE = 1e-9
"""Real parts below this part of the largest eigenvalue are not unstable: rounding on the imaginary axis."""


def plot(branch, name, ax):
    """`Branch.plot`."""
    name = moving_most(branch) if name is None else name
    ax = figure((7.0, 4.5)).add_subplot() if ax is None else ax
    named = set(ax.get_legend_handles_labels()[1])
    special = [(each.parameter, _at(branch, each, name, k)) for each, k in zip(branch.special, branch.before)]
    for x, y, unstable in _parts(branch, branch[name], special):
        label = "unstable" if unstable else "stable"
        ax.plot(x, y, "--" if unstable else "-", color=COLOURS[5 if unstable else 0], lw=1.8,
                label=None if label in named else label)
        named.add(label)
    if name == "growth":
        ax.axhline(0.0, color="#7F7F7F", lw=0.9, ls=":")
    for each, at in zip(branch.special, special):
        ax.plot(*at, MARKS.get(each.kind, "o"), color="black", ms=7, zorder=3, mfc="white", ls="",
                label=None if each.kind in named else each.kind)
        named.add(each.kind)
    ax.set(xlabel=drawn(branch.name), ylabel="largest real part of the eigenvalues [1/s]" if name == "growth" else
           drawn(name))
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    return ax


def moving_most(branch):
    """The coordinate that changes most along the branch, other than the parameter; "growth" if none does."""
    names = [name for name in branch.coordinate_names if name != branch.name]
    most = max(names, key=lambda name: np.ptp(branch[name]), default="growth")
    return most if most in names and np.ptp(branch[most]) > STILL else "growth"


def _at(branch, each, name, k):
    """What a column is at a special point: its own, or between those of the points around it.

    Where stability is lost or gained the largest real part is zero, with a kink.
    """
    own, last = branch._columns(each), min(k + 1, len(branch) - 1)
    if name in own:
        return own[name]
    if name == "growth" and min(each.unstable) == 0 < max(each.unstable):
        return 0.0
    (x, x_next), (y, y_next) = ((column[k], column[last]) for column in (branch.parameter, branch[name]))
    share = (each.parameter - x) / (x_next - x) if x_next != x else 0.0
    return y + min(max(share, 0.0), 1.0) * (y_next - y)


def _parts(branch, y, special):
    """Pieces of the curve between special points: x, y, and whether they are unstable."""
    x = branch.parameter
    size = np.abs(branch.eigenvalues).max(initial=0.0)
    unstable = branch.eigenvalues.real.max(axis=1, initial=-np.inf) > STABLE * size
    ends = [(0, None), *((k + 1, at) for k, at in zip(branch.before, special)), (len(x), None)]
    for (first, left), (last, right) in zip(ends, ends[1:]):
        if last > first:
            points = [left] * (left is not None), list(zip(x[first:last], y[first:last])), [right] * (right is not None)
            yield *np.transpose([at for each in points for at in each]), bool(unstable[first:last].mean() > 0.5)
