"""Declarations of tree algorithms: what is written for them is kept, found, documented and shown as other code is."""
import doctest
import inspect
import pickle
import sys
import traceback

import pytest
from processes import python

import liedyn as ld
from liedyn.model.calls.recursion import RECURSIONS

DECLARED = '''
from liedyn.model.calls.recursion import recursion
from liedyn.machine.compiled.jit import kernel_in_place
from liedyn.machine.simd.lanes import load, store
from liedyn.model.packed_records import dof_total

@kernel_in_place
def scaled_kernel(lane, model, v, scaled):
    """v by a factor."""
    for j in range(dof_total(model)):
        store(lane, scaled, j, 2.0 * load(lane, v, j))

@recursion(scaled_kernel, scaled="nv")
def scaled(robot, v, out=None):
    """Velocities by a factor.

    Returns
    -------
    scaled : ndarray, shape (..., nv)
    """
'''


def test_the_cache_knows_code_from_words(tmp_path):
    """A second process compiles nothing, nor does one that finds another docstring; one that finds other code does."""
    def run(text):
        (tmp_path / "declared.py").write_text(text)
        return python(f"import sys; sys.path.append({str(tmp_path)!r}); import declared\n"
                      "import numpy as np, liedyn as ld\n"
                      "found = declared.scaled(ld.load('five_bar'), np.ones((3, 4)))\n"
                      "stats = declared.scaled_states.kernel.stats\n"
                      "print(found.max(), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))",
                      LIEDYN_CACHE_DIR=str(tmp_path / "cache"))

    assert run(DECLARED) == ["2.0", "0", "1"]
    assert run(DECLARED) == ["2.0", "1", "0"]
    assert run(DECLARED.replace("by a factor", "twice")) == ["2.0", "1", "0"]
    assert run(DECLARED.replace("2.0 *", "3.0 *")) == ["3.0", "0", "1"]


@pytest.mark.parametrize("name", RECURSIONS)
def test_a_declared_function_is_one_of_its_module(name):
    function = RECURSIONS[name].function
    module = sys.modules[function.__module__]
    assert getattr(module, name) is function is pickle.loads(pickle.dumps(function))
    typed = inspect.signature(function)
    plain = typed.replace(parameters=[each.replace(annotation=each.empty) for each in typed.parameters.values()],
                          return_annotation=typed.empty)
    assert inspect.getsource(function).startswith(f"def {name}{plain}:\n")
    assert typed.parameters["robot"].annotation == "Robot" and "Array" in typed.return_annotation
    assert [test for test in doctest.DocTestFinder().find(module) if test.name.endswith(f".{name}") and test.examples]


def test_tracebacks_show_what_is_written():
    robot = ld.load("five_bar")
    try:
        ld.rnea(robot, robot.home, "v", robot.home)
    except ld.InputError as error:
        lines = traceback.extract_tb(error.__traceback__)
    assert any(line.name == "rnea" and "rnea_states" in line.line for line in lines)
