"""The page's tab for real-time motion: the mechanism moves, and the mouse drags its bodies."""
import functools
import threading
import time

import numpy as np

from liedyn.look.planes import plane_of, poses_of
from liedyn.look.solids import solids
from liedyn.look.viewer.play import Play
from liedyn.model import GROUND

PICTURES = 60.0
"""Largest number of pictures per second."""
SPRING = (0, 114, 178)
REACH = 1e3
"""Largest distance of positions from a browser, relative to the robot's size."""


class Touch:
    """The controls, and a thread that draws the motion of `Play`, as fast as the browser accepts pictures.

    Attributes
    ----------
    play : Play or None
        The motion: made anew with each start, from the page's posture.
    """

    def __init__(self, page):
        self.page, self.play, self._line = page, None, None
        gui = page.server.gui
        gui.add_markdown("Drag a body with the mouse: a spring pulls it to the cursor. Switch constraints meanwhile.")
        self.button = gui.add_button("Start")
        self.button.on_click(lambda _: self.stop() if self.running else self.start())
        self.weightless = gui.add_checkbox("weightless", True)
        self.frequency = gui.add_slider("spring [Hz]", 0.5, 10.0, 0.1, 3.0)
        self.slowing = gui.add_slider("slowing down [1/s]", 0.0, 10.0, 0.1, 0.5)
        for control in (self.weightless, self.frequency, self.slowing):
            control.on_update(lambda _: self._set())
        robot = page.posture.robot
        self._normal = plane_of(robot, poses_of(robot, robot.home))
        for k, solid in enumerate(solids(robot)):
            if solid.body != GROUND and k in page.stage.parts:
                page.stage.parts[k].on_drag(functools.partial(self._dragged, solid.body))

    @property
    def running(self):
        return self.play is not None and self.play.running

    def start(self):
        """Starts from the page's posture."""
        if not self.running:
            self.page.halt()
            self.play = Play(self.page.posture.robot, self.page.posture.q)
            self._set()
            self.play.start()
            self.button.label = "Stop"
            threading.Thread(target=self._draw, args=(self.play,), name="liedyn pictures", daemon=True).start()

    def stop(self):
        """Stops; the page's posture becomes the end of the motion."""
        if self.running:
            self.play.stop()
            self.page.stay(self.play.q)
        self.button.label = "Start"

    def _set(self):
        if self.play is not None:
            self.play.weightless, self.play.frequency = self.weightless.value, self.frequency.value
            self.play.slowing = self.slowing.value

    def switch(self, name, on):
        """Switches a constraint of the moving robot; if that fails its box on the page is reset."""
        page = self.page

        def then(error):
            if error is None:
                page.posture.robot = page.posture.robot.switched({name: on})
            else:
                page.switches[name].value = not on

        self.play.switch(name, on, then)

    async def _dragged(self, body, event):
        """Handles phases in order, without blocking (a thread for each would not keep the order)."""
        near = np.abs([event.start_position, event.end_position]).max() < REACH * self.page.stage.size
        if event.phase == "start" and near:
            self.start()
            self.play.grab(body, event.start_position)
        if self.running and (near or event.phase == "end"):
            self.play.let_go() if event.phase == "end" else self.play.pull(self._below(event))

    def _below(self, event):
        """The position of the cursor: in the plane of a planar mechanism, else at the distance of the held point."""
        cursor = np.array(event.end_position)
        if self._normal is None:
            return cursor
        eye = np.array(event.client.camera.position)
        sinks, depth = self._normal @ (cursor - eye), self._normal @ (np.array(event.start_position) - eye)
        # if the plane is seen from the side, the cursor does not determine a point
        return eye + depth / sinks * (cursor - eye) if 0.1 < depth / sinks < 10.0 else cursor

    def _draw(self, play):
        while play.running:
            began = time.perf_counter()
            loop, stepper = play.loop, play.stepper
            says = [("t", "getting ready")] if loop is None else [
                ("t", f"{stepper.t:.2f} s"), ("real-time factor", f"{loop.factor:.3f}"),
                ("late", f"{loop.late} of {loop.calls} pictures' steps")]
            self.page.show(play.q, play.lam, says, play.message)
            self._spring(play.hand)
            time.sleep(max(0.0, 1.0 / PICTURES - (time.perf_counter() - began)))
        self._spring(None)
        if play.message and play.loop is None:
            self.page.show(play.q, None, [], play.message)
        self.button.label = "Start"

    def _spring(self, ends):
        """A line from the held point to the cursor."""
        if ends is None:
            if self._line is not None:
                self._line.visible = False
            return
        points = np.array([ends], dtype=np.float32)
        if self._line is None:
            self._line = self.page.server.scene.add_line_segments(
                "/hand", points, np.array(SPRING, dtype=np.uint8), thickness=3.0, thickness_units="screen")
        self._line.points, self._line.visible = points, True
