"""Derivatives of accelerations, multipliers and linear models by parameters: public function and result."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.linear.linearize import linearize
from liedyn.linear.operating_point import CLOSURE_TOLERANCE
from liedyn.linear.outputs import output_plan
from liedyn.linear.sensitivity.changes import SHIFT
from liedyn.linear.sensitivity.friction_sensitivity import Friction
from liedyn.linear.sensitivity.law_sensitivity import element_slopes
from liedyn.linear.sensitivity.linear_model import GEOMETRIC, At, Besides, Chosen, Derivatives, LinearModels
from liedyn.linear.sensitivity.model_parameters import all_changes, body_displacements, chosen, measured
from liedyn.linear.sensitivity.output_sensitivity import Outputs
from liedyn.linear.sensitivity.state_slopes import eigenvalue_slopes, state_slopes
from liedyn.linear.sensitivity.variations import Motion
from liedyn.linear.state_space import LocalStateSpace
from liedyn.machine.arguments import flag, names as as_names, one_of, require_robot
from liedyn.machine.by_name import by_name as object_by_name
from liedyn.machine.errors import InputError, listed, shown, suggestion
from liedyn.machine.texts import printable
from liedyn.mechanics.constraints.independent import Independent, by_name
from liedyn.mechanics.contact.contact_modes import watched
from liedyn.mechanics.contact.contact_state import Contacts
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.elements.generalized import actuator_matrix
from liedyn.mechanics.tree.crba import crba
from liedyn.model.description import GROUND
from liedyn.model.kinds import LOOP_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Complexes, IndependentNames


@dataclass(frozen=True, repr=False, eq=False)
class Sensitivity:
    """Derivatives of accelerations, multipliers and a linear model by parameters, which are numbered by the last axis.

    Attributes
    ----------
    parameters : tuple of str
    a : ndarray, shape (..., nv, np)
        Derivatives of the accelerations [rad/s^2, m/s^2 per unit of the parameter].
    lam : ndarray, shape (..., m, np)
        Derivatives of the multipliers; if rows are redundant, of those of least norm.
    A : ndarray, shape (..., x, x, np)
    B : ndarray, shape (..., x, nu, np)
    C : ndarray, shape (..., ny, x, np)
    D : ndarray, shape (..., ny, nu, np)
    f0 : ndarray, shape (..., x, np)
        Derivatives of A, B, C, D and f0 of the linear model.
    q, v : ndarray, shape (..., nv, np)
        Derivatives of the dependent coordinates, in the tangent space at q, and of the dependent velocities.
    model : LocalStateSpace
        The linear model at the robot's own values of the parameters.
    A_x : ndarray, shape (..., x, x, x + nu), or None
    B_x : ndarray, shape (..., x, nu, x + nu), or None
        If asked for, derivatives of A and B by the independent coordinates and velocities, then by the inputs, along
        the last axis: how they differ from those of neighbouring states, each in its own coordinates.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> s = ld.sensitivities(arm, arm.home, [0.0] * 4, [0.0] * 4, parameters=["mass:link1", "mass:link2"])
    >>> s.A[..., s.index("mass:link2")].shape
    (4, 4)
    """

    parameters: tuple[str, ...]
    a: Array
    lam: Array
    A: Array
    B: Array
    C: Array
    D: Array
    f0: Array
    q: Array
    v: Array
    model: LocalStateSpace
    A_x: Array | None = None
    B_x: Array | None = None

    def __repr__(self) -> str:
        lead = f"batch {self.a.shape[:-2]}, " if self.a.ndim > 2 else ""
        return f"Sensitivity({lead}{len(self.parameters)} parameters, states {printable(', '.join(self.model.states))})"

    def index(self, parameter: str) -> int:
        """Index of a parameter along the last axis.

        Parameters
        ----------
        parameter : str

        Returns
        -------
        k : int
            Index along the last axis.

        Raises
        ------
        InputError
            The parameter is not among those of the result.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> ld.sensitivities(arm, arm.home, [0.0] * 4, [0.0] * 4, parameters="mass:*").index("mass:link2")
        1
        """
        if not isinstance(parameter, str) or parameter not in self.parameters:
            raise InputError(f"derivatives by {shown(parameter)} were not asked for, "
                             f"{suggestion(parameter, self.parameters)}")
        return self.parameters.index(parameter)

    def eigenvalues(self, by: Literal["parameters", "states", "equilibria"] = "parameters") -> Complexes:
        """Derivatives of the eigenvalues of A.

        Parameters
        ----------
        by : {"parameters", "states", "equilibria"}
            By the parameters, at this state; by the state and the inputs; or by the parameters while the equilibrium
            moves with each of them, at constant inputs. The latter two need ``second=True``.

        Returns
        -------
        derivatives : ndarray of complex, shape (..., x, np) or (..., x, x + nu)
            In the order of ``model.eigenvalues()``. A repeated eigenvalue without as many eigenvectors, such as zero of
            a free rigid motion, has no derivative: the numbers are then infinite, NaN, or very large.

        Raises
        ------
        InputError
            Derivatives of A by the state were not asked for; there is no equilibrium here, or no neighbouring one for
            another value of a parameter.

        Notes
        -----
        w^H A_p v / w^H v with the right and left eigenvectors v, w (Lancaster 1964).

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> s = ld.sensitivities(arm, arm.home, [0.0] * 4, [0.0] * 4, parameters="mass:*")
        >>> s.eigenvalues().shape
        (4, 4)
        """
        one_of("by", by, ("parameters", "states", "equilibria"))
        if by != "parameters" and self.A_x is None:
            raise InputError("derivatives of A by the state were not asked for: sensitivities(..., second=True)")
        slopes = {"parameters": lambda: self.A, "states": lambda: self.A_x, "equilibria": self._at_equilibria}[by]()
        return eigenvalue_slopes(self.model.A, slopes)[1]

    def _at_equilibria(self):
        """Derivatives of A by the parameters along equilibria: A x_p = -f0_p says how these move."""
        A, x = self.model.A, self.model.A.shape[-1]
        size = np.maximum(1.0, np.abs(A).max(axis=(-2, -1), initial=0.0))
        if (np.abs(self.model.f0).max(axis=-1, initial=0.0) > AT_REST * size).any():
            raise InputError("there is no equilibrium here, which could move with the parameters: see trim")
        moved = -np.linalg.pinv(A, rcond=AT_REST) @ self.f0
        left = np.abs(A @ moved + self.f0) > AT_REST * np.maximum(1.0, np.abs(self.f0))
        if left.any():
            bad = [name for name, each in zip(self.parameters, np.moveaxis(left, -1, 0)) if each.any()]
            raise InputError(f"no neighbouring equilibrium for other values of {listed(bad)}, at constant inputs")
        return self.A + np.einsum("...ijk,...kp->...ijp", self.A_x[..., :x], moved)


AT_REST = 1e-8
"""Rates, relative to A, that are zero at an equilibrium, and singular values that are."""
AT_ONCE = 4_000_000
"""Size of the largest array, which limits the number of states that are treated together."""


def sensitivities(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None,
                  parameters: Sequence[str] = ("mass:*", "com.*:*", "inertia.*:*"),
                  independent: IndependentNames = None, speeds: IndependentNames = None, u: ArrayLike | None = None,
                  closure_tolerance: float = CLOSURE_TOLERANCE, rank_tolerance: float = RANK_TOLERANCE,
                  outputs: Sequence[str] | None = None, second: bool = False) -> Sensitivity:
    """Exact derivatives of accelerations, multipliers and of the linear model by parameters of the robot.

    Along a parameter p the independent coordinates y and velocities w, time, and tau or u are held constant; the
    dependent coordinates and velocities follow, so that all constraints stay satisfied. The derivatives are therefore
    total: those of the results of `forward_dynamics` and `linearize` for a robot with another value of the parameter,
    assembled again at the same y and w.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] at which the loops are closed.
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s] that satisfies the constraints.
    tau : array_like, shape (..., nv)
        Generalised forces [N m, N].
    parameters : sequence of str
        Names, patterns of names such as ``"mass:*"``, or the name of a body, joint, constraint or force element, which
        stands for all its parameters. Names, in SI units and radians:

        - ``mass:BODY``; ``com.x:BODY`` (x, y, z), the centre of mass in the body's frame; ``inertia.xx:BODY`` (xx, xy,
          xz, yy, yz, zz), about the centre of mass, which stays with it, in the body's axes
        - ``placement.x:JOINT`` (x, y, z, rx, ry, rz): the place of a joint or frame in its parent, and turns about the
          parent's axes through that place; of fixed joints too
        - ``parent_placement.x:LOOP`` and ``child_placement.x:LOOP``, likewise of the two frames that a cut joint,
          another constraint or a force element joins
        - ``length:NAME``, ``radius:NAME``, ``parent_radius:NAME``, ``offset:NAME`` of constraints; ``friction:NAME`` of
          contacts that may slide
        - ``armature:NAME``, ``damping:NAME``, ``stiffness:NAME``, ``rest:NAME`` of velocity coordinates; the last two
          where the coordinate is one of one degree of freedom
        - ``stiffness:NAME``, ``damping:NAME``, ``preload:NAME``, ``length:NAME``, ``rest:NAME`` of linear force
          elements, and the numbers of laws by their names: ``coulomb:NAME`` of friction
        - ``gravity`` along its direction, ``gravity.x``, ``gravity.y``, ``gravity.z``
    independent, speeds : sequence of str, "auto", "tangent" or None
        As for `linearize`. In tangent spaces the basis R, with y = R q, is held constant.
    u : array_like, shape (..., nu)
        Instead of tau: forces of the robot's actuators.
    closure_tolerance, rank_tolerance : float
        As for `linearize`.
    outputs : sequence of str, optional
        Names of the rows of C and D, as for `linearize`.
    second : bool
        True: derivatives of A and B by the state and the inputs too, and those of eigenvalues along equilibria;
        `parameters` may then be empty.

    Returns
    -------
    Sensitivity
        ``a, lam, A, B, C, D, f0, q, v`` with the parameters along the last axis, the linear ``model`` itself, and with
        `second` also ``A_x, B_x``.

    Raises
    ------
    ClosureError
        A loop is open at q; or the constraints cannot follow a parameter, as when a planar linkage with redundant rows
        would leave its plane: leave that parameter out.
    InputError
        As `linearize`; an unknown parameter; a feedback for tau or u; a parameter that displaces custom rows or users'
        laws of force elements, whose second derivatives are not known; with `second` what `linearize` refuses.
    SingularConfigurationError
        As `linearize`.

    Notes
    -----
    With D the total derivative by p, Z = [G; R] and F = ID(q, v, a) + G^T lambda - tau,

        Z q_p = -(dg/dp, 0),  Z v_p = -(D psi, 0),  M a_p + G^T lambda_p = -D F,  G a_p = -D phi

    and A and B change by the mixed second variation of F and of the constraints along (N, X, a', lambda') of the linear
    model and along (q_p, v_p, a_p, lambda_p, p), followed by one more solution with the same matrices
    (`liedyn.linear.sensitivity.linear_model`). Variations go through one recursion as hyper-dual numbers (Fike and
    Alonso, AIAA 2011-886): exact to rounding, no step size. Time is held constant.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> s = ld.sensitivities(arm, arm.home, [0.0] * 4, [0.0] * 4, parameters=["mass:*", "placement.x:q2"])
    >>> s.a.shape, s.A.shape, s.parameters[-1]
    ((4, 5), (4, 4, 5), 'placement.x:q2')
    """
    require_robot(robot)
    names, second = chosen(robot, parameters), flag("second", second)
    if not names and not second:
        raise InputError("parameters is empty: name one at least")
    changes = [all_changes(robot)[name] for name in names]
    _require_known(robot, names, changes)
    if any(callable(x) or isinstance(x, tuple) and any(map(callable, x)) for x in (tau, u)):
        raise InputError("sensitivities takes forces tau or u as numbers, not a feedback: close the loop on A and B")
    model = linearize(robot, q, v, tau, independent=independent, outputs=outputs, closure_tolerance=closure_tolerance,
                      rank_tolerance=rank_tolerance, speeds=speeds, u=u, second=second)
    lead, count = model.lead, int(np.prod(model.lead))
    contacts = None
    if watches(robot):  # contacts in the modes of these states; linearize has checked that all states have the same
        robot, contacts = _settled(robot, *(x.reshape(count, -1)[0] for x in (model.q, model.v, model.tau)),
                                   rank_tolerance)
    q, v, a, lam, K, S, rank = (np.reshape(x, (count, *np.shape(x)[len(lead):])) for x in (
        model.q, model.v, model.a, model.lam, model.K, model.S, model.rank))
    y, w, R_y, R_w = _choices(robot, model, K, S)
    inputs = np.broadcast_to(actuator_matrix(robot, q), (count, robot.nv, len(model.inputs)))
    M, slopes = crba(robot, q), element_slopes(robot, q, v, u, lead)
    asked = robot.outputs if outputs is None else as_names("outputs", outputs)
    plan, CD = output_plan(robot, asked, y), np.concatenate([model.C, model.D], axis=-1)
    plan.without_joints("sensitivities")
    outputs = None
    if len(plan.parts) or plan.contacts:
        outputs = Outputs(plan, CD.reshape(count, *CD.shape[len(lead):]))
    found, by_state, size = [], [], _chunk(robot, K.shape[2] + S.shape[2] + inputs.shape[2], len(names))
    for b in range(0, count, size):
        part = slice(b, b + size)
        motion = Motion(q[part], v[part], a[part], lam[part])
        besides = Besides(_part(slopes, part), outputs and outputs.part(part),
                          contacts and Friction(robot, contacts, motion))
        models = LinearModels(robot, (lead, b), Chosen(y, w, R_y[part], R_w[part]),
                              At(motion, M[part], rank[part], inputs[part]), besides)
        found.append(models.derivatives(names, changes))
        if second:
            A, f = (x.reshape(count, *x.shape[len(lead):])[part] for x in (model.A, model.second.f))
            by_state.append(state_slopes(models, A, f))
    arrays = {key: np.concatenate(x).reshape(lead + x[0].shape[1:]) for key, *x in zip(Derivatives._fields, *found)}
    if second:
        both, x = np.concatenate(by_state), model.A.shape[-1]
        both = both.reshape(lead + both.shape[1:])
        arrays |= {"A_x": both[..., :x, :], "B_x": both[..., x:, :]}
    return Sensitivity(parameters=names, model=model, **arrays)


def _settled(robot, q, v, tau, tolerance):
    """The robot with contacts in their modes, sliding ones with friction closed in all rows; and these, or None."""
    contact_modes = object_by_name("liedyn.mechanics.contact.contact_modes:contact_modes")
    found = contact_modes(robot, q, v, tau, np.empty(0), tolerance)
    if not found.sliding:
        return found.robot, None
    contacts = Contacts(*(x[found.sliding] for x in watched(robot)))
    return found.robot.switched({name: "sticking" for name in contacts.names}), contacts


def _chunk(robot, columns, parameters):
    return max(1, AT_ONCE // max(1, columns * (parameters + 8) * (2 * robot.nv + 5 * len(robot.row_names))))


def _part(slopes, part):
    return None if slopes is None else slopes._replace(rows=slopes.rows[part], by_numbers=slopes.by_numbers[part])


def without_second_derivatives(robot):
    """A description of what in the robot has no known second derivatives, or None."""
    for each in robot.model.constraints:
        if each.kind == "custom" and each.name in robot.active:
            return f"custom constraint {shown(each.name)}: its functions give first derivatives only"
    for each in robot.model.elements:
        if each.law == "function":
            return f"force element {shown(each.name)}, whose law is a function that gives first slopes only"
    return None


def _require_known(robot, names, changes):
    """InputError if a parameter displaces something for which users' functions give first derivatives only."""
    moving = [any(kind in GEOMETRIC for kind, *_ in own) and bool(robot.row_names) for own, _ in changes]
    for e, each in enumerate(robot.model.elements):
        if each.law == "function":
            k = measured(robot, e)
            bad = [name for name, moves, (_, of_elements) in zip(names, moving, changes) if moves or any(
                kind == SHIFT or kind in GEOMETRIC and what == k for kind, what, _ in of_elements)]
            _refuse(bad, f"force element {shown(each.name)}", "law is a function that gives first slopes only")
    displaced = body_displacements(robot)
    measures = [getattr(each, "measure", None) for each in (*robot.model.elements, *robot.model.actuators)]
    taut = [each for each in robot.model.constraints if each.name in robot.active]
    for each in (*measures, *taut):
        if getattr(each, "kind", "") == "cable":
            at = {robot.body_index(body) for body in each.bodies if body != GROUND}
            bad = [name for name in names if at & displaced.get(name, {}).keys()]
            if bad:
                raise InputError(f"sensitivities by {listed(bad)} would displace points of cable {shown(each.name)} on "
                                 "their link, which is not known: leave such parameters out")
    for each in robot.model.constraints:
        if each.kind == "custom" and each.name in robot.active:
            bad = [name for name, moves in zip(names, moving) if moves]
            _refuse(bad, f"custom constraint {shown(each.name)}", "functions give first derivatives only")


def _refuse(bad, what, why):
    if bad:
        raise InputError(f"sensitivities by {listed(bad)} would need second derivatives of {what}, whose {why}: leave "
                         "such parameters out; those that displace nothing are known")


def _choices(robot, model, K, S):
    """Coordinates and velocities, and their rows at each state."""
    p = K.shape[2]
    y_names, w_names = model.states[:p], tuple(name.removeprefix("velocity:") for name in model.states[p:])
    if y_names and y_names[0].startswith("tangent"):
        R = K.swapaxes(1, 2)  # orthonormal: R N = 1
        y = Independent(y_names, R[0], np.full(p, -1))
        return y, y, R, R
    y, w = by_name(robot, y_names), by_name(robot, w_names)
    for name in y_names:
        if name in robot.virtual_names and is_of_cut_ball(robot, name):
            raise InputError("sensitivities has no second derivatives of independent coordinate "
                             f"{shown(name)} of a ball that is cut")
    return (y, w, *(np.broadcast_to(x.rows, (len(K), *x.rows.shape)) for x in (y, w)))


def is_of_cut_ball(robot, name):
    return any(name.startswith(f"{loop.name}.") for loop in robot.model.loops if LOOP_KINDS[loop.kind].has_quaternion)
