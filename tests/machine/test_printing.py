"""How robots and linear models print, and how models of a batch are indexed."""
import numpy as np
import pytest
from test_state_batches import arrays, assert_batch_is_its_states, moving

import liedyn as ld

FIVE_BAR = ld.load("five_bar")
REST = np.zeros(4)


def test_models_of_a_batch_are_indexed():
    q, v, tau = (x.reshape(2, 3, 4) for x in moving(FIVE_BAR, 6))
    models = ld.linearize(FIVE_BAR, q, v, tau)
    apart = [ld.linearize(FIVE_BAR, q[k], v[k], tau[k]) for k in np.ndindex(2, 3)]
    assert_batch_is_its_states(FIVE_BAR, (q, v, tau), models, [models[k] for k in np.ndindex(2, 3)], 1e-15)
    assert_batch_is_its_states(FIVE_BAR, (q, v, tau), models[1], apart[3:])
    assert_batch_is_its_states(FIVE_BAR, (q, v, tau), models[..., 2], apart[2::3])
    assert len(models) == 2 and models.lead == (2, 3) and [each.lead for each in models] == [(3,), (3,)]
    assert all(np.ndim(x) == np.ndim(arrays(apart[0])[name]) for name, x in arrays(models[0, -1]).items())


def test_models_of_tangent_spaces_are_indexed():
    q, v, tau = moving(FIVE_BAR, 3)
    models = ld.linearize(FIVE_BAR, q, v, tau, independent="tangent")
    assert models[1].condition == models.condition[1] and models[1].states == models.states


def test_what_is_no_index_is_refused():
    models = ld.linearize(FIVE_BAR, FIVE_BAR.home[None], REST[None], REST[None])
    for index in (1, "x", (0, 0), 0.5):
        with pytest.raises(ld.InputError, match=r"models of a batch \(1,\) have no index"):
            models[index]
    with pytest.raises(ld.InputError, match="this is one model"):
        models[0][0]
    with pytest.raises(TypeError, match="one model"):
        len(models[0])
    assert models[0]  # is there


def test_a_model_prints_its_matrices_with_names():
    ss = ld.linearize(FIVE_BAR, FIVE_BAR.home, REST, REST)
    assert repr(ss) == ("LocalStateSpace(4 states: q1, q2, velocity:q1, velocity:q2; 4 inputs: q1, q2, q3, q4; "
                        "2 outputs: q1, q2)")
    lines = str(ss).splitlines()
    assert len(lines) == 8 and lines[1].split() == [*ss.states, *ss.inputs]
    assert lines[4].split()[1] == "velocity:q1" and float(lines[4].split()[2]) == pytest.approx(ss.A[2, 0], 1e-3)
    assert f"<td style='text-align:right'>{ss.B[3, 1]:.4g}</td>" in ss._repr_html_()


def test_large_models_and_batches_print_in_one_line():
    batch = ld.linearize(FIVE_BAR, np.tile(FIVE_BAR.home, (2, 1)), np.zeros((2, 4)), np.zeros((2, 4)))
    assert str(batch).startswith("LocalStateSpace(2 models, 4 states") and "\n" not in str(batch)
    arm = ld.load("panda")
    ss = ld.linearize(arm, arm.home, np.zeros(7), np.zeros(7))
    assert str(ss) == repr(ss) and "states: panda_joint1, panda_joint2, panda_joint3, panda_joint4, ...;" in repr(ss)
    assert "<table>" not in ss._repr_html_()


def test_a_robot_in_a_notebook():
    text = ld.load("loader")._repr_html_()
    for part in ("wheel loader", "bodies", "lift_pin", "independent", "boom, bucket"):
        assert part in text


def test_events_print_without_their_states():
    opens = ld.Event("open", lambda t, q, v: t - 0.01, off="pin")
    event, = ld.simulate(FIVE_BAR, FIVE_BAR.home, REST, 0.02, events=opens).events
    assert repr(event) == "EventRecord('open', t=0.01, energy_loss=0, off=('pin',))"
