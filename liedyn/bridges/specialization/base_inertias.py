"""Base inertial parameters: the same dynamics with fewer numbers (Gautier and Khalil 1990).

A line of mass along the axis of a revolute joint does not feel the joint turn, and may as well be fixed to the parent.
So mass, first moment along z and one of the rotational inertias of every revolute link go to its parent, and are zero
in the link: they cost nothing in a program without zeros. A prismatic joint does not turn its link, and hands all of
its rotational inertia on.
"""
import numpy as np

from liedyn.model.packed import (
    LINK_END, LINK_INERTIA, LINK_MASS, LINK_MOMENT, LINK_PARENT, LINK_PITCH, LINK_PRIMITIVE, LINK_SPREAD, PRISMATIC,
    REVOLUTE, links_of, spread,
)

_TRIANGLE = np.triu_indices(3)


def base_parameters(model):
    """The numbers of an equivalent model; generalised forces of the tree stay the same, wrenches in joints do not.

    Parameters
    ----------
    model : PackedModel

    Returns
    -------
    PackedModel
        With inertias moved towards the ground, and placements rid of what rounding leaves of the cosine of
        a right angle.
    """
    model = model._replace(floats=model.floats.copy())
    numbers_of_links, links = links_of(model)
    rotations = links[:, :9]
    rotations[np.abs(rotations) < np.finfo(np.float64).eps] = 0.0
    for i in reversed(range(len(links))):
        numbers = numbers_of_links[i]
        if numbers[LINK_PRIMITIVE] in (REVOLUTE, PRISMATIC):
            moved = np.zeros(10)  # mass, first moment, rotational inertia
            own = links[i, LINK_MASS:LINK_PITCH]
            if numbers[LINK_PRIMITIVE] == REVOLUTE:
                moved[0], moved[3], moved[4], moved[7] = own[0], own[3], own[7], own[7]
            else:
                moved[4:] = own[4:]
            own -= moved
            if numbers[LINK_PARENT] >= 0:
                _add_in_parent(links[i], moved, links[numbers[LINK_PARENT]])
    links[:, LINK_SPREAD:LINK_END] = spread(links[:, LINK_INERTIA:LINK_PITCH])
    return model


def _add_in_parent(link, inertia, parent):
    """Add an inertia (m, h, J) of a link, as it is at q = 0, to that of its parent."""
    R, p = link[:9].reshape(3, 3), link[9:12]
    m, h, J = inertia[0], R @ inertia[1:4], np.zeros((3, 3))
    J[_TRIANGLE] = inertia[4:]
    J = R @ (J + np.triu(J, 1).T) @ R.T
    # parallel axes: J - [p][h] - [h][p] - m [p][p], with -[a][b] = a.b 1 - b a^T
    J += 2 * (p @ h) * np.eye(3) - np.outer(h, p) - np.outer(p, h) + m * (p @ p * np.eye(3) - np.outer(p, p))
    parent[LINK_MASS] += m
    parent[LINK_MOMENT:LINK_INERTIA] += h + m * p
    parent[LINK_INERTIA:LINK_PITCH] += J[_TRIANGLE]
