"""Laws of force elements that depend on a length or a sum of coordinates x and its rate w.

Each is registered here with its parameters: a function of x, w and these returns

    f          the force, positive if it pulls
    f_x, f_w   its slopes
    held       the conservative part of f, the derivative of an energy
    energy     that energy

To add a law, write it here, and a class with the same parameters if it is to be public.
"""
# mypy: ignore-errors

from __future__ import annotations

import inspect
import math
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from liedyn.machine.compiled.jit import inline
from liedyn.machine.errors import ModelError, shown, suggestion
from liedyn.machine.simd.comparisons import where_less
from liedyn.model.numbers import numbers

if TYPE_CHECKING:
    from typing import Any


class Law(NamedTuple):
    """A law of one length: the names of its parameters in order, and the formula."""

    numbers: tuple
    formula: object


LAWS = {}
"""The laws by name; a law's code is its index."""


def _law(formula):
    LAWS[formula.__name__] = Law(tuple(inspect.signature(formula).parameters)[2:], inline(formula))


@_law
def linear(x, w, stiffness, damping, preload):
    held = stiffness * x + preload
    return held + damping * w, stiffness, damping, held, (0.5 * stiffness * x + preload) * x


@_law
def friction(x, w, coulomb, static, stribeck, width, viscous):
    """Stribeck's curve (Armstrong-Helouvry, Dupont and Canudas de Wit 1994), or Coulomb's if static = coulomb, with the
    jump at rest smoothed over `width`, so that it creeps instead of sticking."""
    grip = coulomb + (static - coulomb) * math.exp(-(w / stribeck) ** 2)
    grip_w = -2.0 * w / stribeck ** 2 * (grip - coulomb)
    sense = math.tanh(w / width)
    return (grip * sense + viscous * w, 0.0,
            grip_w * sense + grip * (1.0 - sense * sense) / width + viscous, 0.0, 0.0)


@_law
def gas_spring(x, w, force, column, exponent, damping):
    left = 1.0 + x / column  # relative length of the gas column; the result is NaN if it is negative
    size = math.log(left)
    held = -force * math.exp(-exponent * size)
    work = -size if exponent == 1.0 else math.expm1((1.0 - exponent) * size) / (exponent - 1.0)
    return held + damping * w, -exponent * held / (column * left), damping, held, force * column * work


@_law
def motor(x, w, stall_torque, no_load_speed, supply):
    slope = stall_torque / no_load_speed
    return slope * w - stall_torque * supply, 0.0, slope, 0.0, 0.0


@_law
def polynomial(x, w, stiffness, quadratic, cubic, damping, quadratic_damping, cubic_damping, slack):
    y = where_less(x, 0.0, x, max(x - slack, 0.0))
    taut = where_less(x, 0.0, 1.0, where_less(x, slack, 0.0, 1.0))
    held = (stiffness + (quadratic + cubic * y) * y) * y
    size = abs(w)
    return (held + (damping + (quadratic_damping + cubic_damping * size) * size) * w,
            (stiffness + (2.0 * quadratic + 3.0 * cubic * y) * y) * taut,
            damping + (2.0 * quadratic_damping + 3.0 * cubic_damping * size) * size, held,
            (stiffness / 2.0 + (quadratic / 3.0 + cubic / 4.0 * y) * y) * y * y)


@_law
def cable(x, w, stiffness, damping):
    """A spring and damper that only pulls: slack where x is not positive, or the damper would push."""
    held = max(stiffness * x, 0.0)
    taut = where_less(0.0, x, where_less(0.0, held + damping * w, 1.0, 0.0), 0.0)
    return (held + damping * w) * taut, stiffness * taut, damping * taut, held, 0.5 * held * max(x, 0.0)


@_law
def driven(x, w, gear, u):
    """An actuator: a force gear u that increases x; u is stored here before the law is evaluated."""
    return -gear * u, 0.0, 0.0, 0.0, 0.0


class NamedLaw:
    """Base class of laws that users name; files write them as tables with their `kind`."""

    kind: ClassVar[str]
    positive: ClassVar[tuple[str, ...]] = ()
    not_negative: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        self.checked(type(self).__name__)

    def checked(self, owner: str) -> Any:
        """The parameters, in the order of the law; ModelError if one is not finite, negative, or zero if it must be
        positive."""
        values = {key: float(numbers(owner, f"law, {key}", value, ())) for key, value in asdict(self).items()}
        for key in self.positive:
            if not values[key] > 0.0:
                raise ModelError(f"{owner}, law, {key}: must be positive, got {values[key]}")
        for key in self.not_negative:
            if values[key] < 0.0:
                raise ModelError(f"{owner}, law, {key}: must not be negative, got {values[key]}")
        return tuple(values[key] for key in LAWS[self.kind].numbers)

    def table(self) -> dict[str, Any]:
        """The table that represents it in files."""
        given = {each.name: getattr(self, each.name) for each in fields(self)
                 if getattr(self, each.name) != each.default}
        return {"kind": self.kind} | given


