"""Regulator for a balancer on two wheels, from its masses."""
import liedyn as ld

b = ld.Builder("balancer")
b.body("body", mass=2.0, com=(0, 0, 0.2), inertia=(0.03, 0.02, 0.01))
b.joint("base", "free", "ground", "body", placement=(0, 0, 0.08))
for name, y in (("left", 0.12), ("right", -0.12)):
    b.body(name, mass=0.2, inertia=(2e-4, 4e-4, 2e-4))
    b.joint(name, "revolute", "body", name, axis=(0, 1, 0), placement=(0, y, 0))
    b.actuator(f"{name}_motor", name)
    b.constraint(f"{name}_rolls", "sphere_on_plane", "ground", name, radius=0.08)
robot, wheels = b.build(), ("velocity:left", "velocity:right")
regulator = ld.lqr(robot, robot.home, {"base.ry": 10.0} | dict.fromkeys(wheels, 1.0), 1.0, states=("base.ry", *wheels))
print(regulator)
