"""A mechanism that moves in real time while the user pulls at it: a thread of its own, independent of the browser."""
import queue
import threading
from dataclasses import replace

import numpy as np

from liedyn.machine.errors import LiedynError
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.tree.crba import crba
from liedyn.mechanics.tree.forward_kinematics import pose
from liedyn.mechanics.tree.rnea import rnea
from liedyn.model.packed import GRAVITY
from liedyn.motion.simulation import RealTimeLoop, Stepper, VirtualCoupler

STEP, STEPS = 1e-3, 16
"""Length of a step [s], and number of steps in one call: about the time between two pictures."""


class Play:
    """A robot in motion.

    All changes of the motion are put into a queue and made by the thread that computes the steps, between two calls.

    Attributes
    ----------
    stepper : Stepper or None
        None until the thread has made it.
    loop : RealTimeLoop or None
    q, lam : ndarray
        The last configuration, and multipliers there.
    hand : tuple or None
        Ends of the spring: the point held and the cursor, while something is held.
    message : str
        The last error.
    frequency : float
        Natural frequency of the held body on its spring [Hz].
    slowing : float
        Rate at which all momentum decays [1/s].
    weightless : bool
    """

    def __init__(self, robot, q):
        self.robot, self.q, self.stepper, self.loop = robot, np.array(q), None, None
        self.frequency, self.slowing, self.weightless = 3.0, 0.5, True
        self.hand, self.lam, self.message = None, None, ""
        self._todo, self._coupler, self._place = queue.SimpleQueue(), None, None
        floats = robot.packed.floats.copy()
        floats[GRAVITY:GRAVITY + 3] = 0.0
        self._without_gravity = replace(robot, packed=robot.packed._replace(floats=floats))
        self._wanted = threading.Event()

    @property
    def running(self):
        return self._wanted.is_set()

    def start(self):
        """Start from q; the first time kernels may have to be compiled, which does not block the page."""
        if not self.running:
            self._wanted.set()
            threading.Thread(target=self._begin, name="liedyn play", daemon=True).start()

    def _begin(self):
        try:
            if self.stepper is None:
                method = "moreau" if watches(self.robot) else "rk4"
                self.stepper = Stepper(self.robot, self.q, np.zeros(self.robot.nv), STEP, method, start="project")
                self._frame()
            if self.running:
                self.loop = RealTimeLoop(self._frame, STEP * STEPS)
                self.loop.start()
        except LiedynError as error:
            self.message = str(error)
            self._wanted.clear()

    def stop(self):
        """Stop at the present q."""
        self._wanted.clear()
        if self.loop is not None:
            self.loop.stop()

    # ---- actions of the user

    def grab(self, body, point):
        """Hold the body at a point in the world."""
        self._todo.put(lambda: self._grab(body, np.array(point)))

    def pull(self, point):
        """Set the position of the cursor."""
        self._todo.put(lambda: self._pull(np.array(point)))

    def let_go(self):
        self._todo.put(self._let_go)

    def switch(self, name, on, then=lambda error: None):
        """Switch a constraint; `then` is called with the error, or None."""
        self._todo.put(lambda: self._switch(name, on, then))

    def _grab(self, body, point):
        stepper = self.stepper
        T = pose(self.robot, stepper.q, body)
        place = T[:3, :3].T @ (point - T[:3, 3])
        coupler = VirtualCoupler.tuned(stepper.now, body, place, stepper.q, self.frequency)
        stepper.couple(coupler)
        self._coupler, self._place = coupler, np.append(place, 1.0)
        self._pull(point)

    def _pull(self, point):
        if self._coupler is not None:
            self._coupler.move(point)

    def _let_go(self):
        self.stepper.couple()
        self._coupler = self.hand = None

    def _switch(self, name, on, then):
        try:
            self.stepper.switch(name, on)
        except LiedynError as error:
            then(error)
            raise
        then(None)

    # ---- the thread

    def _frame(self):
        """Queued changes, and the steps up to the next picture. If they fail, the robot stops."""
        stepper = self.stepper
        try:
            while not self._todo.empty():
                self.message = ""
                self._todo.get()()
        except LiedynError as error:
            self.message = str(error)
        try:
            stepper.advance(STEPS, self._forces(stepper.q, stepper.v))
        except LiedynError as error:
            self.message = str(error)
            self._let_go()
            try:
                stepper.reset(stepper.q, np.zeros(self.robot.nv), stepper.t, start="project")
            except LiedynError:
                self._wanted.clear()
        self.q, self.lam = stepper.q, stepper.lam
        if self._coupler is not None:
            self.hand = (pose(self.robot, self.q, self._coupler.body) @ self._place)[:3], self._coupler.device[:3, 3]
        return self.running

    def _forces(self, q, v):
        tau = -self.slowing * crba(self.robot, q) @ v
        if self.weightless:
            rest = np.zeros(self.robot.nv)
            tau += rnea(self.robot, q, rest, rest) - rnea(self._without_gravity, q, rest, rest)
        return tau
