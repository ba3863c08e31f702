"""The page: sliders, switches, display options, playback; each control changes a posture or a clock, then the stage."""
# mypy: ignore-errors

from __future__ import annotations

import functools
import math
import threading
from typing import TYPE_CHECKING

import numpy as np

from liedyn.linear.modes import modes as modes_of
from liedyn.look.solids import solids
from liedyn.look.viewer.player import ANGLE, Clock, Run, Swing
from liedyn.look.viewer.posture import Posture
from liedyn.look.viewer.server import address, close_server, open_server, url_of
from liedyn.look.viewer.stage import Stage
from liedyn.look.viewer.touch import Touch
from liedyn.machine.arguments import require_robot, whole
from liedyn.machine.errors import InputError, shown
from liedyn.machine.texts import in_markdown, printable
from liedyn.model.calls.boundary import states
from liedyn.model.packed import as_shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.linear.state_space import LocalStateSpace
    from liedyn.model.robot import Robot
    from liedyn.motion.simulation.trajectory import Trajectory
    from liedyn.typing import ArrayLike, Function

BLUE = (0, 114, 178)
RATES = ("0.1 x", "0.25 x", "0.5 x", "1 x", "2 x", "5 x")


def view(robot: Robot, q: ArrayLike | None = None, trajectory: Trajectory | None = None,
         linear: LocalStateSpace | None = None, host: str = "127.0.0.1", port: int = 8080,
         origins: Sequence[str] = (), dark: bool = False) -> Page:
    """Show a robot on a page in the browser, where it can be moved, switched and played.

    Sliders move the independent coordinates within the limits of the joints, and all loops stay closed; switches turn
    constraints off; arrows show their forces. Trajectories and modes can be played.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (nq,), optional
        Initial configuration [rad, m; quaternions (x, y, z, w)]; by default home, or the start of the trajectory.
    trajectory : Trajectory, optional
        A run of this robot, for playback.
    linear : LocalStateSpace, optional
        A model of this robot, for animations of its modes.
    host : str
        Address of this machine at which the page is served. By default all programs on this machine can access the
        page; ``"0.0.0.0"`` serves it to the whole network, without a password.
    port : int
        Port; if it is not free the next free one is used.
    origins : sequence of str
        Further addresses at which browsers find the page, behind a proxy for instance: ``["https://hub.example"]``.
        Requests for other addresses, and from other sites, are refused.
    dark : bool
        True for a dark page; it can be changed on the page, under "Show".

    Returns
    -------
    Page
        Its `url` is the address for the browser; it is served until `close`, or the end of Python.

    Raises
    ------
    InputError
        The trajectory or the model belongs to another robot, q is not one configuration, the host is no address of this
        machine, the port is invalid or no port is free, or an origin is invalid.
    LiedynError
        viser or trimesh is not installed, or the version of viser is not supported.

    Warns
    -----
    ModelWarning
        A mesh file of the robot does not exist.

    Examples
    --------
    >>> import liedyn as ld
    >>> page = ld.view(ld.load("loader"))  # doctest: +SKIP
    >>> page.url  # doctest: +SKIP
    'http://127.0.0.1:8080'
    """
    require_robot(robot)
    if not isinstance(host, str):
        raise InputError(f"host must be an address, got {shown(host)}")
    if whole("port", port) > 65535:
        raise InputError(f"port must be below 65536, got {port}")
    if isinstance(origins, str) or not hasattr(origins, "__iter__"):
        raise InputError(f"origins must be a list of addresses, got {shown(origins)}")
    for each in (origins := list(origins)):
        address(each)
    if trajectory is not None and not hasattr(trajectory, "coordinate_names"):
        raise InputError(f"trajectory must be a Trajectory, got {shown(trajectory)}")
    run = None if trajectory is None else Run(robot, trajectory)
    if q is not None:
        lead, rows = states(robot, q=q)
        if lead:
            raise InputError(f"a page begins with one q, of shape ({robot.nq},), got {np.shape(q)}")
        q = rows[0]
    elif run is not None:
        q = run.q(run.begin)
    found = None if linear is None else modes_of(linear)
    if found is not None and found.shapes.shape[1] != robot.nv:
        raise InputError(f"the linear model has {found.shapes.shape[1]} velocities, {robot.name!r} has {robot.nv}")
    posture, server = Posture(robot, q), open_server(host, port, origins)
    try:
        return Page(server, posture, run, None if found is None else (linear, found), dark)
    except BaseException:
        close_server(server)
        raise


def one_at_a_time(method: Function) -> Function:
    """Decorator: serialises callbacks, which come from several threads."""
    @functools.wraps(method)
    def locked(self, *given):
        with self._lock:
            return method(self, *given)
    return locked


