"""What a regulator follows: references with their feedforward, and integrals of what is off.

Outputs are r = C x about the operating point. The integral z of C x - r, added to the states, is a state of the design:

    d/dt (x, z) = [[A, 0], [C, 0]] (x, z) + [B; 0] u

in discrete time by the trapezoidal rule, as which it is computed (`liedyn.control.constrained.integral`).

A reference with rates is followed by x_r = N_0 r + N_1 r' + N_2 r'', u_r = M_0 r + M_1 r' + M_2 r'' (for polynomials of
degree two the regulator equations of Francis 1977): as dx_r/dt = A x_r + B u_r and C x_r = r,

    [[A, B], [C, 0]] [N_0; M_0] = [0; 1]        [[A, B], [C, 0]] [N_k; M_k] = [N_{k-1}; 0]
"""
# mypy: ignore-errors
import numpy as np

from liedyn.control.constrained.integral import Integral
from liedyn.control.regulation.kept_states import reached
from liedyn.control.regulation.motion_reference import SampledMotion
from liedyn.linear.linearize import linearize
from liedyn.machine.arguments import floats, names as names_of
from liedyn.machine.errors import InputError, said, shown
from liedyn.machine.python_control import forces, plain
from liedyn.machine.texts import printable

RATES = 3
"""A reference, its rate and its acceleration."""
CHEAP = 1e4
"""How many times as much an input may be as a state that it changes at the same rate, before the state gives way."""
UNSOLVED = 1e-8
"""Largest error of the feedforward, relative to its terms, that is rounding."""


def following(deviation, kept, u, integrate, reference):
    """The `Following` of a regulator; None if it has nothing to follow.

    Raises InputError if an output is unknown, has no number of its own, depends on inputs or on what is left out.
    """
    if integrate is None and reference is None:
        return None
    integrated = () if integrate is None else names_of("integrate", integrate)
    wanted, motion = {}, None
    if isinstance(reference, dict):
        wanted = reference
    elif reference is not None:
        motion = SampledMotion.of(deviation.robot, reference)
    return Following(deviation, kept, u, integrated, wanted, motion)


class Following:
    """References and integrals of a regulator about the reference state of `deviation`, with inputs u there.

    Attributes
    ----------
    integrals : tuple of str
        Names of the states that they add, ``integral:bucket``.
    C_i, C_r : ndarray
        Rows of the outputs that are integrated, and of those that have references.
    """

    def __init__(self, deviation, kept, u, integrated, wanted, motion):
        # imported here, as filters need the equilibria of regulators
        from liedyn.control.estimation.measurement import Measurement

        robot, self._wanted, self._motion = deviation.robot, wanted, motion
        outputs = tuple(dict.fromkeys((*integrated, *wanted)))
        self._measure, C = None, np.zeros((0, len(kept.states)))
        self.integrals, rows, self._follows = (), [], []
        if outputs:
            self._measure = Measurement(robot, outputs)
            C = _rows(deviation, kept, u, outputs, self._measure.labels)
            places = {name: [k for k, each in enumerate(self._measure.labels) if _belongs(each, name)]
                      for name in outputs}
            rows = [k for name in integrated for k in places[name]]
            self._follows = [k for name in wanted for k in places[name]]
            for name in wanted:
                if len(places[name]) != 1:
                    raise InputError(f"reference: {shown(name)} is {len(places[name])} numbers: name one of them")
            self._expected = self._measure(robot, deviation.q, deviation.v, u)
            self.integrals = tuple(f"integral:{self._measure.labels[k]}" for k in rows)
        self._robot, self._rows, self._u = robot, rows, u
        self.C_i, self.C_r = C[rows], C[self._follows]
        self.integral = Integral(len(rows))

    # ---- design

    def extended(self, model):
        """A and B of a model with the integrals as further states."""
        (x, nu), z, h = model.B.shape, len(self.integrals), getattr(model, "h", None)
        C = self.C_i
        by_x, by_u = (C, np.zeros((z, nu))) if h is None else (0.5 * h * (C + C @ model.A), 0.5 * h * C @ model.B)
        A = np.block([[model.A, np.zeros((x, z))], [by_x, np.zeros((z, z)) if h is None else np.eye(z)]])
        return A, np.vstack([model.B, by_u])

    def designed(self, model):
        """Find the feedforward of references for a model; InputError if there is none, or a reference does not fit."""
        if self._follows:
            self._steady = feedforward(model, self.C_r, [self._measure.labels[k] for k in self._follows])
            self._reference(0.0)

    def told(self):
        """What the `repr` of a regulator says of it."""
        names = [name.removeprefix("integral:") for name in self.integrals]
        return f", integrating {printable(', '.join(names))}" if names else ""

    def to_control(self, control, model, K, absolute, estimated):
        """The regulator with its integrals as a system of python-control."""
        if absolute:
            raise InputError("with integral action or references to_control gives deviations only: absolute=False")
        x, z, h = len(model.states), len(self.integrals), getattr(model, "h", None)
        A, B = self.extended(model)
        # the integrals of the design advance with x and u = -K (x, z)
        own, by_x = (A[x:, x:] - B[x:] @ K[:, x:], A[x:, :x] - B[x:] @ K[:, :x])
        return control.ss(own.reshape(z, z), by_x.reshape(z, x), -K[:, x:], -K[:, :x], states=plain(self.integrals),
                          inputs=plain(model.states, "estimate_" if estimated else ""), outputs=forces(model.inputs),
                          name="regulator", dt=0 if h is None else h)

    # ---- law

    def about(self, t, deviation, u, K):
        """What `LinearFeedback` asks for: the deviation, inputs and the gain, with the feedforward at time t."""
        K = K[:, :K.shape[1] - len(self.integrals)]
        if self._motion is not None:
            q, v, u = self._motion(t)
            return deviation.at(q, v), u, K
        if self._follows:
            for (N, M), r in zip(self._steady, self._reference(t)):
                u = u + (M + K @ N) @ r
        return deviation, u, K

    def pushed(self, t, q, v, K):
        """What the integrals add to the inputs, after the sample at time t."""
        if not self.integrals:
            return 0.0
        return -K[:, -len(self.integrals):] @ self.integral.add(t, self._error(t, q, v))

    def hold_back(self, K, u, bounded):
        """Undo the last sample of integrals that push inputs further beyond their bounds."""
        if not self.integrals:
            return
        over = np.sign(u - bounded)
        push = -K[:, -len(self.integrals):] * self.integral.last()
        self.integral.undo((push * over[:, None] > 0.0).any(axis=0))

    def _error(self, t, q, v):
        """The integrated outputs minus what is wanted."""
        expected = self._expected.copy()
        if self._motion is not None:
            expected = self._measure(self._robot, *self._motion(t))
        found = self._measure.difference(self._measure(self._robot, q, v, self._u), expected)
        if self._follows:
            found[self._follows] -= self._reference(t)[0]
        return found[self._rows]

    def _reference(self, t):
        """References at time t minus the outputs at the operating point, their rates and accelerations."""
        found = np.zeros((RATES, len(self._follows)))
        for j, (name, value) in enumerate(self._wanted.items()):
            if callable(value):
                try:
                    value = value(t)
                except Exception as error:
                    raise InputError(f"reference of {shown(name)} fails with {said(error)} at t = {t:g}") from error
            x = np.atleast_1d(floats(f"reference of {shown(name)}", value))
            if x.shape not in ((1,), (RATES,)) or not np.isfinite(x).all():
                raise InputError(f"reference of {shown(name)} must be a number, or value, rate and acceleration, "
                                 f"got {shown(x.tolist())} at t = {t:g}")
            found[:len(x), j] = x
        y = self._expected.copy()
        y[self._follows] = found[0]
        found[0] = self._measure.difference(y, self._expected)[self._follows]
        return found


