"""The errors liedyn raises: each names the thing that is wrong and its value."""
# mypy: ignore-errors

from __future__ import annotations

import contextlib
import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from liedyn.control.constrained.controllability import Controllability
    from liedyn.motion.simulation.trajectory import Trajectory
    from liedyn.typing import Array


class LiedynError(Exception):
    """Base class of every error raised by liedyn."""


class ModelError(LiedynError, ValueError):
    """A robot description that does not describe a robot."""


class InputError(LiedynError, ValueError):
    """An argument of the wrong shape, a value that is not finite, or an unknown name."""


class ClosureError(LiedynError):
    """The loops could not be closed.

    Attributes
    ----------
    residual : float
        Largest remaining error [m, rad]; 0 where an assembly exists but no path leads to it from the guess.
    loop : str
        Name of the loop or constraint with the largest error.
    q : ndarray or None
        The configuration, shape (nq,), at which the search stopped.
    """

    residual: float
    loop: str
    q: Array | None

    def __init__(self, message: str, residual: float, loop: str, q: Array | None = None) -> None:
        super().__init__(message)
        self.residual = residual
        self.loop = loop
        self.q = q


class SingularConfigurationError(LiedynError):
    """The motion is not determined at this configuration, or not by the chosen coordinates.

    Attributes
    ----------
    singular_values : ndarray
        Singular values of the matrix that should have been invertible, largest first; a zero where a constraint has no
        direction (the points of a distance coincide).
    """

    singular_values: Array

    def __init__(self, message: str, singular_values: Array) -> None:
        super().__init__(message)
        self.singular_values = singular_values


@contextlib.contextmanager
def of_the_batch(lead, b):
    """Context that adds to errors the index of the state in a batch of leading shape `lead`, in C order."""
    try:
        yield
    except LiedynError as error:
        if lead:
            at = []
            for size in reversed(lead):
                b, k = divmod(b, size)
                at.insert(0, k)
            error.args = (f"{error} (state {at[0] if len(at) == 1 else tuple(at)} of the batch)",)
        raise


class SimulationError(LiedynError):
    """A simulation had to stop; its results so far are attached.

    Attributes
    ----------
    trajectory : Trajectory
        Everything up to the last good state.
    state : tuple
        The last good state (t, q, v).
    """

    trajectory: Trajectory
    state: tuple[Any, ...]

    def __init__(self, message: str, trajectory: Trajectory | None = None,
                 state: tuple[Any, ...] | None = None) -> None:
        super().__init__(message)
        self.trajectory = trajectory
        self.state = state


class AccumulationError(SimulationError):
    """Impacts follow one another faster and faster: infinitely many of them within a finite time.

    Attributes
    ----------
    t : float
        Extrapolated time at which they accumulate [s].
    contacts : tuple of str
        The contacts that collide.
    """

    t: float
    contacts: tuple[str, ...]

    def __init__(self, message: str, trajectory: Trajectory | None = None, state: tuple[Any, ...] | None = None,
                 t: float | None = None, contacts: tuple[str, ...] = ()) -> None:
        super().__init__(message, trajectory, state)
        self.t = t
        self.contacts = contacts


class ControllabilityError(LiedynError):
    """The actuators cannot produce the motion or the constraint forces that are wanted.

    Attributes
    ----------
    controllability : Controllability
        What the actuators can do, and which motions are not actuated.
    """

    controllability: Controllability

    def __init__(self, message: str, controllability: Controllability) -> None:
        super().__init__(message)
        self.controllability = controllability


class CacheWarning(UserWarning):
    """Compiled kernels cannot be stored on disk, or stored ones are not used because other users may have written them.
    Results are right, but every process compiles again."""


class ModelWarning(UserWarning):
    """The model can be simulated, but no real machine has these parameters."""


class ConditionWarning(UserWarning):
    """Independent coordinates are close to a singular choice: results lose digits."""


class ContactWarning(UserWarning):
    """A contact law was relaxed because it contradicts another one, such as restitution the energy."""


def shown(value, limit=80):
    """A user's value for a message: its repr on one line, cut in the middle where that is longer than `limit`.

    Examples
    --------
    >>> shown([1.0, 2.0])
    '[1.0, 2.0]'
    >>> shown("ab" * 100, limit=20)
    "'abababab...bababab'"
    """
    try:
        text = repr(value)
    except Exception as error:
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return cut(" ".join(text.split()) if "\n" in text else text, limit)


def cut(text, limit=80):
    """`text`, shortened in the middle to at most `limit` characters."""
    tail = (limit - 3) // 2
    return text if len(text) <= limit else f"{text[:limit - 3 - tail]}...{text[-tail:]}"


def said(error):
    """An exception of a user's function for a message: type and text, shortened."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "?"
    return cut(f"{type(error).__name__}: {text}" if text else type(error).__name__, 300)


def listed(names, most=12):
    """Names for a message; of many, the first `most` and their total number.

    Examples
    --------
    >>> listed(["crank", "rocker"])
    "'crank', 'rocker'"
    >>> listed(map(str, range(100)), most=2)
    "'0', '1', ... (100 in all)"
    """
    names = list(names)
    return ", ".join(map(shown, names[:most])) + (f", ... ({len(names)} in all)" if len(names) > most else "")


_LONGEST_NAME = 200  # the search for similar names takes time with the square of the length


def suggestion(name, known):
    """The end of an "unknown name" message: similar names if there are any, else the known names.

    Examples
    --------
    >>> suggestion("crnak", ["crank", "rocker"])
    "did you mean 'crank'?"
    >>> suggestion("elbow", ["crank", "rocker"])
    "known: 'crank', 'rocker'"
    """
    name, known = name if isinstance(name, str) else shown(name), list(dict.fromkeys(map(str, known)))
    near = near_names(name, known)
    if near:
        return f"did you mean {' or '.join(map(shown, near))}?"
    return f"known: {listed(known, most=20) or 'none'}"


def near_names(name, known, most=3, like=0.5):
    """The known names most similar to `name`, at most `most` of them; anagrams first. Empty if no similarity reaches
    `like` (the ratio of difflib, 0 to 1).

    Examples
    --------
    >>> near_names("multipler", ["joint", "offset", "multiplier"])
    ['multiplier']
    >>> near_names("iyx", ["iyy", "iyz", "ixy"])[0]
    'ixy'
    """
    if len(name) > _LONGEST_NAME:
        return []
    near = difflib.get_close_matches(name, [each for each in known if len(each) <= _LONGEST_NAME], max(most, 6), like)
    return sorted(near, key=lambda each: sorted(each) != sorted(name))[:most]


@contextlib.contextmanager
def errors_at(place, owner=""):
    """Context that puts the place (a file, a table) before the text of a ModelError raised inside, once.

    If the text begins with `owner`, the builder's name of the same thing, the place replaces it.
    """
    try:
        yield
    except ModelError as error:
        text, place = str(error), cut(str(place), 300)
        if owner and text.startswith(owner):
            raise ModelError(place + text.removeprefix(owner)) from None
        raise ModelError(f"{place}: {text}") from None