@dataclass(frozen=True)
class GasSpring(NamedLaw):
    """A gas spring: it pushes with ``force (column / (column + x))^exponent`` minus ``damping dx/dt``.

    In files ``law = { kind = "gas_spring", force = 200.0, column = 0.6 }``.

    Parameters
    ----------
    force : float
        Force at x = 0, extended [N].
    column : float
        Length of the gas column there, its volume divided by the area of the rod [m]; the force is undefined for x <=
        -column.
    exponent : float
        1 for isothermal motion, the usual case; 1.4 for fast, adiabatic motion.
    damping : float
        [N s/m]

    Raises
    ------
    ModelError
        A number is not finite, the column or the exponent is not positive, the force or the damping is negative.

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder.of(ld.load("five_bar"))
    >>> b.spring("strut", "ground", "link1", (0.3, 0.5, 0.0), length=0.4, law=ld.GasSpring(force=200.0, column=0.6))
    >>> b.build().element_names
    ('strut',)
    """

    force: float
    column: float
    exponent: float = 1.0
    damping: float = 0.0
    kind: ClassVar[str] = "gas_spring"
    positive: ClassVar[tuple[str, ...]] = "column", "exponent"
    not_negative: ClassVar[tuple[str, ...]] = "force", "damping"


@dataclass(frozen=True)
class Motor(NamedLaw):
    """A motor with a linear torque-speed curve: it drives with ``stall_torque (supply - w / no_load_speed)``.

    In files ``law = { kind = "motor", stall_torque = 3.0, no_load_speed = 50.0 }``.

    Parameters
    ----------
    stall_torque : float
        Torque at rest [N m, N].
    no_load_speed : float
        Rate at which the torque vanishes [rad/s, m/s].
    supply : float
        Fraction of the full voltage: 0 for a shorted motor, which brakes; an actuator of gear `stall_torque` then adds
        the torque of a signal.

    Raises
    ------
    ModelError
        A number is not finite, the speed is not positive, or the torque is negative.

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder.of(ld.load("five_bar"))
    >>> b.coordinate_force("motor", {"q1": 1.0}, law=ld.Motor(stall_torque=3.0, no_load_speed=50.0))
    >>> ld.element_forces(b.build(), [0.0] * 4, [25.0, 0.0, 0.0, 0.0]).tolist()
    [1.5, 0.0, 0.0, 0.0]
    """

    stall_torque: float
    no_load_speed: float
    supply: float = 1.0
    kind: ClassVar[str] = "motor"
    positive: ClassVar[tuple[str, ...]] = "no_load_speed",
    not_negative: ClassVar[tuple[str, ...]] = "stall_torque",


@dataclass(frozen=True)
class PolynomialSpring(NamedLaw):
    """A spring and damper of third degree, with optional slack, as in MuJoCo.

    With y = x for negative x, 0 up to x = `slack`, and x - slack beyond, the force is
    ``stiffness y + quadratic y^2 + cubic y^3 + damping w + quadratic_damping w |w| + cubic_damping w^3``. In files
    ``law = { kind = "polynomial", stiffness = 20.0, cubic = 3.0 }``.

    Parameters
    ----------
    stiffness, quadratic, cubic : float
        [N/m, N/m^2, N/m^3], or [N m] by powers of [rad].
    damping, quadratic_damping, cubic_damping : float
        Coefficients of powers of the rate [m/s, rad/s]; the second term changes its sign with the rate, as drag does.
    slack : float
        Value of x, above zero, up to which the spring does not pull [m, rad].

    Examples
    --------
    >>> import liedyn as ld
    >>> b = ld.Builder.of(ld.load("five_bar"))
    >>> b.coordinate_force("bumper", {"q1": 1.0}, law=ld.PolynomialSpring(stiffness=1.0, cubic=2.0, slack=0.5))
    >>> robot = b.build()
    >>> ld.element_forces(robot, [1.5, 0.0, 0.0, 0.0], [0.0] * 4).tolist()
    [-3.0, 0.0, 0.0, 0.0]
    """

    stiffness: float = 0.0
    quadratic: float = 0.0
    cubic: float = 0.0
    damping: float = 0.0
    quadratic_damping: float = 0.0
    cubic_damping: float = 0.0
    slack: float = 0.0
    kind: ClassVar[str] = "polynomial"
    not_negative: ClassVar[tuple[str, ...]] = "slack",


NAMED = {each.kind: each for each in (GasSpring, Motor, PolynomialSpring)}


def named(kind):
    """The class of a law named in a file."""
    if not isinstance(kind, str) or kind not in NAMED:
        raise ModelError(f"unknown kind of law {shown(kind)}, {suggestion(kind, list(NAMED))}")
    return NAMED[kind]
