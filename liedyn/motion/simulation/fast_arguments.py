"""Fast checks of a state and forces passed at every step: a tenth of a microsecond in the usual case."""
from liedyn.machine.compiled.objects import counted
from liedyn.machine.errors import InputError
from liedyn.model.calls.boundary import as_floats, require_usable, states
from liedyn.model.calls.direct import configuration, direct, general_path, packed, usual, velocity


@direct
def usual_state(model, q, v, tau):
    """q if q, v and tau are vectors as kernels take them, else None."""
    model = packed(model)
    given = configuration(model, q), velocity(model, v), velocity(model, tau)
    return counted(q) if usual(given) else general_path()


def state_and_forces(owner, robot, q, v, tau):
    """The user's state and forces as vectors for kernels.

    Raises InputError if a shape does not fit, an entry is not finite, or a quaternion is not of unit length.
    """
    if usual_state(robot.packed, q, v, tau) is not None:
        return q, v, tau
    lead, *rows = states(robot, q=q, v=v, tau=tau)
    if lead:
        raise InputError(f"{owner} takes one state, got leading axes {lead}")
    return [x[0] for x in rows]


def held_forces(robot, tau, u):
    """tau of one step; if forces u of the actuators are given instead, tau = B u.

    Raises InputError if both or neither are given, or u does not fit.
    """
    if (tau is None) == (u is None):
        raise InputError("give tau or u: u are the forces of the actuators, tau those of all coordinates")
    if u is None:
        return tau
    u = as_floats("u", u, len(robot.actuator_names))
    if u.ndim != 1:
        raise InputError(f"u must have shape ({len(robot.actuator_names)},), got {u.shape}")
    require_usable("u", u)
    return robot.actuator_matrix @ u
