"""Second derivatives of inverse and forward dynamics of open trees, whole and contracted with weights, one state after
another: liedyn's kernels in a user's compiled loop, Pinocchio's C++, and C that CasADi generates."""
import numpy as np

import liedyn as ld
from benchmarks import generated, recursions, robots
from benchmarks.errors import MissingPeer, require_agreement
from benchmarks.native.peers import Second
from benchmarks.tables import markdown, microseconds, ratio
from benchmarks.timing import Contender, race
from benchmarks.trees import states
from liedyn import kernels

TITLE = "Second derivatives of open trees"
ROBOTS = ("panda", "ur5", "solo12", "talos", "chain20")
QUICK_ROBOTS = ("panda",)
LOOPS = ("rnea_derivatives_nonzeros", "rnea_second_derivatives_nonzeros", "rnea_hessian_nonzeros",
         "aba_derivatives_nonzeros", "aba_hessian")
TOLERANCE = 1e-8

TEXT = """Microseconds of processor time per state: median (lower and upper quartile), of the same distinct states.
Whole: four tensors of nv^3 numbers, of which those are written that are not zero at every state; contracted: the four
matrices of `weights=`. native: Pinocchio's `ComputeRNEASecondOrderDerivatives`, `-O3 -march=native`, whole: it has no
others; CasADi: C of `hessian(dot(weights, rnea))` of a recursion in its symbols, for fixed bases only. dRNEA and dABA
are liedyn's first derivatives.
"""


def measure(effort, progress):
    """Time every robot.

    Returns
    -------
    dict
        "rows": robot and timings; "missing".
    """
    rows, missing = [], {}
    for name in QUICK_ROBOTS if effort.quick else ROBOTS:
        progress(name)
        rows.append({"robot": name, "timings": race(_contenders(name, effort, missing), effort)})
    return {"rows": rows, "missing": missing}


def _contenders(name, effort, missing):
    robot = robots.named(name)
    n, (q, v, x) = robot.nv, states(robot, "rnea")
    work, tensors, matrices = kernels.workspace(robot), np.zeros((4, n**3)), np.zeros((5, n * n))

    def loop(algorithm):
        out = tensors if algorithm.startswith("rnea_second") else matrices.copy()
        run = getattr(recursions, algorithm)
        return Contender(lambda: run(robot.packed, q, v, x, 0, work, out), len(q))

    contenders = {algorithm: loop(algorithm) for algorithm in LOOPS}
    contenders["rnea_second_derivatives_nonzeros"].run()
    if effort.quick:
        return contenders
    try:
        oracle = robots.oracle(name)
        given = tuple(map(np.ascontiguousarray, zip(*(oracle.to_pin(*state) for state in zip(q, v, x)))))
        native = Second(oracle).run(*given)
        native()
        require_agreement(f"{name}, sums of second derivatives", np.abs(native.out[1]).sum(),
                          np.abs(tensors[1]).sum(), TOLERANCE)  # the order of joints may be another
        contenders["native"] = Contender(native, len(q))
        last = np.empty((1, 4 * n * n))
        contenders["CasADi"] = Contender(
            generated.run(oracle, "rnea_hessian", *given, 1, last, keep=False), len(q))
        contenders["CasADi"].run()
        weighed = ld.rnea_second_derivatives(robot, q[-1], v[-1], x[-1], weights=v[-1])
        require_agreement(f"{name}, sums of contracted ones", [np.abs(part).sum() for part in last.reshape(4, -1)],
                          [np.abs(part).sum() for part in weighed], TOLERANCE)
    except MissingPeer as error:
        missing["CasADi" if "native" in contenders else "native"] = str(error)
    return contenders


def report(results):
    """The section in Markdown."""
    lines = []
    for row in results["rows"]:
        t = row["timings"]
        first, whole, weighed, of_aba, weighed_aba = (t[key] for key in LOOPS)
        native, peer = t.get("native"), t.get("CasADi")
        lines.append((
            row["robot"], microseconds(native), microseconds(whole), ratio(native, whole), microseconds(peer),
            microseconds(weighed), ratio(peer, weighed), microseconds(first), ratio(weighed, first),
            microseconds(weighed_aba), ratio(weighed_aba, of_aba)))
    notes = [f"{peer}: {why}" for peer, why in sorted(results["missing"].items())]
    return f"{TEXT}\n" + markdown(
        ("robot", "native", "whole", "native / whole", "CasADi", "contracted", "CasADi / contracted", "dRNEA",
         "contracted / dRNEA", "forward dynamics, contracted", "that / dABA"), lines) + "\n".join(["", *notes])
