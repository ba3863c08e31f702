"""``liedyn warmup``: call every function once, so that its kernels are compiled into the cache."""
# mypy: ignore-errors
import contextlib
import functools
import inspect
import math
import multiprocessing
import os
import signal
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numba
import numpy as np

import liedyn as ld
from liedyn import kernels, lie
from liedyn.look.cable_lines import lines as cable_lines
from liedyn.look.cli.shared_calls import dealt, progress
from liedyn.machine.cache import cache_directory
from liedyn.machine.compiled import jit
from liedyn.machine.compiled.compile_progress import notice
from liedyn.machine.compiled.cpu_targets import LEVEL, WIDTH
from liedyn.machine.errors import LiedynError
from liedyn.machine.program.handover import compile_always
from liedyn.machine.typed_decorators import once
from liedyn.mechanics.constraints.independent import choose
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.model.calls.recursion import RECURSIONS
from liedyn.model.clusters import LONG
from liedyn.motion.simulation.integrators import METHODS

_LIE_ARGUMENTS = {
    "V": np.zeros(6), "matrix": np.zeros((4, 4)), "T": np.eye(4), "T1": np.eye(4), "T2": np.eye(4), "x": np.ones(3),
    "w": np.ones(3), "W": np.zeros((3, 3)), "R": np.eye(3), "quat": np.array([0.0, 0.0, 0.0, 1.0]), "mass": 1.0,
    "com": np.zeros(3), "inertia": np.eye(3), "I": np.eye(6),
}


def warmup(jobs=None, here=False):
    """Compile all kernels in parallel processes, with a progress bar; or in this one, where Ctrl-C waits for a kernel.

    Processes share the cache: what one compiles, another waits for and loads.
    """
    directory = cache_directory()
    if directory is None:
        raise LiedynError("there is no cache to fill: LIEDYN_CACHE is 0, or no directory is writable")
    compile_always()
    names = [name for name, _ in calls()]
    start = time.perf_counter()
    jobs = min(jobs or os.cpu_count() or 1, len(names))
    notice.is_silent = True  # there is a progress bar
    if here:
        done = progress(names, map(_call, range(len(names))))
    else:
        # fresh processes: a fork of a process with a running compiler may hang
        fresh = multiprocessing.get_context("spawn")
        with contextlib.ExitStack() as stack:
            pools = [stack.enter_context(ProcessPoolExecutor(1, fresh, _end_silently)) for _ in range(jobs)]
            try:
                done = progress(names, dealt(len(names), pools, _call))
            except BrokenProcessPool:
                raise LiedynError("a process that compiled has ended: there may not be enough memory for "
                                  f"{jobs} of them; try --jobs 1") from None
            except KeyboardInterrupt:
                for pool in pools:
                    pool.shutdown(wait=False, cancel_futures=True)
                for process in multiprocessing.active_children():
                    process.terminate()
                raise
    compiled, loaded, carried = np.sum(done, axis=0)
    found = f"{loaded - carried} found in the cache {directory}"
    if carried:
        found = f"{carried} found in the package, which carries them for {LEVEL}, {found}"
    print(f"{compiled} kernels compiled, {found}, "
          f"{time.perf_counter() - start:.0f} s with {jobs} process{'es' if jobs > 1 else ''}")


def _end_silently():
    """Ctrl-C ends a worker without a traceback; it compiles what it calls."""
    compile_always()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    notice.is_silent = True


def _call(k):
    """Makes call number k; returns how many kernels it compiled, loaded, and loaded from the package."""
    before = _statistics()
    _listed()[k][1]()
    return _statistics() - before


@once
def _listed():
    """All calls of this process: what they need is made once."""
    return [*calls()]


def _statistics():
    return np.sum([(sum(kernel.stats.cache_misses.values()), sum(kernel.stats.cache_hits.values()),
                    kernel._cache.carried) for kernel in jit.KERNELS], axis=0)


def call(name, *arguments, **options):
    """The name of a public function, and a function without arguments that calls it."""
    return name, lambda: getattr(ld, name)(*arguments, **options)


