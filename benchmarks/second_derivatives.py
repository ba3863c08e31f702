"""Second derivatives of inverse and forward dynamics of open trees, whole and contracted with weights, one state after
another: liedyn's kernels in a user's compiled loop, Pinocchio's C++, and C that CasADi generates."""
import numpy as np

import liedyn as ld
from benchmarks import generated, recursions, robots
from benchmarks.errors import MissingPeer, SlowCompilerError, require_agreement
from benchmarks.native.peers import Second
from benchmarks.tables import MISSING, markdown, microseconds, ratio
from benchmarks.timing import Contender, race
from benchmarks.trees import states
from liedyn import kernels

TITLE = "Second derivatives of open trees"
ROBOTS = ("panda", "ur5", "solo12", "talos", "chain20")
QUICK_ROBOTS = ("panda",)
LOOPS = ("rnea_derivatives_nonzeros", "rnea_second_derivatives_nonzeros", "rnea_hessian_nonzeros",
         "aba_derivatives_nonzeros", "aba_hessian")
TOLERANCE = 1e-8
LONGEST = 20
"""Seconds of processor time that gcc may take for the C of one robot: a chain of twenty joints is 4 MB of it."""

TEXT = f"""Microseconds of processor time per state: median (lower and upper quartile), of the same distinct states.
Whole: four tensors of nv^3 numbers, of which those are written that are not zero at every state; contracted: the four
matrices of `weights=`. native: Pinocchio's `ComputeRNEASecondOrderDerivatives`, `-O3 -march=native`, whole: it has no
others; CasADi: C of `hessian(dot(weights, rnea))` of a recursion in its symbols, for fixed bases only, given up
where gcc takes more than {LONGEST} s for it. dRNEA and dABA are liedyn's first derivatives.
"""


def measure(effort, progress):
    """Time every robot.

    Returns
    -------
    list of dict
        "robot", "timings", and "missing": by peer what stands in its place, and why.
    """
    rows = []
    for name in QUICK_ROBOTS if effort.quick else ROBOTS:
        progress(name)
        missing = {}
        rows.append({"robot": name, "timings": race(_contenders(name, effort, missing), effort), "missing": missing})
    return rows


def _contenders(name, effort, missing):
    robot = robots.named(name)
    n, given = robot.nv, states(robot, "rnea")
    work, tensors, matrices = kernels.workspace(robot), np.zeros((4, n**3)), np.zeros((5, n * n))

    def loop(algorithm):
        out = tensors if algorithm.startswith("rnea_second") else matrices.copy()
        run = getattr(recursions, algorithm)
        return Contender(lambda: run(robot.packed, *given, 0, work, out), len(given[0]))

    contenders = {algorithm: loop(algorithm) for algorithm in LOOPS}
    contenders["rnea_second_derivatives_nonzeros"].run()
    for peer, make in () if effort.quick else (("native", _native), ("CasADi", _casadi)):
        try:
            contenders[peer] = Contender(make(name, robot, given, tensors), len(given[0]))
        except MissingPeer as error:
            slow = isinstance(error, SlowCompilerError)
            missing[peer] = (f"> {error.seconds} s" if slow else MISSING, str(error))
    return contenders


def _in_order_of(oracle, given):
    """States in Pinocchio's order."""
    return tuple(map(np.ascontiguousarray, zip(*(oracle.to_pin(*state) for state in zip(*given)))))


def _native(name, _, given, tensors):
    """Pinocchio's C++ over all states; `tensors` are ours of the last one."""
    oracle = robots.oracle(name)
    run = Second(oracle).run(*_in_order_of(oracle, given))
    run()
    require_agreement(f"{name}, sums of second derivatives", np.abs(run.out[1]).sum(), np.abs(tensors[1]).sum(),
                      TOLERANCE)  # the order of joints may be another
    return run


def _casadi(name, robot, given, _):
    """C that CasADi generates, over all states."""
    n, oracle = robot.nv, robots.oracle(name)
    last, (q, v, x) = np.empty((1, 4 * n * n)), (array[-1] for array in given)
    theirs = _in_order_of(oracle, given)
    run = generated.run(oracle, "rnea_hessian", *theirs, 1, last, keep=False, longest=LONGEST)
    run()
    weighed = ld.rnea_second_derivatives(robot, q, v, x, weights=v)
    require_agreement(f"{name}, sums of contracted ones", [np.abs(part).sum() for part in last.reshape(4, -1)],
                      [np.abs(part).sum() for part in weighed], TOLERANCE)
    return run


def report(rows):
    """The section in Markdown."""
    lines = []
    for row in rows:
        t = row["timings"]
        first, whole, weighed, of_aba, weighed_aba = (t[key] for key in LOOPS)
        native, peer = t.get("native"), t.get("CasADi")
        instead = {name: short for name, (short, _) in row["missing"].items()}
        lines.append((
            row["robot"], instead.get("native") or microseconds(native), microseconds(whole), ratio(native, whole),
            instead.get("CasADi") or microseconds(peer), microseconds(weighed), ratio(peer, weighed),
            microseconds(first), ratio(weighed, first), microseconds(weighed_aba), ratio(weighed_aba, of_aba)))
    why = dict.fromkeys(f"{peer}, {row['robot']}: {why}." for row in rows for peer, (_, why) in row["missing"].items())
    return f"{TEXT}\n" + markdown(
        ("robot", "native", "whole", "native / whole", "CasADi", "contracted", "CasADi / contracted", "dRNEA",
         "contracted / dRNEA", "forward dynamics, contracted", "that / dABA"), lines) + "\n" + "".join(
             f"\n{line}" for line in why) + "\n" * bool(why)
