"""Programs as functions in C99: straight lines in parts that compilers can digest, with a result code.

A function computes its results, and asks all guards. If one does not hold, or a number is not finite, the results are
not numbers and the code says so: there is no wrong result without a notice.
"""
import math
from collections import defaultdict
from typing import NamedTuple

from liedyn.machine.program.expressions import CALL, INPUT, NEGATE, SELECT, Expression, value_of

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
        variants=" || ".join(calls), results=" && ".join(f"{check}({x}, {size})" for x, size in results.items()),
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
    order, stores = scheduled(trace)
    blocks = [order[k:k + longest] for k in range(0, len(order), longest)] or [[]]
    defined, last = {}, {}
    for k, block in enumerate(blocks):
        for x in block:
            if isinstance(x, Expression):
                defined[x.number] = last[x.number] = k
            for y in _read(x):
                last[y.number] = k
    slots, count = _slots(blocks, defined, last)
    return [_part(block, k, defined, slots, stores, language) for k, block in enumerate(blocks)], count


def scheduled(trace):
    """What is used of a program, in order: expressions, and guards where their numbers are known; and the places in
    result arrays of each expression, by number, and of constants, by value."""
    roots = [y for values in trace.results.values() for y in values]
    guards, stores = defaultdict(list), defaultdict(list)
    for guard in trace.program.guards:
        both = [x for x in guard[:2] if isinstance(x, Expression)]
        guards[max((x.number for x in both), default=-1)].append(guard)
        roots += both
    for name, values in trace.results.items():
        for k, x in enumerate(values):
            stores[x.number if isinstance(x, Expression) else -1].append((name, k, x))
    used, order = trace.program.used_by(roots), []
    for x in trace.program:
        if x.number in used:
            if x.operation != INPUT:
                order.append(x)
            order += guards[x.number]
            if x.operation == INPUT:
                order += [(name, k, x) for name, k, _ in stores.pop(x.number, ())]
    return order + stores.pop(-1, []), stores


def _read(x):
    """The computed expressions that a line reads."""
    arguments = x.arguments if isinstance(x, Expression) else x
    return [y for y in arguments if isinstance(y, Expression) and y.operation != INPUT]


def _slots(blocks, defined, last):
    """Places for numbers that later blocks read, each free again after the last of them; and their count."""
    slots, free, count, leaving = {}, [], 0, defaultdict(list)
    for k, block in enumerate(blocks):
        for x in block:
            if isinstance(x, Expression) and last[x.number] > k:
                if not free:
                    free.append(count)
                    count += 1
                slots[x.number] = free.pop()
                leaving[last[x.number]].append(slots[x.number])
        free += leaving[k]
    return slots, count


def _part(block, k, defined, slots, stores, language):
    lines, arrays = [], set()

    def text(x):
        if not isinstance(x, Expression):
            return language.constant(x)
        if x.operation == INPUT:
            arrays.add(x.arguments[0])
            return f"{x.arguments[0]}[{x.arguments[1]}]"
        if defined[x.number] != k:
            arrays.add("w")
            return f"w[{slots[x.number]}]"
        return f"x{x.number}"

    def store(name, at, x):
        arrays.add(name)
        lines.append(f"{name}[{at}] = {text(x)};")

    for x in block:
        if not isinstance(x, Expression):
            if isinstance(x[0], str):
                store(*x)
            else:
                lines.append(f"good &= {language.comparison(x, text)};")
            continue
        lines.append(f"const {language.real} x{x.number} = {formula(x, text, language)};")
        for name, at, _ in stores.get(x.number, ()):
            store(name, at, x)
        if x.number in slots:
            arrays.add("w")
            lines.append(f"w[{slots[x.number]}] = x{x.number};")
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
