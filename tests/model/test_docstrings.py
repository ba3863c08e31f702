"""Every public function says what it takes, returns and raises, in numpydoc sections, and its examples run."""

import ast
import doctest
import importlib
import inspect
import re
import textwrap
from importlib.util import find_spec

import pytest

import liedyn as ld
from liedyn import constraints, dynamics, kernels, lie, specialization, symbolic

FRAMEWORKS = [importlib.import_module(f"liedyn.{name}") for name in ("jax", "torch", "casadi") if find_spec(name)]
HEADING = re.compile(r"^(Parameters|Attributes|Returns|Raises|Warns|Notes|Examples)\n-+\n", re.M)
ERRORS = (ld.LiedynError,)
OF_FILES = {"NamedLaw.checked", "NamedLaw.table"}
"""Methods of public classes that readers and writers of files call, not users."""


def _public():
    """Cases: what is public, and methods of public classes, those that several inherit once."""
    inherited = set()
    modules = [(module, module.__all__) for module in (
        ld, lie, constraints, dynamics, specialization, symbolic, *FRAMEWORKS)]
    for module, names in modules + [(kernels, ["workspace", "stepping"])]:
        for name in names:
            thing = getattr(module, name)
            if inspect.isclass(thing):
                yield pytest.param(thing, id=f"{module.__name__}.{name}")
                for method in dict.fromkeys(each for base in thing.__mro__ if base.__module__.startswith("liedyn")
                                            for each in vars(base)):
                    function = inspect.getattr_static(thing, method)
                    if (inspect.isfunction(function) and not method.startswith("_") and function not in inherited
                            and function.__qualname__ not in OF_FILES):
                        inherited.add(function)
                        yield pytest.param(function, id=f"{module.__name__}.{name}.{method}")
            else:
                yield pytest.param(thing, id=f"{module.__name__}.{name}")


PUBLIC = list(_public())
FUNCTIONS = [case for case in PUBLIC if not inspect.isclass(case.values[0])]
# one line says all there is: a name in, its place out, InputError for an unknown name
LOOKUPS = {
    f"{what}_index" for what in ("body", "joint", "loop", "constraint", "coordinate", "velocity", "virtual")}


def sections(thing):
    """Text of each numpydoc section by its heading; the summary under ""."""
    parts = HEADING.split(inspect.getdoc(thing) or "")
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2]))


def documented(section):
    """Names before the colons of a section."""
    return {name.strip().lstrip("*") for line in re.findall(r"^(\S.*)$", section, re.M)
            for name in line.split(" : ")[0].split(",")}


def parameters(thing):
    return [name for name in inspect.signature(thing).parameters if name != "self"]


@pytest.mark.parametrize("thing", PUBLIC)
def test_summary_is_a_sentence(thing):
    summary = sections(thing)[""].strip()
    assert summary.split("\n\n")[0].rstrip()[-1:] in (".", ":"), summary


@pytest.mark.parametrize("thing", FUNCTIONS)
def test_every_argument(thing):
    if thing.__name__ in LOOKUPS:
        return
    missing = set(parameters(thing)) - documented(sections(thing).get("Parameters", ""))
    assert not missing, f"not documented: {missing}"
    surplus = documented(sections(thing).get("Parameters", "")) - set(parameters(thing))
    assert not surplus, f"documented, but not there: {surplus}"


def _tree(thing):
    return ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(thing))))


@pytest.mark.parametrize("thing", FUNCTIONS)
def test_returns(thing):
    returns = any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(_tree(thing)))
    if returns and thing.__name__ not in LOOKUPS:
        assert "Returns" in sections(thing)


@pytest.mark.parametrize("thing", FUNCTIONS)
def test_raises(thing):
    """Whatever a function raises itself is listed; so are the errors of its arguments, which `states` raises for it."""
    listed = documented(sections(thing).get("Raises", ""))
    for node in ast.walk(_tree(thing)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            assert node.exc.func.id in listed
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "states":
            assert "InputError" in listed


@pytest.mark.parametrize("thing", PUBLIC)
def test_examples(thing):
    if isinstance(thing, type) and issubclass(thing, Exception) or thing is ld.Robot or thing.__name__ in LOOKUPS:
        return
    if "Examples" not in sections(thing):  # the example of the builder shows its methods at work
        assert "." in thing.__qualname__ and thing.__qualname__.split(".")[0] in {
            each.__name__ for each in ld.Builder.__mro__}
    _run(thing.__name__, inspect.getdoc(thing), dict(vars(inspect.getmodule(inspect.unwrap(thing)))))


@pytest.mark.parametrize("module", [ld, lie, kernels, *FRAMEWORKS], ids=lambda module: module.__name__)
def test_examples_of_modules(module):
    _run(module.__name__, module.__doc__, {})


def _run(name, text, names):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said = []
    runner.run(doctest.DocTestParser().get_doctest(text, names, name, None, 0), out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
