"""The additions that docs/CONTRIBUTING.md walks through: applied to a copy of the package, and run."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "CONTRIBUTING.md").read_text()
MOST_FILES = {"A joint": 5, "A family of constraints": 5, "A tree algorithm": 2, "A file format": 2, "An integrator": 2}
"""How many files an addition may touch, the registering line included."""
STEP = re.compile(
    r"(New file|In|Then this runs) ?(?:`([^`]+)`)?(, after)?:\n\n```python\n(.*?)```"
    r"(?:\n\nadd:\n\n```python\n(.*?)```)?", re.S)


def sections():
    parts = re.split(r"^## ", TEXT, flags=re.M)[1:]
    return {name: text for name, _, text in (part.partition("\n") for part in parts) if name in MOST_FILES}


def apply(text, root):
    """Make the changes that a section describes; returns the files touched, and what is to be run."""
    touched, runs = set(), []
    for what, path, _, code, added in STEP.findall(text):
        if what == "Then this runs":
            runs.append(code)
            continue
        file = root / path
        touched.add(path)
        if what == "New file":
            assert not file.exists(), path
            file.write_text(code)
        else:
            before = file.read_text()
            assert before.count(code) == 1, f"{path}: {code!r} stands there {before.count(code)} times"
            file.write_text(before.replace(code, code + added))
    return touched, runs


def test_every_addition_is_there():
    assert set(sections()) == set(MOST_FILES)


@pytest.mark.parametrize("name", MOST_FILES)
def test_additions(name, tmp_path):
    shutil.copytree(ROOT / "liedyn", tmp_path / "liedyn", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "robots", tmp_path / "robots")
    touched, runs = apply(sections()[name], tmp_path)
    assert len(touched) <= MOST_FILES[name] and len(runs) == 1
    program = tmp_path / "addition.py"
    program.write_text(f"import liedyn\nassert liedyn.__file__.startswith({str(tmp_path)!r})\n{runs[0]}")
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
