"""Closed mechanisms for every kind of cut joint, and differences along their constraint manifolds."""
import numpy as np
from comparison import off  # noqa: F401
from mechanisms import motion, random_axes, random_inertia, random_joint, random_pose, random_q
from scipy.spatial.transform import Rotation

from liedyn.linear.linearize import linearize
from liedyn.mechanics.constraints import closure_error, constraint_jacobian, virtual_jacobian
from liedyn.mechanics.constraints.independent import choose
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree import configuration, forward_kinematics
from liedyn.mechanics.tree.rnea import rnea
from liedyn.model import Builder
from liedyn.model.kinds import LOOP_KINDS

# sixth order: error h^6 f^(7) / 140, and rounding eps / h; odd terms of a curve on the manifold cancel up to h^7
STENCIL = ((1, 45 / 60), (2, -9 / 60), (3, 1 / 60))
STEP = 1e-3


def difference(function, step=STEP):
    """Derivative at zero of a function of one variable."""
    return sum(c * (np.asarray(function(k * step)) - np.asarray(function(-k * step))) for k, c in STENCIL) / step


def frame_motion(rng, kind, axes, pitch):
    """A random motion that the cut joint allows, in the user's axes."""
    if kind == "inline":
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = Rotation.random(random_state=rng).as_matrix(), rng.normal() * axes[0]
        return pose
    if kind == "spherical":
        return motion(kind, axes, pitch, Rotation.random(random_state=rng).as_quat())
    return motion(kind, axes, pitch, rng.uniform(-1.2, 1.2, size=3))


def two_branches(rng, kinds_a=("universal", "spherical"), kinds_b=("revolute", "free"), trunk="revolute"):
    """Declare a trunk that carries two branches; returns the builder and the last body of each branch."""
    builder = Builder("closed", gravity=(0.3, -9.0, 1.0))
    ends = []

    def body(name, kind, parent):
        builder.body(name, rng.uniform(0.5, 2.0), rng.normal(size=3), random_inertia(rng))
        builder.joint(f"j_{name}", kind, parent, name, damping=0.1, **random_joint(rng, kind))

    body("trunk", trunk, "ground")
    for branch, kinds in (("a", kinds_a), ("b", kinds_b)):
        parent = "trunk"
        for k, kind in enumerate(kinds):
            body(f"{branch}{k}", kind, parent)
            parent = f"{branch}{k}"
        ends.append(parent)
    return builder, ends


def closed_mechanism(kind, seed=0, **branches):
    """A mechanism whose two branches are joined by one cut of a kind, and a configuration that closes it."""
    rng = np.random.default_rng([seed, list(LOOP_KINDS).index(kind)])
    state = rng.bit_generator.state
    builder, (a, b) = two_branches(rng, **branches)
    open_robot = builder.build()
    q = random_q(rng, open_robot)
    axes = {"inline": random_axes(rng, "revolute")}.get(kind) or random_axes(rng, kind)
    pitch = {"pitch": 0.4} if kind == "helical" else {}
    unit = [np.asarray(x) / np.linalg.norm(x) for x in axes.values()]
    frame_a = random_pose(rng)
    poses = dict(zip(open_robot.body_names, forward_kinematics.forward_kinematics(open_robot, q)))
    joined = frame_motion(rng, kind, unit, pitch.get("pitch"))
    frame_b = np.linalg.inv(poses[b]) @ poses[a] @ frame_a @ joined
    again = np.random.default_rng()
    again.bit_generator.state = state
    builder, _ = two_branches(again, **branches)
    builder.loop("cut", kind, a, b, parent_placement=frame_a, child_placement=frame_b, **axes, **pitch)
    return builder.build(), q


LEGS = {  # each body: its kind of joint and what it hangs on; then the cut, and what it joins
    "a": ((("revolute", "trunk"), ("revolute", "a0"), ("universal", "trunk"), ("revolute", "a2")),
          ("spherical", 1, "a3")),
    "b": ((("revolute", "trunk"), ("spherical", "b0"), ("revolute", "b1")), ("cylindrical", 2, "trunk")),
    "c": ((("revolute", "trunk"), ("revolute", "c0"), ("spherical", "c1"), ("revolute", "c0"), ("revolute", "c3")),
          ("spherical", 2, "c4")),
    "tail": ((("spherical", "trunk"), ("revolute", "tail0")), None)}


