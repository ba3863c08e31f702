"""Calls from Python on robots that declare no independent coordinates, as those of every robot file."""
import numpy as np

import liedyn as ld
from benchmarks import loops, robots
from benchmarks.closures import closures
from benchmarks.errors import DisagreementError, MissingPeer, relative_difference
from benchmarks.tables import MISSING, markdown, median, quotient
from benchmarks.targets import mark
from benchmarks.timing import Contender, race
from liedyn.mechanics.constraints.independent import choose
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.model.calls.boundary import wrenches

TITLE = "Calls without declared coordinates"
MECHANISMS, QUICK_MECHANISMS = ("carrier10+1", "carrier18+3", "carrier6+24"), ("carrier10+1",)
"""Arms that carry parallelograms: 13, 27 and 78 coordinates."""
CALLS = {"default": None, "auto": "auto", "tangent": "tangent"}
TOLERANCE, STATES, PROXIMAL = 1e-4, 8, 1e-10
SMALL = 20
"""Coordinates below which f should be no slower than `pin`, and A, B and f 1.5 times faster; above 1.7 and 2 times."""

TEXT = """Microseconds of processor time per single call from Python, one thread, of `ld.forward_dynamics` (f) and
`ld.linearize` (A, B, f) on arms of N joints that carry L parallelograms, and declare no independent coordinates.
kernel: the same in compiled code. named: with the coordinates of "auto" by name. pin: Pinocchio's
`constraintDynamics`, and `computeConstraintDynamicsDerivatives` after it, not reduced, called from Python; it closes
the loops by points (3 rows).
"""


def measure(effort, progress):
    """Time every mechanism.

    Returns
    -------
    list of dict
    """
    rows = []
    for name in QUICK_MECHANISMS if effort.quick else MECHANISMS:
        progress(name)
        rows.append(_row(name, effort))
    return rows


def _row(name, effort):
    robot = robots.named(name)
    q, v, tau = robots.moving_states(robot, STATES, np.random.default_rng(1))
    chosen, f_ext = choose(robot, q[0], "auto", RANK_TOLERANCE), wrenches(robot, None, ())[0]
    given = (robot.packed, q, v, tau, f_ext)
    choice = chosen.rows, chosen.virtual, robot.actuator_matrix.copy()
    contenders = {
        "kernel f": Contender(lambda: loops.accelerations_loop(*given, RANK_TOLERANCE), STATES),
        "kernel A, B, f": Contender(lambda: loops.linearize_loop(*given, *choice, RANK_TOLERANCE), STATES)}
    for what, function in (("f", ld.forward_dynamics), ("A, B, f", ld.linearize)):
        for call, independent in {"named": chosen.names, **CALLS}.items():
            contenders[f"{call} {what}"] = Contender(_calls(function, robot, (q, v, tau), independent), STATES)
    peer, why = _pin(name, robot, (q, v, tau)) if not effort.quick else ({}, "not in quick runs")
    return {"robot": name, "nv": robot.nv, "missing": why, "timings": race(contenders | peer, effort)}


def _calls(function, robot, states, independent):
    states = list(zip(*states))

    def run():
        for state in states:
            function(robot, *state, independent=independent)
    return run


def _pin(name, robot, states):
    """Contenders of Pinocchio called from Python, and why they are missing.

    Raises
    ------
    DisagreementError
        Its accelerations are others.
    """
    try:
        oracle = robots.oracle(name)
        import pinocchio as pin

        constraints = closures(robot, oracle, True)
    except MissingPeer as error:
        return {}, str(error)
    model, data, settings = oracle.model, oracle.model.createData(), pin.ProximalSettings(1e-12, PROXIMAL, 1)
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for rows, *sides in constraints:
        kind = pin.ContactType.CONTACT_3D if rows == 3 else pin.ContactType.CONTACT_6D
        models.append(pin.RigidConstraintModel(kind, model, *sides, pin.ReferenceFrame.LOCAL))
    for each in models:
        datas.append(each.createData())
    pin.initConstraintDynamics(model, data, models, datas)
    given = [oracle.to_pin(*state) for state in zip(*states)]
    for state, own in zip(given, zip(*states)):
        a = oracle.from_pin_v(pin.constraintDynamics(model, data, *state, models, datas, settings))
        error = relative_difference(a, ld.forward_dynamics(robot, *own).a)
        if not error < TOLERANCE:
            raise DisagreementError(f"{name}: Pinocchio's constrained accelerations differ by {error:.2g}", error)

    def f():
        for state in given:
            pin.constraintDynamics(model, data, *state, models, datas, settings)

    def derivatives():
        for state in given:
            pin.constraintDynamics(model, data, *state, models, datas, settings)
            pin.computeConstraintDynamicsDerivatives(model, data, models, datas, settings)

    return {"pin f": Contender(f, STATES), "pin A, B, f": Contender(derivatives, STATES)}, None


def _targets(row):
    return {"f": 1.0 if row["nv"] < SMALL else 1.7, "A, B, f": 1.5 if row["nv"] < SMALL else 2.0}


def report(rows):
    """The section in Markdown."""
    heading = ("mechanism", "nv", "result", "kernel", "named", *CALLS, "pin", "pin / default")
    lines = []
    for row in rows:
        t = row["timings"]
        for what, target in _targets(row).items():
            times = [t.get(f"{who} {what}") for who in ("kernel", "named", *CALLS, "pin")]
            lines.append((row["robot"], str(row["nv"]), what, *(MISSING if x is None else median(x) for x in times),
                          mark(quotient(times[-1], t[f"default {what}"]), target)))
    notes = "".join(f"\nMissing for {row['robot']}: pin ({row['missing']}).\n" for row in rows if row["missing"])
    return f"{TEXT}\n{markdown(heading, lines)}\n{notes}"


def target_pairs(rows):
    """For the table of targets: job, peer, and the ratios of all mechanisms with their targets."""
    for what in ("f", "A, B, f"):
        yield f"{what}, default call from Python", "pin from Python", [
            (quotient(row["timings"].get(f"pin {what}"), row["timings"][f"default {what}"]), _targets(row)[what])
            for row in rows]
