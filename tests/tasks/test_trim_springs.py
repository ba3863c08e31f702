"""Springs and gravity that are free: closed forms, exact derivatives, and robots that hold what was found."""

import numpy as np
import pytest
from comparison import off

import liedyn as ld
from liedyn.machine.errors import InputError
from liedyn.tasks.operating_points.continuation_parameters import Parameters

G = 9.81


def arm(**joint):
    """A rod of 2 kg with its centre of mass at 0.5 m on a joint at the origin, and a strut from (0, 1) to its end."""
    b = ld.Builder("arm", gravity=(0.0, -G, 0.0))
    b.body("rod", mass=2.0, com=(0.5, 0.0, 0.0), inertia=(0.0, 0.1, 0.1))
    b.joint("pivot", "revolute", "ground", "rod", **joint)
    b.actuator("motor", "pivot")
    b.spring("strut", "ground", "rod", (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), length=1.2, stiffness=30.0)
    b.coordinate_force("coil", {"pivot": 2.0}, rest=0.1, stiffness=1.5, preload=0.2)
    return b.build()


def moment(x, stiffness=4.0, rest=0.3, k=30.0, length=1.2, preload=0.0, coil=1.5, coil_rest=0.1, coil_preload=0.2,
           gravity=G):
    """What the motor has to give at the angle x."""
    d = np.hypot(np.cos(x), 1.0 - np.sin(x))
    pull = k * (d - length) + preload
    return (stiffness * (x - rest) + 2.0 * gravity * 0.5 * np.cos(x) - pull * np.cos(x) / d
            + 2.0 * (coil * (2.0 * x - coil_rest) + coil_preload))


@pytest.mark.parametrize("name, key", [
    ("stiffness:pivot", "stiffness"), ("rest:pivot", "rest"), ("stiffness:strut", "k"), ("length:strut", "length"),
    ("preload:strut", "preload"), ("stiffness:coil", "coil"), ("rest:coil", "coil_rest"),
    ("preload:coil", "coil_preload"), ("gravity", "gravity")])
def test_which_number_holds_a_pose(name, key):
    robot, x = arm(stiffness=4.0, rest=0.3), 0.4
    wanted = Parameters(robot).value(robot, name) * 0.9 + 0.05
    found = ld.trim(robot, [x], u={"motor": moment(x, **{key: wanted})}, free=[name])
    assert found.parameters[name] == pytest.approx(wanted, rel=1e-9) and found.q[0] == x
    assert Parameters(robot).value(found.robot, name) == found.parameters[name]
    assert np.abs(ld.forward_dynamics(found.robot, found.q, found.v, found.tau).a).max() < 1e-9


def test_numbers_that_are_held_and_batches_of_them():
    robot, k = arm(stiffness=4.0, rest=0.3), np.array([1.0, 4.0, 9.0])
    found = ld.trim(robot, [0.4], hold={"stiffness:pivot": k, "pivot": 0.5}, free=["motor", "pivot"])
    assert found.u[:, 0] == pytest.approx([moment(0.5, stiffness=each) for each in k], rel=1e-9)
    assert [Parameters(robot).value(each, "stiffness:pivot") for each in found.robot] == k.tolist()
    settled = ld.trim(robot, [0.4], hold={"gravity": 1.62})
    assert moment(settled.q[0], gravity=1.62) == pytest.approx(0.0, abs=1e-9)


def test_bounds_of_a_number():
    robot, x = arm(stiffness=4.0, rest=0.3), 0.4
    with pytest.raises(ld.TrimError, match="pivot still accelerates .* within its bounds") as info:
        ld.trim(robot, [x], u=[moment(x, length=2.0)], free=["length:strut"], bounds={"length:strut": (0.5, 1.5)})
    assert info.value.nearest.parameters["length:strut"] == pytest.approx(1.5, rel=1e-9)


@pytest.mark.validation("IFToMM linearization benchmark: equilibrium", robots="diagonal_spring",
                        oracle="Published benchmarks, exact solutions")
