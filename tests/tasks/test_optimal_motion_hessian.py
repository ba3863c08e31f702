"""Exact Hessians of optimal motions, and the interior-point method that lives on them."""
import numpy as np
import pytest
from comparison import off, relative
from scipy.sparse import block_diag, csc_matrix, eye_array
from test_optimal_motion import cart_pole, program
from test_optimal_motion_loops import rock

import liedyn as ld
from liedyn.machine.errors import InputError
from liedyn.mechanics.constraints.checking import central_difference
from liedyn.tasks.optimal_motion import bordered
from liedyn.tasks.optimal_motion.solving import densities_of, multipliers_of
from liedyn.tasks.optimal_motion.bordered import Bordered, is_positive
from liedyn.tasks.optimal_motion.charts import charts_about
from liedyn.tasks.optimal_motion.lagrangian import bent_motion, second_motion


def sprung_five_bar():
    """Driven at its cut joint too, with a spring between two links, a damper and friction."""
    b = ld.Builder.of(ld.load("five_bar"))
    b.actuator("second", "pin")
    b.spring("spring", "ground", "link2", parent_placement=(0.3, 1.5, 0.0), stiffness=20.0, damping=0.4)
    b.friction("friction", "q1", coulomb=0.5, static=0.7, stribeck=0.3, viscous=0.1, width=0.2)
    return b.build()


def soft_five_bar():
    """With a bushing."""
    b = ld.Builder.of(ld.load("five_bar"))
    b.bushing("soft", "ground", "link2", stiffness=np.eye(6), damping=0.1 * np.eye(6))
    return b.build()


def sprung_ball():
    """A body on a ball joint with a spring, and a motor for each of its axes."""
    b = ld.Builder("sprung ball")
    b.body("ball", 2.0, (0.0, 0.1, 0.3), (0.05, 0.06, 0.02))
    b.joint("joint", "spherical", "ground", "ball", stiffness=3.0, damping=0.2)
    for axis in "xyz":
        b.actuator(axis, f"joint.r{axis}")
    return b.build()


def somewhere(robot, size=0.2):
    """Home, closed, and a configuration next to it on the manifold."""
    q = ld.close(robot, robot.home) if robot.row_names else robot.home
    charts = charts_about(robot, q[None])
    y = size * np.random.default_rng(0).normal(size=(1, charts.sizes[0]))
    return q, charts.configurations(np.zeros(1, np.int64), y)[0]


ROBOTS = {"cart_pole": cart_pole, "sprung five-bar": sprung_five_bar,
          "soft five-bar": soft_five_bar, "sprung ball": sprung_ball, "rock": rock, "ball": lambda: rock(True),
          **{name: lambda name=name: ld.load(name) for name in (
              "five_bar", "panda", "stewart", "loader", "shopping_cart", "solo12", "cassie_like")}}


@pytest.mark.validation("Hessian of the Lagrangian of optimal motions", robots=", ".join(ROBOTS),
                        oracle="Differences of sixth order of exact gradients")
@pytest.mark.parametrize("name", ROBOTS)
def test_hessian_of_the_lagrangian(name):
    robot = ROBOTS[name]()
    start, goal = somewhere(robot)
    bounds = {f"power:{robot.actuator_names[0]}": 1e3}
    strokes = [] if name in ("stewart", "cassie_like") else robot.virtual_names  # those of balls are learnt
    bounds |= {each: (-50.0, 50.0) for each in strokes[:1]}
    bounds |= {f"velocity:{each}": 50.0 for each in robot.virtual_names[:1]}
    made, z = program(robot, (start, None), (goal, None), "collocation", 4, bounds=bounds, periodic=True,
                      cost={"effort": 1.0, "velocity": 0.3, "time": 0.2, "posture": (0.5, goal)})
    rng, scale = np.random.default_rng(3), made.scale[made.free]
    multipliers = rng.normal(size=len(made.c_low))
    assert made.is_exact and made.known.all()

    def slope(z):
        value = made._evaluate(z)
        return (0.7 * value.gradient + value.jacobian.T @ multipliers)[made.free] * scale

    H = made.hessian(z, 0.7, multipliers).toarray()[np.ix_(made.free, made.free)] * scale * scale[:, None]
    size = np.abs(H).max()
    assert np.abs(H - H.T).max() <= 1e-11 * size  # two ways of the same sums; cassie_like's loops lose some digits
    for direction in rng.normal(size=(3, len(scale))):
        whole = np.zeros(len(z))
        whole[made.free] = direction * scale
        along = central_difference(lambda s, whole=whole: slope(z + s * whole))
        # the differences' own rounding is 1e-12 of gradients, which are larger than what they change by
        assert relative(H @ direction, along) < 1e-7


