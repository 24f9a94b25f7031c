"""A function and the arguments of a call come in; results of compiled code go out.

A call looks up its entry, else traces; a graph looks up its program, else is lowered and compiled.
Read `jit.py` first, then `programs.py`.
"""
