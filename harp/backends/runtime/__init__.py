"""A shared library comes in; an executable that Python calls with arrays and sizes goes out.

Threads and memory that all programs share are here, too.
Read `executable.py` first.
"""
