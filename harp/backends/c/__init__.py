"""A `Program` comes in; a kernel of machine code goes out.

`emit` prints the C of a program, `library` is C that is written by hand, `backend.py` joins them.
Read `backend.py` first.
"""
