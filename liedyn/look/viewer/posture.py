"""A mechanism that sliders move and switches change: loops stay closed, and the last valid posture is kept."""
# mypy: ignore-errors
import numpy as np
from scipy.spatial.transform import Rotation

from liedyn.control.constrained import inverse_dynamics
from liedyn.look.solids import size_of
from liedyn.machine.errors import LiedynError
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.constraints.independent import by_elimination, by_name, holonomic
from liedyn.mechanics.constraints.loops import closure_error, constraint_jacobian, rank_of
from liedyn.mechanics.dynamics import forward_dynamics
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree.places import turn_free_rows

TURNING = ("spherical", "free")
"""Joints with a quaternion: sliders rotate them by a rotation vector relative to home."""


class Posture:
    """A configuration of a robot, moved by its independent coordinates.

    Attributes
    ----------
    robot : Robot
        With the present switches.
    q : ndarray, shape (nq,)
        The last configuration at which all constraints were satisfied; the first one, if there is none.
    names : tuple of str
        The independent coordinates, names of velocity coordinates.
    message : str
        The last error; empty on success.
    """

    def __init__(self, robot, q=None):
        self.robot, self.message, self.names = robot, "", ()
        self.q = np.array(robot.home if q is None else q, dtype=float)
        self._turning = {joint.name for joint in robot.model.joints if joint.kind in TURNING}
        self._close({})
        self._choose()

    def _close(self, held):
        """Closes the constraints; False, with a message, if that is impossible."""
        try:
            if self.robot.active:
                self.q = close(self.robot, self.q, held)
            self.message = ""
        except LiedynError as error:
            self.message = str(error)
        return not self.message

    def _choose(self):
        """Chooses the coordinates of the sliders: those that the robot declares if suitable, else by pivoting."""
        robot = self.robot
        try:
            found = robot.velocity_names
            if robot.active:
                G = np.where(holonomic(robot)[:, None], constraint_jacobian(robot, self.q), 0.0)
                turn_free_rows(robot.packed, self.q, G, True)  # in terms of the names of positions in q
                found = by_elimination(robot, G, "auto", RANK_TOLERANCE).names
        except LiedynError as error:
            self.message, found = str(error), ()
        own = by_name(robot, robot.independent).names if robot.independent else ()
        suits = len(own) == len(found) and set(own) <= set(robot.velocity_names)
        self.names = own if suits else found

    def value(self, name):
        """The value of a coordinate [rad, m]."""
        joint, k = self._part(name)
        return float(self.q[self.robot.coordinate_index(name)]) if joint is None else float(self._parts(joint)[k])

    def bounds(self, name):
        """Lowest and highest value of a slider: limits of the joint, else a full turn or the size of the robot."""
        joint, k = self._part(name)
        length = k is not None and k > 2
        low, high = -np.inf, np.inf
        if joint is None:
            at = self.robot.coordinate_index(name)
            low, high = self.robot.lower[at], self.robot.upper[at]
            length = self._slides(name)
        here, way = self.value(name), size_of(self.robot) if length else np.pi
        return (float(low) if np.isfinite(low) else min(-way, here - way) if not length else here - way,
                float(high) if np.isfinite(high) else max(way, here + way) if not length else here + way)

    def _slides(self, name):
        joint = next((each for each in self.robot.model.joints
                      if name == each.name or name.startswith(f"{each.name}.")), None)
        suffix = name.rsplit(".", 1)[-1]
        return joint is not None and (joint.kind == "prismatic" or joint.kind != "revolute" and suffix in (
            "x", "y", "z", "translation", "position"))

    def _part(self, name):
        """The joint with a quaternion that has this coordinate, and the index there; (None, None) for others."""
        joint = name.rsplit(".", 1)[0]
        if joint not in self._turning:
            return None, None
        return joint, [each for each in self.robot.velocity_names if each.startswith(f"{joint}.")].index(name)

    def _places(self, joint):
        return [k for k, each in enumerate(self.robot.coordinate_names) if each.startswith(f"{joint}.")]

    def _parts(self, joint):
        """Rotation vector relative to home, and position, of a joint with a quaternion."""
        places = self._places(joint)
        home, now = (Rotation.from_quat(q[places[:4]]) for q in (self.robot.home, self.q))
        return np.concatenate([(home.inv() * now).as_rotvec(), self.q[places[4:]]])

    def _held(self, name, value):
        """Values to be held, by name of coordinate or joint, with `name` at its new value."""
        held = {}
        for each in self.names:
            joint, k = self._part(each)
            if joint is None:
                held[each] = value if each == name else self.value(each)
                continue
            parts = self._parts(joint) if joint not in held else held[joint]
            if each == name:
                parts[k] = value
            held[joint] = parts
        for joint in self._turning & set(held):
            own = {each for each in self.robot.velocity_names if each.startswith(f"{joint}.")}
            parts, places = held[joint], self._places(joint)
            home = Rotation.from_quat(self.robot.home[places[:4]])
            q = np.concatenate([(home * Rotation.from_rotvec(parts[:3])).as_quat(), parts[3:]])
            held[joint] = q
            # dependent coordinates cannot be held: use the new rotation as a better guess
            if not own <= set(self.names):
                self.q = self.q.copy()
                self.q[places] = held.pop(joint)
                held |= {each: parts[self._part(each)[1]] for each in own & set(self.names)
                         if each in self.robot.coordinate_names}
        return held

    def move(self, name, value):
        """Moves one coordinate, at constant values of the other independent ones; False if it cannot move there."""
        before = self.q
        held = self._held(name, value)
        if self.robot.active:
            moved = self._close(held)
        else:
            self.q, self.message, moved = self.q.copy(), "", True
            for each, x in held.items():
                self.q[self._places(each) if each in self._turning else self.robot.coordinate_index(each)] = x
        if not moved:
            self.q = before
        return moved

    def switch(self, name, on):
        """Switches a constraint; if it cannot be satisfied from here, it stays off and False is returned."""
        before, self.robot = self.robot, self.robot.switched({name: on})
        fine = self._close({})
        if not fine:
            self.robot = before
        message = self.message
        self._choose()
        self.message = message or self.message
        return fine

    def stay(self, q):
        """Continues from q, the end of a motion."""
        self.q = np.array(q)
        self._close({})
        message = self.message
        self._choose()
        self.message = message or self.message

    def home(self):
        """Returns to the home configuration, as near as the constraints allow."""
        before, self.q = self.q, self.robot.home.copy()
        if not self._close({}):
            self.q = before
        return not self.message

    def beyond(self):
        """Names of coordinates beyond their limits."""
        return tuple(name for name, x, low, high in zip(self.robot.coordinate_names, self.q, self.robot.lower,
                                                        self.robot.upper) if not low - 1e-9 <= x <= high + 1e-9)

    def facts(self):
        """Facts for the display, as pairs (what, text)."""
        robot = self.robot
        found = [("coordinates", f"{robot.nv}, independent {len(self.names)}")]
        if robot.constraint_names:
            rank, redundant = rank_of(robot, self.q, RANK_TOLERANCE)
            found += [("rank of the rows", f"{rank} of {int(robot.active_rows.sum())}"),
                      ("redundant rows", ", ".join(redundant) or "none"),
                      ("closure error", f"{np.abs(closure_error(robot, self.q)).max(initial=0.0):.1e}")]
        beyond = self.beyond()
        return [*found, *([("beyond limits", ", ".join(beyond))] if beyond else [])]

    def forces(self):
        """Multipliers of the constraints at rest, and what holds the robot: its inputs, or nothing if it falls."""
        rest = np.zeros(self.robot.nv)
        try:
            found = inverse_dynamics(self.robot, self.q, rest, np.zeros(len(self.names)), self.names)
            return found.lam, "held at rest by its inputs"
        except LiedynError:
            pass
        try:
            return forward_dynamics(self.robot, self.q, rest, rest).lam, "let go: no inputs can hold it"
        except LiedynError as error:
            return np.zeros(len(self.robot.row_names)), str(error)
