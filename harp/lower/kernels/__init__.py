"""The kernels of a program come in; fewer, shared, checked ones go out, with the calls between them.

Here passes look at all kernels at once; `rewrite` and `reductions` look into one.
Read `fuse.py` first.
"""
