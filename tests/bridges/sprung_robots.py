"""Robots with force elements of all kinds, for programs."""
import numpy as np
from tree_cases import bundled

import liedyn as ld

DRAWN = np.random.default_rng(4).normal(size=(2, 6, 6))


def sprung(inputs=True):
    """A five-bar with an element of each law; with a cylinder and a thruster if inputs may act as elements do."""
    b = ld.Builder.of(bundled("five_bar"))
    b.coordinate_force("wind_up", {"q1": 1.0, "q3": -0.5}, rest=0.1, stiffness=2.0, damping=0.3, preload=0.2)
    b.coordinate_force("torsion", {"pin": 1.0, "q1": 0.3}, stiffness=2.0, damping=0.3)
    b.coordinate_force("servo", {"q2": 1.0}, law=ld.Motor(3.0, 20.0, supply=0.5))
    b.friction("rub", "q1", 0.3, static=0.5, viscous=0.1, width=0.2)
    b.spring("strut", "ground", "link2", (1.0, 0.3, 0.5), length=1.0, law=ld.GasSpring(40.0, 3.0, 1.4, 2.0))
    b.spring("slow", "link1", "link3", (0.1, 0.1, 0.2), (0.0, 0.1, 0.0), length=1.0, law=ld.GasSpring(20.0, 2.5))
    b.spring("rope", "ground", "link4", (1.0, 0.0, 0.5), length=0.4,
             law=ld.PolynomialSpring(10.0, -3.0, 2.0, 0.2, 0.1, 0.05, slack=0.1))
    b.spring("plain", "link1", "link4", (0.0, 0.0, 0.3), stiffness=5.0, damping=0.4, length=0.2, preload=0.3)
    b.bushing("mount", "link2", "link4", (0.1, 0.02, 0.3), None, DRAWN[0] @ DRAWN[0].T + np.eye(6), DRAWN[1],
              [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    b.applied_force("wind", "link2", (0.1, 0.0, 0.0), (1.0, 2.0, 3.0), (0.4, 0.5, 0.6))
    b.applied_force("jet", "link3", (0.1, 0.0, 0.0), (1.0, 2.0, 3.0), (0.4, 0.5, 0.6), axes="body")
    b.cable("hoist", [("ground", (0.5, 0.9, 0.1)), ("link2", (0.1, 0.0, 0.0)), ("link4", (0.0, 0.1, 0.0))],
            length=0.1, stiffness=30.0, damping=1.0)
    if inputs:
        b.cylinder("ram", "ground", "link2", (1.0, 0.2, 0.4), (0.05, 0.0, 0.0), gear=1.5)
        b.thruster("propeller", "link3", (0.1, 0.2, 0.0), force=(1.0, 0.5, 0.2), torque=(0.1, 0.2, 0.3))
    return b.build()


def of_users_law():
    b = ld.Builder.of(bundled("five_bar"))
    b.coordinate_force("own", {"q1": 1.0}, law=lambda x, w: np.array([x, 1.0, 0.0]))
    return b.build()
