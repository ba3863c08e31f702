"""The body of a kernel as a program: run by the interpreter, without a compiler.

In: kernels. Out: the same functions of the same arrays.
"""
