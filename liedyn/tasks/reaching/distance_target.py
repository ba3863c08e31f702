"""Distances between shapes as a target, for inverse kinematics, plans and optimal motions."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import flag, number
from liedyn.mechanics.contact.distances import distances
from liedyn.tasks.reaching.targets import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class DistanceTarget(Target):
    """Pairs of shapes that keep a distance from each other.

    For `inverse_kinematics` it is reached where no pair is nearer than `at_least`; farther pairs have no effect. As a
    limit of `ddp`, ``Limits(targets=[(DistanceTarget(pairs, one_sided=False), 0.02, numpy.inf)])``, its rows are the
    distances themselves. For `optimize_motion` there is `separation`.

    Attributes
    ----------
    pairs : sequence of (str, str), optional
        As for `distances`.
    at_least : float
        [m]
    one_sided : bool
        If False, the error is the distance minus `at_least`, of either sign.
    weight, priority, tolerance, name
        As for `Target`; weights [1/m], one or one for each pair of shapes.

    Notes
    -----
    The distances are exact, and so are their derivatives; at a kink, as where two faces are parallel, one of the
    one-sided ones is taken.

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder.of(ld.load("panda"))
    >>> b.shape("fist", "panda_hand", "sphere", size=0.1, role="collision")
    >>> b.shape("post", "ground", "cylinder", (0.5, 0.0, 0.5), size=(0.05, 1.0), role="collision")
    >>> panda = b.build()
    >>> there = ld.PointTarget("panda_hand", (0.45, 0.0, 0.5), weight=0.1, priority=1)
    >>> found = ld.inverse_kinematics(panda, [ld.DistanceTarget(at_least=0.02), there])
    >>> bool(ld.distances(panda, found.q).distance[0] > 0.02 - 1e-5)
    True
    """

    pairs: Sequence[tuple[str, str]] | None = None
    at_least: float = 0.0
    one_sided: bool = True
    weight: ArrayLike = 1.0
    priority: int = 0
    tolerance: float | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        number("at_least", self.at_least)
        flag("one_sided", self.one_sided)

    @property
    def parts(self) -> tuple[()]:
        return ()

    def error(self, robot: Robot, q: ArrayLike) -> Array:
        """Distances minus `at_least`; zero for pairs that are farther, if it is one-sided.

        Parameters
        ----------
        robot : Robot
        q : array_like, shape (..., nq)

        Returns
        -------
        error : ndarray, shape (..., pairs)
            [m]

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("panda"))
        >>> b.shape("fist", "panda_hand", "sphere", size=0.1, role="collision")
        >>> b.shape("floor", "ground", "plane", role="collision")
        >>> panda = b.build()
        >>> ld.DistanceTarget(at_least=0.1).error(panda, panda.home).tolist()
        [0.0]
        """
        d = distances(robot, q, self.pairs).distance - self.at_least
        return np.minimum(d, 0.0) if self.one_sided else d

    def jacobian(self, robot: Robot, q: ArrayLike) -> Array:
        """Derivatives of the error along the velocity coordinates.

        Parameters
        ----------
        robot : Robot
        q : array_like, shape (..., nq)

        Returns
        -------
        jacobian : ndarray, shape (..., pairs, nv)

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("panda"))
        >>> b.shape("fist", "panda_hand", "sphere", size=0.1, role="collision")
        >>> b.shape("floor", "ground", "plane", role="collision")
        >>> panda = b.build()
        >>> ld.DistanceTarget(at_least=2.0).jacobian(panda, panda.home).shape
        (1, 7)
        """
        found = distances(robot, q, self.pairs)
        if not self.one_sided:
            return found.jacobian
        return np.where((found.distance < self.at_least)[..., None], found.jacobian, 0.0)
