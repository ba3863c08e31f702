"""The robots that are timed: bundled ones, chains of any length, ladders of any number of loops, arms that carry
parallelograms; and their oracle."""
import functools
import importlib.util
from pathlib import Path

import numpy as np

import liedyn as ld
from benchmarks.errors import MissingPeer
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE

TESTS = Path(__file__).resolve().parents[1] / "tests"
SPREAD, SPEED = 0.2, 0.3
"""Size of the random steps away from home, and of the random velocities [rad, m; rad/s, m/s] of closed mechanisms."""
DRAWS = 20
"""Random steps that are tried before a mechanism is said not to close."""


def chain(count):
    """Bodies in a row on revolute joints whose axes alternate between y, z and x.

    Examples
    --------
    >>> chain(10).nv
    10
    """
    builder, parent = ld.Builder(f"chain{count}"), "ground"
    for k in range(count):
        name = f"body{k}"
        builder.body(name, 1.0, (0.05, 0.01, -0.02), (0.002, 0.003, 0.0025))
        builder.joint(f"j{k}", "revolute", parent, name, placement=(0.1, 0.0, 0.0) if k else None,
                      axis=np.eye(3)[(1, 2, 0)[k % 3]])
        builder.actuator(f"motor{k}", f"j{k}")
        parent = name
    return builder.build()