class Page:
    """A page that is being served.

    Attributes
    ----------
    server : viser.ViserServer
    posture : Posture
    stage : Stage
    sliders, switches : dict
        Controls by name of coordinate or constraint.
    touch : Touch
        The controls of real-time motion.
    """

    server: Any
    posture: Any
    stage: Any
    sliders: dict[str, Any]
    switches: dict[str, Any]
    touch: Any
    run: Any
    text: Any
    time: Any
    button: Any
    mode: Any

    def __init__(self, server: Any, posture: Any, run: Any = None, linear: LocalStateSpace | None = None,
                 dark: bool = False) -> None:
        self.server, self.posture, self.run = server, posture, run
        others = () if run is None else run.configurations(25)  # of the whole motion
        self.stage, self._lock = Stage(server, posture.robot, posture.q, *others), threading.RLock()
        self.sliders, self.switches, self._clock, self._swing = {}, {}, None, None
        self._busy, self._forces = False, False
        gui = server.gui
        self._theme(dark)
        gui.main_panel.dock_right()
        gui.set_panel_label(printable(posture.robot.name))
        self.text = gui.add_markdown("")
        tabs = gui.add_tab_group()
        if run is not None:
            with tabs.add_tab("Play"):
                self._add_player(gui)
        with tabs.add_tab("Move"):
            gui.add_button("Home").on_click(lambda _: self._back())
            self._folder = gui.add_folder("Independent coordinates")
            self._add_sliders()
        if posture.robot.constraint_names:
            with tabs.add_tab("Constraints"):
                for name in posture.robot.constraint_names:
                    contact = posture.robot.contacts.get(name, "off")
                    box = gui.add_checkbox(printable(name), name in posture.robot.active or contact != "off")
                    box.on_update(functools.partial(self._switched, name))
                    self.switches[name] = box
        with tabs.add_tab("Touch"):
            self.touch = Touch(self)
        if linear is not None:
            with tabs.add_tab("Modes"):
                self._add_modes(gui, *linear)
        with tabs.add_tab("Show"):
            self._add_what_is_shown(gui, dark)
        self._draw()

    @property
    def url(self) -> str:
        """The address for the browser."""
        return url_of(self.server)

    def close(self) -> None:
        """Stop serving the page."""
        self.touch.stop()
        if self._clock is not None:
            self._clock.pause()
        close_server(self.server)

    def wait(self) -> None:
        """Serve the page until Ctrl-C."""
        threading.Event().wait()

    def __repr__(self) -> str:
        return f"Page({self.posture.robot.name!r}, {self.url})"

    # ---- drawing

    def _draw(self, q=None, says=None):
        """Draws the posture, or q; `says` is the text shown."""
        posture = self.posture
        self.stage.pose(posture.q if q is None else q)
        held = ""
        if q is None:
            lam = None
            if self._forces:
                lam, held = posture.forces()
            self.stage.forces(posture.robot, posture.q, lam)
            says = posture.facts() + ([("forces", held)] if held else [])
        lines = [f"**{what}**: {in_markdown(text)}  " for what, text in says]
        if posture.message:
            lines.append(f"\n⚠ **cannot be**: {in_markdown(posture.message)}")
        content = "\n".join(lines)
        if self.text.content != content:
            self.text.content = content

    # ---- moving

    def _add_sliders(self):
        for slider in self.sliders.values():
            slider.remove()
        self.sliders.clear()
        with self._folder:
            for name in self.posture.names:
                (low, high), value = self.posture.bounds(name), self._decimals(name)
                # three decimals, inside the limits
                low, high = min(math.ceil(1e3 * low) / 1e3, value), max(math.floor(1e3 * high) / 1e3, value)
                slider = self.server.gui.add_slider(printable(name), low, max(high, low + 1e-6), 1e-3, value)
                slider.on_update(functools.partial(self._moved, name))
                self.sliders[name] = slider

    def _decimals(self, name):
        """The value of a slider: three decimals, of which all are seen beside it."""
        low, high = self.posture.bounds(name)
        value = round(self.posture.value(name), 3)
        return min(max(value, math.ceil(1e3 * low) / 1e3), max(math.floor(1e3 * high) / 1e3, low))

    def _follow(self):
        """Moves sliders to the posture, without the effect of a user's move."""
        self._busy = True
        try:
            for name, slider in self.sliders.items():
                value = self._decimals(name)
                if abs(slider.value - value) > 1e-9:
                    slider.value = value
        finally:
            self._busy = False

    @one_at_a_time
    def _moved(self, name, event):
        if self._busy or event is not None and event.client is None:
            return
        self._halt()
        if not self.posture.move(name, self.sliders[name].value):
            self._follow()
        self._draw()

    @one_at_a_time
    def _back(self):
        self._halt()
        self.posture.home()
        self._follow()
        self._draw()

    @one_at_a_time
    def _switched(self, name, event):
        if self._busy or event is not None and event.client is None:
            return
        if self.touch.running:
            self.touch.switch(name, self.switches[name].value)
            return
        self._halt()
        if not self.posture.switch(name, self.switches[name].value):
            self._busy = True
            self.switches[name].value = not self.switches[name].value
            self._busy = False
        self._add_sliders()
        self._draw()

    # ---- in real time

    @one_at_a_time
    def halt(self) -> None:
        """Stops all motion."""
        self._halt()

    @one_at_a_time
    def stay(self, q: ArrayLike) -> None:
        """Keeps the posture at q, where the motion has ended."""
        self.posture.stay(q)
        self._add_sliders()
        self._draw()

    def show(self, q: ArrayLike, lam: ArrayLike, says: str, message: str = "") -> None:
        """Shows the moving robot at q, with multipliers or None; called from a thread, without blocking."""
        if self._lock.acquire(blocking=False):
            try:
                self.posture.message = message
                self.stage.forces(self.posture.robot, q, lam if self._forces else None)
                self._draw(q, says)
            finally:
                self._lock.release()

    # ---- showing

    def _theme(self, dark):
        self.server.gui.configure_theme(control_width="medium", brand_color=BLUE, dark_mode=dark, show_logo=False,
                                        show_share_button=False)

    def _add_what_is_shown(self, gui, dark):
        kinds = [("names", False), ("axes", False), ("floor", True)]
        if not self.posture.robot.massless:
            kinds.append(("centre of mass", False))
        if {"visual", "collision"} <= {each.role for each in solids(self.posture.robot)}:
            kinds += [("visual", True), ("collision", False)]
        for what, on in kinds:
            box = gui.add_checkbox(what, on)
            box.on_update(lambda _, what=what, box=box: self.stage.show(what, box.value))
        theme = gui.add_checkbox("dark page", dark)
        theme.on_update(lambda _: self._theme(theme.value))
        if self.posture.robot.constraint_names:
            box = gui.add_checkbox("forces", self.run is not None)
            box.on_update(lambda _: self._show_forces(box.value))
            self._forces = box.value
            gui.add_markdown("Arrows: forces of constraints (orange) and contacts (blue) on their second bodies.")

    @one_at_a_time
    def _show_forces(self, on):
        self._forces = on
        self._draw() if self._clock is None else self._show_time(self._clock.t)

    # ---- playing

    def _add_player(self, gui):
        run = self.run
        self._clock = Clock(self._tick, run.begin, run.end)
        marks = tuple((each.t, "") for each in run.trajectory.events)
        span = max(run.end - run.begin, 1e-9)
        self.time = gui.add_slider("t [s]", run.begin, run.begin + span, span / 1000.0, run.begin, marks=marks or None)
        self.time.on_update(self._scrubbed)
        self.button = gui.add_button("Play", icon=None)
        self.button.on_click(lambda _: self._play_or_pause())
        rate = gui.add_dropdown("speed", RATES, initial_value="1 x")
        rate.on_update(lambda _: setattr(self._clock, "speed", float(rate.value.split()[0])))
        if run.trajectory.events:
            gui.add_markdown("\n".join(["| t [s] | event |", "|---|---|", *(
                f"| {each.t:.4g} | {in_markdown(as_shown(each.name))} |" for each in run.trajectory.events[:30])]))

    def _play_or_pause(self):
        if self._clock.running:
            self._halt()
        else:
            self._clock.play()
            self.button.label = "Pause"

    def _halt(self):
        """Stops playback when the robot is moved by hand."""
        self.touch.stop()
        for clock in (self._clock, self._swing):
            if clock is not None and clock.running:
                clock.pause()
        if self.run is not None:
            self.button.label = "Play"

    def _tick(self, t):
        """Called from the clock's own thread: must not wait for a callback, which may be waiting for it."""
        if self._lock.acquire(blocking=False):
            try:
                self._busy = True
                self.time.value = t
                self._busy = False
                self._show_time(t)
            finally:
                self._lock.release()

    @one_at_a_time
    def _scrubbed(self, event):
        if not self._busy and event.client is not None:
            self._halt()
            self._clock.t = self.time.value
            self._show_time(self._clock.t)

    def _show_time(self, t):
        run = self.run
        q, (robot, lam) = run.q(t), run.forces(t)
        self.stage.forces(robot, q, lam if self._forces else None, run.unit)
        happens = ", ".join(run.events(t))
        self._draw(q, [("t", f"{t:.3f} s")] + ([("event", happens)] if happens else []))

    # ---- modes

    def _add_modes(self, gui, linear, found):
        names = [f"{k}: " + ("rigid" if found.rigid[k] else f"{found.frequencies[k]:.3g} Hz, damping "
                             f"{found.damping[k].round(9) + 0.0:.3g}") for k in range(len(found))]
        self.mode = gui.add_dropdown("mode", names or ["none"])
        size = gui.add_slider("largest displacement", 0.02, 1.0, 0.01, ANGLE)
        gui.add_markdown("One period is shown in two seconds.")
        start = gui.add_button("Swing")

        def swing(_):
            if self._swing is not None and self._swing.running:
                self._halt()
                return
            self._halt()
            if names:
                motion = Swing(self.posture.robot, linear, found, names.index(self.mode.value), size.value)
                self._swing = Clock(lambda t: self._draw(motion.q(t), [("mode", self.mode.value)]), 0.0, 2.0)
                self._swing.play()
        start.on_click(swing)

        def changed(_):
            if self._swing is not None and self._swing.running:
                swing(None)
                swing(None)
        self.mode.on_update(changed)
        size.on_update(changed)
