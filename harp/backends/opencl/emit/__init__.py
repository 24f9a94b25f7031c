"""Launches of the loop IR as OpenCL C.

Start with `render.py`, which prints a launch; `statements.py` prints the statements in it.
"""
