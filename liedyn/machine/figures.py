"""Empty matplotlib figures, and colours for curves."""
from liedyn.machine.errors import LiedynError

# Okabe and Ito's colours, which colour-blind readers distinguish, also in print; black is for the ground
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D1F", "#6A51A3", "#7F7F7F",
            "#B8B000")


def figure(size, shown=True):
    """An empty figure: one of pyplot, which ``plt.show()`` and notebooks display, or with ``shown=False`` for files."""
    try:
        from matplotlib import pyplot
        from matplotlib.figure import Figure
    except ImportError:
        raise LiedynError("plotting needs matplotlib: pip install 'liedyn[plot]'") from None
    return (pyplot.figure if shown else Figure)(figsize=size, layout="constrained")
