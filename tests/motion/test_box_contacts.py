"""Points and spheres against boxes: never inside, faces with friction, edges and corners that spheres roll over."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.machine.errors import ModelError

G = 9.81


def ball(*boxes, radius=0.05, friction=0.0, restitution=0.0, gravity=G):
    """A ball and boxes: (name, body, placement, size)."""
    b = ld.Builder("ball", gravity=(0.0, 0.0, -gravity))
    b.body("ball", 1.0, inertia=[0.4 * 0.05 ** 2] * 3)
    b.joint("free", "free", "ground", "ball", driven=False)
    b.shape("skin", "ball", "sphere", size=radius, role="collision")
    for name, body, place, size in boxes:
        b.shape(name, body, "box", place, size=size, role="collision")
    b.box_contacts([name for name, *_ in boxes], friction=friction, restitution=restitution, bodies=["ball"])
    return b.build()


def distance(q, place, size):
    """Of the ball's centre from a box."""
    local = (q[..., 4:7] - place[:3, 3]) @ place[:3, :3]
    return np.linalg.norm(np.maximum(np.abs(local) - 0.5 * np.array(size), 0.0), axis=-1)


def at(x, y, z):
    return np.array([0.0, 0.0, 0.0, 1.0, x, y, z])


def test_a_ball_slides_slowly_over_the_edge():
    """It leaves the edge where its weight no longer presses: cos(angle) = 2/3 + v^2 / (3 g r), as off a cylinder."""
    table, r, v0 = ld.placement((0.0, 0.0, -0.1)), 0.05, 0.1
    robot = ball(("table", "ground", table, (1.0, 1.0, 0.2)))
    tr = ld.simulate(robot, at(0.48, 0.0, r), [0, 0, 0, v0, 0, 0], 0.6, dt=5e-4, progress=False)
    names = [event.name for event in tr.events]
    leave = next(event for event in tr.events if event.name == "release skin on table +x +z")
    assert names.index("skin on table +z ends") < names.index(leave.name)
    assert (leave.q_before[6] / r) == pytest.approx(2.0 / 3.0 + v0**2 / (3.0 * G * r), abs=1e-6)
    assert np.ptp(tr.energy) < 1e-7
    assert distance(tr.q, table, (1.0, 1.0, 0.2)).min() > r - 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_thrown_balls_never_enter(seed):
    """From all sides onto a box turned in space: faces, edges, corners."""
    rng = np.random.default_rng(seed)
    place = ld.placement((0.1, -0.2, 0.3), rpy=rng.uniform(-1, 1, 3))
    size = (0.5, 0.3, 0.2)
    robot = ball(("crate", "ground", place, size), restitution=0.3, gravity=0.5)
    for _ in range(3):
        start = place[:3, 3] + (d := rng.normal(size=3)) / np.linalg.norm(d) * 0.8
        aim = place[:3, 3] + rng.uniform(-0.15, 0.15, 3)
        v = 3.0 * (aim - start) / np.linalg.norm(aim - start)
        tr = ld.simulate(robot, at(*start), [0, 0, 0, *v], 0.6, dt=1e-3, progress=False)
        assert any("contact" in event.name for event in tr.events)
        assert distance(tr.q, place, size).min() > 0.05 - 1e-8
        assert (np.diff(tr.energy) < 1e-9).all()


def test_a_point_meets_faces_only_and_passes_beside():
    b = ld.Builder("point")
    b.body("mote", mass=0.1)
    b.joint("motion", "translational", "ground", "mote", driven=False)
    b.shape("tip", "mote", "sphere", size=0.0)
    b.shape("shelf", "ground", "box", (0.0, 0.0, 1.0), size=(0.4, 0.4, 0.1))
    b.box_contacts(["shelf"], friction=0.5)
    robot = b.build()
    assert len(robot.constraint_names) == 6
    on, beside = (ld.simulate(robot, [x, 0, 1.5], np.zeros(3), 0.6, dt=1e-3, progress=False) for x in (0.19, 0.21))
    assert on.q[-1, 2] == pytest.approx(1.05, abs=1e-9)
    assert beside.q[-1, 2] == pytest.approx(1.5 - 0.18 * G, abs=1e-6)
    side = ld.simulate(robot, [1.0, 0, 1.0], [-3.0, 0, 1.3], 0.4, dt=1e-3, progress=False)
    assert side.q[:, 0].min() == pytest.approx(0.2, abs=1e-9)


def test_boxes_on_bodies_that_move_and_of_files(tmp_path):
    """A ball on a tray that a slider carries: it is taken along by friction; the box comes from the file."""
    path = tmp_path / "tray.urdf"
    path.write_text("""<robot name="tray"><link name="rail"/><link name="tray"><inertial><mass value="2"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
      <collision name="plate"><origin xyz="0 0 -0.01"/><geometry><box size="0.6 0.4 0.02"/></geometry></collision>
      </link>
      <link name="ball"><inertial><mass value="0.1"/><inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0"
      izz="0.001"/></inertial><collision name="skin"><geometry><sphere radius="0.05"/></geometry></collision></link>
      <joint name="slide" type="prismatic"><parent link="rail"/><child link="tray"/><axis xyz="1 0 0"/>
      <limit lower="-9" upper="9" effort="99" velocity="9"/></joint>
      <joint name="free" type="floating"><parent link="rail"/><child link="ball"/></joint></robot>""")
    robot = ld.load(path)
    shapes = {each.body: each.name for each in robot.model.shapes if each.role == "collision"}
    b = ld.Builder.of(robot)
    b.box_contacts([shapes["tray"]], bodies=["ball"], friction=0.5)
    robot = b.build()
    q = robot.home.copy()
    q[robot.coordinate_index("free.z")] = 0.05
    tau = np.zeros(robot.nv)
    tau[robot.velocity_index("slide")] = 2.0
    found = ld.forward_dynamics(robot, q, np.zeros(robot.nv), tau)
    place = robot.velocity_index("free.x")
    # rolling: the ball's centre follows by 1 / (1 + m r^2 / J) of the tray's acceleration
    tray = found.a[robot.velocity_index("slide")]
    assert found.a[place] == pytest.approx(tray * 0.001 / (0.001 + 0.1 * 0.05**2), rel=1e-9)
    assert sum(mode == "sticking" for mode in found.contacts.values()) == 1


def test_what_is_refused():
    b = ld.Builder("ball")
    b.body("ball", 1.0, inertia=[0.001] * 3)
    b.joint("free", "free", "ground", "ball")
    b.shape("skin", "ball", "sphere", size=0.1)
    b.shape("post", "ground", "cylinder", size=(0.1, 1.0))
    b.shape("table", "ground", "box", size=(1.0, 1.0, 0.1))
    for boxes, more, said in ((["post"], {}, "is a cylinder, not a box"), (["tabel"], {}, "did you mean 'table'"),
                              (["table"], {"bodies": ["ball"], "shapes": ["skin"]}, "bodies or shapes, not both"),
                              ("table", {}, "boxes")):
        with pytest.raises(ModelError, match=said):
            b.box_contacts(boxes, **more)
    with pytest.raises(ModelError, match="extent: expected the positive length of a cylinder"):
        b.constraint("edge", "on_cylinder", "ground", "ball", radius=0.1, unilateral=True, extent=(1.0, 2.0))
