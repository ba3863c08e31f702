"""A primitive joint, added: "arc", a carriage on a circular guide, by the way it has gone along it [m].

The guide lies in the xy plane, its centre on the negative x axis; its radius is what the joint advances for each
radian, its pitch. The screw (z / r, y) is constant in the frame of the carriage.
"""

EDITS = [
    ("model/kinds.py", '    "inline": _kind("vz",', '''\
    "arc": _kind("vy", axes=(_Z,), is_primitive=True, has_pitch=True, forbidden=(),
                 screws=lambda radius: [(0.0, 0.0, 1.0 / radius, 0.0, 1.0, 0.0)]),
    "inline": _kind("vz",'''),
    ("model/kinds.py", " SPHERICAL, FREE,\n INLINE)", " SPHERICAL, FREE,\n ARC, INLINE)"),
    ("tree/joints.py", "from liedyn.model.kinds import FREE,", "from liedyn.model.kinds import ARC, FREE,"),
    # moved: the pose
    ("tree/joints.py", '''    turned = rotate_rotation(R, quaternion_rotation(''', '''    if joint == ARC:
        r = pitch(model, i)
        s, c = sincos(load(lane, q, k) / r)
        return about_z(R, s, c), add(p, rotate(R, (r * (c - 1.0), r * s, splat(lane, 0.0))))
    turned = rotate_rotation(R, quaternion_rotation('''),
    # twist_of_kind
    ("tree/joints.py", '''    if joint == SPHERICAL:
        return get3(lane, v, k), zero3(lane)
''', '''    if joint == ARC:
        return (zero, zero, x / pitch(model, i)), (zero, x, zero)
    if joint == SPHERICAL:
        return get3(lane, v, k), zero3(lane)
'''),
    # screw_of_kind, in the frame of the link
    ("tree/joints.py", '''        return z, (zero, zero, splat(lane, pitch(model, i)))
''', '''        return z, (zero, zero, splat(lane, pitch(model, i)))
    if joint == ARC:
        return (zero, zero, splat(lane, 1.0 / pitch(model, i))), (zero, one, zero)
'''),
    # screw_of_kind_at, in the world
    ("tree/joints.py", '''        return z, add(cross(p, z), scale(pitch(model, i), z))
''', '''        return z, add(cross(p, z), scale(pitch(model, i), z))
    if joint == ARC:
        turn = scale(1.0 / pitch(model, i), z)
        return turn, add(cross(p, turn), (R[1], R[4], R[7]))
'''),
    # put_force_of_kind
    ("tree/joints.py", '''        store(lane, tau, k, F[0][2] + pitch(model, i) * F[1][2])
''', '''        store(lane, tau, k, F[0][2] + pitch(model, i) * F[1][2])
    elif joint == ARC:
        store(lane, tau, k, F[0][2] / pitch(model, i) + F[1][1])
'''),
    ("model/builder.py", "universal, planar, translational, spherical or free.",
     "universal, planar, translational, spherical, free or arc."),
    ("model/builder.py", "            Advance of a helical joint [m/rad].\n",
     "            Advance of a helical joint, radius of the guide of an arc [m/rad].\n"),
]
FILES = {}


