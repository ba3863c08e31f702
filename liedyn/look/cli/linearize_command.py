"""``liedyn linearize``: the state-space model of a robot about a state, printed, checked, saved and drawn.

``liedyn linearize --check`` compares with central differences of the exactly reduced dynamics. These are an independent
check only: the library itself takes no finite differences. They share with `linearize` the closure error, the
constraint Jacobian and forward dynamics, but none of their derivatives.
"""
import liedyn as ld
import timeit

import numpy as np

from liedyn.machine.errors import InputError, LiedynError, suggestion
from liedyn.machine.program.handover import is_interpreting
from liedyn.machine.texts import printable
from liedyn.mechanics.constraints.closing import Rule, iteration
from liedyn.mechanics.constraints.independent import choose, choose_positions, choose_speeds
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE

LONG = 0.2
"""Seconds after which a time is not measured again."""
STEP = 1e-3  # truncation error about STEP^4; rounding error about 1e-16 / STEP
STENCIL = ((1, 2 / 3), (-1, -2 / 3), (2, -1 / 12), (-2, 1 / 12))
STEPS = Rule(steps=12, rounding=1e-15, enough=1e-9, slow=0.5, growth=np.inf)  # by their sizes


def central_differences(robot, ss, independent):
    """A and B of a linearized robot, from differences of dx/dt = f(x, u).

    Parameters
    ----------
    robot : Robot
    ss : LocalStateSpace
        The system to be checked: only its operating point is used.
    independent : sequence of str, "auto", "tangent" or None
        As for `linearize`; the independent velocities are those of these coordinates.

    Returns
    -------
    A, B : ndarray
        Shapes (p, p) and (p, nu), p independent coordinates and velocities.

    Raises
    ------
    LiedynError
        A rotation of a ball in a cut joint is among the independent coordinates: it is the rate of no single
        coordinate.

    Examples
    --------
    >>> import liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> ss = ld.linearize(robot, robot.home, [0.0] * 4, [0.0] * 4)
    >>> A, B = central_differences(robot, ss, ss.states[:2])
    >>> bool(abs(A - ss.A).max() < 1e-8 * abs(ss.A).max())
    True
    """
    reduced = _Reduced(robot, ss, independent)
    n_y, p, nu = len(reduced.y.names), len(ss.states), len(robot.actuator_names)
    force = 1.0 / (np.abs(ss.B).max(initial=0.0) or 1.0)  # the rates are affine in the forces: a large step is exact
    scale = np.repeat([1.0, force], [p, nu])
    columns = [_derivative(lambda h, e=e: reduced.rate(h * e[:n_y], h * e[n_y:p], h * e[p:])) for e in np.diag(scale)]
    derivatives = (np.reshape(columns, (p + nu, p)) / scale[:, None]).T
    return derivatives[:, :p], derivatives[:, p:]


def _derivative(function):
    return sum(weight * function(k * STEP) for k, weight in STENCIL) / STEP


class _Reduced:
    """dx/dt of the mechanism in x = (y, w): deviation of the independent coordinates from the moving operating point,
    and the independent velocities."""

    def __init__(self, robot, ss, independent):
        self.robot, self.q, self.v, self.tau = robot, ss.q, ss.v, ss.tau
        self.y = choose_positions(robot, ss.q, independent, RANK_TOLERANCE)
        self.w = choose_speeds(robot, ss.q, self.y, None, RANK_TOLERANCE)
        for name in np.array(self.y.names)[self.y.virtual >= 0]:
            loop = next(loop for loop in robot.model.loops if name == loop.name or name.startswith(f"{loop.name}."))
            if loop.kind == "spherical":
                raise LiedynError(f"--check cannot vary {name}: it is no derivative of a coordinate")
        self.w0 = self.rows(self.w, ss.q) @ ss.v

    def rows(self, chosen, q):
        return chosen.matrix(ld.virtual_jacobian(self.robot, q))

    def deviation(self, q0, q):
        """y of q relative to q0."""
        y, cut = self.y.rows @ ld.difference(self.robot, q0, q), self.y.virtual >= 0
        if cut.any():
            moved = ld.virtual_coordinates(self.robot, q) - ld.virtual_coordinates(self.robot, q0)
            y[cut] = moved[self.y.virtual[cut]]
        return y

    def configuration(self, y):
        """The closed configuration with deviation y, by Newton's method from the operating point."""
        q, step, holonomic = self.q.copy(), np.empty(self.robot.nv), self.robot.holonomic

        def next_step(robot, y, q):
            error = np.concatenate([ld.closure_error(robot, q)[holonomic], self.deviation(self.q, q) - y])
            step[:] = self.solve(q, holonomic, self.y, -error)
            return np.abs(step).max(initial=0.0)

        def take_step(robot, y, q):
            q[:] = ld.integrate(robot, q, step)
            return True

        iteration(next_step, take_step)(self.robot, y, STEPS, q)
        return q

    def solve(self, q, rows, chosen, right):
        """The motion for given rates of these rows of G and of the chosen coordinates."""
        Z = np.vstack([ld.constraint_jacobian(self.robot, q)[rows], self.rows(chosen, q)])
        return np.linalg.lstsq(Z, right, rcond=RANK_TOLERANCE)[0]

    def rate(self, y, w, u):
        """(dy/dt, dw/dt) at deviations y, w and u from the operating point."""
        robot, m = self.robot, len(self.robot.row_names)
        q = self.configuration(y)
        v = self.solve(q, slice(m), self.w, np.concatenate([np.zeros(m), self.w0 + w]))
        a = ld.forward_dynamics(robot, q, v, self.tau + ld.actuator_matrix(robot, q) @ u, independent=self.w).a
        y_dot, w_dot = self.rows(self.y, q) @ v, self.rows(self.w, q) @ a
        # the tangent of ball joints turns with the body: relative to the moving operating point
        if robot.nq != robot.nv:
            y_dot = _derivative(lambda t: self.deviation(
                ld.integrate(robot, self.q, t * self.v), ld.integrate(robot, q, t * v)))
        if (self.w.virtual >= 0).any():
            w_dot = w_dot + _derivative(lambda t: self.rows(self.w, ld.integrate(robot, q, t * v)) @ v)
        return np.concatenate([y_dot, w_dot])


