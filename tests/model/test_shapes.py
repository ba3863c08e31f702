"""Shapes of robot files: read, drawn where they are, written, carried along, and made contacts with the ground."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.machine.errors import ModelError

CUBE = "\n".join([*(f"v {x} {y} {z}" for x in (0.1, 0.3) for y in (0.0, 0.2) for z in (-0.1, 0.4)),
                  "f 1 2 4 3", "f 5 7 8 6", "f 1 5 6 2", "f 3 4 8 7", "f 1 3 7 5", "f 2 6 8 4"])
URDF = """<robot name="r">
  <material name="red"><color rgba="1 0 0 0.5"/></material>
  <link name="base"/>
  <link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual name="skin"><origin xyz="0.1 0 0" rpy="0 0 1.5"/><geometry><box size="0.1 0.2 0.3"/></geometry>
      <material name="red"/></visual>
    <visual><geometry><mesh filename="package://robots_of_mine/meshes/cube.obj" scale="2 2 2"/></geometry></visual>
    <collision><geometry><cylinder radius="0.1" length="0.5"/></geometry></collision>
    <collision><geometry><sphere radius="0.2"/></geometry></collision></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""
SDF = """<sdf version="1.9"><model name="m"><link name="arm">
  <inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>
  <visual name="v"><pose>0 0 0.5 0 0 0</pose>
    <geometry><capsule><radius>0.1</radius><length>0.4</length></capsule></geometry>
    <material><diffuse>0 0 1</diffuse></material></visual>
  <collision name="c"><geometry><ellipsoid><radii>0.1 0.2 0.3</radii></ellipsoid></geometry></collision>
  <collision name="floor"><geometry><plane><normal>0 1 0</normal></plane></geometry></collision>
</link></model></sdf>"""
MJCF = """<mujoco><asset><mesh name="cube" file="cube.obj" scale="2 1 1"/><material name="blue" rgba="0 0 1 1"/></asset>
  <worldbody><geom type="plane" size="1 1 1"/>
    <body name="arm" pos="0 0 1"><joint axis="0 1 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <frame pos="0.1 0 0" euler="0 0 30"><geom name="skin" type="mesh" mesh="cube" pos="0 0.2 0" euler="10 20 0"
        material="blue" contype="0" conaffinity="0"/></frame>
      <geom name="bar" type="capsule" fromto="0 0 0 0 0 -0.4" size="0.02"/></body>
    <body name="block"><freejoint/><geom name="solid" type="mesh" mesh="cube" pos="0.3 0 0"/></body>
  </worldbody></mujoco>"""


@pytest.fixture
def files(tmp_path):
    """A robot file of each format, with a mesh where each looks for it."""
    package = tmp_path / "robots_of_mine"
    (package / "meshes").mkdir(parents=True)
    (package / "meshes" / "cube.obj").write_text(CUBE)
    (package / "cube.obj").write_text(CUBE)
    for name, text in (("r.urdf", URDF), ("r.sdf", SDF), ("r.xml", MJCF)):
        (package / name).write_text(text)
    return package


def shapes_of(robot):
    return {shape.name: shape for shape in robot.model.shapes}


def test_urdf(files):
    found = shapes_of(ld.load(files / "r.urdf"))
    skin, mesh = found["skin"], found["arm visual"]
    assert (skin.kind, skin.size, skin.color, skin.role) == ("box", (0.1, 0.2, 0.3), (1.0, 0.0, 0.0, 0.5), "visual")
    assert skin.placement[0, 3] == 0.1 and np.isclose(skin.placement[1, 0], np.sin(1.5))
    assert mesh.mesh == str(files / "meshes" / "cube.obj") and mesh.scale == (2.0, 2.0, 2.0)
    assert (found["arm collision"].size, found["arm collision 2"].size) == ((0.1, 0.5), (0.2,))


def test_sdf(files):
    found = shapes_of(ld.load(files / "r.sdf"))
    assert (found["arm v"].size, found["arm v"].color) == ((0.1, 0.4), (0.0, 0.0, 1.0, 1.0))
    assert found["arm v"].placement[2, 3] == 0.5 and found["arm c"].size == (0.1, 0.2, 0.3)
    np.testing.assert_allclose(found["arm floor"].placement[:3, 2], [0.0, 1.0, 0.0], atol=1e-15)


