"""The kernels of a program come in; fewer, shared ones go out, with the list of calls that the program makes.

Passes here look at all kernels together; `rewrite` and `reductions` look at one kernel.
Read `fuse.py` first.
"""
