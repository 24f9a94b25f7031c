"""Nodes that read other nodes come in; an immutable graph, its text, its digest and its verifier go out.

Each kind of node means an array: index maps from `harp.trace.index`, elements from `harp.trace.scalar`.
Read `node.py` first.
"""
