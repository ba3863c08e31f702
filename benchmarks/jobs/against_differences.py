"""Compare a model of a five-bar with differences."""
import numpy as np

import liedyn as ld

robot = ld.load("five_bar")


def rates(x):
    q = ld.close(robot, robot.home, q1=x[0], q2=x[1])
    v = ld.complete_velocity(robot, q, {"q1": x[2], "q2": x[3]})
    a = ld.forward_dynamics(robot, q, v, np.zeros(robot.nv)).a
    return np.append(x[2:], a[[robot.velocity_index("q1"), robot.velocity_index("q2")]]), q, v


x = np.array([0.9, 0.4, 1.0, -0.5])
A = np.column_stack([(rates(x + dx)[0] - rates(x - dx)[0]) / 2e-6 for dx in 1e-6 * np.eye(4)])
ss = ld.linearize(robot, *rates(x)[1:], np.zeros(robot.nv), independent=("q1", "q2"))
print(abs(A - ss.A).max())
