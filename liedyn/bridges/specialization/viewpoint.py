"""Poses seen from a link instead of from the world: spatial equations hold in any frame, and there more is constant.

The recursions that work in world coordinates use nothing of the world but the links' poses and gravity. Seen from a
link near the ground, its own screw and inertia are constants, and those of its neighbours depend on one angle only.
"""
from liedyn.lie.algebra import compose, rotate
from liedyn.lie.exponential import inverse
from liedyn.mechanics.tree.joints import joint_pose, screw_of_kind_at
from liedyn.mechanics.tree.kinematics import POSE, S, of_dof, of_link, world_positions
from liedyn.mechanics.tree.poses import put_world_pose
from liedyn.model.packed import N_LINKS
from liedyn.model.packed_records import dof_count, first_dof, kind, minus_gravity, parent, put6, zero3

_HERE = ((1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
GROUND = -1


class Viewpoint:
    """What a tracer takes in place of `world_positions` and `minus_gravity`.

    Parameters
    ----------
    link : int
        From which everything is seen.
    plain : callable
        Makes plain Python of a compiled function, as `Tracer.plain`.
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