def walker(damping=0.0):
    """A floating trunk with a tail and legs: closed between two of its points, with it, and beyond the hip."""
    rng = np.random.default_rng(11)
    builder = Builder("walker", gravity=(0.3, -9.0, 1.0))
    builder.body("trunk", 3.0, rng.normal(size=3), random_inertia(rng))
    builder.joint("base", "free", "ground", "trunk", damping=damping, **random_joint(rng, "free"))
    for name, (bodies, _) in LEGS.items():
        for k, (kind, parent) in enumerate(bodies):
            builder.body(f"{name}{k}", rng.uniform(0.5, 2.0), rng.normal(size=3), random_inertia(rng))
            builder.joint(f"j_{name}{k}", kind, parent, f"{name}{k}", damping=0.1, stiffness=0.2,
                          armature=0.1 if kind == "revolute" else 0.0, **random_joint(rng, kind))
    open_robot = builder.build()
    q = random_q(rng, open_robot)
    poses = dict(zip(open_robot.body_names, forward_kinematics.forward_kinematics(open_robot, q)))
    for name, (_, cut) in LEGS.items():
        if cut is not None:
            kind, number, other = cut
            frame, axes = random_pose(rng), random_axes(rng, kind)
            joined = frame_motion(rng, kind, [x / np.linalg.norm(x) for x in axes.values()], None)
            on_other = np.linalg.inv(poses[other]) @ poses[f"{name}{number}"] @ frame @ joined
            builder.loop(f"cut_{name}", kind, f"{name}{number}", other, parent_placement=frame,
                         child_placement=on_other, **axes)
    return builder.build(), q


def moving_state(robot, q, seed=0):
    """Any velocity in the null space of G, and forces that would give the open tree accelerations of order one.

    Forces of order one would spin a body of 1e-11 kg m^2 (there are some in the bundled machines) at 1e11 rad/s^2, and
    rounding in that would drown the differences.
    """
    rng = np.random.default_rng(seed)
    G = constraint_jacobian(robot, q)
    v = rng.normal(size=robot.nv)
    v -= np.linalg.pinv(G, rcond=1e-9) @ (G @ v)
    return v, rnea(robot, q, v, rng.normal(size=robot.nv))


def onto_manifold(robot, q):
    """The closed configuration next to q, a smooth function of it."""
    for _ in range(6):
        q = configuration.integrate(
            robot, q, -np.linalg.pinv(constraint_jacobian(robot, q), rcond=1e-7) @ closure_error(robot, q)
        )
    return q


def reader(robot, q, chosen):
    return chosen.matrix(virtual_jacobian(robot, q))


def velocity(robot, q, chosen, w):
    Z = np.vstack([constraint_jacobian(robot, q), reader(robot, q, chosen)])
    return np.linalg.lstsq(Z, np.concatenate([np.zeros(len(Z) - len(w)), w]), rcond=1e-9)[0]


def differences(robot, q, v, tau, independent, evaluate):
    """d evaluate(q, v, tau) by (y, w, u) along the manifold, u the robot's inputs.

    A curve on the manifold with the right tangent is enough: its curvature is even in the step and cancels.
    """
    chosen = choose(robot, q, independent, RANK_TOLERANCE)
    ss = linearize(robot, q, v, tau, independent=chosen)
    w = reader(robot, q, chosen) @ v

    def by_y(direction):
        def along(s):
            near = onto_manifold(robot, configuration.integrate(robot, q, s * direction))
            return evaluate(near, velocity(robot, near, chosen, w), tau)
        return difference(along)

    columns = [by_y(k) for k in ss.K.T]
    columns += [
        difference(lambda s, e=e: evaluate(q, velocity(robot, q, chosen, w + s * e), tau)) for e in np.eye(len(w))
    ]
    # affine in the forces: the step may be as large as the forces are, which loses no digits
    size = max(1.0, np.abs(tau).max())
    columns += [difference(lambda s, u=u: evaluate(q, v, tau + s * u), size) for u in robot.actuator_matrix.T]
    return np.stack(columns, axis=-1)
