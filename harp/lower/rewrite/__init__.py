"""A loop nest comes in; a nest with other loops goes out, in which each element is accumulated in the same order. Two
passes leave the loops as they are: one fuses multiplications with additions, and one marks what may run in parallel.

Files are transformations, and what they are made of; reductions have a folder of their own.
Read `loop_primitives.py` first.
"""
