"""Programs as CUDA C++: a function of one state for any kernel, and kernels with one thread for each state.

A long program needs more numbers at a time than a thread has registers. It is then computed by several kernels, one
after the other, in chunks (`liedyn.machine.program.register_chunks`), or in stages that hand on numbers in memory.
"""
import string
import sys
from typing import NamedTuple

from liedyn.machine.program.c import Language, split
from liedyn.machine.program.register_chunks import chunks

LARGEST = {"double": 1e50, "float": 1e12}
"""Largest size of inputs."""
REGISTERS = {"double": 200, "float": 400}
"""How many numbers a program may need at a time in its own order, as measured on an H200. A thread has 255 registers of
half a double; what compilers cannot keep in them stays in the cache.
"""

CHUNK = """\
template <{types}> LIEDYN_INLINE int {name}_lines({arguments})
{{
    int good = 1;
{lines}
    return good;
}}
template <{types}> LIEDYN_INLINE int {name}({arguments})
{{
    unsigned largest = 0;
    const int good = {name}_lines({given});
    return good & (largest < liedyn_endless(({real})0));
}}
"""
FUNCTION = """\
/* Results of one state: arguments are arrays, or what has an operator []. Returns 1; or 0 if there is no result, which
 * is then not a number. */
template <{types}> LIEDYN_INLINE int {name}({arguments})
{{
    const int good = {bounded}
                     && ({variants});
    if (!good) {{
        {clear}
    }}
    return good;
}}
"""
KERNEL = """\
LIEDYN_KERNEL {name}({parameters})
{{
    LIEDYN_EACH(i, count) {{
{places}
{lines}
    }}
}}
"""
END = """\
if (ok[i]) {{
    ok[i] = 1;
}} else {{
    LIEDYN_ADD(failed);
    {clear}
}}"""


class CudaLanguage(Language):
    """`Language` with liedyn's own sine and cosine."""

    def function(self, name):
        return f"liedyn_{name}" if name in ("sin", "cos") else name + self.suffix


LANGUAGES = {"float64": CudaLanguage("double", "", 1e-300, 0.0), "float32": CudaLanguage("float", "f", 1e-30, 1e-4)}


class Launch(NamedTuple):
    """A kernel, and the names of the arrays that are its arguments.

    The arguments are the number of states; for each array its address, and the distances of the numbers of a state and
    of states; then the addresses of `ok`, one byte for each state, and of the number of states without a result.
    """

    kernel: str
    arrays: tuple


class CudaFunction(NamedTuple):
    """Source of a function.

    Attributes
    ----------
    text : str
        CUDA C++, which needs `liedyn.machine.program.cuda_texts.head` before it.
    inputs, work, results : dict
        Sizes of arrays by name; `work` is memory for what one kernel hands on to others.
    launches : tuple of Launch
        Kernels that are launched one after the other.
    """

    text: str
    inputs: dict
    work: dict
    results: dict
    launches: tuple


def cuda_function(name, dtype, variants):
    """Source of one function, and of its kernels.

    Parameters
    ----------
    name : str
        An identifier.
    dtype : {"float64", "float32"}
    variants : list of list of TracedFunction
        For each reference state the function; and after it, if they are better for kernels, stages that compute the
        same, among whose inputs are results of others. The first variant whose guards hold gives the result.

    Returns
    -------
    CudaFunction
    """
    return _Writer(name, LANGUAGES[dtype], variants[0][0]).function(variants)


