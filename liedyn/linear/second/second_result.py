"""Second derivatives as `liedyn.linearize` returns them."""
# mypy: ignore-errors

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from liedyn.machine.errors import InputError
from liedyn.model.remembered import LazyResult

if TYPE_CHECKING:
    from typing import Any

    from liedyn.typing import Array


PARTS = "f", "a", "lam", "q"
"""What has second derivatives."""


@dataclass(frozen=True)
class SecondDerivatives(LazyResult):
    """Second derivatives of a mechanism's motion by the states x = (y, w) and the inputs u of a `LocalStateSpace`.

    The columns j and k are those of A, then those of B. Whole tensors are ``[i, j, k]``, those with weights are the
    Hessians ``[j, k]`` of the weighted sums. All are symmetric in j and k, and zero where both are inputs. What was not
    asked for with weights is computed when it is first read.

    Attributes
    ----------
    f : ndarray, shape (..., x, x + nu, x + nu), with weights (..., x + nu, x + nu)
        Of the rates of the state, ydot and wdot. Those of a ball or free joint are rates of its displacement d from a
        state that moves on with its velocity v0, as in A: v + [d, v0] + [d, v - v0] / 2 to second order.
    a : ndarray, shape (..., nv, x + nu, x + nu), with weights (..., x + nu, x + nu)
        Of all accelerations.
    lam : ndarray, shape (..., m, x + nu, x + nu), with weights (..., x + nu, x + nu)
        Of the multipliers, the smallest ones if rows are redundant.
    q : ndarray, shape (..., nv, x + nu, x + nu), with weights (..., x + nu, x + nu)
        Of the displacements of all coordinates, in the exponential's chart at q.
    """

    f: Array
    a: Array
    lam: Array
    q: Array

    def __getstate__(self) -> dict[str, Any]:
        """All parts, but for those that are not known."""
        found = {}
        for name in PARTS:
            with contextlib.suppress(InputError):
                found[name] = getattr(self, name)
        return found


def at_models(second, lead, chosen):
    """The `SecondDerivatives` of the models with the numbers `chosen` of a batch with leading axes `lead`."""
    return SecondDerivatives.of({"_later": (_at, second, lead, chosen)})


def _at(name, found, whole, lead, chosen):
    value = getattr(whole, name)
    return {name: value.reshape(math.prod(lead), *value.shape[len(lead):])[chosen]}
