"""A graph in canonical form comes in; a program of loop nests, ready to be printed, goes out.

The passes of `pipeline.py` run in order, each from one immutable structure to the next, with a verifier.
Read `pipeline.py` first, then `loopir/loops.py`.
"""
