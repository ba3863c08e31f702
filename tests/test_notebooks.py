"""Every notebook runs from its first cell to its last, and is committed with what it printed and drew."""
import json
import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LARGEST = 150_000  # bytes; figures are small on purpose


def execute(notebook, folder):
    """Run all cells in place, with this interpreter and this source tree; a cell that fails raises."""
    nbclient = pytest.importorskip("nbclient")
    spec = folder / "kernels" / "liedyn"
    spec.mkdir(parents=True)
    search = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    (spec / "kernel.json").write_text(json.dumps({
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "liedyn", "language": "python",
        "env": {"PYTHONPATH": os.pathsep.join(filter(None, search)), "MPLBACKEND": ""},
    }))
    before = os.environ.get("JUPYTER_PATH")
    os.environ["JUPYTER_PATH"] = str(folder)
    try:
        # no limit of time: a cell may have to compile its kernels, on a machine that has other work
        nbclient.NotebookClient(notebook, timeout=None, kernel_name="liedyn",
                                resources={"metadata": {"path": str(folder)}}).execute()
    finally:
        os.environ.pop("JUPYTER_PATH")
        if before is not None:
            os.environ["JUPYTER_PATH"] = before


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    execute(notebook, tmp_path)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_committed_with_outputs(path):
    text = path.read_text(encoding="utf-8")
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), "run it from a fresh kernel"
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert len(text) < LARGEST
    # where it was made is nobody's business
    assert not re.findall(r"(?:/home|/tmp|/root|/work|/Users|[A-Z]:\\\\)[\w/.-]*", text)
