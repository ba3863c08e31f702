"""The body of a kernel as a program: before compilation it is an ordinary Python function, which runs on any kind of
number.

In: kernels. Out: the same functions of the same arrays.

`interpret` runs it on Python's numbers, without a compiler. `trace` runs it on the expressions of `expressions`: what
it computes becomes straight lines, and what it decides becomes `guards`, by the pivots of `pivots`; `parts` divides
long programs. Targets write such lines: `c` in C, `llvm_lines` as instructions of LLVM; Numba's are written by
`liedyn.bridges.specialization.source`. `evaluate` runs them by NumPy.
"""
