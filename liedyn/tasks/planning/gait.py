"""Plans along a schedule of contacts: the phases ahead, and the transfer of an earlier plan to them.

Steps are numbered from t = 0 on. A plan that begins with step `first` starts with a phase change of no duration, which
moves the measured state to the constraints of the phase at that time, followed by the phases ahead. A knot is
identified by the number of the step that begins there, and by whether it comes after a phase change.
"""
import numpy as np

from liedyn.machine.arguments import names, whole
from liedyn.machine.errors import InputError, shown
from liedyn.tasks.planning.phase_changes import close_knots
from liedyn.tasks.planning.phase_schedule import Phase

NOW = 1
"""Index of the step whose inputs are applied, in a plan along a schedule."""


def schedule_of(schedule):
    """The phases of a schedule, None without one."""
    if schedule is None:
        return None
    if not isinstance(schedule, (tuple, list)) or not schedule or not all(isinstance(x, Phase) for x in schedule):
        raise InputError("schedule must be phases that follow one another, such as [ld.Phase(['foot'], 20), "
                         f"ld.Phase([], 15)], got {shown(schedule)}")
    return [Phase(names("closed", each.closed), whole("steps of a phase", each.steps, 1)) for each in schedule]


def phases_ahead(schedule, first, steps):
    """The phases of `steps` steps from step `first` on, after one without steps in which all contacts are open."""
    ends = np.cumsum([each.steps for each in schedule])
    at = first % ends[-1]
    i = int(np.searchsorted(ends, at, "right"))
    room, ahead = ends[i] - at, [Phase((), 0)]
    while steps > 0:
        count, closed = int(min(room, steps)), schedule[i].closed
        goes_on = len(ahead) > 1 and ahead[-1].closed == closed
        ahead.append(Phase(closed, count + ahead.pop().steps if goes_on else count))
        i, steps = (i + 1) % len(schedule), steps - count
        room = schedule[i].steps
    return ahead


def steps_and_touches(solver, first):
    """Number of the step that begins at each knot; 1 after phase changes; 1 before phase changes."""
    behind = np.concatenate([[0], np.diff(solver.of_knot)])
    return (first + np.arange(len(behind)) - solver.of_knot).tolist(), behind.tolist(), behind[1:].tolist()


def carry(old, first_old, new, first_new):
    """Copies states, inputs, feedback and multipliers of common knots. Knots that only the new plan has come last."""
    numbers, behind, touches = steps_and_touches(old, first_old)
    knots = {(numbers[k], behind[k]): k for k in range(NOW, old.steps + 1)}
    steps = {(numbers[k], touches[k]): k for k in range(NOW, old.steps)}
    phases, phases_old = new.discretisation.phases, old.discretisation.phases
    numbers, behind, touches = steps_and_touches(new, first_new)
    for k in range(NOW, new.steps + 1):
        at = knots.get((numbers[k], behind[k]), knots.get((numbers[k], 1 - behind[k]), old.steps))
        new.path.q[k], new.path.v[k], new.expansion.lam[k] = old.path.q[at], old.path.v[at], old.expansion.lam[at]
        at = steps.get((numbers[k], touches[k])) if k < new.steps else None
        if at is not None:
            new.path.u[k], new.expansion.K[k] = old.path.u[at], old.expansion.K[at]
            phases.cones.lam[k] = phases_old.cones.lam[at]
            if touches[k]:
                phases.lam[new.of_knot[k]] = phases_old.lam[old.of_knot[at]]


def close(solver):
    """Moves the states of all knots but the first one to the constraints of their phases.

    Raises
    ------
    PlanError
        A state cannot be moved there.
    """
    at = close_knots(solver.model, solver.discretisation, solver.rooms.step, solver.path, NOW)
    if at <= solver.steps:
        solver.fail(at, solver.path)
