"""Build a robot in Python: bodies, frames, joints, loops and actuators by name, in any order."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.machine.arguments import require_robot
from liedyn.machine.errors import ModelError, shown
from liedyn.model import validation
from liedyn.model.build import build
from liedyn.model.cable_builder import CableBuilder
from liedyn.model.constraint_builder import ConstraintBuilder
from liedyn.model.description import GROUND, Actuator, Body, Constraint, Cylinder, Frame, Joint, Model, Thruster
from liedyn.model.editing import Editor
from liedyn.model.element_builder import ElementBuilder, displacement
from liedyn.model.kinds import CONSTRAINT_KINDS, JOINT_KINDS, neutral
from liedyn.model.numbers import numbers
from liedyn.model.shape_builder import ShapeBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike


class Builder(CableBuilder, ConstraintBuilder, ElementBuilder, ShapeBuilder, Editor):
    """Collects the parts of a robot; :meth:`build` checks them together and returns the robot.

    Numbers are checked when they are declared: they must be finite and at most 1e30, which leaves room for their
    products. Names are checked when the robot is built.

    Parameters
    ----------
    name : str
    gravity : array_like, shape (3,)
        [m/s^2]
    home : dict, optional
        Home configuration: value by coordinate name, or list of values by joint name. Coordinates that are not named
        are neutral.
    independent : sequence of str
        Default choice of independent coordinates.
    outputs : sequence of str
        Default outputs of the linearized system.
    description, source : str
        Description of the robot, and the source of its parameters.

    Examples
    --------
    >>> b = Builder("pendulum", gravity=(0, -9.81, 0))
    >>> b.body("rod", mass=1.0, com=(0, -0.5, 0), inertia=(1/12, 0, 1/12))
    >>> b.joint("pivot", "revolute", parent="ground", child="rod", axis=(0, 0, 1))
    >>> robot = b.build()
    >>> robot.nq, robot.coordinate_names
    (1, ('pivot',))
    """

    def __init__(self, name: str, gravity: ArrayLike = (0.0, 0.0, -9.81), home: dict[str, Any] | None = None,
                 independent: Sequence[str] = (), outputs: Sequence[str] = (), description: str = "",
                 source: str = "") -> None:
        owner, self._name = validation.owner_of("robot", name), name
        self._gravity = numbers(owner, "gravity", gravity, (3,))
        self._home = validation.table(owner, "home", {} if home is None else home)
        self._independent = validation.names(owner, "independent", independent)
        self._outputs = validation.names(owner, "outputs", outputs)
        self._description = validation.prose(owner, "description", description)
        self._source = validation.prose(owner, "source", source)
        self._bodies, self._frames, self._joints, self._shapes = [], [], [], []
        self._loops, self._constraints, self._actuators = [], [], []
        self._elements = []

    def body(self, name: str, mass: float = 0.0, com: ArrayLike = (0.0, 0.0, 0.0),
             inertia: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        """Declare a body; without numbers it is massless.

        Parameters
        ----------
        name : str
        mass : float
            [kg]
        com : array_like, shape (3,)
            Centre of mass in the body frame [m].
        inertia : array_like, shape (3, 3) or (3,)
            Rotational inertia about the centre of mass in body axes [kg m^2]; three numbers are its diagonal.

        Raises
        ------
        ModelError
            A value that is not finite, a negative mass, or an inertia that is not symmetric or has a negative moment.

        Warns
        -----
        ModelWarning
            An inertia that is physically impossible: its largest principal moment exceeds the sum of the other two.
        """
        owner = validation.owner_of("body", name)
        self._bodies.append(Body(name, validation.mass(owner, mass), numbers(owner, "com", com, (3,)),
                                 validation.inertia(owner, inertia)))

    def frame(self, name: str, body: str, placement: ArrayLike | None = None) -> None:
        """Declare a named frame, fixed in a body.

        Its name can be used like that of a body: for poses and Jacobians, as the parent of joints, as an end of loops
        and constraints (placements are then relative to the frame), for external wrenches, in outputs. It cannot be the
        child of a joint.

        Parameters
        ----------
        name : str
        body : str
            Name of the body or frame in which it is fixed; may be ``"ground"``.
        placement : array_like, shape (4, 4) or (3,), optional
            Pose of the frame in that body or frame (three numbers: its origin).

        Raises
        ------
        ModelError
            An invalid placement.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("panda"))
        >>> b.frame("tool", "panda_hand", placement=(0.0, 0.0, 0.1))
        >>> panda = b.build()
        >>> panda.frame_names, ld.pose(panda, panda.home, "tool").shape
        (('tool',), (4, 4))
        """
        owner = validation.owner_of("frame", name)
        self._frames.append(Frame(
            name, validation.text(owner, "body", body), validation.pose(owner, "placement", placement)))

    def joint(self, name: str, kind: str, parent: str, child: str, placement: ArrayLike | None = None,
              axis: ArrayLike | None = None, axis2: ArrayLike | None = None, pitch: float | None = None,
              limits: ArrayLike | None = None, velocity_limit: float | ArrayLike | None = None,
              effort_limit: float | ArrayLike | None = None, armature: float | ArrayLike = 0.0,
              damping: float | ArrayLike = 0.0, stiffness: float | ArrayLike = 0.0,
              rest: float | ArrayLike | None = None, driven: bool = True) -> None:
        """Declare a joint of the tree.

        Quantities per degree of freedom are one number for all, or a list in the order of the coordinates' names.

        Parameters
        ----------
        name : str
        kind : str
            fixed, revolute, prismatic, helical, cylindrical, universal, planar, translational, spherical or free.
        parent, child : str
            Names of bodies; the parent may be ``"ground"`` or a frame.
        placement : array_like, shape (4, 4) or (3,), optional
            Joint frame in the parent (three numbers: its origin); the child frame when the joint is at zero.
        axis, axis2 : array_like, shape (3,), optional
            In the joint frame, of any length. Default: z; x and y for a universal joint, which alone has two. The plane
            of a planar joint has the x and y axes of the joint frame, turned by the smallest rotation from z to `axis`.
        pitch : float
            Advance of a helical joint [m/rad].
        limits : array_like, shape (nq, 2) or (2,), optional
            Lowest and highest values of the coordinates.
        velocity_limit, effort_limit : float or array_like, shape (nv,), optional
        armature, damping, stiffness : float or array_like, shape (nv,)
            Rotor inertia, viscous damping, spring stiffness. Spherical and free joints need equal stiffness in all
            three directions (of rotation, and of translation).
        rest : float or array_like, shape (nq,), optional
            Configuration in which the springs are at rest; default neutral.
        driven : bool
            If true, and no actuators are declared, its velocity coordinates are inputs. Readers of files set it to
            false for free joints, as a floating base is not driven.

        Raises
        ------
        ModelError
            An unknown kind, or a value that does not fit it.
        """
        owner = validation.owner_of("joint", name)
        form = JOINT_KINDS[validation.choice(owner, "kind", kind, JOINT_KINDS)]
        nv = form.nv
        self._joints.append(Joint(
            name, kind, validation.text(owner, "parent", parent), validation.text(owner, "child", child),
            placement=validation.pose(owner, "placement", placement),
            axes=validation.axes(owner, kind, form, (axis, axis2)),
            pitch=validation.pitch(owner, kind, form, pitch),
            limits=validation.limits(owner, limits, form.nq),
            velocity_limit=validation.bound(owner, "velocity_limit", velocity_limit, nv),
            effort_limit=validation.bound(owner, "effort_limit", effort_limit, nv),
            armature=validation.not_negative(owner, "armature", armature, nv),
            damping=validation.not_negative(owner, "damping", damping, nv),
            stiffness=validation.stiffness(owner, form, stiffness),
            rest=validation.rest(owner, form, rest, neutral(form)), driven=validation.flag(owner, "driven", driven)))

    @classmethod
    def of(cls, robot: Robot) -> Builder:
        """A builder with all declarations of an existing robot, including its switches and targets. They can then be
        added to, or edited by :meth:`change`, :meth:`remove` and :meth:`attach`.

        Parameters
        ----------
        robot : Robot

        Returns
        -------
        Builder

        Raises
        ------
        InputError
            `robot` is not a Robot.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("panda"))
        >>> b.constraint("table", "on_plane", "ground", "panda_hand", parent_placement=(0, 0, 0.3))
        >>> b.build().constraint_names
        ('table',)
        """
        require_robot(robot)
        model = robot.model_as_is()
        builder = cls(model.name, model.gravity, model.home, model.independent, model.outputs, model.description,
                      model.source)
        builder._declare_again(model)
        return builder

    def actuator(self, name: str, coordinate: str | dict[str, Any], gear: float = 1.0) -> None:
        """Declare an input u: tau[coordinate] += gear * u. Without actuators all velocity coordinates are inputs,
        except those of joints declared with ``driven=False``.

        Parameters
        ----------
        name : str
        coordinate : str or dict
            Driven velocity coordinate, of the tree or of a cut joint (``robot.virtual_names``); or several with a gear
            for each, as for a tendon or a differential: ``{"left": 1.0, "right": -1.0}``.
        gear : float
            Generalised force for one unit of the input; multiplies the gears of several coordinates.

        Raises
        ------
        ModelError
            A gear that is not a finite number, or no coordinate.
        """
        owner = validation.owner_of("actuator", name)
        gear = float(numbers(owner, "gear", gear, ()))
        gears = validation.by_coordinate(owner, "coordinate", coordinate if isinstance(coordinate, dict) else
                                         {validation.text(owner, "coordinate", coordinate): 1.0})
        self._actuators.append(Actuator(name, {each: gear * ratio for each, ratio in gears.items()}))

    def cylinder(self, name: str, parent: str, child: str, parent_placement: ArrayLike | None = None,
                 child_placement: ArrayLike | None = None, gear: float = 1.0) -> None:
        """Declare an input u between two points, such as a hydraulic cylinder: the force gear * u drives them apart.

        Parameters
        ----------
        name : str
        parent, child : str
            Names of bodies or frames; either may be ``"ground"``.
        parent_placement, child_placement : array_like, shape (4, 4) or (3,), optional
            The points: origins of frames in the two bodies.
        gear : float
            Force for one unit of the input [N]; if the input is the pressure of a cylinder, its area.

        Raises
        ------
        ModelError
            A gear that is not a finite number, or an invalid placement.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("five_bar"))
        >>> b.cylinder("ram", "ground", "link2", (0.0, 0.4, 0.0), (0.1, 0.0, 0.0))
        >>> b.build().actuator_names
        ('ram',)
        """
        owner = validation.owner_of("actuator", name)
        form = CONSTRAINT_KINDS["distance"]
        self._actuators.append(Cylinder(Constraint(
            name, "distance", validation.text(owner, "parent", parent), validation.text(owner, "child", child),
            parent_placement=validation.pose(owner, "parent_placement", parent_placement),
            child_placement=validation.pose(owner, "child_placement", child_placement),
            rows=form.rows[:1], holonomic=1), float(numbers(owner, "gear", gear, ()))))

    def thruster(self, name: str, body: str, placement: ArrayLike | None = None, force: ArrayLike = (0.0, 0.0, 1.0),
                 torque: ArrayLike = (0.0, 0.0, 0.0), axes: str = "body") -> None:
        """Declare an input u that is a wrench on a body, such as that of a propeller, a jet or a reaction wheel.

        At the origin of the frame act the force ``u * force`` and the moment ``u * torque``; a propeller about z that
        lifts with u newtons has ``torque=(0, 0, k)``, k [m] its drag torque by its thrust, positive or negative as it
        turns.

        Parameters
        ----------
        name : str
        body : str
            Name of a body or frame.
        placement : array_like, shape (4, 4) or (3,), optional
            The frame in the body.
        force, torque : array_like, shape (3,)
            For one unit of the input [N, N m].
        axes : str
            "body": force and torque turn with the frame; "world": their directions are those of the world, as of a
            crane's hook or a magnet.

        Raises
        ------
        ModelError
            A number that is not finite, no force and no torque, unknown axes, or the ground as the body.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder("rocket")
        >>> b.body("hull", mass=2.0, inertia=(0.1, 0.1, 0.02))
        >>> b.joint("flight", "free", "ground", "hull")
        >>> b.thruster("jet", "hull", placement=(0.0, 0.0, -0.5))
        >>> rocket = b.build()
        >>> ld.linearize(rocket, rocket.home, [0.0] * 6, u=[19.62]).B[-1].tolist()
        [0.5]
        """
        owner = validation.owner_of("actuator", name)
        if validation.text(owner, "body", body) == GROUND:
            raise ModelError(f"{owner}, body: nothing moves the ground")
        wrench = [float(x) for key, value in (("torque", torque), ("force", force))
                  for x in numbers(owner, key, value, (3,))]
        if not any(wrench):
            raise ModelError(f"{owner}: give a force or a torque for one unit of the input")
        axes = validation.choice(owner, "axes", axes, {"body": 0, "world": 0})
        self._actuators.append(Thruster(displacement(owner, name, GROUND, body, None, placement, key="placement"),
                                        tuple(wrench), axes))

    def build(self) -> Robot:
        """Check all declarations together and return the robot.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            Unknown or duplicate names, bodies not connected to the ground, cycles, a body that is the child of two
            joints, bodies without inertia that make the mass matrix singular; more of them than the memory can hold.
        """
        try:
            return build(self._model())
        except MemoryError as error:
            raise ModelError(f"robot {shown(self._name)}: {len(self._joints)} joints are too many: {error}") from None

    def _model(self):
        """The declarations so far."""
        return Model(
            self._name, self._gravity, tuple(self._bodies), tuple(self._joints), tuple(self._loops),
            tuple(self._actuators), dict(self._home), self._independent, self._outputs, tuple(self._constraints),
            self._description, self._source, tuple(self._elements), tuple(self._frames), tuple(self._shapes))
