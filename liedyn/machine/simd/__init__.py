"""Arithmetic on SIMD registers in kernels: lanes of states, registers of numbers, and writing of whole cache lines."""
