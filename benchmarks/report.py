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
        "machine", and "sections": by name "results" (or "failed", the message) and the machine they were measured on.
    """
    measured = numbers["sections"]
    parts = ["# Benchmarks", "", HEAD, "",
             markdown(("machine", ""), list(numbers["machine"].items())), ""]
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
    return "\n".join(parts).rstrip() + "\n"
