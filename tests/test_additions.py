"""The additions that docs/contributing walks through, applied to a copy of the package and run."""
import re
import tempfile
from pathlib import Path

import pytest

from processes import KEPT, ROOT, process

MOST_FILES = {"joint": 5, "family_of_constraints": 5}
"""How many files an addition may touch, the registering line included."""
STEP = re.compile(r"(New file|In|Then this runs) ?(?:`([^`]+)`)?(?:, after)?:\n\n```python\n(.*?)```"
                  r"(?:\n\nadd:\n\n```python\n(.*?)```)?", re.S)


def copy_with(text, folder):
    """Write the package with an addition; returns the files it touches, and what is to be run.

    The folder is the same for all runs, and what stays the same is not written again: its kernels are in the cache.
    """
    sources = {str(file.relative_to(ROOT)): file.read_text() for file in (ROOT / "liedyn").rglob("*.py")}
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
    for file in folder.rglob("*.py"):
        if str(file.relative_to(folder)) not in sources:
            file.unlink()
    for path, source in sources.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text() != source:
            file.write_text(source)
    return touched, runs


@pytest.mark.parametrize("name", MOST_FILES)
def test_addition(name):
    folder = Path(tempfile.gettempdir()) / f"liedyn_with_{name}"
    touched, (code,) = copy_with((ROOT / "docs" / "contributing" / f"{name}.md").read_text(), folder)
    assert len(touched) <= MOST_FILES[name]
    process(f"import liedyn\nassert liedyn.__file__.startswith({str(folder)!r})\n{code}", folder, **KEPT)
