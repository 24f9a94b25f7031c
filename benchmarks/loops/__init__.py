"""Loops, branches and transforms beside JAX and numba: `python -m benchmarks loops --help`."""
