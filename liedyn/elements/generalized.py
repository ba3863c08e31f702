"""Force elements as users see them, and how they join the forces that dynamics and linearization are given."""
from dataclasses import replace

import numpy as np

from liedyn.arguments import require_robot
from liedyn.compiled.boundary import states
from liedyn.compiled.functions import raise_errors
from liedyn.elements.forces import derivative_states, force_states, room_for
from liedyn.errors import InputError, SingularConfigurationError, of_the_batch, shown
from liedyn.model.remembered import remembered


def element_forces(robot, q, v):
    """Generalised forces of all force elements.

    `forward_dynamics`, `linearize`, `discretize` and `simulate` add them to tau by themselves; algorithms of the open
    tree (`rnea`, `aba`) do not know of them.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].

    Returns
    -------
    tau : ndarray, shape (..., nv)
        [N m, N]

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length; a law fails.
    SingularConfigurationError
        The points of a spring coincide: it has no direction.

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder.of(ld.load("five_bar"))
    >>> b.coordinate_force("wind_up", {"q1": 1.0}, stiffness=2.0)
    >>> ld.element_forces(b.build(), [0.5, 0.0, 0.0, 0.0], [0.0] * 4).tolist()
    [-1.0, 0.0, 0.0, 0.0]
    """
    return _forces(robot, q, v)[0]


def element_states(robot, q, v):
    """Lengths, rates and forces of all force elements.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].

    Returns
    -------
    states : dict
        By name ``(length, rate, force)``, each of shape (...): the length less that at rest [m], or the sum of
        coordinates less that at rest [rad, m], its rate, and the force or moment [N, N m], positive where it pulls.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length; a law fails.
    SingularConfigurationError
        The points of a spring coincide: it has no direction.

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder.of(ld.load("five_bar"))
    >>> b.coordinate_force("wind_up", {"q1": 1.0}, stiffness=2.0)
    >>> length, rate, force = ld.element_states(b.build(), [0.5, 0.0, 0.0, 0.0], [0.0] * 4)["wind_up"]
    >>> float(length), float(force)
    (0.5, 1.0)
    """
    found = _forces(robot, q, v)[1:]
    return {name: tuple(x[..., k] for x in found) for k, name in enumerate(robot.element_names)}


def _forces(robot, q, v):
    """tau, lengths, rates and forces, with the leading axes of the states."""
    require_robot(robot)
    lead, q, v = states(robot, q=q, v=v)
    count, m, elements = len(q), len(robot.element_names), robot.elements
    found = [np.zeros((count, size)) for size in (robot.nv, m, m, m)]
    if elements is not None:
        force_states(elements.packed, elements.laws, room_for(elements.packed), q, v, *found)
        raise_errors(elements.functions)
        _require_finite(robot, lead, found[0], found[2])
    return [x.reshape(lead + x.shape[1:]) for x in found]


def _require_finite(robot, lead, tau, w):
    """SingularConfigurationError where a force has no direction, and so no rate; InputError where one overflows."""
    bad = ~np.isfinite(tau).all(axis=1)
    if bad.any():
        b = int(np.argmax(bad))
        undefined = [name for name, each in zip(robot.element_names, w[b]) if np.isnan(each)]
        with of_the_batch(lead, b):
            if undefined:
                raise SingularConfigurationError(f"force element {', '.join(map(shown, undefined))} has no direction "
                                                 "here: its points coincide", np.zeros(0))
            raise InputError(f"numbers overflow: generalised forces of force elements are {shown(tau[b].tolist())}")


# ---- as part of the given forces


@remembered
def without_elements(robot):
    """The same robot, its force elements left out."""
    return replace(robot, elements=None)


def with_element_forces(robot, q, v, tau):
    """tau as the user gave it, and the forces of the elements."""
    lead, q, v, tau = states(robot, q=q, v=v, tau=tau)
    return (tau + element_forces(robot, q, v)).reshape(lead + (robot.nv,))


def forces_and_derivatives(robot, q, v):
    """tau (count, nv), dtau/dq and dtau/dv (count, nv, nv) of rows of states."""
    tau, elements = element_forces(robot, q, v), robot.elements
    by_q, by_v = np.empty((2, len(q), robot.nv, robot.nv))
    derivative_states(elements.packed, elements.laws, room_for(elements.packed), q, v, by_q, by_v)
    raise_errors(elements.functions)
    return tau, by_q, by_v