def linearize(arguments):
    """Run the command with parsed arguments."""
    robot = ld.load(arguments.robot)
    independent = _independent(arguments.independent)
    q = ld.close(robot, _guess(robot, dict(arguments.guess)), dict(arguments.at))
    v = _velocity(robot, q, independent, dict(arguments.velocity))
    ss = ld.linearize(robot, q, v, np.zeros(robot.nv), independent=independent)

    on_positions, freedom = ss.K.shape[1], ss.S.shape[1]
    print(f"{printable(robot.name)}: {robot.nv} coordinates, {len(robot.row_names)} constraint rows of rank {ss.rank}, "
          f"{freedom} degrees of freedom" + (f" ({on_positions} of positions)" if on_positions != freedom else ""))
    _print_state(robot, ss)
    _print_matrix("A", ss.A, ss.states, ss.states)
    _print_matrix("B", ss.B, ss.states, ss.inputs)
    print("\neigenvalues [1/s]")
    for value in ss.eigenvalues():
        imaginary = f" {'-' if value.imag < 0 else '+'} {abs(value.imag):.8g}i" if value.imag else ""
        print(f"  {value.real:.8g}{imaginary}")
    print(f"\nclosure residual: {ss.closure_residual:.2e}")
    print(f"condition number of the independent coordinates: {ss.condition:.3g}")
    if arguments.check:
        _check(robot, ss, independent)
    if arguments.save:
        print(f"\nsystem written to {printable(str(ss.save(arguments.save)))}")
    if arguments.plot:
        ld.plotting.save_picture(arguments.plot, robot, q, ss.eigenvalues())
        print(f"{'' if arguments.save else chr(10)}picture written to {printable(arguments.plot)}")


def _independent(names):
    if names and len(names) == 1 and names[0] in ("auto", "tangent"):
        return names[0]
    return tuple(names) if names else None


def _guess(robot, given):
    """The home configuration with the given values of coordinates, which need not close the loops."""
    q, names = robot.home.copy(), [name for name in robot.coordinate_names if name in robot.velocity_names]
    for name, value in given.items():
        if name not in names:
            raise InputError(f"--guess {name}: not a coordinate of the tree with a value of its own, "
                             f"{suggestion(name, names)}")
        q[robot.coordinate_index(name)] = value
    return q


def _velocity(robot, q, independent, given):
    """The full velocity, from those of independent coordinates; those not given are zero."""
    if not given:
        return np.zeros(robot.nv)
    if independent == "tangent":  # tangent coordinates have no names
        independent = None
    names = choose(robot, q, independent, RANK_TOLERANCE).names
    for name in given:
        if name not in names:
            raise InputError(f"--velocity {name}: not one of the independent coordinates, {suggestion(name, names)}")
    return ld.complete_velocity(robot, q, {name: given.get(name, 0.0) for name in names})


def _print_state(robot, ss):
    print("\nstate")
    motion = [(f"{v:.8g}", f"{a:.8g}") for v, a in zip(ss.v, ss.a)]
    heading = ("v [rad/s, m/s]", "a [rad/s^2, m/s^2]")
    positions = [(name, f"{value:.8g}") for name, value in zip(robot.coordinate_names, ss.q)]
    if robot.nq == robot.nv:
        _print_rows([("coordinate", "q [rad, m]", *heading)] + [(*q, *va) for q, va in zip(positions, motion)])
        return
    _print_rows([("coordinate", "q [rad, m]"), *positions])
    print()
    _print_rows([("velocity", *heading)] + [(name, *va) for name, va in zip(robot.velocity_names, motion)])


def _print_matrix(title, matrix, row_names, column_names):
    print(f"\n{title}")
    _print_rows([("", *column_names)] + [(name, *(f"{x:.8g}" for x in row)) for name, row in zip(row_names, matrix)])


def _print_rows(rows):
    rows = [[printable(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for first, *others in rows:
        print("  " + first.ljust(widths[0]) + "".join(text.rjust(w + 2) for text, w in zip(others, widths[1:])))


def _seconds(action, repeats):
    """Median time of an action that has run before; of one run if that takes long."""
    once = timeit.timeit(action, number=1)
    return once if once > LONG else float(np.median([once, *timeit.repeat(action, number=1, repeat=repeats - 1)]))


def _check(robot, ss, independent):
    if independent is None or independent == "auto":
        independent = ss.states[:ss.K.shape[1]]
    A, B = central_differences(robot, ss, independent)
    analytic = _seconds(lambda: ld.linearize(robot, ss.q, ss.v, ss.tau, independent=independent), 21)
    differences = _seconds(lambda: central_differences(robot, ss, independent), 3)
    worst = max(np.abs(mine - other).max(initial=0.0) / (np.abs(mine).max(initial=0.0) or 1.0)
                for mine, other in ((ss.A, A), (ss.B, B)))
    print("\ncomparison with central differences of the reduced dynamics (order 4)")
    print(f"  largest difference, relative to the largest entry: {worst:.2e}")
    print(f"  time, exact:               {1e3 * analytic:10.3f} ms")
    print(f"  time, central differences: {1e3 * differences:10.3f} ms")
    if is_interpreting():
        print("  both interpreted: compiled code, which `liedyn warmup` makes ahead, is faster")
