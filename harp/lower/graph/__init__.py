"""A graph comes in; a graph that is easier to compile goes out: real arithmetic only, and fewer nodes.

Complex numbers become pairs of real ones, float16 and bfloat16 become float32.
Read `legalise.py` first.
"""
