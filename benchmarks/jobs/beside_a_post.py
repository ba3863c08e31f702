"""Inverse kinematics of an arm beside a post, 20 mm away."""
import liedyn as ld

b = ld.Builder.of(ld.load("ur5"))
b.shape("tool", "wrist_3_link", "sphere", size=0.06, role="collision")
b.shape("forearm", "forearm_link", "capsule", (0.2, 0, 0), (0.06, 0.3), role="collision")
b.shape("post", "ground", "cylinder", (0.45, 0.0, 0.4), (0.08, 0.8), role="collision")
arm, q = b.build(), [0.6, -1.2, 1.4, -1.7, -1.5, 0.0]
goal = ld.pose(arm, [0.9, -1.3, 1.4, -1.7, -1.5, 0.0], "wrist_3_link")
targets = [ld.DistanceTarget(at_least=0.02), ld.PoseTarget("wrist_3_link", goal, priority=1)]
found = ld.inverse_kinematics(arm, targets, q)
print(found, ld.distances(arm, found.q).distance.min())
