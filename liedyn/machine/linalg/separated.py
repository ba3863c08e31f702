"""A basis of directions that are as easy to name as can be: each has a coordinate that no other has."""
import numpy as np


def separated(motions):
    """The same motions, each with a coordinate of its own where it is 1 and the others are 0."""
    motions = motions.copy()
    free = list(range(len(motions)))
    while free:
        k, j = np.unravel_index(np.abs(motions[free]).argmax(), motions[free].shape)
        k = free.pop(k)
        motions[k] /= motions[k, j]
        others = np.arange(len(motions)) != k
        motions[others] -= np.outer(motions[others, j], motions[k])
    return motions
