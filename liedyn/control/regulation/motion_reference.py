"""A motion given by samples, between them too: by cubics on the manifold."""
# mypy: ignore-errors
import numpy as np

from liedyn.machine.arguments import floats, number
from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.tree.configuration import difference, integrate
from liedyn.model.calls.boundary import states


class SampledMotion:
    """The state and the inputs of a motion as a function of time; constant before the first and after the last sample.

    Attributes
    ----------
    t, q, v, u : ndarray, shapes (count,), (count, nq), (count, nv), (count, nu)
    """

    def __init__(self, robot, t, q, v, u):
        self.robot, self.t, self.q, self.v, self.u = robot, t, q, v, u

    @classmethod
    def of(cls, robot, given):
        """The motion of an object with t, q, v and u, such as a `Trajectory`; InputError if it is none."""
        try:
            t, q, v, u = (getattr(given, name) for name in ("t", "q", "v", "u"))
        except AttributeError:
            raise InputError("reference must be a dict of numbers and functions by name, or a motion with t, q, v and "
                             f"u, such as a Trajectory, got {shown(given)}") from None
        lead, q, v = states(robot, q=q, v=v)
        t, u = floats("reference, t", t), floats("reference, u", u)
        if len(lead) != 1 or t.shape != lead or u.shape != (*lead, len(robot.actuator_names)) or len(t) < 2:
            raise InputError(f"reference: t, q, v and u of a motion must have a row for each time, at least two; got "
                             f"shapes {t.shape}, {q.shape}, {v.shape}, {u.shape}")
        last = np.append(np.diff(t) > 0.0, True)  # of rows of the same time, at events, the second one
        if not (np.diff(t) >= 0.0).all() or last.sum() < 2 or not np.isfinite(u).all():
            raise InputError("reference: the times of a motion must increase, and its inputs be finite")
        return cls(robot, t[last], q[last], v[last], u[last])

    def place(self, t):
        """Index of the sample before t, fraction of the interval to the next one, and length h of that interval."""
        t = number("t", t)
        k = int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2))
        h = self.t[k + 1] - self.t[k]
        return k, float(np.clip((t - self.t[k]) / h, 0.0, 1.0)), h

    def __call__(self, t):
        """(q, v, u) at time t."""
        k, s, h = self.place(t)
        u = (1.0 - s) * self.u[k] + s * self.u[k + 1]
        step, v0, v1 = difference(self.robot, self.q[k], self.q[k + 1]), self.v[k], self.v[k + 1]
        # cubic Hermite interpolation in the tangent space at the sample before, in which velocities are nearly the same
        eta = s * s * (3.0 - 2.0 * s) * step + h * (s * (1.0 - s) ** 2 * v0 - s * s * (1.0 - s) * v1)
        rate = 6.0 * s * (1.0 - s) / h * step + (1.0 - s) * (1.0 - 3.0 * s) * v0 + s * (3.0 * s - 2.0) * v1
        return integrate(self.robot, self.q[k], eta), rate, u
