"""The derivatives of iterations: an iteration comes in, nodes that compute its derivative go out.

Read `rules.py` first.
"""