class _Writer:
    """Writes one function; `trace` says what its arrays are."""

    def __init__(self, name, language, trace):
        self.name, self.language, self.real = name, language, language.real
        self.inputs, self.work = dict(trace.inputs), {}
        self.results = {x: len(values) for x, values in trace.results.items() if len(values)}

    def function(self, variants):
        """The `CudaFunction`."""
        texts, alternatives, steps = [], [], []
        for v, (whole, *stages) in enumerate(variants):
            name, calls = f"{self.name}_{string.ascii_lowercase[v]}", []
            pieces = [piece for stage in stages or [whole] for piece in chunks(stage, REGISTERS[self.real])]
            for k, piece in enumerate(pieces):
                text, call, reads, writes = self._chunk(f"{name}{k}", piece)
                texts.append(text)
                calls.append(call)
                steps.append((self._step(v, k, call), reads if k else tuple(self.inputs), writes))
            if stages:
                text, call, _, _ = self._chunk(name, whole)
                texts.append(text)
                calls = [call]
            alternatives.append(" && ".join(calls))
        texts.append(self._function(alternatives))
        end = END.format(clear=self._clear("\n    "))
        if len(steps) == 1:
            steps = [(f"{steps[0][0]}\n{end}", *steps[0][1:])]
        else:
            steps.append((end, (), tuple(self.results)))
        launches = []
        for k, (lines, reads, writes) in enumerate(steps):
            launches.append(Launch(f"{self.name}_kernel_{k}", (*reads, *writes)))
            texts.append(self._kernel(launches[-1].kernel, lines, reads, writes))
        return CudaFunction("\n".join(texts), self.inputs, self.work, self.results, tuple(launches))

    def _chunk(self, name, trace):
        """Text of what one kernel computes, its call, and the arrays that it reads and writes."""
        (part,), _ = split(trace, self.language, longest=sys.maxsize)
        reads = tuple(x for x in trace.inputs if x in part.arrays)
        writes = tuple(x for x in trace.results if x in part.arrays)
        self.work |= {x: len(trace.results[x]) for x in writes if x not in self.results}
        given = (*reads, *(f"liedyn_results<{self.real}>({x}, largest)" for x in writes))
        return CHUNK.format(
            name=name, real=self.real, types=_types(reads + writes), arguments=_arguments(reads + writes),
            lines="\n".join(f"    {line}" for line in part.lines), given=", ".join(given),
        ), f"{name}({', '.join(reads + writes)})", reads, writes

    def _step(self, variant, k, call):
        """What a kernel does: ok is the number of the variant that has the results so far, from 1, or 0."""
        if k:
            return f"if (ok[i] == {variant + 1} && !{call}) ok[i] = 0;"
        return f"{'if (!ok[i]) ' if variant else ''}ok[i] = {self._bounded()} && {call} ? {variant + 1} : 0;"

    def _function(self, alternatives):
        arrays = (*self.inputs, *self.results)
        return FUNCTION.format(
            name=self.name, types=_types(arrays), arguments=_arguments(arrays), bounded=self._bounded(),
            variants=" || ".join(f"({x})" for x in alternatives), clear=self._clear("\n        "))

    def _kernel(self, name, lines, reads, writes):
        parameters, places = ["long long count"], []
        for x in (*reads, *writes):
            kind, const = ("Output", "") if x in writes else ("Input", "const ")
            parameters.append(f"{const}{self.real} *__restrict__ {x}_all, long long {x}_step, long long {x}_next")
            places.append(f"        const Liedyn{kind}<{self.real}> {x}{{{x}_all + i * {x}_next, {x}_step}};")
        parameters += ["unsigned char *__restrict__ ok", "unsigned *failed"]
        return KERNEL.format(name=name, parameters=", ".join(parameters), places="\n".join(places),
                             lines="\n".join(f"        {line}" for line in lines.splitlines()))

    def _bounded(self):
        most = self.language.constant(LARGEST[self.real])
        return " & ".join(f"liedyn_bounded<{self.real}>({x}, {size}, {most})" for x, size in self.inputs.items())

    def _clear(self, between):
        return between.join(f"liedyn_clear<{self.real}>({x}, {size});" for x, size in self.results.items())


def _types(arrays):
    return ", ".join(f"class T{k}" for k in range(len(arrays)))


def _arguments(arrays):
    return ", ".join(f"T{k} {x}" for k, x in enumerate(arrays))
