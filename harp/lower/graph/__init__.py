"""A graph comes in; a graph goes out whose arithmetic machines have, with fewer nodes.

Complex numbers are computed by their parts, float16 and bfloat16 in float32; memory holds what the user asked for.
Read `legalise.py` first.
"""
