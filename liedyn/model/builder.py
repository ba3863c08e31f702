"""Build a robot in Python: bodies, joints, loops and actuators by name, in any order."""

import numpy as np

from liedyn.arguments import require_robot
from liedyn.errors import ModelError, shown
from liedyn.model import validation
from liedyn.model.build import build
from liedyn.model.description import Actuator, Body, Constraint, Joint, Loop, Model
from liedyn.model.kinds import CONSTRAINT_KINDS, JOINT_KINDS, LOOP_KINDS, neutral
from liedyn.model.numbers import numbers


class Builder:
    """Collects the parts of a robot; :meth:`build` checks the whole and returns the robot.

    Numbers are checked when they are declared: they must be finite and at most 1e30, which leaves room for their
    products. Names are checked when the robot is built.

    Parameters
    ----------
    name : str
    gravity : array_like, shape (3,)
        [m/s^2]
    home : dict, optional
        Home configuration: value by coordinate name, or list of values by joint name. What is not named is neutral.
    independent : sequence of str
        Default choice of independent coordinates.
    outputs : sequence of str
        Default outputs of the linearized system.
    description, source : str
        What the robot is, and where its numbers come from.

    Examples
    --------
    >>> b = Builder("pendulum", gravity=(0, -9.81, 0))
    >>> b.body("rod", mass=1.0, com=(0, -0.5, 0), inertia=(1/12, 0, 1/12))
    >>> b.joint("pivot", "revolute", parent="ground", child="rod", axis=(0, 0, 1))
    >>> robot = b.build()
    >>> robot.nq, robot.coordinate_names
    (1, ('pivot',))
    """

    def __init__(
        self, name, gravity=(0.0, 0.0, -9.81), home=None, independent=(), outputs=(), description="", source=""
    ):
        owner, self._name = validation.owner_of("robot", name), name
        self._gravity = numbers(owner, "gravity", gravity, (3,))
        self._home = validation.table(owner, "home", {} if home is None else home)
        self._independent = validation.names(owner, "independent", independent)
        self._outputs = validation.names(owner, "outputs", outputs)
        self._description = validation.prose(owner, "description", description)
        self._source = validation.prose(owner, "source", source)
        self._bodies, self._joints, self._loops, self._constraints, self._actuators = [], [], [], [], []

    def body(self, name, mass=0.0, com=(0.0, 0.0, 0.0), inertia=(0.0, 0.0, 0.0)):
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
            An inertia that no real body has: its largest principal moment exceeds the sum of the other two.
        """
        owner = validation.owner_of("body", name)
        self._bodies.append(Body(
            name,
            validation.mass(owner, mass),
            numbers(owner, "com", com, (3,)),
            validation.inertia(owner, inertia),
        ))

    def joint(
        self, name, kind, parent, child, placement=None, axis=None, axis2=None, pitch=None, limits=None,
        velocity_limit=None, effort_limit=None, armature=0.0, damping=0.0, stiffness=0.0, rest=None,
    ):
        """Declare a joint of the tree.

        Quantities per degree of freedom take one number for all or a list in the order of the coordinates' names.

        Parameters
        ----------
        name : str
        kind : str
            fixed, revolute, prismatic, helical, cylindrical, universal, planar, translational, spherical or free.
        parent, child : str
            Names of bodies; the parent may be ``"ground"``.
        placement : array_like, shape (4, 4) or (3,), optional
            Joint frame in the parent body (three numbers: its origin); the child frame when the joint is at zero.
        axis, axis2 : array_like, shape (3,), optional
            In the joint frame, of any length. Default: z; x and y for a universal joint, which alone has two. The plane
            of a planar joint has the x and y axes of the joint frame, turned by the smallest rotation from z to `axis`.
        pitch : float
            Advance of a helical joint [m/rad].
        limits : array_like, shape (nq, 2) or (2,), optional
            Lowest and highest values of the coordinates.
        velocity_limit, effort_limit : float or array_like, shape (nv,), optional
        armature, damping, stiffness : float or array_like, shape (nv,)
            Rotor inertia, viscous damping, spring stiffness. Spherical and free joints want equal stiffness in all
            three directions (of rotation, and of translation).
        rest : float or array_like, shape (nq,), optional
            Where the springs are at rest; default neutral.

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
            rest=validation.rest(owner, form, rest, neutral(form)),
        ))

    def loop(
        self, name, kind, parent, child, parent_placement=None, child_placement=None, axis=None, axis2=None, pitch=None,
        active=True, target=None,
    ):
        """Declare a cut joint, which closes a loop between two bodies.

        Parameters
        ----------
        name : str
        kind : str
            Any joint kind but free; ``"weld"``, the same as fixed; or ``"inline"``: the origin of frame B stays on the
            line along `axis` through the origin of frame A, which is how a pin closes a loop of a planar mechanism with
            two rows.
        parent, child : str
            Names of bodies; either may be ``"ground"``.
        parent_placement, child_placement : array_like, shape (4, 4) or (3,), optional
            Frame A in the parent, frame B in the child; the motion A^-1 B is that of the joint kind.
        axis, axis2, pitch
            As for :meth:`joint`, in the cut frames.
        active : bool
            Switched on at first? See :meth:`Robot.switched`.
        target : callable, optional
            Moves frame A relative to `parent_placement`, a function of time (Python, or compiled by Numba): returns
            position, velocity and acceleration (x, xd, xdd), 3 numbers each in the axes of `parent_placement` [m], or
            a pose (4, 4), a twist (6,) and its rate (6,), body-fixed in the moving frame.

        Raises
        ------
        ModelError
            An unknown kind, or a value that does not fit it.
        """
        owner = validation.owner_of("loop", name)
        if validation.text(owner, "kind", kind) == "free":
            raise ModelError(f"{owner}, kind: a free loop constrains nothing")
        kind = validation.choice(owner, "kind", "fixed" if kind == "weld" else kind, LOOP_KINDS)
        form = LOOP_KINDS[kind]
        self._loops.append(Loop(
            name, kind, validation.text(owner, "parent", parent), validation.text(owner, "child", child),
            parent_placement=validation.pose(owner, "parent_placement", parent_placement),
            child_placement=validation.pose(owner, "child_placement", child_placement),
            axes=validation.axes(owner, kind, form, (axis, axis2)),
            pitch=validation.pitch(owner, kind, form, pitch),
            active=validation.flag(owner, "active", active),
            target=validation.function(owner, "target", target),
        ))

    def constraint(
        self, name, kind, parent=None, child=None, parent_placement=None, child_placement=None, axis=None,
        child_axis=None, length=None, radius=None, parent_radius=None, rolling=None, inside=None, coefficients=None,
        offset=0.0, active=True, target=None, unilateral=False, restitution=None, friction=None,
    ):
        """Declare a constraint that is no cut joint: between a frame A on the parent and a frame B on the child.

        Parameters
        ----------
        name : str
        kind : str
            distance (a rod of `length` between the origins), on_sphere, on_plane, on_cylinder, on_circle (the origin of
            B stays on a surface or curve of the parent: of `radius`, with `axis`), knife_edge (the origin of B does not
            slip along `child_axis`), disk_on_plane (a disk of `radius` with axle `child_axis`), sphere_on_plane (of
            `radius`), sphere_on_sphere (of `radius` on one of `parent_radius`, or inside it), coupling (gear, rack: the
            sum of `coefficients` times coordinates is `offset`).
        parent, child : str, optional
            Names of bodies; either may be ``"ground"``. A coupling has none.
        parent_placement, child_placement : array_like, shape (4, 4) or (3,), optional
            Frame A in the parent, frame B in the child.
        axis : array_like, shape (3,), optional
            Normal of a plane, axis of a cylinder or circle, in frame A; default z.
        child_axis : array_like, shape (3,), optional
            In frame B.
        length : float
            Of a rod [m].
        radius, parent_radius : float
            [m]
        rolling : bool
            Disks and spheres: roll without slip (the default), or slide without friction.
        inside : bool
            Sphere inside a sphere.
        coefficients : dict
            Coefficient by name of a coordinate with one degree of freedom: ``{"wheel": 1.0, "rack": -20.0}``.
        offset : float
            Value of a coupling's sum.
        active : bool or str
            Switched on at first? Takes what :meth:`Robot.switched` takes.
        target : callable, optional
            Moves frame A, as for :meth:`loop`. For a coupling: returns x, its rate and the rate of that, three numbers,
            and the sum is `offset` + x; with one coordinate, x drives it.
        unilateral : bool or {"above", "below"}
            A contact or a stop, which can only push: the residual of the first row, its gap, stays >= 0 (True or
            ``"above"``: on the side of a plane that its axis points to, outside a surface, a rod that can only get
            longer) or <= 0 (``"below"``: inside, a rope, an upper stop). It is closed and opened by `simulate`,
            `forward_dynamics` and `linearize` as the state demands. For all kinds but on_circle and knife_edge.
        restitution : float, optional
            Of a unilateral constraint: part of the approach speed that an impact gives back, 0 to 1; default 0.
        friction : float, optional
            Of a unilateral constraint between bodies: Coulomb's coefficient, for sticking and for sliding; default 0.
            It adds rows for the tangential motion. Disks and spheres with ``rolling=True`` and no `friction` never
            slip while they touch (``numpy.inf``).

        Raises
        ------
        ModelError
            An unknown kind, a parameter that is missing or that the kind does not have, or a value that does not fit.
        """
        owner = validation.owner_of("constraint", name)
        validation.choice(owner, "kind", kind, [k for k in (*CONSTRAINT_KINDS, "on_sphere") if k != "custom"])
        if kind == "on_sphere":
            kind, length, radius = "distance", radius, None
            validation.given(owner, "radius", length)
        form = CONSTRAINT_KINDS[kind]
        values = {"axis": axis, "child_axis": child_axis, "length": length, "radius": radius,
                  "parent_radius": parent_radius, "rolling": rolling, "inside": inside}
        validation.parameters(owner, kind, form, values)
        side, restitution, friction = validation.contact(owner, kind, form, unilateral, restitution, friction, rolling)
        common = {"side": side, "restitution": restitution, "friction": friction,
                  "active": validation.switch(owner, active, side),
                  "target": validation.function(owner, "target", target)}
        if form.coefficients:
            self._constraints.append(Constraint(
                name, kind, rows=form.rows, holonomic=form.holonomic,
                coefficients=validation.coefficients(owner, form, coefficients),
                offset=float(numbers(owner, "offset", offset, ())), **common))
            return
        sizes = {key: validation.positive(owner, key, values[key]) for key in ("length", "radius", "parent_radius")}
        rolls = rolling is None or validation.flag(owner, "rolling", rolling)
        rows = form.rows if rolls or "rolling" not in form.takes else form.rows[:form.holonomic]
        if side:  # tangential rows where there is friction
            rows = form.rows[:form.holonomic] + (form.tangential or form.rows[form.holonomic:] if friction else ())
        sign = -1.0 if inside is not None and validation.flag(owner, "inside", inside) else 1.0
        on_curve = kind in ("on_cylinder", "on_circle")
        z = (0.0, 0.0, 1.0)
        self._constraints.append(Constraint(
            name, kind, validation.text(owner, "parent", parent), validation.text(owner, "child", child),
            parent_placement=validation.pose(owner, "parent_placement", parent_placement),
            child_placement=validation.pose(owner, "child_placement", child_placement),
            axis=validation.unit(owner, "axis", z if axis is None else axis),
            child_axis=validation.unit(owner, "child_axis", z if child_axis is None else child_axis),
            length=sizes["radius"] if on_curve else sizes["length"] + sizes["parent_radius"],
            radius=0.0 if on_curve else sign * sizes["radius"],
            rows=rows,
            holonomic=form.holonomic,
            **common,
        ))

    def stops(self, joints=None, restitution=0.0):
        """Make the limits of joints end stops: one-sided couplings ``<coordinate>.lower`` and ``<coordinate>.upper``.

        Parameters
        ----------
        joints : sequence of str, optional
            Names of joints; by default all that have finite limits and whose coordinates are numbers (balls and free
            joints have quaternions).
        restitution : float
            As for :meth:`constraint`.

        Raises
        ------
        ModelError
            An unknown joint, or one that was named and has no finite limit that could be a stop.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("panda"))
        >>> b.stops(["panda_joint1"])
        >>> b.build().constraint_names
        ('panda_joint1.lower', 'panda_joint1.upper')
        """
        known = {joint.name: None for joint in self._joints}
        for name in () if joints is None else validation.names("stops", "joints", joints):
            validation.choice("stops", "joints", name, known)
        for joint in self._joints:
            form = JOINT_KINDS[joint.kind]
            if joints is not None and joint.name not in joints:
                continue
            bounds = joint.limits if form.nq == form.nv else np.empty((0, 2))
            if joints is not None and not np.isfinite(bounds).any():
                raise ModelError(f"stops, joint {shown(joint.name)}: has no finite limit on a coordinate that is a "
                                 "number")
            for suffix, values in zip(form.coordinates, bounds):
                for end, side, value in zip((".lower", ".upper"), ("above", "below"), values):
                    if np.isfinite(value):
                        self.constraint(f"{joint.name}{suffix}{end}", "coupling", offset=value, unilateral=side,
                                        coefficients={joint.name + suffix: 1.0}, restitution=restitution)

    def custom(self, name, jacobian, bias, derivatives, force_derivative, residual=None, drift=None, rows=1,
               active=True):
        """Declare rows of your own: ``G(q, t) v + drift(q, t) = 0``, from functions and their derivatives.

        Compiled functions (``@njit``) run inside the kernels at full speed; Python functions work and are slow. All
        arrays are float64; derivatives by q are along the tangent. `liedyn.constraints.check_constraint` compares them
        with differences; `liedyn.symbolic.constraint` writes them from a SymPy expression. Where one raises, or returns
        anything but finite numbers of these shapes, whatever needs it raises an `InputError` that names it and the
        state.

        Parameters
        ----------
        name : str
        jacobian : callable
            ``(t, q) -> G``, shape (rows, nv).
        bias : callable
            ``(t, q, v) -> phi_0``, shape (rows,): rate of ``G v + drift`` along the motion at zero acceleration.
        derivatives : callable
            ``(t, q, v, a) -> (psi_q, phi_q, phi_v)``, each (rows, nv): of psi = G v + drift by q, and of
            phi = G a + phi_0 by q and v.
        force_derivative : callable
            ``(t, q, lam) -> d(G^T lam)/dq``, shape (nv, nv).
        residual : callable, optional
            ``(t, q) -> g``, shape (rows,), with dg/dt = G v + drift: the rows are holonomic. Without it they are not.
        drift : callable, optional
            ``(t, q) -> (rows,)``; zero if left out.
        rows : int
            How many rows there are.
        active : bool
            Switched on at first? See :meth:`Robot.switched`.

        Raises
        ------
        ModelError
            Something is not a function, or a number of rows is not positive.
        """
        owner = validation.owner_of("constraint", name)
        functions = {"residual": residual, "jacobian": jacobian, "drift": drift, "bias": bias,
                     "derivatives": derivatives, "force_derivative": force_derivative}
        for key in ("jacobian", "bias", "derivatives", "force_derivative"):
            validation.given(owner, key, functions[key])
        functions = {key: validation.function(owner, key, each) for key, each in functions.items() if each is not None}
        if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
            raise ModelError(f"{owner}, rows: expected a positive whole number, got {shown(rows)}")
        self._constraints.append(Constraint(
            name, "custom", rows=tuple(f".row{k + 1}" for k in range(rows)), holonomic=rows if residual else 0,
            functions=functions, active=validation.flag(owner, "active", active)))

    @classmethod
    def of(cls, robot):
        """A builder that has declared all of an existing robot as it is, with its switches and targets, to add to it.

        Parameters
        ----------
        robot : Robot

        Returns
        -------
        Builder

        Raises
        ------
        InputError
            It is no robot.

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
        builder._bodies, builder._joints = list(model.bodies), list(model.joints)
        builder._loops, builder._constraints = list(model.loops), list(model.constraints)
        builder._actuators = list(model.actuators)
        return builder

    def actuator(self, name, coordinate, gear=1.0):
        """Declare an input u: tau[coordinate] += gear * u. A robot without actuators is driven by all of tau.

        Parameters
        ----------
        name : str
        coordinate : str
            Velocity coordinate that is driven.
        gear : float
            Generalised force for one unit of the input.

        Raises
        ------
        ModelError
            A gear that is not a finite number.
        """
        owner = validation.owner_of("actuator", name)
        gear = float(numbers(owner, "gear", gear, ()))
        self._actuators.append(Actuator(name, validation.text(owner, "coordinate", coordinate), gear))

    def build(self):
        """Check the whole and return the robot.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            Unknown or duplicate names, bodies that the ground does not hold, cycles, a body held by two joints, bodies
            without inertia that leave the mass matrix singular; too many of them for the memory there is.
        """
        try:
            return build(self._model())
        except MemoryError as error:
            raise ModelError(f"robot {shown(self._name)}: {len(self._joints)} joints are too many: {error}") from None

    def _model(self):
        """What has been declared so far."""
        return Model(
            self._name, self._gravity, tuple(self._bodies), tuple(self._joints), tuple(self._loops),
            tuple(self._actuators), dict(self._home), self._independent, self._outputs, tuple(self._constraints),
            self._description, self._source,
        )
