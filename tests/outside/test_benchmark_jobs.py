"""The scripts of newcomers' jobs: each is listed, its lines are counted, and the command runs some of them."""
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.jobs import __main__ as jobs

ROOT = Path(__file__).resolve().parents[2]


def test_every_script_is_a_job_with_a_title():
    assert {file.stem for file in jobs.HERE.glob("*.py")} == {*jobs.JOBS, "__init__", "__main__"}
    assert jobs.title("arm_regulator") == "A regulator for an arm without loops" and jobs.lines("arm_regulator") == 3


def test_jobs_are_run():
    command = [sys.executable, "-m", "benchmarks.jobs", "--repeats", "1", "arm_regulator", "elastic_legs"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True,
                            env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert result.returncode == 0, result.stderr
    rows = [line.strip("| ").split(" | ") for line in result.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == [jobs.title("arm_regulator"), jobs.title("elastic_legs")]
    assert all(float(seconds) > 0.0 for _, _, seconds in rows)


def test_a_job_that_is_none_is_refused(capsys):
    try:
        jobs.main(["no_such"])
    except SystemExit as ended:
        assert ended.code == 2 and "unknown jobs: no_such" in capsys.readouterr().err
    else:
        raise AssertionError("it went on")
