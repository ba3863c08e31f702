"""The part of `Builder` that edits declarations: changes or removes some, attaches another robot."""
# mypy: ignore-errors

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING

from liedyn.machine.arguments import require_robot
from liedyn.machine.errors import ModelError, shown, suggestion
from liedyn.model import validation
from liedyn.model.declared import arguments_of, method_of
from liedyn.model.description import APPLIED, GROUND, Actuator, Thruster
from liedyn.model.kinds import JOINT_KINDS, LOOP_KINDS
from liedyn.model.links import depth_first

if TYPE_CHECKING:
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike

# outputs that name a body; other outputs, such as wrenches, name a loop or constraint
_OF_BODIES = ("pose", "twist", "twist_rate")
_ROBOT = ("gravity", "home", "independent", "outputs", "description", "source")
_KEPT = ("parent", "child", "placement", "parent_placement", "child_placement", "active", "target")
"""Arguments that remain when the kind of a joint, loop or constraint changes."""


class Editor:
    """Changes of declarations; see :class:`Builder`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):  # as in b.gravity = ..., which would have no effect
            raise ModelError(f"builder: cannot set {shown(name)}; see change: b.change('robot', gravity=...), "
                             "b.change('body', name, mass=...)")
        super().__setattr__(name, value)

    def change(self, what: str, name: str | None = None, /, **values: Any) -> None:
        """Change a declaration, keeping its name.

        Parameters
        ----------
        what : str
            "body", "frame", "joint", "loop", "constraint", "actuator", "element" (a force element) or "robot".
        name : str
            Its name; omitted for the robot.
        **values
            New values of arguments of the method that declares it, :meth:`body`, :meth:`joint` and so on; None restores
            a default. With another `kind` a joint, loop or constraint keeps its two ends, placements, switch and
            target, and its axes if the new kind has as many; all other arguments are those passed here or defaults. For
            the robot: gravity, home, independent, outputs, description, source.

        Raises
        ------
        ModelError
            An unknown name or argument, or a value that does not fit. Declarations that name a coordinate removed with
            the old kind of a joint are refused when the robot is built.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("five_bar"))
        >>> b.change("body", "link1", mass=2.0)
        >>> b.change("joint", "q2", stiffness=3.0, rest=0.5)
        >>> b.change("robot", gravity=(0.0, 0.0, -1.62))
        >>> b.build().model.bodies[0].mass
        2.0
        """
        if validation.text("change", "what", what) == "robot":
            if name is not None:
                raise ModelError(f"change, robot: there is one only, it takes no name, got {shown(name)}")
            self._change_robot(values)
            return
        things, k = self._find(what, name, ["robot"])
        given = arguments_of(things[k])
        declare = getattr(self, method_of(things[k]))
        _require_known(f"{what} {shown(name)}", values, list(inspect.signature(declare).parameters)[1:])
        if "kind" in values and validation.text(f"{what} {shown(name)}", "kind", values["kind"]) != given["kind"]:
            form = {**JOINT_KINDS, **LOOP_KINDS}.get(values["kind"])
            as_many = form is not None and len(getattr(things[k], "axes", ())) == len(form.axes)
            kept = _KEPT + ("axis", "axis2") * as_many
            given = {key: value for key, value in given.items() if key in kept}
        count = len(things)
        declare(name, **_without_none(given | values))
        if len(things) > count:
            things[k] = things.pop()  # just declared last, it takes its old position
        else:  # smooth friction, a force element, has become friction that sticks, a constraint; or the reverse
            del things[k]

    def _change_robot(self, values):
        _require_known("robot", values, _ROBOT)
        given = {key: getattr(self, f"_{key}") for key in _ROBOT}
        changed = type(self)(self._name, **_without_none(given | values))
        vars(self).update({f"_{key}": getattr(changed, f"_{key}") for key in _ROBOT})

    def remove(self, what: str, name: str) -> None:
        """Remove a declaration, and all others that refer to it.

        With a body or frame, all bodies that it carries are removed, and the joints, loops, constraints, couplings,
        actuators, home values, independent coordinates and outputs that refer to any of these or their coordinates.
        Custom rows (:meth:`custom`) remain; they must fit the remaining robot.

        Parameters
        ----------
        what : str
            "body", "frame", "loop", "constraint", "actuator", "shape" or "element" (a force element). A joint is
            removed with its body; to lock it instead, change its kind to fixed, or see `liedyn.reduced`.
        name : str

        Raises
        ------
        ModelError
            An unknown name, or a joint.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("panda"))
        >>> b.remove("body", "panda_link6")
        >>> b.build().velocity_names[-1]
        'panda_joint5'
        """
        things, k = self._find(what, name)
        if what == "joint":
            raise ModelError(f"joint {shown(name)}: goes with body {shown(things[k].child)}; remove that, or change "
                             "the kind of the joint to fixed")
        if what in ("body", "frame"):
            self._drop(bodies=self._carried({name}))
        elif what in ("actuator", "element", "shape"):
            del things[k]
        else:
            self._drop(others={name})

    def attach(self, robot: Robot, to: str, prefix: str, placement: ArrayLike | None = None, joint: str = "fixed",
               **more: Any) -> None:
        """Attach another robot: its ground is fixed to a body or frame of this one.

        All its names get the prefix; its ground becomes the frame ``<prefix>ground``, or if `joint` is not fixed, the
        body of this name. So it keeps the joints to its ground: a floating robot still floats. Its gravity is ignored.
        If one of the two robots has actuators and the other has none, each coordinate of the other gets an actuator, as
        all were inputs before. Independent coordinates are those of both, if both have declared them or are trees; else
        they are chosen automatically.

        Parameters
        ----------
        robot : Robot
        to : str
            Name of the body or frame to which it is attached, or ``"ground"``.
        prefix : str
            Prefix of all its names.
        placement : array_like, shape (4, 4) or (3,), optional
            Pose of its ground in that body or frame.
        joint : str
            Kind of the joint between the two, whose name is also ``<prefix>ground``.
        **more
            Further arguments of that joint, as for :meth:`joint`.

        Raises
        ------
        InputError
            `robot` is not a Robot.
        ModelError
            Custom rows, which depend on all coordinates of their robot; or a value that does not fit.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("panda"))
        >>> b.attach(ld.load("five_bar"), to="panda_hand", prefix="tool_", placement=(0.0, 0.0, 0.2))
        >>> b.build().velocity_names[-2:]
        ('tool_q3', 'tool_q4')
        """
        require_robot(robot)
        prefix, base = validation.text("attach", "prefix", prefix), f"{prefix}{GROUND}"
        model = robot.model_as_is()
        require_no_custom_rows("attach", robot)
        before = self._model()
        if validation.text("attach", "joint", joint) == "fixed":
            _require_known("attach", more, ())
            self.frame(base, to, placement)
            moves = ()
        else:
            self.joint(base, joint, to, base, placement, **more)
            self.body(base)
            moves = _velocities_of(self._joints[-1:])
        if bool(before.actuators) != bool(model.actuators):
            self._actuators = list(before.actuators or _actuators_of(before.joints))
            model = replace(model, actuators=model.actuators or _actuators_of(model.joints))
        mine, theirs, declared = _choice(before), _choice(model), before.independent or model.independent
        self._declare_again(_prefixed(model, prefix))
        self._home |= {prefix + name: value for name, value in model.home.items()}
        known = declared and mine is not None and theirs is not None
        self._independent = mine + moves + tuple(prefix + name for name in theirs) if known else ()
        self._outputs += tuple(f"{kind}{colon}{prefix}{name}" for kind, colon, name in map(_parts, model.outputs))

    def _lists(self):
        """The lists of declarations, by what they contain."""
        return {"body": self._bodies, "frame": self._frames, "joint": self._joints, "loop": self._loops,
                "constraint": self._constraints, "actuator": self._actuators, "element": self._elements,
                "shape": self._shapes}

    def _declare_again(self, model):
        for things, more in zip(self._lists().values(), (
                model.bodies, model.frames, model.joints, model.loops, model.constraints, model.actuators,
                model.elements, model.shapes)):
            things += more

    def _find(self, what, name, more=()):
        """The list with a thing, and its index there."""
        lists = self._lists()
        if not isinstance(what, str) or what not in lists:
            raise ModelError(f"unknown kind of thing {shown(what)}, {suggestion(what, [*lists, *more])}")
        names = [each.name for each in lists[what]]
        if not isinstance(name, str) or name not in names:
            raise ModelError(f"unknown {what} {shown(name)}, {suggestion(name, names)}")
        return lists[what], names.index(name)

    def _carried(self, bodies):
        """All bodies and frames that some bodies carry, including these."""
        carried = set(bodies)
        for joint in depth_first([*self._joints, *(frame.joint for frame in self._frames)]):
            if joint.parent in carried:
                carried.add(joint.child)
        return carried

    def _lost_with(self, bodies, gone, others):
        """Names of `others`, of loops and constraints that hold these bodies or coordinates; coordinates of loops."""
        others = others | {each.name for each in self._loops + self._constraints
                           if getattr(each, "bodies", {each.parent, each.child}) & bodies
                           or gone & getattr(each, "coefficients", {}).keys()}
        return others, {loop.name + suffix for loop in self._loops if loop.name in others
                        for suffix in LOOP_KINDS[loop.kind].velocities}

    def _drop(self, bodies=frozenset(), joints=frozenset(), others=frozenset()):
        """Remove bodies and frames, coordinates of joints, loops and constraints, and all declarations that name one of
        them.

        For `joints` only the coordinates are removed, as these joints no longer move.
        """
        still = {joint.name for joint in self._joints if joint.child in bodies} | joints
        gone = {x for joint in self._joints if joint.name in still for x in coordinates_of(joint)}
        others, virtual = self._lost_with(bodies, gone, others)
        lost = gone | virtual  # coordinates
        self._actuators[:] = [each for each in self._actuators
                              if not (each.bodies & bodies or lost & each.gears.keys())]
        self._elements[:] = [each for each in self._elements
                             if not (each.bodies & bodies or lost & each.coefficients.keys())]
        for things in (self._loops, self._constraints):
            things[:] = [each for each in things if each.name not in others]
        self._home = {name: value for name, value in self._home.items() if name not in gone | still}
        self._independent = tuple(name for name in self._independent if name not in lost)
        self._outputs = tuple(each for each in self._outputs if _parts(each)[2] not in (
            bodies if _parts(each)[0] in _OF_BODIES else gone | still | virtual | others))
        for things, key in ((self._bodies, "name"), (self._frames, "name"), (self._joints, "child"),
                            (self._shapes, "body")):
            things[:] = [each for each in things if getattr(each, key) not in bodies]


def coordinates_of(joint):
    """Names of the coordinates of a joint in q, followed by those in v with other names."""
    kind = JOINT_KINDS[joint.kind]
    return tuple(dict.fromkeys(joint.name + suffix for suffix in kind.coordinates + kind.velocities))


def require_no_custom_rows(what, robot):
    """Raise if a constraint is given by users' functions."""
    for each in robot.model.constraints:
        if each.kind == "custom":
            raise ModelError(f"{what}, constraint {shown(each.name)}: its functions take the coordinates of "
                             f"{shown(robot.name)}, and no others")


