"""Everything that depends on the computer and not on robots: SIMD registers, compilation and its cache, small matrices,
errors, memory, texts.

In: functions and numbers. Out: kernels, and errors that name what is wrong.
"""
