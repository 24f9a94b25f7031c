"""A loop nest comes in; a nest that computes the same in the same order goes out, with other loops.

Each file is one transformation; reductions have a folder of their own.
Read `schedule_primitives.py` first.
"""
