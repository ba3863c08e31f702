"""Surfaces that end: what slides or rolls over an edge falls, what comes from above lands, and what is below passes."""
import numpy as np
import pytest

import liedyn as ld
from liedyn import kernels

G = 9.81
METHODS = [{}, {"method": "moreau"}]


def ball(*surfaces, radius=0.05):
    """A ball and planes: (name, place of frame A, options)."""
    b = ld.Builder("ball")
    b.body("ball", 1.0, inertia=[0.4 * radius ** 2] * 3)
    b.joint("free", "free", "ground", "ball")
    for name, place, options in surfaces:
        b.constraint(name, "sphere_on_plane", "ground", "ball", parent_placement=place, radius=radius,
                     **{"unilateral": True} | options)
    return b.build()


def at(x, z, y=0.0):
    return np.array([0.0, 0.0, 0.0, 1.0, x, y, z])


@pytest.mark.parametrize("options", METHODS, ids=str)
@pytest.mark.parametrize("extent", [(1.0, 0.4), 0.5])
def test_a_ball_slides_off_a_table_and_lands(options, extent):
    """Without friction: the edge is reached after 0.5 m, the floor after a parabola."""
    robot = ball(("table", (0, 0, 0.7), {"extent": extent}), ("floor", (0, 0, 0), {}))
    tr = ld.simulate(robot, at(0.0, 0.75), [0, 0, 0, 1.25, 0, 0], 1.0, dt=1e-3, progress=False, **options)
    [edge] = [event for event in tr.events if event.name == "table ends"]
    assert edge.t == pytest.approx(0.4, abs=1e-9) and edge.q_before[4] == pytest.approx(0.5, abs=1e-9)
    fall = np.sqrt(2.0 * 0.7 / G)
    land = next(event.t for event in tr.events if "contact floor" in event.name)
    assert land == pytest.approx(0.4 + fall, abs=1e-9 if not options else 2e-3)
    # the landing is an impulse step of first order in time-stepping
    assert tr.q[-1, 4] == pytest.approx(1.25, abs=1e-2 if options else 1e-9)
    assert tr.q[-1, 6] == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("options", METHODS, ids=str)
def test_a_ball_rolls_down_stairs(options):
    """No event by hand; energy falls by each impact only."""
    stairs = [(f"step{k}", (0.3 * k, 0, -0.1 * k), {"extent": (0.3, 1.0), "friction": 0.6}) for k in range(4)]
    robot = ball(*stairs)
    tr = ld.simulate(robot, at(0.0, 0.05), [0, 16.0, 0, 0.8, 0, 0], 1.3, dt=1e-3, progress=False, **options)
    assert [event.name for event in tr.events if event.name.endswith("ends")][:2] == ["step0 ends", "step1 ends"]
    touched = {event.name.split()[1] for event in tr.events if event.name.startswith("contact")}
    assert len(touched & {"step1", "step2", "step3"}) >= 2
    assert (np.diff(tr.energy) < 1e-9).all()


def test_tiles_side_by_side_are_one_floor():
    tiles = [(f"tile{k}", (0.2 * k, 0, 0), {"extent": (0.2, 1.0), "friction": 0.5}) for k in range(4)]
    tr = ld.simulate(ball(*tiles), at(0.0, 0.05), [0, 10.0, 0, 0.5, 0, 0], 1.0, dt=1e-3, progress=False)
    assert tr.q[-1, 4] == pytest.approx(0.5, abs=1e-6) and np.abs(tr.q[:, 6] - 0.05).max() < 1e-8


def test_from_below_it_passes_and_from_above_it_lands():
    robot = ball(("shelf", (0, 0, 1.0), {"extent": 0.3, "restitution": 0.5}))
    tr = ld.simulate(robot, at(0.0, 0.5), [0, 0, 0, 0, 0, 5.0], 1.5, dt=1e-3, progress=False)
    assert tr.q[:, 6].max() == pytest.approx(0.5 + 12.5 / G, abs=1e-6)
    hit = next(event for event in tr.events if event.name == "contact shelf")
    assert hit.v_after[5] == pytest.approx(-0.5 * hit.v_before[5], rel=1e-9) and hit.v_after[5] > 0.4
    assert tr.q[-1, 6] > 1.05 - 1e-9
    beside = ld.simulate(robot, at(0.4, 1.5), np.zeros(6), 0.5, dt=1e-3, progress=False)
    assert beside.q[-1, 6] == pytest.approx(1.5 - 0.125 * G, abs=1e-6)


