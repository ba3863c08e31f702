"""An arm in least time, torques and a speed limited, to 1e-2."""
import liedyn as ld

arm, start, way = ld.load("ur5"), [0.0, -1.2, 1.4, -1.0, -1.5, 0.0], [1.2, 0.4, -0.5, 0.3, 0.2, 0.5]
goal = [x + dx for x, dx in zip(start, way)]
motion = ld.optimize_motion(arm, start, goal, duration=(0.3, 3.0), cost="time", intervals=15, tolerance=1e-2,
                            bounds={"velocity:shoulder_pan_joint": 2.0}, progress=False)
print(motion)