def test_mjcf_meshes_are_where_mujoco_has_them(files):
    """Corners of the file's mesh, placed by the shape, are MuJoCo's own corners in the world; so with an inertia that
    comes from the mesh, and without."""
    mujoco = pytest.importorskip("mujoco")
    robot = ld.load(files / "r.xml")
    model = mujoco.MjModel.from_xml_path(str(files / "r.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    found = shapes_of(robot)
    corners = np.array([line.split()[1:] for line in CUBE.splitlines() if line.startswith("v")], float)
    for name in ("skin", "solid"):
        shape, k = found[name], model.geom(name).id
        first = model.mesh_vertadr[model.geom_dataid[k]]
        theirs = model.mesh_vert[first:first + 8] @ data.geom_xmat[k].reshape(3, 3).T + data.geom_xpos[k]
        at = ld.pose(robot, robot.home, shape.body) @ shape.placement
        ours = (corners * shape.scale) @ at[:3, :3].T + at[:3, 3]
        # MuJoCo keeps corners in single precision
        assert max(np.linalg.norm(theirs - each, axis=1).min() for each in ours) < 1e-6
    assert found["skin"].color == (0.0, 0.0, 1.0, 1.0) and found["skin"].role == "visual"
    assert "bar" in found and found["bar 2"].role == "collision" and np.allclose(found["bar"].size, (0.02, 0.4))
    assert [each.kind for each in found.values() if each.body == "ground"] == ["plane", "plane"]


def test_meshes_may_be_missing(files):
    for path in ((files / "meshes" / "cube.obj"), (files / "cube.obj")):
        path.unlink()
    assert shapes_of(ld.load(files / "r.urdf"))["arm visual"].mesh == "package://robots_of_mine/meshes/cube.obj"
    text = (files / "r.xml").read_text().replace('type="mesh" mesh="cube" pos="0.3 0 0"', 'size="0.1"')
    (files / "r.xml").write_text(text)
    assert shapes_of(ld.load(files / "r.xml"))["skin"].mesh == str(files / "cube.obj")


@pytest.mark.parametrize("name", ["r.urdf", "r.sdf", "r.xml"])
@pytest.mark.parametrize("end", [".toml", ".urdf", ".xml"])
@pytest.mark.filterwarnings("ignore:.*left out:liedyn.ModelWarning")
def test_round_trips(files, name, end):
    robot = ld.load(files / name)
    ld.save(robot, files / f"copy{end}")
    options = {"floating_base": False, "base_name": "first"} if end == ".urdf" else {}
    before, after = shapes_of(robot), shapes_of(ld.load(files / f"copy{end}", **options))
    unknown = {".urdf": ("ellipsoid", "plane"), ".xml": ("plane",) if name == "r.sdf" else ()}.get(end, ())
    assert after.keys() == {key for key, shape in before.items() if shape.kind not in unknown}
    for key, shape in after.items():
        same = before[key]
        assert (shape.kind, shape.body, shape.mesh, shape.role) == (same.kind, same.body, same.mesh, same.role)
        np.testing.assert_allclose(shape.placement, same.placement, atol=1e-12)
        np.testing.assert_allclose(shape.size + shape.scale, same.size + same.scale, rtol=1e-12)


def test_a_shape_that_is_wrong_is_left_out_by_name(files):
    (files / "r.urdf").write_text(URDF.replace('radius="0.2"', 'radius="-0.2"').replace("<box size", "<cube size"))
    with pytest.warns(ld.ModelWarning, match="left out shapes of links: .*no <mesh> in.*must not be neg"):
        found = shapes_of(ld.load(files / "r.urdf"))
    assert set(found) == {"arm visual", "arm collision"}


def test_editing_carries_them(files):
    b = ld.Builder.of(ld.load("panda"))
    b.attach(ld.load(files / "r.urdf"), to="panda_hand", prefix="tool_")
    b.change("shape", "tool_skin", color=(0.0, 1.0, 0.0))
    robot = b.build()
    assert shapes_of(robot)["tool_skin"].body == "tool_arm" and shapes_of(robot)["tool_skin"].color[1] == 1.0
    assert set(shapes_of(ld.reduced(robot, {"tool_j": 0.3}))) == set(shapes_of(robot))
    assert set(shapes_of(ld.subtree(robot, "tool_arm"))) == set(shapes_of(robot))
    b.remove("shape", "tool_skin")
    b.remove("body", "tool_arm")
    assert not shapes_of(b.build())


@pytest.mark.parametrize("given, said", [
    (dict(kind="cone"), "kind: unknown 'cone'"), (dict(kind="box", size=0.1), "size: expected 3 numbers"),
    (dict(kind="sphere", size=-0.1), "size: must not be negative"), (dict(kind="mesh"), "mesh: a mesh has a file"),
    (dict(kind="plane", color=(2.0, 0.0, 0.0)), "color: numbers from 0 to 1"),
    (dict(kind="plane", role="skin"), "role: unknown 'skin'"), (dict(kind="plane", body="leg"), "body: unknown 'leg'")])
def test_refused(given, said):
    b = ld.Builder.of(ld.load("four_bar"))
    with pytest.raises(ModelError, match=f"shape 'it'.*{said}"):
        b.shape("it", **({"body": "crank"} | given))
        b.build()


def test_ground_contacts():
    """A box and a capsule that fall come to rest on the ground: at half a height, at a radius."""
    b = ld.Builder("things")
    for name in ("box", "pill"):
        b.body(name, mass=1.0, inertia=(0.01, 0.01, 0.01))
        b.joint(f"{name}_base", "free", "ground", name)
    b.shape("crate", "box", "box", size=(0.2, 0.2, 0.2), role="collision")
    b.shape("pill", "pill", "capsule", ld.placement(rpy=(0.0, np.pi / 2, 0.0)), size=(0.05, 0.3))
    b.shape("wheel", "pill", "cylinder", size=(0.1, 0.1))
    with pytest.raises(ModelError, match=r"body 'pill': 'wheel .cylinder.': contacts are made of 'sphere'"):
        ld.Builder.of(b.build()).ground_contacts()
    some = ld.Builder.of(b.build())
    some.ground_contacts(shapes=["crate"])
    assert some.build().constraint_names == tuple(f"crate corner {k}" for k in range(1, 9))
    with pytest.raises(ModelError, match="shapes: unknown 'creat', did you mean 'crate'"):
        some.ground_contacts(shapes=["creat"])
    with pytest.raises(ModelError, match="give bodies or shapes, not both"):
        some.ground_contacts(bodies=["box"], shapes=["crate"])
    b.remove("shape", "wheel")
    b.ground_contacts(friction=0.5)
    robot = b.build()
    assert len(robot.constraint_names) == 10 and "crate corner 8" in robot.constraint_names
    q = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.13, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.07]
    tr = ld.simulate(robot, q, [0.0] * 12, t_final=0.4, dt=2e-3, method="moreau", progress=False)
    assert abs(tr.q[-1, 6] - 0.1) < 1e-6 and abs(tr.q[-1, 13] - 0.05) < 1e-6 and np.abs(tr.v[-1]).max() < 1e-8
    with pytest.raises(ModelError, match="bodies: unknown 'crate'"):
        b.ground_contacts(bodies=["crate"])


def test_ground_contacts_need_shapes():
    b = ld.Builder("pair")
    for name in ("bare", "clad"):
        b.body(name, 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
        b.joint(name, "free", "ground", name)
    with pytest.raises(ld.ModelError, match="no body of 'pair' has a shape"):
        b.ground_contacts()
    b.shape("skin", "clad", "sphere", size=0.1)
    with pytest.raises(ld.ModelError, match="body 'bare' has no shapes that could touch.*'clad'"):
        b.ground_contacts(bodies=["bare"])
    b.ground_contacts(bodies=["clad"])
    assert b.build().constraint_names == ("skin",)