def test_states_beyond_the_edge_are_open():
    robot = ball(("table", (0, 0, 0), {"extent": (1.0, 1.0)}))
    inside, outside = (ld.forward_dynamics(robot, at(x, 0.05), np.zeros(6), np.zeros(6)) for x in (0.49, 0.51))
    assert inside.a[5] == pytest.approx(0.0, abs=1e-12) and outside.a[5] == pytest.approx(-G)
    assert outside.contacts == {"table": "open"}


def test_extents_in_files_and_errors(tmp_path):
    robot = ball(("table", (0, 0, 0), {"extent": (1.0, 0.5)}), ("disk", (0, 0, 0), {"extent": 0.2}))
    ld.save(robot, tmp_path / "ball.toml")
    again = ld.load(tmp_path / "ball.toml")
    assert [each.extent for each in again.model.constraints] == [(1.0, 0.5), (0.2,)]
    with pytest.raises(ld.InputError, match="'table', 'disk'"):
        kernels.stepping(robot, method="moreau")
    for options, words in (({"extent": -1.0}, "positive"), ({"extent": (1, 2, 3)}, "radius"),
                           ({"extent": 1.0, "unilateral": False}, "unilateral"),
                           ({"extent": (1.0, 1.0), "axis": (0, 1, 1)}, "rectangle")):
        with pytest.raises(ld.ModelError, match=words):
            ball(("table", (0, 0, 0), options))


def test_steps_see_edges():
    """Off the table and down to the floor, on stairs, by a `Stepper` and by steps without memory."""
    robot = ball(("table", (0, 0, 0.7), {"extent": (1.0, 0.4)}), ("floor", (0, 0, 0), {}))
    stepper = ld.Stepper(robot, at(0.0, 0.75), [0, 0, 0, 1.25, 0, 0], dt=1e-3, method="moreau")
    stepper.advance(399)
    assert stepper.q[6] == pytest.approx(0.75, abs=1e-9) and stepper.q[4] < 0.5
    stepper.advance(301)
    assert stepper.q[6] == pytest.approx(0.75 - 0.5 * G * 0.3**2, abs=5e-3)
    assert stepper.active == ("table", "floor")
    stepper.advance(300)
    assert stepper.q[6] == pytest.approx(0.05, abs=1e-6) and stepper.q[4] == pytest.approx(1.25, abs=1e-2)
    stepper.reset(at(0.0, 0.4), np.zeros(6))  # below the table, and thrown up through it
    stepper.reset(v=[0, 0, 0, 0, 0, 4.0])
    stepper.advance(500)
    assert stepper.q[6] == pytest.approx(0.4 + 2.0 - 0.5 * G * 0.25, abs=1e-6)
    stepper.advance(1000)
    assert stepper.q[6] == pytest.approx(0.75, abs=1e-6)
    stepper.switch("table", False)  # from outside it stays off
    stepper.advance(1000)
    assert stepper.q[6] == pytest.approx(0.05, abs=1e-6) and stepper.active == ("floor",)
    q, v = at(0.0, 0.75), np.array([0, 0, 0, 1.25, 0, 0])
    for _ in range(1000):
        q, v = ld.step(robot, q, v, np.zeros(6), dt=1e-3, method="moreau")
    assert q[6] == pytest.approx(0.05, abs=1e-6) and q[4] == pytest.approx(1.25, abs=1e-2)


def test_steps_down_stairs():
    stairs = [(f"step{k}", (0.3 * k, 0, -0.1 * k), {"extent": (0.3, 1.0), "friction": 0.6}) for k in range(4)]
    robot = ball(*stairs)
    stepper, heights = ld.Stepper(robot, at(0.0, 0.05), [0, 16.0, 0, 0.8, 0, 0], dt=1e-3, method="moreau"), []
    for _ in range(1300):
        stepper.step()
        x, z = stepper.q[[4, 6]]
        k = int(np.floor(x / 0.3 + 0.5))
        heights.append(z - 0.05 + 0.1 * k if k < 4 else 0.0)
    assert min(heights) > -1e-2 and stepper.q[4] > 0.4
