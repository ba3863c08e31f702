"""The part of `Builder` that declares force elements: springs, bushings, friction, applied forces, other laws."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.errors import ModelError, shown
from liedyn.model import validation
from liedyn.model.description import GROUND, Constraint, Element, Loop
from liedyn.model.force_elements import BUSHING_NUMBERS
from liedyn.model.kinds import CONSTRAINT_KINDS
from liedyn.model.laws import LAWS, NamedLaw
from liedyn.model.numbers import any_numbers, numbers

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from liedyn.model.laws import GasSpring, Motor, PolynomialSpring
    from liedyn.typing import ArrayLike


class ElementBuilder:
    """Force elements; see :class:`Builder`."""

    def spring(self, name: str, parent: str, child: str, parent_placement: ArrayLike | None = None,
               child_placement: ArrayLike | None = None, length: float = 0.0, stiffness: float = 0.0,
               damping: float = 0.0, preload: float = 0.0,
               law: GasSpring | Motor | PolynomialSpring | Callable[..., Any] | Any | None = None) -> None:
        """Declare a spring and damper between two points: the force along the line between them.

        With x the distance of the points minus `length`, they are pulled together by ``stiffness x + damping dx/dt +
        preload``, or by the force of the law; a negative force pushes.

        Parameters
        ----------
        name : str
        parent, child : str
            Names of bodies; either may be ``"ground"``.
        parent_placement, child_placement : array_like, shape (4, 4) or (3,), optional
            The points: origins of frames in the two bodies.
        length : float
            Length at rest [m].
        stiffness, damping, preload : float
            [N/m, N s/m, N]
        law : GasSpring, Motor, PolynomialSpring, sympy.Expr or callable, optional
            Instead of these: a named law, such as :class:`liedyn.GasSpring` or :class:`liedyn.Motor`; an expression in
            the SymPy symbols x [m] and w [m/s], its rate (extra ``symbolic``); or a function ``law(x, w)`` that returns
            the force and its derivatives by x and by w, three numbers; best compiled (``@njit``), as a Python function
            is slow.

        Raises
        ------
        ModelError
            A number that is not finite, a negative length, or a law together with numbers; a law that fails at x = w =
            0.01, or does not return three numbers.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("five_bar"))
        >>> b.spring("return", "ground", "link1", parent_placement=(0.3, 0.5, 0.0), length=0.2, stiffness=50.0)
        >>> b.build().element_names
        ('return',)
        """
        owner = validation.owner_of("force element", name)
        length = float(numbers(owner, "length", length, ()))
        if length < 0.0:
            raise ModelError(f"{owner}, length: must not be negative, got {length}")
        form = CONSTRAINT_KINDS["distance"]
        self._add_element(owner, Constraint(
            name, "distance", validation.text(owner, "parent", parent), validation.text(owner, "child", child),
            parent_placement=validation.pose(owner, "parent_placement", parent_placement),
            child_placement=validation.pose(owner, "child_placement", child_placement),
            length=length, rows=form.rows[:1], holonomic=1), stiffness, damping, preload, law)

    def coordinate_force(self, name: str, coefficients: dict[str, Any], rest: float = 0.0, stiffness: float = 0.0,
                         damping: float = 0.0, preload: float = 0.0,
                         law: GasSpring | Motor | PolynomialSpring | Callable[..., Any] | Any | None = None) -> None:
        """Declare a spring and damper on a sum of coordinates, for a torsion bar, a tendon over pulleys or a motor.

        With x the sum of `coefficients` times coordinates minus `rest`, the force on each of them is its coefficient
        times ``-(stiffness x + damping dx/dt + preload)``, or minus the force of the law.

        Parameters
        ----------
        name : str
        coefficients : dict
            Coefficient by name of a coordinate with one degree of freedom: ``{"knee": 1.0}``.
        rest : float
            Value of the sum at rest.
        stiffness, damping, preload : float
            Ratios of the force [N, N m] to the sum of coordinates [m, rad] and to its rate, and a constant force.
        law : GasSpring, Motor, PolynomialSpring, sympy.Expr or callable, optional
            As for :meth:`spring`.

        Raises
        ------
        ModelError
            A number that is not finite, a coordinate that is unknown or part of a ball or free joint, or a law together
            with numbers; a law that fails at x = w = 0.01, or does not return three numbers.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("five_bar"))
        >>> b.coordinate_force("torsion_bar", {"q1": 1.0, "q2": -1.0}, stiffness=3.0, damping=0.1)
        >>> b.build().element_names
        ('torsion_bar',)
        """
        owner = validation.owner_of("force element", name)
        self._add_element(owner, _sum(owner, name, coefficients, rest), stiffness, damping, preload, law)

    def friction(self, name: str, coordinate: str | dict[str, Any], coulomb: float, static: float | None = None,
                 stribeck: float = 0.1, viscous: float = 0.0, width: float = 1e-3, active: bool | str = True) -> None:
        """Declare dry friction of a joint: Coulomb's, with Stribeck's decrease from static to sliding friction.

        The force against the motion at the rate w is ``(coulomb + (static - coulomb) exp(-(w / stribeck)^2)) tanh(w /
        width) + viscous w``. This is smooth: instead of sticking, the joint creeps at a rate below `width` at which
        friction balances the load. A small `width` makes the equations stiff: for steps h it should not be much below
        ``h coulomb / inertia``, unless an implicit method is used.

        With ``width=0`` the joint really sticks: at rest friction is whatever holds it, up to `static`, and it moves
        only under more. That is a one-sided constraint of this name instead of a force element, whose modes are
        "sticking" and "sliding" like those of contacts (:attr:`Robot.contacts`), decided by the state together with
        theirs; :meth:`Robot.switched` switches it as one of them. The multiplier of its row
        ``<name>.force`` is the friction, against positive motion, that of ``<name>.limit`` minus its limit.

        Parameters
        ----------
        name : str
        coordinate : str or dict
            A coordinate with one degree of freedom; or coefficients by coordinate, as for :meth:`coordinate_force`.
        coulomb : float
            Sliding friction [N m, N].
        static : float, optional
            Friction where motion begins [N m, N]; by default `coulomb`.
        stribeck : float
            Rate at which the excess of `static` over `coulomb` has decreased to 1/e [rad/s, m/s]; for friction that
            sticks it may be 0.
        viscous : float
            [N m s/rad, N s/m]
        width : float
            Rate at which friction is at 76 % of its value [rad/s, m/s]; 0 for friction that sticks.
        active : bool or str
            For ``width=0``: False switches it off, "sticking" or "sliding" fixes its mode whatever the state, "sliding"
            without friction.

        Raises
        ------
        ModelError
            A negative number, a `static` below `coulomb`, a smooth friction whose `stribeck` is not positive, one that
            sticks without a limit, or a coordinate that is unknown or part of a ball or free joint.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("panda"))
        >>> b.friction("gearbox1", "panda_joint1", coulomb=2.0, static=2.5)
        >>> b.friction("gearbox2", "panda_joint2", coulomb=80.0, width=0.0)
        >>> robot = b.build()
        >>> robot.element_names, robot.constraint_names
        (('gearbox1',), ('gearbox2',))
        >>> ld.forward_dynamics(robot, robot.home, [0.0] * 7, [0.0] * 7).contacts
        {'gearbox2': 'sticking'}
        """
        owner = validation.owner_of("force element", name)
        static = coulomb if static is None else static
        values = {key: float(numbers(owner, key, value, ())) for key, value in zip(
            LAWS["friction"].numbers, (coulomb, static, stribeck, width, viscous))}
        for key, value in values.items():
            if value < 0.0 or value == 0.0 and key == "stribeck" and values["width"] > 0.0:
                raise ModelError(f"{owner}, {key}: must be positive, got {value}")
        if values["static"] < values["coulomb"]:
            raise ModelError(f"{owner}, static: must not be below coulomb, {values['coulomb']}, got {values['static']}")
        coefficients = coordinate if isinstance(coordinate, dict) else {
            validation.text(owner, "coordinate", coordinate): 1.0}
        if values["width"] == 0.0:
            if values["static"] == 0.0:
                raise ModelError(f"{owner}, coulomb: friction that sticks must have a limit, got {coulomb}")
            form = CONSTRAINT_KINDS["dry_friction"]
            self._constraints.append(Constraint(
                name, "dry_friction", rows=form.rows, holonomic=form.holonomic, side=1, friction=1.0,
                coefficients=validation.coefficients(owner, form, coefficients),
                active=validation.switch(owner, active, 1), limit=tuple(
                    values[key] for key in ("coulomb", "static", "stribeck", "viscous"))))
            return
        if active is not True:
            raise ModelError(f"{owner}, active: smooth friction is a force element, which has no modes: width=0")
        self._elements.append(Element(_sum(owner, name, coefficients, 0.0), "friction", tuple(values.values())))

    def bushing(self, name: str, parent: str, child: str, parent_placement: ArrayLike | None = None,
                child_placement: ArrayLike | None = None, stiffness: ArrayLike = 0.0, damping: ArrayLike = 0.0,
                preload: ArrayLike = 0.0) -> None:
        """Declare a bushing: springs and dampers between two frames in all six directions.

        With phi the rotation vector and p the displacement of the child's frame relative to the parent's, in the axes
        of the parent's frame, its energy is ``s^T stiffness s / 2 + preload^T s``, s = (phi, p), whose gradient is the
        wrench that pulls the child back; the dampers add ``damping (omega, dp/dt)`` with omega the relative angular
        velocity. So a bushing without damping conserves energy at any displacement, up to half a turn.

        Parameters
        ----------
        name : str
        parent, child : str
            Names of bodies; either may be ``"ground"``.
        parent_placement, child_placement : array_like, shape (4, 4) or (3,), optional
            The frames, which coincide when the bushing is at rest.
        stiffness, damping : array_like, shape (6, 6) or (6,)
            Angular part first [N m/rad, N/m; N m s/rad, N s/m]; six numbers are a diagonal, one number is all of them.
        preload : array_like, shape (6,)
            (moment, force) [N m, N] at rest.

        Raises
        ------
        ModelError
            A number that is not finite, or a stiffness that is not symmetric, so that there is no energy.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder("engine", gravity=(0.0, 0.0, 0.0))
        >>> b.body("engine", mass=100.0, inertia=(5.0, 6.0, 7.0))
        >>> b.joint("float", "free", "ground", "engine")
        >>> b.bushing("mount", "ground", "engine", stiffness=[50, 50, 50, 1e5, 1e5, 2e5], damping=3.0)
        >>> b.build().element_names
        ('mount',)
        """
        owner = validation.owner_of("force element", name)
        values = []
        for (key, count), value in zip(BUSHING_NUMBERS.items(), (stiffness, damping, preload)):
            x = any_numbers(owner, key, value)
            x = np.full(6, x) if x.ndim == 0 else x
            x = numbers(owner, key, x, (6, 6) if x.ndim == 2 and count == 36 else (6,))
            values.append(np.diag(x) if x.size < count else x)
        if not np.array_equal(values[0], values[0].T):
            raise ModelError(f"{owner}, stiffness: must be symmetric, got {shown(stiffness)}")
        self._elements.append(Element(displacement(owner, name, parent, child, parent_placement, child_placement),
                                      "bushing", tuple(float(x) for part in values for x in part.flat)))

    def applied_force(self, name: str, body: str, placement: ArrayLike | None = None,
                      force: ArrayLike | Callable[..., Any] = (0.0, 0.0, 0.0),
                      torque: ArrayLike | Callable[..., Any] = (0.0, 0.0, 0.0), axes: str = "world") -> None:
        """Declare a force and a torque on a body, constant or a function of time.

        In world axes their directions are fixed; in those of the body they rotate with it.

        Parameters
        ----------
        name : str
        body : str
        placement : array_like, shape (4, 4) or (3,), optional
            The point of application: origin of a frame in the body.
        force, torque : array_like, shape (3,), or callable
            [N, N m]; or functions ``force(t)`` that return three numbers, best compiled (``@njit``).
        axes : str
            "world", or "body" for those of the frame at `placement`.

        Raises
        ------
        ModelError
            A number that is not finite, unknown axes, or the ground as the body.
        InputError
            A function that fails at t = 0, or does not return three numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("five_bar"))
        >>> b.applied_force("wind", "link1", (0.1, 0.0, 0.0), force=lambda t: np.array([np.sin(t), 0.0, 0.0]))
        >>> b.build().element_names
        ('wind',)
        """
        owner = validation.owner_of("force element", name)
        if validation.text(owner, "body", body) == GROUND:
            raise ModelError(f"{owner}, body: nothing moves the ground")
        law = {"world": "wrench", "body": "follower"}[validation.choice(owner, "axes", axes, {"world": 0, "body": 0})]
        functions = {key: x for key, x in (("force", force), ("torque", torque)) if callable(x)}
        constants = [np.zeros(3) if callable(x) else numbers(owner, key, x, (3,))
                     for key, x in (("torque", torque), ("force", force))]
        measure = displacement(owner, name, GROUND, body, None, placement, key="placement")
        self._elements.append(Element(measure, law, tuple(np.concatenate(constants).tolist()), functions))

    def _add_element(self, owner, measure, stiffness, damping, preload, law):
        """Add an element with a linear law, or one of the user's own."""
        given = zip(LAWS["linear"].numbers, (stiffness, damping, preload))
        values = {key: float(numbers(owner, key, value, ())) for key, value in given}
        if law is None:
            self._elements.append(Element(measure, "linear", tuple(values.values())))
            return
        for key, value in values.items():
            if value:
                raise ModelError(f"{owner}: give {key} or a law, not both, got {key} = {value} and {shown(law)}")
        if isinstance(law, NamedLaw):
            self._elements.append(Element(measure, law.kind, law.checked(owner)))
            return
        if hasattr(law, "free_symbols"):
            from liedyn.model.symbolic import law_of  # SymPy is slow to import, and most robots do not need it

            law = law_of(owner, law)
        self._elements.append(Element(measure, "function", functions={"law": validation.function(owner, "law", law)}))


def displacement(owner, name, parent, child, parent_placement, child_placement, key="child_placement"):
    """The constraint that measures the displacement of two frames."""
    return Loop(name, "fixed", validation.text(owner, "parent", parent), validation.text(owner, "child", child),
                validation.pose(owner, "parent_placement", parent_placement),
                validation.pose(owner, key, child_placement), (), 0.0)


def _sum(owner, name, coefficients, rest):
    """The constraint that measures a sum of coordinates."""
    form = CONSTRAINT_KINDS["coupling"]
    return Constraint(name, "coupling", rows=form.rows, holonomic=form.holonomic, offset=float(
        numbers(owner, "rest", rest, ())), coefficients=validation.coefficients(owner, form, coefficients))
