"""Which states of a linear model a regulator or filter is made for: those that are named, and what they depend on.

A wheeled robot rolls on for ever: where it is decays by no feedback of its lean. What is left out must not act on what
is kept, A[kept, left] = 0, C[:, left] = 0; otherwise the error says what does. States that are asked for are left out
as well if no input reaches them (of a filter: if they reach no output), they do not decay by themselves, and they do
not act on the others.
"""
# mypy: ignore-errors
from dataclasses import dataclass, field, replace

import numpy as np

from liedyn.machine.arguments import names as names_of
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.machine.texts import printable
from liedyn.motion.partial_deviation import PartialDeviation

NOT_ASKED = "not asked for"
ZERO_IN_ROW, ZERO = 1e-10, 1e-11
"""Entries of A that are zero: parts of the largest one of the row, and of the largest one of all."""


@dataclass(frozen=True)
class KeptStates:
    """The states that are kept.

    Attributes
    ----------
    states : tuple of str
    index : ndarray of int, or None
        Their numbers in the whole model; None for all.
    left_out : dict
        Why the others are left out, by name.
    """

    states: tuple
    index: object = None
    left_out: dict = field(default_factory=dict)

    def deviation(self, whole):
        """The deviation of these states."""
        return whole if self.index is None else PartialDeviation.of(whole, self.index)

    def model(self, whole):
        """The `LocalStateSpace` or `DiscreteStateSpace` of these states."""
        if self.index is None:
            return whole
        k, names = self.index, np.array(whole.states, dtype=object)
        parts = {"A": whole.A[..., k[:, None], k], "B": whole.B[..., k, :], "states": tuple(names[k])}
        if hasattr(whole, "C"):
            p = whole.K.shape[-1]
            left = np.setdiff1d(np.arange(len(names)), k)
            seen = ~_together(reached(whole.C))[:, left].any(axis=1)
            parts |= {"C": whole.C[..., seen, :][..., k], "D": whole.D[..., seen, :], "f0": whole.f0[..., k],
                      "K": whole.K[..., k[k < p]], "S": whole.S[..., k[k >= p] - p],
                      "outputs": tuple(np.array(whole.outputs, dtype=object)[seen])}
        found = replace(whole, **parts)
        if hasattr(whole, "C"):
            object.__setattr__(found, "_robot", vars(whole).get("_robot"))
        return found

    def acting(self, M, rows):
        """The columns of M (rows, x) that belong to states that are kept.

        Raises InputError if a state that is left out acts on one of these rows, which have these names.
        """
        if self.index is None:
            return M
        left = np.setdiff1d(np.arange(M.shape[1]), self.index)
        acts = reached(M)[:, left]
        if acts.any():
            i, k = max(np.argwhere(acts), key=lambda at: abs(M[at[0], left[at[1]]]))
            raise InputError(f"states: {list(self.left_out)[k]} is left out, but {rows[i]} depends on it here, by "
                             f"{abs(M[i, left[k]]):.3g}; name it too")
        return M[:, self.index]

    def refuse(self, name, weights):
        """InputError if a weight is given to a state that is left out."""
        for each in weights if isinstance(weights, dict) else ():
            if each in self.left_out:
                raise InputError(f"{name}: {shown(each)} is left out: {self.left_out[each]}")


def without(left_out):
    """What the `repr` of a result says of states that are left out."""
    return f", without {printable(', '.join(left_out))}" if left_out else ""


def regulated(models, asked, positions):
    """The states of a regulator for these `models` (one or a batch), `positions` of which are coordinates."""
    return _kept(models, asked, positions, reached(models.B), None, "no actuator drives it")


def estimated(model, asked, positions):
    """The states of a filter for this model."""
    return _kept(model, asked, positions, None, reached(model.C), "no output sees it")


def followed(model, asked, positions):
    """The states of a filter that follows a motion from here: all that are asked for, with their rates."""
    kept, _ = _asked(model, asked, positions)
    return _found(model.states, kept, dict.fromkeys(np.array(model.states, dtype=object)[~kept], NOT_ASKED))


def reached(M):
    """The entries of M (..., rows, columns) that are not zero up to rounding."""
    size = np.abs(M)
    return size > np.maximum(ZERO_IN_ROW * size.max(axis=-1, keepdims=True, initial=0.0),
                             ZERO * size.max(axis=(-2, -1), keepdims=True, initial=0.0))


def _together(M):
    """One matrix of those of a batch: true where any is."""
    return M.reshape(-1, *M.shape[-2:]).any(axis=0)


def _kept(models, asked, positions, inputs, outputs, reason):
    states = models.states
    if asked is None:
        return KeptStates(states)
    kept, acts = _asked(models, asked, positions)
    if outputs is not None and _together(outputs)[:, ~kept].any():
        row, k = np.argwhere(_together(outputs) & ~kept)[0]
        raise InputError(f"the output {models.outputs[row]} depends on {states[k]}, which is left out: name it in "
                         "states")
    touched = _together(inputs).any(axis=1) if outputs is None else _together(outputs).any(axis=0)
    idle = kept & ~_spread(touched, acts if outputs is None else acts.T)
    while (acts[kept & ~idle][:, idle]).any():  # what acts on the others stays
        idle &= ~acts[kept & ~idle].any(axis=0)
    slowest = np.linalg.eigvals(models.A[..., idle, :][..., idle]).real.max(initial=-np.inf)
    if slowest < -ZERO * np.abs(models.A).max(initial=0.0):
        idle[:] = False  # they decay by themselves
    kept &= ~idle
    if not kept.any():
        raise InputError(f"states: nothing is left of {', '.join(asked)}: {reason.replace('it', 'them')}")
    return _found(states, kept, {name: reason if idle[k] else NOT_ASKED
                                 for k, name in enumerate(states) if not kept[k]})


def _asked(models, asked, positions):
    """Which states are asked for, with their rates, and which act on which."""
    states = models.states
    kept, acts = np.zeros(len(states), dtype=bool), _together(reached(models.A))
    for name in names_of("states", asked):
        if name not in states:
            raise InputError(f"states: unknown {shown(name)}, {suggestion(shown(name), states)}")
        kept[states.index(name)] = True
    if not kept.any():
        raise InputError("states: name at least one")
    rates = np.arange(len(states)) >= positions
    kept |= rates & acts[:positions][kept[:positions]].any(axis=0)  # the rates of coordinates go with them
    _require_apart(states, acts, kept, models.A)
    return kept, acts


def _found(states, kept, left_out):
    index = np.flatnonzero(kept)
    return KeptStates(tuple(states[k] for k in index), index if left_out else None, left_out)


def _spread(start, acts):
    """All states that are reached from those of `start` through entries of A."""
    found = start.copy()
    while True:
        more = found | acts[:, found].any(axis=1)
        if (more == found).all():
            return found
        found = more


def _require_apart(states, acts, kept, A):
    """InputError if a state that is left out acts on one that is kept."""
    if not acts[kept][:, ~kept].any():
        return
    sizes = np.abs(A).reshape(-1, *A.shape[-2:]).max(axis=0)
    i, k = max(np.argwhere(acts & kept[:, None] & ~kept), key=lambda at: sizes[tuple(at)])
    missing = [states[j] for j in np.flatnonzero(_spread(kept, acts.T) & ~kept)]
    named = [name for name in missing if name.removeprefix("velocity:") not in set(missing) - {name}]
    raise InputError(f"states: {states[k]} is left out, but d/dt {states[i]} depends on it, by {sizes[i, k]:.3g}; "
                     f"name {', '.join(named)} too")
