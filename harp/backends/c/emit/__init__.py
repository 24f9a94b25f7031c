"""A `Program` comes in; C source goes out, the same bytes for the same program.

What C has in common with other languages is printed by `c_family`; here are functions, threads, memory, and calls of
Python and of the user's kernels.
Read `render.py` first.
"""