def calls():
    """(name, function without arguments) for everything that has kernels."""
    arm, loop = ld.load("panda"), ld.load("five_bar")
    solo = ld.load("solo12")  # has a quaternion among its coordinates
    yield from _of_trees(arm, solo)
    yield from _of_compiled_callers(arm, loop)
    yield from _of_loops(loop)
    yield from _of_other_constraints(loop)
    yield from _of_derivatives(loop)
    yield from _of_tasks(arm, solo, loop)


def _of_trees(arm, solo):
    q, x = arm.neutral, np.ones(arm.nv)
    known = dict.fromkeys(("q", "q0", "q1"), solo.neutral) | {"body": solo.body_names[-1], "f_ext": None}
    for name, declared in RECURSIONS.items():
        given = [known.get(x, np.zeros(solo.nv)) for x in declared.inputs]
        yield name, functools.partial(declared.function, solo, *given)
        # the kernel for batches and, with enough states, the one that distributes them to threads
        many = (np.tile(x, (1000, 1)) if isinstance(x, np.ndarray) else x for x in given)
        yield name, functools.partial(declared.function, solo, *many)
    yield call("total_mass", arm)
    yield call("linearize", solo, solo.neutral, np.zeros(solo.nv), np.zeros(solo.nv))
    yield call("linearize", arm, *(np.tile(part, (1000, 1)) for part in (q, x, x)))


def _of_loops(loop):
    home, rest = loop.home, np.zeros(loop.nv)
    for name in ("closure_error", "virtual_coordinates", "constraint_jacobian", "virtual_jacobian", "close"):
        yield call(name, loop, home)
    yield call("close", loop, loop.neutral)  # from a singular guess
    yield call("constraint_bias", loop, home, rest)
    for method in ld.dynamics.forward.METHODS:
        yield call("forward_dynamics", loop, home, rest, rest, method=method)
    yield call("forward_dynamics", loop, home, rest, rest, baumgarte=(1.0, 1.0))
    yield call("canonical_equations", loop, home, np.zeros(2), rest)
    yield "unified_velocity", lambda: ld.dynamics.unified_velocity(loop, home, rest, 1.0)
    bodies = [f"{kind}:{loop.body_names[0]}" for kind in ("pose", "twist", "twist_rate")]
    yield call("linearize", loop, home, rest, rest, outputs=[*bodies, f"wrench:{loop.loop_names[0]}"])
    many = [np.tile(x, (12500, 1)) for x in (home, rest, rest)]  # in lanes, in threads, and with the checks in threads
    yield call("forward_dynamics", loop, *many)
    yield call("linearize", loop, *many)
    yield call("underlying", loop, home, rest, rest)
    for method in METHODS:
        yield call("simulate", loop, home, rest, 0.01, method=method, progress=False)
    yield call("simulate", loop, np.tile(home, (9, 1)), rest, 0.002, progress=False)  # in lanes
    yield call("simulate", loop, home, rest, 0.002, tau=numba.njit(lambda t, q, v: 0.0 * v), progress=False)
    for formulation in ("svd", "multiplier", "unified", "momenta"):
        yield call("simulate", loop, home, rest, 0.01, formulation=formulation, progress=False)
    yield call("simulate", loop, home, rest, 0.01, stabilisation="minimal", progress=False)
    yield call("step", loop, home, rest, rest, 1e-3)
    yield "Stepper", lambda: _held(loop)
    yield "kernels.step", lambda: kernels.step(kernels.stepping(loop), 0.0, 1e-3, home.copy(), rest.copy(), rest)
    yield call("forward_dynamics", loop, home, rest, rest, independent=("q1", *loop.virtual_names))
    yield call("inverse_dynamics", loop, home, rest, [0.0, 0.0])
    forces = {name: 0.0 for name in loop.row_names}
    yield call("inverse_dynamics", loop, home, rest, [0.0, 0.0], loop.virtual_names + ("q1",), multipliers=forces)
    yield call("controllability", loop, home)
    yield call("discretize", loop, home, rest, rest, 1e-3, independent=("q1", *loop.virtual_names))
    yield call("discretize", loop, np.tile(home, (2, 1)), rest, rest, 1e-3)
    yield call("velocity_error", loop, home, rest)
    yield call("check_constraint", loop, loop.loop_names[0], home, rest)
    none_of_it = (lambda t, q, v: 0.0 * v), (lambda t, q, v: (np.zeros((loop.nv, loop.nv)),) * 2)
    yield call("check_feedback", loop, none_of_it, home, rest)


