"""Equilibria on contacts: what carries the weight, what lets go, what slips; and batches in which some states fail."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.machine.errors import ClosureError, InputError

G = 9.81
FEET = "FL", "FR", "HL", "HR"


def solo(friction=0.7):
    """solo12 with a contact at each foot, which stands on the floor."""
    b = ld.Builder.of(ld.load("solo12"))
    for foot in FEET:
        b.constraint(foot, "on_plane", "ground", f"{foot}_FOOT", unilateral=True, friction=friction)
    robot = b.build()
    q = ld.close(robot.switched(dict.fromkeys(FEET, "sticking")), robot.home)
    return robot, q


def test_solo_stands():
    robot, q = solo()
    found = ld.trim(robot, q, free=robot.actuator_names)
    assert found.contacts == dict.fromkeys(FEET, "sticking") and np.allclose(found.q, q, rtol=0.0, atol=1e-12)
    push = np.array([found.contact_wrenches[foot][3:] for foot in FEET])
    assert push.sum(axis=0) == pytest.approx([0.0, 0.0, ld.total_mass(robot) * G], rel=1e-9, abs=1e-9)
    r = ld.forward_dynamics(robot, found.q, found.v, found.tau)
    assert np.abs(r.a).max() < 1e-8 and r.contacts == found.contacts
    assert found.robot.contacts == robot.contacts
    with pytest.raises(ld.TrimError, match="still accelerates"):
        ld.trim(robot, q, free=["FL_KFE"])


def leaning(friction):
    """A uniform ladder of 2 m and 5 kg at a smooth wall x = 0, on a floor z = 0 with friction."""
    b = ld.Builder("ladder", gravity=(0.0, 0.0, -G))
    for name in ("across", "up"):
        b.body(name)
    b.body("ladder", 5.0, (0.0, 0.0, 0.0), (0.0, 5.0 / 3.0, 5.0 / 3.0))
    b.joint("x", "prismatic", "ground", "across", axis=(1, 0, 0))
    b.joint("z", "prismatic", "across", "up", axis=(0, 0, 1))
    b.joint("tilt", "revolute", "up", "ladder", axis=(0, -1, 0))
    b.constraint("floor", "on_plane", "ground", "ladder", child_placement=(1.0, 0.0, 0.0), axis=(0, 0, 1),
                 unilateral=True, friction=friction)
    b.constraint("wall", "on_plane", "ground", "ladder", child_placement=(-1.0, 0.0, 0.0), axis=(1, 0, 0),
                 unilateral=True)
    robot = b.build()

    def placed(angle):
        """With its foot at the right, and this angle with the floor; its x axis points down to the foot."""
        return np.array([np.cos(angle), np.sin(angle), -angle])

    return robot, placed


def test_a_ladder_stands_or_slips():
    """A smooth wall pushes with m g / (2 tan a), which the floor must hold: it stands where tan a > 1 / (2 mu)."""
    robot, placed = leaning(0.5)
    angle = np.radians(50.0)
    found = ld.trim(robot, placed(angle))
    assert found.contacts == {"floor": "sticking", "wall": "sliding"}
    wall = 5.0 * G / (2.0 * np.tan(angle))
    assert found.contact_wrenches["wall"][3:] == pytest.approx([wall, 0.0, 0.0], abs=1e-9)
    assert found.contact_wrenches["floor"][3:] == pytest.approx([-wall, 0.0, 5.0 * G], abs=1e-9)
    with pytest.raises(ld.TrimError, match="contact 'floor' slips") as info:
        ld.trim(robot, placed(np.radians(40.0)))
    assert not info.value.nearest.reached
    both = np.stack([placed(np.radians(each)) for each in (40.0, 50.0, 60.0)])
    with pytest.raises(ld.TrimError, match="slips.* of the batch.*; 2 of 3 states were reached") as info:
        ld.trim(robot, both)
    assert info.value.nearest.reached.tolist() == [False, True, True]
    assert info.value.nearest.contacts["floor"][1:].tolist() == ["sticking", "sticking"]
    assert np.allclose(info.value.nearest.q[1:], both[1:])


def test_a_contact_that_would_pull_lets_go():
    """A block on a spring that is stretched at the floor: it comes to hang."""
    b = ld.Builder("block", gravity=(0.0, 0.0, -G))
    b.body("block", 2.0)
    b.joint("z", "prismatic", "ground", "block", axis=(0, 0, 1), stiffness=100.0, rest=0.5)
    b.constraint("floor", "on_plane", "ground", "block", unilateral=True)
    robot = b.build()
    found = ld.trim(robot, [0.0])
    assert found.q[0] == pytest.approx(0.5 - 2.0 * G / 100.0, rel=1e-9) and found.contacts == {"floor": "open"}
    held = ld.trim(robot, [0.0], hold={"rest:z": 0.1})
    assert held.q[0] == pytest.approx(0.0, abs=1e-12)
    assert held.contact_wrenches["floor"][5] == pytest.approx(2.0 * G - 10.0, rel=1e-9)
    # let go, it would fall through the floor: it comes to lie there
    lowered = ld.trim(robot, [0.2], hold={"rest:z": 0.1})
    assert lowered.contacts == {"floor": "sliding"} and lowered.q[0] == pytest.approx(0.0, abs=1e-12)


def test_a_guess_that_slips():
    robot, placed = leaning(0.5)
    with pytest.raises(InputError, match="contact 'floor' slips at this guess"):
        ld.trim(robot, placed(1.0), [1.0, 0.0, 0.0])


def test_batches_keep_what_was_reached():
    """A motor within its bounds holds the first and the last of three angles."""
    b = ld.Builder("rod", gravity=(0.0, -G, 0.0))
    b.body("rod", 2.0, (0.5, 0.0, 0.0))
    b.joint("pivot", "revolute", "ground", "rod")
    b.actuator("motor", "pivot")
    robot, x = b.build(), np.array([1.2, 0.1, 1.4])
    with pytest.raises(ld.TrimError, match=r"pivot still .*\(state 1 of the batch\); 2 of 3 states") as info:
        ld.trim(robot, x[:, None], free=["motor"], bounds={"motor": (0.0, 5.0)})
    nearest = info.value.nearest
    assert nearest.reached.tolist() == [True, False, True]
    assert nearest.u[[0, 2], 0] == pytest.approx(G * np.cos(x[[0, 2]]), rel=1e-9)
    assert nearest.u[1, 0] == pytest.approx(5.0, rel=1e-6)


def test_states_that_have_no_place_are_nan():
    """A bead on a circle of 1 m cannot be 3 m to the right."""
    bead = ld.load("cartesian_pendulum")
    x, *_ = bead.coordinate_names
    with pytest.raises(ld.TrimError, match="state 1 of the batch.* 2 of 3 states were reached") as info:
        ld.trim(bead, bead.home, hold={x: np.array([0.3, 3.0, 0.6])}, free=[f"force:{x}"])
    assert isinstance(info.value.__cause__, ClosureError)
    assert np.isnan(info.value.nearest.q[1]).all() and info.value.nearest.reached.tolist() == [True, False, True]
    assert np.isfinite(info.value.nearest.tau[[0, 2]]).all()


def test_a_crate_on_a_slope():
    """Contacts of its shape: all four corners below carry up to tan(slope) = 0.5, and it slips on a steeper one."""
    b = ld.Builder("crate")
    b.body("box", 2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("free", "free", "ground", "box")
    b.shape("hull", "box", "box", size=(0.4, 0.4, 0.2), role="collision")
    b.ground_contacts(friction=0.5)
    for slope in (0.4, 0.5):
        g = np.array([G * np.sin(slope), 0.0, -G * np.cos(slope)])
        b.change("robot", gravity=g)
        if np.tan(slope) > 0.5:
            with pytest.raises(ld.TrimError, match="contact 'hull corner .' slips"):
                ld.trim(b.build(), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.1])
            continue
        found = ld.trim(b.build(), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.1003])  # 0.3 mm above
        assert found.q[6] == pytest.approx(0.1, abs=1e-12) and list(found.contacts.values()).count("sticking") == 4
        assert sum(F[3:] for F in found.contact_wrenches.values()) == pytest.approx(-2.0 * g, rel=1e-9, abs=1e-9)
