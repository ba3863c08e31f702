"""Bearing loads of a loader, 401 states of a lift."""
import numpy as np

import liedyn as ld

robot, t, w = ld.load("loader"), np.linspace(0.0, 4.0, 401), np.pi / 2
q = ld.close(robot, robot.home, boom=0.1 - 0.4 * np.cos(w * t), bucket=np.full(401, -0.1))
v = ld.complete_velocity(robot, q, {"boom": 0.4 * w * np.sin(w * t), "bucket": np.zeros(401)})
a = np.stack([0.4 * w * w * np.cos(w * t), np.zeros(401)], axis=-1)
u = ld.inverse_dynamics(robot, q, v, a).u
loads = {name: np.linalg.norm(F[:, 3:], axis=1).max() for name, F in ld.joint_wrenches(robot, q, v, u=u).items()}
print(loads)
