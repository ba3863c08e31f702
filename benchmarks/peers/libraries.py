"""The frequency of a linkage at rest by each library, with what it has for the purpose.

Every function takes a Linkage and returns a function without arguments: what is timed, from the built model to the
frequency in Hz. Building the model is not timed. Raises MissingPeer where the library is not installed.
"""
import importlib
from math import cos, sin

import numpy as np

from benchmarks.errors import MissingPeer
from benchmarks.peers.linkage import GRAVITY


def _imported(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingPeer("not installed") from None


def frequency_of(eigenvalues):
    """The largest imaginary part [Hz]."""
    return float(np.abs(np.imag(eigenvalues)).max() / (2 * np.pi))


def liedyn_(linkage):
    """The local state space of one independent coordinate."""
    import liedyn as ld

    robot = declared(linkage)
    q = ld.close(robot, robot.home) if linkage.closure else robot.home
    rest = np.zeros(robot.nv)
    return lambda: frequency_of(np.linalg.eigvals(ld.linearize(robot, q, rest, rest).A))


def declared(linkage):
    """The linkage as a robot of liedyn."""
    import liedyn as ld

    home = {f"bar{k}": bar.angle for k, bar in enumerate(linkage.bars)}
    builder = ld.Builder(linkage.name, gravity=(0.0, -GRAVITY, 0.0), home=home,
                         independent=[f"bar{k}" for k in linkage.independent])
    for k, bar in enumerate(linkage.bars):
        builder.body(f"bar{k}", bar.mass, (*bar.com, 0.0), (bar.inertia,) * 3)
        builder.joint(f"bar{k}", "revolute", "ground" if bar.parent < 0 else f"bar{bar.parent}", f"bar{k}",
                      placement=(*bar.at, 0.0))
    if linkage.closure:
        a, point, b, other = linkage.closure
        places = [np.eye(4), np.eye(4)]
        places[0][:2, 3], places[1][:2, 3] = point, other
        builder.loop("pin", "revolute", f"bar{a}", f"bar{b}", parent_placement=places[0], child_placement=places[1])
    return builder.build()


def sympy_(linkage):
    """Lagrange's equations with a multiplier, linearized by SymPy and evaluated; deriving them is timed too."""
    sp, me = _imported("sympy"), _imported("sympy.physics.mechanics")

    def frame_of(k, q, memo):
        if k < 0:
            return sp.Matrix([0, 0]), sp.Integer(0)
        if k not in memo:
            bar = linkage.bars[k]
            origin, angle = frame_of(bar.parent, q, memo)
            memo[k] = origin + turned(angle, bar.at), angle + q[k]
        return memo[k]

    def turned(angle, point):
        x, y = map(sp.Float, point)
        return sp.Matrix([sp.cos(angle) * x - sp.sin(angle) * y, sp.sin(angle) * x + sp.cos(angle) * y])

    def run():
        q, t = me.dynamicsymbols(f"q:{len(linkage.bars)}"), me.dynamicsymbols._t
        memo, L = {}, 0
        for k, bar in enumerate(linkage.bars):
            origin, angle = frame_of(k, q, memo)
            centre = origin + turned(angle, bar.com)
            speed = centre.diff(t)
            L += bar.mass * (speed.dot(speed) / 2 - GRAVITY * centre[1]) + bar.inertia * angle.diff(t) ** 2 / 2
        at = {x: bar.angle for x, bar in zip(q, linkage.bars)} | {x.diff(t): 0.0 for x in q}
        options = {"q_ind": [q[k] for k in linkage.independent], "qd_ind": [q[k].diff(t) for k in linkage.independent]}
        if linkage.closure:
            a, point, b, other = linkage.closure
            ends = [frame_of(k, q, memo)[0] + turned(frame_of(k, q, memo)[1], p) for k, p in ((a, point), (b, other))]
            method = me.LagrangesMethod(L, q, hol_coneqs=list(ends[0] - ends[1]))
            method.form_lagranges_equations()
            dependent = [k for k in range(len(q)) if k not in linkage.independent]
            options |= {"q_dep": [q[k] for k in dependent], "qd_dep": [q[k].diff(t) for k in dependent]}
            at |= method.solve_multipliers(op_point=at | {x.diff(t, 2): 0.0 for x in q})
        else:
            method = me.LagrangesMethod(L, q)
            method.form_lagranges_equations()
        at |= {x.diff(t, 2): 0.0 for x in q}
        A = method.linearize(**options, A_and_B=True, op_point=at, linear_solver="GJ")[0]
        return frequency_of(np.linalg.eigvals(np.array(A.subs(at), dtype=float)))
    return run


def mujoco_(linkage):
    """`mjd_transitionFD` at a step of 1 ms, implicit, centred differences; closures are its soft `connect`."""
    mujoco = _imported("mujoco")
    if not hasattr(mujoco, "MjModel"):
        raise MissingPeer("installed without its library")

    def body(k):
        bar = linkage.bars[k]
        inside = "".join(body(j) for j, other in enumerate(linkage.bars) if other.parent == k)
        (x, y), (cx, cy) = bar.at, bar.com
        return (f'<body name="b{k}" pos="{x!r} {y!r} 0"><joint type="hinge" axis="0 0 1"/>'
                f'<inertial pos="{cx!r} {cy!r} 0" mass="{bar.mass}" diaginertia="{bar.inertia} {bar.inertia} '
                f'{bar.inertia}"/>{inside}</body>')

    roots = "".join(body(k) for k, bar in enumerate(linkage.bars) if bar.parent < 0)
    xml = (f'<mujoco><option timestep="0.001" gravity="0 {-GRAVITY} 0" integrator="implicit" tolerance="1e-14" '
           f'iterations="200"/><worldbody>{roots}</worldbody>')
    if linkage.closure:
        a, (x, y), b, _ = linkage.closure
        xml += (f'<equality><connect body1="b{a}" body2="b{b}" anchor="{x!r} {y!r} 0" solref="0.002 1" '
                f'solimp="0.9999 0.9999 0.001"/></equality>')
    # the anchor of a connect is where the bodies are at qpos0, so the reference angles have to be the closed ones
    def posed(text):
        for k, bar in enumerate(linkage.bars):
            quaternion = f"{cos(bar.angle / 2)!r} 0 0 {sin(bar.angle / 2)!r}"
            text = text.replace(f'<body name="b{k}"', f'<body name="b{k}" quat="{quaternion}"')
        return text
    model = mujoco.MjModel.from_xml_string(posed(xml) + "</mujoco>")
    data = mujoco.MjData(model)
    A = np.zeros((2 * model.nv, 2 * model.nv))

    def run():
        mujoco.mj_resetData(model, data)
        mujoco.mj_forward(model, data)
        mujoco.mjd_transitionFD(model, data, 1e-6, True, A, None, None, None)
        rates = np.log(np.linalg.eigvals(A).astype(complex)) / model.opt.timestep
        slow = rates[np.abs(rates.real) < 20.0]  # the others are the constraint's own, far faster
        return frequency_of(slow if len(slow) else rates)
    return run


def drake_(linkage):
    """`Linearize` of a continuous plant; closures are its bushings, as in its own four-bar example."""
    plants, ports = _imported("pydrake.multibody.plant"), _imported("pydrake.systems.framework")
    trees, maths = _imported("pydrake.multibody.tree"), _imported("pydrake.math")
    primitives = _imported("pydrake.systems.primitives")
    plant = plants.MultibodyPlant(0.0)
    plant.mutable_gravity_field().set_gravity_vector([0.0, -GRAVITY, 0.0])
    joints, bodies = [], []
    for k, bar in enumerate(linkage.bars):
        inertia = trees.UnitInertia(*[bar.inertia / bar.mass] * 3).ShiftFromCenterOfMass([*bar.com, 0.0])
        body = plant.AddRigidBody(f"bar{k}", trees.SpatialInertia(bar.mass, [*bar.com, 0.0], inertia))
        parent = plant.world_body() if bar.parent < 0 else bodies[bar.parent]
        bodies.append(body)
        joints.append(plant.AddJoint(trees.RevoluteJoint(
            f"hinge{k}", plant.AddFrame(trees.FixedOffsetFrame(
                f"hinge{k}", parent, maths.RigidTransform([*bar.at, 0.0]))), body.body_frame(), [0.0, 0.0, 1.0])))
    if linkage.closure:
        a, point, b, other = linkage.closure
        sides = [plant.AddFrame(trees.FixedOffsetFrame(f"pin{k}", bodies[k], maths.RigidTransform([*at, 0.0])))
                 for k, at in ((a, point), (b, other))]
        plant.AddForceElement(trees.LinearBushingRollPitchYaw(
            *sides, [0.0] * 3, [0.0] * 3, [1e7, 1e7, 0.0], [0.0] * 3))
    plant.Finalize()
    context = plant.CreateDefaultContext()
    for joint, bar in zip(joints, linkage.bars):
        joint.set_angle(context, bar.angle)

    def A():
        return primitives.Linearize(plant, context, ports.InputPortSelection.kNoInput,
                                    ports.OutputPortSelection.kNoOutput, equilibrium_check_tolerance=1e9).A()

    n = plant.num_positions()
    for _ in range(8):  # where the bushing carries what a pin would
        acceleration = plant.EvalTimeDerivatives(context).CopyToVector()[n:]
        plant.SetPositions(context, plant.GetPositions(context) - np.linalg.solve(A()[n:, :n], acceleration))

    def run():
        values = np.linalg.eigvals(A())
        return float(np.abs(values.imag)[np.abs(values.imag) > 1e-6].min() / (2 * np.pi))  # the bushing's are higher
    return run


def exudyn_(linkage):
    """`ComputeODE2Eigenvalues` in redundant coordinates, projected by a singular value decomposition."""
    exu, utilities = _imported("exudyn"), _imported("exudyn.utilities")
    mbs = exu.SystemContainer().AddSystem()
    ground, bodies, frames = mbs.CreateGround(), [], []

    def place(k, point):
        angle, origin = frames[k]
        c, s = np.cos(angle), np.sin(angle)
        return origin + np.array([c * point[0] - s * point[1], s * point[0] + c * point[1], 0.0])

    frames_ground = (0.0, np.zeros(3))
    for bar in linkage.bars:
        angle = (frames_ground if bar.parent < 0 else frames[bar.parent])[0] + bar.angle
        frames.append((angle, place(bar.parent, bar.at) if bar.parent >= 0 else np.array([*bar.at, 0.0])))
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        bodies.append(mbs.CreateRigidBody(
            inertia=utilities.RigidBodyInertia(mass=bar.mass, inertiaTensor=np.eye(3) * bar.inertia),
            referencePosition=list(place(len(frames) - 1, bar.com)), referenceRotationMatrix=turn,
            gravity=[0.0, -GRAVITY, 0.0]))
        mbs.CreateRevoluteJoint(itemNumbers=[ground if bar.parent < 0 else bodies[bar.parent], bodies[-1]],
                                position=list(frames[-1][1]), axis=[0.0, 0.0, 1.0], useGlobalFrame=True)
    if linkage.closure:
        a, point, b, _ = linkage.closure
        mbs.CreateRevoluteJoint(itemNumbers=[bodies[a], bodies[b]], position=list(place(a, point)),
                                axis=[0.0, 0.0, 1.0], useGlobalFrame=True)
    mbs.Assemble()

    def run():
        return float(np.max(mbs.ComputeODE2Eigenvalues(convert2Frequencies=True)[0]))
    return run


LIBRARIES = {"liedyn": liedyn_, "SymPy": sympy_, "MuJoCo": mujoco_, "Drake": drake_, "Exudyn": exudyn_}
