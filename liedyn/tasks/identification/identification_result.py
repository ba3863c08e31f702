"""The result of `identify`: parameters, their uncertainty, residuals, and the robot with these parameters."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

from liedyn.machine.arguments import between
from liedyn.machine.texts import text_table
from liedyn.tasks.identification.base import BaseParameters
from liedyn.tasks.identification.dynamic_parameters import with_parameters
from liedyn.tasks.identification.regression import regressor

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike


@dataclass(frozen=True, repr=False)
class Identification:
    """Parameters fitted to measured motions and forces.

    Attributes
    ----------
    parameters : dict of float
        All parameters by name, as in `dynamic_parameters`: physically consistent, and as near to the prior as the
        measurements allow.
    prior : dict of float
        The robot's own parameters before identification.
    base : BaseParameters
        The combinations that determine the forces; the arrays below have their order.
    estimate : ndarray, shape (b,)
        Base parameters by weighted least squares alone, without the prior and without physical consistency; along
        combinations in `unexcited` those of the prior.
    deviation : ndarray, shape (b,)
        Standard deviations of `estimate`, infinite where the motion does not excite a parameter.
    covariance : ndarray, shape (b, b)
        Covariance of the excited combinations.
    consistent : ndarray, shape (b,)
        Base parameters that belong to `parameters`.
    condition : float
        Condition number of the weighted regressor of the base parameters, with columns scaled to unit length.
    noise : ndarray, shape (p,)
        Standard deviations of the equations, by which they were weighted, averaged over all states [N m, N].
    residual : ndarray, shape (..., p)
        Measured minus predicted forces, with `parameters`; ``K^T tau`` if there are constraints [N m, N].
    equations : tuple of str
        The coordinates to which the equations belong.
    unexcited : tuple of str
        Combinations of base parameters that change no force of this motion by more than the noise.
    degrees : int
        Number of equations minus number of parameters.

    Examples
    --------
    >>> import liedyn as ld
    >>> import numpy as np
    >>> arm, rng = ld.load("scara"), np.random.default_rng(0)
    >>> q, (v, a) = ld.random_configuration(arm, rng, 50), rng.normal(size=(2, 50, arm.nv))
    >>> found = ld.identify(arm, q, v, a, ld.rnea(arm, q, v, a) + rng.normal(size=v.shape), consistent=False)
    >>> found
    Identification(8 base parameters from 200 equations, condition 3.1)
    """

    parameters: dict[str, float]
    prior: dict[str, float]
    base: BaseParameters
    estimate: Array
    deviation: Array
    covariance: Array
    consistent: Array
    condition: float
    noise: Array
    residual: Array
    equations: tuple[str, ...]
    unexcited: tuple[str, ...]
    degrees: int
    _model: tuple = field(repr=False, default=())

    @cached_property
    def robot(self) -> Robot:
        """The robot with these parameters; offsets are no part of a robot and left out.

        Raises
        ------
        ModelError
            The parameters are not physically consistent, which is possible with ``consistent=False``.
        """
        robot, columns, _, width, _ = self._model
        return with_parameters(robot, columns, np.array(list(self.parameters.values())), width)

    def interval(self, level: float = 0.95) -> Array:
        """Half widths of confidence intervals of `estimate`, from Student's distribution.

        Parameters
        ----------
        level : float
            Confidence level.

        Returns
        -------
        ndarray, shape (b,)
            Infinite for parameters that the motion does not excite.

        Raises
        ------
        InputError
            The level is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np, liedyn as ld
        >>> arm, rng = ld.load("ur5"), np.random.default_rng(0)
        >>> q, (v, a) = ld.random_configuration(arm, rng, 50), rng.normal(size=(2, 50, arm.nv))
        >>> found = ld.identify(arm, q, v, a, ld.rnea(arm, q, v, a) + rng.normal(size=v.shape), consistent=False)
        >>> bool((found.interval(0.99) > found.interval(0.95)).all())
        True
        """
        level = between("level", level, 0.0, 1.0)
        return student.ppf((1.0 + level) / 2.0, self.degrees) * self.deviation

    def predict(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Forces of other motions with `parameters`, ``K^T tau`` if there are constraints, including offsets.

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Configuration [rad, m; quaternions (x, y, z, w)].
        v, a : array_like, shape (..., nv)
            Velocity and acceleration.

        Returns
        -------
        forces : ndarray, shape (..., p)
            In the order of `equations` [N m, N].

        Raises
        ------
        InputError
            A shape does not fit, an entry is not finite, or a velocity or acceleration opens loops.
        ClosureError
            A configuration does not close the loops.
        SingularConfigurationError
            The independent coordinates do not determine the motion at a state.

        Examples
        --------
        >>> import numpy as np, liedyn as ld
        >>> arm, rng = ld.load("ur5"), np.random.default_rng(0)
        >>> q, (v, a) = ld.random_configuration(arm, rng, 50), rng.normal(size=(2, 50, arm.nv))
        >>> found = ld.identify(arm, q, v, a, ld.rnea(arm, q, v, a), consistent=False)
        >>> bool(abs(found.predict(q[0], v[0], a[0]) - ld.rnea(arm, q[0], v[0], a[0])).max() < 1e-8)
        True
        """
        robot, _, include, width, known = self._model
        Y = regressor(robot, q, v, a, include, self.equations if robot.row_names else None, width)
        return Y @ np.array(list(self.parameters.values())) + known(q, v, a).reshape(Y.shape[:-1])

    def __repr__(self) -> str:
        missing = f", {len(self.unexcited)} not excited" if self.unexcited else ""
        return (f"Identification({len(self.base)} base parameters from {self.degrees + len(self.base)} equations, "
                f"condition {self.condition:.2g}{missing})")

    def __str__(self) -> str:
        before = self.base.coefficients @ np.array(list(self.prior.values()))
        rows = [["", "prior", "measured", "+- 95 %", "consistent"]]
        for name, *numbers in zip(self.base.names, before, self.estimate, self.interval(), self.consistent):
            rows.append([name, *(f"{x:.4g}" for x in numbers)])
        return text_table(rows, indent="")
