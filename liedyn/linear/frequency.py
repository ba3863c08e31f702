"""Frequency responses of linear models: C (i omega - A)^-1 B + D; in discrete time at z = exp(i omega h)."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.linear.state_space import DiscreteStateSpace
from liedyn.linear.state_space import LocalStateSpace
from liedyn.machine.arguments import floats
from liedyn.machine.errors import InputError, shown, suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.typing import Array, ArrayLike, Complexes

SAMPLES, DECADES = 400, 2.0
"""Default frequencies: their number, and decades below the slowest and above the fastest mode."""
SLOWEST = 1e-6
"""Modes slower than this part of the fastest rate are ignored in the choice of frequencies."""


@dataclass(frozen=True, repr=False)
class FrequencyResponse:
    """Responses of all outputs to all inputs; made by :func:`liedyn.frequency_response`.

    ``response["boom", "lift_cylinder"]`` is that of one output to one input, shape (..., n).

    Attributes
    ----------
    omega : ndarray, shape (n,)
        Angular frequencies [rad/s].
    values : ndarray of complex, shape (..., n, ny, nu)
        The leading axes are those of a batch of models.
    outputs, inputs : tuple of str

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> response = ld.frequency_response(ld.linearize(arm, arm.home, [0.0] * 4, [0.0] * 4), [1.0, 10.0])
    >>> response["q1", "q1"].shape
    (2,)
    """

    omega: Array
    values: Complexes
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]

    def __repr__(self) -> str:
        return (f"FrequencyResponse({len(self.outputs)} outputs, {len(self.inputs)} inputs, {len(self.omega)} "
                f"frequencies from {self.omega[0]:.4g} to {self.omega[-1]:.4g} rad/s)")

    def __getitem__(self, pair: Any) -> Any:
        """The response of an output to an input, by their names."""
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InputError(f"a response has the names of an output and an input, got {shown(pair)}")
        places = []
        for what, name, names in zip(("output", "input"), pair, (self.outputs, self.inputs)):
            if name not in names:
                raise InputError(f"unknown {what} {shown(name)}, {suggestion(shown(name), names)}")
            places.append(names.index(name))
        return self.values[..., places[0], places[1]]

    def plot(self, output: str, input: str, axes: Sequence[Any] | None = None) -> tuple[Any, Any]:
        """Draw magnitude and phase of one response over the frequency (Bode plot), one line per model of a batch.

        Parameters
        ----------
        output, input : str
        axes : pair of matplotlib axes, optional
            For magnitude and phase. Default: a new figure.

        Returns
        -------
        axes : pair of matplotlib axes
            ``axes[0].figure.savefig(path)`` writes the picture.

        Raises
        ------
        LiedynError
            Matplotlib is not installed.
        InputError
            There is no output or input of that name.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> response = ld.frequency_response(ld.linearize(arm, arm.home, [0.0] * 4, [0.0] * 4))
        >>> response.plot("q1", "q1")[1].get_xlabel()
        'frequency [rad/s]'
        """
        from liedyn.machine.figures import COLOURS, figure
        from liedyn.machine.texts import drawn

        values = self[output, input].reshape(-1, len(self.omega))
        if axes is None:
            axes = figure((7.0, 5.0)).subplots(2, 1, sharex=True)
        for value, colour in zip(values, np.resize(COLOURS, len(values))):
            axes[0].loglog(self.omega, np.abs(value), color=colour)
            axes[1].semilogx(self.omega, np.degrees(np.unwrap(np.angle(value))), color=colour)
        axes[0].set(ylabel=drawn(f"size of {output} / {input}"))
        axes[1].set(xlabel="frequency [rad/s]", ylabel="phase [deg]")
        for each in axes:
            each.grid(True, which="both", alpha=0.3)
        return axes


def frequency_response(ss: LocalStateSpace | DiscreteStateSpace, omega: ArrayLike | None = None) -> FrequencyResponse:
    """Steady-state responses of the outputs to inputs that oscillate.

    Parameters
    ----------
    ss : LocalStateSpace or DiscreteStateSpace
        A model or a batch of models. The outputs of a discrete-time model are its states.
    omega : array_like, shape (n,), optional
        Angular frequencies [rad/s], positive. Default: 400 values from a hundredth of the slowest rate of the model to
        a hundred times the fastest one; for a discrete-time model at most half the sampling rate.

    Returns
    -------
    FrequencyResponse

    Raises
    ------
    InputError
        ss is no such model; a frequency is not positive and finite, or is that of an undamped mode, at which the
        response is infinite.

    Notes
    -----
    Responses are those of deviations from the operating point; f0 is left out. Units: those of the output divided by
    those of the input.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> ss = ld.linearize(loader, loader.home, [0.0] * 8, [0.0] * 8)
    >>> ld.frequency_response(ss, [1.0, 2.0, 5.0])["boom", "lift_cylinder"].shape
    (3,)
    """
    if not isinstance(ss, (LocalStateSpace, DiscreteStateSpace)):
        raise InputError(f"frequency_response takes what linearize or discretize returns, got {shown(ss)}")
    samples = isinstance(ss, DiscreteStateSpace)
    if omega is None:
        omega = _frequencies(ss, samples)
    omega = np.atleast_1d(floats("omega", omega))
    if omega.ndim != 1 or not len(omega) or not (np.isfinite(omega) & (omega > 0.0)).all():
        raise InputError(f"omega must be positive frequencies, shape (n,), got {shown(omega.tolist())}")
    s = np.exp(1j * omega * ss.h) if samples else 1j * omega
    outputs, C, D = (ss.states, np.eye(len(ss.states)), 0.0) if samples else (ss.outputs, ss.C, ss.D)
    values = np.empty((len(omega), *ss.A.shape[:-2], len(outputs), len(ss.inputs)), complex)
    for k, each in enumerate(s):
        try:
            values[k] = C @ np.linalg.solve(each * np.eye(ss.A.shape[-1]) - ss.A, ss.B.astype(complex)) + D
        except np.linalg.LinAlgError:
            raise InputError(f"there is no response at {omega[k]:.6g} rad/s: an undamped motion has that frequency"
                             ) from None
    return FrequencyResponse(omega, np.moveaxis(values, 0, -3), outputs, ss.inputs)


def _frequencies(ss, samples):
    rates = np.abs(np.linalg.eigvals(ss.A).ravel())
    if samples:
        rates = np.abs(np.log(np.maximum(rates, np.finfo(float).tiny))) / ss.h + np.abs(
            np.angle(np.linalg.eigvals(ss.A).ravel())) / ss.h
    fastest = rates.max(initial=0.0) or 1.0
    slowest = rates[rates > SLOWEST * fastest].min(initial=fastest)
    low, high = slowest * 10.0 ** -DECADES, fastest * 10.0 ** DECADES
    if samples:
        high = min(high, np.pi / ss.h)
        low = min(low, 1e-3 * high)
    return np.geomspace(low, high, SAMPLES)