def _of_other_constraints(loop):
    home, rest = loop.home, np.zeros(loop.nv)
    walker = _walker()
    state = walker.home, np.zeros(walker.nv), np.zeros(walker.nv)
    yield call("linearize", walker, *state)
    yield call("linearize", walker, *(np.tile(x, (WIDTH, 1)) for x in state))
    chain = _chain()
    rates, wrench = np.zeros(chain.nv), f"wrench:{chain.loop_names[0]}"
    yield call("linearize", chain, chain.home, rates, rates, outputs=[wrench])
    yield call("close", chain, chain.home + 1e-3)
    yield call("forward_dynamics", chain, chain.home, rates, rates)
    yield call("forward_dynamics", chain, chain.home, rates, rates, method="multiplier")
    for method in "rk4", "implicit":
        yield call("simulate", chain, chain.home, rates, 0.002, method=method, progress=False)
    ball, slides = _ball(), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    yield call("simulate", ball, ball.neutral, slides, 0.01, tau=lambda t, q, v: 0.0 * v, progress=False)
    ends = _ball(extent=1.0)
    yield call("simulate", ends, ends.neutral, slides, 0.01, progress=False)
    for options in ({}, {"accumulation": "moreau", "method": "moreau"}):
        yield call("simulate", ball, ball.neutral, slides, 0.01, progress=False, **options)
    yield call("forward_dynamics", ball, ball.neutral, slides, [0.0] * 6)
    yield call("linearize", ball, ball.neutral, slides, [0.0] * 6, outputs=["wrench:floor"])
    bob = _bob()
    yield "lines of cables", lambda: cable_lines(bob, bob.home)
    yield call("linearize", bob, bob.neutral, *np.zeros((2, bob.nv)))
    yield "forward_dynamics", _near_singular
    rolling = ld.load("rolling_disk")
    zero = np.zeros(len(rolling.row_names))
    yield call("constraint_wrenches", rolling, rolling.home, zero)
    yield call("world_constraint_wrenches", rolling, rolling.home, zero)
    sprung = _sprung(loop)
    yield call("element_forces", sprung, home, rest)
    yield call("linearize", sprung, home, rest, rest)
    yield call("simulate", sprung, home, rest, 0.002, method="implicit", progress=False)
    yield call("actuator_matrix", sprung, home)
    yield call("linearize", rolling, rolling.home, *np.zeros((2, rolling.nv)))


def _of_derivatives(loop):
    home, rest = loop.home, np.zeros(loop.nv)
    rolling, sprung, ball, rubber = ld.load("rolling_disk"), _sprung(loop), _ball(), _rubber()
    yield call("forward_dynamics_derivatives", loop, home, rest, rest)
    yield "differentiate_run", lambda: _differentiated(loop)
    for robot in loop, rolling, ld.load("diagonal_spring"):  # cut joints, another constraint, a force element
        still = np.zeros((2, robot.nv))
        yield call("sensitivities", robot, robot.home, *still, parameters=["mass:*", "placement.x:*", "stiffness:*"][
            :3 if robot.elements else 2])
    bodies = [f"{kind}:{loop.body_names[0]}" for kind in ("pose", "twist", "twist_rate")]
    yield call("sensitivities", loop, home, rest, rest, parameters=["mass:*"], outputs=bodies)
    yield call("sensitivities", ball, ball.neutral, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0], [0.0] * 6, parameters=["mass:*"],
               outputs=["wrench:floor"])
    yield call("differentiate_run", sprung, home, rest, 0.002, parameters=["stiffness:spring"])
    yield call("sensitivities", rubber, rubber.home, *np.zeros((2, 6)), parameters=["mass:*"])
    # second derivatives: without contacts, with one that sticks, with force elements on cut joints and a cable, with a
    # taut cable that does not stretch
    bob = _bob()
    for robot in loop, _sled(), sprung, bob:
        yield call("linearize", robot, robot.home, *np.zeros((2, robot.nv)), second=True)
    yield call("sensitivities", bob, bob.home, *np.zeros((2, bob.nv)), parameters=["length:*"])
    yield call("linearize", loop, np.tile(loop.home, (WIDTH, 1)), *np.zeros((2, WIDTH, loop.nv)), second=True)


