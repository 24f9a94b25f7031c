"""Exact integers about sizes and positions come in; canonical polynomials, proofs and solutions go out.

An expression holds for all sizes; guards and the call at hand are not known here (see `harp.trace.sizes`).
Read `polynomial.py` first.
"""