def test_the_rhombus_on_its_diagonal_spring():
    """Gonzalez et al. 2017: the equilibrium, and the length at rest that is behind it."""
    robot = ld.load("diagonal_spring")
    phi = 2.234331019017586
    found = ld.trim(robot, ld.close(robot, robot.home, crank=2.0))
    assert off(found.q[:1], [phi]) < 1e-12
    ss = ld.linearize(robot, found.q, found.v, found.tau)
    assert ss.eigenvalues()[1] == pytest.approx(-0.2423858093105051 + 2.1339550283483804j, rel=1e-9)
    other = Parameters(robot).changed
    length = ld.trim(other(robot, "length:spring", 1.0), robot.home, free=["length:spring"])
    assert length.parameters["length:spring"] == pytest.approx(np.sqrt(2.0), rel=1e-12)
    stiffness = ld.trim(other(robot, "stiffness:spring", 10.0), robot.home, free=["stiffness:spring"])
    assert stiffness.parameters["stiffness:spring"] == pytest.approx(25.0, rel=1e-10)


# of one moment alone larger than others
@pytest.mark.filterwarnings("ignore:.*inertia:liedyn.machine.errors.ModelWarning")
def test_derivatives_by_all_numbers():
    """Against central differences, on a moving closed loop with springs at its joints, a cut joint and a diagonal."""
    b = ld.Builder.of(ld.load("diagonal_spring"))
    b.change("joint", "crank", stiffness=3.0, rest=0.4, damping=0.2)
    b.coordinate_force("coil", {"coupler": 1.0, "pin": 0.5}, stiffness=2.0, rest=0.1, preload=0.3, damping=0.1)
    b.change("robot", gravity=(1.0, -9.0, 0.2))
    for name in ld.load("diagonal_spring").body_names:
        b.change("body", name, inertia=(0.3, 0.2, 0.4))
    robot = b.build()
    q = ld.close(robot, robot.home, crank=2.0)
    v = ld.complete_velocity(robot, q, {"crank": 0.7})

    numbers = Parameters(robot)

    def at(x):
        ss = ld.linearize(numbers.changed(robot, name, x), q, v, u=np.zeros(3))
        return ss.f0[1:], ss.S, ss.a

    # 21 of springs, dampers and gravity, three armatures, ten of each body
    assert len(numbers.names) == 24 + 10 * len(robot.body_names)
    for name in numbers.names:
        x, h = numbers.value(robot, name) + (0.0 if name.startswith("inertia") else 0.1), 1e-4
        found = numbers.acceleration_slope(numbers.changed(robot, name, x), at(x)[1], name, q, v, at(x)[2])
        # accelerations are linear in most of them, and 20 /s^2: rounding of 4e-15 / 1e-4
        assert np.allclose(found, (at(x + h)[0] - at(x - h)[0]) / (2.0 * h), rtol=1e-8, atol=1e-8), name


def test_what_is_no_number_is_said():
    with pytest.raises(InputError, match="unknown 'stifness:pivot', did you mean 'stiffness:pivot'"):
        ld.trim(arm(), [0.0], free=["stifness:pivot"])
    b = ld.Builder.of(arm())
    b.change("robot", gravity=(0.0, 0.0, 0.0))
    with pytest.raises(InputError, match="gravity of 'arm' is zero and has no direction"):
        ld.trim(b.build(), [0.0], free=["gravity"])
    found = ld.trim(b.build(), [0.4], u=[moment(0.4, stiffness=0.0)], free=["gravity.y"])
    assert found.parameters["gravity.y"] == pytest.approx(-G, rel=1e-9)
    with pytest.raises(InputError, match="u: unknown 'mtor', did you mean 'motor'"):
        ld.trim(arm(), [0.0], u={"mtor": 1.0})


def test_which_mass_balances():
    """A counterweight on the far side of a beam: masses and centres are parameters as numbers of springs are."""
    b = ld.Builder("balance", gravity=(0.0, -G, 0.0))
    b.body("beam", mass=2.0, com=(0.3, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
    b.body("weight", mass=1.0, com=(-0.4, 0.0, 0.0))
    b.joint("pivot", "revolute", "ground", "beam", axis=(0.0, 0.0, 1.0))
    b.joint("weld", "fixed", "beam", "weight")
    robot = b.build()
    assert ld.trim(robot, [0.2], free=["mass:weight"]).parameters["mass:weight"] == pytest.approx(1.5, rel=1e-12)
    assert ld.trim(robot, [0.2], free=["com.x:weight"]).parameters["com.x:weight"] == pytest.approx(-0.6, rel=1e-12)
