"""Random mechanisms for property tests: hypothesis draws what they are made of, and a seed draws their numbers.

A failing example so shrinks to few bodies and constraints, and its `Plan`, as pytest prints it, builds it again.
"""
import os
from typing import NamedTuple

import numpy as np
from closed_chains import frame_motion
from hypothesis import settings
from hypothesis import strategies as st
from mechanisms import MOVING_KINDS, random_axes, random_inertia, random_joint, random_pose
from scipy.spatial.transform import Rotation
from test_energy import unwound

import liedyn as ld
from liedyn.model.kinds import CONSTRAINT_KINDS, JOINT_KINDS, LOOP_KINDS

EXAMPLES = int(os.environ.get("LIEDYN_EXAMPLES", 0))
TIE_KINDS = (*LOOP_KINDS, *(kind for kind in CONSTRAINT_KINDS if kind not in ("custom", "dry_friction", "cable")))
CONTACT_KINDS = tuple(kind for kind, form in CONSTRAINT_KINDS.items()
                      if form.one_sided and not form.coefficients and kind != "cable")


def laws(examples):
    """The settings of a test: so many examples, always the same ones; LIEDYN_EXAMPLES asks for as many new ones."""
    return settings(max_examples=EXAMPLES or examples, derandomize=not EXAMPLES, deadline=None)


class Plan(NamedTuple):
    """What a mechanism is made of.

    Attributes
    ----------
    joints : tuple of (str, int)
        Of each body: kind of its joint, and the body that it hangs on, -1 for the ground.
    ties : tuple of (str, int, int, bool)
        Constraints: kind, the two bodies, declared twice?
    contacts : tuple of (str, int, int, float)
        One-sided constraints: kind, the two bodies, friction.
    springs, dampers : bool
        At all joints (but for a free one, which stays bare).
    seed : int
        Of all numbers.
    """

    joints: tuple
    ties: tuple = ()
    contacts: tuple = ()
    springs: bool = False
    dampers: bool = False
    seed: int = 0


@st.composite
def plans(draw, bodies=5, ties=2, contacts=0, root=None, tie_kinds=TIE_KINDS, dampers=True):
    """Plans of up to so many bodies, ties and contacts (then one at least).

    `root`, if given, is the only joint at the ground, and ties join bodies.
    """
    count = draw(st.integers(1 if root is None else 2, bodies))
    joints = [] if root is None else [(root, -1)]
    while len(joints) < count:
        first = -1 if root is None else 0
        kinds = list(JOINT_KINDS) if joints else MOVING_KINDS  # something moves
        joints.append((draw(st.sampled_from(kinds)), draw(st.integers(first, len(joints) - 1))))
    pairs = st.tuples(st.integers(-1 if root is None or contacts else 0, count - 1), st.integers(0, count - 1)).filter(
        lambda pair: pair[0] != pair[1])

    def some(kinds, least, most, further):
        drawn = st.lists(st.tuples(st.sampled_from(kinds), pairs, further), min_size=least, max_size=most)
        return tuple((kind, *pair, other) for kind, pair, other in draw(drawn))

    return Plan(tuple(joints), some(tie_kinds, 0, ties, st.booleans()),
                some(CONTACT_KINDS, min(1, contacts), contacts, st.sampled_from([0.0, 0.1, 0.3, 0.6])),
                draw(st.booleans()), dampers and draw(st.booleans()), draw(st.integers(0, 2**32 - 1)))


