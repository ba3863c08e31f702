"""What editors and type checkers see: types of all public names, stubs that say what is there, and code of the docs.

What costs time here is reading the package: 8 s of processor time for mypy, 20 and 10 s for basedpyright.
"""
import inspect
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import liedyn as ld

ROOT = Path(__file__).parents[2]
MODULES = ("lie", "kernels", "typing", "io", "constraints", "dynamics", "linearization", "simulation", "specialization",
           "symbolic")
BRIDGES = "rnea", "forward_dynamics", "forward_kinematics", "pose", "step", "rollout"
RESULTS = ("LocalStateSpace", "DiscreteStateSpace", "Modes", "FrequencyResponse", "ForwardDynamics", "InverseDynamics",
           "Controllability", "ConstraintCheck", "FeedbackCheck", "Specialized", "Page", "Model")
"""Classes of what functions return that are no names of `liedyn`."""


def run(*command, folder=ROOT):
    """A module of this interpreter, in whose packages basedpyright looks as it is the first `python` on the path.

    PYTHONPATH says where liedyn is: an editable installation finds it by code, which no checker runs.
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT),
                                "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    return subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, env=environment)


MADE_IN_LOOPS = r"""
liedyn\.machine\.program\.interpret\.CarefulMath\..*
liedyn\.machine\.program\.plain_arrays\.(Plain|Strided)\..*
liedyn\.machine\.program\.plain_registers\.Register\..*
liedyn\.machine\.program\.cuda\.CudaLanguage
liedyn\.look\.drawing\.Faces\.set
liedyn\.tasks\.optimal_motion\.optimal_motion_result\.OptimalMotion\.u
"""
"""Operators of interpreted numbers, which are made in loops, a named tuple with slots, what Matplotlib writes for
artists, and a field in the place of a property that is computed once: no checker sees them."""
OTHERS = "[mypy]\n[mypy-{}]\nfollow_imports = skip\n".format(",".join(f"{name}.*" for name in (
    "casadi", "dask", "IPython", "jax", "jaxlib", "matplotlib", "PIL", "sympy", "websockets")))
"""Packages that the checker does not read, as it compares names, arguments and defaults of this one: half the time."""


def test_stubs_say_what_is_there(tmp_path):
    """Arguments, defaults and attributes as declared against those of the package that runs."""
    pytest.importorskip("mypy")
    allowed, given = tmp_path / "allowed.txt", tmp_path / "mypy.ini"
    allowed.write_text(MADE_IN_LOOPS.strip() + "\n")
    given.write_text(OTHERS)
    found = run("mypy.stubtest", "liedyn", "--concise", "--allowlist", str(allowed), "--mypy-config-file", str(given))
    assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-2000:]


def public():
    """Dotted names of what is public, where it is named and where it is defined; and those of them that are classes."""
    classes, names = set(), {f"liedyn.{module}.{name}" for module in ("jax", "torch", "casadi") if find_spec(module)
                          for name in BRIDGES}
    for module in (ld, *(getattr(ld, name) for name in MODULES)):
        for name in module.__all__:
            thing = getattr(module, name)
            names.add(f"{module.__name__}.{name}")
            if callable(thing) and (inspect.unwrap(thing).__module__ or "").startswith("liedyn"):
                names.add(f"{inspect.unwrap(thing).__module__}.{inspect.unwrap(thing).__name__}")
                classes |= {f"{each.__module__}.{each.__name__}" for each in getattr(thing, "__mro__", ())}
    return names | classes, classes


def test_every_public_name_has_its_types():
    pytest.importorskip("basedpyright")
    found = run("basedpyright", "--verifytypes", "liedyn", "--ignoreexternal", "--outputjson")
    symbols = json.loads(found.stdout)["typeCompleteness"]["symbols"]
    (names, classes), seen, untyped = public(), set(), []
    for symbol in symbols:
        name = symbol["name"]
        above, _, last = name.rpartition(".")
        if name in names or above in classes or {last, above.rpartition(".")[2]} & {*RESULTS}:
            seen.add(name)
            if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]:
                untyped.append((name, [each["message"] for each in symbol["diagnostics"]][:2]))
    assert not untyped, untyped[:20]
    assert {f"liedyn.{name}" for name in ld.__all__} <= seen and len(seen) > 1500


CELLS = {"README.md": "python", "docs/start.md": "code-cell", "docs/tutorials/*.md": "code-cell",
         "docs/howto/*.md": "code-cell"}
BEYOND = {
    "Trim | None": "a special point of a branch has a crossing or not",
    '"failed" for class "Trajectory"': "`simulate` makes Trajectories where there are many starts",
    'Literal[17]': "the same: a run by its number", "Literal['q1']": "the same", "No overloads": "what follows of that",
    '"trajectory" for class "KeyboardInterrupt"': "an attribute that Ctrl-C finds there",
    "dict[str, float] | float | NLPSolver": "options that several calls have in common",
    'is not a known attribute of "None"': "models have second derivatives where they were asked for",
    "initial_state": "python-control", "TransferFunction": "python-control", '"Circle"': "Matplotlib",
    '"jac" of type "str"': "SciPy", '"chunks" of type "str"': "Dask", "refers to itself": "JAX",
    'Import "torch"': "is not among what tests need", "possibly unbound": "behind a loop",
    "is obscured": "two examples",
    '"append" for class "NDArray': "a list that is an array from the next cell on",
}
"""What the checker says that is no fault of liedyn's types, by words of the message, and why."""


