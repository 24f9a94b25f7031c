"""Operations on single elements come in; interned expressions with a dtype go out.

Arrays, axes and memory are not known here.
Read `expr.py` first, then the table of operations in `ops.py`.
"""
