"""Transfer of the multipliers of limits from one mesh to another.

The multiplier of a limit along the motion is a density over time. The multiplier of its row at a node is that density
times the weight of the node, the time that it represents; so densities are interpolated at the nodes of another mesh.
Multipliers of equations then follow by least squares (`liedyn.tasks.optimal_motion.interior_point`).
"""
import numpy as np


def densities(program, of_c, of_z):
    """By name of limits along the motion: times relative to the duration, and densities there.

    of_c and of_z are multipliers of the rows of c and of the limits of z; positive at active upper limits.
    """
    found = {}
    for name, places, part, weight in _limits(program):
        values = (of_c if isinstance(name, str) else of_z)[places] / weight
        found[name] = part, values
    return found


def multipliers(program, found):
    """Multipliers of the rows of c and of the limits of z for such densities; zero for names without densities."""
    of_c, of_z = np.zeros(len(program.labels)), np.zeros(len(program.scale))
    for name, places, part, weight in _limits(program):
        if name in found:
            (of_c if isinstance(name, str) else of_z)[places] = weight * np.interp(part, *found[name])
    return of_c, of_z


def _limits(program):
    """For each limit: its name (a pair for unknowns), indices of its multipliers, relative times, weights."""
    t = program.transcription
    layout = t.layout
    weights = _weights(t)
    rows = {}
    for row in np.flatnonzero(program.c_low < program.c_high):
        rows.setdefault(program.labels[row][0], []).append(row)
    for name, places in rows.items():
        part = np.array([program.labels[row][1] for row in places])
        order = np.argsort(part)
        part, places = part[order], np.array(places)[order]
        at_nodes = weights[np.minimum(np.searchsorted(t.part, part), len(weights) - 1)]
        yield name, places, part, at_nodes if len(part) > 1 else np.ones(1)
    of_nodes, of_inputs = layout.of_node(np.arange(layout.nodes)), layout.of_input(np.arange(layout.inputs))
    held = np.diff(t.mesh) if layout.inputs < layout.nodes else weights
    for kind, columns, weight in ("state", of_nodes, weights), ("input", of_inputs, held):
        for j, places in enumerate(columns.T):
            yield (kind, j), places, t.part[:len(places)], weight
    yield ("duration", 0), np.array([layout.size - 1]), np.ones(1), np.ones(1)


def _weights(t):
    """Lengths of time, relative to the duration, that nodes represent."""
    lengths = np.diff(t.part, prepend=0.0, append=1.0)
    return 0.5 * (lengths[1:] + lengths[:-1])