def _of_tasks(arm, solo, loop):
    q, home, rest, rubber = arm.neutral, loop.home, np.zeros(loop.nv), _rubber()
    for method in "euler", "midpoint", "rk4":
        yield call("ddp", loop, home, rest, ld.Cost(Q=1.0, R=1.0), 2, 0.01, limits=ld.Limits(inputs=(-9.0, 9.0)),
                   method=method)
    yield call("ddp", loop, home, rest, ld.Cost(Q=1.0, R=1.0), 2, 0.01,
               start=(np.tile(home, (3, 1)), np.zeros((3, loop.nv))))  # with gaps, as its weight makes it fall
    weak = ld.Limits(inputs=(-1e-3, 1e-3))  # they are active
    yield call("ddp", loop, home, rest, ld.Cost(Q=1.0, R=1e-9), 2, 0.01, limits=weak)
    yield call("ddp", rubber, rubber.home, np.zeros(rubber.nv), ld.Cost(Q=1.0, R=1.0), 2, 0.01, method="midpoint")
    for robot in loop, solo, _sprung(loop):  # second derivatives of steps, with quaternions, with force elements
        yield call("ddp", robot, robot.home, np.zeros(robot.nv), ld.Cost(Q=1.0, R=1.0), 2, 0.01, hessian="exact")
    sled = _sled()  # phases, phase changes, and active force limits of its contact
    phases, costs = [ld.Phase(["foot"], 1), ld.Phase([], 1), ld.Phase(["foot"], 1)], ld.Cost(R=1e-3, u=[50.0])
    for hessian in "gauss-newton", "exact":
        yield call("ddp", sled, sled.home, np.zeros(3), costs, phases, 1e-4, hessian=hessian)  # it hardly falls
    yield "MPC", lambda: ld.MPC(sled, sled.home, np.zeros(3), costs, 2, 1e-4, method="midpoint", schedule=phases)
    # its constructor compiles all kernels
    yield "MPC", lambda: ld.MPC(loop, home, rest, ld.Cost(Q=1.0, R=1.0), 2, 0.01)
    hand = ld.PointTarget(arm.body_names[-1], [0.3, 0.3, 0.3])
    yield call("ddp", arm, q, np.zeros(arm.nv), ld.Cost(R=1e-9, terminal_targets=hand), 2, 0.01, hessian="exact")
    yield call("inverse_kinematics", arm, hand, unreached="ignore")
    yield call("inverse_kinematics", arm, hand, q0=np.tile(q, (100, 1)), unreached="ignore")  # in threads
    yield call("differential_inverse_kinematics", arm, np.tile(q, (100, 1)), hand, 0.01)
    yield "target.jacobian", lambda: hand.jacobian(arm, q)
    yield "Regulator.derivative", lambda: ld.lqr(
        loop, home, 1.0, 1.0, independent=("q1", *loop.virtual_names)).derivative(0.0, home, rest)


