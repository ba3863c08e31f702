"""What the README shows works, in its order, and every name in its table exists."""
import re
import tomllib
from pathlib import Path

import liedyn as ld

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)
    assert len(blocks) >= 4
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert (tmp_path / "run.npz").exists() and names["tr"].robot == names["robot"].name == "slider_crank"


def test_names_exist():
    table = re.search(r"^\| what \| functions \|\n(.*?)\n\n", README, re.M | re.S).group(1)
    for line in table.splitlines()[1:]:
        text = line.split("|")[2]
        module = re.match(r" `(liedyn\.\w+)`:", text)
        home = getattr(ld, module.group(1).split(".")[1]) if module else ld
        for name in re.findall(r"`(\w+)`", text.removeprefix(module.group(0) if module else "")):
            assert hasattr(home, name), f"{name} is not in {home.__name__}"


def test_every_package_is_installed():
    """What is missing in pyproject.toml would be missing in a wheel, and only there."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {".".join(file.relative_to(ROOT).parts[:-1]) for file in (ROOT / "liedyn").rglob("__init__.py")}
    assert set(listed) == found | {"liedyn_robots"}