def test_code_of_the_documentation(tmp_path):
    pytest.importorskip("basedpyright")
    for pattern, kind in CELLS.items():
        for page in ROOT.glob(pattern):
            cell = rf"^```\{{?{kind}\}}?[^\n]*\n(?:---\n.*?\n---\n)?(.*?)^```"
            cells = re.findall(cell, page.read_text(encoding="utf-8"), re.M | re.S)
            lines = [line for cell in cells for line in cell.splitlines() if not re.match(r":[\w-]+:|[%!]", line)]
            if lines:
                (tmp_path / f"{page.parent.name}_{page.stem}.py").write_text("\n".join(lines), encoding="utf-8")
    assert len(list(tmp_path.iterdir())) > 20
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({
        "include": ["."], "extraPaths": [str(ROOT)], "typeCheckingMode": "standard"}))
    found = json.loads(run("basedpyright", "-p", ".", "--outputjson", folder=tmp_path).stdout)["generalDiagnostics"]
    faults = [f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: {each['message']}" for each in found
              if each["severity"] == "error" and not any(words in each["message"] for words in BEYOND)]
    assert not faults, "\n".join(faults)


WRITTEN = """import liedyn as ld
robot = ld.load("five_bar")
ss = ld.linearize(robot, robot.home, [0.0] * 4, [0.0] * 4)
tr = ld.simulate(robot, robot.home, [0.0] * 4, 1.0)
"""


@pytest.mark.parametrize(("typed", "offered"), [
    ("ld.sim", {"simulate", "simulation"}), ("ld.lin", {"linearize", "linearization"}),
    ("robot.", {"home", "nq", "joint_names", "switched", "at", "body_index"}),
    ("ss.", {"A", "B", "states", "eigenvalues", "to_control", "save"}),
    ("tr.", {"t", "q", "energy_drift", "plot", "animate", "to_dataframe"})])
def test_an_editor_offers_what_is_there(typed, offered):
    jedi = pytest.importorskip("jedi")
    script = jedi.Script(WRITTEN + typed, path=str(ROOT / "typed.py"), project=jedi.Project(str(ROOT)))
    names = {each.name for each in script.complete()}
    assert offered <= names, sorted(offered - names)
    if typed == "robot.":
        assert not names & {"memo", "ints", "floats"}


def test_types_cost_nothing_at_run_time():
    code = "import sys, liedyn; liedyn.simulate; print('liedyn.typing' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "False\n"
