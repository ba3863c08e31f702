"""Random convex bodies above a floor, for property tests."""
import numpy as np

import liedyn as ld


def random_drop(seed):
    """A robot with 4 to 8 corner contacts, a configuration above the floor, and a velocity."""
    rng = np.random.default_rng(seed)
    corners = rng.standard_normal((rng.integers(4, 9), 3))
    corners *= 0.3 / np.linalg.norm(corners, axis=1, keepdims=True) * rng.uniform(0.7, 1.0, (len(corners), 1))
    corners -= corners.mean(axis=0)
    mass, friction, restitution = rng.uniform(0.5, 3.0), rng.uniform(0.0, 1.0), rng.uniform(0.0, 0.8)
    spread = corners.T @ corners * mass / len(corners) * 0.6  # as of masses at the corners, drawn in a little
    b = ld.Builder("drop")
    b.body("body", mass=mass, inertia=np.trace(spread) * np.eye(3) - spread)
    b.joint("j", "free", "ground", "body")
    for k, corner in enumerate(corners):
        b.constraint(f"c{k}", "on_plane", "ground", "body", child_placement=corner, unilateral=True,
                     friction=friction, restitution=restitution)
    robot = b.build()
    q = ld.integrate(robot, robot.neutral, np.r_[rng.uniform(-2, 2, 3), 0, 0, 0])
    lowest = min((ld.pose(robot, q, "body")[:3, :3] @ corner)[2] for corner in corners)
    q[6] = rng.uniform(0.01, 0.3) - lowest
    return robot, q, np.r_[rng.uniform(-3, 3, 3), rng.uniform(-1, 1, 3)]
