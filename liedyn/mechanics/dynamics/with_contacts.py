"""Forward dynamics of robots with one-sided constraints: first the contact modes, then any formulation.

`liedyn.mechanics.contact.contact_modes` decides which contacts are closed at a state, and computes the friction of the
sliding ones. The result is a robot without one-sided constraints, and a known force: states with the same contact modes
are solved together.
"""
import numpy as np

from liedyn.machine.errors import InputError, of_the_batch
from liedyn.mechanics.contact.contact_modes import contact_modes, watched
from liedyn.mechanics.dynamics.dynamics_result import ForwardDynamics
from liedyn.model.calls.boundary import states, wrenches
from liedyn.model.packed import Shown
from liedyn.model.remembered import remembered

_FIELDS = ("a", "lam", "rank", "condition", "constraint_force", "singular_values", "indicator", "singular")


def settle_states(robot, lead, q, v, tau, forces, tolerance):
    """`contact_modes` for each state; errors name the state of the batch."""
    found = []
    for b, state in enumerate(zip(q, v, tau, forces)):
        with of_the_batch(lead, b):
            found.append(contact_modes(robot, *state, tolerance))
    return found


def dynamics_with_contacts(forward_dynamics, robot, state, rank_tolerance, **options):
    """`forward_dynamics` where a `State` decides which contacts are closed; that function is called for the rest."""
    f_ext = state.f_ext
    lead, q, v, tau = states(robot, q=state.q, v=state.v, tau=state.tau)
    if not len(q):
        raise InputError("forward_dynamics needs at least one state")
    settled = settle_states(robot, lead, q, v, tau, wrenches(robot, f_ext, lead), rank_tolerance)
    groups, parts = {}, {}
    for b, each in enumerate(settled):
        groups.setdefault(id(each.robot), []).append(b)
    for b in groups.values():
        with_friction = tau[b] + [settled[k].force for k in b]
        part = forward_dynamics(settled[b[0]].robot, q[b], v[b], with_friction, f_ext=_wrenches_of(f_ext, lead, b),
                                rank_tolerance=rank_tolerance, **options)
        for i, k in enumerate(b):
            part.constraint_force[i] -= settled[k].force
            part.lam[i] = part.lam[i] + settled[k].friction if settled[k].least_norm else settled[k].lam
            parts[k] = part, i
    order, last = range(len(q)), parts[len(q) - 1][0]
    arrays = {name: None if getattr(last, name) is None else np.array([getattr(parts[k][0], name)[parts[k][1]]
                                                                      for k in order]) for name in _FIELDS}
    arrays = {name: x if x is None else x.reshape(lead + x.shape[1:]) for name, x in arrays.items()}
    names = {name: _modes([each.names[name] for each in settled], lead) for name in settled[0].names}
    if not lead:
        arrays |= {name: kind(arrays[name]) for name, kind in (("rank", int), ("condition", float), ("singular", bool))}
    return ForwardDynamics.of(arrays | {"_at": (_all_closed(robot), q.copy(), names), "_later": (_of_last, last)})


def _of_last(name, result, last):
    """What is read late, from the result of the robot with the contacts that are closed at the last state."""
    return {name: getattr(last, name)} if name in ("redundant_rows", "independent") else {}


@remembered
def _all_closed(robot):
    """The robot with all its contacts sticking, whose rows are those of the results."""
    return robot.switched({robot.constraint_names[k]: "sticking" for k in watched(robot).index})


def _modes(modes, lead):
    """Modes of one constraint at all states; those of cables keep the words that they are shown as."""
    if not lead:
        return modes[0]
    return np.array(modes, dtype=object if any(isinstance(each, Shown) for each in modes) else str).reshape(lead)


def _wrenches_of(f_ext, lead, chosen):
    """Body wrenches of some states of a batch, in the form that users pass."""
    if f_ext is None:
        return None

    def of_states(F, axes):
        F = np.asarray(F, dtype=np.float64)
        return np.broadcast_to(F, lead + F.shape[F.ndim - axes:]).reshape(-1, *F.shape[F.ndim - axes:])[chosen]

    return {name: of_states(F, 1) for name, F in f_ext.items()} if isinstance(f_ext, dict) else of_states(f_ext, 2)
