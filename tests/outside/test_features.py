"""The table "what liedyn can": each line of code runs, or is at least code where that takes long."""
import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "features.md").read_text(encoding="utf-8")
NOT_RUN = "ld.identify(", "ld.generate_c(", "ld.export_fmu(", "ld.view(", "ld.specialize(", "from liedyn import jax"


def test_each_line_of_the_table_runs():
    rows = [re.split(r" *\| *", row)[1:-1] for row in PAGE.splitlines() if re.match(r"\| .*\| `", row)]
    assert len(rows) > 30 and {len(row) for row in rows} == {6}
    lines, space = [row[1].strip("`") for row in rows], {}
    exec(re.search(r"```python\n(.*?)```", PAGE, re.S)[1], space)
    for line in lines:
        code = compile(line, line, "exec")
        if not line.startswith(NOT_RUN):
            exec(code, space)
    for start in NOT_RUN:  # the others are written as they are called
        assert sum(line.startswith(start) for line in lines) == 1
        name = re.match(r"ld\.(\w+)", start)
        assert name is None or callable(getattr(space["ld"], name[1]))
