"""A graph comes in; a graph goes out with fewer nodes, and only arithmetic that machines have.

Complex numbers are computed by parts, float16 and bfloat16 in float32; dtypes in memory stay the user's.
Read `legalise.py` first.
"""
