"""Every notebook runs from its first cell to its last, and is committed with what it printed and drew."""
import json
import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ONCE = {
    "for _ in range(3):  # timed": "for _ in range(1):",
    "[-12.0, -8.0, -4.0, 0.0, 4.0, 8.0, 12.0]": "[-12.0, 12.0]",
    '(0.0, ":"), (1.0, "-"), (2.0, "--")': '(2.0, "--"),',
}
"""What a notebook does several times, for the sake of its time or of a picture, here it does once or twice."""
LARGEST = 300_000  # bytes


RESET = """%reset -f
%cd -q {folder}
import matplotlib.pyplot
matplotlib.pyplot.close("all")
matplotlib.rcdefaults()
%reset -f"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """One process for all notebooks, with this interpreter and this source tree."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    folder = tmp_path_factory.mktemp("jupyter")
    spec = folder / "kernels" / "liedyn"
    spec.mkdir(parents=True)
    search = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    (spec / "kernel.json").write_text(json.dumps({
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "liedyn", "language": "python",
        "env": {"PYTHONPATH": os.pathsep.join(filter(None, search)), "MPLBACKEND": ""},
    }))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder))
        manager = nbclient.NotebookClient(nbformat.v4.new_notebook(), kernel_name="liedyn").create_kernel_manager()
        yield manager
        if manager.has_kernel:
            nbclient.util.run_sync(manager.shutdown_kernel)(now=True)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, kernel, tmp_path):
    """All cells in place, from a process that knows no names; a cell that fails raises."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(RESET.format(folder=tmp_path)))
    for cell in notebook.cells:
        for several, once in ONCE.items():
            cell.source = cell.source.replace(several, once)
    # no limit of time: a cell may have to compile its kernels, on a machine that has other work
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, km=kernel, timeout=None, resources=where).execute()


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


def test_what_is_done_once_stands_in_a_notebook():
    sources = [line for path in NOTEBOOKS for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
               for line in cell["source"]]
    assert all(any(several in line for line in sources) for several in ONCE)
