"""Sensitivities of robots with force elements and actuators on cut joints, against robots that were built anew."""
import numpy as np
import pytest
from test_elements_at_cuts import KINDS, five_bars, pair
from test_sensitivities import compare, moving_state

import liedyn as ld


def springs_and_motors(b, names):
    """A spring with its damper and a motor on each coordinate, friction on the last, and a sum."""
    for k, name in enumerate(names):
        b.coordinate_force(f"spring {name}", {name: 1.5 + k}, rest=0.3, stiffness=4.0, damping=0.3, preload=0.2)
        b.actuator(f"motor {name}", name, gear=2.0 - 3.0 * k)
    b.friction("rub", names[-1], coulomb=0.5, static=0.8, stribeck=0.5, width=0.3)
    b.coordinate_force("together", {name: 1.0 - 0.4 * k for k, name in enumerate(names)},
                       law=ld.GasSpring(force=2.0, column=9.0, damping=0.1))


def state_and_inputs(robot):
    """Inputs instead of generalised forces."""
    q, v, _ = moving_state(robot)
    return q, v, np.random.default_rng(1).normal(size=len(robot.actuator_names))


@pytest.mark.validation("sensitivities with force elements and actuators on cut joints",
                        robots=f"{', '.join(KINDS)} joints between two free bodies",
                        oracle="differences of robots built anew")
@pytest.mark.parametrize("kind", KINDS)
def test_elements_on_every_kind_of_cut_joint(kind):
    robot = pair(kind, False, springs_and_motors)
    first = robot.virtual_names[0]
    compare(robot, [f"stiffness:spring {first}", f"rest:spring {first}", "width:rub", "force:together", "mass:b",
                    "parent_placement.x:k", "parent_placement.ry:k", "child_placement.y:k", "child_placement.rz:k",
                    "child_placement.rx:k"], state=state_and_inputs(robot), by="u")


def test_dampers_and_motors_on_balls():
    """The rates of a ball are no derivatives of coordinates, and forces along them depend on the rates alone."""
    def on_the_ball(b, names):
        for k, name in enumerate(names):
            b.coordinate_force(f"damper {name}", {name: 1.0}, damping=0.5 + k)
            b.actuator(f"motor {name}", name)

    b = ld.Builder.of(pair("spherical", False))
    b.change("robot", independent=tuple(f"{body}.{axis}" for body in "ab" for axis in ("rx", "ry", "rz"))
             + ("a.x", "a.y", "a.z"))
    on_the_ball(b, ["k.rx", "k.ry", "k.rz"])
    robot = b.build()
    compare(robot, ["damping:damper k.ry", "mass:b", "parent_placement.y:k", "child_placement.rz:k"],
            state=state_and_inputs(robot), by="u")


def test_sums_of_coordinates_of_the_tree_and_of_a_cut():
    b = ld.Builder.of(five_bars())
    b.coordinate_force("torsion", {"pin": 1.0, "q2": -0.5}, rest=0.1, stiffness=3.0, damping=0.2)
    robot = b.build()
    compare(robot, ["spring", "torsion", "placement.x:q2", "child_placement.y:pin", "parent_placement.rz:pin",
                    "mass:link2"], state=state_and_inputs(robot), by="u")


def test_what_is_fixed_takes_cylinders_and_cut_joints_along():
    """The place of a fixed joint moves what drives the body behind it, and the cut joint that a spring is on."""
    arm = ld.load("five_bar")
    b, place = ld.Builder.of(arm), ld.placement((0.4, 0.1, 0.0), rpy=(0.0, 0.0, 0.2))
    b.body("bracket", mass=0.2)
    b.joint("weld", "fixed", "link4", "bracket", place)
    b.cylinder("jack", "ground", "bracket", (0.1, 0.6, 0.0), (0.1, -0.02, 0.0), gear=2.0)
    b.change("loop", "pin", child="bracket",
             child_placement=np.linalg.inv(place) @ arm.model.loops[0].child_placement)
    b.coordinate_force("spring", {"pin": 1.0}, rest=0.4, stiffness=2.0, damping=0.1)
    robot = b.build()
    compare(robot, ["placement.x:weld", "placement.y:weld", "placement.rz:weld"], state=state_and_inputs(robot), by="u")
