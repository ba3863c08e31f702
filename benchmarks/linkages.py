"""Small linkages: how exactly, and how fast, each library finds the frequency at which one swings.

The libraries are those that can be imported; `peers` has the linkages and how each library is asked.
"""
import time
from dataclasses import replace

import numpy as np

from benchmarks.errors import MissingPeer
from benchmarks.exact import ExactMechanism
from benchmarks.peers.libraries import LIBRARIES, declared
from benchmarks.peers.linkage import LINKAGES
from benchmarks.tables import MISSING, markdown, microseconds
from benchmarks.timing import Contender, Timing, race

TITLE = "Small linkages in other libraries"
LONG = 0.5
"""A call that takes longer [s] is timed once."""
QUICK_LIBRARIES = ("liedyn",)

TEXT = """Linkages that hang at rest in the plane: a pendulum, a parallelogram and a trapezium (four-bar linkages).
Frequency of the swing, its error relative to the exact one (closed form, or fifty digits), and the processor time from
the built model to the frequency, called from Python: median (quartiles). A call of more than half a second is timed
once.

- liedyn: `ld.linearize`, eigenvalues of A. - SymPy: `LagrangesMethod` with a multiplier for each row, `linearize`,
evaluated; the derivation is part of the call. - MuJoCo: `mjd_transitionFD` at a step of 1 ms; closures are its soft
`connect`, made as stiff as it goes well. - Drake: `Linearize` of a continuous plant; closures are bushings of 1e7 N/m,
as in its own four-bar example, and the plant is moved to where they carry the load. - Exudyn: `ComputeODE2Eigenvalues`
of rigid bodies in redundant coordinates with joints; it leaves out the stiffness that comes from the forces in the
joints, which is all there is in a linkage that hangs: it finds 0 Hz.
"""


def measure(effort, progress):
    """Frequencies and times.

    Returns
    -------
    dict
        "rows": linkage, library, exact, source, frequency, timings (one entry, "call"); "missing" libraries.
    """
    rows, missing = [], {}
    for make in LINKAGES:
        linkage = exact_frequency(make())
        for name in QUICK_LIBRARIES if effort.quick else LIBRARIES:
            progress(f"{linkage.name}, {name}")
            try:
                frequency, timing = _timed(LIBRARIES[name](linkage), effort)
            except MissingPeer as error:
                missing[name] = str(error)
                continue
            except Exception as error:  # a library of others may raise anything; the row says so
                missing[f"{name} for the {linkage.name}"] = f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
                continue
            rows.append({"linkage": linkage.name, "library": name, "exact": linkage.frequency, "source": linkage.source,
                         "frequency": frequency, "timings": {"call": timing}})
    return {"rows": rows, "missing": missing}


def exact_frequency(linkage):
    """The linkage with its frequency, computed to fifty digits where there is no closed form; NaN without mpmath."""
    if linkage.frequency > 0.0:
        return linkage
    robot = declared(linkage)
    try:
        exact = ExactMechanism(robot, [f"bar{k}" for k in linkage.independent])
    except MissingPeer:
        return replace(linkage, frequency=float("nan"), source=MISSING)
    rest = np.zeros(robot.nv)
    return replace(linkage, frequency=float(np.sqrt(-exact.lower_rows(robot.home, rest, rest)[0, 0]) / (2 * np.pi)))


def _timed(run, effort):
    start = time.thread_time()
    frequency = run()  # what is compiled or loaded at the first call
    if time.thread_time() - start > LONG:
        start = time.thread_time()
        run()
        if (once := time.thread_time() - start) > LONG:
            return frequency, Timing(once, once, once)
    return frequency, race({"call": Contender(run, 1)}, effort)["call"]


def report(results):
    """The section in Markdown."""
    lines = [(row["linkage"], row["library"], f"{row['frequency']:.9f}", f"{row['exact']:.9f} ({row['source']})",
              f"{abs(row['frequency'] / row['exact'] - 1.0):.1e}", microseconds(row["timings"]["call"]))
             for row in results["rows"]]
    notes = "".join(f"\nMissing: {name} ({why}).\n" for name, why in results["missing"].items())
    heading = ("linkage", "library", "frequency [Hz]", "exact", "relative error", "time [us]")
    return f"{TEXT}\n{markdown(heading, lines)}\n{notes}"
