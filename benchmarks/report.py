"""From numbers to RESULTS.md and its plots."""
import json
from pathlib import Path

from benchmarks import sections, targets
from benchmarks.tables import markdown

RESULTS = Path(__file__).with_name("RESULTS.md")
STORE = Path(__file__).with_name("results.json")
PLOTS = Path(__file__).with_name("plots")

HEAD = """Made by `python -m benchmarks --write`, and the section on starting by
`python -m benchmarks --sections starting --write`. Peers that are not installed are listed as missing."""
LEVEL = """Made by `python -m benchmarks --level {level} --write`. Kernels and native peers are compiled for any
processor of that level (`g++ -march={level}`). Where its registers take four doubles, half of the targets of batches
holds."""
TARGETS = """## Targets

Every job of the plan, how many of its cases (robots, algorithms, sizes) reach the target, and the ratios seen: above
one where liedyn is faster. The cases are in the tables below. Ratios of medians on one machine, contenders interleaved.
"""


def write(numbers):
    """RESULTS.md, its plots and the numbers behind both."""
    for name in sections.SECTIONS:
        module, measured = sections.module(name), numbers["sections"].get(name, {})
        if "results" in measured and hasattr(module, "plot"):
            PLOTS.mkdir(exist_ok=True)
            module.plot(measured["results"], PLOTS)
    STORE.write_text(json.dumps(numbers, separators=(",", ":")) + "\n")
    RESULTS.write_text(text(numbers))


def text(numbers):
    """The report in Markdown.

    Parameters
    ----------
    numbers : dict
        "machine", and "sections": by name "results" (or "failed", the message) and the machine they were measured on;
        "levels": the same for levels of processors, by name.
    """
    parts = ["# Benchmarks", "", HEAD, "", *_parts(numbers)]
    for level, measured in numbers.get("levels", {}).items():
        parts += [f"# Benchmarks for {level}", "", LEVEL.format(level=level), "", *_parts(measured)]
    return "\n".join(parts).rstrip() + "\n"


def _parts(numbers):
    """Machine, targets and sections, as lines of Markdown."""
    measured = numbers["sections"]
    parts = [markdown(("machine", ""), list(numbers["machine"].items())), ""]
    lines = [targets.summary(*job) for name in sections.SECTIONS if "results" in measured.get(name, {})
             for job in getattr(sections.module(name), "target_pairs", lambda results: ())(measured[name]["results"])]
    if lines:
        parts += [TARGETS, targets.table(lines), ""]
    for name in sections.SECTIONS:
        if name not in measured:
            continue
        parts += [f"## {sections.module(name).TITLE}", ""]
        part = measured[name]
        other = part.get("machine", numbers["machine"])
        if any(other[key] != numbers["machine"][key] for key in ("liedyn", "date", "processor")):
            parts += [f"Measured with liedyn {other['liedyn']} on {other['date']}.", ""]
        report = sections.module(name).report
        parts += [report(part["results"]) if "results" in part else f"Failed: {part['failed']}", ""]
    return parts
