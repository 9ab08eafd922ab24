"""Kernels that read and write Python objects as fast as a C extension, compiled by numba.

Optional: the generated code says the same, and says it without loading numba.
"""
