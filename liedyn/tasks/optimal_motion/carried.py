"""Multipliers of limits, from one mesh to another.

What a limit along the motion pushes with is a density over time. The multiplier of its row at a node is that density
times the weight of the node, the time for which it stands; so densities are what is read at other nodes. Multipliers of
equations follow from those of limits, by least squares (`liedyn.tasks.optimal_motion.interior_point`).
"""
import numpy as np


def densities(program, of_c, of_z):
    """By name of limits along the motion: times as parts of the duration, and densities there.

    of_c and of_z are multipliers of the rows of c and of the limits of z. Positive ones push down from upper limits.
    """
    found = {}
    for name, places, part, weight in _limits(program):
        values = (of_c if isinstance(name, str) else of_z)[places] / weight
        found[name] = part, values
    return found


def multipliers(program, found):
    """Multipliers of the rows of c and of the limits of z for such densities; zero where there are none."""
    of_c, of_z = np.zeros(len(program.labels)), np.zeros(len(program.scale))
    for name, places, part, weight in _limits(program):
        if name in found:
            (of_c if isinstance(name, str) else of_z)[places] = weight * np.interp(part, *found[name])
    return of_c, of_z


def _limits(program):
    """Of each limit: its name (of unknowns a pair), the places of its multipliers, parts of the duration, weights."""
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
    """Times, as parts of the duration, that nodes stand for."""
    lengths = np.diff(t.part, prepend=0.0, append=1.0)
    return 0.5 * (lengths[1:] + lengths[:-1])
