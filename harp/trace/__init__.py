"""A user's function and its example arguments come in; a `Graph` of what it computes goes out, with guards on sizes.

The folders build on each other: index, scalar, graph, eval, sizes, array.
Read `tracer.py` first, then `graph/node.py`.
"""
