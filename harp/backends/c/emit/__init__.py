"""A `Program` comes in; C source goes out, the same bytes for the same program.

Each file prints one part of the language: index expressions, values, statements, functions.
Read `render.py` first.
"""
