"""A graph, or one scalar expression, and arrays come in; NumPy arrays go out: this is what a graph means.

It runs programs where there is no compiler, and all that is computed outside of a trace.
Read `interpret.py` first.
"""
