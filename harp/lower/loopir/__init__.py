"""The language between a schedule and C: loop nests, buffers, programs; and what every pass asks of them.

Statements come in; their text, effects and dependences, and rewritten statements, go out.
Read `loops.py` first: it has the grammar.
"""
