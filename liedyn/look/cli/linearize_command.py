"""``liedyn linearize``: the state-space model of a robot about a state, printed, checked, saved and drawn."""
import timeit

import numpy as np

import liedyn as ld
from liedyn.look.cli.verification import central_differences
from liedyn.machine.errors import InputError, suggestion
from liedyn.machine.texts import printable
from liedyn.mechanics.constraints.independent import choose
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE


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
    """The full velocity, from those of independent coordinates; those not given are at rest."""
    if not given:
        return np.zeros(robot.nv)
    if independent == "tangent":  # its coordinates have no names of their own
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
    """Median time of an action that has run before."""
    return float(np.median(timeit.repeat(action, number=1, repeat=repeats)))


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