def check():
    """Runs in the copy."""
    import numpy as np

    import liedyn as ld
    from liedyn.cli.verification import central_differences

    rng, radius = np.random.default_rng(0), 0.7
    b = ld.Builder("carriages")
    for k, (kind, parent) in enumerate([("arc", "ground"), ("revolute", "b0"), ("arc", "b1"), ("spherical", "b0"),
                                        ("arc", "b3")]):
        spring = {"stiffness": 3.0, "damping": 0.2, "armature": 0.1} if kind == "arc" else {}
        pitch = {"pitch": radius} if kind == "arc" else {}
        b.body(f"b{k}", 1.0 + k, rng.normal(size=3), (1.0, 1.2, 1.4))
        b.joint(f"j{k}", kind, parent, f"b{k}", ld.placement(rng.normal(size=3), rng.normal(size=3)), **pitch, **spring)
    robot = b.build()
    assert (robot.nq, robot.nv) == (8, 7)
    one = ld.Builder("one", gravity=(0.0, -9.81, 0.0))
    one.body("carriage", 2.0, inertia=(0.3, 0.3, 0.5))
    one.joint("way", "arc", "ground", "carriage", pitch=radius)
    one = one.build()
    for way in (0.3, -4.0):
        angle = way / radius
        pose = ld.forward_kinematics(one, [way])[0]
        x, y = np.cos(angle), np.sin(angle)
        np.testing.assert_allclose(pose[:3, 3], [radius * (x - 1.0), radius * y, 0.0], atol=1e-14)
        np.testing.assert_allclose(pose[:2, 0], [x, y], atol=1e-14)
        np.testing.assert_allclose(ld.rnea(one, [way], [2.0], [3.0]),  # a pendulum with its mass on the guide
                                   [(2.0 + 0.5 / radius**2) * 3.0 + 2.0 * 9.81 * np.cos(angle)], rtol=1e-13)

    def central(function, h=1e-3):
        return sum(w * function(k * h) for k, w in ((1, 2 / 3), (-1, -2 / 3), (2, -1 / 12), (-2, 1 / 12))) / h

    n = 5  # not one state: lanes too
    q, v, a = (ld.random_configuration(robot, rng, n), rng.uniform(-1.0, 1.0, size=(n, 7)), rng.normal(size=(n, 7)))
    tau = ld.rnea(robot, q, v, a)
    np.testing.assert_allclose(tau, [ld.rnea(robot, *x) for x in zip(q, v, a)], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ld.aba(robot, q, v, tau), a, atol=1e-10)
    M = ld.crba(robot, q)
    no_motion = ld.rnea(robot, q, v, 0 * a)
    np.testing.assert_allclose(np.einsum("bij,bj->bi", M, a), tau - no_motion, atol=1e-11)
    np.testing.assert_allclose(ld.difference(robot, q, ld.integrate(robot, q, v)), v, atol=1e-12)
    damping = np.array([each for joint in robot.model.joints for each in joint.damping])

    def energy(h):  # along the motion with velocity v + a t: the power of tau is what it gains, but for the dampers
        qs, vs = ld.integrate(robot, q, h * v + h * h / 2 * a), v + h * a
        return ld.kinetic_energy(robot, qs, vs) + ld.potential_energy(robot, qs)

    power = np.einsum("bi,bi->b", v, tau - damping * v)
    np.testing.assert_allclose(central(energy), power, rtol=1e-8)
    dq, dv, _ = ld.rnea_derivatives(robot, q, v, a)
    for j, e in enumerate(np.eye(7)):
        np.testing.assert_allclose(
            dq[:, :, j], central(lambda h, e=e: ld.rnea(robot, ld.integrate(robot, q, h * e), v, a)), atol=1e-7)
        np.testing.assert_allclose(dv[:, :, j], central(lambda h, e=e: ld.rnea(robot, q, v + h * e, a)), atol=1e-7)
    J = ld.body_jacobian(robot, q, "b4")
    poses = [ld.forward_kinematics(robot, ld.integrate(robot, q, h * v))[:, 4] for h in (0.0, 1e-5, -1e-5)]
    moving = np.linalg.inv(poses[0]) @ (poses[1] - poses[2]) / 2e-5
    np.testing.assert_allclose(np.einsum("bij,bj->bi", J, v)[:, 3:], moving[:, :3, 3], atol=1e-7)
    ss = ld.linearize(robot, q[0], v[0], tau[0])
    A, B = central_differences(robot, ss, None)
    assert abs(A - ss.A).max() < 1e-7 * abs(ss.A).max() and abs(B - ss.B).max() < 1e-8 * abs(ss.B).max()
