"""A graph comes in; the graph of its cotangents or tangents goes out, made of the same kinds of nodes.

Each file with `rules` in its name is a table: one rule for a kind of node, or for a scalar operation.
Read `vjp.py` first.
"""
