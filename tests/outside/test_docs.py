"""The site is made without a warning: pages run, links lead somewhere, and all public names are in it."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forked_kernels import forked_kernels

import liedyn as ld

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SHORTER = {
    "howto/identification": {"iterations=20)": "iterations=2)",
                             "include=friction)\nt =": "include=friction, iterations=2)\nt ="},
    "howto/large_jobs": {"size=(200, 6)": "size=(50, 6)"},
    "howto/ddp": {"first.v[-1], 2.0,": "first.v[-1], 0.5,", "np.zeros(4), 2.0, dt=1e-3": "np.zeros(4), 0.5, dt=1e-3"},
    "tutorials/digging": {"tolerance=1e-3, solver=ld.NLPSolver(optimality=1e-5)":
                          "tolerance=None, intervals=6, solver=ld.NLPSolver(optimality=1e-3)"},
}
"""Searches and runs of pages that tests make to their ends: `test_excitation`, `test_large`, `test_mpc_schedule`, and
`test_optimal_motion_loops` for the loader that digs."""


def test_every_public_name_has_a_page():
    named = re.findall(r"^   (\w+)$", (DOCS / "api" / "index.md").read_text(encoding="utf-8"), re.M)
    assert not set(ld.__all__) - set(named)
    assert not set(ld.lie.__all__) - set(named)


def test_the_site_is_made(tmp_path):
    """With warnings as errors: a page whose code fails, a link that leads nowhere, a page that none leads to."""
    for module in ("sphinx", "myst_nb", "numpydoc", "pydata_sphinx_theme", "sphinx_design", "latex2mathml", "mujoco",
                   "control", "jax", "casadi"):
        pytest.importorskip(module)
    made = shutil.ignore_patterns("_build", "notebooks", "generated", "__pycache__")
    for folder in ("docs", "benchmarks", "notebooks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=made if folder == "docs" else None)
    for name, changes in SHORTER.items():
        page = tmp_path / "docs" / f"{name}.md"
        text = page.read_text(encoding="utf-8")
        for whole, part in changes.items():
            assert text.count(whole) == 1
            text = text.replace(whole, part)
        page.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", "docs/_build/html"]
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    style = str(DOCS / "_static" / "matplotlibrc")
    with forked_kernels(PYTHONPATH=paths, LIEDYN_QUIET="1", MATPLOTLIBRC=style) as environment:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-5000:]
    page = (tmp_path / "docs" / "_build" / "html" / "tutorials" / "press.html").read_text(encoding="utf-8")
    assert "data:image/png" in page or "_images/" in page  # its cells were run
    html = tmp_path / "docs" / "_build" / "html"
    pictures = [(path.relative_to(html).as_posix(), tag) for path in html.rglob("*.html")
                for tag in re.findall(r"<img[^>]*>", path.read_text(encoding="utf-8"))]
    silent = [(page, tag[:90]) for page, tag in pictures
              if not page.startswith("notebooks/") and "toggler" not in tag
              and not re.search(r'alt="[^"]*\s[^"]*"', tag)]
    assert not silent, "pictures without words that say what is seen"
    assert not [path for path in html.rglob("*.html") if f"{ROOT}{os.sep}" in path.read_text(encoding="utf-8")]
    # the site needs no network: what pages load is beside them
    assert not re.findall(r"""<(?:script|link|img)[^>]*(?:src|href)=["'](?:https?:)?//[^"']*""", page)
