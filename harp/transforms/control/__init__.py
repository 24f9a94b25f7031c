"""Functions of one iteration, or of one branch, come in; nodes that run them go out.

Read `scan.py` first.
"""
