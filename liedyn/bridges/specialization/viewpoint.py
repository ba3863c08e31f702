"""Poses seen from a link instead of from the world: spatial equations hold in any frame, and there more is constant.

The recursions in world coordinates use only the links' poses and gravity. Seen from a link near the ground, its own
screw and inertia are constants, and those of its neighbours depend on one angle only.

Base inertial parameters: the same dynamics with fewer numbers (Gautier and Khalil 1990).

A rotation about a revolute joint does not change the inertia of a line of mass along its axis, which may as well be
fixed to the parent. So mass, first moment along z and one of the rotational inertias of every revolute link are moved
to its parent, and are zero in the link: zeros cost nothing in a straight-line program. A prismatic joint does not
rotate its link, so that all of its rotational inertia is moved.
"""
import numpy as np

from liedyn.lie.algebra import compose, rotate
from liedyn.lie.exponential import inverse
from liedyn.mechanics.tree.joints import joint_pose, screw_of_kind_at
from liedyn.mechanics.tree.kinematics import POSE, S, of_dof, of_link, world_positions
from liedyn.mechanics.tree.poses import put_world_pose
from liedyn.model.packed import (
    LINK_END, LINK_INERTIA, LINK_MASS, LINK_MOMENT, LINK_PARENT, LINK_PITCH, LINK_PRIMITIVE, LINK_SPREAD, N_LINKS,
    PRISMATIC, REVOLUTE, links_of, spread,
)
from liedyn.model.packed_records import dof_count, first_dof, kind, minus_gravity, parent, put6, zero3

_TRIANGLE = np.triu_indices(3)


def base_parameters(model):
    """The numbers of an equivalent model; generalised forces of the tree stay the same, wrenches in joints do not.

    Parameters
    ----------
    model : PackedModel

    Returns
    -------
    PackedModel
        With inertias moved towards the ground, and placements without the rounding error of the cosine of
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
    """Adds an inertia (m, h, J) of a link, in its pose at q = 0, to that of its parent."""
    R, p = link[:9].reshape(3, 3), link[9:12]
    m, h, J = inertia[0], R @ inertia[1:4], np.zeros((3, 3))
    J[_TRIANGLE] = inertia[4:]
    J = R @ (J + np.triu(J, 1).T) @ R.T
    # parallel axes: J - [p][h] - [h][p] - m [p][p], with -[a][b] = a.b 1 - b a^T
    J += 2 * (p @ h) * np.eye(3) - np.outer(h, p) - np.outer(p, h) + m * (p @ p * np.eye(3) - np.outer(p, p))
    parent[LINK_MASS] += m
    parent[LINK_MOMENT:LINK_INERTIA] += h + m * p
    parent[LINK_INERTIA:LINK_PITCH] += J[_TRIANGLE]


_HERE = ((1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
GROUND = -1


class Viewpoint:
    """Replacements of `world_positions` and `minus_gravity` for a tracer.

    Parameters
    ----------
    link : int
        Link from which everything is seen.
    plain : callable
        Returns the plain Python of a compiled function, as `Tracer.plain`.
    """

    def __init__(self, link, plain):
        self._link, self._plain, self._poses = link, plain, {}

    def instead(self):
        """The replacements, for a `Tracer`."""
        return {world_positions: self._positions, minus_gravity: self._minus_gravity}

    def _positions(self, lane, model, q, work):
        """Poses of all links and the screws S_j, as `world_positions`."""
        plain, links = self._plain, range(model.ints[N_LINKS])
        local = [plain(joint_pose)(lane, model, i, q) for i in links]
        parents = [plain(parent)(model, i) for i in links]
        poses = self._poses = {self._link: _HERE}
        i = self._link
        while i != GROUND:
            poses[parents[i]] = plain(compose)(poses[i], plain(inverse)(local[i]))
            i = parents[i]
        for i in links:
            if i not in poses:
                poses[i] = plain(compose)(poses[parents[i]], local[i])
            plain(put_world_pose)(lane, work, plain(of_link)(i, POSE), poses[i])
            for d in range(plain(dof_count)(model, i)):
                screw = plain(screw_of_kind_at)(lane, plain(kind)(model, i), model, i, poses[i], d)
                plain(put6)(lane, work, plain(of_dof)(model, plain(first_dof)(model, i) + d, S), screw)

    def _minus_gravity(self, lane, model):
        """The acceleration (0, -g) of the ground: gravity is given in the ground's own axes."""
        up = tuple(-float(model.floats[k]) for k in range(3))
        return self._plain(zero3)(lane), self._plain(rotate)(self._poses[GROUND][0], up)