def built(plan, gap=0.0):
    """The robot of a plan, a configuration that satisfies its ties and has its contacts so far open, and the rng."""
    rng = np.random.default_rng(plan.seed)
    builder = ld.Builder("random", gravity=5.0 * rng.normal(size=3))
    for k, (kind, parent) in enumerate(plan.joints):
        builder.body(f"body{k}", rng.uniform(0.5, 2.0), rng.normal(size=3), random_inertia(rng))
        stiffness, damping, armature = rng.uniform(0.1, 1.0, size=3) * (
            (plan.springs, plan.dampers, plan.springs) if kind not in ("free", "fixed") else (0, 0, 0))
        builder.joint(f"joint{k}", kind, name_of(parent), f"body{k}", **random_joint(rng, kind), stiffness=stiffness,
                      damping=damping, armature=armature)
    tree = builder.build()
    q = unwound(tree, rng)
    poses = {"ground": np.eye(4), **dict(zip(tree.body_names, ld.forward_kinematics(tree, q)))}
    for k, (kind, a, b, twice) in enumerate(plan.ties):
        if kind == "coupling":
            options = coupled(rng, tree, q, (a, b))
        else:
            options = between(rng, kind, poses, name_of(a), name_of(b))
        declare = builder.loop if kind in LOOP_KINDS else builder.constraint
        for name in (f"tie{k}", f"again{k}")[:1 + twice] if options else ():
            declare(name, kind, **options)
    for k, (kind, a, b, friction) in enumerate(plan.contacts):
        rolls = {"rolling": False} if "rolling" in CONSTRAINT_KINDS[kind].takes else {}
        builder.constraint(f"contact{k}", kind, **between(rng, kind, poses, name_of(a), name_of(b), gap),
                           unilateral=True, friction=friction, restitution=rng.uniform(0.0, 0.8), **rolls)
    return builder.build(), q, rng


def name_of(body):
    return "ground" if body < 0 else f"body{body}"


def between(rng, kind, poses, a, b, gap=0.0):
    """Arguments of a constraint that is satisfied where the bodies are, or has a gap."""
    options, joined = satisfied(rng, kind, gap)
    frame = random_pose(rng)
    place = np.linalg.inv(poses[b]) @ poses[a] @ frame @ joined
    return {"parent": a, "child": b, "parent_placement": frame, "child_placement": place, **options}


def satisfied(rng, kind, gap=0.0):
    """Parameters of a constraint, and a pose of its frame B in A at which its residual is zero, or the gap."""
    if kind in LOOP_KINDS:
        axes = random_axes(rng, "revolute" if kind == "inline" else kind)
        pitch = {"pitch": 0.4} if kind == "helical" else {}
        unit = [x / np.linalg.norm(x) for x in axes.values()]
        return {**axes, **pitch}, frame_motion(rng, kind, unit, pitch.get("pitch"))
    pose, radius, larger = np.eye(4), *rng.uniform(0.3, 1.0, size=2)
    R, frame = Rotation.random(random_state=rng).as_matrix(), Rotation.random(random_state=rng).as_matrix()
    (n, s, t), along, axle = frame, rng.normal(), rng.normal(size=3)
    axle /= np.linalg.norm(axle)
    rim = np.sqrt(1.0 - (n @ R @ axle) ** 2)  # height of the centre of a disk of radius 1 that touches
    place, options = {
        "distance": ((larger + gap) * s, {"length": larger}),
        "on_plane": (along * s + gap * n, {"axis": n}),
        "on_cylinder": ((larger + gap) * s + along * n, {"axis": n, "radius": larger}),
        "on_circle": (larger * s, {"axis": n, "radius": larger}),
        "knife_edge": (along * t, {"child_axis": axle}),
        "disk_on_plane": (along * s + (radius * rim + gap) * n, {"axis": n, "child_axis": axle, "radius": radius}),
        "sphere_on_plane": (along * s + (radius + gap) * n, {"axis": n, "radius": radius}),
        "sphere_on_sphere": ((radius + larger + gap) * s, {"radius": radius, "parent_radius": larger}),
    }[kind]
    pose[:3, :3], pose[:3, 3] = R, place
    return options, pose


def coupled(rng, tree, q, bodies):
    """Arguments of a coupling of the first coordinates of these bodies' joints, none if those are quaternions."""
    names = {joint.child: joint.name + form.velocities[0] for joint in tree.model.joints
             for form in [JOINT_KINDS[joint.kind]] if form.nq == form.nv > 0}
    chosen = {names[name_of(k)]: rng.uniform(0.5, 2.0) for k in bodies if name_of(k) in names}
    offset = sum(c * q[tree.coordinate_index(name)] for name, c in chosen.items())
    return {"coefficients": chosen, "offset": offset} if chosen else None


def moving(robot, q, rng, speed=1.0):
    """Any velocity that the constraints allow, and forces."""
    v = speed * rng.normal(size=robot.nv)
    G = ld.constraint_jacobian(robot, q)
    return v - np.linalg.pinv(G, rcond=1e-9) @ (G @ v), rng.normal(size=robot.nv)
