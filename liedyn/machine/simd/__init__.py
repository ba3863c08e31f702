"""Arithmetic on SIMD registers in kernels: lanes of states, registers of numbers, and memory in whole lines."""
