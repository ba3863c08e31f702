"""``python -m benchmarks.validation``: run the tests that compare with independent numbers, and write VALIDATION.md.

A comparison joins by a mark on its test, ``@pytest.mark.validation("accelerations and multipliers", robots="five_bar",
oracle="SymPy, 60 digits (Spencer 2004)")``, and by comparing with `off` or `relative` of tests/comparison.py.
"""
import sys
from pathlib import Path

import pytest

from benchmarks import machine
from benchmarks.tables import markdown

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path(__file__).with_name("VALIDATION.md")
HEAD = """# Validation

What liedyn was compared with: numbers that others computed, or that tests compute by other means. Made by
`python -m benchmarks.validation`, which runs these tests. The error is the largest difference in all states of a test,
relative to the largest of the numbers compared at once, or to one where these are small; what is allowed, and why,
stands in the test. Motions have the error of their integration, differences that of the differences.
"""
ABOUT = ("date", "liedyn", "processor", "Python", "numpy", "numba", "pin", "sympy", "mpmath")
HEADING = ("compared", "robots", "test", "numbers", "worst error")


class Comparisons:
    """A pytest plugin: what the marked tests compare.

    Attributes
    ----------
    found : dict
        By `comparison`: (how many numbers, error) each time; empty lists until tests run.
    """

    def __init__(self):
        self.found = {}

    def pytest_collection_finish(self, session):
        for item in session.items:
            self.found.setdefault(comparison(item.function), [])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        from comparison import COMPARED  # in tests/, which pytest has put on the path

        COMPARED.clear()
        result = yield
        self.found[comparison(item.function)] += COMPARED
        return result


def comparison(test):
    """(oracle, what, robots, name) of a marked test function."""
    mark = next(mark for mark in test.pytestmark if mark.name == "validation")
    what, = mark.args
    return mark.kwargs["oracle"], what, mark.kwargs["robots"], f"{test.__module__}.py::{test.__name__}"


def page(found):
    """The page in Markdown."""
    about = machine.description()
    parts = [HEAD, ", ".join(f"{name} {about[name]}" for name in ABOUT) + ".", ""]
    for oracle in dict.fromkeys(oracle for oracle, *_ in found):
        rows = [(what, robots, f"`{test}`", f"{sum(count for count, _ in compared):,}",
                 f"{max(error for _, error in compared):.1e}")
                for (other, what, robots, test), compared in found.items() if other == oracle]
        parts += [f"## {oracle}", "", markdown(HEADING, rows, text=3), ""]
    return "\n".join(parts)


def listed(text):
    """The comparisons that a page names, as `comparison` does."""
    names, oracle = set(), None
    for line in text.splitlines():
        if line.startswith("## "):
            oracle = line.removeprefix("## ")
        elif oracle and line.startswith("| "):
            what, robots, test = (cell.strip(" `") for cell in line.strip("|").split("|")[:3])
            names.add((oracle, what, robots, test))
    return {name for name in names if name[1] != HEADING[0]}


def main():
    """Run the tests and write the page; returns the exit status."""
    plugin = Comparisons()
    status = pytest.main(["-m", "validation", "-p", "no:cacheprovider", "--rootdir", str(ROOT), str(ROOT / "tests")],
                         plugins=[plugin])
    idle = [test for (*_, test), compared in plugin.found.items() if not compared]
    if status or idle:
        print(f"validation: {PAGE.name} is as it was; tests that have compared nothing: {idle}", file=sys.stderr)
        return int(status) or 1
    PAGE.write_text(page(plugin.found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