def _of_compiled_callers(arm, loop):
    """Kernels that users may call, dispatched from Python; functions of the groups."""
    q, x, none, work = arm.neutral, np.ones(arm.nv), np.empty(0), kernels.workspace(arm)
    home, rest = loop.home, np.zeros(loop.nv)

    def kernel(name, *results):
        return f"kernels.{name}", lambda: getattr(kernels, name)(
            kernels.SCALAR, arm.packed, q.copy(), x, x, none, work, *results)

    matrices = [np.zeros(arm.nv**2) for _ in range(4)]
    yield kernel("rnea", x.copy())
    yield kernel("rnea_derivatives_nonzeros", x.copy(), *matrices[:3])
    yield kernel("aba_derivatives_nonzeros", x.copy(), *matrices)
    yield kernel("rnea_second_derivatives_nonzeros", *(np.zeros(arm.nv**3) for _ in range(4)))
    yield "kernels.rnea_hessian_nonzeros", lambda: kernels.rnea_hessian_nonzeros(
        kernels.SCALAR, arm.packed, q.copy(), x, x, x, none, work, *matrices)
    yield "kernels.forward_kinematics", lambda: kernels.forward_kinematics(
        kernels.SCALAR, arm.packed, q.copy(), work, np.empty((arm.nbodies, 12)))
    yield "kernels.forward_dynamics", lambda: kernels.forward_dynamics(
        arm.packed, q.copy(), x, x, none, RANK_TOLERANCE, work, x.copy(), none)

    def nullspace_dynamics():
        chosen = choose(loop, home, None, RANK_TOLERANCE)
        kernels.nullspace_dynamics(
            loop.packed, home.copy(), rest, rest, none, chosen.rows, chosen.virtual, RANK_TOLERANCE)

    yield "nullspace_dynamics", nullspace_dynamics

    for name in lie.__all__:
        function = getattr(lie, name)
        vector = np.ones(3 if name.startswith("so3") else 6)
        known = _LIE_ARGUMENTS | {"r": vector, "c": vector}
        given = [known[argument] for argument in inspect.signature(function).parameters]
        yield f"lie.{name}", lambda function=function, given=given: function(*given)


def _walker():
    """A floating trunk on four legs, each a parallelogram: directions of different legs share columns."""
    builder, down, along = ld.Builder("walker"), (0.0, 0.0, -1.0), (0.3, 0.0, 0.0)
    builder.body("trunk", 5.0, inertia=(1.0, 1.0, 1.0))
    builder.joint("free", "free", "ground", "trunk")
    for leg in "abcd":
        for part, parent, place in (("front", "trunk", (0.0, 0.0, 0.0)), ("shank", f"front {leg}", down),
                                    ("back", "trunk", along)):
            builder.body(f"{part} {leg}", 1.0, inertia=(0.1, 0.1, 0.1))
            builder.joint(f"{part} {leg}", "revolute", parent, f"{part} {leg}", place, axis=(0.0, 1.0, 0.0))
        builder.loop(f"pin {leg}", "revolute", f"shank {leg}", f"back {leg}", along, down, axis=(0.0, 1.0, 0.0))
    return builder.build()


