"""Methods of integration come from a registry: an explicit one is added as a file with its tableau, and its name."""
import re
from pathlib import Path

import numpy as np
import pytest
from test_simulation_methods import tethered, top

import liedyn as ld
from liedyn.motion.simulation.integrators import METHODS, described
from liedyn.motion.simulation.integrators.explicit import ExplicitRungeKutta

ADDITION = Path(__file__).parents[2] / "docs/contributing/integrator.md"
RALSTON = ExplicitRungeKutta("ralston", "Ralston's method of third order", [[1 / 2], [0, 3 / 4]], [2 / 9, 1 / 3, 4 / 9])
GROUP = ExplicitRungeKutta("ralston on the group", "the same in local coordinates", [[1 / 2], [0, 3 / 4]],
                           [2 / 9, 1 / 3, 4 / 9], on_group=True)


@pytest.fixture
def kutta(monkeypatch):
    """The addition, registered."""
    names = {}
    exec(re.search(r"```python\n(.*?)```", ADDITION.read_text(), re.S).group(1), names)
    for method in names["METHODS"]:
        monkeypatch.setitem(METHODS, method.name, method)
    return "kutta"


def order(robot, q, v, method):
    """log2 of the error at 100 steps by that at 200."""
    exact = ld.simulate(robot, q, v, 0.5, method=ld.Adaptive("DOP853", 1e-13, 1e-13))
    errors = []
    for steps in (100, 200):
        tr = ld.simulate(robot, q, v, 0.5, dt=0.5 / steps, method=method)
        errors.append(np.abs(np.append(ld.difference(robot, exact.q[-1], tr.q[-1]), tr.v[-1] - exact.v[-1])).max())
        assert tr.position_residual.max() < 1e-10
    return np.log2(errors[0] / errors[1])


@pytest.mark.parametrize("model", [top, tethered])
@pytest.mark.parametrize("method, expected", [(RALSTON, 3), (GROUP, 3), ("kutta", 4)],
                         ids=["ralston", "group", "kutta"])
def test_order(kutta, model, method, expected):
    assert expected - 0.4 < order(*model(), method) < expected + 0.8  # where a step is not yet all in the limit


def test_an_addition_is_known_everywhere(kutta):
    robot = ld.load("five_bar")
    assert ld.simulate(robot, robot.home, [0.0] * 4, 0.01, method=kutta).method == kutta
    with pytest.raises(ld.InputError, match="unknown method 'kuta', did you mean 'kutta'"):
        ld.simulate(robot, robot.home, [0.0] * 4, 0.01, method="kuta")

    @described
    def documented():
        """METHODS"""

    assert "``'kutta'``: Kutta's 3/8 rule, of fourth order." in documented.__doc__


def test_momentum_of_a_free_machine(kutta):
    """No force from outside: linear and angular momentum stay, and their error is of fourth order."""
    builder = ld.Builder("pair", gravity=(0, 0, 0))
    builder.body("a", 2.0, com=(0.1, 0.0, 0.3), inertia=(0.3, 0.5, 0.4))
    builder.body("b", 1.0, com=(0.0, 0.2, 0.0), inertia=(0.1, 0.1, 0.15))
    builder.joint("free", "free", "ground", "a")
    builder.joint("ball", "spherical", "a", "b", placement=(0.2, 0.0, 0.5))
    robot = builder.build()
    v = np.array([1.0, -2.0, 0.5, 0.3, 0.1, -0.2, 2.0, 1.0, -1.0])
    errors = []
    for dt in (1e-2, 5e-3):
        tr = ld.simulate(robot, robot.neutral, v, 1.0, dt=dt, method=kutta)
        p = ld.momentum(robot, tr.q, tr.v)
        errors.append(np.abs(p - p[0]).max())
    assert errors[1] < 1e-7 and errors[0] / errors[1] > 12.0