def _belongs(label, name):
    return label == name or label.startswith(f"{name}.")


def _rows(deviation, kept, u, outputs, labels):
    """C of the outputs in the states that are kept."""
    model = linearize(deviation.robot, deviation.q, deviation.v, u=u, independent=deviation.y, speeds=deviation.w,
                      outputs=outputs, rank_tolerance=deviation.tolerance)
    if (driven := reached(model.D).any(axis=1) & (np.abs(model.D).max(axis=1, initial=0.0) > 0.0)).any():
        raise InputError(f"{labels[int(driven.argmax())]} depends on the inputs at once: it is not integrated, and has "
                         "no reference")
    if kept.index is None:
        return model.C
    left = np.setdiff1d(np.arange(len(model.states)), kept.index)
    if (seen := reached(model.C)[:, left]).any():
        row, k = np.argwhere(seen)[0]
        raise InputError(f"{labels[row]} depends on {model.states[left[k]]}, which is left out: name it in states")
    return model.C[:, kept.index]


def feedforward(model, C, labels):
    """Pairs (N_k, M_k), k = 0, 1, 2; InputError if outputs cannot be held elsewhere.

    Where they are not unique the smallest changes of the states are taken, and among these the smallest inputs.
    """
    (x, nu), h = model.B.shape, getattr(model, "h", None)
    S = np.block([[model.A - (0.0 if h is None else np.eye(x)), model.B], [C, np.zeros((len(C), nu))]])
    cheap = np.append(np.ones(x), np.full(nu, CHEAP / max(np.abs(model.B).max(initial=0.0), np.finfo(float).tiny)))
    scale = 1.0 / np.maximum(np.abs(S).max(axis=1), np.finfo(float).tiny)
    pairs, right = [], np.vstack([np.zeros((x, len(C))), np.eye(len(C))])
    for k in range(RATES):
        found = np.linalg.lstsq(scale[:, None] * S * cheap, scale[:, None] * right, rcond=1e-12)[0] * cheap[:, None]
        size = np.abs(S) @ np.abs(found) + np.abs(right)
        wrong = np.abs(S @ found - right).max(axis=0) > UNSOLVED * size.max(axis=0)
        if wrong.any():
            how = ("held at another value", "changed at a constant rate", "accelerated")[k]
            raise InputError(f"reference: no inputs keep what is regulated steady with {labels[int(wrong.argmax())]} "
                             f"{how}")
        pairs.append((found[:x], found[x:]))
        N, before = found[:x], pairs[-2][0] if k else None
        onward = N if h is None else h * N + (0.0 if k == 0 else 0.5 * h * h * before)
        right = np.vstack([onward, np.zeros((len(C), len(C)))])
    return pairs
