"""What the README shows works, and its links lead somewhere; the pages that it leads to are run in test_docs.py."""
import re
import tomllib
from pathlib import Path


ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)
    assert blocks
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["tr"].robot == names["robot"].name == "loader"


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(links) > 10
    assert not [link for link in links if not (ROOT / link).exists()]


def test_every_package_is_installed():
    """What is missing in pyproject.toml would be missing in a wheel, and only there."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {".".join(file.relative_to(ROOT).parts[:-1]) for file in (ROOT / "liedyn").rglob("__init__.py")}
    assert set(listed) == found | {"liedyn_robots"}