@pytest.mark.parametrize("name", ["cart_pole", "five_bar", "ball", "stewart", "solo12", "shopping_cart"])
def test_contractions_are_those_of_the_tensors(name):
    """By adjoint equations and by derivatives of all columns: trees, loops, redundant rows, balls, rolling."""
    robot = ROBOTS[name]()
    start, goal = somewhere(robot)
    made, z = program(robot, (start, None), (goal, None), "collocation", 3)
    charts, k, motion = made.transcription.charts, made.transcription.chart, made.evaluate(z).motion
    x = charts.sizes[1]
    gradients = np.random.default_rng(3).normal(size=(3, *motion.v.shape))
    found = [bent_motion(charts, k, motion, *gradients), second_motion(charts, k, motion, False).along(*gradients)]
    for H in found:  # columns one after the other, or both at once in the exponential's chart
        H[:, :x] = 0.5 * (H[:, :x] + H[:, :x].swapaxes(1, 2))
    assert np.abs(found[0] - found[1]).max() <= 1e-11 * np.abs(found[1]).max()


def test_what_is_not_known_is_learnt():
    b = ld.Builder.of(ld.load("five_bar"))
    b.coordinate_force("stop", {"q2": 1.0}, law=lambda x, w: (x**3, 3.0 * x**2, 0.0))
    start, goal = somewhere(b.build())
    made, _ = program(b.build(), start, goal, "collocation", 3)
    assert not made.is_exact and not made.known.any()
    made, _ = program(ld.load("five_bar"), start, goal, "shooting", 2)
    assert not made.is_exact and not made.known.any()
    speed = ld.PathFunction(lambda t, q, v, u: v @ v, lambda t, q, v, u: (0.0 * v, 2.0 * v, 0.0 * u), high=100.0)
    made, _ = program(ld.load("five_bar"), start, goal, "collocation", 3, path=speed)
    assert made.is_exact and 0 < (~made.known).sum() < len(made.known)


@pytest.mark.validation("swing-up of a cart-pole: cost of three solvers", robots="cart_pole",
                        oracle="SciPy's trust-constr")
def test_solvers_agree():
    costs = {}
    for solver in ("liedyn", "scipy"):
        motion = ld.optimize_motion(cart_pole(), [0, 0], [1, np.pi], duration=2.0, bounds={"force:motor": 20},
                                    tolerance=None, intervals=20, solver=solver)
        assert motion.outcome == "converged"
        costs[solver] = motion.cost
        if solver == "liedyn":
            assert motion.iterations < 30  # 16 when this was written; SR1 Hessians took 90
    assert off(costs["liedyn"] / costs["scipy"], 1.0) < 1e-6  # each leaves 1e-8 of the cost for each of its limits


def test_few_iterations_where_limits_bind():
    panda = ld.load("panda")
    goal = panda.home + np.array([1.2, 0.5, -0.4, 0.6, 0.5, 0.4, 0.3])
    with pytest.warns(ld.MotionWarning, match="between them"):  # ten intervals are few
        motion = ld.optimize_motion(panda, panda.home, goal, duration=0.6, tolerance=None)
    assert motion.outcome == "converged" and motion.optimality < 1e-6
    assert motion.iterations < 50  # 22 when this was written; Ipopt takes 21, trust-constr with SR1 more than 1000
    speeds = np.abs(motion.v[::10]).max(axis=0) / panda.velocity_limit
    assert 0.999 < speeds.max() <= 1.0 + 1e-8


def test_multipliers_of_limits_are_carried_from_mesh_to_mesh():
    """A limit pushes with a density over time, which finer meshes share among more nodes."""
    panda, begin = ld.load("panda"), dict(duration=0.8, progress=False)
    goal = panda.home + np.array([0.6, 0.3, -0.2, 0.4, 0.3, -0.2, 0.5])
    with pytest.warns(ld.MotionWarning, match="between them"):
        cold = ld.optimize_motion(panda, panda.home, goal, intervals=20, tolerance=None, **begin)
    other = ld.optimize_motion(panda, panda.home, goal, intervals=20, tolerance=None, guess=cold, progress=False,
                               duration=(0.3, 2.0), cost={"effort": 1e-4, "time": 1.0})
    assert other.iterations < 60  # another problem: 30 when this was written, 256 with the multipliers of this one
    pushes = {name: values @ np.gradient(part) for name, (part, values) in cold._densities.items() if len(part) > 2}
    assert max(map(abs, pushes.values())) > 1.0  # some limits bind
    with pytest.warns(ld.MotionWarning, match="between them"):
        again = ld.optimize_motion(panda, panda.home, goal, intervals=20, tolerance=None, guess=cold, **begin)
    assert again.iterations <= 5 < cold.iterations  # 2 and 20 when this was written
    assert off(again.cost / cold.cost, 1.0) < 1e-5  # each of a thousand limits leaves 1e-7 of a first cost


