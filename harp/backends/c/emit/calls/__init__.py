"""Calls in C: of the library, of functions of Python, and of kernels of the user.

A statement comes in; the lines that call what does it go out, and which units and headers they need.
Read `library_calls.py` first.
"""
