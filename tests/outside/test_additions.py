"""The additions that docs/contributing walks through, applied to copies of the package and run."""
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

from processes import ROOT, process, with_kernels

MOST_FILES = {"joint": 5, "family_of_constraints": 5, "tree_algorithm": 2, "integrator": 2, "file_format": 2, "cost": 1}
"""How many files an addition may touch, the registering line included."""
COPIES = ("joint", "family_of_constraints"), ("tree_algorithm", "integrator", "file_format", "cost")
"""Additions that share a copy: those for which all kernels are compiled anew, and those that leave them as they are.

The first are run without a compiler; what only compilation can find is found by `BOTH`.
"""
THERE = {"tree_algorithm"}
"""What the package has already: it is taken out of the copy first."""
BOTH = """
import numpy as np
import liedyn as ld

b = ld.Builder("both")
for k, (kind, given) in enumerate((
        ("arc", {"pitch": 0.7}), ("revolute", {"axis": (0.2, 1.0, 0.3)}), ("spherical", {}))):
    b.body(f"b{k}", 1.0 + k, (0.1, 0.3 * k, 0.2), (0.1, 0.2, 0.3))
    b.joint(f"j{k}", kind, f"b{k - 1}" if k else "ground", f"b{k}", (0.3, 0.1 * k, 0.0), **given)
b.constraint("law", "cubic", coefficients={"j0": (1.0, 0.0, -0.4), "j1": (-1.5, 0.3, 0.0)}, offset=0.1)
robot = b.build()
q = ld.close(robot, np.r_[0.3, 0.2, robot.home[2:]])
v = ld.complete_velocity(robot, q, {"j1": -1.1, "j2.rx": 0.2, "j2.ry": 0.3, "j2.rz": -0.1})
ss = ld.linearize(robot, q, v, np.ones(5))
tau = ld.rnea(robot, np.tile(q, (5, 1)), np.tile(v, (5, 1)), np.ones((5, 5)))
print(*ss.A.ravel().tolist(), *ss.f0.tolist(), *tau.ravel().tolist())
"""
"""A joint and a constraint that are additions: the numbers of one state's linear model, and of rows in registers."""
STEP = re.compile(r"(New file|In|Then this runs) ?(?:`([^`]+)`)?(?:, after)?:\n\n```python\n(.*?)```"
                  r"(?:\n\nadd:\n\n```python\n(.*?)```)?", re.S)


def take_out(text, sources):
    """Undo an addition that the package has; the walk shows it as it stands there."""
    for what, path, code, added in STEP.findall(text):
        if what == "New file":
            assert sources.pop(path) == code, path
        elif added:
            assert sources[path].count(code + added) == 1, path
            sources[path] = sources[path].replace(code + added, code)


def add(text, sources):
    """Make an addition; returns the files it touches, and what is to be run."""
    touched, runs = set(), []
    for what, path, code, added in STEP.findall(text):
        if what == "Then this runs":
            runs.append(code)
            continue
        touched.add(path)
        if what == "New file":
            assert path not in sources, path
            sources[path] = code
        else:
            assert sources[path].count(code) == 1, f"{path}: {code!r} stands there {sources[path].count(code)} times"
            sources[path] = sources[path].replace(code, code + added)
    return touched, runs


def write(sources, folder):
    """The folder is that of the last run: what stays the same is not written again; its kernels are in the cache."""
    for file in folder.rglob("*.py"):
        if str(file.relative_to(folder)) not in sources:
            file.unlink()
    for path, source in sources.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text() != source:
            file.write_text(source)


@pytest.mark.parametrize("names", COPIES, ids=", ".join)
def test_additions(names):
    """All of a copy in one process, which compiles once what they have in common."""
    folder = Path(tempfile.gettempdir()) / f"liedyn_with_{names[0]}"
    sources = {str(file.relative_to(ROOT)): file.read_text() for kind in ("py", "pyi")
               for file in (ROOT / "liedyn").rglob(f"*.{kind}")}
    program = f"import liedyn\nassert liedyn.__file__.startswith({str(folder)!r})\n"
    for name in names:
        text = (ROOT / "docs" / "contributing" / f"{name}.md").read_text()
        if name in THERE:
            take_out(text, sources)
        touched, (code,) = add(text, sources)
        assert len(touched) <= MOST_FILES[name]
        program += f"exec(compile({code!r}, '{name}.md', 'exec'), {{}})\n"
    write(sources, folder)
    environment = with_kernels(folder)
    if names != COPIES[0]:
        process(program, folder, **environment)
        return
    process(program, folder, **environment, LIEDYN_COMPILE="never")
    found = [np.array(process(BOTH, folder, **environment, **given).stdout.split(), float)
             for given in ({}, {"LIEDYN_COMPILE": "never"})]
    assert found[0].size == 8 * 8 + 8 + 5 * 5
    np.testing.assert_allclose(*found, rtol=1e-11, atol=1e-11)
