"""Robots on wheels that do not slip, which fall over without a regulator: where they roll to decays by itself never."""
import numpy as np

import liedyn as ld


def balancer(base="free"):
    """A rod of 12 kg on two motorised wheels on one axle; its body moves freely, or on a plane with pitch above it."""
    free = base == "free"
    b = ld.Builder("balancer", home={"base": [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.1]} if free else None)
    b.body("rod", 12.0, (0.0, 0.0, 0.35), (0.6, 0.55, 0.15))
    if free:
        b.joint("base", "free", "ground", "rod", driven=False)
    else:
        b.body("place")
        b.joint("base", "planar", "ground", "place", placement=(0.0, 0.0, 0.1), driven=False)
        b.joint("pitch", "revolute", "place", "rod", axis=(0, 1, 0), driven=False)
    for side, y in (("left", 0.25), ("right", -0.25)):
        b.body(side, 1.5, (0.0, 0.0, 0.0), (0.004, 0.0075, 0.004))
        b.joint(f"{side}_wheel", "revolute", "rod", side, placement=(0.0, y, 0.0), axis=(0, 1, 0))
        b.constraint(f"{side}_contact", "disk_on_plane", "ground", side, axis=(0, 0, 1), child_axis=(0, 1, 0),
                     radius=0.1)
    return b.build()


def skateboard():
    """A rider on a board whose trucks turn as it leans; the rider leans against the board."""
    b = ld.Builder("skateboard", independent=("lean", "rider", "cart.x"))
    b.body("cart", 3.0, (0.0, 0.0, 0.0), (0.01, 0.15, 0.15))
    b.joint("cart", "planar", "ground", "cart", driven=False)
    b.body("deck", 2.0, (0.0, 0.0, 0.02), (0.01, 0.12, 0.13))
    b.joint("lean", "revolute", "cart", "deck", placement=(0.0, 0.0, 0.08), axis=(1, 0, 0), stiffness=400.0,
            damping=2.0, driven=False)
    b.body("rider", 65.0, (0.0, 0.0, 0.9), (9.0, 8.0, 1.5))
    b.joint("rider", "revolute", "deck", "rider", placement=(0.0, 0.0, 0.05), axis=(1, 0, 0))
    for truck, x, sign in (("front", 0.35, -1.0), ("rear", -0.35, 1.0)):
        b.body(truck, 0.5, (0.0, 0.0, 0.0), (0.001, 0.001, 0.001))
        b.joint(f"{truck}_truck", "revolute", "cart", truck, placement=(x, 0.0, 0.0), driven=False)
        b.constraint(f"{truck}_turns", "coupling", coefficients={f"{truck}_truck": 1.0, "lean": sign * 0.6})
        b.constraint(f"{truck}_wheels", "knife_edge", "ground", truck, child_axis=(0, 1, 0))
    return b.build()


def rolling(robot, **speeds):
    """A velocity at home: independent velocities as they are named, the others zero."""
    zero = np.zeros(robot.nv)
    names = ld.linearize(robot, robot.home, zero, zero).states
    independent = [name.removeprefix("velocity:") for name in names if name.startswith("velocity:")]
    return ld.complete_velocity(robot, robot.home, dict.fromkeys(independent, 0.0) | speeds)
