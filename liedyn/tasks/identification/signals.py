"""Motions from encoder signals: filtered without phase shift, differentiated, and completed by the constraints.

As usual (Gautier and Khalil; Swevers, Verdonck and De Schutter 2007), a Butterworth low pass that runs forward and
backward removes noise without a shift in time, and the result is differentiated; here by a spline of fifth degree
through it. The filter is unreliable within one period of the cutoff from the beginning and the end. Forces must not be
filtered in that way, as friction that changes its sign contains high frequencies (`identify`, parallel).
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.signal import butter, sosfiltfilt

from liedyn.machine.arguments import between, floats, positive, require_robot, whole
from liedyn.machine.errors import InputError, of_the_batch, shown, suggestion
from liedyn.mechanics.constraints.assembly import close, complete_velocity
from liedyn.mechanics.constraints.independent import by_name
from liedyn.mechanics.constraints.loops import constraint_bias, constraint_jacobian
from liedyn.mechanics.tree.places import places_of
from liedyn.model.calls.boundary import is_usable
from liedyn.tasks.identification.parameter_projection import allowed_motions

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike

PERIODS = 1e-9, 1e9
"""Admissible sampling periods [s]."""
FEWEST = 30
"""Smallest number of samples of a signal: filters need some at both ends."""


def low_pass(x: ArrayLike, period: float, cutoff: float, order: int = 4) -> Array:
    """A signal without its high frequencies and without phase shift.

    Parameters
    ----------
    x : array_like, shape (samples, ...)
        Signal with time along the first axis.
    period : float
        Sampling period [s].
    cutoff : float
        Frequency at which half of the amplitude remains [Hz], below half the sampling rate and above one period of
        the whole signal.
    order : int
        Order of the Butterworth filter, which runs forward and backward, 1 to 12.

    Returns
    -------
    ndarray, shape (samples, ...)

    Raises
    ------
    InputError
        There are fewer than 30 samples, an entry is not finite, or the cutoff is outside its range.

    Examples
    --------
    >>> import numpy as np, liedyn as ld
    >>> t = np.arange(1000) * 1e-3
    >>> slow, hum = np.sin(2.0 * np.pi * t), 0.1 * np.sin(2.0 * np.pi * 200.0 * t)
    >>> bool(abs(ld.low_pass(slow + hum, 1e-3, cutoff=20.0) - slow)[100:-100].max() < 1e-3)
    True
    """
    x, period, cutoff = floats("x", x), between("period", period, *PERIODS), positive("cutoff", cutoff)
    if x.ndim == 0 or len(x) < FEWEST or not is_usable(x).all():
        raise InputError(f"x must be finite, of shape (samples, ...) with {FEWEST} samples or more; got "
                         f"{shown(x) if x.size < 10 else x.shape}")
    if not 1.0 / len(x) < cutoff * period < 0.5:
        raise InputError(f"cutoff must be above one period of the signal, {1.0 / len(x) / period:g} Hz, and below half "
                         f"the sampling rate, {0.5 / period:g} Hz; got {cutoff:g}")
    sections = butter(between("order", whole("order", order, 1), 1, 12), cutoff * 2.0 * period, output="sos")
    return sosfiltfilt(sections, x, axis=0, padlen=min(len(x) - 1, max(FEWEST - 1, int(1.0 / (cutoff * period)))))


def measured_motion(robot: Robot, coordinates: dict[str, Any], period: float, cutoff: float | None = None,
                    guess: ArrayLike | None = None) -> tuple[Array, Array, Array]:
    """Configurations, velocities and accelerations from sampled coordinates.

    Parameters
    ----------
    robot : Robot
        Without ball and free joints among the measured coordinates.
    coordinates : dict
        Samples by name of a coordinate [rad, m], each of shape (samples,): all of a tree; for a mechanism with
        constraints as many as it has degrees of freedom, from which the others follow.
    period : float
        Sampling period [s].
    cutoff : float, optional
        Cutoff frequency of the `low_pass` that is applied first [Hz]; default: none.
    guess : array_like, shape (nq,), optional
        Guess of the first configuration, for closed loops; default: home.

    Returns
    -------
    q : ndarray, shape (samples, nq)
    v, a : ndarray, shape (samples, nv)
        Derivatives of the splines of fifth degree, completed by the constraints.

    Raises
    ------
    InputError
        A name is unknown, there are too many or few coordinates, signals differ in length or have fewer than 30
        samples.
    ClosureError
        The loops cannot be closed at a sample.
    SingularConfigurationError
        The measured coordinates do not determine the motion at a sample.

    Examples
    --------
    >>> import numpy as np, liedyn as ld
    >>> t = np.arange(200) * 0.01
    >>> robot = ld.load("five_bar")
    >>> q, v, a = ld.measured_motion(robot, {"q1": 2.1 + 0.2 * np.sin(t), "q2": -1.25 + 0.1 * np.sin(2.0 * t)}, 0.01)
    >>> bool(abs(ld.closure_error(robot, q)).max() < 1e-12), bool(abs(a[:, 0] + 0.2 * np.sin(t)).max() < 1e-6)
    (True, True)
    """
    require_robot(robot)
    names, period = names_of(robot, coordinates), between("period", period, *PERIODS)
    signals = [floats(f"coordinates[{name!r}]", x) for name, x in coordinates.items()]
    shape = signals[0].shape
    if len(shape) != 1 or shape[0] < FEWEST or any(x.shape != shape or not is_usable(x).all() for x in signals):
        raise InputError(f"coordinates must be finite signals of one length, {FEWEST} samples or more; got shapes "
                         f"{', '.join(str(x.shape) for x in signals)}")
    x = np.stack(signals, axis=1)
    if cutoff is not None:
        x = low_pass(x, period, cutoff)
    spline = make_interp_spline(np.arange(len(x)) * period, x, k=5)
    w, w_dot = (spline(np.arange(len(x)) * period, order) for order in (1, 2))
    if not robot.row_names:
        order = [names.index(name) for name in robot.velocity_names]
        return x[:, order], w[:, order], w_dot[:, order]
    return completed(robot, names, x, w, w_dot, robot.home if guess is None else guess)


def completed(robot, names, x, w, w_dot, guess):
    """q, v and a of a closed mechanism from its independent coordinates; each row starts from the one before."""
    q, here = np.empty((len(x), robot.nq)), guess
    for k, values in enumerate(x):
        with of_the_batch((len(x),), k):
            here = q[k] = close(robot, here, dict(zip(names, values)))
    v = complete_velocity(robot, q, dict(zip(names, w.T)))
    return q, v, accelerations(robot, q, v, by_name(robot, names), w_dot)


def accelerations(robot, q, v, chosen, w_dot):
    """The accelerations with G a = gamma and the given ones of the independent coordinates of the tree."""
    G, gamma = constraint_jacobian(robot, q), constraint_bias(robot, q, v)
    K, a = allowed_motions(robot, q, chosen), np.empty(v.shape)
    for b in range(len(q)):
        some = np.linalg.lstsq(G[b], gamma[b], rcond=1e-9)[0]  # one of the solutions, moved along K to the right one
        a[b] = some + K[b] @ (w_dot[b] - chosen.rows @ some)
    return a


def names_of(robot, coordinates):
    """Names of the measured coordinates; InputError for names that are not single coordinates."""
    if not isinstance(coordinates, dict) or not coordinates:
        raise InputError(f"coordinates must be a dict of signals by name of a coordinate, got {shown(coordinates)}")
    known = [name for name, place in zip(robot.velocity_names, places_of(robot)) if place >= 0]
    for name in coordinates:
        if not isinstance(name, str) or name not in known:
            raise InputError(f"no coordinate {shown(name)} that turns or slides, {suggestion(str(name), known)}")
    if not robot.row_names and len(coordinates) != robot.nv:
        missing = [name for name in robot.velocity_names if name not in coordinates]
        raise InputError(f"{robot.name!r} has no constraints from which {', '.join(missing)} would follow")
    return list(coordinates)
