"""The linkages that are compared, hanging at rest in the x-y plane, and their exact frequencies.

A linkage is a list of bars. Bar k hangs on a parent (-1: the ground) at a point of it, by a hinge about z, with an
angle to the parent; its mass is m, its centre at `com` and its inertia I about that, in its own frame. A closure keeps
a point of one bar on a point of another one, or of the ground.
"""
from dataclasses import dataclass, field
from math import pi, sqrt

GRAVITY = 9.81


@dataclass(frozen=True)
class Bar:
    """One bar."""

    parent: int
    at: tuple
    angle: float
    mass: float
    com: tuple
    inertia: float


@dataclass(frozen=True)
class Linkage:
    """Bars, at most one closure (bar, point, bar, point), and the exact frequency [Hz] with where it comes from."""

    name: str
    bars: tuple
    frequency: float
    source: str
    closure: tuple = ()
    independent: tuple = field(default=(0,))


def pendulum():
    """A bar on a hinge: omega^2 = m g c / (I + m c^2)."""
    m, c, I = 1.2, 0.35, 0.04
    return Linkage("pendulum", (Bar(-1, (0.0, 0.0), 0.0, m, (0.0, -c), I),),
                   sqrt(m * GRAVITY * c / (I + m * c * c)) / (2 * pi), "closed form")


def parallelogram():
    """Two equal cranks that carry a bar: it does not turn, and hangs at the length of a crank."""
    length, width, m, m2, c, I = 0.5, 0.8, 0.7, 1.5, 0.2, 0.02
    bars = (Bar(-1, (0.0, 0.0), 0.0, m, (0.0, -c), I), Bar(0, (0.0, -length), 0.0, m2, (width / 2, -0.1), 0.09),
            Bar(-1, (width, 0.0), 0.0, m, (0.0, -c), I))
    stiffness = GRAVITY * (2 * m * c + m2 * length)
    frequency = sqrt(stiffness / (2 * (I + m * c * c) + m2 * length ** 2)) / (2 * pi)
    return Linkage("parallelogram", bars, frequency, "closed form", (1, (width, 0.0), 2, (0.0, -length)))


def swing():
    """A symmetric trapezium: two cranks that spread, and a bar between them; its frequency from fifty digits."""
    from math import atan2

    length, top, bottom, m, m2, c, I = 0.5, 0.4, 0.8, 0.7, 1.5, 0.2, 0.02
    lean = atan2((bottom - top) / 2, sqrt(length ** 2 - ((bottom - top) / 2) ** 2))
    bars = (Bar(-1, (0.0, 0.0), -lean, m, (0.0, -c), I), Bar(0, (0.0, -length), lean, m2, (bottom / 2, 0.0), 0.09),
            Bar(-1, (top, 0.0), lean, m, (0.0, -c), I))
    return Linkage("trapezium", bars, 0.0, "50 digits", (1, (bottom, 0.0), 2, (0.0, -length)))


LINKAGES = (pendulum, parallelogram, swing)
