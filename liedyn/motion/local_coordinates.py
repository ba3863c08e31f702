"""Where the states of a robot are: local coordinates x = (y, w), their states, and how both vary together.

`Deviation` takes coordinates of the tree and of cut joints about one state, `liedyn.tasks.optimal_motion.charts`
tangent spaces about many. Both read coordinates from the difference of q and a reference q_r on the configuration
group, and velocities:

    y = R_y log(q_r^-1 q)        w = R_w v

Back, (q, v) solves the constraints together with these rows by Newton's method (`close`, `complete`): whatever (y, w)
is, the state closes all loops to rounding. J, the inverse right Jacobian joint by joint, takes what displaces q to
changes of log(q_r^-1 q); it is the identity for coordinates in R^n, all but those of ball and free joints.
"""
# mypy: ignore-errors

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from liedyn.lie import (
    Ad, ad, exp, left_jacobian, right_jacobian_inverse, right_jacobian_inverse_slope, so3_exp, so3_hat,
    so3_left_jacobian, so3_right_jacobian_inverse, so3_right_jacobian_inverse_slope,
)
from liedyn.linear.feedback import single_state
from liedyn.machine.compiled.jit import kernel
from liedyn.machine.errors import ClosureError, InputError
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.cluster_weights import solution
from liedyn.mechanics.constraints.families.cut import cut_derivatives_kernel, cut_velocity_kernel
from liedyn.mechanics.constraints.independent import choose_positions, choose_speeds, given_coordinates, holonomic
from liedyn.mechanics.constraints.loops import (
    closure_error, constraint_jacobian, velocity_error, virtual_coordinates, virtual_jacobian,
)
from liedyn.mechanics.tree.configuration import difference, integrate
from liedyn.mechanics.tree.kinematics import world_motion, world_positions, world_size, world_velocities
from liedyn.model.kinds import LOOP_KINDS
from liedyn.model.packed import N_VIRTUAL, NV

if TYPE_CHECKING:
    from liedyn.typing import Array, ArrayLike

NEWTON_STEPS, CONVERGED = 25, 1e-13
"""Newton doubles the digits with each step; one of CONVERGED changes nothing that double precision could show next."""
LARGEST_TURN = 0.5 * np.pi
"""Local coordinates of a ball or free joint end at a quarter turn: J is far from singular there."""


def close(robot, q, read, solve, largest=np.inf):
    """q (count, nq), moved by Newton's method until the constraints and the rows that `read` gives are met.

    ``read(q)`` gives what the rows are off by (count, p) and their derivatives (count, p, nv), ``solve(Z, right)``
    solutions of Z x = right, where equations may be redundant but agree. No step is larger than `largest`, as a part of
    the size of q.

    Returns
    -------
    q : ndarray
    steps : ndarray, shape (count,)
        The last step of each.
    done : ndarray of bool, shape (count,)
        Was it rounding?
    """
    held = holonomic(robot)
    for _ in range(NEWTON_STEPS):
        right, Z = read(q)
        if held.any():
            G = constraint_jacobian(robot, q)
            Z = np.concatenate([G if held.all() else np.where(held[:, None], G, 0.0), Z], axis=1)
            right = np.concatenate([-closure_error(robot, q), right], axis=1)
        step = solve(Z, right)
        steps, size = np.abs(step).max(axis=1, initial=0.0), np.maximum(1.0, np.abs(q).max(axis=1, initial=0.0))
        if not (steps <= largest * size).all():
            break
        q = integrate(robot, q, step)
        if (steps <= CONVERGED * size).all():
            break
    return q, steps, steps <= CONVERGED * size


def complete(robot, q, R, w, solve, times=1):
    """The velocities (count, nv) that the constraints allow at q, for which the rows R (count, p, nv) read w.

    What `solve` leaves is taken away the second of several `times`.
    """
    if not robot.row_names:
        return solve(R, w)
    Z = np.concatenate([constraint_jacobian(robot, q), R], axis=1)
    v, left = np.zeros((len(q), robot.nv)), w
    for k in range(times):
        if k > 0:
            left = w - np.einsum("bij,bj->bi", R, v)
        v = v + solve(Z, np.concatenate([-velocity_error(robot, q, v), left], axis=1))
    return v


