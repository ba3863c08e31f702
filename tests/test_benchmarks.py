"""The benchmarks run and print every row; how fast anything is, is not tested."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pinocchio")

ROOT = Path(__file__).resolve().parents[1]


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(ROOT)})


def test_quick_run_prints_every_row(tmp_path):
    result = run("--quick", "--json", str(tmp_path / "times.json"))
    assert result.returncode == 0, result.stderr
    lines = [line.strip("|").split("|") for line in result.stdout.splitlines() if "|" in line]
    cells = [[cell.strip() for cell in line] for line in lines]
    rows = {tuple(row[:2]) for row in cells} | {row[0] for row in cells}
    for robot in ("panda (arm)", "talos (humanoid)"):
        for algorithm in ("rnea", "crba", "aba", "rnea_derivatives", "aba_derivatives", "body_jacobian"):
            assert (robot, algorithm) in rows
    assert rows >= {"five_bar", "loader", "stewart", "delta", "cassie_like", "panda", "talos"}
    numbers = json.loads((tmp_path / "times.json").read_text())
    assert all(t["median"] > 0 for row in numbers["trees"] + numbers["loops"] for t in row["timings"].values())


def test_results_come_from_full_runs_only():
    result = run("--quick", "--write")
    assert result.returncode == 1 and "--quick" in result.stderr and len(result.stderr.splitlines()) == 1