def _chain():
    """A row of parallelograms, so many that they are eliminated as sparse rows."""
    names, tip = [f"rod {k}" for k in range(LONG // 2 + 1)], (1.0, 0.0, 0.0)
    home = dict.fromkeys(names, 0.5) | {f"bar {k}": -0.5 for k in range(LONG // 2)}
    builder = ld.Builder("chain", home=home, independent=names[:1])
    for k, name in enumerate(names):
        builder.body(name, 1.0, inertia=(0.1, 0.1, 0.1))
        builder.joint(name, "revolute", "ground", name, (0.0, 0.0, float(k)), axis=(0.0, 1.0, 0.0))
    for k, (name, beside) in enumerate(zip(names, names[1:])):
        builder.body(f"bar {k}", 1.0, inertia=(0.1, 0.1, 0.1))
        builder.joint(f"bar {k}", "revolute", name, f"bar {k}", tip, axis=(0.0, 1.0, 0.0))
        builder.loop(f"pin {k}", "revolute", f"bar {k}", beside, (0.0, 0.0, 1.0), tip, axis=(0.0, 1.0, 0.0))
    return builder.build()


def _near_singular():
    """Digits that are left at a parallelogram's states next to its flat one; its lengths are in millimetres."""
    builder, angle = ld.Builder("mm", gravity=(0.0, -9810.0, 0.0)), 1e-6
    for name, parent, place in ("left", "ground", 0.0), ("right", "ground", 500.0), ("top", "left", 300.0):
        builder.body(name, 1.0, inertia=(1e4, 1e4, 1e4))
        builder.joint(name, "revolute", parent, name, (place, 0.0, 0.0))
    builder.loop("pin", "revolute", "top", "right", (500.0, 0.0, 0.0), (300.0, 0.0, 0.0))
    robot, q, rest = builder.build(), np.array([angle, angle, -angle]), np.zeros(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConditionWarning)
        ld.forward_dynamics(robot, q, rest, rest)
        ld.forward_dynamics(robot, np.tile(q, (WIDTH, 1)), rest, rest)


def _sprung(robot):
    """The same robot with a spring on its first coordinate and on one of a cut joint, a motor, a cable."""
    builder = ld.Builder.of(robot)
    builder.cable("cable", [("ground", (0.0, 0.0, 1.0)), (robot.body_names[0], (0.0, 0.0, 0.0))], stiffness=1.0)
    builder.coordinate_force("spring", {robot.velocity_names[0]: 1.0, robot.virtual_names[0]: 1.0}, stiffness=1.0)
    builder.actuator("motor", robot.virtual_names[0])
    return builder.build()


def _rubber():
    """A body on a bushing, with a spring in its free joint."""
    builder = ld.Builder("rubber")
    builder.body("ball", 1.0, inertia=(0.4, 0.4, 0.4))
    builder.joint("free", "free", "ground", "ball", stiffness=1.0)
    builder.bushing("mount", "ground", "ball", stiffness=1.0)
    return builder.build()


def _sled():
    """A frame that stands on the ground with friction, and a mass that a motor pushes along it."""
    builder = ld.Builder("sled")
    for name in "foot", "frame", "mass":
        builder.body(name, 1.0, inertia=(0.1, 0.1, 0.1))
    builder.joint("x", "prismatic", "ground", "frame", axis=(1, 0, 0))
    builder.joint("z", "prismatic", "frame", "foot", axis=(0, 0, 1))
    builder.joint("slide", "prismatic", "foot", "mass", axis=(1, 0, 0))
    builder.actuator("motor", "slide")
    builder.constraint("foot", "on_plane", "ground", "foot", unilateral=True, friction=0.5)
    return builder.build()


def _ball(**surface):
    """A ball that touches the floor: a contact with friction."""
    builder = ld.Builder("ball")
    builder.body("ball", 1.0, inertia=(0.4, 0.4, 0.4))
    builder.joint("free", "free", "ground", "ball")
    builder.constraint("floor", "sphere_on_plane", "ground", "ball", parent_placement=(0.0, 0.0, -1.0), radius=1.0,
                       unilateral=True, friction=0.5, **surface)
    return builder.build()


def _bob():
    """A bob that moves in a plane, on a cable that does not stretch."""
    builder = ld.Builder("bob")
    builder.body("bob", 1.0, inertia=(0.4, 0.4, 0.4))
    builder.joint("plane", "planar", "ground", "bob", axis=(0.0, 1.0, 0.0))
    builder.cable("cable", [("ground", (0.0, 0.0, 1.0)), ("bob", (0.0, 0.0, 0.0))], length=1.0, stiffness=math.inf)
    return builder.build()


def _held(robot):
    """One step of a robot that is held by a coupler, and a direct call of the coupler."""
    stepper = ld.Stepper(robot, robot.home, np.zeros(robot.nv))
    coupler = ld.VirtualCoupler(robot, robot.body_names[-1], None, 1.0, 0.1)
    coupler.move([0.0, 0.0, 0.0])
    stepper.couple(coupler)
    stepper.step()
    coupler.force(stepper.q, stepper.v)


def _differentiated(robot):
    """A run past a singular configuration, differentiated also by a length; a gradient and a variation."""
    length = f"child_placement.x:{robot.loop_names[0]}"
    run = ld.differentiate_run(robot, robot.home, np.zeros(robot.nv), 0.66, dt=0.01, parameters=[length])
    run.forward(parameters=[1.0])
    run.adjoint(v=np.ones(robot.nv))
