"""Programs as functions in C99: straight lines in parts that compilers can digest, with a result code.

A function computes its results, and asks all guards. If one does not hold, or a number is not finite, the results are
not numbers and the code says so: there is no wrong result without a notice.
"""
import math
from typing import NamedTuple

from liedyn.machine.program.expressions import CALL, INPUT, NEGATE, SELECT, Expression, value_of
from liedyn.machine.program.program_parts import divided

LONGEST = 1500
"""Operations of a part: time and memory of compilers grow faster than a function."""

FUNCTION = """\
{linkage}int {prefix}_{name}({arguments})
{{
    const int inputs = {finite};
    int good = 0;
    if (!inputs) {{
        good = {PREFIX}_NOT_FINITE;
    }} else if (!({variants})) {{
        good = {PREFIX}_GUARD;
    }} else if (!({results})) {{
        good = {PREFIX}_NOT_FINITE;
    }}
    if (good != {PREFIX}_OK) {{
{clear}
    }}
    return good;
}}
"""
PART = """\
static int {name}({arguments})
{{
    int good = 1;
{lines}
    return good;
}}
"""
VARIANT = """\
static int {name}({arguments})
{{
{room}    return {parts};
}}
"""


class Language(NamedTuple):
    """How numbers are written.

    Attributes
    ----------
    real : str
        Name of the type.
    suffix : str
        What ends constants, and names of functions of module math.
    least : float
        The smallest constant that is written as it is: those below only keep divisors from being zero.
    resolution : float
        Numbers that guards bound by less than this are bounded by this: rounding errors are larger than such bounds.
    """

    real: str
    suffix: str
    least: float
    resolution: float = 0.0

    def function(self, name):
        """What is called for a function of module math."""
        return name + self.suffix

    def comparison(self, guard, text):
        """A guard, where `text` writes its numbers."""
        bound, larger = value_of(guard.larger), text(guard.larger)
        if 0.0 < bound < self.resolution:
            larger = f"{self.constant(self.resolution / bound)} * {larger}"
        return f"{text(guard.smaller)} {'<' if guard.strict else '<='} {larger}"

    def constant(self, x):
        """A finite number."""
        x = float(x)
        if not math.isfinite(x):
            raise ValueError(f"a program has no constant {x}")
        return f"{math.copysign(max(abs(x), self.least), x) if x else 0.0!r}{self.suffix}"


class SourcePart(NamedTuple):
    """Consecutive lines of a program: their text, and the arrays that they read or write."""

    lines: list
    arrays: set


def function_text(prefix, name, language, traces, public=True):
    """Source of one public function, of its parts and variants.

    Parameters
    ----------
    prefix : str
        An identifier in lower case, with which names begin.
    name : str
    language : Language
    traces : list of TracedFunction
        The same function traced at different reference states: the first one whose guards hold gives the result.
    public : bool
        False for a function that only its own file calls.

    Returns
    -------
    str
    """
    inputs, results = traces[0].inputs, {x: len(values) for x, values in traces[0].results.items()}
    results = {x: size for x, size in results.items() if size}
    real, parts, calls = language.real, [], []
    for k, trace in enumerate(traces):
        text, call = _variant(f"{prefix}_{name}_at_{k}", language, trace)
        parts.append(text)
        calls.append(call)
    check = f"{prefix}_finite"
    return "\n".join([*parts, FUNCTION.format(
        linkage="" if public else "static ", prefix=prefix, PREFIX=prefix.upper(), name=name,
        arguments=declared(real, inputs, results),
        finite=" && ".join(f"{check}({x}, {size})" for x, size in inputs.items()),
        variants=" || ".join(calls),
        results=" && ".join(f"{check}({x}, {size})" for x, size in results.items()) or "1",
        clear="\n".join(f"        {prefix}_clear({x}, {size});" for x, size in results.items()))])


def declared(real, inputs, results):
    """Parameters of a function, with their sizes, which C does not check."""
    return ", ".join([f"const {real} {x}[{size}]" for x, size in inputs.items()]
                     + [f"{real} {x}[{size}]" for x, size in results.items()])


def _variant(name, language, trace):
    """Source of one traced function, and its call."""
    real = language.real
    sizes = trace.inputs | {x: len(values) for x, values in trace.results.items() if len(values)}
    parts, count = split(trace, language)
    texts, calls = [], []
    for k, part in enumerate(parts):
        used = [x for x in (*sizes, "w") if x in part.arrays]
        arguments = [f"{'const ' if x in trace.inputs else ''}{real} *{x}" for x in used]
        texts.append(PART.format(name=f"{name}_{k}", arguments=", ".join(arguments) or "void",
                                 lines="\n".join(f"    {x}" for x in part.lines)))
        calls.append(f"{name}_{k}({', '.join(used)})")
    used = [x for x in sizes if any(x in part.arrays for part in parts)]
    texts.append(VARIANT.format(
        name=name, arguments=", ".join(f"{'const ' if x in trace.inputs else ''}{real} *{x}" for x in used) or "void",
        room=f"    {real} w[{count}];\n" if count else "", parts=" && ".join(calls)))
    return "\n".join(texts), f"{name}({', '.join(used)})"


def split(trace, language, longest=LONGEST):
    """The parts of a traced function, and how many numbers they hand on to each other.

    Parameters
    ----------
    trace : TracedFunction
    language : Language
    longest : int
        Operations of a part.

    Returns
    -------
    parts : list of SourcePart
    count : int
    """
    parts = divided(trace, longest)
    return [_part(parts, k, language) for k in range(len(parts.lines))], parts.size


def _part(parts, k, language):
    lines, arrays = [], set()

    def text(x):
        if not isinstance(x, Expression):
            return language.constant(x)
        if x.operation == INPUT:
            arrays.add(x.arguments[0])
            return f"{x.arguments[0]}[{x.arguments[1]}]"
        if parts.defined[x.number] != k:
            arrays.add("w")
            return f"w[{parts.slots[x.number]}]"
        return f"x{x.number}"

    def store(name, at, x):
        arrays.add(name)
        lines.append(f"{name}[{at}] = {text(x)};")

    for x in parts.lines[k]:
        if not isinstance(x, Expression):
            if isinstance(x[0], str):
                store(*x)
            else:
                lines.append(f"good &= {language.comparison(x, text)};")
            continue
        lines.append(f"const {language.real} x{x.number} = {formula(x, text, language)};")
        for name, at, _ in parts.stores.get(x.number, ()):
            store(name, at, x)
        if x.number in parts.slots:
            arrays.add("w")
            lines.append(f"w[{parts.slots[x.number]}] = x{x.number};")
    return SourcePart(lines, arrays)


def formula(x, text, language):
    """The right side of a line."""
    arguments = x.arguments
    if x.operation == CALL:
        return f"{language.function(arguments[0])}({', '.join(map(text, arguments[1:]))})"
    if x.operation == NEGATE:
        return f"-{text(arguments[0])}"
    if x.operation == SELECT:
        a, b, first, second = map(text, arguments)
        return f"{a} < {b} ? {first} : {second}"
    return f"{text(arguments[0])} {x.operation} {text(arguments[1])}"
