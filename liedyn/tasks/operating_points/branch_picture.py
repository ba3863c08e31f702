"""Pictures of branches of equilibria, with matplotlib (``pip install 'liedyn[plot]'``)."""
import numpy as np

from liedyn.machine.figures import COLOURS, figure
from liedyn.machine.texts import drawn

MARKS = {"turning point": "o", "branch point": "s", "hopf": "D", "flutter": "^", "divergence": "v"}
STABLE = 1e-9
"""Real parts below this part of the largest eigenvalue are not unstable: rounding on the imaginary axis."""


def plot(branch, name, ax):
    """`Branch.plot`."""
    name = moving_most(branch) if name is None else name
    y, x = branch[name], branch.parameter
    ax = figure((7.0, 4.5)).add_subplot() if ax is None else ax
    size = np.abs(branch.eigenvalues).max(initial=0.0)
    unstable = branch.eigenvalues.real.max(axis=1, initial=-np.inf) > STABLE * size
    for flag, style, label in ((False, "-", "stable"), (True, "--", "unstable")):
        shown = np.ma.masked_array(y, ~_with_neighbours(unstable == flag) if flag else unstable)
        if (unstable == flag).any():
            ax.plot(x, shown, style, color=COLOURS[int(flag)], lw=1.8, label=label)
    if name == "growth":
        ax.axhline(0.0, color="#7F7F7F", lw=0.9, ls=":")
    _mark(branch, name, x, y, ax)
    ax.set(xlabel=drawn(branch.name), ylabel="largest real part of the eigenvalues [1/s]" if name == "growth" else
           drawn(name))
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    return ax


def moving_most(branch):
    """The coordinate that changes most along the branch, other than the parameter."""
    names = [name for name in branch.coordinate_names if name != branch.name]
    if not names or not max(np.ptp(branch[name]) for name in names) > 0.0:
        return "growth"
    return max(names, key=lambda name: np.ptp(branch[name]))


def _with_neighbours(mask):
    """A mask grown by one on both sides, so that the two lines meet."""
    grown = mask.copy()
    grown[1:] |= mask[:-1]
    grown[:-1] |= mask[1:]
    return grown


def _mark(branch, name, x, y, ax):
    """Special points; of what they do not say themselves the value between neighbouring points of the branch."""
    named = set()
    for each in branch.special:
        columns = branch._columns(each)
        k = int(np.abs(x - each.parameter).argmin())
        at = columns[name] if name in columns else y[k]
        ax.plot(each.parameter, at, MARKS.get(each.kind, "o"), color="black", ms=7, zorder=3, mfc="white",
                label=None if each.kind in named else each.kind)
        named.add(each.kind)
