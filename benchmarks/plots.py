"""Figures that look alike and are the same file when they show the same numbers."""
from contextlib import contextmanager

from benchmarks.errors import MissingPeer


@contextmanager
def figure(path, columns, width=5.0, height=4.0):
    """A row of axes; written to the file at the end.

    Raises
    ------
    MissingPeer
        matplotlib is not installed.
    """
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise MissingPeer("plots need matplotlib") from None
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "liedyn", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(1, columns, figsize=(width * columns, height), layout="constrained")
    yield axes if columns > 1 else [axes]
    drawing.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(drawing)