def brush(count):
    """Chains of five bodies each, side by side on the ground: as many bodies as asked for, and never deeper.

    Examples
    --------
    >>> robot = brush(20)
    >>> robot.nv, sum(joint.parent == "ground" for joint in robot.model.joints)
    (20, 4)
    """
    builder = ld.Builder(f"brush{count}")
    for k in range(count):
        builder.body(f"body{k}", 1.0, (0.05, 0.01, -0.02), (0.002, 0.003, 0.0025))
        first = k % 5 == 0
        builder.joint(f"j{k}", "revolute", "ground" if first else f"body{k - 1}", f"body{k}",
                      placement=(0.0, 0.3 * (k // 5), 0.0) if first else (0.1, 0.0, 0.0),
                      axis=np.eye(3)[(1, 2, 0)[k % 3]])
    return builder.build()


def ladder(loops):
    """Parallelograms on top of each other: each carries the next one on its coupler.

    Examples
    --------
    >>> robot = ladder(3)
    >>> robot.nv, len(robot.loop_names)
    (9, 3)
    """
    builder, base = ld.Builder(f"ladder{loops}", gravity=(0.0, -9.81, 0.0),
                               independent=[f"crank{k}" for k in range(loops)],
                               home={f"{part}{k}": angle for k in range(loops)
                                     for part, angle in (("crank", 0.3), ("coupler", -0.3), ("rocker", 0.3))}), "ground"
    for k in range(loops):
        base = _parallelogram(builder, base, k, (0.0, 0.1 if k else 0.0, 0.0))
        builder.actuator(f"motor{k}", f"crank{k}")
    return builder.build()


def four_bars(count):
    """Four-bar linkages side by side (IFToMM benchmark A02): one degree of freedom, all loops coupled.

    Examples
    --------
    >>> robot = four_bars(3)
    >>> robot.nv, len(robot.loop_names), robot.independent
    (7, 3, ('V0',))
    """
    upright, level = 0.5 * np.pi, -0.5 * np.pi
    home = {f"V{k}": upright for k in range(count + 1)} | {f"H{k}": level for k in range(count)}
    builder, tip = ld.Builder(f"four_bars{count}", gravity=(0.0, -9.81, 0.0), home=home, independent=["V0"]), np.eye(4)
    tip[0, 3] = 1.0
    for name in home:
        builder.body(name, 1.0, (0.5, 0.0, 0.0), (0.0, 1.0 / 12.0, 1.0 / 12.0))
    for k in range(count + 1):
        builder.joint(f"V{k}", "revolute", "ground", f"V{k}", placement=(float(k), 0.0, 0.0))
    for k in range(count):
        builder.joint(f"H{k}", "revolute", f"V{k}", f"H{k}", placement=(1.0, 0.0, 0.0))
    for k in range(count):
        builder.loop(f"tip{k}", "revolute", f"V{k + 1}", f"H{k}", parent_placement=tip, child_placement=tip)
    return builder.build()


def _parallelogram(builder, base, k, origin):
    """Crank, coupler, rocker and their loop; the name of the coupler."""
    crank, coupler, rocker = (f"{part}{k}" for part in ("crank", "coupler", "rocker"))
    builder.body(crank, 0.6, (0.0, 0.2, 0.0), (0.01, 0.001, 0.01))
    builder.body(coupler, 0.8, (0.15, 0.02, 0.0), (0.001, 0.01, 0.01))
    builder.body(rocker, 0.5, (0.01, 0.2, 0.0), (0.01, 0.001, 0.01))
    builder.joint(crank, "revolute", base, crank, placement=origin)
    builder.joint(coupler, "revolute", crank, coupler, placement=(0.0, 0.4, 0.0))
    builder.joint(rocker, "revolute", base, rocker, placement=(origin[0] + 0.3, *origin[1:]))
    pose = np.eye(4)
    pose[:3, 3] = 0.3, 0.0, 0.0
    tip = np.eye(4)
    tip[:3, 3] = 0.0, 0.4, 0.0
    builder.loop(f"pin{k}", "revolute", coupler, rocker, parent_placement=pose, child_placement=tip)
    return coupler


def carrier(name):
    """``carrierN+L``: an arm of N joints that carries L parallelograms, and declares no independent coordinates.

    Examples
    --------
    >>> robot = carrier("carrier10+1")
    >>> robot.nv, len(robot.loop_names), robot.independent
    (13, 1, ())
    """
    joints, loops = map(int, name.removeprefix("carrier").split("+"))
    builder, bodies = ld.Builder(name, home={
        f"{part}{k}": angle for k in range(loops) for part, angle in (
            ("crank", 0.3), ("coupler", -0.3), ("rocker", 0.3))}), ["ground"]
    for k in range(joints):
        body = f"body{k}"
        builder.body(body, 1.0, (0.05, 0.01, -0.02), (0.002, 0.003, 0.0025))
        builder.joint(f"j{k}", "revolute", bodies[-1], body, placement=(0.1, 0.0, 0.0) if k else None,
                      axis=np.eye(3)[(1, 2, 0)[k % 3]])
        bodies.append(body)
    for k in range(loops):
        _parallelogram(builder, bodies[-1 - k % joints], k, (0.0, 0.05 * k, 0.0))
    return builder.build()


@functools.cache
def named(name):
    """A bundled robot, or ``chainN``, ``brushN``, ``ladderN``, ``four_barsN``, ``carrierN+L``."""
    if name.startswith("carrier"):
        return carrier(name)
    for start, build in (("chain", chain), ("brush", brush), ("ladder", ladder),
                         ("four_bars", four_bars)):
        if name.startswith(start) and name != start:
            return build(int(name.removeprefix(start)))
    return ld.load(name)


def moving_states(robot, count, rng, spread=SPREAD):
    """States that close the loops, their velocities, and forces for accelerations of order one in the open tree.

    Parameters
    ----------
    robot : Robot
    count : int
    rng : numpy.random.Generator
    spread : float
        Size of the random steps away from home [rad, m]; those from which nothing closes are drawn again.

    Returns
    -------
    q, v, tau : ndarray
        Shapes (count, nq), (count, nv), (count, nv).
    """
    states = []
    for _ in range(count):
        q = _closed(robot, rng, spread)
        v = SPEED * rng.normal(size=robot.nv)
        if robot.loop_names:
            G = ld.constraint_jacobian(robot, q)
            v -= np.linalg.pinv(G, rcond=RANK_TOLERANCE) @ (G @ v)
        states.append((q, v, ld.rnea(robot, q, v, rng.normal(size=robot.nv))))
    return tuple(np.array(x) for x in zip(*states))


def _closed(robot, rng, spread):
    for k in range(DRAWS):
        q = ld.integrate(robot, robot.home, spread * rng.normal(size=robot.nv))
        try:
            return ld.close(robot, q) if robot.loop_names else q
        except ld.ClosureError:
            if k == DRAWS - 1:
                raise


@functools.cache
def oracle(name):
    """Pinocchio's model of a robot: the tests' oracle, with the fastest joint that Pinocchio has for each axis.

    Raises
    ------
    MissingPeer
        `pin` is not installed, or this is not a checkout.
    """
    if importlib.util.find_spec("pinocchio") is None:
        raise MissingPeer("no pin")
    path = TESTS / "pinocchio_models.py"
    if not path.exists():
        raise MissingPeer("no tests/pinocchio_models.py")
    spec = importlib.util.spec_from_file_location("pinocchio_models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.pin_model(named(name))
    made.model = _aligned(made.model)
    made.data = made.model.createData()
    return made


def _aligned(model):
    """The same model with joints about x, y and z where the axes are those."""
    import pinocchio as pin

    fast = {"Revolute": (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ),
            "Prismatic": (pin.JointModelPX, pin.JointModelPY, pin.JointModelPZ)}

    def joint(own):
        kind = own.shortname().removeprefix("JointModel").removesuffix("Unaligned")
        along = [k for k in range(3) if kind in fast and np.array_equal(own.extract().axis, np.eye(3)[k])]
        return fast[kind][along[0]]() if along else own.extract()

    out = pin.Model()
    out.name, out.gravity = model.name, model.gravity
    for i in range(1, model.njoints):
        out.addJoint(model.parents[i], joint(model.joints[i]), model.jointPlacements[i], model.names[i])
        out.appendBodyToJoint(i, model.inertias[i], pin.SE3.Identity())
    for frame in list(model.frames)[1:]:
        out.addFrame(pin.Frame(frame.name, frame.parentJoint, 0, frame.placement, frame.type), False)
    out.armature = model.armature
    return out
