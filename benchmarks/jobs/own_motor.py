"""A motor law of one's own in a five-bar, simulated, linearized."""
import numpy as np

import liedyn as ld


def motor(x, w):
    """Torque of a line that saturates, and its slopes by angle and speed."""
    s = np.tanh(0.5 * (10.0 - w))
    return 2.0 * s, 0.0, -(1.0 - s * s)


b = ld.Builder.of(ld.load("five_bar"))
b.coordinate_force("motor", {"q1": 1.0}, law=motor)
robot = b.build()
tr = ld.simulate(robot, robot.home, np.zeros(robot.nv), 1.0)
ss = ld.linearize(robot, tr.q[-1], tr.v[-1], np.zeros(robot.nv))
print(tr["motor.force"][-1], ss.eigenvalues())
