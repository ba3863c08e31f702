"""Hold a Stewart platform, linearize it, LQR, simulate."""
import numpy as np

import liedyn as ld

robot = ld.load("stewart")
hold = ld.trim(robot, robot.home, free=robot.actuator_names)
ss = ld.linearize(robot, robot.home, np.zeros(robot.nv), u=hold.u)
regulator = ld.lqr(robot, robot.home, Q=100.0, R=1e-4)
goal = ld.pose(robot, robot.home, "platform") @ ld.placement((0.03, 0.0, 0.05), rpy=(0.0, 0.1, 0.0))
start = ld.inverse_kinematics(robot, ld.PoseTarget("platform", goal)).q
tr = ld.simulate(robot, start, np.zeros(robot.nv), 1.0, u=regulator)
print(ss.states, regulator.eigenvalues.round(2), np.abs(ld.difference(robot, robot.home, tr.q[-1])).max())
