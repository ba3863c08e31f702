"""The part of `Builder` that declares loops and other constraints."""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.errors import ModelError, shown
from liedyn.model import validation
from liedyn.model.description import Constraint, Loop
from liedyn.model.frames import placement
from liedyn.model.kinds import CONSTRAINT_KINDS, JOINT_KINDS, LOOP_KINDS, neutral
from liedyn.model.numbers import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    from liedyn.typing import ArrayLike


class ConstraintBuilder:
    """Loops, constraints, end stops and custom rows; see :class:`Builder`."""

    def loop(self, name: str, kind: str, parent: str, child: str, parent_placement: ArrayLike | None = None,
             child_placement: ArrayLike | None = None, axis: ArrayLike | None = None, axis2: ArrayLike | None = None,
             pitch: float | None = None, active: bool = True, target: Callable[..., Any] | None = None,
             armature: float = 0.0, damping: float = 0.0, stiffness: float = 0.0,
             rest: ArrayLike | None = None) -> None:
        """Declare a cut joint, which closes a loop between two bodies.

        With `damping` or `stiffness` its coordinates get force elements ``<coordinate> spring``, or a bushing for a
        ball. With `armature` it becomes a joint of the tree from the parent to a massless rotor, the body ``<name>
        rotor``, and the cut joint ``<name> weld`` between rotor and child closes the loop.

        Parameters
        ----------
        name : str
        kind : str
            Any joint kind except free; ``"weld"``, the same as fixed; or ``"inline"``: the origin of frame B stays on
            the line along `axis` through the origin of frame A, which is how a pin closes a loop of a planar mechanism
            with two rows.
        parent, child : str
            Names of bodies or frames; either may be ``"ground"``.
        parent_placement, child_placement : array_like, shape (4, 4) or (3,), optional
            Frame A in the parent, frame B in the child; the motion A^-1 B is that of the joint kind.
        axis, axis2, pitch
            As for :meth:`joint`, in the cut frames.
        active : bool
            Whether it is initially switched on; see :meth:`Robot.switched`.
        target : callable, optional
            Moves frame A relative to `parent_placement`, a function of time (Python, or compiled by Numba): returns
            position, velocity and acceleration (x, xd, xdd), 3 numbers each in the axes of `parent_placement` [m], or
            a pose (4, 4), a twist (6,) and its rate (6,), body-fixed in the moving frame.
        armature, damping, stiffness, rest
            As for :meth:`joint`. Angles of cut joints are measured from rest, between -pi and pi: for a spring wound up
            further, use a joint of the tree.

        Raises
        ------
        ModelError
            An unknown kind, or a value that does not fit it; armature of an inline joint, which cannot be a joint of
            the tree, or of one with a target.
        """
        owner = validation.owner_of("loop", name)
        if validation.text(owner, "kind", kind) == "free":
            raise ModelError(f"{owner}, kind: a free loop constrains nothing")
        kind = validation.choice(owner, "kind", "fixed" if kind == "weld" else kind, LOOP_KINDS)
        form = LOOP_KINDS[kind]
        armature = validation.not_negative(owner, "armature", armature, form.nv)
        if armature.any():
            for key, is_so in (("kind", not form.is_of_tree), ("target", target is not None)):
                if is_so:
                    raise ModelError(f"{owner}, {key}: what has armature must be a joint of the tree, which "
                                     f"{'inline joints are' if key == 'kind' else 'moves by no target and is'} not")
            self.body(f"{name} rotor")
            self.joint(name, kind, parent, f"{name} rotor", parent_placement, axis, axis2, pitch, armature=armature,
                       damping=damping, stiffness=stiffness, rest=rest)
            self.loop(f"{name} weld", "fixed", f"{name} rotor", child, child_placement=child_placement, active=active)
            return
        self._spring_at_cut(owner, name, form, (parent, child, parent_placement, child_placement), (
            damping, stiffness, rest))
        self._loops.append(Loop(
            name, kind, validation.text(owner, "parent", parent), validation.text(owner, "child", child),
            parent_placement=validation.pose(owner, "parent_placement", parent_placement),
            child_placement=validation.pose(owner, "child_placement", child_placement),
            axes=validation.axes(owner, kind, form, (axis, axis2)),
            pitch=validation.pitch(owner, kind, form, pitch),
            active=validation.flag(owner, "active", active),
            target=validation.function(owner, "target", target)))

    def _spring_at_cut(self, owner, name, form, frames, law):
        """Replace the force elements for the springs and dampers of a cut joint: `frames` are (parent, child, placement
        in the parent, in the child), and `law` is (damping, stiffness, rest)."""
        (parent, child, parent_placement, child_placement), (damping, stiffness, rest) = frames, law
        damping = validation.not_negative(owner, "damping", damping, form.nv)
        stiffness = validation.stiffness(owner, form, stiffness)
        rest = validation.rest(owner, form, rest, neutral(form))
        names = [name + suffix for suffix in form.velocities]
        if form.has_quaternion and (damping.any() or stiffness.any()):
            if np.ptp(damping):
                raise ModelError(f"{owner}, damping: must be the same in all three directions, got "
                                 f"{shown(damping.tolist())}")
            frame = validation.pose(owner, "parent_placement", parent_placement) @ placement(quaternion=rest)
            self._replace_element(f"{name} spring", lambda x: self.bushing(
                x, parent, child, frame, child_placement, [*stiffness, 0.0, 0.0, 0.0], [*damping, 0.0, 0.0, 0.0]))
            return
        for each, d, k, at in zip(names, damping, stiffness, rest):
            if d or k:
                self._replace_element(f"{each} spring", lambda x, each=each, d=d, k=k, at=at: self.coordinate_force(
                    x, {each: 1.0}, rest=at, stiffness=k, damping=d))

    def _replace_element(self, name, declare):
        self._elements[:] = [each for each in self._elements if each.name != name]
        declare(name)

    def constraint(self, name: str, kind: str, parent: str | None = None, child: str | None = None,
                   parent_placement: ArrayLike | None = None, child_placement: ArrayLike | None = None,
                   axis: ArrayLike | None = None, child_axis: ArrayLike | None = None, length: float | None = None,
                   radius: float | None = None, parent_radius: float | None = None, rolling: bool | None = None,
                   inside: bool | None = None, coefficients: dict[str, Any] | None = None, offset: float = 0.0,
                   active: bool | str = True, target: Callable[..., Any] | None = None,
                   unilateral: bool | Literal["above", "below"] = False, restitution: float | None = None,
                   friction: float | None = None, extent: ArrayLike | None = None) -> None:
        """Declare a constraint other than a cut joint, between a frame A on the parent and a frame B on the child.

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
            Names of bodies or frames; either may be ``"ground"``. A coupling has none.
        parent_placement, child_placement : array_like, shape (4, 4) or (3,), optional
            Frame A in the parent, frame B in the child.
        axis : array_like, shape (3,), optional
            Normal of a plane, axis of a cylinder or circle, in frame A; default z.
        child_axis : array_like, shape (3,), optional
            In frame B.
        length : float
            Length of a rod [m].
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
            Whether it is initially switched on; values as for :meth:`Robot.switched`.
        target : callable, optional
            Moves frame A, as for :meth:`loop`. For a coupling: returns x and its first two derivatives, three numbers,
            and the sum is `offset` + x; with one coordinate, x drives it.
        unilateral : bool or {"above", "below"}
            A contact or a stop, which can only push: the residual of the first row, its gap, stays >= 0 (True or
            ``"above"``: on the side of a plane that its axis points to, outside a surface, a rod that can only get
            longer) or <= 0 (``"below"``: inside, a rope, an upper stop). `simulate`, `forward_dynamics` and `linearize`
            close and open it depending on the state. For all kinds except on_circle and knife_edge.
        restitution : float, optional
            For a unilateral constraint: ratio of separation speed to approach speed in an impact, 0 to 1; default 0.
        friction : float, optional
            For a unilateral constraint between bodies: Coulomb's coefficient, for sticking and for sliding; default 0.
            It adds rows for the tangential motion. Disks and spheres with ``rolling=True`` and no `friction` never
            slip while they touch (``numpy.inf``).
        extent : array_like, shape (2,), or float, optional
            For a unilateral on_plane or sphere_on_plane whose plane ends: lengths of a rectangle along x and y of frame
            A, about its origin, or the radius of a disk [m]; for a unilateral on_cylinder its length along the axis,
            about the origin of A. Default: it does not end. What slides or rolls over the edge falls, and whatever
            comes back from above lands; from below it passes. `simulate` finds both as events, ``"<name> ends"`` and
            ``"<name> begins"``.

        Raises
        ------
        ModelError
            An unknown kind, a missing parameter, one that the kind does not have, or a value that does not fit.
        """
        owner = validation.owner_of("constraint", name)
        validation.choice(owner, "kind", kind, [k for k in (*CONSTRAINT_KINDS, "on_sphere")
                                                if k not in ("custom", "dry_friction", "cable")])
        if kind == "on_sphere":
            kind, length, radius = "distance", radius, None
            validation.given(owner, "radius", length)
        form = CONSTRAINT_KINDS[kind]
        values = {"axis": axis, "child_axis": child_axis, "length": length, "radius": radius,
                  "parent_radius": parent_radius, "rolling": rolling, "inside": inside, "extent": extent}
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
        if side:  # tangential rows for friction
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
            radius=0.0 if on_curve else sign * sizes["radius"], rows=rows, holonomic=form.holonomic,
            extent=validation.extent(owner, kind, extent, side, axis, target), **common))

    def stops(self, joints: Sequence[str] | None = None, restitution: float = 0.0) -> None:
        """Turn the limits of joints into end stops: one-sided couplings ``<coordinate>.lower`` and
        ``<coordinate>.upper``.

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
            An unknown joint, or a named joint without a finite limit.

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

    def custom(self, name: str, jacobian: Callable[..., Any], bias: Callable[..., Any], derivatives: Callable[..., Any],
               force_derivative: Callable[..., Any], residual: Callable[..., Any] | None = None,
               drift: Callable[..., Any] | None = None, rows: int = 1, active: bool = True) -> None:
        """Declare custom constraint rows ``G(q, t) v + drift(q, t) = 0``, by functions and their derivatives.

        Compiled functions (``@njit``) run inside the kernels at full speed; Python functions work and are slow. All
        arrays are float64; derivatives by q are along the tangent. `liedyn.mechanics.constraints.check_constraint`
        compares them with finite differences; `liedyn.model.symbolic.constraint` generates them from a SymPy
        expression. If a function raises, or returns anything other than finite numbers of these shapes, its caller
        raises an `InputError` with its name and the state.

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
            ``(t, q) -> g``, shape (rows,), with dg/dt = G v + drift: the rows are then holonomic.
        drift : callable, optional
            ``(t, q) -> (rows,)``; zero by default.
        rows : int
            Number of rows.
        active : bool
            Whether they are initially switched on; see :meth:`Robot.switched`.

        Raises
        ------
        ModelError
            An argument is not a function, or the number of rows is not positive.
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