def at_time(robot, t):
    """The robot at time t, if anything in it is a function of time."""
    return robot.at(t) if robot.functions else robot


def inverse_jacobian(d):
    """J(d), the inverse right Jacobian, of rotation vectors or twists (..., 3 or 6)."""
    return (so3_right_jacobian_inverse if d.shape[-1] == 3 else right_jacobian_inverse)(d)


def rate_slope(d, r):
    """d(J(d) r)/dd, likewise."""
    return (so3_right_jacobian_inverse_slope if d.shape[-1] == 3 else right_jacobian_inverse_slope)(d, r)


@kernel
def virtual_velocities(model, q, v):
    """Velocities of the cut joints' coordinates, including those of moving frames."""
    work, z = np.empty(world_size(model)), np.empty(model.ints[N_VIRTUAL])
    world_positions(SCALAR, model, q, work)
    world_velocities(SCALAR, model, v, work)
    cut_velocity_kernel(SCALAR, model, work, True, z)
    return z


@kernel
def virtual_rate_derivatives(model, q, v):
    """d(E v)/dq (nz, nv), where E v are the velocities of the cut joints' coordinates."""
    n, nz = model.ints[NV], model.ints[N_VIRTUAL]
    work, zero, found = np.empty(world_size(model)), np.zeros(n), np.zeros((nz, n))
    world_motion(SCALAR, model, q, v, zero, work)
    cut_derivatives_kernel(model, work, True, found, np.zeros((nz, n)), np.zeros((nz, n)))
    return found


