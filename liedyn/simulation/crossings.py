"""Finding the first event in a chunk of rows."""
from liedyn.simulation.events import crosses, guard_value, locate


def watches(run):
    """(what, direction, value at a row) of all that may happen now: events, and releases of unilateral constraints."""
    for event in run.events:
        if useful(run, event):
            yield event, event.direction, lambda rows, k, event=event: guard_value(
                event, float(rows.t[k]), rows.q[k], rows.v[k])
    for name, (row, sign) in run.unilateral.items():
        if run.active[run.robot.constraint_index(name)]:
            yield name, -1, lambda rows, k, row=row, sign=sign: -sign * rows.lam[k, row]


def useful(run, event):
    """Would the event change anything?"""
    on = [run.active[run.robot.constraint_index(name)] == 0 for name in event.on]
    off = [run.active[run.robot.constraint_index(name)] == 1 for name in event.off]
    return any(on + off) or not (on or off) or event.terminal or event.action is not None


def first_crossing(run, done):
    """(row, time, all that happens then) of the earliest crossing in rows 0 to done, or None."""
    first = None
    for what, direction, value in watches(run):
        start, before = beginning(run, what, value)
        for k in range(done if first is None else min(done, first[0] + 1)):
            if run.rows.t[k + 1] <= start:
                continue
            after = value(run.rows, k + 1)
            if crosses(before, after, direction):
                t = located(run, k, max(start, float(run.rows.t[k])), value, before, after)
                if first is None or t < first[1]:
                    first = k, t, what
                break
            before = after
    return first and (*first[:2], simultaneous(run, *first))


def beginning(run, what, value):
    """Time and value from which a guard is watched.

    An event that has just sent the state back, so that its guard is zero but for rounding, is watched from a little
    later on.
    """
    return run.held.get(what) or (float(run.rows.t[0]), value(run.rows, 0))


def simultaneous(run, k, t, first):
    """The first event, and those whose guards have crossed by then too: two feet that land at once."""
    run.integrator.within(run, k, t)
    together = [first]
    for what, direction, value in watches(run):
        start, before = beginning(run, what, value)
        if what != first and start < t and crosses(
                before if k == 0 else value(run.rows, k), value(run.single, 0), direction):
            together.append(what)
    return together


def located(run, k, start, value, before, after):
    """Time of a crossing between rows k and k + 1."""
    def at(t):
        run.integrator.within(run, k, t)
        return value(run.single, 0)

    return locate(at, start, float(run.rows.t[k + 1]), before, after)
