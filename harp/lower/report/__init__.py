"""Kernels come in; what they cost goes out: operations, traffic and memory as polynomials in the sizes.

Nothing here changes a program.
Read `report.py` first.
"""
