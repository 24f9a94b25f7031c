"""The kernels of a program come in; fewer, shared ones go out, with the list of calls that the program makes.

Here passes look at all kernels at once; `rewrite` and `reductions` look into one.
Read `fuse.py` first.
"""
