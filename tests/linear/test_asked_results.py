"""`linearize(results=...)`: the results asked for are those of a call for all, and the others cannot be read."""
import copy
import pickle

import numpy as np
import pytest
from closed_chains import moving_state
from tree_cases import bundled as robot_named

import liedyn as ld
from liedyn.linear.state_space import RESULTS
from liedyn.machine.errors import InputError

CHOICES = [("A", "B", "f0"), ("A",), ("B",), ("f0", "K"), ("C",), ("D", "S"), ("drift", "lam"), ("a", "C", "D")]
MACHINES = ["five_bar", "loader", "stewart", "panda", "solo12", "whipple_bicycle", "rolling_disk"]


def states(robot, count):
    """The same moving state, count times; one without an axis for a count of 0."""
    v, tau = moving_state(robot, robot.home)
    shape = (count, 1) if count else ()
    return [np.tile(x, shape) for x in (robot.home, v, tau)]


def require_only(ss, whole, results, same=np.array_equal):
    for name in RESULTS:
        if name in results:
            assert same(getattr(ss, name), getattr(whole, name)), name
        else:
            assert not hasattr(ss, name)
            with pytest.raises(InputError, match=rf"^{name} was not asked for: .*results="):
                getattr(ss, name)
    assert (ss.states, ss.inputs, ss.outputs) == (whole.states, whole.inputs, whole.outputs)
    for name in ("q", "v", "tau", "rank", "condition", "closure_residual"):
        assert same(getattr(ss, name), getattr(whole, name)), name


def nearly(x, y):
    """Equal up to rounding: a call for all results may sum in another order."""
    x, y = np.asarray(x), np.asarray(y)
    return x.shape == y.shape and (not x.size or abs(x - y).max() <= 1e-12 * max(1.0, abs(y).max()))


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("count", [0, 1, 3, 50])
def test_results_asked_for(name, count):
    robot = robot_named(name)
    given = states(robot, count)
    whole = ld.linearize(robot, *given)
    for results in CHOICES:
        ss = ld.linearize(robot, *given, results=list(results))
        require_only(ss, whole, results, nearly)
        # read in another order
        again = ld.linearize(robot, *given, results=results)
        for each in reversed(results):
            assert nearly(getattr(again, each), getattr(whole, each))
    require_only(ld.linearize(robot, *given, results=RESULTS[::-1]), whole, RESULTS)


@pytest.mark.parametrize("options", [
    {"independent": "auto"}, {"independent": "tangent"}, {"independent": ("q1", "q2"), "outputs": ("q1", "q2")},
    {"outputs": ("twist_rate:tip", "wrench:loop")}, {"f_ext": np.ones((5, 6))}, {"second": True}])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_with_other_options(options, count):
    robot = robot_named("five_bar")
    if "f_ext" in options:
        options = {"f_ext": np.full((len(robot.body_names), 6), 0.3)}
    if "outputs" in options and "wrench:loop" in options["outputs"]:
        options = {"outputs": (f"twist_rate:{robot.body_names[-1]}", f"wrench:{robot.loop_names[0]}")}
    given = states(robot, count)
    whole = ld.linearize(robot, *given, **options)
    for results in CHOICES:
        ss = ld.linearize(robot, *given, **options, results=results)
        require_only(ss, whole, results, nearly)
        if "second" in options:
            assert nearly(ss.second.f, whole.second.f)


def test_with_force_elements_and_feedback():
    loader = robot_named("loader")
    b = ld.Builder.of(loader)
    first, last = loader.body_names[0], loader.body_names[-1]
    b.spring("strut", first, last, stiffness=300.0, damping=5.0)
    robot = b.build()
    given = states(robot, 3)
    whole = ld.linearize(robot, *given)
    for results in CHOICES:
        require_only(ld.linearize(robot, *given, results=results), whole, results, nearly)
    feedback = (lambda t, q, v: -v), (lambda t, q, v: (np.zeros((loader.nv, loader.nv)), -np.eye(loader.nv)))
    whole = ld.linearize(loader, *given[:2], feedback)
    for results in CHOICES:
        require_only(ld.linearize(loader, *given[:2], feedback, results=results), whole, results, nearly)


def test_results_that_were_left_out_stay_so():
    """In parts of a batch, in copies and in files; what needs one names it."""
    robot = robot_named("five_bar")
    whole, models = (ld.linearize(robot, *states(robot, 4), results=x) for x in (None, ("A", "B", "f0")))
    require_only(models[2], whole[2], ("A", "B", "f0"))
    assert len(models) == 4 and len(models[1:3]) == 2 and "4 models" in repr(models)
    for each in (models, models[2], ld.linearize(robot, *states(robot, 0), results=("A", "B", "f0"))):
        for made in (pickle.loads(pickle.dumps(each)), copy.copy(each), copy.deepcopy(each)):
            assert np.array_equal(made.A, each.A) and made.rank is not None and made.states == each.states
            with pytest.raises(InputError, match="results="):
                made.C  # noqa: B018
        assert np.array_equal(each.eigenvalues(), np.sort_complex(np.linalg.eigvals(each.A)))
        assert str(each) == repr(each)
        each._repr_html_()
        with pytest.raises(InputError, match="results="):
            each.discretize(1e-3)
    with pytest.raises(InputError, match="^C was not asked for"):
        models[0].to_scipy()
    left = ld.linearize(robot, *states(robot, 4), results="C")
    assert len(left) == 4 and left.lead == (4,)
    with pytest.raises(InputError, match="^A was not asked for"):
        left.eigenvalues()


def test_files_have_what_was_asked_for(tmp_path):
    robot = robot_named("five_bar")
    ss = ld.linearize(robot, *states(robot, 0), results=("A", "K"))
    with np.load(ss.save(tmp_path / "part")) as kept:
        assert {"A", "K", "q", "states", "rank"} <= set(kept) and not {"B", "C", "D", "S"} & set(kept)


@pytest.mark.parametrize("results, message", [
    ((), "names none"), (("A", "E"), "unknown result 'E'"), ("f", "unknown result 'f'"), (3, "must be names")])
def test_wrong_names(results, message):
    robot = robot_named("five_bar")
    for count in (0, 3):
        with pytest.raises(InputError, match=message):
            ld.linearize(robot, *states(robot, count), results=results)


def test_errors_do_not_depend_on_results():
    robot = robot_named("five_bar")
    for count in (0, 3):
        q, v, tau = states(robot, count)
        for results in (None, ("A",), ("C", "K")):
            with pytest.raises(ld.ClosureError):
                ld.linearize(robot, q + 0.1, v, tau, results=results)
            with pytest.raises(InputError, match="no_such"):
                ld.linearize(robot, q, v, tau, outputs=("pose:no_such",), results=results)
