"""What runs say by name: inputs, poses, twists, wrenches, energies; of one run and of many."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.machine.errors import InputError, LiedynError

ARM = ld.load("five_bar")
REST = np.zeros(4)


def driven():
    """A crane whose motor acts on a joint, whose cylinder between two points, beside a spring and a moving wind."""
    b = ld.Builder("crane")
    b.body("boom", 3.0, (0.5, 0.0, 0.0), (0.01, 0.3, 0.3))
    b.joint("lift", "revolute", "ground", "boom", axis=(0, 1, 0))
    b.body("jib", 1.0, (0.3, 0.0, 0.0), (0.01, 0.1, 0.1))
    b.joint("fold", "revolute", "boom", "jib", placement=(1.0, 0.0, 0.0), axis=(0, 1, 0))
    b.frame("hook", "jib", (0.6, 0.0, 0.0))
    b.actuator("motor", "fold", gear=3.0)
    b.cylinder("cylinder", "ground", "boom", (0.3, 0.0, -0.5), (0.6, 0.0, 0.0))
    b.coordinate_force("spring", {"fold": 1.0}, stiffness=4.0, damping=0.3)
    b.applied_force("wind", "jib", force=lambda t: [np.sin(3.0 * t), 0.0, 0.2])
    return b.build()


CRANE = driven()


def test_inputs_of_a_run():
    def u(t, q, v):
        return np.array([np.cos(2.0 * t), 40.0 + 5.0 * t - v[0]])

    tr = ld.simulate(CRANE, [0.1, 0.4], [0.0, 0.0], 0.5, dt=5e-3, u=u)
    wanted = np.array([u(*each) for each in zip(tr.t, tr.q, tr.v)])
    assert np.allclose(tr.u, wanted, rtol=0.0, atol=1e-10)
    assert np.array_equal(tr["u:cylinder"], tr.u[:, 1])
    with pytest.raises(InputError, match="nothing called 'cylindre'"):
        assert tr["u:cylindre"] is None
    # the same in a batch
    runs = ld.simulate(CRANE, [[0.1, 0.4], [0.2, 0.3]], [0.0, 0.0], 0.1, dt=5e-3, u=[1.0, 40.0])
    assert runs.u.shape == (2, 21, 2) and np.allclose(runs.u, [1.0, 40.0], atol=1e-10)


def test_what_has_no_inputs():
    tr = ld.simulate(CRANE, [0.1, 0.4], [0.0, 0.0], 0.05, dt=5e-3)
    assert np.allclose(tr.u, 0.0, atol=1e-10)
    b = ld.Builder.of(ARM)
    b.actuator("first", "q1")
    one = b.build()
    tr = ld.simulate(one, one.home, REST, 0.01, tau=[1.0, 0.0, 0.0, 0.5])
    with pytest.raises(InputError, match="force of q4 in this run is no force of an actuator"):
        assert tr.u is None
    b.actuator("second", "q1")
    both = b.build()
    with pytest.raises(InputError, match="different forces of the actuators first, second do the same"):
        assert ld.simulate(both, both.home, REST, 0.01, u=[1.0, 0.0]).u is None


def test_poses_twists_and_wrenches(tmp_path):
    tr = ld.simulate(ARM, ARM.home, REST, 0.1, dt=1e-2, tau=[0.3, 0.0, 0.0, -0.2])
    poses = np.array([ld.pose(ARM, q, "link2") for q in tr.q])
    assert tr["pose:link2"].shape == (11, 4, 4) and np.allclose(tr["pose:link2"], poses, atol=1e-14)
    outputs = ("twist:link2", "twist_rate:link2", "wrench:pin")
    models = ld.linearize(ARM, tr.q, tr.v, tr.tau, outputs=outputs)
    assert len(models) == 11  # names mean the same as for linearize
    J = ld.body_jacobian(ARM, tr.q, "link2")
    assert np.allclose(tr["twist:link2"], np.einsum("bij,bj->bi", J, tr.v), atol=1e-13)
    # its rate, against differences of a fine run
    fine = ld.simulate(ARM, tr.q[4], tr.v[4], 2e-4, dt=1e-4, tau=[0.3, 0.0, 0.0, -0.2])
    slope = (-3.0 * fine["twist:link2"][0] + 4.0 * fine["twist:link2"][1] - fine["twist:link2"][2]) / 2e-4
    assert np.allclose(tr["twist_rate:link2"][4], slope, atol=1e-5)  # of second order
    assert tr["wrench:pin"] is tr.constraint_wrenches["pin"]
    assert np.array_equal(tr["energy"], tr.energy) and np.array_equal(tr["kinetic"], tr.kinetic)
    for name, what in (("pose:lnk2", "lnk2"), ("wrench:pni", "pni"), ("enrgy", "enrgy")):
        with pytest.raises(InputError, match=f"'{what}'"):
            assert tr[name] is None
    assert CRANE.frame_names == ("hook",)
    swing = ld.simulate(CRANE, [0.1, 0.4], [0.0, 0.0], 0.01, dt=5e-3)
    assert np.allclose(swing["pose:hook"][0], ld.pose(CRANE, [0.1, 0.4], "hook"))
    # from a file, with the robot and without
    file = tr.save(tmp_path / "run")
    with pytest.raises(LiedynError, match="needs the robot of the run"):
        assert ld.Trajectory.load(file)["pose:link2"] is None
    assert np.array_equal(ld.Trajectory.load(file, ARM)["pose:link2"], tr["pose:link2"])
    with pytest.raises(InputError, match="other coordinates or constraints than 'crane'"):
        ld.Trajectory.load(file, CRANE)


@pytest.mark.parametrize("options", [{}, {"method": "RK45"}], ids=["in lanes", "alone"])
def test_columns_of_many_runs(options):
    starts = ld.close(ARM, ARM.home, q1=ARM.home[0] + np.array([[-0.1, 0.0], [0.1, 0.05]]))
    runs = ld.simulate(ARM, starts, REST, 0.05, dt=5e-3, tau=[0.3, 0.0, 0.0, -0.2], **options)
    for name in ("q1", "velocity:q2", "force:q4", "pin.vx", "energy", "kinetic", "potential", "pose:link3",
                 "twist:link3", "wrench:pin", "wrench:q2", "wrench:q2.fx", "u:q1"):
        column = runs[name]
        assert column.shape[:3] == (2, 2, 11)
        for index in np.ndindex(2, 2):
            assert np.allclose(column[index], runs[index][name], rtol=0.0, atol=1e-12), name
    for name in ("input_work", "other_work", "condition", "energy", "u"):
        for index in np.ndindex(2, 2):
            assert np.allclose(getattr(runs, name)[index], getattr(runs[index], name), atol=1e-12), name


def test_runs_that_fail_have_no_energy_after_their_end():
    starts = np.array([ARM.home, ARM.home + [0.3, 0.0, 0.0, 0.0]])  # the second one does not close
    with pytest.warns(Warning):
        runs = ld.simulate(ARM, starts, REST, 0.02, dt=5e-3)
    assert runs.failed.tolist() == [False, True]
    assert np.isfinite(runs.energy[0]).all() and np.isnan(runs.energy[1]).all()
    assert np.isnan(runs["pose:link1"][1]).all()


def test_small_inputs_beside_large_forces_of_springs():
    """What rounding leaves of a stiff spring is no force that the inputs do not give."""
    b = ld.Builder.of(ld.load("five_bar"))
    b.actuator("motor", {"q1": 1.0, "q2": -0.7, "q3": 0.3})
    b.spring("stiff", "ground", "link2", (3.0, 1.0, 0.0), stiffness=1e9, length=0.1)
    robot = b.build()
    tr = ld.simulate(robot, robot.home, np.zeros(4), 1e-6, dt=1e-7, u=[1e-3])
    assert np.abs(tr.tau).max() > 1e8
    np.testing.assert_allclose(tr.u, 1e-3, atol=1e-15 * np.abs(tr.tau).max())


def test_lengths_rates_and_forces_of_elements():
    b = ld.Builder.of(CRANE)
    b.bushing("mount", "ground", "jib", stiffness=[1, 2, 3, 40, 50, 60])
    crane = b.build()
    tr = ld.simulate(crane, [0.1, 0.4], [0.0, 0.3], 0.05, dt=5e-3)
    assert np.allclose(tr["spring.length"], tr["fold"], atol=1e-15)
    assert np.allclose(tr["spring.rate"], tr["velocity:fold"], atol=1e-15)
    assert np.allclose(tr["spring.force"], 4.0 * tr["fold"] + 0.3 * tr["velocity:fold"], atol=1e-14)
    assert np.array_equal(tr["mount.force"][7], ld.element_states(crane, tr.q[7], tr.v[7])["mount"][2])
    wind = tr["wind.force"]  # moves with time
    assert np.allclose(wind[:, 3:], np.column_stack([np.sin(3.0 * tr.t), 0.0 * tr.t, 0.0 * tr.t + 0.2]), atol=1e-15)
    runs = ld.simulate(crane, [[0.1, 0.4], [0.2, 0.3]], [0.0, 0.3], 0.05, dt=5e-3)
    assert np.allclose(runs["spring.force"][0], tr["spring.force"], atol=1e-12)
    assert runs["mount.force"].shape == (2, len(tr), 6)
    with pytest.raises(InputError, match="did you mean 'spring.force'"):
        assert tr["sprng.force"] is None


def test_inputs_by_name_are_no_array():
    with pytest.raises(InputError, match=r"u must be numbers, got \{'motor': 1.0\}: an array, in order, not by name"):
        ld.simulate(CRANE, [0.1, 0.4], [0.0, 0.0], 0.1, u={"motor": 1.0})
