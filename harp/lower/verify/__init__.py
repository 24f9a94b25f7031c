"""A kernel or a program comes in; nothing goes out, or a VerificationError with the broken rule.

`verify.py` proves for all sizes; the others run loop nests in Python on small data and compare.
Read `verify.py` first.
"""
