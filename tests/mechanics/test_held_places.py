"""Whoever holds a coordinate by name holds its place in q: of free joints the position in the parent's frame, however
the body is turned."""
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.look.viewer.posture import Posture
from liedyn.machine.errors import InputError
from liedyn.tasks.planning.objective import add_place_rate

SIDE = 0.4  # [rad] how the joints' frames are turned on their parents


def frame(position, turn):
    """A pose from a position and a rotation vector."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_rotvec(turn).as_matrix(), position
    return T


def pair():
    """A body free on the ground, another one free on it; a ball between the second and a mast, a bar to the first."""
    b = ld.Builder("pair")
    b.body("hull", 2.0, (0.1, 0.0, 0.2), (0.3, 0.4, 0.5))
    b.body("arm", 1.0, (0.0, 0.1, 0.0), (0.1, 0.1, 0.1))
    turned = frame((0.1, -0.2, 0.3), (SIDE, 0.3, -0.2))
    b.joint("base", "free", "ground", "hull", placement=turned)
    b.joint("shoulder", "free", "hull", "arm", placement=turned)
    b.loop("mast", "spherical", "ground", "arm", parent_placement=(0.5, 0.5, 1.0), child_placement=(0.0, 0.0, 0.6))
    b.constraint("bar", "distance", "ground", "hull", parent_placement=(-1.0, 0.0, 0.0), length=1.5)
    return b.build()


def coaster():
    """A body with one point on a tilted floor, hung on a spring."""
    b = ld.Builder("coaster")
    b.body("cup", 1.5, (0.05, 0.0, 0.1), (0.2, 0.3, 0.25))
    b.joint("base", "free", "ground", "cup", placement=frame((0.0, 0.1, 0.0), (0.2, -SIDE, 0.1)))
    b.constraint("floor", "on_plane", "ground", "cup", parent_placement=frame((0.0, 0.0, 0.0), (0.1, 0.2, 0.0)),
                 child_placement=(0.2, -0.1, -0.3))
    b.spring("spring", "ground", "cup", (0.2, 0.3, 2.0), (0.1, 0.0, 0.4), length=0.6, stiffness=80.0, damping=1.0)
    return b.build()


PAIR, COASTER = pair(), coaster()


def somewhere(robot, rng, count=None):
    """Closed configurations, turned at random."""
    q = ld.random_configuration(robot, rng, () if count is None else count)
    return ld.close(robot, q)


def places(robot, names):
    return [robot.coordinate_index(name) for name in names]


@pytest.mark.parametrize("names", [("base.x",), ("base.y", "base.z"), ("shoulder.x", "base.z"),
                                   ("base.x", "shoulder.y")])
def test_close_holds_positions_of_free_joints(names):
    rng = np.random.default_rng(3)
    q, at = somewhere(PAIR, rng, 40), places(PAIR, names)
    wanted = ld.close(PAIR, ld.integrate(PAIR, q, 0.1 * rng.normal(size=(40, PAIR.nv))))[:, at]  # which can be reached
    found = ld.close(PAIR, q, {name: x for name, x in zip(names, wanted.T)})
    assert np.array_equal(found[:, at], wanted)  # what is held is put there, not searched
    assert abs(ld.closure_error(PAIR, found)).max() < 1e-12


def test_what_is_closed_and_held_where_it_is_stays():
    q = somewhere(PAIR, np.random.default_rng(4), 10)
    names = ("base.x", "base.y", "shoulder.z")
    found = ld.close(PAIR, q, {name: q[:, k] for name, k in zip(names, places(PAIR, names))})
    assert abs(found - q).max() < 1e-10  # the rest of q is closed to 1e-12 at least, by steps a few times as long


def test_a_whole_joint_and_a_position_of_another_one_are_held_together():
    q = somewhere(PAIR, np.random.default_rng(5))
    k = PAIR.coordinate_index("shoulder.x")
    wanted = ld.close(PAIR, ld.integrate(PAIR, q, [0.0] * 6 + [0.1] * 6), {"base": q[:7]})[k]
    found = ld.close(PAIR, q, {"base": q[:7], "shoulder.x": wanted})
    assert abs(found[:4] - q[:4]).max() < 1e-15 and np.array_equal(found[4:7], q[4:7])  # quaternions are normalised
    assert found[k] == wanted
    with pytest.raises(InputError, match="'base.ry' is a component of a rotation, which is held whole"):
        ld.close(PAIR, q, {"base.ry": 0.1})


def test_inverse_kinematics_holds_positions_of_free_joints():
    rng = np.random.default_rng(6)
    q, at = somewhere(COASTER, rng, 20), places(COASTER, ["base.x", "base.y"])
    way = rng.normal(size=(20, 3))
    found = ld.inverse_kinematics(COASTER, ld.DirectionTarget("cup", (0.0, 0.0, 1.0), way), q0=q, posture=q,
                                  hold=["base.x", "base.y"], unreached="ignore")
    assert found.reached.mean() > 0.5  # the height of the point on the floor stands against some
    assert np.array_equal(found.q[:, at], q[:, at]) and abs(ld.closure_error(COASTER, found.q)).max() < 1e-12


def test_inverse_kinematics_holds_where_it_has_to_close_the_start():
    q = somewhere(PAIR, np.random.default_rng(7))
    q[PAIR.coordinate_index("shoulder.z")] += 1.5  # far from closed
    found = ld.inverse_kinematics(PAIR, ld.DirectionTarget("hull", (1.0, 0.0, 0.0), (0.0, 0.6, 0.8)), q0=q,
                                  hold=["base.x"], unreached="ignore")
    assert found.q[4] == q[4] and abs(ld.closure_error(PAIR, found.q)).max() < 1e-12


def test_a_rotation_is_held_whole():
    q = somewhere(COASTER, np.random.default_rng(8))
    target = ld.PointTarget("cup", ld.pose(COASTER, q, "cup")[:3, 3] + (0.1, 0.0, 0.0), weight=(1.0, 0.0, 0.0))
    found = ld.inverse_kinematics(COASTER, target, q0=q, hold=["base.rx", "base.ry", "base.rz"])
    assert abs(ld.pose(COASTER, found.q, "cup")[:3, :3] - ld.pose(COASTER, q, "cup")[:3, :3]).max() < 1e-14
    with pytest.raises(InputError, match="cannot hold 'base.rz', a component of a rotation, which is held whole"):
        ld.inverse_kinematics(COASTER, target, q0=q, hold=["base.rz"])


@pytest.mark.parametrize("hold", [["base.x"], ["base.y", "base.z"], ["base.x", "base.y", "base.z"]])
def test_velocities_leave_positions_that_are_held(hold):
    rng = np.random.default_rng(9)
    q = somewhere(COASTER, rng, 10)
    target = ld.DirectionTarget("cup", (0.0, 0.0, 1.0), (0.6, 0.0, 0.8))
    v = ld.differential_inverse_kinematics(COASTER, q, target, 0.01, rate=1.0, hold=hold)
    R = ld.pose(COASTER, q, "cup")[:, :3, :3]
    joint = frame((0.0, 0.0, 0.0), (0.2, -SIDE, 0.1))[:3, :3]
    rate = np.einsum("ji,bjk,bk->bi", joint, R, v[:, 3:])  # of the position, along the axes of the joint on the ground
    assert abs(rate[:, ["xyz".index(name[-1]) for name in hold]]).max() < 1e-10 * abs(v).max()
    assert abs(v[:, :3]).max() > 1e-3


def test_trim_holds_positions_of_free_joints():
    q = somewhere(COASTER, np.random.default_rng(10))
    at, forces = places(COASTER, ["base.x", "base.z"]), [f"force:{name}" for name in COASTER.velocity_names]
    hold = {"base.x": q[at[0]] + 0.05, "base.z": q[at[1]] - 0.04}
    found = ld.trim(COASTER, q, hold=hold, free=["base.x", "base.z", *forces])
    assert abs(found.q[at] - list(hold.values())).max() < 1e-12
    assert abs(ld.forward_dynamics(COASTER, found.q, found.v, found.tau).a).max() < 1e-8


def test_branches_over_a_position_of_a_free_joint():
    """The parameter of the branch is the place, whose rate is no velocity of the body; what is not free stays."""
    q = somewhere(COASTER, np.random.default_rng(11))
    k, forces = COASTER.coordinate_index("base.y"), [f"force:{name}" for name in COASTER.velocity_names[:5]]
    start = ld.trim(COASTER, q, free=forces)
    low = start.q[k] - 0.05
    branch = ld.continuation(COASTER, start, "base.y", (low, start.q[k] + 0.2), free=forces, hold=["base.x"])
    assert branch.ended == "span" and np.array_equal(branch.q[:, k], branch.parameter)
    assert np.ptp(branch.parameter) > 0.19 and np.ptp(branch.q[:, COASTER.coordinate_index("base.x")]) < 1e-12
    tau = branch.u
    assert abs(ld.forward_dynamics(COASTER, branch.q, branch.v, tau).a).max() < 1e-6


def test_limits_of_plans_know_the_rate_of_a_position():
    rng = np.random.default_rng(12)
    q, step = ld.random_configuration(PAIR, rng), 1e-6
    for name in ("base.x", "shoulder.y", "shoulder.z"):
        k, j = PAIR.coordinate_index(name), PAIR.velocity_index(name)
        g = np.zeros(PAIR.nv)
        add_place_rate(k, "xyz".index(name[-1]), j, q, np.eye(PAIR.nv), g)
        there, back = (ld.integrate(PAIR, np.tile(q, (PAIR.nv, 1)), sign * step * np.eye(PAIR.nv)) for sign in (1, -1))
        assert abs((there - back)[:, k] / (2.0 * step) - g).max() < 1e-9  # rounding of the differences


def test_sliders_move_places():
    posture = Posture(COASTER, somewhere(COASTER, np.random.default_rng(13)))
    for name in [each for each in posture.names if each in COASTER.coordinate_names]:
        others = [each for each in posture.names if each in COASTER.coordinate_names and each != name]
        before, goal = posture.q.copy(), posture.value(name) + 0.1
        assert posture.move(name, goal), posture.message
        assert posture.value(name) == goal and np.array_equal(posture.q[places(COASTER, others)],
                                                              before[places(COASTER, others)])
        assert abs(ld.closure_error(COASTER, posture.q)).max() < 1e-12


def test_positions_of_free_joints_are_no_signals():
    t = np.linspace(0.0, 1.0, 40)
    with pytest.raises(InputError, match="no coordinate 'base.x' that turns or slides"):
        ld.measured_motion(COASTER, {"base.x": 0.1 * np.sin(t)}, 0.025)