class Deviation:
    """The difference x = (y, w) of states from a reference state of a robot, in the coordinates of its linear model.

    Coordinates of cut joints are subtracted directly.

    Attributes
    ----------
    robot : Robot
    q, v : ndarray
        The reference state.
    y, w : Independent
        The chosen coordinates and velocities.
    """

    def __init__(self, robot, q, v, independent, speeds, tolerance):
        independent = given_coordinates("independent", independent)
        y = choose_positions(robot, q, independent, tolerance)
        self._set(robot, q, v, y, choose_speeds(robot, q, y, given_coordinates("speeds", speeds), tolerance), tolerance)
        loops = loops_by_coordinate(robot)
        for name in np.array(y.names, dtype=object)[self._reads]:
            if LOOP_KINDS[loops[name].kind].has_quaternion:
                raise InputError(f"{name!r} of a ball cut has no position that could be regulated")

    @classmethod
    def by(cls, robot, q, v, y, w, tolerance):
        """The difference from (q, v) in given coordinates."""
        found = object.__new__(cls)
        found._set(robot, q, v, y, w, tolerance)
        return found

    def at(self, q, v):
        """The same coordinates about another reference state."""
        return self.by(self.robot, q, v, self.y, self.w, self.tolerance)

    def _set(self, robot, q, v, y, w, tolerance):
        self.robot, self.q, self.v, self.y, self.w, self.tolerance = robot, q.copy(), v.copy(), y, w, tolerance
        self._reads, self._reads_rates = y.virtual >= 0, w.virtual >= 0
        self._is_angle = self._reads.copy()
        if self._reads.any():
            loops = loops_by_coordinate(robot)
            self._is_angle[self._reads] = [is_angle(loops[y.names[k]], y.names[k]) for k in np.flatnonzero(self._reads)]
        self._z = virtual_coordinates(robot, q) if self._reads.any() else np.empty(0)
        self._w = self.speeds(q, v)
        self.zero = np.zeros(len(y.names) + len(w.names))

    def speeds(self, q, v, robot=None):
        """The independent velocities w, including those of moving frames of cut joints."""
        w = self.w.rows @ v
        if self._reads_rates.any():
            read = virtual_velocities((robot or self.robot).packed, q, v)
            w[self._reads_rates] = read[self.w.virtual[self._reads_rates]]
        return w

    def state(self, q, v):
        """One checked state; InputError if q and v are none."""
        return single_state("a regulator takes one state at a time", self.robot, q, v)

    def __call__(self, q, v):
        """x = (y, w), the difference of the state (q, v) from the reference state."""
        y = self.y.rows @ difference(self.robot, self.q, q)
        if self._reads.any():
            y[self._reads] = self._wrapped((virtual_coordinates(self.robot, q) - self._z)[self.y.virtual[self._reads]])
        return np.concatenate([y, self.speeds(q, v) - self._w])

    def derivative(self, q, v):
        """dx/dq in the tangent space at q, and dx/dv, each (x, nv)."""
        n = self.robot.nv
        turned = np.eye(n)
        if self.robot.groups:
            dq = difference(self.robot, self.q, q)
            for group in self.robot.groups:
                turned[group, group] = inverse_jacobian(dq[group])
        by_q = np.vstack([self.y.rows @ turned, np.zeros((len(self.w.names), n))])
        by_v = np.vstack([np.zeros((len(self.y.names), n)), self._rows(self.w, q)])
        if self._reads.any() or self._reads_rates.any():
            by_q[:len(self.y.names)][self._reads] = virtual_jacobian(self.robot, q)[self.y.virtual[self._reads]]
            read = np.flatnonzero(self._reads_rates)
            slopes = virtual_rate_derivatives(self.robot.packed, q, v)
            by_q[len(self.y.names) + read] = slopes[self.w.virtual[read]]
        return by_q, by_v

    def state_at(self, x, robot=None):
        """The state (q, v) with the difference x; `robot` is the robot at another time.

        Raises
        ------
        ClosureError
            Newton's method does not converge.
        """
        robot, p = self.robot if robot is None else robot, len(self.y.names)
        if not x.any() and robot is self.robot:
            return self.q, self.v
        target, reads = integrate(robot, self.q, self.y.rows.T @ np.where(self._reads, 0.0, x[:p])), self._reads
        z = virtual_coordinates(robot, self.q) if reads.any() else None

        def read(q):
            wrong = self.y.rows @ difference(robot, q[0], target)
            if reads.any():
                left = x[:p][reads] - (virtual_coordinates(robot, q[0]) - z)[self.y.virtual[reads]]
                wrong[reads] = self._wrapped(left)
            return wrong[None], self._rows(self.y, q[0])[None]

        def solve(Z, right):
            return solution(robot, Z[0], right[0], self.tolerance)[None]

        q, (step,), (done,) = close(robot, self.q[None], read, solve)
        if not done:
            raise ClosureError(f"no state there closes the loops: the last Newton step is {step:.2g}; the motion "
                               "leaves the workspace, or a step is too long", float(step), None, q[0])
        w = self._w + x[p:]
        if self._reads_rates.any():
            w -= self.speeds(q[0], np.zeros(robot.nv), robot)
        return q[0], complete(robot, q, self._rows(self.w, q[0])[None], w[None], solve)[0]

    # ---- variations of a step that begins here (`liedyn.motion.runge_kutta`)

    @cached_property
    def whole(self):
        """Indices in y of each ball or free joint; the other coordinates belong to R^n.

        Raises InputError if y contains a ball cut, or a part of a ball or free joint.
        """
        robot, groups = self.robot, {}
        owner = {j: group for group in robot.groups for j in range(group.start, group.stop)}
        for k, (name, row) in enumerate(zip(self.y.names, self.y.rows)):
            picked = np.flatnonzero(row)
            if self._reads[k] and LOOP_KINDS[loops_by_coordinate(robot)[name].kind].has_quaternion:
                raise InputError(f"{name} of a ball cut is no derivative of a coordinate, and cannot be integrated")
            if any(int(j) in owner for j in picked):
                if len(picked) > 1 or row[picked[0]] != 1.0:
                    raise InputError(f"{name} mixes coordinates of a ball or free joint, and cannot be integrated")
                group = owner[int(picked[0])]
                groups.setdefault((group.start, group.stop), {})[int(picked[0])] = k
        for (first, end), places in groups.items():
            if len(places) < end - first:
                raise InputError(f"only part of the ball or free joint of {robot.velocity_names[first]} is "
                                 "independent: its coordinates can be integrated together only")
        return [np.array([places[j] for j in sorted(places)]) for places in groups.values()]

    def carry(self, x, start, dx):
        """The body-fixed variation (x, z) of the state with difference x, from those of the reference state and of x.

        Ad_{exp -u} eta + dexp_{-u} du, joint by joint: the sum for coordinates in R^n.
        """
        found = start + dx
        for j in self.whole:
            moved, turned = ((so3_exp(-x[j]), so3_left_jacobian(-x[j])) if len(j) == 3 else
                             (Ad(exp(-x[j])), left_jacobian(-x[j])))
            found[j] = moved @ start[j] + turned @ dx[j]
        return found

    def rate(self, x, rate, d_rate, eta, dx):
        """The rate of x and its variation, from body-fixed rates and theirs at a state that varies by eta.

        Raises
        ------
        InputError
            A ball or free joint turns by more than a quarter turn.
        """
        if not self.whole:
            return rate, d_rate
        k, dk = rate.copy(), d_rate.copy()
        for j in self.whole:
            u, r = x[j], rate[j]
            if np.linalg.norm(u[:3]) > LARGEST_TURN:
                raise InputError(f"a ball or free joint turns by {np.linalg.norm(u[:3]):.2g} rad in one step; at most "
                                 f"{LARGEST_TURN:.2g} rad: take a shorter step")
            J = inverse_jacobian(u)
            k[j] = J @ r
            # the tangent turns with the body: d_rate has -ad_r eta
            dk[j] = J @ (d_rate[j] + (so3_hat(r) if len(j) == 3 else ad(r)) @ eta[j]) + rate_slope(u, r) @ dx[j]
        return k, dk

    def _wrapped(self, left):
        """Changes of coordinates of cut joints; those of angles in (-pi, pi]."""
        return np.where(self._is_angle[self._reads], left - 2.0 * np.pi * np.round(left / (2.0 * np.pi)), left)

    def _rows(self, chosen, q):
        return chosen.matrix(virtual_jacobian(self.robot, q)) if (chosen.virtual >= 0).any() else chosen.rows


