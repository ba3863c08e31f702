"""The result of `sensitivities`."""
from dataclasses import dataclass

import numpy as np

from liedyn.linear.state_space import LocalStateSpace
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.machine.texts import printable


@dataclass(frozen=True, repr=False, eq=False)
class Sensitivity:
    """Derivatives of accelerations, multipliers and a linear model by parameters, which the last axis numbers.

    Attributes
    ----------
    parameters : tuple of str
    a : ndarray, shape (..., nv, np)
        Of the accelerations [rad/s^2, m/s^2 per unit of the parameter].
    lam : ndarray, shape (..., m, np)
        Of the multipliers; of redundant rows, of the smallest ones.
    A : ndarray, shape (..., x, x, np)
    B : ndarray, shape (..., x, nu, np)
    C : ndarray, shape (..., ny, x, np)
    D : ndarray, shape (..., ny, nu, np)
    f0 : ndarray, shape (..., x, np)
        Of A, B, C, D and f0 of the linear model.
    q, v : ndarray, shape (..., nv, np)
        How the dependent coordinates, tangent at q, and the dependent velocities follow.
    model : LocalStateSpace
        The linear model at the parameters that the robot has.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> s = ld.sensitivities(arm, arm.home, [0.0] * 4, [0.0] * 4, parameters=["mass:link1", "mass:link2"])
    >>> s.A[..., s.index("mass:link2")].shape
    (4, 4)
    """

    parameters: tuple
    a: np.ndarray
    lam: np.ndarray
    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    f0: np.ndarray
    q: np.ndarray
    v: np.ndarray
    model: LocalStateSpace

    def __repr__(self):
        lead = f"batch {self.a.shape[:-2]}, " if self.a.ndim > 2 else ""
        return f"Sensitivity({lead}{len(self.parameters)} parameters, states {printable(', '.join(self.model.states))})"

    def index(self, parameter):
        """Number of a parameter.

        Parameters
        ----------
        parameter : str

        Returns
        -------
        k : int
            Its place along the last axis.

        Raises
        ------
        InputError
            It is not among them.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> ld.sensitivities(arm, arm.home, [0.0] * 4, [0.0] * 4, parameters="mass:*").index("mass:link2")
        1
        """
        if not isinstance(parameter, str) or parameter not in self.parameters:
            raise InputError(f"derivatives by {shown(parameter)} were not asked for, "
                             f"{suggestion(parameter, self.parameters)}")
        return self.parameters.index(parameter)

    def eigenvalues(self):
        """Derivatives of the eigenvalues of A.

        Returns
        -------
        derivatives : ndarray of complex, shape (..., x, np)
            In the order of ``model.eigenvalues()``. Of an eigenvalue that is repeated without as many eigenvectors, as
            zero of a free rigid motion is, there is no derivative: the numbers are then infinite, NaN, or very large.

        Notes
        -----
        w^H A_p v / w^H v with the right and left eigenvectors v, w (Lancaster 1964).

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> s = ld.sensitivities(arm, arm.home, [0.0] * 4, [0.0] * 4, parameters="mass:*")
        >>> s.eigenvalues().shape
        (4, 4)
        """
        values, V = np.linalg.eig(self.model.A)
        order = np.lexsort((values.imag, values.real), axis=-1)
        V = np.take_along_axis(V, order[..., None, :], axis=-1)
        with np.errstate(all="ignore"):
            W = np.linalg.inv(V)
        return np.einsum("...ki,...ijp,...jk->...kp", W, self.A, V)
