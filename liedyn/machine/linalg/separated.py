"""A basis of motions in reduced row echelon form, so that each can be named by a coordinate."""
import numpy as np


def separated(motions):
    """The same space of motions, in a basis where each has a coordinate that is 1 there and 0 in the others."""
    motions = motions.copy()
    free = list(range(len(motions)))
    while free:
        k, j = np.unravel_index(np.abs(motions[free]).argmax(), motions[free].shape)
        k = free.pop(k)
        motions[k] /= motions[k, j]
        others = np.arange(len(motions)) != k
        motions[others] -= np.outer(motions[others, j], motions[k])
    return motions
