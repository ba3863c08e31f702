"""What CONTRIBUTING shows how to add, added to a copy of the package, and tried there.

Each file in `additions` has EDITS (file of the package, text that it contains once, text in its place), FILES (new
ones) and a function `check` that runs with the copy.
"""
import importlib
import tempfile
from pathlib import Path

import pytest

import liedyn
from processes import KEPT, process

PACKAGE, TESTS = Path(liedyn.__file__).parent, Path(__file__).parent
LARGEST = {"joint": 5, "constraint": 5}  # files that may be touched


def put(file, text):
    """Write what is new: files that stay as they are keep their kernels in the cache."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


def copy_with(addition, folder):
    """The package with an addition, and how many files that touches; in a place of its own, where kernels are kept."""
    sources = {str(file.relative_to(PACKAGE)): file.read_text() for file in PACKAGE.rglob("*.py")}
    sources |= {"py.typed": ""} | addition.FILES
    for name, old, new in addition.EDITS:
        assert sources[name].count(old) == 1, (name, old)
        sources[name] = sources[name].replace(old, new)
    for file in folder.rglob("*.py"):
        if str(file.relative_to(folder / "liedyn")) not in sources:
            file.unlink()
    for name, text in sources.items():
        put(folder / "liedyn" / name, text)
    return len({name for name, _, _ in addition.EDITS} | set(addition.FILES))


@pytest.mark.parametrize("name", LARGEST)
def test_addition(name):
    addition = importlib.import_module(f"additions.{name}")
    folder = Path(tempfile.gettempdir()) / f"liedyn_with_{name}"
    assert copy_with(addition, folder) <= LARGEST[name]
    process(f"""
import sys

import liedyn

assert liedyn.__file__.startswith({str(folder)!r})
sys.path.append({str(TESTS)!r})
from additions.{name} import check

check()
""", folder, **KEPT)
