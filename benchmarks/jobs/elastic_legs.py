"""Natural frequencies of a Stewart platform on elastic legs."""
import numpy as np

import liedyn as ld

b = ld.Builder.of(ld.load("stewart"))
for k in range(1, 7):
    b.coordinate_force(f"stiff{k}", {f"leg{k}": 1.0}, stiffness=1e6, damping=100.0)
robot = b.build()
hold = ld.trim(robot, robot.home, free=robot.actuator_names)
modes = ld.modes(ld.linearize(robot, robot.home, np.zeros(robot.nv), u=hold.u))
print(modes)
