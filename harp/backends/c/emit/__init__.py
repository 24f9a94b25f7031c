"""A `Program` comes in; C source goes out, the same bytes for the same program.

What C shares with OpenCL C is printed by `c_family`; this folder adds functions, threads, memory, and calls of Python
and of the user's kernels.
Read `render.py` first.
"""