def _without_none(values):
    return {key: value for key, value in values.items() if value is not None}


def _require_known(owner, values, known):
    for key in values:
        if key not in known:
            raise ModelError(f"{owner}: unknown key {shown(key)}, {suggestion(key, known)}")


def _parts(output):
    """The kind of an output, the text after the colon, and the name in it."""
    return output.partition(":") if ":" in output else ("", "", output)


def _velocities_of(joints):
    return tuple(joint.name + suffix for joint in joints for suffix in JOINT_KINDS[joint.kind].velocities)


def _choice(model):
    """The independent coordinates of a model; for a tree all coordinates; None if they are chosen automatically."""
    if model.independent:
        return model.independent
    return None if model.loops or model.constraints else _velocities_of(model.joints)


def _actuators_of(joints):
    """One actuator for each driven velocity coordinate: the inputs of a robot that declares none."""
    return tuple(Actuator(name, {name: 1.0}) for name in _velocities_of(each for each in joints if each.driven))


def _prefixed(model, prefix):
    """A model with a prefix before all names, including that of the ground."""
    def named(each):
        names = {key: prefix + getattr(each, key) for key in ("name", "body", "parent", "child")
                 if getattr(each, key, None) is not None}
        if hasattr(each, "stations"):
            names["stations"] = tuple(replace(station, body=prefix + station.body) for station in each.stations)
        for key in ("coefficients", "gears"):
            if getattr(each, key, None):
                names[key] = {prefix + name: value for name, value in getattr(each, key).items()}
        return replace(each, **names)

    def measured(each, from_ground):
        return replace(each, measure=replace(named(each.measure), **({"parent": GROUND} if from_ground else {})))

    elements = tuple(measured(each, each.law in APPLIED) for each in model.elements)
    actuators = tuple(named(each) if isinstance(each, Actuator) else measured(each, isinstance(each, Thruster))
                      for each in model.actuators)
    return replace(model, elements=elements, actuators=actuators, **{key: tuple(map(named, getattr(model, key)))
                   for key in ("bodies", "frames", "joints", "loops", "constraints", "shapes")})
