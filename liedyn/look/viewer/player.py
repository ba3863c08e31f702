"""Motions over time on a stage: a trajectory with its forces and events, or a mode; and the clock for playback."""
import threading
import time

import numpy as np

from liedyn.machine.errors import InputError, LiedynError
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.tree.configuration import integrate

FRAMES = 30.0
"""Pictures per second."""
SHOWN_FOR = 0.4
"""Seconds for which the name of an event is shown."""
ANGLE = 0.35
"""Largest displacement of an animated mode [rad], or part of the robot's size [m]."""


class Run:
    """A trajectory of a robot, evaluated at the times of pictures."""

    def __init__(self, robot, trajectory):
        if trajectory.coordinate_names != robot.coordinate_names:
            raise InputError(f"the trajectory is of {trajectory.robot!r}, with other coordinates than {robot.name!r}")
        if not len(trajectory):
            raise InputError("the trajectory is empty")
        self.robot, self.trajectory = robot, trajectory
        self.begin, self.end = float(trajectory.t[0]), float(trajectory.t[-1])
        self.unit = self._largest_force() or None

    def _largest_force(self):
        """Force for the longest arrow: the 90 % quantile of all forces."""
        forces = [np.linalg.norm(F[:, 3:], axis=1) for F in self.trajectory.constraint_wrenches.values() if len(F)]
        return max((float(np.quantile(each, 0.9)) for each in forces), default=0.0)

    def row(self, t):
        """Index of the state at time t; at an event the one after it."""
        return max(0, int(np.searchsorted(self.trajectory.t, t + 1e-12, side="right")) - 1)

    def q(self, t):
        """The configuration at time t."""
        return self.trajectory.q[self.row(t)]

    def forces(self, t):
        """The robot at time t, and its multipliers."""
        k, run = self.row(t), self.trajectory
        return self.robot.at(run.t[k]), run.lam[k]

    def events(self, t):
        """Names of the events just before time t."""
        return tuple(each.name for each in self.trajectory.events if 0.0 <= t - each.t < SHOWN_FOR)


class Swing:
    """A mode of a linear model, in slow motion if it is fast: one period in two seconds."""

    begin, end = 0.0, 2.0

    def __init__(self, robot, ss, modes, k, amplitude):
        self.robot, self.q0, self.message = robot, np.asarray(ss.q), ""
        self.shape, self.amplitude = modes.shapes[k], amplitude
        self.turning = modes.damped[k] > 0.0

    def q(self, t):
        """The configuration at time t, loops closed; if that is impossible, the first-order motion."""
        phase = np.exp(1j * np.pi * t) if self.turning else np.sin(np.pi * t)
        q = integrate(self.robot, self.q0, self.amplitude * np.real(self.shape * phase))
        try:
            self.message = ""
            return close(self.robot, q) if self.robot.active else q
        except LiedynError as error:
            self.message = str(error)
            return q


class Clock:
    """Calls `show(t)` in a thread of its own, cyclically between two times."""

    def __init__(self, show, begin, end, speed=1.0):
        self.show, self.begin, self.end, self.speed, self.t = show, begin, end, speed, begin
        self._stop, self._thread = threading.Event(), None

    @property
    def running(self):
        """True while the clock runs."""
        return self._thread is not None and self._thread.is_alive()

    def play(self):
        """Continue from the present time, or from the beginning if that is the end."""
        if self.running:
            return
        self.t = self.begin if self.t >= self.end else self.t
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def pause(self):
        """Stop, and wait until the last picture is drawn."""
        self._stop.set()
        if self.running and self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)

    def _run(self):
        last = time.monotonic()
        while not self._stop.wait(1.0 / FRAMES):
            now = time.monotonic()
            self.t, last = self.t + self.speed * (now - last), now
            if self.t > self.end:
                self.t = self.begin
            self.show(self.t)
