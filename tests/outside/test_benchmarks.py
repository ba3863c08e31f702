"""The benchmarks run and print every row; how fast anything is, is not tested."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import native, report, second_derivatives
from benchmarks.errors import MissingPeer, SlowCompilerError
from benchmarks.targets import ONE_CORE

pytest.importorskip("pinocchio")

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(ROOT)})


def timings(thing):
    """All times in the numbers of a section."""
    if isinstance(thing, dict):
        for key, value in thing.items():
            yield from (t for t in value.values() if t) if key == "timings" else timings(value)
    elif isinstance(thing, list):
        for value in thing:
            yield from timings(value)


def differences(results):
    """Timings that are the difference of two: of short runs on a busy machine even its sign is noise."""
    rows = results["rows"] if isinstance(results, dict) and "rows" in results else ()
    return [row["timings"]["iteration"] for row in rows if "iteration" in row.get("timings", ())]


def test_quick_run_prints_every_row(tmp_path):
    result = run("--quick", "--json", str(tmp_path / "times.json"))
    assert result.returncode == 0, result.stderr
    lines = [line.strip("|").split("|") for line in result.stdout.splitlines() if "|" in line]
    cells = [[cell.strip() for cell in line] for line in lines]
    rows = {tuple(row[:2]) for row in cells} | {row[0] for row in cells}
    for robot in ("panda", "talos"):
        for algorithm in ("rnea", "crba", "aba", "rnea_derivatives", "aba_derivatives", "body_jacobian"):
            assert (robot, algorithm) in rows
    assert rows >= {"five_bar", "loader", "stewart", "delta", "cassie_like", "panda", "talos"}
    assert {row[1] for row in cells if row[0] == "panda, 1,000"} >= {"rnea", "aba_derivatives"}
    numbers = json.loads((tmp_path / "times.json").read_text())["sections"]
    for name, section in numbers.items():
        found = list(timings(section["results"]))
        assert found and all(t[0] > 0 for t in found if t not in differences(section["results"])), name


def test_results_come_from_full_runs_only():
    result = run("--quick", "--write")
    assert result.returncode == 1 and "--quick" in result.stderr and len(result.stderr.splitlines()) == 1


def test_levels_have_tables_of_their_own():
    """Below the others; batches in registers of four doubles have half of the targets."""
    numbers = json.loads(report.STORE.read_text()) | {"levels": {}}
    alone, batches = report.text(numbers), numbers["sections"]["batches"]
    four_wide = batches | {"results": batches["results"] | {"width": 4}}
    numbers["levels"]["x86-64-v3"] = {"machine": numbers["machine"], "sections": {"batches": four_wide}}
    together = report.text(numbers)
    assert together.startswith(alone)
    of_level = together.removeprefix(alone)
    assert "# Benchmarks for x86-64-v3" in of_level and "## Batches" in of_level
    assert f"({ONE_CORE['rnea']:g})" in alone and f"({ONE_CORE['rnea'] / 2:g})" in of_level
    assert f"({ONE_CORE['rnea']:g})" not in of_level


def test_headers_of_native_peers_are_found_in_wheels():
    """Pinocchio's and Boost's come with `pin`, Eigen's also with CasADi."""
    pytest.importorskip("casadi")
    for header in (*native.HEADERS, "boost/fusion/container/vector.hpp", "eigen3/unsupported/Eigen/CXX11/Tensor"):
        assert any((folder / header).exists() for folder in native._header_folders()), header


def test_a_slow_compiler_is_ended_with_its_children(tmp_path):
    driver = tmp_path / "driver"
    driver.write_text("#!/bin/sh\nsh -c 'while :; do :; done'\nexit 1\n")
    driver.chmod(0o755)
    with pytest.raises(SlowCompilerError, match=r"^driver takes more than 1 s$") as caught:
        native.compile_to(tmp_path / "peer.so", [str(driver)], 1)
    assert caught.value.seconds == 1 and not list(tmp_path.glob("*.so"))


def test_a_compiler_that_fails_says_why(tmp_path):
    with pytest.raises(MissingPeer, match=r"^sh fails: no such register$"):
        native.compile_to(tmp_path / "peer.so", ["/bin/sh", "-c", "echo no such register >&2; exit 1"], 5)
    assert not list(tmp_path.glob("*.so"))


def test_a_peer_that_compiles_too_long_is_told_in_the_table():
    timing = (1e-6, 1e-6, 1e-6)
    row = {"robot": "chain20", "timings": dict.fromkeys((*second_derivatives.LOOPS, "native"), timing),
           "missing": {"CasADi": ("> 20 s", "gcc takes more than 20 s")}}
    cells = next(line for line in second_derivatives.report([row]).splitlines() if "chain20" in line).split("|")
    assert cells[2].strip() == "1.00 (1.00-1.00)" and cells[5].strip() == "> 20 s" and cells[7].strip() == "missing"
    assert "CasADi, chain20: gcc takes more than 20 s." in second_derivatives.report([row])
