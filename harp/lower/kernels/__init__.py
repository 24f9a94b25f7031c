"""The kernels of a program come in; fewer ones go out: some are fused, and equal ones are kept once; with them the list
of calls that the program makes.

Passes here look at all kernels together; `rewrite` and `reductions` look at one kernel.
Read `fuse.py` first.
"""
