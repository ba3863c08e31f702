"""The robot: a packed model, the names of its coordinates, and the declaration it came from."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import number
from liedyn.machine.by_name import by_name
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError, cut, shown, suggestion
from liedyn.machine.texts import html_table
from liedyn.model.attachments import attach_target, target_of
from liedyn.model.description import Model
from liedyn.model.force_elements import Elements
from liedyn.model.kinds import CABLE
from liedyn.model.packed import (
    LINK_IV, LINK_NV, LOOPS_AT, LOOP_ACTIVE, LOOP_I, LOOP_KIND, LOOP_SIDE, OFF, OPEN, STATUS, TIME, PackedModel,
    links_of, mode_of_cable, status_code,
)
from liedyn.model.travel import copied, parts_of, require_functions_travel

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from liedyn.typing import Array, Booleans


@dataclass(frozen=True, eq=False, repr=False)
class Robot:
    """A rigid mechanism, immutable. Made by :class:`Builder` or :func:`liedyn.load`, never by hand.

    Coordinates follow the tree depth first: parents first, the children of a body in the order their joints were
    declared. Bodies and loops are in the order of declaration. Fixed joints are not listed, as their bodies are lumped.

    Attributes
    ----------
    model : Model
        The declaration, including fixed joints and the frames of loops.
    name, description, source, gravity, independent, outputs
        Those of the model.
    packed : PackedModel
        The packed model (:mod:`liedyn.model.packed`), the argument `model` of kernels; its arrays are `ints` and
        `floats`. They must not be written to, but are not read-only, because Numba would compile every kernel again for
        read-only arrays.
    nq, nv : int
        Sizes of a configuration and of a velocity.
    body_names, joint_names, loop_names : tuple of str
    coordinate_names : tuple of str
        One name for each entry of q.
    velocity_names : tuple of str
        One name for each entry of v, tau and of a tangent vector.
    virtual_names : tuple of str
        One name for each virtual velocity coordinate of the loops.
    constraint_names : tuple of str
        All constraints: the loops first, then the others in the order of declaration.
    row_names : tuple of str
        One name for each row of the constraint Jacobian, including those of inactive constraints.
    row_owners : tuple of str
        The constraint that each row belongs to.
    lower, upper : ndarray, shape (nq,)
        Limits of the coordinates; infinite if there are none.
    velocity_limit, effort_limit : ndarray, shape (nv,)
    neutral : ndarray, shape (nq,)
        Zeros and identity quaternions.
    home : ndarray, shape (nq,)
        The declared home configuration; neutral for coordinates without a declaration.
    actuator_names : tuple of str
        Names of the inputs u; if no actuator was declared, the velocity coordinates of the driven joints.
    tree_actuators : ndarray, shape (nv, nu)
        Generalised forces of unit inputs; zero for actuators on cut joints and between points, whose forces depend on
        the configuration (`liedyn.actuator_matrix`).
    loop_folding : ndarray, shape (nloops, 3, 3)
        Rotation from the user's cut frames to the frames of the packed model, in which the axis is z.
    singular_tree : tuple of str
        Bodies whose motion has no inertia in the open tree, and is prevented by loops only: the tree's mass matrix is
        singular, that of the constrained mechanism need not be. Empty for most robots.
    massless : bool
        True if no moving body has mass, so that there is no centre of mass.
    holonomic : ndarray of bool, shape (m,)
        Rows with a residual; the others constrain velocities only.
    functions : dict
        Users' functions of targets and custom rows (`liedyn.machine.compiled.user_functions.Function`), by their
        description.
    elements : Elements or None
        The force elements in packed form; None if there are none.
    body_numbers : dict
        Numbers of the bodies by name; those of the frames follow.
    """

    model: Model
    packed: PackedModel
    nq: int
    nv: int
    body_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    loop_names: tuple[str, ...]
    coordinate_names: tuple[str, ...]
    velocity_names: tuple[str, ...]
    virtual_names: tuple[str, ...]
    row_names: tuple[str, ...]
    lower: Array
    upper: Array
    velocity_limit: Array
    effort_limit: Array
    neutral: Array
    home: Array
    actuator_names: tuple[str, ...]
    tree_actuators: Array
    loop_folding: Array
    singular_tree: tuple[str, ...]
    massless: bool
    constraint_names: tuple[str, ...] = ()
    row_owners: tuple[str, ...] = ()
    holonomic: Booleans | None = None
    functions: dict[str, Any] = field(default_factory=dict)
    elements: Elements | None = None

    body_numbers: dict[str, Any] = field(init=False)
    _memo: dict[Any, Any] = field(init=False)  # results computed once, by name; not copied

    def __post_init__(self) -> None:
        object.__setattr__(self, "_memo", {})
        object.__setattr__(self, "body_numbers", {
            name: k for k, name in enumerate((*self.body_names, *self.frame_names))})

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.model.name

    @property
    def gravity(self) -> Array:
        """Acceleration of free fall in world axes [m/s^2]."""
        return self.model.gravity

    @property
    def independent(self) -> tuple[str, ...]:
        """Default choice of independent coordinates."""
        return self.model.independent

    @property
    def outputs(self) -> tuple[str, ...]:
        """Default outputs of linear models."""
        return self.model.outputs

    @property
    def description(self) -> str:
        """Description of the mechanism in a sentence."""
        return self.model.description

    @property
    def source(self) -> str:
        """Source of its parameters."""
        return self.model.source

    @property
    def nbodies(self) -> int:
        """Number of bodies."""
        return len(self.body_names)

    @property
    def element_names(self) -> tuple[str, ...]:
        """Names of the force elements."""
        return tuple(each.name for each in self.model.elements)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of the frames, which can be used like names of bodies."""
        return tuple(frame.name for frame in self.model.frames)

    @property
    def t(self) -> float:
        """Time of the moving targets and custom rows [s]."""
        return float(self.packed.floats[TIME])

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the active constraints: those that are switched on, and if one-sided, closed."""
        return tuple(name for k, name in enumerate(self.constraint_names) if self._number(k, LOOP_ACTIVE) > OFF)

    @property
    def groups(self) -> tuple[slice, ...]:
        """Slices of a velocity that belong to ball and free joints, of 3 and 6 coordinates."""
        return tuple(slice(int(link[LINK_IV]), int(link[LINK_IV] + link[LINK_NV]))
                     for link in links_of(self.packed)[0] if link[LINK_NV] > 1)

    @property
    def contacts(self) -> dict[str, str]:
        """Modes of one-sided constraints by name: 'off', 'open', 'sliding' (also without friction) or 'sticking'.

        Of inextensible cables these words are shown as slack, taut and held taut."""
        modes = {name: (self._number(k, LOOP_KIND), STATUS[self._number(k, LOOP_ACTIVE)])
                 for k, name in enumerate(self.constraint_names) if self._number(k, LOOP_SIDE)}
        return {name: mode_of_cable(mode) if kind == CABLE else mode for name, (kind, mode) in modes.items()}

    @property
    def actuator_matrix(self) -> Array:
        """The matrix S of tau = S u, shape (nv, nu).

        Raises
        ------
        InputError
            An actuator acts on a cut joint, or between two points: use `liedyn.actuator_matrix`, which takes the
            configuration.
        """
        if self.elements is not None and self.elements.driven:
            raise InputError(f"what actuator {shown(self.elements.driven[0])} of {self.name!r} does to the coordinates "
                             "depends on the configuration: take liedyn.actuator_matrix(robot, q)")
        return self.tree_actuators

    def __reduce__(self) -> Any:
        require_functions_travel(self)
        return parts_of(self)

    def __copy__(self) -> Robot:
        return replace(self)

    def __deepcopy__(self, memo: Any) -> Robot:
        return copied(self)

    def __repr__(self) -> str:
        more = len(self.constraint_names) - len(self.loop_names)
        others = f", {more} other constraints" if more else ""
        return (f"Robot({self.name!r}, nq={self.nq}, nv={self.nv}, {self.nbodies} bodies, "
                f"{len(self.joint_names)} joints, {len(self.loop_names)} loops{others})")

    def _repr_html_(self):
        """For notebooks: the parts of each kind, by name."""
        model = self.model
        kinds = (("bodies", self.body_names), ("frames", self.frame_names), ("joints", self.joint_names),
                 ("coordinates", self.velocity_names), ("loops", self.loop_names),
                 ("constraints", self.constraint_names[len(self.loop_names):]),
                 ("force elements", self.element_names), ("actuators", [each.name for each in model.actuators]),
                 ("independent", self.independent))
        rows = [[what, str(len(names)), cut(", ".join(names), 120)] for what, names in kinds if names]
        return html_table(f"{self!r}" + (f": {self.description}" if self.description else ""), [["", "", ""], *rows])

    def info(self) -> str:
        """Bodies, joints, loops, degrees of freedom and redundant rows, as ``liedyn info`` prints them.

        Returns
        -------
        text : str
            Shown as it is in notebooks and at the prompt of Python.

        Examples
        --------
        >>> import liedyn as ld
        >>> ld.load("five_bar").info().splitlines()[0]
        'five_bar: Symmetric planar five-bar mechanism, cut at the right support.'
        """
        return by_name("liedyn.look.cli.info:description")(self)

    @property
    def active_rows(self) -> Booleans:
        """A mask of the active rows, shape (m,): those of constraints that are on; for a sliding contact, the first
        one."""
        sliding = [name for name, status in self.contacts.items() if status == "sliding"]
        return np.isin(self.row_owners, self.active) & ~(np.isin(self.row_owners, sliding) & ~self.holonomic)

    def _record(self, k):
        return int(self.packed.ints[LOOPS_AT]) + LOOP_I * k

    def _number(self, k, field):
        return int(self.packed.ints[self._record(k) + field])

    def switched(self, states: dict[str, Any] | None = None, **more: bool) -> Robot:
        """The same robot with constraints switched on or off, without building or compiling anything. Rows of a
        constraint that is off remain in the arrays and are zero.

        Parameters
        ----------
        states : dict, optional
            True or False by constraint name. A one-sided constraint that is switched on is initially open; `simulate`,
            `forward_dynamics` and `linearize` close it depending on the state; for all other functions it is open,
            without rows. ``"sliding"`` (without friction) or ``"sticking"`` makes it an equation for all functions.
        **more : bool
            Further entries, for names that are identifiers: ``robot.switched(stick=True)``.

        Returns
        -------
        Robot
            Shares all data with this one except the switches.

        Raises
        ------
        InputError
            An unknown constraint, or a state that is not True or False.

        Examples
        --------
        >>> import liedyn as ld
        >>> five_bar = ld.load("five_bar")
        >>> five_bar.switched(pin=False).active
        ()
        """
        if not isinstance(states, dict | None):
            raise InputError(f"states must be a dict of True or False by constraint name, got {shown(states)}")
        ints = self.packed.ints.copy()
        for name, on in {**(states or {}), **more}.items():
            record = self._record(self.constraint_index(name))
            one_sided = ints[record + LOOP_SIDE] != 0
            code = status_code(on, one_sided)
            if code is None:
                more = ", " + ", ".join(map(repr, STATUS.values())) if one_sided else ""
                raise InputError(f"constraint {shown(name)} can be switched to True, False{more}, not {shown(on)}")
            if code == OFF and self.elements is not None and name in self.elements.loops:
                raise InputError(f"cut joint {shown(name)} cannot be switched off: force elements or actuators act on "
                                 "it; make it a joint of the tree, and cut another joint of the loop")
            ints[record + LOOP_ACTIVE] = code
        return replace(self, packed=self.packed._replace(ints=ints))

    def at(self, t: float) -> Robot:
        """The same robot at time t: moving targets and custom rows are evaluated there.

        Parameters
        ----------
        t : float
            [s]

        Returns
        -------
        Robot
            Shares all data with this one except the time.

        Raises
        ------
        InputError
            The time, or the result of a target there, is not finite.

        Examples
        --------
        >>> import liedyn as ld
        >>> ld.load("five_bar").at(0.5).t
        0.5
        """
        from liedyn.model.constraint_records import refresh  # imported here, as it is compiled

        t, packed = number("t", t), self.packed._replace(floats=self.packed.floats.copy())
        refresh(packed, t)
        raise_errors(self.functions)
        return replace(self, packed=packed)

    def with_target(self, name: str, target: Callable[..., Any] | None) -> Robot:
        """The same robot with frame A of a constraint, or the sum of a coupling, moved by a function of time.

        Parameters
        ----------
        name : str
            A loop, a constraint between two bodies, or a coupling.
        target : callable or None
            As for :meth:`Builder.loop` and :meth:`Builder.constraint`; None makes it constant.

        Returns
        -------
        Robot
            At time zero; :meth:`at` sets the time.

        Raises
        ------
        InputError
            An unknown constraint, custom rows, or a function whose result has a wrong shape.

        Examples
        --------
        >>> import liedyn as ld, numpy as np
        >>> slow = ld.load("five_bar").with_target("pin", lambda t: ([0.1 * t, 0, 0], [0.1, 0, 0], [0, 0, 0]))
        >>> float(abs(ld.closure_error(slow.at(1.0), slow.home)).max().round(12))
        0.1
        """
        k = self.constraint_index(name)
        each = (self.model.loops + self.model.constraints)[k]
        if each.kind == "custom":
            raise InputError(f"constraint {shown(name)} has functions of its own, and nothing else that could move")
        if target is not None and self.elements is not None and name in self.elements.loops:
            raise InputError(f"cut joint {shown(name)} cannot be moved: force elements or actuators act on it; make it "
                             "a joint of the tree, and cut another joint of the loop")
        ints, functions = self.packed.ints.copy(), dict(self.functions)
        attach_target(ints, self._record(k), functions, each, target)
        return replace(self, packed=self.packed._replace(ints=ints), functions=functions).at(0.0)

    def model_as_is(self) -> Model:
        """The declaration, with the current switches and targets of this robot.

        Returns
        -------
        Model

        Examples
        --------
        >>> import liedyn as ld
        >>> ld.load("five_bar").switched(pin=False).model_as_is().loops[0].active
        False
        """
        def as_is(k, each):
            code = self._number(k, LOOP_ACTIVE)
            closed = getattr(each, "side", 0) and code not in (OFF, OPEN)
            on = STATUS[code] if closed else code != OFF
            return replace(each, active=on, target=target_of(self.functions, each))

        everything = [as_is(k, each) for k, each in enumerate(self.model.loops + self.model.constraints)]
        count = len(self.model.loops)
        return replace(self.model, loops=tuple(everything[:count]), constraints=tuple(everything[count:]))

    def constraint_index(self, name: str) -> int:
        """Number of a constraint, loops first; InputError with similar names if there is none."""
        return _index("constraint", name, self.constraint_names)

    def body_index(self, name: str) -> int:
        """Number of a body or frame; InputError with similar names if there is none."""
        return self.body_numbers[name] if type(name) is str and name in self.body_numbers else _index(
            "body", name, tuple(self.body_numbers))

    def joint_index(self, name: str) -> int:
        """Number of a joint; InputError with similar names if there is none."""
        return _index("joint", name, self.joint_names)

    def loop_index(self, name: str) -> int:
        """Number of a loop; InputError with similar names if there is none."""
        return _index("loop", name, self.loop_names)

    def coordinate_index(self, name: str) -> int:
        """Index of a coordinate in q; InputError with similar names if there is none."""
        return _index("coordinate", name, self.coordinate_names)

    def velocity_index(self, name: str) -> int:
        """Index of a velocity coordinate in v; InputError with similar names if there is none."""
        return _index("velocity coordinate", name, self.velocity_names)

    def virtual_index(self, name: str) -> int:
        """Index of a loop's virtual velocity coordinate; InputError with similar names if there is none."""
        return _index("virtual coordinate", name, self.virtual_names)


def _index(what, name, names):
    if isinstance(name, str) and name in names:
        return names.index(name)
    raise InputError(f"unknown {what} {shown(name)}, {suggestion(name, names)}")
