"""Drop a quadruped that holds its joints."""
import numpy as np

import liedyn as ld

b = ld.Builder.of(ld.load("solo12"))
b.ground_contacts(friction=0.7)
robot = b.build()
q = robot.home + 0.2 * np.eye(robot.nq)[6]
tr = ld.simulate(robot, q, np.zeros(robot.nv), 1.0,
                 tau=lambda t, q, v: np.append(np.zeros(6), 5.0 * (robot.home[7:] - q[7:]) - 0.1 * v[6:]))
print([(event.name, round(event.t, 4)) for event in tr.events][:8], tr.q[-1][:7].round(3))
