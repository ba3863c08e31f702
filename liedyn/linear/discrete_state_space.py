"""The linear model of one step of an integrator: what `liedyn.discretize` returns."""
# mypy: ignore-errors

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.errors import InputError, shown

if TYPE_CHECKING:
    from typing import Any

    from liedyn.typing import Array, Complexes

ARRAYS = "A", "B", "q", "v", "tau", "q_next", "v_next"
"""The arrays of a `DiscreteStateSpace` with a row for each state."""


@dataclass(frozen=True)
class DiscreteStateSpace:
    """x[k+1] - x1 = A (x[k] - x0) + B (u[k] - u0): one step of an integrator linearized, inputs constant in the step.

    For a batch the arrays have its leading axes, and ``models[i]`` is one of the models.

    Attributes
    ----------
    A, B : ndarray, shapes (..., x, x) and (..., x, nu)
    h : float
        The step [s].
    states, inputs : tuple of str
        Names as in `LocalStateSpace`.
    q, v, tau : ndarray
        The operating point where the step begins, and the forces, constant during the step.
    q_next, v_next : ndarray
        State at the end of the step.
    """

    A: Array
    B: Array
    h: float
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    q: Array
    v: Array
    tau: Array
    q_next: Array
    v_next: Array

    def eigenvalues(self) -> Complexes:
        """Eigenvalues of A; perturbations decay if all are inside the unit circle.

        Returns
        -------
        eigenvalues : ndarray of complex, shape (..., x)
            Sorted by real part, then imaginary part.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> len(ld.discretize(arm, arm.home, [0.0] * 4, [0.0] * 4, 1e-3).eigenvalues())
        4
        """
        return np.sort_complex(np.linalg.eigvals(self.A))

    def __getitem__(self, index: Any) -> DiscreteStateSpace:
        """One model of a batch, or several, by their leading axes."""
        lead = self.A.shape[:-2]
        if not lead:
            raise InputError("this is one model, not a batch")
        try:
            chosen = np.arange(math.prod(lead)).reshape(lead)[index]
        except (IndexError, TypeError, ValueError) as error:
            raise InputError(f"no model {shown(index)}: there are models of shape {lead}") from error
        return replace(self, **{name: getattr(self, name).reshape(-1, *getattr(self, name).shape[len(lead):])[chosen]
                                for name in ARRAYS})
