"""NumPy-style code on arrays comes in: operators, methods, `x[...]`, `x.at[...]`.

Calls of a few primitives go out, which make nodes inside a trace and numbers elsewhere.
Read `array.py` first, then `primitives.py`.
"""
