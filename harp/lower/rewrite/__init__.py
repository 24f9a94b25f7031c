"""A loop nest comes in; a nest with other loops goes out, in which each element is accumulated in the same order.

Files are transformations, and what they are made of; reductions have a folder of their own.
Read `loop_primitives.py` first.
"""
