"""VALIDATION.md names the comparisons that the marked tests make; their errors are not compared."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_page_is_in_step():
    result = subprocess.run([sys.executable, "-m", "benchmarks.validation", "--check"], cwd=ROOT, text=True,
                            capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert result.returncode == 0, result.stderr or result.stdout
