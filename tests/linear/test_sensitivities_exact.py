"""Sensitivities against fifty digits: mixed differences that lose none of them, of Newton and Euler."""
import warnings

import numpy as np
import pytest
from comparison import off

import liedyn as ld
from liedyn.mechanics.constraints.constraint_wrenches import loop_wrench_matrix
from tests.exact_robots import exact_sensitivity
from test_sensitivities import moving_state, springy_five_bar

INDEPENDENT = {"sprung_chain": ("swing", "slide")}


def sprung_chain():
    """A free body held by a cut ball and a rod, with a body on a ball joint and a spring to the ground."""
    b = ld.Builder("chain")
    b.body("hull", mass=2.0, com=(0.1, -0.2, 0.05), inertia=np.diag([0.3, 0.4, 0.5]))
    b.body("bob", mass=0.5, com=(0.05, 0.0, -0.3), inertia=np.diag([0.01, 0.02, 0.02]))
    b.body("arm", mass=0.3, com=(0.0, 0.1, 0.0), inertia=np.diag([0.02, 0.01, 0.02]))
    b.body("tip", mass=0.2, com=(0.1, 0.0, 0.0), inertia=np.diag([0.01, 0.01, 0.02]))
    b.joint("floating", "free", "ground", "hull")
    b.joint("ball", "spherical", "hull", "bob", placement=ld.placement((0.0, 0.2, 0.1), rpy=(0.1, 0.0, 0.4)))
    b.joint("swing", "revolute", "bob", "arm", axis=(0.6, 0.0, 0.8), placement=(0.0, 0.0, -0.4), stiffness=2.0,
            rest=0.1)
    b.joint("slide", "prismatic", "arm", "tip", axis=(0.0, 1.0, 0.0), damping=0.3)
    tree = b.build()  # closed as it stands: what holds it is where its points are
    places = {name: ld.pose(tree, tree.home, name) for name in ("hull", "bob", "arm", "tip")}
    for name, body, point in (("pivot", "hull", (0.2, 0.0, 0.0)), ("second", "arm", (0.1, 0.0, 0.0))):
        b.loop(name, "spherical", "ground", body, places[body][:3] @ [*point, 1.0], point)
    for name, body, anchor in (("stay", "hull", (0.3, 0.9, 0.4)), ("guy", "bob", (-0.9, 0.0, 0.4)),
                               ("rod", "tip", (0.5, 1.0, 0.4))):
        b.constraint(name, "distance", "ground", body, anchor, length=np.linalg.norm(places[body][:3, 3] - anchor))
    b.spring("spring", "ground", "bob", (0.0, 0.5, 0.5), (0.1, 0.0, 0.0), length=0.3, stiffness=40.0, damping=2.0)
    return b.build()


def springy_pins():
    """Force elements on the angle of a cut pin, and together with one of the tree."""
    b = ld.Builder.of(ld.load("five_bar"))
    b.coordinate_force("spring", {"pin": 1.0}, rest=0.4, stiffness=2.0, damping=0.1)
    b.coordinate_force("torsion", {"pin": 1.0, "q2": -0.5}, rest=0.1,
                       law=ld.GasSpring(force=3.0, column=5.0, exponent=1.2, damping=0.2))
    b.friction("rub", "pin", coulomb=1.2, static=1.9, stribeck=0.9, viscous=0.3, width=0.7)
    return b.build()


def geared_panda():
    b = ld.Builder.of(ld.load("panda"))
    b.constraint("gear", "coupling", coefficients={"panda_joint1": 1.0, "panda_joint3": 0.3}, offset=0.1)
    return b.build()


MADE = {each.__name__: each for each in (sprung_chain, springy_five_bar, springy_pins, geared_panda)}
MOST = {"sprung_chain": 1e-10}
"""Relative to the largest entry, or to 1: rounding of double numbers, times condition numbers. The chain is next to a
singular configuration, with condition numbers of 1e4."""
CASES = {
    "five_bar": ["inertia.zz:link4", "placement.x:q2", "child_placement.y:pin"],
    "four_bars": ["com.x:V1"],
    "bricard": ["mass:rod2"],
    "loader": ["placement.x:bucket", "parent_placement.y:lift_pin"],
    "squeezer": ["stiffness:spring", "length:spring"],
    "panda": ["com.y:panda_link4", "placement.ry:panda_joint4"],
    "solo12": ["mass:base_link"],
    "whipple_bicycle": ["placement.ry:steer", "radius:front_contact"],
    "rolling_spheres": ["radius:contact", "mass:centre"],
    "shopping_cart": ["placement.x:caster"],
    "slider_crank": ["placement.x:rod"],
    "arm_on_circle": ["mass:link2"],
    "governor": ["stiffness:left_spring"],
    "stewart": ["placement.rx:gimbal2"],
    "sprung_chain": ["mass:bob", "placement.rz:ball", "length:rod", "child_placement.y:spring"],
    "springy_five_bar": ["stiffness:strut", "damping:bar", "column:gas", "exponent:gas", "no_load_speed:motor",
                         "stribeck:rub", "width:rub", "placement.x:q2"],
    "springy_pins": ["stiffness:spring", "rest:torsion", "static:rub", "child_placement.y:pin"],
    "geared_panda": ["offset:gear", "mass:panda_link4"],
}


@pytest.mark.validation("sensitivities of f0, a, lambda, A, B, C and D", oracle="Newton and Euler in 50 digits",
                        robots=", ".join(CASES))
@pytest.mark.parametrize("name", CASES)
def test_sensitivities(name):
    robot = MADE[name]() if name in MADE else ld.load(name)
    state = moving_state(robot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the chain is next to a singular configuration
        s = ld.sensitivities(robot, *state, parameters=CASES[name], independent=INDEPENDENT.get(name),
                             outputs=[f"acceleration:{each}" for each in robot.velocity_names]
                             + [f"wrench:{each.name}" for each in robot.model.loops])
    p = s.model.K.shape[1]
    y, w = s.model.states[:p], [x.removeprefix("velocity:") for x in s.model.states[p:]]
    direction = np.random.default_rng(7).normal(size=p + len(w) + len(s.model.inputs))
    both, most = np.concatenate([s.A, s.B], axis=1), MOST.get(name, 1e-11)
    of_outputs = np.concatenate([s.C, s.D], axis=1)
    W = [loop_wrench_matrix(robot, l) for l in range(len(robot.loop_names))]
    for k, parameter in enumerate(s.parameters):
        f0, a, lam, along, a_along, lam_along = exact_sensitivity(robot, state, y, w, parameter, direction)
        assert off(s.f0[:, k], f0) < most and off(s.a[:, k], a) < most, parameter
        assert off(s.lam[:, k], lam) < most, parameter
        assert off(both[:, :, k] @ direction, along) < most, parameter
        outputs = np.concatenate([a_along, *(matrix @ lam_along[rows] for matrix, rows in W)])
        assert off(of_outputs[:, :, k] @ direction, outputs) < most, parameter
