"""A loop nest comes in; a nest with other loops goes out, in which each element is accumulated in the same order. Two
passes keep the loops: one fuses multiplications with additions, and one marks loops that may run in parallel.

Each file is a transformation, or a building block; reductions have a folder of their own.
Read `loop_primitives.py` first.
"""
