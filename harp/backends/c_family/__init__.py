"""Loop nests as text of a language like C: C itself, and OpenCL C.

Each file prints one part of the language: index expressions, values, statements, calls. C and OpenCL C differ in
classes that derive from `Statements`, and in headers of the same names.
Read `statements.py` first.
"""
