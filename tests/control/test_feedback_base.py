"""All controllers are functions of (t, q, v) in the same way: what they check, and what they say of it."""
import inspect
import pickle
from importlib.util import find_spec

import numpy as np
import pytest

import liedyn as ld
from liedyn.linear.feedback import Feedback, LinearFeedback
from liedyn.machine.errors import InputError

ARM = ld.load("five_bar")
REST = np.zeros(4)


def tracking():
    t = np.linspace(0.0, 0.1, 3)
    return ld.tvlqr(ARM, t, np.tile(ARM.home, (3, 1)), np.zeros((3, 4)), 1.0, 0.1, u=np.zeros((3, 4)))


def output_feedback():
    return ld.OutputFeedback(ld.dlqr(ARM, ARM.home, 0.01, 1.0, 0.1),
                             ld.dkalman(ARM, ARM.home, 0.01, 1.0, 1e-4, ["q1", "q4"]))


def from_control():
    control = pytest.importorskip("control")
    return ld.from_control(control.ss([], [], [], [[1.0]]), ARM, ["q1"], actuators=["q1"], period=0.01)


def pidc():
    return ld.PIDC(ARM, ARM.home[:2], 25.0, 10.0, independent=("q1", "q2"))


def cost():
    return ld.Cost(Q=1.0, R=1e-2, q=ARM.home)


CONTROLLERS = {
    "a regulator": lambda: ld.lqr(ARM, ARM.home, 1.0, 0.1), "a regulator along a motion": tracking,
    "a controller of a motion": pidc, "a controller of forces": lambda: ld.HybridController(
        pidc(), {ARM.constraint_names[0]: np.zeros(ARM.row_owners.count(ARM.constraint_names[0]))}),
    "a controller of estimates": output_feedback, "a controller of python-control": from_control,
    "a plan": lambda: ld.ddp(ARM, ARM.home, REST, cost(), 4, 0.01), "a controller that plans": lambda: ld.MPC(
        ARM, ARM.home, REST, cost(), 4, 0.01),
}


@pytest.mark.parametrize("kind", CONTROLLERS)
def test_what_every_controller_checks(kind):
    controller = CONTROLLERS[kind]()
    assert isinstance(controller, Feedback)
    role = " ".join(kind.split()[:2])
    for given, message in (
            (("soon", ARM.home, REST), "t must be a number"), ((np.nan, ARM.home, REST), "t must be finite"),
            ((0.0, ARM.home[:3], REST), r"q must have shape \(..., 4\)"),
            ((0.0, ARM.home, REST * np.nan), "v is not finite"),
            ((0.0, np.tile(ARM.home, (2, 1)), np.zeros((2, 4))), rf"{role} takes one state.*leading axes \(2,\)")):
        with pytest.raises(InputError, match=message):
            controller(*given)
    u = controller(0, list(ARM.home), [0.0] * 4)  # the failed calls have left no trace
    assert u.shape == (4,) and np.isfinite(u).all()
    copy = pickle.loads(pickle.dumps(CONTROLLERS[kind]())) if kind != "a controller of python-control" else controller
    if hasattr(copy, "reset"):
        copy.reset()
    assert np.array_equal(copy(0.0, ARM.home, REST), u)


def test_it_is_documented_once():
    classes = [ld.Regulator, ld.TrackingRegulator, ld.PIDC, ld.OutputFeedback, ld.SystemFeedback, ld.Plan, ld.MPC]
    for each in classes:
        assert each.__call__ is Feedback.__call__ and "Parameters" in inspect.getdoc(each.__call__)
    assert issubclass(ld.HybridController, Feedback) and "lam" in ld.HybridController.__call__.__doc__
    assert ld.Regulator.derivative is ld.TrackingRegulator.derivative is LinearFeedback.derivative
    assert [each for each in classes if hasattr(each, "feedback")] == classes[:2]


@pytest.mark.skipif(find_spec("control") is None, reason="python-control is not installed")
def test_a_call_of_a_sampled_system_that_fails_is_no_sample():
    feedback = from_control()
    with pytest.raises(InputError, match="one state at a time"):  # was an error of Python's that named nothing
        feedback(0.0, [ARM.home, ARM.home], np.zeros((2, 4)))
    assert feedback._coming == []
