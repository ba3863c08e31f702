"""VALIDATION.md names the comparisons that marked tests make; their errors may differ from machine to machine."""
import importlib

from benchmarks.validation import PAGE, comparison, listed


def marked(module):
    """The comparisons that a module of tests makes."""
    tests = vars(importlib.import_module(module)).values()
    return {comparison(test) for test in tests if getattr(test, "__module__", None) == module
            if any(mark.name == "validation" for mark in getattr(test, "pytestmark", ()))}


def test_page_is_in_step(request):
    """`python -m benchmarks.validation` writes it anew."""
    rows = listed(PAGE.read_text(encoding="utf-8"))
    modules = {test.split(".py")[0] for *_, test in rows}
    modules |= {item.module.__name__ for item in request.session.items if item.get_closest_marker("validation")}
    assert set().union(*map(marked, modules)) == rows != set()
