"""The part of `Builder` that declares cables: elastic and inextensible ones, and winches."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.errors import ModelError
from liedyn.model import validation
from liedyn.model.cables import cable
from liedyn.model.description import Element, Winch
from liedyn.model.numbers import any_numbers, numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from liedyn.model.laws import GasSpring, Motor, PolynomialSpring


class CableBuilder:
    """Cables and winches; see :class:`Builder`."""

    def cable(self, name: str, path: Sequence[Any], length: float = 0.0, stiffness: float = 0.0, damping: float = 0.0,
              preload: float = 0.0, law: GasSpring | Motor | PolynomialSpring | Callable[..., Any] | Any | None = None,
              pushes: bool = False, active: bool | str = True) -> None:
        """Declare a cable: through points of bodies, round cylinders and spheres, without friction.

        With x the length of its path minus `length`, the tension of an elastic cable is ``stiffness x + damping
        dx/dt``, and nothing where it is slack.

        With ``stiffness=math.inf`` it is inextensible: x never becomes positive, and the tension is whatever that
        takes. That is a one-sided constraint of this name instead of a force element, and what is said of contacts
        holds for it (:meth:`constraint`): closed it is taut, open it is slack, and where it becomes taut it takes the
        speed at which its path gets longer in an impact without rebound. The multiplier of its row ``<name>.tension``
        is the tension.

        Parameters
        ----------
        name : str
        path : sequence
            Points ``(body, place)``, with a place in the body as for :meth:`spring`, and between two points perhaps a
            :class:`liedyn.Pulley`; bodies may be frames or ``"ground"``. In files tables of ``body``, ``placement``
            and, for pulleys, ``radius``. Pulleys that follow each other, cylinders with a `turn` whose axes are
            parallel, make a belt in the plane of the first one's centre; it is closed where it goes round pulleys only
            and ends at the one where it begins.
        length : float
            Length without tension [m]; :func:`liedyn.cable_lengths` says how long a path is.
        stiffness, damping : float
            [N/m, N s/m]; a stiffness of ``math.inf`` for an inextensible cable, which has no damping.
        preload : float
            Constant tension [N], where it pushes.
        law : GasSpring, Motor, PolynomialSpring, sympy.Expr or callable, optional
            Instead of these, as for :meth:`spring`.
        pushes : bool
            True for a spring along the path, which pushes where x is negative.
        active : bool or str
            Of an inextensible cable: whether it is initially there; values as for :meth:`Robot.switched`, where
            "sticking" is a path of constant length, a cable that stays taut.

        Raises
        ------
        ModelError
            A path that is none, a number that is not finite, a law together with numbers, or an inextensible cable
            without a length or with damping.

        Notes
        -----
        The path is the shortest one: a helix round a cylinder, a great circle round a sphere. Where it would leave what
        it goes round, it is straight. Points have to stay outside.

        Examples
        --------
        >>> import math
        >>> import liedyn as ld
        >>> b = ld.Builder("hoist")
        >>> b.body("load", mass=1.0, inertia=(0.1, 0.1, 0.1))
        >>> b.joint("lift", "prismatic", "ground", "load", (0.1, 0.0, 0.0), axis=(0, 0, 1))
        >>> over = ld.Pulley("ground", ld.placement((0.0, 0.0, 1.0), rpy=(math.pi / 2, 0, 0)), radius=0.1, turn=1)
        >>> b.cable("rope", [("load", (0, 0, 0)), over, ("ground", (-0.1, 0.0, 0.0))], length=2.0, stiffness=1e3)
        >>> robot = b.build()
        >>> ld.element_states(robot, [-0.1], [0.0])["rope"][2].round(6)  # 2.1 m and half a turn
        np.float64(414.159265)
        >>> b.change("element", "rope", stiffness=0.0)
        >>> b.cable("chain", [("load", (0, 0, 0)), over, ("ground", (-0.1, 0.0, 0.0))], length=2.5, stiffness=math.inf)
        >>> ld.forward_dynamics(b.build(), [-0.1], [0.0], [0.0]).contacts  # 2.41 m
        {'chain': <slack: 'open'>}
        """
        owner = validation.owner_of("force element", name)
        measure = cable(owner, name, path, length)
        if law is None and (any_numbers(owner, "stiffness", stiffness) == np.inf).all():
            self._constraints.append(_inextensible(owner, measure, damping, preload, law, pushes, active))
            return
        if active is not True:
            raise ModelError(f"{owner}, active: an elastic cable is a force element, which is always there; an "
                             "inextensible one, stiffness=math.inf, can be switched")
        if validation.flag(owner, "pushes", pushes) or law is not None:
            self._add_element(owner, measure, stiffness, damping, preload, law)
            return
        if float(numbers(owner, "preload", preload, ())):
            raise ModelError(f"{owner}, preload: a cable that only pulls has none; shorten it, or say pushes=True")
        values = [float(numbers(owner, key, x, ())) for key, x in (("stiffness", stiffness), ("damping", damping))]
        for key, x in zip(("stiffness", "damping"), values):
            if x < 0.0:
                raise ModelError(f"{owner}, {key}: must not be negative, got {x}")
        self._elements.append(Element(measure, "cable", tuple(values)))

    def winch(self, name: str, path: Sequence[Any], gear: float = 1.0) -> None:
        """Declare an input u that pulls a cable with the tension gear * u; a negative one would push.

        Parameters
        ----------
        name : str
        path : sequence
            Points and pulleys, as for :meth:`cable`.
        gear : float
            Tension for one unit of the input [N].

        Raises
        ------
        ModelError
            A path that is none, or a gear that is not a finite number.

        Examples
        --------
        >>> import liedyn as ld
        >>> b = ld.Builder.of(ld.load("five_bar"))
        >>> b.winch("tendon", [("ground", (0.0, 0.2, 0.0)), ("link1", (0.1, 0.05, 0.0)), ("link2", (0.1, 0.0, 0.0))])
        >>> b.build().actuator_names
        ('tendon',)
        """
        owner = validation.owner_of("actuator", name)
        self._actuators.append(Winch(cable(owner, name, path, 0.0), float(numbers(owner, "gear", gear, ()))))


def _inextensible(owner, measure, damping, preload, law, pushes, active):
    """The one-sided constraint of a cable that does not stretch."""
    if law is not None or pushes or float(numbers(owner, "damping", damping, ())) or float(
            numbers(owner, "preload", preload, ())):
        raise ModelError(f"{owner}, stiffness: an inextensible cable has no damping, preload or law, and cannot push")
    if not measure.length > 0.0:
        raise ModelError(f"{owner}, length: an inextensible cable has one, got {measure.length}")
    return replace(measure, side=-1, active=validation.switch(owner, active, -1))