@pytest.mark.parametrize("full", [(), (7,), (0, 99)])
@pytest.mark.parametrize("narrow", [0.0, 0.5])
def test_elimination_with_full_columns(full, narrow, monkeypatch):
    monkeypatch.setattr(bordered, "NARROW", narrow)  # sparse, or in a band
    rng = np.random.default_rng(0)
    M = np.diag(rng.uniform(1.0, 2.0, 100)) + np.diag(rng.normal(size=99), 1)
    M[list(full)] = rng.normal(size=(len(full), 100))
    M, b = M + M.T, rng.normal(size=100)
    shuffled = rng.permutation(100)
    M = M[shuffled][:, shuffled]
    assert off(M @ Bordered(csc_matrix(M), 100).solve(b), b) < 1e-11
    square = csc_matrix(M.T @ M)  # its first columns are full where those of M are
    assert is_positive(square)
    assert not is_positive((square - 2.0 * np.linalg.eigvalsh(square.toarray())[0] * eye_array(100)).tocsc())
    M[0] = M[:, 0] = 0.0
    with pytest.raises(RuntimeError):
        Bordered(csc_matrix(M), 100)


def test_bands_are_found():
    """Unknowns of intervals in any order: the width does not grow with their number."""
    widths = []
    for intervals in (20, 200):
        M = block_diag([np.ones((6, 6))] * intervals).tolil()
        for k in range(6, 6 * intervals, 6):
            M[k:k + 6, k - 6:k] = M[k - 6:k, k:k + 6] = 1.0
        shuffled = np.random.default_rng(0).permutation(M.shape[0])
        widths.append(bordered._in_band(M.tocsc()[shuffled][:, shuffled].tocsc())[1])
    assert max(widths) <= 18


def test_densities_are_those_of_the_multipliers():
    """What a limit pushes with, in all, is the same on any mesh; on the same mesh nothing changes at all."""
    panda = ld.load("panda")
    speed = ld.PathFunction(lambda t, q, v, u: v @ v, lambda t, q, v, u: (0.0 * v, 2.0 * v, 0.0 * u), high=100.0)
    made = [program(panda, panda.home, panda.home + 0.1, "collocation", points, path=speed)[0] for points in (3, 4)]
    rng = np.random.default_rng(0)
    of_c, of_z = rng.normal(size=len(made[0].labels)), rng.normal(size=len(made[0].scale))
    of_c[made[0].c_low == made[0].c_high] = 0.0
    found = densities_of(made[0], of_c, of_z)
    assert all(off(x, y) < 1e-14 for x, y in zip((of_c, of_z), multipliers_of(made[0], found)))
    straight = {name: (part, 1.0 + 2.0 * part) for name, (part, _) in found.items()}
    sums = [(of_c.sum(), of_z.sum()) for of_c, of_z in (multipliers_of(each, straight) for each in made)]
    assert sums[0][0] > 0.0 and off(sums[0], sums[1]) < 1e-12 * max(sums[0])


def test_carried_multipliers_save_iterations_on_finer_meshes():
    loader = ld.load("loader")
    goal = ld.close(loader, loader.home, boom=0.35, bucket=-0.3)
    limited = dict(duration=2.0, bounds={"velocity:lift_rod": (-0.3, 0.3)}, progress=False)
    fine = ld.optimize_motion(loader, loader.home, goal, **limited)
    assert fine.outcome == "converged"
    assert fine.iterations < 70  # 52 on five meshes when this was written, 84 where each began without multipliers


def test_solutions_are_minima():
    # through the singularity of the five-bar there is a saddle of the Lagrangian, with six times the cost
    b, below = ld.Builder("five_bar", gravity=(0, -9.81, 0)), "ground"
    for k in range(1, 5):
        b.body(f"link{k}", mass=1.0, com=(0.5, 0, 0), inertia=(0, 1 / 12, 1 / 12))
        b.joint(f"q{k}", "revolute", below, f"link{k}", placement=(float(k > 1), 0, 0), axis=(0, 0, 1))
        below = f"link{k}"
    b.loop("pin", "revolute", "ground", "link4", parent_placement=(1, 0, 0), child_placement=(1, 0, 0))
    b.actuator("left", "q1")
    b.actuator("right", "pin")
    arm, crank = b.build(), np.radians(100)
    outer = np.arccos(0.5 - np.cos(crank))
    up, down = (ld.close(arm, np.diff([0, crank, s * outer, -s * outer, -crank])) for s in (1, -1))
    motion = ld.optimize_motion(arm, up, down, duration=1.5, intervals=12, cost={"effort": 1.0, "velocity": 0.1},
                                tolerance=1e-3)
    assert motion.cost == pytest.approx(114.36, rel=1e-3) and motion.iterations < 150


def test_definite_or_not():
    A = np.random.default_rng(0).normal(size=(30, 30))
    assert is_positive(csc_matrix(A @ A.T + 1e-6 * np.eye(30)))
    assert not is_positive(csc_matrix(A @ A.T - 1e-1 * np.eye(30)))
    assert not is_positive(csc_matrix(np.array([[0.0, 1.0], [1.0, 0.0]])))


def test_settings_are_checked():
    with pytest.raises(InputError, match=r"unknown option 'mue'.*did you mean 'mu'"):
        ld.optimize_motion(cart_pole(), [0, 0], [1, 0], duration=1.0, solver=ld.NLPSolver(settings={"mue": 1.0}))
    with pytest.raises(InputError, match=r"settings\['mu'\]"):
        ld.optimize_motion(cart_pole(), [0, 0], [1, 0], duration=1.0, solver=ld.NLPSolver(settings={"mu": -1.0}))