class Centred:
    """Base class of what works about a state, from which `_deviation` takes the difference."""

    def deviation(self, q: ArrayLike, v: ArrayLike) -> Array:
        """The deviation x of a state from the operating point, or of a filter from the estimate.

        Parameters
        ----------
        q : array_like, shape (nq,)
            Configuration [rad, m; quaternions (x, y, z, w)].
        v : array_like, shape (nv,)
            Velocity [rad/s, m/s].

        Returns
        -------
        x : ndarray, shape (x,)
            In the order of the states, on the configuration group for ball and free joints. For a filter
            ``x @ inv(P) @ x`` is the normalised squared error of the estimate.

        Raises
        ------
        InputError
            A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> ld.lqr(arm, arm.home, Q=1.0, R=0.1).deviation(arm.home, [0.0] * 4).tolist()
        [0.0, 0.0, 0.0, 0.0]
        """
        return self._deviation(*self._deviation.state(q, v))


def loops_by_coordinate(robot):
    """The cut joint of each of their coordinates, by name."""
    return {loop.name + suffix: loop for loop in robot.model.loops for suffix in LOOP_KINDS[loop.kind].velocities}


def is_angle(loop, name):
    """True if a coordinate of a cut joint is an angle that is known up to full turns only."""
    form = LOOP_KINDS[loop.kind]
    return form.motions[form.velocities.index(name[len(loop.name):])][0] == "w" and not loop.pitch
