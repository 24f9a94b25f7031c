"""Kernels come in; their costs go out: operations, traffic and memory as polynomials in the sizes.

Nothing here changes a program.
Read `report.py` first.
"""
