"""Laws that every motion with contact obeys, whatever the mechanism: checked on whole trajectories."""
import numpy as np

import liedyn as ld

OFF, STICKS = 0, 1


def one_sided(robot):
    """Records of the one-sided constraints in the robot's model, with their numbers."""
    return [(k, robot.constraint_names[k], record) for record in robot.model.constraints if record.side
            for k in [robot.constraint_names.index(record.name)]]


def rows(robot, name):
    """Numbers of a constraint's rows, the normal one first."""
    return [k for k, owner in enumerate(robot.row_owners) if owner == name]


def with_all_rows(robot):
    """The robot with all contacts closed, so that their gaps and slip can be read from its rows."""
    return robot.switched({name: "sticking" for _, name, _ in one_sided(robot)})


def gaps(robot, tr):
    """Gaps (nt, contacts), positive outside."""
    closed, own = with_all_rows(robot), one_sided(robot)
    if any(record.target is not None for _, _, record in own):
        residual = np.stack([ld.closure_error(closed.at(t), q) for t, q in zip(tr.t, tr.q)])
    else:
        residual = ld.closure_error(closed, tr.q)
    return np.stack([record.side * residual[:, rows(robot, name)[0]] for _, name, record in own], axis=1)


def check_laws(robot, tr, inputs=False, stepping=None, report=None):
    """No penetration, no pull, no friction beyond its disk, no slip of what sticks, no energy from nowhere.

    Parameters
    ----------
    inputs : bool
        Is there work of inputs? Then the energy may grow.
    stepping : bool, optional
        Has time-stepping had a part in it, with its wider bounds? By default where it is the method.
    report : dict, optional
        Keeps the largest multiple of each bound, instead of the assertion.
    """
    moreau = tr.method == "moreau" if stepping is None else stepping
    own, found = one_sided(robot), {}
    found["depth"] = max(0.0, -gaps(robot, tr).min()) / (1e-5 if moreau else 1e-6)
    psi = ld.velocity_error(with_all_rows(robot), tr.q, tr.v)
    largest = max(np.abs(tr.lam).max(initial=0.0), 1e-9)
    speed = np.maximum(np.abs(tr.v).max(axis=1), 1.0)
    for k, name, record in own:
        first, *rub = rows(robot, name)
        normal, status = -record.side * tr.lam[:, first], tr.status[:, k]
        closed = status > OFF
        # 1e-8: in the row of a release forces pull by what the located instant is late
        found["pull"] = max(found.get("pull", 0.0), (-normal / largest / 1e-8)[closed].max(initial=0.0))
        found["force of an open contact"] = max(found.get("force of an open contact", 0.0), np.abs(
            tr.lam[:, [first, *rub]][~closed]).max(initial=0.0) / largest / 1e-12)  # rounding of friction
        if rub and np.isfinite(record.friction):
            beyond = np.linalg.norm(tr.lam[:, rub], axis=1) - record.friction * normal
            found["friction"] = max(found.get("friction", 0.0), (beyond / largest / 1e-3)[closed].max(initial=0.0))
        if rub and not moreau:
            sticks = status == STICKS
            slip = np.linalg.norm(psi[:, rub], axis=1) / speed
            found["slip"] = max(found.get("slip", 0.0), (slip / 1e-8)[sticks].max(initial=0.0))
    if not inputs:
        energy = tr.energy
        scale = max(np.ptp(energy), tr.kinetic.max(), 1e-6)  # at rest there is nothing that it could be relative to
        gain = (energy[1:] - np.maximum.accumulate(energy)[:-1]).max(initial=0.0)
        gain = max(0.0, gain - 1e-14 * np.abs(tr.potential).max())  # its rounding, in what cannot move
        found["energy"] = gain / scale / (1e-6 if moreau else 1e-9)
    if report is not None:
        for law, value in found.items():
            report[law] = max(report.get(law, 0.0), float(value))
        return
    broken = {law: value for law, value in found.items() if not value <= 1.0}
    assert not broken, f"laws broken by these multiples of their bounds: {broken}"
